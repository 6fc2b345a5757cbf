"""Write workflows: drafts first, so that no version that runs changes before the service has accepted all drafts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import plain_id
from airflow_provider_service.client._definitions import content
from airflow_provider_service.client.errors import ServiceConflictError, ServiceNotFoundError, ServiceNotOfferedError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow

#: The service takes a moment to unpublish a workflow, and refuses to delete it until then.
_DELETE_ATTEMPTS = 20
_DELETE_PAUSE_SECONDS = 0.25


class Writer:
    """Writes workflows.

    :param client: client or hook of the instance.
    """

    def __init__(self, client: Resources) -> None:
        self._client = client
        #: Whether the server separates drafts from the version that runs; an older one runs each change at once.
        self.keeps_drafts = True

    def create(self, desired: Mapping[str, Any], *, project_id: str | None, folder_id: str | None) -> Workflow:
        """Create an inactive workflow."""
        return self._client.workflows.create(**content(desired), project_id=project_id, parent_folder_id=folder_id)

    def write_draft(self, workflow_id: str, desired: Mapping[str, Any]) -> Workflow:
        """Write a draft; on a server without drafts, the change takes effect at once."""

        def write(publish_if_active: bool | None = None) -> Workflow:
            return self._client.workflows.update(
                workflow_id,
                **content(desired),
                description=desired.get("description"),
                publish_if_active=publish_if_active,
            )

        if self.keeps_drafts:
            try:
                return write(publish_if_active=False)
            except ServiceNotOfferedError:
                self.keeps_drafts = False
        return write()

    def delete(self, workflow_id: str) -> None:
        """Delete a workflow, whether it is active or not, unless it no longer exists."""
        try:
            is_active = self._client.workflows.get(workflow_id).active
        except ServiceNotFoundError:
            return
        if is_active:
            self._client.workflows.deactivate(workflow_id)
        for attempt in range(_DELETE_ATTEMPTS):
            try:
                self._client.workflows.delete(workflow_id)
            except ServiceNotFoundError:
                return
            except ServiceConflictError:
                if attempt == _DELETE_ATTEMPTS - 1:
                    raise
                clock().sleep(_DELETE_PAUSE_SECONDS)
            else:
                return


def with_ids(desired: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """Return a definition with the tokens in it replaced by the ids that they stand for.

    :raises ServiceInputError: an id is not plain, so it could change more than a value.
    """
    text = json.dumps(desired)
    for token, workflow_id in ids.items():
        text = text.replace(token, plain_id(workflow_id))
    done: dict[str, Any] = json.loads(text)
    return done
