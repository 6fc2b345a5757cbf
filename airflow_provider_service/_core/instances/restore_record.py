"""The record of a restore that has begun, kept in the instance: the objects that it creates or changes.

A killed restore leaves incomplete objects, which cannot be distinguished from those that others have changed. The next
attempt may finish only those that the record lists. It is an inactive workflow with a note, which every server and plan
supports, and is written in one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_service._core.instances.deployment_record import note_data, note_node
from airflow_provider_service._core.instances.rollback import Writer
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow

_NAME = "Airflow: restore of the backup "
_WORDS = (
    "Airflow restores a backup into this instance, and deletes this workflow at the end. If the task has failed, run "
    "it again. Delete this workflow only if you give up that restore."
)


def is_record(workflow: Workflow) -> bool:
    return workflow.name.startswith(_NAME)


class Record:
    def __init__(self, client: Resources, digest: str) -> None:
        self._client, self._name = client, _NAME + digest[:16]

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
        self._client.workflows.create(self._name, [note_node(_WORDS, dict(begun))], {}, {})

    def delete(self) -> None:
        writer = Writer(self._client)
        for record in self._records():
            writer.delete(record.id)

    def _records(self) -> list[Workflow]:
        listed = self._client.workflows.list(name=self._name)
        return [workflow for workflow in listed if workflow.name == self._name and not workflow.is_archived]
