"""Choose the way to start a workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.runs.ways.bridge import BridgeWay
from airflow_provider_service.runs.ways.mcp import McpWay
from airflow_provider_service.runs.ways.webhook import WebhookWay

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.runs.request import RunRequest
    from airflow_provider_service.runs.ways.way import Way

# "auto" takes the first that can: one for an endpoint of the API itself, once there is one, would be the first.
WAYS: tuple[type[Way], ...] = (WebhookWay, McpWay, BridgeWay)


def choose(request: RunRequest, client: ServiceClient) -> Way:
    """Choose the way that is asked for or, with ``auto``, the first that can start the workflow.

    :raises ServiceInputError: none can, for reasons that the message lists; nothing was started.
    """
    obstacles = []
    general = request.obstacle()
    for way in _ways(request, client) if general is None else ():
        obstacle = way.obstacle()
        if obstacle is None:
            return way
        obstacles.append(f"{way.name}: {obstacle}")
    why = general or "; ".join(obstacles)
    raise ServiceInputError(f"{request.about} cannot be started. {why}. Nothing was started")


def ways_taken(request: RunRequest, client: ServiceClient) -> list[Way]:
    """The ways that earlier attempts may have taken."""
    return [way for way in _ways(request, client) if way.may_have_been_taken()]


def _ways(request: RunRequest, client: ServiceClient) -> Iterator[Way]:
    return (kind(request, client) for kind in WAYS if request.start in ("auto", kind.name))
