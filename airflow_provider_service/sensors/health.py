"""The sensor that waits until workflows are healthy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.settings import DEFAULT_DEFERRABLE
from airflow_provider_service._core.arguments import FAULT_TOLERANCE_SECONDS, as_rendered, require
from airflow_provider_service._core.health.check import CHECKS, DAY, HEALTH_POLL_SECONDS, NAMES, HealthCheck
from airflow_provider_service.sensors._base import PollingSensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Duration, SensorArguments, Templated, TemplatedDuration
    from airflow_provider_service._core.health.reading import HealthPoll

__all__ = ["ServiceWorkflowHealthSensor"]


class ServiceWorkflowHealthSensor(PollingSensor):
    """Wait until no workflow breaches a threshold. Safe to repeat: it only reads.

    Statistics, thresholds and the choice of workflows work as in ``ServiceWorkflowHealthCheckOperator``. Give at least
    one threshold; a threshold of None, the default, is not checked.

    Arguments of Airflow's own sensor apply as well. The task fails if a threshold is still breached after ``timeout``
    (seconds, or a timedelta; Airflow's ``[sensors] default_timeout`` by default), which also limits a deferred wait.
    ``mode`` is ``"poke"`` (the default) or ``"reschedule"``, and is ignored if ``deferrable`` is True. With
    ``soft_fail``, the task is skipped instead.

    :param workflow_id: id of the workflow; give a workflow, a tag, a project, or ``all_workflows=True``.
    :param workflow_name: exact name of the workflow, instead of its id; archived ones do not count.
    :param tag_id: id of a tag; all workflows that have it are checked, even if they are inactive and did not run.
    :param tag_name: exact name of the tag, instead of its id.
    :param project_id: id of a project; its active workflows are checked, and those that ran within the window. With
        ``workflow_name`` or a tag, the project to which the search is limited.
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
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: the same as ``ServiceWorkflowHealthCheckOperator``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises AirflowSensorTimeout: the time was over before that.
    :raises ServiceWaitError: reads kept failing for longer than ``fault_tolerance``.
    """

    template_fields: Sequence[str] = (*PollingSensor.template_fields, *NAMES)
    checks = dict(CHECKS)

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
        deferrable: bool = DEFAULT_DEFERRABLE,
        poke_interval: TemplatedDuration = HEALTH_POLL_SECONDS,
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
        self.check_arguments()

    def to_check(self) -> HealthPoll:
        """Return the check that the arguments describe."""
        from airflow_provider_service._core.health.reading import HealthPoll

        check = HealthCheck.of(self)
        require(check.judges, "give at least one threshold")
        return HealthPoll(check)

    def to_trigger(self, **arguments: Any) -> Any:
        """Return the trigger that continues to poll."""
        from airflow_provider_service.triggers.health import ServiceWorkflowHealthTrigger

        return ServiceWorkflowHealthTrigger(**arguments)
