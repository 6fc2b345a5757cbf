"""Find the bridge on the service, and install it: create it, or update it if this package's definition is newer."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from airflow_provider_service._core.runs.bridge.definition import (
    CREDENTIAL_TYPE,
    NAME,
    TAG,
    VERSION,
    Address,
    CredentialReference,
    address_of,
    credential_of,
    definition,
    version_of,
)
from airflow_provider_service.client._definitions import is_as_defined, runs_as_defined
from airflow_provider_service.client._lookup import create_tag
from airflow_provider_service.client.errors import (
    ServiceInputError,
    ServiceMissingScopeError,
    ServiceNotFoundError,
    ServiceNotOfferedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_service._core.runs.bridge.access import BridgeSecret
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow

log = logging.getLogger(__name__)

Outcome = Literal["created", "updated", "unchanged"]

#: Scopes that an installation requires.
SCOPES = (
    "credential:create",
    "tag:create",
    "tag:list",
    "workflow:activate",
    "workflow:create",
    "workflow:delete",
    "workflow:list",
    "workflow:read",
    "workflow:update",
    "workflowTags:update",
)
_LAST = datetime.max.replace(tzinfo=UTC)


class Installed(NamedTuple):
    """An installed bridge, and what was done to install it."""

    workflow: Workflow
    outcome: Outcome


def all_bridges(client: Resources, *, name: str = NAME) -> list[Workflow]:
    """Every bridge, by its tag or its name, archived ones included, the oldest first."""
    listed = [*client.workflows.list(tags=TAG), *client.workflows.list(name=name)]
    bridges = {one.id: one for one in listed if version_of(one) is not None}
    return sorted(bridges.values(), key=lambda one: (one.created_at or _LAST, one.id))


def find_bridge(bridges: Iterable[Workflow], secret: BridgeSecret, *, project_id: str | None = None) -> Workflow | None:
    """Find the bridge that accepts calls with a secret: the oldest that is not archived.

    :param bridges: as :func:`all_bridges` returns them.
    :param project_id: id of its project; None for any.
    """
    return next(iter(_usable(bridges, secret, project_id)), None)


class Installer:
    """Installs a bridge. Safe to repeat.

    :param client: client or hook of the service.
    :param secret: the secret that signs its calls.
    :param name: name of the workflow.
    :param project_id: project of the workflow and its credential; None for the personal project of the API key's user.
    """

    def __init__(
        self,
        client: Resources,
        secret: BridgeSecret,
        *,
        name: str = NAME,
        project_id: str | None = None,
    ) -> None:
        self._client, self._secret = client, secret
        self._name, self._project_id = name, project_id

    def install(self) -> Installed:
        """Create the bridge, update it, or leave it as it is. It is active afterwards.

        :raises ServiceInputError: the key lacks scopes; nothing was changed.
        """
        self._require_scopes()
        found = self._find()
        if found is None:
            return self._created()
        workflow = self._client.workflows.get(found.id)
        version = version_of(workflow) or 0
        if version > VERSION:
            log.warning(
                "Bridge %s has version %d, which is newer than %d, and is not changed", found.id, version, VERSION
            )
            return self._in_place(workflow, "unchanged")
        wanted = definition(workflow.name, address_of(workflow) or Address.new(), self._reference(workflow))
        is_same = runs_as_defined if workflow.active else is_as_defined
        if is_same(workflow, wanted):
            return self._in_place(workflow, "unchanged")
        self._client.workflows.update(workflow.id, **wanted)
        return self._in_place(self._client.workflows.get(workflow.id), "updated")

    def _created(self) -> Installed:
        wanted = definition(self._name, Address.new(), self._new_credential())
        workflow = self._client.workflows.create(**wanted, project_id=self._project_id)
        # If two installations run at once, the later one sees the other's workflow here, and deletes its own.
        first = self._find()
        if first is not None and first.id != workflow.id:
            log.info("Bridge %s was installed at the same time; %s is removed", first.id, workflow.id)
            self._client.workflows.delete(workflow.id)
            return self._in_place(self._client.workflows.get(first.id), "unchanged")
        return self._in_place(workflow, "created")

    def _in_place(self, workflow: Workflow, outcome: Outcome) -> Installed:
        """Complete what an interrupted installation has left out: tag and activate the bridge."""
        if TAG not in [tag.name for tag in workflow.tags or ()]:
            tag, _ = create_tag(self._client, TAG)
            others = [one.id for one in workflow.tags or ()]
            self._client.workflows.update_tags(workflow.id, [*others, tag.id])
        if workflow.active:
            return Installed(workflow, outcome)
        activated = self._client.workflows.activate(workflow.id)
        return Installed(activated, "updated" if outcome == "unchanged" else outcome)

    def _find(self) -> Workflow | None:
        bridges = all_bridges(self._client, name=self._name)
        usable = _usable(bridges, self._secret, self._project_id)
        if len(usable) > 1:
            ids = ", ".join(one.id for one in usable[1:])
            log.warning("Bridge %s is used; there are further ones, which can be archived: %s", usable[0].id, ids)
        return usable[0] if usable else None

    def _reference(self, workflow: Workflow) -> CredentialReference:
        """Return the credential of a bridge, or create a new one if the server shows that it was deleted."""
        existing = credential_of(workflow)
        if existing is None:
            return self._new_credential()
        try:
            self._client.credentials.get(existing.id)
        except ServiceNotFoundError:
            return self._new_credential()
        except (ServiceNotOfferedError, ServiceMissingScopeError):
            pass
        return existing

    def _new_credential(self) -> CredentialReference:
        name = _credential_name(self._secret)
        data = self._secret.data()
        made = self._client.credentials.create(name, CREDENTIAL_TYPE, data, project_id=self._project_id)
        return CredentialReference(made.id, made.name)

    def _require_scopes(self) -> None:
        try:
            granted = set(self._client.discovery.discover().scopes)
        except ServiceNotOfferedError:
            return
        missing = [scope for scope in SCOPES if scope not in granted]
        if missing:
            raise ServiceInputError(
                f"the API key lacks scopes that installing the bridge needs: {', '.join(missing)}; nothing was changed."
                " Install it once with ServiceInstallBridgeOperator and a connection that has the same bridge_secret, "
                "and whose key has these scopes"
            )


def _usable(bridges: Iterable[Workflow], secret: BridgeSecret, project_id: str | None) -> list[Workflow]:
    name = _credential_name(secret)
    own = [one for one in bridges if not one.is_archived and _credential_named(one) == name]
    return [one for one in own if project_id in (None, project_of(one))]


def _credential_named(workflow: Workflow) -> str | None:
    existing = credential_of(workflow)
    return existing.name if existing else None


def _credential_name(secret: BridgeSecret) -> str:
    return f"{NAME} {secret.fingerprint}"


def project_of(workflow: Workflow) -> str | None:
    """Return the id of the project that a workflow belongs to, or None if the server does not show it."""
    for place in workflow.shared or ():
        if place.get("role", "workflow:owner") == "workflow:owner":
            return str(place.get("projectId"))
    return None
