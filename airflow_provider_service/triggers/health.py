"""The trigger that waits until workflows are healthy."""

from __future__ import annotations

from datetime import timedelta

from airflow_provider_service._core.arguments import FAULT_TOLERANCE_SECONDS
from airflow_provider_service._core.health.check import DAY, HEALTH_POLL_SECONDS, HealthCheck
from airflow_provider_service._core.health.reading import HealthPoll
from airflow_provider_service.triggers._polling import PollingTrigger

__all__ = ["ServiceWorkflowHealthTrigger"]


class ServiceWorkflowHealthTrigger(PollingTrigger):
    """Fires once, when no threshold is breached, when the statistics cannot be read, or when the deadline has passed.

    The event is ``{"verdict", "message", "result", "final"}``. The verdict is ``"met"``, ``"timed_out"`` or
    ``"unreadable"``; ``result`` holds the statistics as the task returns them, and ``final`` says whether a retry is
    pointless. The choice of workflows and the thresholds are those of ``ServiceWorkflowHealthSensor``; a threshold of
    None, the default, is not checked.

    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``.
    :param deadline: Unix time, in seconds, at which the wait ends; it stays the same if the triggerer restarts.
    :param timeout: seconds, or a timedelta, from the beginning of the wait to the deadline, for messages.
    :param poll_interval: seconds, or a timedelta, between two checks; 300 seconds by default.
    :param fault_tolerance: seconds, or a timedelta, for which checks may keep failing; 300 seconds by default.
    :param workflow_id: id of the workflow; give a workflow, a tag, a project, or ``all_workflows=True``.
    :param workflow_name: exact name of the workflow, instead of its id.
    :param tag_id: id of a tag.
    :param tag_name: exact name of the tag, instead of its id.
    :param project_id: id of a project.
    :param project_name: exact name of the project, instead of its id.
    :param all_workflows: True for the workflows of every project; False by default.
    :param window: seconds, or a timedelta, before now; 24 hours by default.
    :param max_failure_rate: highest share of the runs that may have failed, from 0 to 1.
    :param max_age_of_success: seconds, or a timedelta, since the end of the last success.
    :param min_runs: lowest number of runs that succeeded or failed.
    :param max_duration_median: highest median of the duration, in seconds, or a timedelta.
    :param max_duration_p95: highest 95th percentile of the duration, in seconds, or a timedelta.
    :raises ServiceInputError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        service_conn_id: str,
        deadline: float,
        timeout: float | timedelta,
        poll_interval: float | timedelta = HEALTH_POLL_SECONDS,
        fault_tolerance: float | timedelta = FAULT_TOLERANCE_SECONDS,
        workflow_id: str | None = None,
        workflow_name: str | None = None,
        tag_id: str | None = None,
        tag_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        all_workflows: bool = False,
        window: float | timedelta = DAY,
        max_failure_rate: float | None = None,
        max_age_of_success: float | timedelta | None = None,
        min_runs: int | None = None,
        max_duration_median: float | timedelta | None = None,
        max_duration_p95: float | timedelta | None = None,
    ) -> None:
        super().__init__(
            service_conn_id=service_conn_id,
            deadline=deadline,
            timeout=timeout,
            poll_interval=poll_interval,
            fault_tolerance=fault_tolerance,
        )
        check = HealthCheck.of_values(
            workflow_id=workflow_id,
            workflow_name=workflow_name,
            tag_id=tag_id,
            tag_name=tag_name,
            project_id=project_id,
            project_name=project_name,
            all_workflows=all_workflows,
            window=window,
            max_failure_rate=max_failure_rate,
            max_age_of_success=max_age_of_success,
            min_runs=min_runs,
            max_duration_median=max_duration_median,
            max_duration_p95=max_duration_p95,
        )
        self.check = HealthPoll(check)
