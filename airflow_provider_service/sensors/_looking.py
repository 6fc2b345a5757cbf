"""What all sensors share that look again and again: their modes, their deadline, and the faults that they tolerate."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, BaseSensorOperator

from airflow_provider_service.arguments import (
    SECONDS_OR_ZERO,
    CheckedArguments,
    optional,
    read_seconds,
    require_flag,
)
from airflow_provider_service.failing import failing_at_once
from airflow_provider_service.links import ServicePageLink
from airflow_provider_service.task_arguments import as_rendered
from airflow_provider_service.waits.clock import clock
from airflow_provider_service.waits.look import LookOutcome, LookWatch

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, PokeReturnValue
    from typing_extensions import Unpack

    from airflow_provider_service.task_arguments import Duration, SensorArguments, Templated
    from airflow_provider_service.waits.look import Check

# A wait in the worker that has less time left is over: more than passes between a look and Airflow's own check.
LAST_SECONDS = 0.1
#: Checks of the arguments that all of these sensors have.
LOOK_CHECKS = {
    "fault_tolerance": SECONDS_OR_ZERO,
    "deferrable": require_flag,
    "poke_interval": SECONDS_OR_ZERO,
    "timeout": optional(SECONDS_OR_ZERO),  # Airflow's own check allows values that clocks cannot represent
}


class _Ended(AirflowSkipException):
    """Carries an outcome through Airflow's sensor, which lets only such exceptions pass regardless of ``soft_fail``."""

    def __init__(self, outcome: LookOutcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class LookingSensor(CheckedArguments, BaseSensorOperator):
    """Base of the sensors that look again and again."""

    template_fields: Sequence[str] = ("service_conn_id",)
    operator_extra_links = (ServicePageLink(),)
    ui_color = "#ede9fe"

    def __init__(
        self,
        *,
        fault_tolerance: Duration,
        deferrable: bool,
        poke_interval: Duration,
        service_conn_id: Templated[str],
        **kwargs: Unpack[SensorArguments],
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.fault_tolerance = fault_tolerance
        self.deferrable = deferrable
        self.service_conn_id = as_rendered(service_conn_id)

    @abstractmethod
    def to_check(self) -> Check:
        """What to look at.

        :raises ServiceInputError: the arguments do not say.
        """

    @abstractmethod
    def to_trigger(self, **arguments: Any) -> Any:
        """The trigger that goes on looking."""

    def execute(self, context: Context) -> Any:
        """Wait in the chosen mode."""
        with failing_at_once():
            self.check_arguments(are_rendered=True)
            self._check = self.to_check()
        tolerance = read_seconds("fault_tolerance", self.fault_tolerance, or_zero=True)
        self._watch = LookWatch(self._check, self.timeout, tolerance)
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
        if outcome is None or (outcome.verdict == "unmet" and self._seconds_left < LAST_SECONDS):
            # Airflow's own check of the limit has a different message, so it must not come first.
            outcome = self._watch.timed_out()
        if outcome.verdict in ("timed_out", "unreadable"):
            raise _Ended(outcome)
        is_done = outcome.verdict == "met"
        return PokeReturnValue(is_done=is_done, xcom_value=self._settle(context, outcome) if is_done else None)

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task according to the event of the trigger."""
        return self._settle(context, LookOutcome.from_event(event))

    def _look_and_defer(self, context: Context) -> dict[str, Any]:
        outcome = self._look()
        if outcome and outcome.verdict != "unmet":
            return self._settle(context, outcome)
        self.defer(
            trigger=self.to_trigger(
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

    def _look(self) -> LookOutcome | None:
        from airflow_provider_service.hooks.service import ServiceHook
        from airflow_provider_service.waits.look import unreadable

        try:
            config = ServiceHook(self.service_conn_id).config
        except Exception as error:
            self.log.exception("Connection '%s' cannot be used", self.service_conn_id)
            return unreadable(self._check.subject, error)
        outcome = self._watch.look(config)
        if outcome and outcome.verdict == "unmet":
            self.log.info("Still waiting: %s", outcome.message)
        return outcome

    def _began(self, context: Context) -> float:
        first = getattr(context["ti"], "get_first_reschedule_date", None) if self.reschedule else None
        moment = first(context) if first else None
        return moment.timestamp() if moment else clock().now()

    @property
    def _seconds_left(self) -> float:
        return max(self._deadline - clock().now(), 0.0)

    def _settle(self, context: Context, outcome: LookOutcome) -> dict[str, Any]:
        if outcome.result:
            ServicePageLink().push(context, outcome.result["url"])
        return outcome.settle(soft_fail=self.soft_fail, never_fail=self.never_fail)
