"""What the operators share that wait for an execution: where they wait, until when, and that a kill ends the wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import conf

from airflow_provider_service.arguments import check_wait, read_seconds, require_flag
from airflow_provider_service.links import WORKFLOW_PAGE, ServiceExecutionLink, ServiceWorkflowLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.waits.outcome import OnVanished, Outcome

DAY_SECONDS = 86_400.0
# What Airflow may need to run a task again after its trigger has fired.
RESUMING_SECONDS = 30.0


class ServiceWaitingOperator(ServiceBaseOperator):
    """Base of the operators that wait for an execution.

    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer; by default as ``[operators] default_deferrable`` says.
    :param poll_interval: seconds between two looks; 10 by default.
    :param timeout: seconds after which the wait is over; a day by default. A deferred wait is over before the task's
        ``execution_timeout``.
    :param fault_tolerance: seconds that looking may fail in a row before the task fails; 300 by default.
    """

    operator_extra_links = (ServiceExecutionLink(), ServiceWorkflowLink())
    cancel_on_kill = False
    on_vanished: OnVanished = "fail"

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 10.0,
        timeout: float = DAY_SECONDS,
        fault_tolerance: float = 300.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.timeout = timeout
        self.fault_tolerance = fault_tolerance
        self._killed = threading.Event()

    def on_kill(self) -> None:
        """End the wait."""
        self._killed.set()

    def check_how_to_wait(self) -> None:
        """Refuse arguments of the wait that can not be meant."""
        self.timeout = read_seconds("timeout", self.timeout)
        self.poll_interval = read_seconds("poll_interval", self.poll_interval)
        require_flag("wait_for_completion", self.wait_for_completion)
        check_wait(self)
        if self.deferrable and self.execution_timeout is not None:
            # Airflow 2 drops a deferred task at that moment, Airflow 3 lets it wait on: neither stops the execution.
            seconds = self.execution_timeout.total_seconds()
            self.timeout = min(self.timeout, seconds - min(RESUMING_SECONDS, seconds / 4))

    def link_workflow(self, context: Context, workflow_id: str) -> None:
        """Let the button lead to the workflow, also when nothing of it can be started."""
        self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, workflow_id)

    def wait(self, execution_id: str, deadline: float, **told: Any) -> Outcome:
        """Wait in the worker, or look once and leave the rest to the triggerer.

        :param deadline: moment that ends the wait, in seconds since the epoch.
        :param told: what ``execute_complete`` is told again.
        :raises TaskDeferred: the triggerer waits.
        :raises ServiceTaskKilledError: the task was killed.
        """
        from airflow_provider_service.client.errors import ServiceTaskKilledError

        outcome = self._look(execution_id, deadline)
        if self._killed.is_set():
            raise ServiceTaskKilledError(f"the task was killed while execution {execution_id} had not ended")
        return outcome or self._defer(execution_id, deadline, told)

    def _look(self, execution_id: str, deadline: float) -> Outcome | None:
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.waits.watch import Watch

        watch = Watch(
            execution_id,
            deadline=deadline,
            timeout=self.timeout,
            on_vanished=self.on_vanished,
            fault_tolerance=self.fault_tolerance,
        )
        with ServiceClient(self.hook.config.one_try()) as client:
            outcome = watch.look(client)
            while outcome is None and not self.deferrable:
                if self._killed.wait(min(self.poll_interval, watch.seconds_left)):
                    return None
                outcome = watch.look(client)
        return outcome

    def _defer(self, execution_id: str, deadline: float, told: dict[str, Any]) -> Outcome:
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
            kwargs=told,
        )
        raise AssertionError("defer always raises")
