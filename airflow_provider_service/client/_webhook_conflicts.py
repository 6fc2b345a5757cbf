"""Find the active workflow that holds a webhook which another one needs. The service's refusal does not name it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._definitions import running
from airflow_provider_service.client.errors import ServiceConflictError, ServiceError, ServiceWebhookTakenError
from airflow_provider_service.client.resources._webhooks import addresses_of

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources


@contextmanager
def naming_the_holder(
    client: Resources, workflow_id: str, *, nodes: Sequence[dict[str, Any]] | None = None, version_id: str | None = None
) -> Iterator[None]:
    """Complete the error about a webhook that is taken; ``nodes`` are by default those of the version, or the draft."""
    try:
        yield
    except ServiceConflictError as error:
        raise with_holder(error, client, workflow_id, nodes=nodes, version_id=version_id) from error


def with_holder(
    error: ServiceConflictError,
    client: Resources,
    workflow_id: str,
    *,
    nodes: Sequence[dict[str, Any]] | None = None,
    version_id: str | None = None,
) -> ServiceConflictError:
    if "webhook" not in (error.server_message or ""):
        return error
    try:
        if nodes is None:
            read = client.workflows
            existing = read.get(workflow_id) if version_id is None else read.get_version(workflow_id, version_id)
            nodes = existing.nodes
        wanted = addresses_of(nodes or ())
        holders = [
            (address, workflow)
            for workflow in client.workflows.list(active=True, exclude_pinned_data=True)
            if workflow.id != workflow_id
            for address in sorted(wanted & addresses_of(running(workflow)["nodes"] or ()))
        ]
    except ServiceError:
        return error
    if not holders:
        paths = ", ".join(f"{method} {path!r}" for method, path in sorted(wanted)) or "not known"
        return error.with_hint(
            f"Its webhooks are {paths}; the key sees no active workflow that has one of them. The workflow that holds "
            "it may belong to another user, or have just been deactivated"
        )
    taken = "; ".join(f"{method} {path!r} by {workflow.name!r} ({workflow.id})" for (method, path), workflow in holders)
    return ServiceWebhookTakenError(
        f"an active workflow holds a webhook of workflow {workflow_id}: {taken}",
        method=error.method,
        path=error.path,
        status=error.status,
        server_message=error.server_message,
        hint="Deactivate that workflow, or give the webhook another path",
    )
