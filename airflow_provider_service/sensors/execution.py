"""The sensor that waits for an execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service._airflow.attempts import fail_without_retry, failure_reported, kept, push_execution
from airflow_provider_service._airflow.settings import DEFAULT_DEFERRABLE
from airflow_provider_service._core.arguments import (
    FAULT_TOLERANCE_SECONDS,
    POLL_SECONDS,
    OnVanished,
    as_rendered,
    require_context,
)
from airflow_provider_service._core.waits.outcome import Outcome, broken, settle
from airflow_provider_service._core.waits.watch import Wait, Watch, explained, where_it_waits
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import (
    WORKFLOW_PAGE,
    ServiceExecutionLink,
    ServiceWorkflowLink,
    execution_url,
    page_url,
    read_execution_url,
)
from airflow_provider_service.sensors._base import LAST_SECONDS, Ended, ServiceBaseSensor

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, PokeReturnValue
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import (
        Duration,
        ReturnOutput,
        SensorArguments,
        Templated,
        TemplatedDuration,
    )
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service.client import ServiceClient

__all__ = ["ServiceExecutionSensor"]


class ServiceExecutionSensor(ServiceBaseSensor):
    """Wait until an execution has ended. Safe to repeat: it only reads.

    The task succeeds on ``success``. On ``error``, ``canceled`` and ``crashed`` it fails without further retries, with
    the failing node, the service's message and the URL of the execution. On ``new``, ``running``, ``waiting`` and
    unknown statuses the wait continues. All modes judge an execution in the same way. With ``soft_fail``, Airflow skips
    the task if the execution failed, vanished or did not end in time. The wait repeats failed reads, and a
    retry of the task repeats them later, unless a person has to change something first.

    If the connection leads to another server in the meantime, whose execution of this id is one of another workflow,
    the task fails. With ``mode="reschedule"``, this needs Airflow 3.3 or newer. On older versions, nothing of a sensor
    survives a pause, so it takes that execution for its own.

    If the execution has not ended after ``timeout``, the sensor raises ``AirflowSensorTimeout`` and leaves it running.
    If the execution could not be observed, it raises ``ServiceWaitError``, which Airflow retries. Any other failure is
    an ``AirflowFailException``.

    Arguments of Airflow's own sensor apply as well. The task fails if the execution has not ended after ``timeout``
    (seconds, or a timedelta; Airflow's ``[sensors] default_timeout`` by default), which also limits a deferred wait.
    ``mode`` is ``"poke"`` (the default) or ``"reschedule"``, and is ignored if ``deferrable`` is True. ``soft_fail`` is
    False by default.

    :param execution_id: id of the execution.
    :param on_vanished: what to do if the execution cannot be found: ``"fail"`` (the default) or ``"succeed"``. It
        was deleted or pruned, its workflow does not save such executions, the id is wrong, or the key may not see it.
        With ``"succeed"``, even a wrong id succeeds at once, without output and with a warning in the log.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param deferrable: wait in the triggerer, where thousands of waits share their requests; the default is Airflow's
        ``[operators] default_deferrable``.
    :param poke_interval: seconds, or a timedelta, between two polls; 10 seconds by default.
    :param return_output: what to return: the output of the node that ran last (``"last_node"``), the output of another
        node (``{"node": "Name"}``), or none (``"none"``, the default). It may contain whatever the workflow was called
        with, including headers and their secrets.
    :param max_output_items: number of items to return at most; None (the default) for all.
    :param output_path: file for output that is larger than 48 kB of JSON: a path, or an address such as
        ``"s3://my_conn@bucket/{{ run_id }}.json"``, in which an Airflow connection may be named. None (the default)
        leaves such output out.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: ``{"execution_id", "status", "workflow_id", "started_at", "stopped_at", "url"}``, and with
        ``return_output`` also ``{"output", "output_items", "output_path"}``, as from
        :class:`ServiceRunWorkflowOperator`.
    :raises AirflowFailException: the execution did not succeed or vanished, or no retry would help.
    :raises AirflowSensorTimeout: the time was over before that.
    :raises ServiceWaitError: reads kept failing for longer than ``fault_tolerance``.
    """

    template_fields: Sequence[str] = (*ServiceBaseSensor.template_fields, "execution_id", "output_path")
    operator_extra_links = (ServiceExecutionLink(), ServiceWorkflowLink())

    def __init__(
        self,
        *,
        execution_id: Templated[str | int],
        on_vanished: OnVanished = "fail",
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        deferrable: bool = DEFAULT_DEFERRABLE,
        poke_interval: TemplatedDuration = POLL_SECONDS,
        return_output: ReturnOutput = "none",
        max_output_items: int | None = None,
        output_path: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[SensorArguments],
    ) -> None:
        super().__init__(
            fault_tolerance=fault_tolerance,
            deferrable=deferrable,
            poke_interval=poke_interval,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.execution_id = cast("str | int", execution_id)
        self.on_vanished = on_vanished
        self.return_output = return_output
        self.max_output_items = max_output_items
        self.output_path = as_rendered(output_path)
        self._is_linked = self._is_unreadable = False
        self.check_arguments()

    def _execute(self, context: Context) -> Any:
        with fail_without_retry():
            require_context(context, ("ti",))
            self.pushed_links = {}
            self.check_arguments(are_rendered=True)
            self._wanted_output()
        execution_id = str(self.execution_id).strip()
        workflow_id = self._workflow_seen_before(context, execution_id)
        self._wait = self._wait_until(self.began(context) + self.timeout_seconds, execution_id, workflow_id)
        if not self.deferrable:
            return self._execute_in_worker(context)
        outcome = self._observe(context)
        if outcome:
            return self._settle(context, outcome)
        from airflow_provider_service.triggers.execution import ServiceExecutionTrigger

        return self.defer(trigger=ServiceExecutionTrigger(**self._wait.to_arguments()), method_name="execute_complete")

    def _workflow_seen_before(self, context: Context, execution_id: str) -> str | None:
        """The execution's workflow, as this attempt has seen it before it was rescheduled; None if unknown."""
        address = read_execution_url(kept(context, "execution")) if self.reschedule else None
        return address.workflow_id if address and address.execution_id == execution_id else None

    def poke(self, context: Context) -> PokeReturnValue:
        """Read the execution once.

        :raises AirflowSkipException: the wait is over, but a poke cannot end it: it did not succeed, or output is to be
            read. ``execute`` then decides what that means.
        """
        from airflow.providers.common.compat.sdk import PokeReturnValue

        outcome = self._observe(context)
        # The output is read after the wait, so that a fault in reading it is not a fault of the wait.
        if outcome and (outcome.verdict != "succeeded" or self.return_output != "none"):
            raise Ended(outcome)
        return PokeReturnValue(is_done=outcome is not None, xcom_value=outcome and self._settle(context, outcome))

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task according to the event of the trigger."""
        outcome = Outcome.from_event(event)
        if outcome.verdict == "timed_out" or outcome.is_overdue:
            # It may have ended in time: after an absence of the triggerer, a slow service leaves no time to read it.
            self._wait = self._wait_until(clock().now(), outcome.execution_id, outcome.workflow_id)
            again = self._observe(context)
            # A failed read does not change what the trigger has seen.
            if again is not None and (again.final or again.verdict != "unobservable"):
                outcome = again
        if outcome.url:
            ServiceExecutionLink().push(context, outcome.url)
        with failure_reported(context):
            return self._settle(context, outcome)

    def _wait_until(self, deadline: float, execution_id: str, workflow_id: str | None = None) -> Wait:
        return Wait(
            execution_id=execution_id,
            service_conn_id=self.service_conn_id,
            deadline=deadline,
            timeout=self.timeout_seconds,
            poll_interval=self.poll_interval,
            on_vanished=self.on_vanished,
            fault_tolerance=self._seconds("fault_tolerance"),
            expected_workflow_id=workflow_id,
        )

    def _observe(self, context: Context) -> Outcome | None:
        """Read the execution, repeatedly if reads fail; return None while the wait continues."""
        from airflow_provider_service.client import ServiceClient
        from airflow_provider_service.hooks.service import ServiceHook

        watch = Watch(self._wait)
        watch.is_unreadable = self._is_unreadable
        try:
            config = ServiceHook(self.service_conn_id).config
        except Exception as error:
            self.log.exception("Connection '%s' cannot be used", self.service_conn_id)
            return broken(watch.execution_id, error)
        with ServiceClient(config.one_try()) as client:
            outcome = watch.poll(client)
            # In a deferred wait, the triggerer tolerates faults, without occupying a worker.
            while outcome is None and watch.in_trouble and not self.deferrable:
                clock().sleep(watch.pause(self.poll_interval), self._wait.deadline)
                outcome = watch.poll(client)
            self._link(context, client, watch, is_active=outcome is None)
        self._is_unreadable = watch.is_unreadable
        if watch.workflow_id:
            self._wait = replace(self._wait, expected_workflow_id=watch.workflow_id)
        # Airflow's own check of the timeout has a different message, so it must not come first.
        is_over = not self.deferrable and watch.seconds_left < LAST_SECONDS
        return outcome or (watch.timed_out() if is_over else None)

    def _explained(self, outcome: Outcome) -> Outcome:
        from airflow_provider_service.hooks.service import ServiceHook

        if outcome.verdict not in ("failed", "timed_out"):
            return outcome
        try:
            config = ServiceHook(self.service_conn_id).config
        except Exception:
            self.log.exception("Connection '%s' cannot be used, so the failure is not explained", self.service_conn_id)
            return outcome
        return (explained if outcome.verdict == "failed" else where_it_waits)(config, outcome)

    def _link(self, context: Context, client: ServiceClient, watch: Watch, *, is_active: bool) -> None:
        if watch.workflow_id and not self._is_linked:
            url = execution_url(client.base_url, watch.workflow_id, watch.execution_id)
            ServiceExecutionLink().push(context, url)
            ServiceWorkflowLink().push(context, page_url(client.base_url, WORKFLOW_PAGE, watch.workflow_id))
            if is_active:
                push_execution(context, watch.execution_id, started_at=watch.started_at)
            self.log.info("Waiting for execution %s: %s", watch.execution_id, url)
            self._is_linked = True

    def _settle(self, context: Context, outcome: Outcome) -> dict[str, Any]:
        outcome.push_times(context)
        outcome = self._explained(outcome)
        if outcome.verdict == "timed_out":
            outcome = outcome._replace(message=f"{outcome.message}; it was not stopped. To wait longer, raise timeout")
        result = settle(outcome, soft_fail=self.soft_fail, never_fail=self.never_fail)
        wanted = self._wanted_output()
        if wanted is None:
            return result
        from airflow_provider_service._core.runs.output import no_output, read_output
        from airflow_provider_service.hooks.service import ServiceHook

        if outcome.status is None:
            return {**result, **no_output()}
        with fail_without_retry(), ServiceHook(self.service_conn_id) as hook:
            return {**result, **read_output(hook.client, outcome.execution_id, wanted)}

    def _wanted_output(self) -> WantedOutput | None:
        from airflow_provider_service._core.runs.output import WantedOutput

        return WantedOutput.of(self.return_output, self.max_output_items, self.output_path)
