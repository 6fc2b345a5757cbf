"""What the service would refuse in definitions, found before anything is written, and told for all of them at once.

What a workflow may hold depends on the version of the server, so it is read from the document that the server itself
publishes. Only what that document does not say, such as that two nodes must not share a name, is written here.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._core.connection_check import server_version
from airflow_provider_service.client._values import one_line, shown, type_of
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.client.resources._workflows import writable

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models import Workflow

#: Maximum length of the name of a workflow.
MAX_NAME_CHARS = 128
#: Problems, and places of the same problem, that an error names.
_MAX_LISTED = 50
_MAX_PLACES = 10
# The first versions that look at these; older ones accept such definitions, and run them as well as they can.
_STRUCTURE_SINCE, _IDS_SINCE = (2, 30), (2, 39)
_CONTRACT = "/openapi.yml"
_NO_DOCUMENT = "the document of the server's API cannot be read: unknown keys and settings are not found here"
_UPDATE = re.compile(r"/workflows/\{\w+\}")
_TEXT = {"type": "string", "minLength": 1}
_TARGET = {
    "type": "object",
    "required": ["node", "type", "index"],
    "properties": {"node": _TEXT, "type": _TEXT, "index": {"type": "integer", "minimum": 0}},
}
_OUTPUTS = {"type": "array", "items": {"type": ["array", "null"], "items": _TARGET}}
_NODE = {
    "required": ["name", "type", "position"],
    "properties": {"name": _TEXT, "type": _TEXT, "position": {"minItems": 2, "maxItems": 2}},
}
#: What the server also checks, but its document does not say.
_STRUCTURE = {
    "properties": {
        "nodes": {"items": _NODE},
        "connections": {"additionalProperties": {"type": "object", "additionalProperties": _OUTPUTS}},
    }
}


class Problem(NamedTuple):
    place: str  #: In which definition and node; empty if the text says so.
    text: str


def refuse_all(problems: Iterable[Problem]) -> None:
    if listed := listing(problems):
        raise ServiceInputError(f"the workflows cannot be deployed, and nothing was written:\n{listed}")


def listing(problems: Iterable[Problem]) -> str:
    """List problems, each with its places; those that hundreds of nodes share stay readable."""
    places: dict[str, dict[str, None]] = defaultdict(dict)
    for place, text in problems:
        places[text][place] = None
    lines = [_lines(text, [*where]) for text, where in places.items()]
    return "\n".join(lines[:_MAX_LISTED]) + _more("\n- ", len(lines) - _MAX_LISTED, "problems")


def _lines(text: str, places: Sequence[str]) -> str:
    if len(places) == 1:
        return f"- {places[0]}: {text}" if places[0] else f"- {text}"
    return "\n  - ".join([f"- {text}:", *places[:_MAX_PLACES]]) + _more("\n  - ", len(places) - _MAX_PLACES, "places")


def _more(prefix: str, count: int, what: str) -> str:
    return f"{prefix}and {count} more {what}" if count > 0 else ""


class Contract:
    """What the server accepts as a workflow, by the document that it publishes and by its version."""

    def __init__(self, client: Resources) -> None:
        self._client = client
        config = client.transport.config
        answer = client.transport.page(config.api_root.removeprefix(config.base_url) + _CONTRACT)
        self._document = _read(answer.text) if answer is not None and answer.status_code == 200 else None
        #: What is not found, and why.
        self.gaps = set[str]() if self._document else {_NO_DOCUMENT}

    @cached_property
    def _version(self) -> tuple[int, ...] | None:
        numbers = re.match(r"(\d+)\.(\d+)", server_version(self._client) or "")
        return (int(numbers[1]), int(numbers[2])) if numbers else None

    def problems(self, place: str, definition: Mapping[str, Any], before: Workflow | None = None) -> Iterator[Problem]:
        """Yield why the service would refuse a definition, which :func:`read_definition` has read."""
        # As it is sent: with lists for tuples, and texts as keys.
        sent = json.loads(json.dumps(definition))
        nodes = sent["nodes"]
        if not 1 <= len(sent["name"]) <= MAX_NAME_CHARS:
            yield Problem(place, f"the name of a workflow must have 1 to {MAX_NAME_CHARS} characters")
        if self._document:
            try:
                faults = [*faults_by(self._document, sent)]
            except Exception:  # noqa: BLE001 - whatever a document leads to that is wrong itself
                self._document, faults = None, []
                self.gaps.add(_NO_DOCUMENT)
            yield from (Problem(_inside(place, path, nodes), text) for path, text in faults)
        if before is not None and _is_same_structure(sent, writable(before)):
            return  # the server checks only what changes
        found = faults_by(_STRUCTURE, sent)
        structure = [Problem(_inside(place, path, nodes), text) for path, text in found] or [*_of_names(place, sent)]
        if structure and self._checks(_STRUCTURE_SINCE):
            yield from structure
        shared = [*_of_ids(place, nodes)]
        if shared and self._checks(_IDS_SINCE):
            yield from shared

    def _checks(self, since: tuple[int, int]) -> bool:
        if self._version is None:
            self.gaps.add("the server does not tell its version: faults of nodes and connections are not found here")
        return self._version is not None and self._version >= since


def _is_same_structure(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    return all((sent.get(key) or []) == (stored.get(key) or []) for key in ("nodes", "connections", "nodeGroups"))


def _of_names(place: str, definition: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield names that several nodes have, and names in connections that none has."""
    names = set[str]()
    for node in definition["nodes"]:
        if node["name"] in names:
            yield Problem(f"{place}, node {shown(node['name'])}", "more than one node has this name")
        names.add(node["name"])
    for source, kinds in definition["connections"].items():
        where = f"{place}, connections of {shown(source)}"
        if source not in names:
            yield Problem(where, "there is no node of this name")
        for target in (target for groups in kinds.values() for group in groups for target in group or ()):
            if target["node"] not in names:
                yield Problem(where, f"one leads to {shown(target['node'])}, and there is no node of this name")


