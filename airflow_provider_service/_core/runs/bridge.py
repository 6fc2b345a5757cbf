"""The bridge, a workflow that starts others: find it, install it, authenticate its calls, and what it consists of.

A call of its webhook carries ``{"workflowId": ..., "items": [...]}``. The bridge answers with the id of its own
execution before it does anything else, makes the items its current data, and starts the workflow with them, without
waiting for it.
"""

from __future__ import annotations

import hmac
import logging
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_service.client import errors
from airflow_provider_service.client._definitions import is_as_defined, runs_as_defined
from airflow_provider_service.client._http.redaction import HiddenText
from airflow_provider_service.client._lookup import create_tag
from airflow_provider_service.client.resources._webhooks import WEBHOOK_NODE, signed_token

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_service.client import ServiceClient, ServiceConfig
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

# Increases with every change of this module; an older bridge is updated, a newer one is left as it is.
VERSION = 1
NAME = "Airflow bridge"
TAG = "airflow-bridge"
CREDENTIAL_TYPE = "jwtAuth"
#: The node that starts the workflow.
START_NODE = "Start"

_TITLE = "## Bridge for Airflow"
_NOTE = f"""{_TITLE}
Starts sub-workflows and manual workflows for Airflow tasks. Made by airflow-provider-service, which updates it: changes
are overwritten. The executions are kept, because Airflow looks for its runs among them.

Version {VERSION}"""
_VERSION = re.compile(rf"{re.escape(_TITLE)}.*Version (\d{{1,9}})\s*", re.DOTALL)
_STICKY_NOTE = "n8n-nodes-base.stickyNote"
#: Seconds for which the token of a call is valid, which allows for different clocks and a queue before the webhook.
BRIDGE_TOKEN_SECONDS = 900.0
_ALGORITHM = "HS256"


class BridgeSecret:
    """The secret that signs tokens, derived from the connection's ``bridge_secret`` or else from its API key."""

    def __init__(self, config: ServiceConfig) -> None:
        self._seed = (config.bridge_secret or config.api_key).get_secret_value().encode()

    @property
    def fingerprint(self) -> str:
        return self._derived("fingerprint")[:12]

    def data(self) -> dict[str, str]:
        return {"keyType": "passphrase", "secret": self._derived("tokens"), "algorithm": _ALGORITHM}

    def headers(self, client: ServiceClient, *, lifetime: float = BRIDGE_TOKEN_SECONDS) -> dict[str, str]:
        offset = client.transport.server_clock.offset
        token = signed_token(self._derived("tokens"), _ALGORITHM, offset=offset, seconds=lifetime)
        return {"Authorization": HiddenText(f"Bearer {token}")}

    def _derived(self, purpose: str) -> str:
        return hmac.digest(self._seed, f"airflow-provider-service bridge {purpose}".encode(), "sha256").hex()


class Installed(NamedTuple):
    workflow: Workflow
    outcome: Outcome


def all_bridges(client: Resources, *, name: str = NAME) -> list[Workflow]:
    """Every bridge, by its tag or its name, archived ones included, the oldest first."""
    listed = [*client.workflows.list(tags=TAG), *client.workflows.list(name=name)]
    bridges = {workflow.id: workflow for workflow in listed if version_of(workflow) is not None}
    return sorted(bridges.values(), key=lambda bridge: (bridge.created_at or _LAST, bridge.id))


def find_bridge(bridges: Iterable[Workflow], secret: BridgeSecret, *, project_id: str | None = None) -> Workflow | None:
    """Find the bridge that accepts calls with a secret: the oldest that is not archived."""
    return next(iter(_usable(bridges, secret, project_id)), None)


