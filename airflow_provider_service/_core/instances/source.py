"""The definitions to deploy: from a folder, files, object storage, or the arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from airflow_provider_service._airflow.arguments import as_list, require_source
from airflow_provider_service._core.instances.code import code_inside
from airflow_provider_service._core.stored_folders import StoredFolder
from airflow_provider_service.client._definitions import parse_definition, read_definition
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

_ENDING = ".json"
#: What is lost if a deployment of nothing is carried out.
LOSS = "archive_missing=True would archive all workflows that this deployment_name has deployed"


class Source(NamedTuple):
    """A definition, and where it was found.

    :param definition: the definition as written, with its code.
    :param place: its file, or its place in the list.
    :param label: distinguishes it from others with the same name; None for its name.
    :param removes: fields that the workflow loses if the definition lacks them; the others stay.
    """

    definition: Mapping[str, Any]
    place: str
    label: str | None = None
    removes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the workflow, or its label."""
        return self.label or str(self.definition["name"])

    @property
    def id(self) -> str | None:
        """The id of the workflow in the instance of origin, if the definition contains it."""
        value = self.definition.get("id")
        return str(value) if isinstance(value, (str, int)) and value else None


def read_source(source: Any, *, allow_empty: bool = False) -> list[Source]:
    """Read all definitions.

    :param source: a folder, a ``.json`` file, or an address of object storage; a definition, as a mapping or as JSON
        text; or a list of any of these. A file holds one definition or a list of them.
    :param allow_empty: whether there may be none.
    :raises ServiceInputError: something cannot be read or is not a definition, two have the same name, or there is
        none. The message names every problem.
    """
    found: list[Source] = []
    wrong: list[str] = []
    for one in _each(source):
        try:
            found += map(_checked, _read(one, f"definition {len(found) + 1}"))
        except ServiceInputError as error:
            wrong.append(str(error))
    wrong += repeated_definitions(found)
    if wrong:
        raise ServiceInputError("; ".join(wrong))
    require_source(found, "source holds no definition of a workflow", LOSS, allow_empty=allow_empty)
    return found


def _each(source: Any) -> list[Any]:
    is_one = isinstance(source, (str, Mapping)) or hasattr(source, "fs")
    return [source] if is_one else as_list("source", source)


def _read(one: Any, place: str) -> Iterator[Source]:
    if isinstance(one, Mapping) or (isinstance(one, str) and one.lstrip()[:1] in ("{", "[")):
        yield from _several(parse_many(one, place), place)
        return
    folder = StoredFolder("source", one)
    for path in folder.files(_ENDING):
        above = PurePosixPath(path).parent
        for found in _several(parse_many(folder.read(path), path), path):
            with_code = code_inside(found.definition, lambda name, above=above: folder.read(str(above / name)))  # type: ignore[misc]
            yield Source(with_code, path)


def parse_many(text: Any, place: str) -> Sequence[Any]:
    """Return the definitions in a text, which holds one or a list of them."""
    if isinstance(text, Mapping):
        return [text]
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ServiceInputError(f"{place} is not JSON: {error}") from None
    return parsed if isinstance(parsed, list) else [parsed]


def _several(definitions: Sequence[Any], place: str) -> Iterator[Source]:
    for one in definitions:
        try:
            yield Source(parse_definition(one), place)
        except ServiceInputError as error:
            raise ServiceInputError(f"{place}: {error}") from None


def _checked(source: Source) -> Source:
    try:
        read_definition(source.definition)
    except ServiceInputError as error:
        raise ServiceInputError(f"{source.place}: {error}") from None
    return source


def repeated_definitions(found: Sequence[Source]) -> list[str]:
    """Return why definitions cannot be deployed together: some have the same name or id."""
    problems = [
        f"more than one definition is named {name!r}: {', '.join(places)}"
        for name, places in _places((one.name, one.place) for one in found)
    ]
    by_id = _places((one.id, f"{one.name!r} ({one.place})") for one in found if one.id)
    return problems + [
        f"more than one definition has the id {shown(value)}: {', '.join(places)}. Remove it from those that are copies"
        for value, places in by_id
    ]


def _places(keyed: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str | None, list[str]]]:
    """Return the keys that occur more than once, with the places of each."""
    places: dict[str | None, list[str]] = {}
    for key, place in keyed:
        places.setdefault(key, []).append(place)
    return ((key, many) for key, many in places.items() if len(many) > 1)