def _of_ids(place: str, nodes: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    holders: dict[str, int] = {}
    for number, node in enumerate(nodes):
        node_id = node.get("id")
        if isinstance(node_id, str) and node_id and (holder := holders.setdefault(node_id, number)) != number:
            text = f"node {shown(nodes[holder].get('name'))} has the same id {shown(node_id)}"
            yield Problem(f"{place}, node {shown(node.get('name'))}", text)


def _inside(place: str, path: Sequence[Any], nodes: Sequence[Mapping[str, Any]]) -> str:
    """Say where in a definition something is, by the names of nodes instead of their numbers."""
    keys = [*path]
    if keys[:1] == ["nodes"] and len(keys) > 1:
        name = nodes[keys[1]].get("name")
        place, keys = f"{place}, node {shown(name)}" if name else f"{place}, nodes[{keys[1]}]", keys[2:]
    return f"{place}, {one_line('.'.join(map(str, keys)))}" if keys else place


def _read(text: str) -> Mapping[str, Any] | None:
    """Read the schema of a workflow from a document of OpenAPI 3.0; None if it describes none."""
    # Imported late, since it is slow to import, and only a plan that changes something needs it.
    import yaml

    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
        return workflow_schema(document)
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError, StopIteration):
        return None


def workflow_schema(document: Mapping[str, Any]) -> Mapping[str, Any]:
    operation = next(methods["put"] for path, methods in document["paths"].items() if _UPDATE.fullmatch(path))
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return {"allOf": [schema], "components": document.get("components") or {}}


def faults_by(schema: Mapping[str, Any], definition: Any) -> Iterator[tuple[Sequence[Any], str]]:
    from referencing import Registry

    # With an empty registry, a reference to another address is an error instead of a request.
    for error in _validator()(schema, registry=Registry()).iter_errors(definition):
        yield [*error.absolute_path], _described(error)


@cache
def _validator() -> Any:
    """A validator of JSON Schema as in OpenAPI 3.0, where null is a value of its own kind."""
    from jsonschema import Draft4Validator, validators

    def is_of_type(validator: Any, types: Any, value: Any, described: Mapping[str, Any]) -> Iterator[Any]:
        if value is not None or not described.get("nullable"):
            yield from Draft4Validator.VALIDATORS["type"](validator, types, value, described)

    checks: Any = validators
    return checks.extend(Draft4Validator, {"type": is_of_type})


def _described(error: Any) -> str:
    """Say what is wrong without the value, which may be a secret."""
    rule, wanted, value = str(error.validator), error.validator_value, error.instance
    if rule == "additionalProperties":
        unknown = sorted(value.keys() - error.schema.get("properties", {}).keys())
        return f"the server does not know {', '.join(map(shown, unknown[:_MAX_PLACES]))}"
    if rule == "required":
        return f"it lacks {', '.join(name for name in wanted if name not in value)}"
    if rule == "type":
        return (
            f"it must be of type {' or '.join([wanted] if isinstance(wanted, str) else wanted)}, not {type_of(value)}"
        )
    if rule == "enum":
        return f"it must be one of {', '.join(map(str, wanted))}"
    if rule in ("minItems", "maxItems"):
        return f"it must have {wanted} entries"
    return "it must not be empty" if rule == "minLength" else f"the server's rule {rule} is broken: {shown(wanted)}"
