"""Base class for operators that wait for an execution: where they wait, until when, and how a kill ends the wait."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.attempts import push_execution
from airflow_provider_service._core.arguments import SECONDS_OR_ZERO, read_seconds
from airflow_provider_service.client.errors import ServiceTaskKilledError
from airflow_provider_service.links.service import WORKFLOW_PAGE, ServiceExecutionLink, ServiceWorkflowLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service._core.arguments import Duration, OnVanished, TemplatedDuration
    from airflow_provider_service._core.waits.outcome import Outcome
    from airflow_provider_service._core.waits.watch import Wait

#: Seconds that Airflow may need to resume a task after its trigger has fired; a deferred wait ends so much earlier.
RESUMING_SECONDS = 30.0


class _Kill(threading.Event):
    """An event that a signal handler can set, and whose copies are not set.

    Airflow copies and pickles tasks, and the copy of a killed task has not been killed.
    """

    def set(self) -> None:
        """Set the event, even if the signal has interrupted this thread while it holds the event's lock.

        ``Event.set`` waits for that lock, which the thread could not release before the handler returns, and Python has
        no other event. So this uses its private parts; it wakes nobody if the lock is taken, and the clock looks again
        after a while.
        """
        condition: threading.Condition = vars(self)["_cond"]
        vars(self)["_flag"] = True
        if condition.acquire(blocking=False):
            condition.notify_all()
            condition.release()

    def __reduce__(self) -> tuple[type[_Kill], tuple[()]]:
        return _Kill, ()


class ServiceWaitingOperator(ServiceBaseOperator):
    operator_extra_links = (ServiceExecutionLink(), ServiceWorkflowLink())
    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "poll_interval", "timeout")
    checks = {"fault_tolerance": SECONDS_OR_ZERO}
    cancel_on_kill = False
    on_vanished: OnVanished = "fail"

    def __init__(
        self,
        *,
        wait_for_completion: bool,
        deferrable: bool,
        poll_interval: TemplatedDuration,
        timeout: TemplatedDuration,
        fault_tolerance: Duration,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.timeout = timeout
        self.fault_tolerance = fault_tolerance
        self._killed = _Kill()

    @property
    def wait_seconds(self) -> float:
        """Seconds after which the wait ends: ``timeout``, or less if the task itself has less time."""
        seconds = read_seconds("timeout", self.timeout)
        if not self.deferrable or self.execution_timeout is None:
            return seconds
        # At its execution_timeout, Airflow 2 drops a deferred task, and Airflow 3 keeps waiting; neither stops the
        # execution.
        limit = self.execution_timeout.total_seconds()
        return min(seconds, limit - min(RESUMING_SECONDS, limit / 4))

    def prepare_for_execution(self) -> Any:
        """Return a copy for one attempt. A kill ends that copy only, although it is a shallow one."""
        prepared = super().prepare_for_execution()
        prepared._killed = _Kill()
        return prepared

    def on_kill(self) -> None:
        self._killed.set()

    def link_workflow(self, context: Context, workflow_id: str) -> None:
        """Point the task's link at the workflow, even if it cannot be started."""
        self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, workflow_id)

    def wait(
        self, context: Context, execution_id: str, workflow_id: str | None, deadline: float, **resumed_with: Any
    ) -> Outcome:
        """Wait in the worker; or, if deferrable, read the execution once and leave the rest to the triggerer."""
        from airflow_provider_service._core.waits.watch import poll_here

        wait = self._wait_for(execution_id, workflow_id, deadline)
        name = resumed_with.get("workflow_name")
        outcome = poll_here(
            self.hook.config,
            wait,
            self._killed,
            only_once=self.deferrable,
            began=lambda moment: push_execution(context, execution_id, started_at=moment, workflow_name=name),
        )
        if self._killed.is_set():
            raise ServiceTaskKilledError(f"the task was killed while execution {execution_id} had not ended")
        if outcome is not None:
            return outcome
        from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

        self.defer(
            trigger=ServiceExecutionTrigger(**wait.to_arguments(), cancel_on_kill=self.cancel_on_kill),
            method_name="execute_complete",
            kwargs=resumed_with,
        )
        raise AssertionError("defer always raises")

    def _wait_for(self, execution_id: str, workflow_id: str | None, deadline: float = math.inf) -> Wait:
        from airflow_provider_service._core.waits.watch import Wait

        return Wait(
            execution_id=execution_id,
            service_conn_id=self.service_conn_id,
            deadline=deadline,
            timeout=self.wait_seconds,
            poll_interval=read_seconds("poll_interval", self.poll_interval),
            on_vanished=self.on_vanished,
            fault_tolerance=read_seconds("fault_tolerance", self.fault_tolerance, or_zero=True),
            expected_workflow_id=workflow_id,
        )
