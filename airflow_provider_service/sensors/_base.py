"""The bases of all sensors: common arguments, the end of a wait inside Airflow's own sensor, and conditions to poll."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, BaseSensorOperator

from airflow_provider_service._airflow.attempts import fail_without_retry, failure_reported
from airflow_provider_service._core.arguments import (
    LEAST_POLL_SECONDS,
    SECONDS_OR_ZERO,
    CheckedArguments,
    as_rendered,
    optional,
    read_seconds,
    require_context,
)
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import ServiceLink, ServicePageLink

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, PokeReturnValue
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import (
        Duration,
        Templated,
        TemplatedDuration,
        UntimedSensorArguments,
    )
    from airflow_provider_service._core.waits.conditions import Check, PollOutcome


#: A wait in the worker is over if less time is left: more than passes between a poll and Airflow's own check.
LAST_SECONDS = 0.1


class Ended(AirflowSkipException):
    """Carries an outcome through Airflow's sensor, which lets only such exceptions pass regardless of ``soft_fail``."""

    def __init__(self, outcome: Any) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class ServiceBaseSensor(CheckedArguments, BaseSensorOperator):
    """Base of all sensors."""

    template_fields: Sequence[str] = ("service_conn_id", "poke_interval", "timeout")
    #: The addresses that this process has pushed, by XCom key; None if it has not begun the task.
    pushed_links: dict[str, str] | None = None
    ui_color = "#ede9fe"
    checks = {
        "fault_tolerance": SECONDS_OR_ZERO,
        "poke_interval": SECONDS_OR_ZERO,
        "timeout": optional(SECONDS_OR_ZERO),  # Airflow's own check accepts values that clocks cannot represent
    }

    def __init__(
        self,
        *,
        fault_tolerance: Duration,
        deferrable: bool,
        poke_interval: TemplatedDuration,
        timeout: TemplatedDuration | None = None,
        service_conn_id: Templated[str],
        **kwargs: Unpack[UntimedSensorArguments],
    ) -> None:
        given = {"poke_interval": poke_interval, **({} if timeout is None else {"timeout": timeout})}
        # Airflow's own sensor takes neither text nor templates; zero keeps it from taking those of default_args.
        others = {name: value for name, value in given.items() if not isinstance(value, (int, float, timedelta))}
        super().__init__(**{**given, **dict.fromkeys(others, 0)}, **kwargs)  # type: ignore[arg-type]
        for name, value in others.items():
            setattr(self, name, value)
        self.fault_tolerance = fault_tolerance
        self.deferrable = deferrable
        self.service_conn_id = as_rendered(service_conn_id)

    def execute(self, context: Context) -> Any:
        """Wait in the chosen mode."""
        with failure_reported(context):
            return self._execute(context)

    @abstractmethod
    def _execute(self, context: Context) -> Any:
        """Check the rendered arguments, and wait."""

    @abstractmethod
    def _settle(self, context: Context, outcome: Any) -> dict[str, Any]:
        """End the task according to the outcome of the wait."""

    def _execute_in_worker(self, context: Context) -> Any:
        """Wait as Airflow's own sensor does."""
        self.poke_interval, self.timeout = self._seconds("poke_interval"), self.timeout_seconds
        try:
            return super().execute(context)
        except Ended as end:
            outcome = end.outcome
        return self._settle(context, outcome)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """End the task according to the event of the trigger, or as Airflow does without an event."""
        if next_method == "execute_complete":
            # execute_complete decides whether to skip; the method of Airflow's sensor would replace the message.
            return BaseOperator.resume_execution(self, next_method, next_kwargs, context)
        return super().resume_execution(next_method, next_kwargs, context)

    @property
    def poll_interval(self) -> float:
        return max(self._seconds("poke_interval"), LEAST_POLL_SECONDS)

    @property
    def timeout_seconds(self) -> float:
        return self._seconds("timeout")

    def _seconds(self, name: str) -> float:
        return read_seconds(name, getattr(self, name), or_zero=True)

    def began(self, context: Context) -> float:
        """Return when the wait began, in seconds since the epoch: if it is rescheduled, before the first pause."""
        first = getattr(context["ti"], "get_first_reschedule_date", None) if self.reschedule else None
        moment = first(context) if first else None
        return moment.timestamp() if moment else clock().now()


