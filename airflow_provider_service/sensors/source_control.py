"""The sensor that waits for changes, or for none, in source control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.settings import DEFAULT_DEFERRABLE
from airflow_provider_service._core.arguments import FAULT_TOLERANCE_SECONDS, as_rendered
from airflow_provider_service._core.instances.source_control import SourceControlCheck
from airflow_provider_service.sensors._base import PollingSensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Duration, SensorArguments, Templated, TemplatedDuration

__all__ = ["ServiceSourceControlSensor"]

#: Default number of seconds between two polls, for each of which the service compares itself with the repository.
SOURCE_CONTROL_POLL_SECONDS = 60.0


class ServiceSourceControlSensor(PollingSensor):
    """Wait until there are changes to pull or to push, or until none are left. Safe to repeat: it only reads.

    A poll shows what ``preview=True`` of ``ServicePullSourceControlOperator`` and ``ServicePushSourceControlOperator``
    shows. The service offers no other status.

    Arguments of Airflow's own sensor apply as well. The task fails if the desired state is not reached after
    ``timeout`` (seconds, or a timedelta; Airflow's ``[sensors] default_timeout`` by default), which also limits a
    deferred wait. ``mode`` is ``"poke"`` (the default) or ``"reschedule"``, and is ignored if ``deferrable`` is True.
    With ``soft_fail``, the task is skipped instead.

    :param direction: ``"pull"`` (the default) for what the branch has, ``"push"`` for what the instance has.
    :param state: ``"changed"`` (the default) to wait until there are changes, ``"unchanged"`` until there are none.
    :param types: types of the objects that count: workflow, credential, tags, variables, file, folders, project or
        datatable; None, the default, for all of them.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param deferrable: wait in the triggerer; the default is Airflow's ``[operators] default_deferrable``.
    :param poke_interval: seconds, or a timedelta, between two polls; 60 seconds by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: ``{"count", "by_type", "by_status", "changes", "files", "url"}``, as the operators return them.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises AirflowSensorTimeout: the time was over before that.
    :raises ServiceWaitError: reads kept failing for longer than ``fault_tolerance``.
    """

    template_fields: Sequence[str] = (*PollingSensor.template_fields, "direction", "state", "types")

    def __init__(
        self,
        *,
        direction: Templated[str] = "pull",
        state: Templated[str] = "changed",
        types: Templated[Sequence[str] | None] = None,
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        deferrable: bool = DEFAULT_DEFERRABLE,
        poke_interval: TemplatedDuration = SOURCE_CONTROL_POLL_SECONDS,
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
        self.direction = as_rendered(direction)
        self.state = as_rendered(state)
        self.types = as_rendered(types)
        self.check_arguments()

    def to_check(self) -> SourceControlCheck:
        """Return the check that the arguments describe."""
        return SourceControlCheck.of_values(direction=self.direction, state=self.state, types=self.types)

    def to_trigger(self, **arguments: Any) -> Any:
        """Return the trigger that continues to poll."""
        from airflow_provider_service.triggers.source_control import ServiceSourceControlTrigger

        return ServiceSourceControlTrigger(**arguments)
