"""Find the workflow that a definition is for, and the objects that it names, in the instance that it is deployed to.

Both collect what is missing or ambiguous as problems. What shares its name with others has its id appended to the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from airflow_provider_service._core.arguments import repeated
from airflow_provider_service._core.instances.faults import MAX_NAME_CHARS, Problem
from airflow_provider_service._core.instances.references import Directory, Entry, Named, new_token
from airflow_provider_service.client._constraints import NOT_PLAIN, is_plain_id, plain_id

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.source import Source


class Matches:
    """Finds the workflows that definitions are for. Another instance has other ids, so an unknown id is ignored."""

    def __init__(self, sources: Sequence[Source], directory: Directory, known_ids: Mapping[str, str]) -> None:
        self._directory = directory
        #: Why definitions are ambiguous.
        self.problems: list[Problem] = []
        by_id = {
            source.name: entry
            for source in sources
            if source.id and (entry := directory.find(Named("workflow", source.id, None))) and is_plain_id(entry.id)
        }
        self._claimed = {*(entry.id for entry in by_id.values()), *known_ids.values()}
        #: The ids of the workflows that exist, by the names of the sources.
        self.ids: dict[str, str] = {name: entry.id for name, entry in by_id.items()} | dict(known_ids)
        #: New names of the workflows that sources rename, by id.
        self.renamed: dict[str, str] = {}
        for source in sources:
            if source.name in known_ids:
                continue
            if source.name in by_id:
                self._note_name(source, by_id[source.name])
            elif named := self._unclaimed(source.name):
                if len(named) > 1:
                    text = f"there is more than one workflow of this name: ids {_listed(named)}"
                    hint = "An id in the definition says which one is meant"
                    self.problems.append(Problem(source.title, f"{text}. {hint}"))
                self.ids[source.name] = named[0].id

    def _unclaimed(self, name: str) -> list[Entry]:
        named = self._directory.entries(Named("workflow", None, name))
        return [entry for entry in named if entry.id not in self._claimed]

    def _note_name(self, source: Source, existing: Entry) -> None:
        if source.name in (existing.name, name_with_id(existing.name, existing.id)):
            return
        if existing.id.isdigit():
            # Other ids are random, but old instances counted, so each of them has a workflow with such an id.
            text = (
                f"its id {existing.id} belongs to workflow {existing.name!r}. Ids that are numbers do not show that "
                "both are the same workflow. If they are, rename it in the instance; otherwise remove the id from the "
                "definition"
            )
            self.problems.append(Problem(f"{source.name!r} ({source.place})", text))
            return
        self.renamed[existing.id] = source.name
        if others := self._unclaimed(source.name):
            text = (
                f"its id {existing.id} belongs to workflow {existing.name!r}, but its name belongs to workflow "
                f"{_listed(others)}. Remove the id from the definition if it is for the latter, or give one of them "
                "another name"
            )
            self.problems.append(Problem(f"{source.name!r} ({source.place})", text))


def _listed(entries: Sequence[Entry]) -> str:
    return ", ".join(entry.id for entry in entries)


class Resolver:
    """Finds the objects that definitions name."""

    def __init__(
        self,
        directory: Directory,
        names: Sequence[str],
        name_by_id: Mapping[str, str],
        renamed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._directory = directory
        #: Names of the definitions with an id, by that id; other definitions may refer to it.
        self._name_by_id = name_by_id
        #: New names of existing workflows, by their ids; definitions must not use the old names.
        self._renamed = renamed
        #: Ids of the deployed workflows by name; a token stands for the id of a new one.
        self.ids: dict[str, str] = {name: new_token() for name in names}
        #: Why definitions cannot be deployed, such as missing objects.
        self.problems: list[Problem] = []

    def resolve(self, named: Named, workflow: str, used: set[str]) -> Named:
        """Return the object as this instance has it; ``workflow`` says in messages where it is named.

        What the workflow already uses is preferred if several objects have the name, and kept if no object has it.
        """
        if named.is_kept:
            return named
        # A name beside an id is only for display, and may be outdated.
        by_id = self._name_by_id.get(named.id or "") if named.kind == "workflow" else None
        name = by_id or named.name
        if named.kind == "workflow" and name in self.ids:
            return Named(named.kind, self.ids[name], name)
        known = self._directory.find(named)
        is_same = known is not None and name in (None, known.name) and named.type in (None, known.type)
        if known is not None and is_same and is_plain_id(known.id):
            return Named(named.kind, known.id, known.name, type=named.type)
        requested = Named(named.kind, named.id, name, named.place, named.type)
        entries = self._directory.entries(requested) if name else []
        if len(entries) == 1 and named.kind == "workflow" and (new := self._renamed.get(entries[0].id)):
            self._note(workflow, named, f"{requested} gets the name {new!r}; use that name")
            return named
        preferred = [entry for entry in entries if entry.id in used]
        chosen = preferred if len(preferred) == 1 else entries
        if len(chosen) == 1 and not is_plain_id(chosen[0].id):
            # The service evaluates text in a definition that looks like one of its expressions.
            self._note(workflow, named, f"the id of {requested} {NOT_PLAIN}")
            return named
        if not chosen and (named.id or str(named)) in used:
            return named  # the workflow already names an object that was deleted since
        if len(chosen) != 1:
            self._note(workflow, named, self._why_not(requested, chosen))
            return named
        return Named(named.kind, chosen[0].id, chosen[0].name, type=named.type)

    def _note(self, workflow: str, named: Named, text: str) -> None:
        self.problems.append(Problem(f"{workflow}, {named.place}", text))

    def _why_not(self, named: Named, entries: Sequence[Entry]) -> str:
        if entries:
            return f"there is more than one {named}: ids {_listed(entries)}"
        if named.kind == "credential" and self._directory.listed_credentials is None:
            return f"no workflow of the instance uses a {named}, and the credentials cannot be listed"
        hint = "; create it, or name another one in the mapping" if named.name else ""
        return f"there is no {named}, or this key may not see it{hint}"


def name_with_id(name: str, object_id: str) -> str:
    suffix = f" ({plain_id(object_id)})"
    return name[: MAX_NAME_CHARS - len(suffix)] + suffix


def distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return names by id, with the ids appended to names that several objects have."""
    distinct, with_id = dict(names), set[str]()
    # A name with an id may in turn be the name of another object, which then gets its own id appended.
    while shared := repeated(distinct.values()):
        with_id |= {id_ for id_, name in distinct.items() if name in shared}
        distinct = {id_: name_with_id(name, id_) if id_ in with_id else name for id_, name in names.items()}
    return distinct
