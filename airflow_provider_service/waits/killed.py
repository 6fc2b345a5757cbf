"""Whether a user really ended a deferred task; Airflow is asked, since its triggerer also cancels when nobody did.

A triggerer that stalls for longer than Airflow's health check allows loses its triggers to another one. When it wakes,
it calls ``on_kill`` on them all the same.

What Airflow lets a trigger ask is the state of its task and what the task has pushed, and neither always tells what a
user did from what Airflow did itself. Where they do not, the execution keeps running: it can still be stopped by hand,
while one that was stopped although its task waits for it is lost. So a task that is about to run again never stops its
execution. It may have been cleared, but its trigger may also have fired in another triggerer, or a retry may be due.
In each of these cases the next attempt looks for the execution and resumes it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_service.daemon_threads import in_daemon_thread
from airflow_provider_service.waits.outcome import EXECUTION_ID_KEY

if TYPE_CHECKING:
    from airflow.executors.workloads import TaskInstance

log = logging.getLogger(__name__)

# The first question to a triggerer makes it load Airflow's API, which takes many seconds on a busy machine.
ASKING_SECONDS = 60.0
# A task instance that no longer exists was deleted with its DAG run.
_DELETED = "deleted"
# States in which no attempt waits for the execution or will look for it: a user's action, or a timeout of the DAG run,
# leads to them. So does the end of the execution, which then has nothing left to stop.
_ENDED = frozenset({_DELETED, "failed", "success", "skipped", "removed", "upstream_failed"})
# The task waits for an execution, or is about to look for the one that its last attempt left.
_AT_WORK = frozenset({"deferred", "running"})


async def was_killed(ti: TaskInstance | None, execution_id: str) -> bool:
    """Ask Airflow whether a task was ended from outside, and nothing waits for its execution any longer.

    When in doubt, and when Airflow cannot be asked, the answer is no.

    :param ti: the task instance that the trigger belongs to.
    :param execution_id: the execution that the trigger waits for.
    """
    if ti is None:
        log.error("Execution %s is not stopped, because its trigger belongs to no task", execution_id)
        return False
    try:
        reason = await asyncio.wait_for(in_daemon_thread(_reason_to_keep, ti, execution_id), ASKING_SECONDS)
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody knows whether the task was ended
        log.error(
            "Execution %s is not stopped and may still be running, because Airflow did not say whether the task was "
            "ended: %r",
            *(execution_id, error),
        )
        return False
    if reason:
        log.info("Execution %s is not stopped: %s", execution_id, reason)
    return reason is None


def _reason_to_keep(ti: Any, execution_id: str) -> str | None:
    """Why the execution must keep running; None if its task was ended."""
    state = _state_of(ti)
    if state in _ENDED:
        return None
    # After a clear, a new attempt may have begun: usually it resumes the execution, but it may wait for another one.
    if state in _AT_WORK and _current_execution(ti) not in {None, execution_id}:
        return None
    return f"the task was not ended: it is '{state}', or it begins again and resumes the execution"


def _state_of(ti: Any) -> str | None:
    """The state of a task instance; None while it waits to be scheduled."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    found = RuntimeTaskInstance.get_task_states(
        dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
    )
    name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}_{ti.map_index}"
    state = found.get(ti.run_id, {}).get(name, _DELETED)
    return None if state is None else str(state)


def _current_execution(ti: Any) -> str | None:
    """The execution that the latest attempt waits for; Airflow drops the one before when an attempt begins."""
    from airflow.providers.common.compat.sdk import XCom

    value = XCom.get_one(
        key=EXECUTION_ID_KEY, dag_id=ti.dag_id, task_id=ti.task_id, run_id=ti.run_id, map_index=ti.map_index
    )
    return None if value is None else str(value)