class PollingSensor(ServiceBaseSensor):
    """Base of the polling sensors."""

    operator_extra_links: Sequence[ServiceLink] = (ServicePageLink(),)
    #: Whether the task polls once more after the trigger's event, which Airflow logs and stores, for what it returns.
    polls_again: ClassVar[bool] = False

    @abstractmethod
    def to_check(self) -> Check:
        """Return the condition to poll."""

    @abstractmethod
    def to_trigger(self, **arguments: Any) -> Any:
        """Return the trigger that continues to poll."""

    def _execute(self, context: Context) -> Any:
        self._begin(context)
        return self._poll_and_defer(context) if self.deferrable else self._execute_in_worker(context)

    def _begin(self, context: Context, deadline: float | None = None) -> None:
        from airflow_provider_service._core.waits.conditions import PollWatch

        with fail_without_retry():
            require_context(context, ("ti",))
            self.pushed_links = {}
            self.check_arguments(are_rendered=True)
            self._check = self.to_check()
        self._watch = PollWatch(self._check, self.timeout_seconds, self._seconds("fault_tolerance"))
        self._deadline = self.began(context) + self.timeout_seconds if deadline is None else deadline

    def poke(self, context: Context) -> PokeReturnValue:
        """Poll once."""
        from airflow.providers.common.compat.sdk import PokeReturnValue

        outcome = self._poll(context)
        while outcome is None and self._seconds_left > LAST_SECONDS:
            clock().sleep(self._watch.pause(self.poll_interval), self._deadline)
            outcome = self._poll(context)
        if outcome is None or (outcome.verdict == "unmet" and self._seconds_left < LAST_SECONDS):
            # Airflow's own check of the timeout has a different message, so it must not come first.
            outcome = self._watch.timed_out()
        if outcome.verdict in ("timed_out", "unreadable"):
            raise Ended(outcome)
        is_done = outcome.verdict == "met"
        return PokeReturnValue(is_done=is_done, xcom_value=self._settle(context, outcome) if is_done else None)

    def execute_complete(self, context: Context, event: Any, deadline: float | None = None) -> dict[str, Any]:
        """End the task according to the event of the trigger, or wait on if the condition is no longer met."""
        from airflow_provider_service._core.waits.conditions import PollOutcome

        with failure_reported(context):
            outcome = PollOutcome.from_event(event)
            if self.polls_again and outcome.verdict == "met":
                self._begin(context, deadline)
                return self._poll_and_defer(context)
            self._link(context, outcome)
            return self._settle(context, outcome)

    def _poll_and_defer(self, context: Context) -> dict[str, Any]:
        outcome = self._poll(context)
        if outcome and outcome.verdict != "unmet":
            return self._settle(context, outcome)
        self.defer(
            trigger=self.to_trigger(
                service_conn_id=self.service_conn_id,
                deadline=self._deadline,
                timeout=self.timeout_seconds,
                poll_interval=self.poll_interval,
                fault_tolerance=self.fault_tolerance,
                **self._check.to_arguments(),
            ),
            method_name="execute_complete",
            kwargs={"deadline": self._deadline} if self.polls_again else None,
        )
        raise AssertionError("defer always raises")

    def _poll(self, context: Context) -> PollOutcome | None:
        from airflow_provider_service._core.waits.conditions import unreadable
        from airflow_provider_service.hooks.service import ServiceHook

        try:
            config = ServiceHook(self.service_conn_id).config
        except Exception as error:
            self.log.exception("Connection '%s' cannot be used", self.service_conn_id)
            return unreadable(self._check.subject, error)
        outcome = self._watch.poll(config, self._seconds_left)
        if outcome:
            self._link(context, outcome)
            if outcome.verdict == "unmet":
                self.log.info("Still waiting: %s", outcome.message)
        return outcome

    def _link(self, context: Context, outcome: PollOutcome) -> None:
        if outcome.result:
            self.operator_extra_links[0].push(context, outcome.result["url"])

    @property
    def _seconds_left(self) -> float:
        return max(self._deadline - clock().now(), 0.0)

    def _settle(self, context: Context, outcome: PollOutcome) -> dict[str, Any]:
        return outcome.settle(soft_fail=self.soft_fail, never_fail=self.never_fail)
