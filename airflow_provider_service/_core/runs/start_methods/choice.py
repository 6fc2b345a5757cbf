"""Choose how to start a workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_provider_service._core.runs.start_methods.bridge import BridgeStartMethod
from airflow_provider_service._core.runs.start_methods.mcp import McpStartMethod
from airflow_provider_service._core.runs.start_methods.webhook import WebhookStartMethod
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.request import RunRequest
    from airflow_provider_service._core.runs.start_methods.start_method import StartMethod
    from airflow_provider_service.client import ServiceClient

# "auto" takes the first that can: one for an endpoint of the API itself, once there is one, would be the first.
START_METHODS: tuple[type[StartMethod], ...] = (WebhookStartMethod, McpStartMethod, BridgeStartMethod)


def choose(request: RunRequest, client: ServiceClient) -> StartMethod:
    """Choose the start method that is asked for or, with ``auto``, the first that can start the workflow.

    :raises ServiceInputError: none can, for reasons that the message lists; nothing was started.
    """
    reasons = []
    general = request.reason_unavailable()
    for method in _methods(request, client) if general is None else ():
        reason = method.reason_unavailable()
        if reason is None:
            return method
        reasons.append(f"{method.name}: {reason}")
    why = general or "; ".join(reasons)
    raise ServiceInputError(f"{request.label} cannot be started. {why}. Nothing was started")


def methods_used(request: RunRequest, client: ServiceClient) -> list[StartMethod]:
    """The start methods that earlier attempts may have used."""
    return [method for method in _methods(request, client) if method.may_have_been_used()]


def _methods(request: RunRequest, client: ServiceClient) -> Iterator[StartMethod]:
    return (kind(request, client) for kind in START_METHODS if request.start in ("auto", kind.name))
