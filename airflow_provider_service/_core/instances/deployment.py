"""A deployment by a task or a command: make the plan, carry it out unless it is a preview, and return the result."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.instances.apply import apply_plan

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.plan import DeploymentPlan
    from airflow_provider_service._core.instances.planning import DeploymentTarget

log = logging.getLogger(__name__)

_HAPPENED = {
    "create": "created",
    "rename": "renamed",
    "update": "updated",
    "publish": "published",
    "activate": "activated",
    "deactivate": "deactivated",
    "archive": "archived",
}


def deployed(plan: DeploymentPlan, target: DeploymentTarget, *, preview: bool) -> dict[str, Any]:
    """Carry out a plan, all of it or nothing, unless this is a preview.

    :returns: ``{"outcome", "created", "renamed", "updated", "published", "activated", "deactivated", "archived",
        "unchanged", "workflow_ids"}``; the outcome is ``"deployed"``, ``"unchanged"`` or, for a preview, ``"planned"``.
    :raises ServiceDeploymentError: it failed; the message gives the reason, and names the objects that could not be
        rolled back.
    """
    if preview:
        return _result(plan, "planned", plan.known_ids)
    ids = apply_plan(plan, target)
    if plan.changed:
        log.info("Workflows deployed: %d", len(plan.changed))
    return _result(plan, "deployed" if plan.writes else "unchanged", ids)


def _result(plan: DeploymentPlan, outcome: str, ids: dict[str, str]) -> dict[str, Any]:
    happened = {_HAPPENED.get(action, action): names for action, names in plan.by_action().items()}
    return {"outcome": outcome, **happened, "workflow_ids": ids}
