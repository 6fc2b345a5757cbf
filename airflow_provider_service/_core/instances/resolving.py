"""Find the objects that definitions name in the target instance, and collect those that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from airflow_provider_service._core.instances.directory import Directory, Entry, new_token
from airflow_provider_service._core.instances.workflow_references import Named
from airflow_provider_service.client._constraints import NOT_PLAIN, is_plain_id
from airflow_provider_service.client._lookup import get_folder
from airflow_provider_service.client.errors import ServiceLookupError
from airflow_provider_service.client.resources._tags import MAX_TAG_CHARS

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.workflow_references import Kind
    from airflow_provider_service.client._client import Resources


class Resolver:
    """Finds objects of an instance by their names.

    :param client: client or hook of the instance.
    :param directory: the names of its objects.
    :param names: names of all workflows that are deployed together.
    :param name_by_id: names of the definitions with an id, by that id; other definitions may refer to it.
    :param renamed: new names of existing workflows, by their ids; definitions must not use the old names.
    """

    def __init__(
        self,
        client: Resources,
        directory: Directory,
        names: Sequence[str],
        name_by_id: Mapping[str, str],
        renamed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._client, self._directory = client, directory
        self._name_by_id, self._renamed = name_by_id, renamed
        #: Ids of the deployed workflows by name; a token stands for the id of a new one.
        self.ids: dict[str, str] = {name: new_token() for name in names}
        #: Why definitions cannot be deployed, such as missing objects.
        self.problems: list[str] = []

    def resolve(self, named: Named, workflow: str, used: set[str]) -> Named:
        """Return the object as this instance has it.

        :param workflow: the workflow whose definition names it, for messages.
        :param used: what the workflow already uses, as in :func:`used_ids`; an id of it is preferred if several objects
            have the name, and kept if no object has it.
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
        if len(entries) == 1 and (new := self._new_name(requested.kind, entries[0])):
            self.problems.append(f"{workflow!r}, {named.place}: {requested} gets the name {new!r}; use that name")
            return named
        preferred = [one for one in entries if one.id in used]
        chosen = preferred if len(preferred) == 1 else entries
        if len(chosen) == 1 and not is_plain_id(chosen[0].id):
            # The service evaluates text in a definition that looks like one of its expressions.
            self.problems.append(f"{workflow!r}, {named.place}: the id of {requested} {NOT_PLAIN}")
            return named
        if not chosen and (named.id or str(named)) in used:
            return named  # the workflow already names an object that was deleted since
        if len(chosen) != 1:
            self.problems.append(f"{workflow!r}, {named.place}: {self._why_not(requested, chosen)}")
            return named
        return Named(named.kind, chosen[0].id, chosen[0].name, type=named.type)

    def _new_name(self, kind: Kind, entry: Entry) -> str | None:
        return self._renamed.get(entry.id) if kind == "workflow" else None

    def folder_id(self, path: str, workflow: str, project_id: str | None) -> str | None:
        """Return the id of a folder of the project; None if it cannot be found, which is a problem."""
        if project_id is None:
            self.problems.append(f"{workflow!r}: folder {path!r} can only be found in a project, and none is given")
            return None
        try:
            return get_folder(self._client, path, project_id=project_id).id
        except ServiceLookupError as error:
            self.problems.append(f"{workflow!r}: {error}")
            return None

    def check_tags(self, tags: Sequence[str], workflow: str) -> None:
        """Collect a problem for each tag that the service could not create."""
        wrong = [tag for tag in tags if not 1 <= len(tag.strip()) <= MAX_TAG_CHARS]
        self.problems += [
            f"{workflow!r}: {tag!r} cannot be the name of a tag: it must have 1 to {MAX_TAG_CHARS} characters"
            for tag in wrong
        ]

    def _why_not(self, named: Named, entries: Sequence[Entry]) -> str:
        if entries:
            return f"there is more than one {named}: ids {', '.join(one.id for one in entries)}"
        if named.kind == "credential" and not self._directory.credentials_are_listed:
            return f"no workflow of the instance uses a {named}, and the credentials cannot be listed"
        hint = "; create it, or name another one in the mapping" if named.name else ""
        return f"there is no {named}, or this key may not see it{hint}"
