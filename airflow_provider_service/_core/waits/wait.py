"""The settings of a wait, in a worker's loop, the arguments of a trigger, or a shared poller."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._airflow.task_arguments import OnVanished


# Two waits for the same execution are two waits, so none equals another. The slots are written down, and no field has
# a default, since those that dataclass makes forbid subclasses with fields that change.
@dataclass(frozen=True, eq=False)
class Wait:
    """A wait for one execution.

    :param execution_id: the execution.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``.
    :param deadline: date and time that ends the wait, in seconds since the epoch.
    :param timeout: seconds from the begin of the wait to the deadline, for the message.
    :param poll_interval: seconds between two polls.
    :param on_vanished: what it means that the execution cannot be found: it was deleted or pruned, its workflow does
        not save such executions, or it never existed.
    :param fault_tolerance: seconds that polls may fail in a row.
    """

    __slots__ = (
        "deadline",
        "execution_id",
        "fault_tolerance",
        "on_vanished",
        "poll_interval",
        "service_conn_id",
        "timeout",
    )

    execution_id: str
    service_conn_id: str
    deadline: float
    timeout: float
    poll_interval: float
    on_vanished: OnVanished
    fault_tolerance: float

    @classmethod
    def of(cls, holder: object) -> Wait:
        """The wait whose values are attributes of an object."""
        return Wait(**_values(holder))

    @property
    def seconds_left(self) -> float:
        """Seconds to the deadline; 0 when it has passed."""
        return max(self.deadline - clock().now(), 0.0)

    def to_arguments(self) -> dict[str, Any]:
        """The wait as a trigger's arguments, which Airflow stores."""
        return _values(self)


def _values(holder: object) -> dict[str, Any]:
    return {field.name: getattr(holder, field.name) for field in fields(Wait)}
