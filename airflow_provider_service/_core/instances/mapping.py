"""Names and values that differ between instances: read and check them as a whole, and apply them to definitions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.instances.desired_changes import read_desired_state
from airflow_provider_service._core.instances.faults import Problem
from airflow_provider_service._core.instances.references import Named, with_references
from airflow_provider_service._core.instances.source import Source
from airflow_provider_service.client._definitions import tag_names
from airflow_provider_service.client._values import shown, type_of
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.references import Kind

log = logging.getLogger(__name__)

Names = Mapping[str, str]
#: Values of parameters, by workflow name, node name and path of the parameter.
Values = Mapping[str, Mapping[str, Mapping[str, str | float | bool]]]

_KINDS: Mapping[Kind, str] = {"credential": "credentials", "workflow": "workflows", "data table": "data_tables"}
_VALUES = "values"
_LEVELS = ("workflows", "nodes", "parameters")


@dataclass(frozen=True)
class InstanceMapping:
    """The names of objects and the values of nodes that differ in the target instance.

    Each field but ``values`` maps the names in definitions or in a backup to the names in that instance. Names that it
    lacks are the same in both.
    """

    credentials: Names = field(default_factory=dict)
    data_tables: Names = field(default_factory=dict)
    projects: Names = field(default_factory=dict)
    tags: Names = field(default_factory=dict)
    workflows: Names = field(default_factory=dict)
    values: Values = field(default_factory=dict)

    @classmethod
    def read(cls, mapping: object, path: object) -> InstanceMapping:
        if mapping is None and path is None:
            return cls()
        given = _plain(read_desired_state("mapping", mapping, path, path_argument="mapping_path"))
        what = "mapping" if mapping is not None else f"the file {path!r}"
        if problems := list(_problems(what, given)):
            raise ServiceInputError("; ".join(problems))
        return cls(**given)


class MappedNames:
    """Replaces names and values with those of the target instance."""

    def __init__(self, mapping: InstanceMapping, name_by_id: Names) -> None:
        self._mapping = mapping
        #: Names of the workflows that are mapped together, by their ids; definitions may refer to these.
        self._name_by_id = name_by_id
        self._used: set[tuple[str, str]] = set()
        #: Nodes and parameters in the mapping that do not exist.
        self.problems: list[Problem] = []

    def name(self, kind: str, name: str) -> str:
        self._used.add((kind, name))
        names: Names = getattr(self._mapping, kind)
        return names.get(name, name)

    def source(self, source: Source) -> Source:
        """Return a definition for the target instance, where a renamed workflow is found by its new name."""
        definition, new = self.definition(source.name, source.definition), self.name("workflows", source.name)
        if new == source.name:
            return source._replace(definition=definition)
        # Its id may belong to the workflow with the old name.
        content = {name: value for name, value in definition.items() if name != "id"}
        return source._replace(definition={**content, "name": new}, label=None)

    def definition(self, workflow: str, definition: Mapping[str, Any], *, may_lack: bool = False) -> dict[str, Any]:
        """The name stays; with ``may_lack``, a node or parameter that it lacks is no problem, as in a draft."""
        mapped = with_references(definition, self._named)
        if mapped.get("tags") is not None:
            mapped["tags"] = sorted({self.name("tags", tag) for tag in tag_names(mapped)})
        self._used.add((_VALUES, workflow))
        for node, parameters in self._mapping.values.get(workflow, {}).items():
            for path, value in parameters.items():
                try:
                    mapped["nodes"] = _with_value(mapped["nodes"], node, path, value)
                except LookupError:
                    if not may_lack:
                        text = f"there is no single value at {path!r} for the mapping"
                        self.problems.append(Problem(f"{workflow!r}, node {node!r}", text))
        return mapped

    def log_unused(self) -> None:
        """Log unused entries of the mapping, which may be meant for other workflows, or be misspelt."""
        unused = [
            f"{kind.name}: {name!r}"
            for kind in fields(self._mapping)
            for name in getattr(self._mapping, kind.name)
            if (kind.name, name) not in self._used
        ]
        if unused:
            log.info("No workflow uses these names of the mapping: %s", "; ".join(unused))

    def _named(self, named: Named) -> Named:
        # A name beside an id is only for display, and may be outdated.
        by_id = self._name_by_id.get(named.id or "") if named.kind == "workflow" else None
        name = by_id or named.name
        new = self.name(_KINDS[named.kind], name) if name else name
        return named if new == name else replace(named, id=None, name=new)


def _plain(value: Any) -> Any:
    """Return a value whose text tracebacks may show: a mapping holds no secrets."""
    if isinstance(value, Mapping):
        return {_plain(name): _plain(inner) for name, inner in value.items()}
    return str(value) if isinstance(value, str) else value


def _problems(what: str, given: object) -> Iterator[str]:
    kinds = [kind.name for kind in fields(InstanceMapping)]
    if not isinstance(given, Mapping):
        yield f"{what} must be a mapping of {', '.join(kinds)}, not {type_of(given)}"
        return
    for kind, names in given.items():
        if kind not in kinds:
            yield f"{what}: {shown(kind)} is none of {', '.join(kinds)}"
        elif kind == _VALUES:
            yield from _problems_of_values(f"{what}: {kind}", names, _LEVELS)
        else:
            yield from _problems_of_names(f"{what}: {kind}", names)


def _problems_of_names(place: str, names: object) -> Iterator[str]:
    if not isinstance(names, Mapping):
        yield f"{place} must map names to names, not {type_of(names)}"
        return
    for name, new in names.items():
        if not _is_name(name):
            yield f"{place}: {shown(name)} must be the text of a name; put it in quotes"
        elif not _is_name(new):
            yield f"{place}: {shown(name)} must be mapped to the text of a name, not {shown(new)}"


def _problems_of_values(place: str, inside: object, levels: Sequence[str]) -> Iterator[str]:
    if not levels:
        if not (isinstance(inside, str) or (isinstance(inside, (int, float)) and isfinite(inside))):
            yield f"{place} must be text, a number, true or false, not {type_of(inside)}"
    elif not isinstance(inside, Mapping):
        yield f"{place} must be a mapping of {levels[0]}, not {type_of(inside)}"
    else:
        for name, below in inside.items():
            if _is_name(name):
                yield from _problems_of_values(f"{place}: {name!r}", below, levels[1:])
            else:
                yield f"{place}: {shown(name)} must be text; put it in quotes"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _with_value(nodes: Sequence[Any], name: str, path: str, value: Any) -> list[Any]:
    if not any(isinstance(node, Mapping) and node.get("name") == name for node in nodes):
        raise LookupError(name)
    return [
        {**node, "parameters": _replaced(node.get("parameters"), path.split("."), value)}
        if isinstance(node, Mapping) and node.get("name") == name
        else node
        for node in nodes
    ]


def _replaced(inside: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        if isinstance(inside, (Mapping, list)):
            raise LookupError
        return value
    first, rest = path[0], path[1:]
    if isinstance(inside, list) and first.isdecimal() and first.isascii() and len(first) < 10:
        return [*inside[: int(first)], _replaced(inside[int(first)], rest, value), *inside[int(first) + 1 :]]
    if isinstance(inside, Mapping) and first in inside:
        return {**inside, first: _replaced(inside[first], rest, value)}
    raise LookupError(first)
