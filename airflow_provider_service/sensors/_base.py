"""The base of all sensors: their common arguments, and the end of a wait inside Airflow's own sensor."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, BaseOperator, BaseSensorOperator

from airflow_provider_service._airflow.arguments import SECONDS_OR_ZERO, CheckedArguments, optional, require_flag
from airflow_provider_service._airflow.attempts import failure_reported
from airflow_provider_service._airflow.task_arguments import LEAST_POLL_SECONDS, as_rendered
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._airflow.task_arguments import Duration, SensorArguments, Templated

#: A wait in the worker is over if less time is left: more than passes between a poll and Airflow's own check.
LAST_SECONDS = 0.1


class Ended(AirflowSkipException):
    """Carries an outcome through Airflow's sensor, which lets only such exceptions pass regardless of ``soft_fail``.

    :param outcome: how the wait ended; it has a ``message``.
    """

    def __init__(self, outcome: Any) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class ServiceBaseSensor(CheckedArguments, BaseSensorOperator):
    """Base of all sensors."""

    template_fields: Sequence[str] = ("service_conn_id",)
    #: The addresses that this process has pushed, by XCom key; None if it has not begun the task.
    pushed_links: dict[str, str] | None = None
    ui_color = "#ede9fe"
    checks = {
        "fault_tolerance": SECONDS_OR_ZERO,
        "deferrable": require_flag,
        "poke_interval": SECONDS_OR_ZERO,
        "timeout": optional(SECONDS_OR_ZERO),  # Airflow's own check accepts values that clocks cannot represent
    }

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

    def execute(self, context: Context) -> Any:
        """Wait in the chosen mode."""
        with failure_reported(context):
            return self._execute(context)

    @abstractmethod
    def _execute(self, context: Context) -> Any:
        """Check the rendered arguments, and wait."""

    def _poke_until_done(self, context: Context) -> Any:
        """Wait as Airflow's own sensor does.

        :raises Ended: the wait ended in a way that ``poke`` cannot return.
        """
        return super().execute(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """End the task according to the event of the trigger, or as Airflow does without an event."""
        if next_method == "execute_complete":
            # execute_complete decides whether to skip; the method of Airflow's sensor would replace the message.
            return BaseOperator.resume_execution(self, next_method, next_kwargs, context)
        return super().resume_execution(next_method, next_kwargs, context)

    @property
    def poll_interval(self) -> float:
        """Seconds between two polls."""
        return max(self.poke_interval, LEAST_POLL_SECONDS)

    def began(self, context: Context) -> float:
        """Return when the wait began, in seconds since the epoch: if it is rescheduled, before the first pause."""
        first = getattr(context["ti"], "get_first_reschedule_date", None) if self.reschedule else None
        moment = first(context) if first else None
        return moment.timestamp() if moment else clock().now()
