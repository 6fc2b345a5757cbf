"""Record in the instance which workflows were deployed under a name, to archive them later, and how a restore began.

A record is an inactive workflow with a note, which an instance of any version and plan can store, and is written in one
call. That of a deployment holds ids, since names and tags are copied along with a workflow, and it is signed with the
API key, since anybody who may create a workflow could write such a note.
"""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import refuse, require
from airflow_provider_service._core.instances.rollback import Writer
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.references import Directory
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow


log = logging.getLogger(__name__)

#: Maximum length of the name of a deployment, which becomes part of a workflow's name of at most 128 characters.
MAX_NAME_CHARS = 100
_NAME = "Airflow: deployment of "
_WORDS = (
    "Airflow deployed the workflows with these ids together. With archive_missing, it archives those that leave the "
    "source. Without this workflow, it archives nothing."
)
_NAME_OF_RESTORE = "Airflow: restore of the backup "
_WORDS_OF_RESTORE = (
    "Airflow restores a backup into this instance, and deletes this workflow at the end. If the task has failed, run "
    "it again. Delete this workflow only if you give up that restore."
)
_PURPOSE = b"airflow-provider-service deployment "


def is_deployment_record(workflow: Workflow) -> bool:
    return workflow.name.startswith(_NAME)


def require_deployment_name(name: str | None, *, archive_missing: bool) -> str | None:
    if name is None:
        words = "only what earlier deployments of this name deployed is archived"
        require(not archive_missing, f"archive_missing=True needs deployment_name: {words}")
    elif not isinstance(name, str) or not 1 <= len(name.strip()) <= MAX_NAME_CHARS:
        refuse("deployment_name", f"text of 1 to {MAX_NAME_CHARS} characters", name)
    return name and name.strip()


@dataclass(frozen=True)
class DeploymentRecord:
    client: Resources
    name: str  #: Name of the workflow that is the record.
    existing: Workflow | None  #: That workflow; None if there is none with a signature by this connection's key.
    recorded: frozenset[str]  #: The ids that it holds.
    owned: frozenset[str]  #: Of these, the workflows that no other name has deployed, and that are not archived.

    @classmethod
    def read(cls, client: Resources, directory: Directory, deployment_name: str) -> DeploymentRecord:
        name, recorded, elsewhere = _NAME + deployment_name, dict[str, frozenset[str]](), set[str]()
        existing = directory.workflows
        # Records of other deployments may be in other projects.
        records = client.workflows.list(name=_NAME, exclude_pinned_data=True)
        for record in records:
            if not is_deployment_record(record) or record.is_archived:
                continue
            ids, signature = _content(record)
            if record.name != name or record.id not in existing:
                elsewhere |= ids
            elif hmac.compare_digest(signature, _signature(client, name, ids)):
                recorded[record.id] = ids
            else:
                log.warning(
                    "The workflow %r (%s) was not written with this API key, so nothing that it lists is archived; "
                    "delete it",
                    record.name,
                    record.id,
                )
        # Somebody may have copied the record, perhaps an older state of it; what is in a copy was deployed as well.
        owned = (frozenset[str]().union(*recorded.values()) & existing.keys()) - elsewhere
        if not recorded:
            return cls(client, name, None, frozenset(), frozenset(owned))
        oldest = min(recorded, key=lambda workflow_id: (str(existing[workflow_id].created_at), workflow_id))
        return cls(client, name, existing[oldest], recorded[oldest], frozenset(owned))

    def differs(self, ids: Iterable[str]) -> bool:
        return self.existing is None or self.recorded != frozenset(ids)

    def definition(self, ids: Iterable[str]) -> dict[str, Any]:
        every = sorted(ids)
        signature = _signature(self.client, self.name, every)
        note = note_node(_WORDS, {"workflows": every, "signature": signature})
        return {"name": self.name, "nodes": [note], "connections": {}, "settings": {}}


def _content(workflow: Workflow) -> tuple[frozenset[str], str]:
    """Return the ids and the signature in a record; both are empty if somebody has changed the note."""
    try:
        content = note_data(workflow)
        signature = str(content["signature"])
        return frozenset(map(str, content["workflows"])), signature if signature.isascii() else ""
    except (ValueError, KeyError, TypeError):
        return frozenset(), ""


def _signature(client: Resources, name: str, ids: Iterable[str]) -> str:
    key = client.transport.config.api_key.get_secret_value().encode()
    return hmac.digest(key, _PURPOSE + json.dumps([name, sorted(ids)]).encode(), "sha256").hex()


def note_node(words: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the only node of a workflow that stores data, as JSON below a paragraph for the people who open it."""
    content = f"{words}\n\n{json.dumps(data, sort_keys=True)}"
    node_type = "n8n-nodes-base.stickyNote"
    return {"name": "Note", "type": node_type, "typeVersion": 1, "position": [0, 0], "parameters": {"content": content}}


def note_data(workflow: Workflow) -> Any:
    """Return what is stored below the paragraph; ValueError if somebody has changed the workflow."""
    try:
        content = str((workflow.nodes or [])[0]["parameters"]["content"])
        return json.loads(content.partition("\n\n")[2])
    except (IndexError, KeyError, TypeError, RecursionError):
        raise ValueError("the workflow holds no note with data") from None


def is_restore_record(workflow: Workflow) -> bool:
    return workflow.name.startswith(_NAME_OF_RESTORE)


class RestoreRecord:
    """The objects that a restore creates or changes: only these may its next attempt finish, if it is killed."""

    def __init__(self, client: Resources, digest: str) -> None:
        self._client, self._name = client, _NAME_OF_RESTORE + digest[:16]

    def read(self) -> Mapping[str, Sequence[str]] | None:
        """Return the names of the objects to create or change, by kind; None if no restore has begun."""
        records = self._records()
        if not records:
            return None
        try:
            # The first one was written before anything was changed.
            begun = note_data(min(records, key=lambda record: str(record.created_at)))
            return {str(kind): [str(name) for name in names] for kind, names in begun.items()}
        except (AttributeError, TypeError, ValueError):
            raise ServiceInputError(
                f"somebody has changed the workflow {self._name!r}, which records how an earlier attempt began; "
                "delete it to start over"
            ) from None

    def write(self, begun: Mapping[str, Sequence[str]]) -> None:
        self._client.workflows.create(self._name, [note_node(_WORDS_OF_RESTORE, dict(begun))], {}, {})

    def delete(self) -> None:
        writer = Writer(self._client)
        for record in self._records():
            writer.delete(record.id)

    def _records(self) -> list[Workflow]:
        listed = self._client.workflows.list(name=self._name)
        return [workflow for workflow in listed if workflow.name == self._name and not workflow.is_archived]
