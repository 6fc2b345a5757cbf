"""The definitions to deploy: from a folder, files, object storage, or the arguments.

Nodes may keep their code in separate files, so that editors and reviews show it as code.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from unicodedata import normalize

from airflow_provider_service._core.arguments import as_list, require_source
from airflow_provider_service._core.instances.faults import Problem, listing
from airflow_provider_service._core.object_storage import StoredFolder, stays_below
from airflow_provider_service.client._constraints import plain_id
from airflow_provider_service.client._definitions import NOT_SENT, parse_definition, read_definition
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

log = logging.getLogger(__name__)

_ENDING = ".json"
#: What is lost if a deployment of nothing is carried out.
LOSS = "with archive_missing=True, all workflows that this deployment_name has deployed would be archived"
#: Characters that file systems do not accept in the name of a file.
_NOT_IN_FILES = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|\ud800-\udfff]')
_MAX_CHARS = 80
#: A name has at most 255 bytes; this leaves room for the suffix, and for what is appended while the file is written.
_MAX_BYTES = 200
#: Parameters of nodes that hold code, with the suffix of the file for it.
_CODE = {"jsCode": ".js", "pythonCode": ".py", "functionCode": ".js"}
_FILE = "file"
_COPIES = "Remove it from those that are copies"


class Source(NamedTuple):
    definition: Mapping[str, Any]
    place: str
    label: str | None = None  #: Distinguishes it from others with the same name.
    removes: tuple[str, ...] = ()  #: Fields that the workflow loses if the definition lacks them; the others stay.

    @property
    def name(self) -> str:
        return self.label or str(self.definition["name"])

    @property
    def title(self) -> str:
        """The name, and the file if there is one, for messages."""
        return f"{self.name!r} ({self.place})" if self.place.endswith(_ENDING) else repr(self.name)

    @property
    def id(self) -> str | None:
        """The id of the workflow in the instance of origin, if the definition contains it."""
        value = self.definition.get("id")
        return str(value) if isinstance(value, (str, int)) and value else None


def read_source(source: Any, *, allow_empty: bool = False, from_file_names: bool = False) -> list[Source]:
    """Read all definitions, or name everything that is wrong with them.

    The source is a folder, a ``.json`` file, or an address of object storage; a definition, as a mapping or as JSON
    text; or a list of any of these. A file holds one definition or a list of them. With ``from_file_names``, a
    definition without a name gets that of its file.
    """
    sources: list[Source] = []
    problems: list[Problem] = []
    is_one = isinstance(source, (str, Mapping)) or hasattr(source, "fs")
    for number, item in enumerate([source] if is_one else as_list("source", source), 1):
        try:
            sources += _read(item, f"definition {number}", problems, from_file_names=from_file_names)
        except ServiceInputError as error:
            problems.append(Problem("", str(error)))
    problems += repeated_definitions(sources)
    if problems:
        raise ServiceInputError(f"the definitions cannot be deployed, and nothing was sent:\n{listing(problems)}")
    require_source(sources, "source holds no definition of a workflow", LOSS, allow_empty=allow_empty)
    return sources


def _read(item: Any, place: str, problems: list[Problem], *, from_file_names: bool) -> Iterator[Source]:
    if isinstance(item, Mapping) or (isinstance(item, str) and item.lstrip()[:1] in ("{", "[")):
        yield from _definitions(item, place, problems)
        return
    folder = StoredFolder("source", item)
    for path in folder.files(_ENDING):
        try:
            content = folder.read(path)
        except ServiceInputError as error:
            problems.append(Problem("", str(error)))
            continue
        name = PurePosixPath(path).stem if from_file_names else None
        yield from _definitions(content, path, problems, partial(_beside, folder, PurePosixPath(path).parent), name)


def _beside(folder: StoredFolder, above: PurePosixPath, name: str) -> str:
    return folder.read(str(above / name))


def _definitions(
    item: Any,
    place: str,
    problems: list[Problem],
    read: Callable[[str], str] | None = None,
    file_name: str | None = None,
) -> Iterator[Source]:
    values = [item]
    if not isinstance(item, Mapping):
        try:
            parsed = json.loads(item)
        except (ValueError, RecursionError) as error:
            problems.append(Problem("", f"{place} is not JSON: {error}"))
            return
        values = parsed if isinstance(parsed, list) else [parsed]
    for value in values:
        try:
            definition = parse_definition(value)
            if file_name and not definition.get("name"):
                definition = {**definition, "name": file_name}
            if read is not None:
                definition = code_inside(definition, read)
            read_definition(definition)
        except ServiceInputError as error:
            problems.append(Problem(place, str(error).removesuffix(NOT_SENT)))
        else:
            yield Source(definition, place)


def repeated_definitions(sources: Sequence[Source]) -> list[Problem]:
    by_name, by_id = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for source in sources:
        by_name[source.name].append(source.place)
        if source.id:
            by_id[source.id].append(f"{source.name!r} ({source.place})")
    return [
        Problem("", f"more than one definition is named {name!r}: {', '.join(places)}")
        for name, places in by_name.items()
        if len(places) > 1
    ] + [
        Problem("", f"more than one definition has the id {shown(value)}: {', '.join(places)}. {_COPIES}")
        for value, places in by_id.items()
        if len(places) > 1
    ]


def code_inside(definition: Mapping[str, Any], read: Callable[[str], str]) -> dict[str, Any]:
    """Put code from files, whose paths are relative to the folder of the definition, back into its nodes."""

    def inside(_node: Mapping[str, Any], _name: str, code: Any) -> Any:
        if not isinstance(code, Mapping) or not isinstance(code.get(_FILE), str):
            return code
        path = code[_FILE]
        if not stays_below(path):
            raise ServiceInputError(f"the file of code {path!r} must be below the folder of the definition")
        return read(path)

    return _with_code(definition, inside)


def code_apart(definition: Mapping[str, Any], stem: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the definition with ``{"file": ...}`` in place of code, and the code by the path of its file."""
    files: dict[str, str] = {}

    def apart(node: Mapping[str, Any], name: str, code: Any) -> Any:
        # Expressions and single lines are easiest to read in their node.
        if not isinstance(code, str) or "\n" not in code or code.startswith("="):
            return code
        try:
            code.encode()
        except UnicodeEncodeError:  # JSON can also hold half of a surrogate pair, which no file can
            return code
        taken = {path.casefold() for path in files}
        base = f"{stem}/{_file_name(str(node.get('name')))}"
        candidates = (f"{base}{number}{_CODE[name]}" for number in chain([""], map(" {}".format, count(2))))
        path = next(path for path in candidates if path.casefold() not in taken)
        files[path] = code
        return {_FILE: path}

    return _with_code(definition, apart), files


