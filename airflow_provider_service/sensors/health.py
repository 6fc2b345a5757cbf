"""The sensor that waits until workflows are healthy."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, BaseSensorOperator, conf

from airflow_provider_service.arguments import (
    SECONDS_OR_ZERO,
    CheckedArguments,
    optional,
    read_seconds,
    require,
    require_flag,
)
from airflow_provider_service.failing import failing_at_once
from airflow_provider_service.health.check import CHECKS, DAY, LOOK_SECONDS, NAMES, HealthCheck
from airflow_provider_service.health.look import HealthOutcome, HealthWatch
from airflow_provider_service.links import ServicePageLink
from airflow_provider_service.task_arguments import FAULT_TOLERANCE_SECONDS, as_rendered
from airflow_provider_service.waits.clock import clock

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, PokeReturnValue
    from typing_extensions import Unpack

    from airflow_provider_service.task_arguments import Duration, SensorArguments, Templated

# A wait in the worker that has less time left is over: more than passes between a look and Airflow's own check.
LAST_SECONDS = 0.1


class _Ended(AirflowSkipException):
    """Carries an outcome through Airflow's sensor, which lets only such exceptions pass regardless of ``soft_fail``."""

    def __init__(self, outcome: HealthOutcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class ServiceWorkflowHealthSensor(CheckedArguments, BaseSensorOperator):
    """Wait until no workflow breaches a threshold. It only reads, and is safe to repeat.

    Figures, thresholds and the choice of workflows are those of ``ServiceWorkflowHealthCheckOperator``; at least one
    threshold is needed, and those that are None, the default of each, are not checked.

    Arguments of Airflow's own sensor apply as well. The task fails if a threshold is still breached after ``timeout``
    (seconds, or a timedelta; Airflow's ``[sensors] default_timeout`` by default), which also limits a deferred wait.
    ``mode`` is ``"poke"`` (the default) or ``"reschedule"``, and is ignored if ``deferrable`` is True. With
    ``soft_fail``, the task is skipped instead.

    :param workflow_id: id of the workflow; give a workflow, a tag, a project, or ``all_workflows=True``.
    :param workflow_name: exact name of the workflow, instead of its id; archived ones do not count.
    :param tag_id: id of a tag; all workflows that have it are checked, even if they are inactive and did not run.
    :param tag_name: exact name of the tag, instead of its id.
    :param project_id: id of a project; its active workflows are checked, and those that ran within the window. With
        ``workflow_name`` or a tag, the project in which to look.
    :param project_name: exact name of the project, instead of its id.
    :param all_workflows: True to check the active workflows of every project, and those that ran within the window;
        False by default.
    :param window: seconds, or a timedelta, before each check; 24 hours by default.
    :param max_failure_rate: highest share of the runs that may have failed, from 0 to 1.
    :param max_age_of_success: seconds, or a timedelta, since the end of the last success, at most ``window``; a
        workflow without a success in the window breaches it.
    :param min_runs: lowest number of runs that succeeded or failed.
    :param max_duration_median: highest median of the duration from start to end of a run, in seconds, or a timedelta.
    :param max_duration_p95: highest 95th percentile of that duration, in seconds, or a timedelta.
    :param fault_tolerance: seconds, or a timedelta, for which checks may keep failing before the task fails; 300
        seconds by default.
    :param deferrable: wait in the triggerer; the default is Airflow's ``[operators] default_deferrable``.
    :param poke_interval: seconds, or a timedelta, between two checks; 300 seconds by default.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: the same as ``ServiceWorkflowHealthCheckOperator``.
    """

    template_fields: Sequence[str] = ("service_conn_id", *NAMES)
    operator_extra_links = (ServicePageLink(),)
    ui_color = "#ede9fe"
    checks = {
        **CHECKS,
        "fault_tolerance": SECONDS_OR_ZERO,
        "deferrable": require_flag,
        "poke_interval": SECONDS_OR_ZERO,
        "timeout": optional(SECONDS_OR_ZERO),  # Airflow's own check allows values that clocks cannot represent
    }

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        tag_id: Templated[str | None] = None,
        tag_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        all_workflows: bool = False,
        window: Duration = DAY,
        max_failure_rate: float | None = None,
        max_age_of_success: Duration | None = None,
        min_runs: int | None = None,
        max_duration_median: Duration | None = None,
        max_duration_p95: Duration | None = None,
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poke_interval: Duration = LOOK_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[SensorArguments],
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.tag_id = as_rendered(tag_id)
        self.tag_name = as_rendered(tag_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.all_workflows = all_workflows
        self.window = window
        self.max_failure_rate = max_failure_rate
        self.max_age_of_success = max_age_of_success
        self.min_runs = min_runs
        self.max_duration_median = max_duration_median
        self.max_duration_p95 = max_duration_p95
        self.fault_tolerance = fault_tolerance
        self.deferrable = deferrable
        self.service_conn_id = as_rendered(service_conn_id)
        self.check_arguments()

    def execute(self, context: Context) -> Any:
        """Wait in the chosen mode."""
        with failing_at_once():
            self.check_arguments(are_rendered=True)
            self._check = HealthCheck.of(self)
            require(self._check.thresholds, "give at least one threshold")
        tolerance = read_seconds("fault_tolerance", self.fault_tolerance, or_zero=True)
        self._watch = HealthWatch(self._check, self.timeout, tolerance)
        self._deadline = self._began(context) + self.timeout
        if self.deferrable:
            return self._look_and_defer(context)
        try:
            return super().execute(context)
        except _Ended as end:
            outcome = end.outcome
        return self._settle(context, outcome)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """End the task according to the event of the trigger, or as Airflow does if there is none."""
        if next_method == "execute_complete":
            # execute_complete decides whether to skip; the method of Airflow's sensor would replace the message.
            return BaseOperator.resume_execution(self, next_method, next_kwargs, context)
        return super().resume_execution(next_method, next_kwargs, context)

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once.

        :raises AirflowSkipException: the wait ended without success; ``execute`` decides what that means.
        """
        from airflow.providers.common.compat.sdk import PokeReturnValue

        outcome = self._look()
        while outcome is None and self._seconds_left > LAST_SECONDS:
            clock().pause(threading.Event(), self._watch.pause(self.poke_interval), self._deadline)
            outcome = self._look()
        if outcome is None or (outcome.verdict == "unhealthy" and self._seconds_left < LAST_SECONDS):
            # Airflow's own check of the limit has a different message, so it must not come first.
            outcome = self._watch.timed_out()
        if outcome.verdict in ("timed_out", "unreadable"):
            raise _Ended(outcome)
        is_done = outcome.verdict == "healthy"
        return PokeReturnValue(is_done=is_done, xcom_value=self._settle(context, outcome) if is_done else None)

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task according to the event of the trigger."""
        return self._settle(context, HealthOutcome.from_event(event))

    def _look_and_defer(self, context: Context) -> dict[str, Any]:
        from airflow_provider_service.triggers.health import ServiceWorkflowHealthTrigger

        outcome = self._look()
        if outcome and outcome.verdict != "unhealthy":
            return self._settle(context, outcome)
        self.defer(
            trigger=ServiceWorkflowHealthTrigger(
                service_conn_id=self.service_conn_id,
                deadline=self._deadline,
                timeout=self.timeout,
                poll_interval=self.poke_interval,
                fault_tolerance=self.fault_tolerance,
                **self._check.to_arguments(),
            ),
            method_name="execute_complete",
        )
        raise AssertionError("defer always raises")

    def _look(self) -> HealthOutcome | None:
        from airflow_provider_service.health.look import unreadable
        from airflow_provider_service.hooks.service import ServiceHook

        try:
            config = ServiceHook(self.service_conn_id).config
        except Exception as error:
            self.log.exception("Connection '%s' cannot be used", self.service_conn_id)
            return unreadable(error)
        outcome = self._watch.look(config)
        if outcome and outcome.verdict == "unhealthy":
            self.log.info("Still waiting: %s", outcome.message)
        return outcome

    def _began(self, context: Context) -> float:
        first = getattr(context["ti"], "get_first_reschedule_date", None) if self.reschedule else None
        moment = first(context) if first else None
        return moment.timestamp() if moment else clock().now()

    @property
    def _seconds_left(self) -> float:
        return max(self._deadline - clock().now(), 0.0)

    def _settle(self, context: Context, outcome: HealthOutcome) -> dict[str, Any]:
        if outcome.health:
            ServicePageLink().push(context, outcome.health["url"])
        return outcome.settle(soft_fail=self.soft_fail, never_fail=self.never_fail)
