"""Choose the way to start a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_service.runs.ways.bridge import BridgeWay
from airflow_provider_service.runs.ways.mcp import McpWay
from airflow_provider_service.runs.ways.webhook import WebhookWay

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.runs.request import RunRequest
    from airflow_provider_service.runs.ways.way import Way

# "auto" takes the first that can: one for an endpoint of the API itself, once there is one, would be the first.
WAYS: tuple[type[Way], ...] = (WebhookWay, McpWay, BridgeWay)


def choose(request: RunRequest, client: ServiceClient) -> tuple[Way, str | None]:
    """The way that was asked for or, with ``auto``, the first that can start the workflow.

    :returns: the way, and what keeps it, and with ``auto`` each of the others, from starting the workflow.
    """
    ways = [kind(request, client) for kind in WAYS if request.start in ("auto", kind.name)]
    obstacles = []
    for way in ways:
        obstacle = way.obstacle()
        if obstacle is None:
            return way, None
        obstacles.append(f"{way.name}: {obstacle}")
    return ways[0], "; ".join(obstacles)