def _with_code(definition: Mapping[str, Any], change: Callable[[Mapping[str, Any], str, Any], Any]) -> dict[str, Any]:
    nodes = []
    for node in definition.get("nodes") or ():
        parameters = node.get("parameters") if isinstance(node, Mapping) else None
        if not isinstance(parameters, Mapping):
            nodes.append(node)
            continue
        changed = {name: change(node, name, value) if name in _CODE else value for name, value in parameters.items()}
        nodes.append({**node, "parameters": changed})
    return {**definition, "nodes": nodes}


def file_stem(name: str, object_id: str, taken: set[str]) -> str:
    """Turn the name of an object into a file name without a suffix, which no file or folder in ``taken`` has yet."""
    for number in count(1):
        suffix = "" if number == 1 else f" ({plain_id(object_id)})" + (f" {number - 1}" if number > 2 else "")
        stem = _file_name(name, _MAX_BYTES - len(suffix)) + suffix
        # The folder beside another file may have the name of this file, and vice versa.
        claimed = {_as_compared(stem), _as_compared(stem + _ENDING)}
        if claimed.isdisjoint(taken):
            break
        log.warning("More than one object is named %r; the file of %s has its id in its name", name, object_id)
    taken |= claimed
    return stem


def _file_name(name: str, max_bytes: int = _MAX_BYTES) -> str:
    # A leading dot would hide the file, and some file systems drop dots and blanks at the end.
    short = _NOT_IN_FILES.sub("_", name).strip(". ")[:_MAX_CHARS].encode()[:max_bytes]
    return short.decode(errors="ignore").rstrip(". ") or "_"


def _as_compared(name: str) -> str:
    # Some file systems distinguish neither upper and lower case, nor the Unicode forms of a letter.
    return normalize("NFC", name).casefold()
