"""Find the workflow that a definition is for: the one with its id, or else the one with its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_service._core.instances.distinct_names import name_with_id
from airflow_provider_service._core.instances.workflow_references import Named
from airflow_provider_service.client._constraints import is_plain_id

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.directory import Directory, Entry
    from airflow_provider_service._core.instances.source import Source


class Matches:
    """Finds the workflows that definitions are for. Another instance has other ids, so an unknown id is ignored.

    :param sources: the definitions.
    :param directory: the names of the instance's objects.
    :param known_ids: ids of workflows that are already known, by the names of their sources; any other workflow with
        such a name is a different one.
    """

    def __init__(self, sources: Sequence[Source], directory: Directory, known_ids: Mapping[str, str]) -> None:
        self._directory = directory
        #: Why definitions are ambiguous.
        self.problems: list[str] = []
        by_id = {one.name: entry for one in sources if (entry := self._with_id_of(one))}
        self._claimed = {*(one.id for one in by_id.values()), *known_ids.values()}
        #: The ids of the workflows that exist, by the names of the sources.
        self.ids: dict[str, str] = {name: one.id for name, one in by_id.items()} | dict(known_ids)
        #: New names of the workflows that sources rename, by id.
        self.renamed: dict[str, str] = {}
        for one in sources:
            if one.name in known_ids:
                continue
            if one.name in by_id:
                self._note_name(one, by_id[one.name])
            elif named := self._unclaimed(one.name):
                self._require_one(one, named)
                self.ids[one.name] = named[0].id

    def _with_id_of(self, source: Source) -> Entry | None:
        entry = self._directory.find(Named("workflow", source.id, None)) if source.id else None
        return entry if entry and is_plain_id(entry.id) else None

    def _unclaimed(self, name: str) -> list[Entry]:
        return [one for one in self._directory.entries(Named("workflow", None, name)) if one.id not in self._claimed]

    def _note_name(self, source: Source, existing: Entry) -> None:
        if source.name in (existing.name, name_with_id(existing.name, existing.id)):
            return
        if existing.id.isdigit():
            # Other ids are random, but old instances counted, so each of them has a workflow with such an id.
            self.problems.append(
                f"{source.name!r} ({source.place}): its id {existing.id} belongs to workflow {existing.name!r}. Ids "
                "that are numbers do not show that both are the same workflow. If they are, rename it in the instance; "
                "otherwise remove the id from the definition"
            )
            return
        self.renamed[existing.id] = source.name
        if others := self._unclaimed(source.name):
            self.problems.append(
                f"{source.name!r} ({source.place}): its id {existing.id} belongs to workflow {existing.name!r}, "
                f"but its name belongs to workflow {_listed(others)}. Remove the id from the definition if it is for "
                "the latter, or give one of them another name"
            )

    def _require_one(self, source: Source, named: Sequence[Entry]) -> None:
        if len(named) > 1:
            self.problems.append(
                f"{source.name!r}: there is more than one workflow of this name: ids {_listed(named)}. An id in the "
                "definition says which one is meant"
            )


def _listed(entries: Sequence[Entry]) -> str:
    return ", ".join(one.id for one in entries)
