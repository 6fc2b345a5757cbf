"""The base of all polling sensors: their modes, their deadline, and the faults that they tolerate."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import read_seconds, require_context
from airflow_provider_service._airflow.attempts import failure_reported
from airflow_provider_service._airflow.fail_without_retry import fail_without_retry
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import ServicePageLink
from airflow_provider_service.sensors._base import LAST_SECONDS, Ended, ServiceBaseSensor

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context, PokeReturnValue

    from airflow_provider_service._core.waits.conditions import Check, PollOutcome


class PollingSensor(ServiceBaseSensor):
    """Base of the polling sensors."""

    operator_extra_links = (ServicePageLink(),)

    @abstractmethod
    def to_check(self) -> Check:
        """Return the condition to poll.

        :raises ServiceInputError: the arguments do not describe one.
        """

    @abstractmethod
    def to_trigger(self, **arguments: Any) -> Any:
        """Return the trigger that continues to poll."""

    def _execute(self, context: Context) -> Any:
        from airflow_provider_service._core.waits.conditions import PollWatch

        with fail_without_retry():
            require_context(context, ("ti",))
            self.pushed_links = {}
            self.check_arguments(are_rendered=True)
            self._check = self.to_check()
        tolerance = read_seconds("fault_tolerance", self.fault_tolerance, or_zero=True)
        self._watch = PollWatch(self._check, self.timeout, tolerance)
        self._deadline = self.began(context) + self.timeout
        if self.deferrable:
            return self._poll_and_defer(context)
        try:
            return self._poke_until_done(context)
        except Ended as end:
            outcome = end.outcome
        return self._settle(context, outcome)

    def poke(self, context: Context) -> PokeReturnValue:
        """Poll once.

        :raises AirflowSkipException: the wait ended without success; ``execute`` decides what that means.
        """
        from airflow.providers.common.compat.sdk import PokeReturnValue

        outcome = self._poll()
        while outcome is None and self._seconds_left > LAST_SECONDS:
            clock().sleep(self._watch.pause(self.poll_interval), self._deadline)
            outcome = self._poll()
        if outcome is None or (outcome.verdict == "unmet" and self._seconds_left < LAST_SECONDS):
            # Airflow's own check of the timeout has a different message, so it must not come first.
            outcome = self._watch.timed_out()
        if outcome.verdict in ("timed_out", "unreadable"):
            raise Ended(outcome)
        is_done = outcome.verdict == "met"
        return PokeReturnValue(is_done=is_done, xcom_value=self._settle(context, outcome) if is_done else None)

    def execute_complete(self, context: Context, event: Any) -> dict[str, Any]:
        """End the task according to the event of the trigger."""
        from airflow_provider_service._core.waits.conditions import PollOutcome

        with failure_reported(context):
            return self._settle(context, PollOutcome.from_event(event))

    def _poll_and_defer(self, context: Context) -> dict[str, Any]:
        outcome = self._poll()
        if outcome and outcome.verdict != "unmet":
            return self._settle(context, outcome)
        self.defer(
            trigger=self.to_trigger(
                service_conn_id=self.service_conn_id,
                deadline=self._deadline,
                timeout=self.timeout,
                poll_interval=self.poll_interval,
                fault_tolerance=self.fault_tolerance,
                **self._check.to_arguments(),
            ),
            method_name="execute_complete",
        )
        raise AssertionError("defer always raises")

    def _poll(self) -> PollOutcome | None:
        from airflow_provider_service._core.waits.conditions import unreadable
        from airflow_provider_service.hooks.service import ServiceHook

        try:
            config = ServiceHook(self.service_conn_id).config
        except Exception as error:
            self.log.exception("Connection '%s' cannot be used", self.service_conn_id)
            return unreadable(self._check.subject, error)
        outcome = self._watch.poll(config, self._seconds_left)
        if outcome and outcome.verdict == "unmet":
            self.log.info("Still waiting: %s", outcome.message)
        return outcome

    @property
    def _seconds_left(self) -> float:
        return max(self._deadline - clock().now(), 0.0)

    def _settle(self, context: Context, outcome: PollOutcome) -> dict[str, Any]:
        if outcome.result:
            ServicePageLink().push(context, outcome.result["url"])
        return outcome.settle(soft_fail=self.soft_fail, never_fail=self.never_fail)
