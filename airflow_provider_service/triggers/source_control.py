"""The trigger that waits for changes, or for none, in source control."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from airflow_provider_service._core.arguments import FAULT_TOLERANCE_SECONDS
from airflow_provider_service._core.instances.source_control import SourceControlCheck
from airflow_provider_service.triggers._polling import PollingTrigger

__all__ = ["ServiceSourceControlTrigger"]


class ServiceSourceControlTrigger(PollingTrigger):
    """Fires once, when source control is in the desired state, when it cannot be read, or when the deadline has passed.

    The event is ``{"verdict", "message", "result", "final"}``. The verdict is ``"met"``, ``"timed_out"`` or
    ``"unreadable"``; ``result`` holds the changes as the task returns them, and ``final`` says whether a retry is
    pointless.

    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``.
    :param deadline: Unix time, in seconds, at which the wait ends; it stays the same if the triggerer restarts.
    :param timeout: seconds, or a timedelta, from the beginning of the wait to the deadline, for messages.
    :param direction: ``"pull"`` for what the branch has, ``"push"`` for what the instance has.
    :param state: ``"changed"`` to wait until there are changes, ``"unchanged"`` until there are none.
    :param types: types of the objects that count; None for all.
    :param poll_interval: seconds, or a timedelta, between two polls; 60 seconds by default.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing; 300 seconds by default.
    :raises ServiceInputError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        service_conn_id: str,
        deadline: float,
        timeout: float | timedelta,
        direction: str = "pull",
        state: str = "changed",
        types: Sequence[str] | None = None,
        poll_interval: float | timedelta = 60.0,
        fault_tolerance: float | timedelta = FAULT_TOLERANCE_SECONDS,
    ) -> None:
        super().__init__(
            service_conn_id=service_conn_id,
            deadline=deadline,
            timeout=timeout,
            poll_interval=poll_interval,
            fault_tolerance=fault_tolerance,
        )
        self.check = SourceControlCheck.of_values(direction=direction, state=state, types=types)
