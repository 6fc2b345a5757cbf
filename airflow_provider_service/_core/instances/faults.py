"""What the service would refuse in definitions, found before anything is written, and told for all of them at once.

What a workflow may hold depends on the version of the server, so it is read from the document that the server itself
publishes. Only what that document does not say, such as that two nodes must not share a name, is written here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service._core.connection_check import server_version
from airflow_provider_service.client._values import list_or_empty, shown, type_of
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources

#: Maximum length of the name of a workflow.
MAX_NAME_CHARS = 128
#: Problems, and places of the same problem, that an error names.
_MAX_LISTED = 50
_MAX_PLACES = 10
# The first versions that look at these; older ones accept such definitions, and run them as well as they can.
_STRUCTURE_SINCE, _IDS_SINCE = (2, 30), (2, 39)
_CONTRACT = "/openapi.yml"
_UPDATE = re.compile(r"/workflows/\{\w+\}")


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
    return "\n".join(lines[:_MAX_LISTED]) + _more("\n- ", len(lines) - _MAX_LISTED, "problems of other kinds")


def _lines(text: str, places: Sequence[str]) -> str:
    if len(places) == 1:
        return f"- {places[0]}: {text}" if places[0] else f"- {text}"
    return "\n  - ".join([f"- {text}:", *places[:_MAX_PLACES]]) + _more("\n  - ", len(places) - _MAX_PLACES, "places")


def _more(prefix: str, count: int, what: str) -> str:
    return f"{prefix}and {count} more {what}" if count > 0 else ""


class Contract:
    """What the server accepts as a workflow, by the document that it publishes and by its version."""

    def __init__(self, client: Resources) -> None:
        config = client.transport.config
        answer = client.transport.page(config.api_root.removeprefix(config.base_url) + _CONTRACT)
        self._faults = by_document(answer.text) if answer is not None and answer.status_code == 200 else None
        #: Whether the server publishes its document, which its administrator can switch off.
        self.is_published = self._faults is not None
        self._client = client

    @cached_property
    def _version(self) -> tuple[int, ...]:
        """A server that does not tell its version is taken for a new one."""
        numbers = re.match(r"(\d+)\.(\d+)", server_version(self._client) or "")
        return (int(numbers[1]), int(numbers[2])) if numbers else _IDS_SINCE

    def problems(self, place: str, definition: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield why the service would refuse a definition, which :func:`read_definition` has read."""
        if not 1 <= len(definition["name"]) <= MAX_NAME_CHARS:
            yield Problem(place, f"the name of a workflow must have 1 to {MAX_NAME_CHARS} characters")
        nodes = definition["nodes"]
        if self._faults:
            for path, text in self._faults(definition):
                yield Problem(_inside(place, path, nodes), text)
        if structure := [*_of_nodes(place, nodes), *_of_connections(place, nodes, definition["connections"])]:
            yield from structure if self._version >= _STRUCTURE_SINCE else ()
        if shared := [*_of_ids(place, nodes)]:
            yield from shared if self._version >= _IDS_SINCE else ()


def _of_nodes(place: str, nodes: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    names = set[str]()
    for number, node in enumerate(nodes):
        name, position = node.get("name"), node.get("position")
        where = f"{place}, node {name!r}" if name else f"{place}, nodes[{number}]"
        yield from (Problem(where, f"the node has no {key}") for key in ("name", "type") if not node.get(key))
        if not isinstance(position, list) or len(position) != 2:
            yield Problem(where, "the position of a node must be a list of two numbers")
        if name and name in names:
            yield Problem(where, "more than one node has this name")
        names.add(str(name))


def _of_ids(place: str, nodes: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    holders: dict[str, int] = {}
    for number, node in enumerate(nodes):
        node_id = node.get("id")
        if isinstance(node_id, str) and node_id and (holder := holders.setdefault(node_id, number)) != number:
            other = nodes[holder].get("name")
            yield Problem(f"{place}, node {node.get('name')!r}", f"node {other!r} has the same id {shown(node_id)}")


def _of_connections(
    place: str, nodes: Sequence[Mapping[str, Any]], connections: Mapping[str, Any]
) -> Iterator[Problem]:
    names = {node.get("name") for node in nodes}
    for source, outputs in connections.items():
        where = f"{place}, connections of {source!r}"
        if source not in names:
            yield Problem(where, "there is no node of this name")
        kinds = outputs if isinstance(outputs, Mapping) else {}
        for groups in kinds.values():
            if not isinstance(groups, list):
                yield Problem(where, "the outputs of a node must be a list")
            for target in (target for group in list_or_empty(groups) for target in list_or_empty(group)):
                if not isinstance(target, Mapping) or not {"node", "type", "index"} <= target.keys():
                    yield Problem(where, "a connection needs the keys node, type and index")
                elif target["node"] not in names:
                    yield Problem(where, f"one leads to {shown(target['node'])}, and there is no node of this name")


def _inside(place: str, path: Sequence[Any], nodes: Sequence[Mapping[str, Any]]) -> str:
    """Say where in a definition something is, by the names of nodes instead of their numbers."""
    keys = [*map(str, path)]
    if keys[:1] == ["nodes"] and len(keys) > 1:
        place, keys = f"{place}, node {nodes[path[1]].get('name')!r}", keys[2:]
    return f"{place}, {'.'.join(keys)}" if keys else place


def by_document(text: str) -> Callable[[Any], Iterator[tuple[Sequence[Any], str]]] | None:
    """Return what finds the faults of a workflow, by a document of OpenAPI 3.0; None if it describes no workflow."""
    # Imported late: both are slow to import, and only a plan that changes something needs them.
    import yaml
    from jsonschema import Draft4Validator, validators
    from jsonschema.exceptions import SchemaError

    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
        operation = next(methods["put"] for path, methods in document["paths"].items() if _UPDATE.fullmatch(path))
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        whole = {"allOf": [schema], "components": document.get("components") or {}}
        Draft4Validator.check_schema(schema)
    except (yaml.YAMLError, LookupError, TypeError, AttributeError, StopIteration, SchemaError):
        return None

    def is_of_type(validator: Any, types: Any, value: Any, described: Mapping[str, Any]) -> Iterator[Any]:
        if value is not None or not described.get("nullable"):
            yield from Draft4Validator.VALIDATORS["type"](validator, types, value, described)

    checks: Any = validators
    validator = checks.extend(Draft4Validator, {"type": is_of_type})(whole)

    def faults(definition: Any) -> Iterator[tuple[Sequence[Any], str]]:
        for error in validator.iter_errors(definition):
            yield [*error.absolute_path], _described(error)

    return faults


def _described(error: Any) -> str:
    """Say what is wrong without the value, which may be a secret."""
    rule, value = str(error.validator), error.validator_value
    if rule == "additionalProperties":
        unknown = sorted(error.instance.keys() - error.schema.get("properties", {}).keys())
        return f"the server does not know {', '.join(map(shown, unknown))}"
    if rule == "type":
        return f"it must be of type {value}, not {type_of(error.instance)}"
    if rule == "enum":
        return f"it must be one of {', '.join(map(str, value))}"
    return f"the server's rule {rule} is broken: {shown(value)}"
