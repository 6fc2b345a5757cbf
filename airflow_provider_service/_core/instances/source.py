"""The definitions to deploy: from a folder, files, object storage, or the arguments.

Keep the code of nodes in separate files, so that editors and reviews show it as code.

Turn names of workflows and nodes into names of files.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from unicodedata import normalize

from airflow_provider_service._core.arguments import as_list, require_source
from airflow_provider_service._core.object_storage import StoredFolder, stays_below
from airflow_provider_service.client._constraints import plain_id
from airflow_provider_service.client._definitions import parse_definition, read_definition
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

log = logging.getLogger(__name__)

#: Characters that file systems do not accept in the name of a file.
_NOT_IN_FILES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]')
_MAX_CHARS = 80
#: A name has at most 255 bytes; this leaves room for the suffix, and for what is appended while the file is written.
_MAX_BYTES = 200
_ENDING = ".json"


def file_name(name: str, max_bytes: int = _MAX_BYTES) -> str:
    """Turn the name of a workflow or a node into one that file systems accept."""
    # A leading dot would hide the file, and some file systems drop dots and blanks at the end.
    short = _NOT_IN_FILES.sub("_", name).strip(". ")[:_MAX_CHARS].encode()[:max_bytes]
    return short.decode(errors="ignore").rstrip(". ") or "_"


def file_stem(name: str, object_id: str, taken: set[str]) -> str:
    """Turn the name of an object into a unique file name, without a suffix."""
    for suffix in chain([""], _suffixes(object_id)):
        stem = file_name(name, _MAX_BYTES - len(suffix)) + suffix
        # The folder beside another file may have the name of this file, and vice versa.
        claimed = {_as_compared(stem), _as_compared(stem + _ENDING)}
        if claimed.isdisjoint(taken):
            break
        log.warning("More than one object is named %r; the file of %s has its id in its name", name, object_id)
    taken |= claimed
    return stem


def _suffixes(object_id: str) -> Iterator[str]:
    yield f" ({plain_id(object_id)})"
    yield from (f" ({object_id}) {number}" for number in count(2))


def _as_compared(name: str) -> str:
    # Some file systems distinguish neither upper and lower case, nor the Unicode forms of a letter.
    return normalize("NFC", name).casefold()


#: Parameters of nodes that hold code, with the suffix of the file for it.
_CODE = {"jsCode": ".js", "pythonCode": ".py", "functionCode": ".js"}
_FILE = "file"


def code_apart(definition: Mapping[str, Any], stem: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Move the code of a definition's nodes to files."""
    files: dict[str, str] = {}

    def apart(node: Mapping[str, Any], name: str, code: Any) -> Any:
        # Expressions and single lines are easiest to read in their node.
        if not isinstance(code, str) or "\n" not in code or code.startswith("=") or not _is_unicode(code):
            return code
        path = _free_path(stem, node, name, files)
        files[path] = code
        return {_FILE: path}

    return _with_code(definition, apart), files


def code_inside(definition: Mapping[str, Any], read: Callable[[str], str]) -> dict[str, Any]:
    """Put code from files back into a definition's nodes."""

    def inside(_node: Mapping[str, Any], _name: str, code: Any) -> Any:
        if not isinstance(code, Mapping) or not isinstance(code.get(_FILE), str):
            return code
        path = code[_FILE]
        if not stays_below(path):
            raise ServiceInputError(f"the file of code {path!r} must be below the folder of the definition")
        return read(path)

    return _with_code(definition, inside)


def _is_unicode(code: str) -> bool:
    """Whether a file can hold the code; JSON can also hold half of a surrogate pair."""
    try:
        code.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_code(definition: Mapping[str, Any], change: Callable[[Mapping[str, Any], str, Any], Any]) -> dict[str, Any]:
    return {**definition, "nodes": [_node(node, change) for node in definition.get("nodes") or ()]}


def _node(node: Any, change: Callable[[Mapping[str, Any], str, Any], Any]) -> Any:
    parameters = node.get("parameters") if isinstance(node, Mapping) else None
    if not isinstance(parameters, Mapping):
        return node
    changed = {name: change(node, name, value) if name in _CODE else value for name, value in parameters.items()}
    return {**node, "parameters": changed}


def _free_path(stem: str, node: Mapping[str, Any], name: str, files: Mapping[str, str]) -> str:
    taken = {path.casefold() for path in files}
    base = f"{stem}/{file_name(str(node.get('name')))}"
    candidates = (f"{base}{number}{_CODE[name]}" for number in chain([""], map(" {}".format, count(2))))
    return next(path for path in candidates if path.casefold() not in taken)


#: What is lost if a deployment of nothing is carried out.
LOSS = "archive_missing=True would archive all workflows that this deployment_name has deployed"


class Source(NamedTuple):
    """A definition, and where it was found."""

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
    """Read all definitions."""
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
