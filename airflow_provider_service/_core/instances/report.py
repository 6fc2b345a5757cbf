"""The report on a plan: the changes of a deployment, workflow by workflow."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow_provider_service._core.instances.plan import UNCHANGED
from airflow_provider_service._core.reports.files import WRITTEN_FIRST
from airflow_provider_service._core.reports.report import Figure, Listing, Report, Table

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.plan import DeploymentPlan


def plan_report(plan: DeploymentPlan, *, made_at: datetime, url: str) -> Report:
    """Return the report on a plan.

    :param made_at: date and time at which the plan was made.
    :param url: page of the service to link to.
    """
    counts = {action: len(names) for action, names in plan.by_action().items()}
    changed = len(plan.changed)
    return Report(
        title="Plan of a deployment",
        message=f"Workflows to change: {changed} of {len(plan.every)}. {WRITTEN_FIRST}"
        if changed
        else "Nothing has to be changed.",
        made_at=made_at,
        url=url,
        figures=[Figure(action.capitalize(), count) for action, count in counts.items()],
        parts=[
            Table(
                "Workflows",
                ("Workflow", "What happens"),
                [(one.name, ", ".join(one.actions) or UNCHANGED) for one in plan.every],
                note="; ".join([f"Tags to create: {', '.join(plan.new_tags)}"] * bool(plan.new_tags) + plan.notes),
            ),
            *(Listing(str(one), "\n".join(one.diff)) for one in plan.changed if one.diff),
        ],
    )
