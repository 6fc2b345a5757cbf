"""What ``on_kill`` of a deferred task stops, in Airflow's own triggerer and database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.utils.state import TaskInstanceState
from sqlalchemy import delete, update

from airflow_provider_service._core.waits.outcome import EXECUTION_ID_KEY
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

from .deferred_tasks import DeferredTask, defer, forget_triggers, give_to_another_triggerer, soon, triggerer, write_dag

pytestmark = pytest.mark.real_time  # a triggerer of its own waits

Act = Callable[[DeferredTask], None]


def set_state(state: TaskInstanceState | None) -> Act:
    def act(task: DeferredTask) -> None:
        task.change(lambda ti, session: setattr(ti, "state", state))

    return act


def clear_then(state: TaskInstanceState, execution_id: str | None = None) -> Act:
    """The cleared task has begun again before the triggerer notices; its new attempt waits for an execution."""

    def act(task: DeferredTask) -> None:
        def begin_again(ti: Any, session: Any) -> None:
            clear_task_instances([ti], session)
            ti.state, ti.trigger_id = state, None

        if execution_id is not None:
            task.push(EXECUTION_ID_KEY, execution_id)
        task.change(begin_again)

    return act


def delete_run(task: DeferredTask) -> None:
    task.change(lambda ti, session: session.execute(delete(DagRun).where(DagRun.run_id == task.run_id)))


def give_away_in_an_unknown_state(task: DeferredTask) -> None:
    give_to_another_triggerer(task)
    task.change(
        lambda ti, session: session.execute(
            update(TaskInstance).where(TaskInstance.id == ti.id).values(state="of a later Airflow")
        )
    )


@dataclass
class Case:
    """Something happens to a deferred task, and its execution is stopped or not."""

    name: str
    act: Act
    is_stopped: bool
    task_id: str = "plain"

    def says(self, execution_id: str) -> str:
        """What the log says in the end."""
        return f"Execution {execution_id} {'was stopped' if self.is_stopped else 'keeps running'}"


ANOTHER = "987654"
CASES = (
    Case("taken over", give_to_another_triggerer, False),
    Case("taken over, mapped", give_to_another_triggerer, False, "mapped"),
    Case("marked failed", set_state(TaskInstanceState.FAILED), True),
    Case("marked failed, mapped", set_state(TaskInstanceState.FAILED), True, "mapped"),
    Case("marked success", set_state(TaskInstanceState.SUCCESS), True),
    Case("skipped by a timeout of its DAG run", set_state(TaskInstanceState.SKIPPED), True),
    Case("cleared and scheduled", clear_then(TaskInstanceState.SCHEDULED), False),
    Case("cleared and scheduled, mapped", clear_then(TaskInstanceState.SCHEDULED), False, "mapped"),
    Case("cleared and queued", clear_then(TaskInstanceState.QUEUED), False),
    Case("cleared, and not run again", clear_then(TaskInstanceState.UPSTREAM_FAILED), True),
    Case("cleared and running", clear_then(TaskInstanceState.RUNNING), False),
    Case("cleared and tried again", clear_then(TaskInstanceState.UP_FOR_RETRY), False),
    Case("cleared and running with another execution", clear_then(TaskInstanceState.RUNNING, ANOTHER), True),
    Case("cleared and deferred with the same execution", clear_then(TaskInstanceState.DEFERRED), False),
    Case("cleared and deferred with another execution", clear_then(TaskInstanceState.DEFERRED, ANOTHER), True),
    Case("its run deleted", delete_run, True),
    Case("taken over, in an unknown state", give_away_in_an_unknown_state, False),
)


@pytest.fixture(scope="module")
def cases(
    running_simulator: ServiceSimulator, database: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[str, DeferredTask]]]:
    """All cases at once: each task's trigger has looked in the triggerer, then something happens to the task."""
    simulator = running_simulator
    simulator.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", simulator.connection_json())
        patch.setenv("AIRFLOW__LOGGING__LOGGING_LEVEL", "INFO")
        patch.setenv("AIRFLOW__TRIGGERER__MAX_TRIGGER_TO_SELECT_PER_LOOP", "100")
        workflow_id = simulator.create_webhook_workflow(path="w", behaviour="long", seconds=600)["id"]
        forget_triggers()
        dag, found = write_dag(), {}
        for case in CASES:
            one = simulator.start_execution(workflow_id)
            task = defer(dag, case.name.replace(",", "").replace(" ", "_"), trigger_for(one), case.task_id)
            task.push(EXECUTION_ID_KEY, one)
            found[case.name] = (one, task)
        with triggerer(tmp_path_factory.mktemp("triggerer") / "output"):
            soon(lambda: all("starting" in task.log() for _, task in found.values()))
            soon(lambda: sum("status=running" in one.query for one in simulator.requests) >= 2)
            for case in CASES:
                case.act(found[case.name][1])
            soon(lambda: all(case.says(found[case.name][0]) in found[case.name][1].log() for case in CASES))
        yield found


def trigger_for(execution_id: str) -> ServiceExecutionTrigger:
    return ServiceExecutionTrigger(
        service_conn_id="service_default",
        execution_id=execution_id,
        poll_interval=0.3,
        deadline=time.time() + 600,
        timeout=600,
        on_vanished="fail",
        fault_tolerance=300,
        cancel_on_kill=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_only_a_task_that_somebody_ended_stops_its_execution(
    case: Case, cases: dict[str, tuple[str, DeferredTask]], running_simulator: ServiceSimulator
) -> None:
    execution_id, task = cases[case.name]
    log = task.log()
    assert "invoking on_kill" in log
    execution = running_simulator.state.executions.get(int(execution_id))
    assert execution is not None
    assert execution.status == ("canceled" if case.is_stopped else "running"), log
    assert case.says(execution_id) in log
