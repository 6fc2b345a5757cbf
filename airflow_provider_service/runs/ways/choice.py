"""Choose the way to start a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_service.runs.search import EarlierRuns
from airflow_provider_service.runs.ways.bridge import BridgeWay
from airflow_provider_service.runs.ways.mcp import McpWay
from airflow_provider_service.runs.ways.webhook import WebhookWay

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.runs.once import RunOnce
    from airflow_provider_service.runs.request import RunRequest
    from airflow_provider_service.runs.ways.way import Way

# "auto" takes the first that can: one for an endpoint of the API itself, once there is one, would be the first.
WAYS: tuple[type[Way], ...] = (WebhookWay, McpWay, BridgeWay)


class Choice(NamedTuple):
    """The way that a request takes.

    :param way: the one that was asked for or, with ``auto``, the first that can start the workflow.
    :param obstacle: what keeps it, and with ``auto`` each of the others, from starting the workflow.
    :param taken: the ways that earlier attempts may have taken.
    """

    way: Way
    obstacle: str | None
    taken: list[Way]

    def earlier(self, once: RunOnce) -> EarlierRuns:
        """Find the executions that earlier attempts have started, in whichever way."""
        return EarlierRuns.joined(way.earlier(once) for way in self.taken)

    def keeps_executions(self) -> bool:
        """Whether what was not found does not exist."""
        return all(way.keeps_executions() for way in self.taken)


def choose(request: RunRequest, client: ServiceClient) -> Choice:
    """Choose the way to start a workflow."""
    ways = [kind(request, client) for kind in WAYS if request.start in ("auto", kind.name)]
    taken = [way for way in ways if way.may_have_been_taken()]
    if (nothing := request.obstacle()) is not None:
        return Choice(ways[0], nothing, taken)
    obstacles = []
    for way in ways:
        obstacle = way.obstacle()
        if obstacle is None:
            return Choice(way, None, taken)
        obstacles.append(f"{way.name}: {obstacle}")
    return Choice(ways[0], "; ".join(obstacles), taken)