class Installer:
    """Installs a bridge, safe to repeat; without a project, in the personal project of the API key's user."""

    def __init__(
        self, client: Resources, secret: BridgeSecret, *, name: str = NAME, project_id: str | None = None
    ) -> None:
        self._client, self._secret = client, secret
        self._name, self._project_id = name, project_id

    def install(self) -> Installed:
        """Create the bridge, update it, or leave it as it is. It is active afterwards."""
        self._require_scopes()
        bridge = self._find()
        if bridge is None:
            return self._created()
        workflow = self._client.workflows.get(bridge.id)
        version = version_of(workflow) or 0
        if version > VERSION:
            log.warning(
                "Bridge %s has version %d, which is newer than %d, and is not changed", bridge.id, version, VERSION
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
            others = [other.id for other in workflow.tags or ()]
            self._client.workflows.update_tags(workflow.id, [*others, tag.id])
        if workflow.active:
            return Installed(workflow, outcome)
        activated = self._client.workflows.activate(workflow.id)
        return Installed(activated, "updated" if outcome == "unchanged" else outcome)

    def _find(self) -> Workflow | None:
        bridges = all_bridges(self._client, name=self._name)
        usable = _usable(bridges, self._secret, self._project_id)
        if len(usable) > 1:
            ids = ", ".join(bridge.id for bridge in usable[1:])
            log.warning("Bridge %s is used; there are further ones, which can be archived: %s", usable[0].id, ids)
        return usable[0] if usable else None

    def _reference(self, workflow: Workflow) -> CredentialReference:
        existing = credential_of(workflow)
        if existing is None:
            return self._new_credential()
        try:
            self._client.credentials.get(existing.id)
        except errors.ServiceNotFoundError:
            return self._new_credential()
        except (errors.ServiceNotOfferedError, errors.ServiceMissingScopeError):
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
        except errors.ServiceNotOfferedError:
            return
        missing = [scope for scope in SCOPES if scope not in granted]
        if missing:
            raise errors.ServiceInputError(
                f"the API key lacks scopes that installing the bridge needs: {', '.join(missing)}; nothing was changed."
                " Install it once with ServiceInstallBridgeOperator and a connection that has the same bridge_secret, "
                "and whose key has these scopes"
            )


def _usable(bridges: Iterable[Workflow], secret: BridgeSecret, project_id: str | None) -> list[Workflow]:
    usable = []
    for bridge in bridges:
        credential = credential_of(bridge)
        is_own = credential is not None and credential.name == _credential_name(secret)
        if is_own and not bridge.is_archived and project_id in (None, project_of(bridge)):
            usable.append(bridge)
    return usable


def _credential_name(secret: BridgeSecret) -> str:
    return f"{NAME} {secret.fingerprint}"


def project_of(workflow: Workflow) -> str | None:
    """Return the id of the project that a workflow belongs to, or None if the server does not show it."""
    for place in workflow.shared or ():
        if place.get("role", "workflow:owner") == "workflow:owner":
            return str(place.get("projectId"))
    return None


class CredentialReference(NamedTuple):
    id: str
    name: str


class Address(NamedTuple):
    path: str
    webhook_id: str

    @classmethod
    def new(cls) -> Address:
        return cls(f"airflow-bridge-{uuid.uuid4().hex}", str(uuid.uuid4()))


def definition(name: str, address: Address, credential: CredentialReference) -> dict[str, Any]:
    webhook = {
        "httpMethod": "POST",
        "path": address.path,
        "authentication": CREDENTIAL_TYPE,
        "responseMode": "responseNode",
        "options": {},
    }
    # The empty text at the end makes the value text: with null as the id, the service would start any workflow.
    workflow_id = "={{ $('Webhook').first().json.body.workflowId }}{{ '' }}"
    answer = {"respondWith": "json", "responseBody": '={{ {"executionId": $execution.id} }}', "options": {}}
    nodes = [
        _node("About", _STICKY_NOTE, 1, {"content": _NOTE, "height": 220, "width": 440}, column=0, row=-280),
        {
            **_node("Webhook", WEBHOOK_NODE, 2, webhook, column=0),
            "webhookId": address.webhook_id,
            "credentials": {CREDENTIAL_TYPE: credential._asdict()},
        },
        # The answer comes before the start, so that it names the execution even if the start fails. With "respond
        # immediately", older servers do not know the id.
        _node("Answer", "n8n-nodes-base.respondToWebhook", 1.1, answer, column=1),
        _node("Items", "n8n-nodes-base.splitOut", 1, {"fieldToSplitOut": "body.items", "options": {}}, column=2),
        _node(
            START_NODE,
            "n8n-nodes-base.executeWorkflow",
            1.2,
            {
                "workflowId": {"__rl": True, "mode": "id", "value": workflow_id},
                "options": {"waitForSubWorkflow": False},
            },
            column=3,
        ),
    ]
    return {
        "name": name,
        "nodes": nodes,
        "connections": dict([_arrow("Webhook", "Answer"), _arrow("Answer", "Items"), _arrow("Items", START_NODE)]),
        "settings": {
            "executionOrder": "v1",
            "saveDataSuccessExecution": "all",
            "saveDataErrorExecution": "all",
            "callerPolicy": "none",
        },
    }


def version_of(workflow: Workflow) -> int | None:
    """The version of a bridge; None for a workflow that is not a bridge."""
    for node in workflow.nodes or []:
        if node.get("type") == _STICKY_NOTE:
            match = _VERSION.match(str((node.get("parameters") or {}).get("content")))
            if match:
                return int(match[1])
    return None


def address_of(workflow: Workflow) -> Address | None:
    node = _webhook_of(workflow)
    path, webhook_id = (node.get("parameters") or {}).get("path"), node.get("webhookId")
    return Address(str(path), str(webhook_id)) if path and webhook_id else None


def credential_of(workflow: Workflow) -> CredentialReference | None:
    credential = (_webhook_of(workflow).get("credentials") or {}).get(CREDENTIAL_TYPE)
    if not isinstance(credential, dict) or not credential.get("id"):
        return None
    return CredentialReference(str(credential["id"]), str(credential.get("name")))


def _webhook_of(workflow: Workflow) -> Mapping[str, Any]:
    return next((node for node in workflow.nodes or [] if node.get("type") == WEBHOOK_NODE), {})


def _node(
    name: str, kind: str, version: float, parameters: Mapping[str, Any], *, column: int, row: int = 0
) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "typeVersion": version,
        "position": [240 * column, row],
        "parameters": dict(parameters),
    }


def _arrow(source: str, target: str) -> tuple[str, dict[str, Any]]:
    return source, {"main": [[{"node": target, "type": "main", "index": 0}]]}
