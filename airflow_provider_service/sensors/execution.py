"""The sensor that waits for an execution."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseSensorOperator, conf

from airflow_provider_service.arguments import check_wait
from airflow_provider_service.failing import failing_at_once
from airflow_provider_service.links import (
    WORKFLOW_PAGE,
    ServiceExecutionLink,
    ServiceWorkflowLink,
    execution_url,
    page_url,
)

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, PokeReturnValue

    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.waits.outcome import OnVanished, Outcome
    from airflow_provider_service.waits.watch import Watch

# Pause between two looks while looking fails, when the poke interval is longer.
FAULT_PAUSE_SECONDS = 10.0


class ServiceExecutionSensor(BaseSensorOperator):
    """Wait until an execution has ended. Reads only; safe to repeat.

    ``success`` ends the wait. ``error``, ``canceled`` and ``crashed`` fail the task for good, with the failing node,
    the service's message and the execution's address. ``new``, ``running``, ``waiting`` and unknown statuses go on.
    All modes judge alike; ``soft_fail`` skips when the execution failed, vanished or did not end in time. A look that
    fails is tried again, by the wait and then by a retry of the task, unless only a person can mend what is wrong.

    :param execution_id: the execution.
    :param on_vanished: what it means that the execution can not be found: ``"fail"`` or ``"succeed"``. It was deleted
        or pruned, its workflow does not save such executions, or it never existed.
    :param fault_tolerance: seconds that looking may fail in a row before the task fails; 300 by default.
    :param deferrable: wait in the triggerer, where thousands of waits share their requests; by default as
        ``[operators] default_deferrable`` says.
    :param service_conn_id: Airflow connection of type ``service``.
    :returns: ``{"execution_id", "status", "workflow_id", "started_at", "stopped_at", "url"}``.
    """

    template_fields: Sequence[str] = ("service_conn_id", "execution_id")
    operator_extra_links = (ServiceExecutionLink(), ServiceWorkflowLink())
    ui_color = "#ede9fe"

    def __init__(
        self,
        *,
        execution_id: str | int,
        on_vanished: OnVanished = "fail",
        fault_tolerance: float = 300.0,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        service_conn_id: str = "service_default",
        poke_interval: float = 10.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.execution_id = execution_id
        self.on_vanished = on_vanished
        self.fault_tolerance = fault_tolerance
        self.deferrable = deferrable
        self.service_conn_id = service_conn_id
        self._is_linked = False

    def execute(self, context: Context) -> Any:
        """Wait in the mode that was asked for."""
        with failing_at_once():
            check_wait(self)
        self._seconds = self.timeout
        self._deadline = self._began(context) + self._seconds
        if not self.deferrable:
            return self._execute_in_worker(context)
        outcome = self._observe(context)
        return self._settle(outcome) if outcome else self._defer()

    def _execute_in_worker(self, context: Context) -> Any:
        # Airflow's own check of the limit has a message of its own, so it must not come first.
        self.timeout = math.inf
        try:
            return super().execute(context)
        finally:
            self.timeout = self._seconds

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        from airflow.providers.common.compat.sdk import PokeReturnValue

        outcome = self._observe(context)
        if outcome is None:
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=self._settle(outcome))

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task as the trigger's event says."""
        from airflow_provider_service.waits.outcome import Outcome

        outcome = Outcome.from_event(event)
        if outcome.url:
            ServiceExecutionLink().push(context, outcome.url)
        return self._settle(outcome)

    def _began(self, context: Context) -> float:
        first = getattr(context["ti"], "get_first_reschedule_date", None) if self.reschedule else None
        moment = first(context) if first else None
        return moment.timestamp() if moment else time.time()

    def _watch(self) -> Watch:
        from airflow_provider_service.waits.watch import Watch

        return Watch(
            str(self.execution_id).strip(),
            deadline=self._deadline,
            timeout=self._seconds,
            on_vanished=self.on_vanished,
            fault_tolerance=self.fault_tolerance,
        )

    def _observe(self, context: Context) -> Outcome | None:
        """Look, and look again while looking fails; None while the wait goes on."""
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.hooks.service import ServiceHook
        from airflow_provider_service.waits.outcome import broken

        watch = self._watch()
        try:
            config = ServiceHook(self.service_conn_id).config
        except Exception as error:
            self.log.exception("Connection '%s' can not be used", self.service_conn_id)
            return broken(watch.execution_id, error)
        with ServiceClient(config.one_try()) as client:
            outcome = watch.look(client)
            # The triggerer tolerates faults by itself, without holding a worker.
            while outcome is None and watch.in_trouble and not self.deferrable:
                time.sleep(min(self.poke_interval, FAULT_PAUSE_SECONDS))
                outcome = watch.look(client)
            self._link(context, client, watch)
        return outcome

    def _link(self, context: Context, client: ServiceClient, watch: Watch) -> None:
        if watch.workflow_id and not self._is_linked:
            url = execution_url(client.base_url, watch.workflow_id, watch.execution_id)
            ServiceExecutionLink().push(context, url)
            ServiceWorkflowLink().push(context, page_url(client.base_url, WORKFLOW_PAGE, watch.workflow_id))
            self.log.info("Waiting for execution %s: %s", watch.execution_id, url)
            self._is_linked = True

    def _settle(self, outcome: Outcome) -> dict[str, Any]:
        from airflow_provider_service.waits.outcome import settle

        try:
            return settle(outcome, soft_fail=self.soft_fail, never_fail=self.never_fail)
        finally:
            # What has been decided stays: the base class would skip more, and with a message that says nothing.
            self.soft_fail = self.never_fail = False

    def _defer(self) -> None:
        from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

        watch = self._watch()
        self.defer(
            trigger=ServiceExecutionTrigger(
                service_conn_id=self.service_conn_id,
                execution_id=watch.execution_id,
                poll_interval=self.poke_interval,
                deadline=self._deadline,
                timeout=self.timeout,
                on_vanished=self.on_vanished,
                fault_tolerance=self.fault_tolerance,
            ),
            method_name="execute_complete",
        )
