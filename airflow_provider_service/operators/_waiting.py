"""What the operators share that start an execution and wait for it: the wait in the worker or the triggerer, the
deadline, and the stop when the task is killed."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf

from airflow_provider_service.links import ServiceExecutionLink, execution_url
from airflow_provider_service.operators._base import ServiceBaseOperator, require

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.waiting import OnVanished, Outcome

DAY_SECONDS = 86_400.0


class ServiceWaitingOperator(ServiceBaseOperator):
    """Base of the operators that start an execution and wait for it.

    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer; by default as ``[operators] default_deferrable`` says.
    :param poll_interval: seconds between two looks; 10 by default.
    :param timeout: seconds after which the execution is stopped and the task fails; a day by default.
    :param cancel_on_kill: stop the execution when the task is killed, cleared or marked; True by default.
    :param on_vanished: what it means that the execution can not be found: ``"fail"`` or ``"succeed"``.
    :param fault_tolerance: seconds that looking may fail in a row before the task fails; 300 by default.
    """

    operator_extra_links = (ServiceExecutionLink(),)

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 10.0,
        timeout: float = DAY_SECONDS,
        cancel_on_kill: bool = True,
        on_vanished: OnVanished = "fail",
        fault_tolerance: float = 300.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.timeout = timeout
        self.cancel_on_kill = cancel_on_kill
        self.on_vanished = on_vanished
        self.fault_tolerance = fault_tolerance
        self._killed = threading.Event()
        self._waiting_for: str | None = None

    @abstractmethod
    def begin(self, context: Context) -> tuple[str, str]:
        """Start the execution, or find the one that an earlier attempt started; its id and its workflow's."""

    def output_of(self, outcome: Outcome) -> dict[str, Any]:
        """What the task returns beyond the outcome."""
        return {}

    def execute(self, context: Context) -> dict[str, Any]:
        """Start the execution and wait for it as asked."""
        require(self.timeout > 0, f"timeout must be a number of seconds above 0, not {self.timeout!r}")
        require(
            self.poll_interval > 0, f"poll_interval must be a number of seconds above 0, not {self.poll_interval!r}"
        )
        deadline = time.time() + self.timeout
        execution_id, workflow_id = self.begin(context)
        self._waiting_for = execution_id
        url = execution_url(self.hook.config.base_url, workflow_id, execution_id)
        ServiceExecutionLink().push(context, url)
        context["ti"].xcom_push(key="execution_id", value=execution_id)
        self.log.info("Execution %s: %s", execution_id, url)
        if not self.wait_for_completion:
            return {"execution_id": execution_id, "workflow_id": workflow_id, "url": url}
        outcome = self._look(execution_id, deadline, once=self.deferrable)
        return self._finish(outcome) if outcome else self._defer(execution_id, deadline)

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task as the trigger's event says."""
        from airflow_provider_service.waiting import Outcome

        return self._finish(Outcome.from_event(event))

    def on_kill(self) -> None:
        """End the wait at once and stop the execution, when that was asked for."""
        from airflow_provider_service.waiting import stop_execution

        self._killed.set()
        if self.cancel_on_kill and self._waiting_for is not None:
            stop_execution(self.hook.config, self._waiting_for)

    def _look(self, execution_id: str, deadline: float, *, once: bool) -> Outcome | None:
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.waiting import Watch, timed_out

        watch = Watch(execution_id, on_vanished=self.on_vanished, fault_tolerance=self.fault_tolerance)
        with ServiceClient(self.hook.config.model_copy(update={"retry_deadline": 0.0})) as client:
            outcome = watch.look(client)
            while outcome is None and not once and time.time() < deadline:
                if self._killed.wait(min(self.poll_interval, max(deadline - time.time(), 0.0))):
                    raise InterruptedError(f"the task was killed while execution {execution_id} had not ended")
                outcome = watch.look(client)
        if outcome is None and time.time() >= deadline:
            return timed_out(execution_id, self.timeout)
        return outcome

    def _defer(self, execution_id: str, deadline: float) -> dict[str, Any]:
        from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

        self.defer(
            trigger=ServiceExecutionTrigger(
                service_conn_id=self.service_conn_id,
                execution_id=execution_id,
                poll_interval=self.poll_interval,
                deadline=deadline,
                timeout=self.timeout,
                on_vanished=self.on_vanished,
                fault_tolerance=self.fault_tolerance,
                cancel_on_kill=self.cancel_on_kill,
            ),
            method_name="execute_complete",
        )
        raise AssertionError("defer always raises")

    def _finish(self, outcome: Outcome) -> dict[str, Any]:
        from airflow_provider_service.waiting import settle

        if outcome.verdict == "timed_out":
            outcome = self._stopped(outcome)
        return {**settle(outcome, retry_helps=True), **self.output_of(outcome)}

    def _stopped(self, outcome: Outcome) -> Outcome:
        """Stop an execution that did not end in time, unless it ended meanwhile: then that counts."""
        from dataclasses import replace

        from airflow_provider_service.waiting import Watch, stop_execution

        was_stopped = stop_execution(self.hook.config, outcome.execution_id)
        ended = Watch(outcome.execution_id, on_vanished=self.on_vanished).look(self.hook.client)
        if ended is not None and ended.status != "canceled":
            return ended
        fate = "it was stopped" if was_stopped else "it could NOT be stopped and may still be running"
        return replace(outcome, message=f"{outcome.message}; {fate}")
