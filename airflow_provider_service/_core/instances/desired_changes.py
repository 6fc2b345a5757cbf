"""The changes that bring an instance to its desired state, and the reading of that state from values, text or a file.

People write YAML or JSON. It is read within limits, and errors say where, but quote no value, which may be a secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import yaml

from airflow_provider_service._core.arguments import as_texts, refuse, repeated, require, require_source
from airflow_provider_service._core.text_table import first_of
from airflow_provider_service.client._http.redaction import hidden
from airflow_provider_service.client._values import is_too_deep, shown, type_of
from airflow_provider_service.client.errors import ServiceInputError, ServiceNotFoundError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources


Action = Literal["create", "update", "delete"]
_MAX_NAMED = 20
#: How many values aliases may repeat, and how deeply values may be nested.
MAX_REPEATED = 100_000
MAX_DEPTH = 50
_MERGE = "tag:yaml.org,2002:merge"
_TYPES = ("null", "bool", "int", "float", "timestamp", "str", "seq", "map")
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


@dataclass(frozen=True)
class DesiredStateChange:
    """A change that brings one object to its declared state. It shows no secrets."""

    action: Action
    name: str
    details: Mapping[str, Any] = field(default_factory=dict)
    #: Makes the change. Safe to repeat.
    perform: Callable[[Resources], object] = field(default=lambda _: None, repr=False, compare=False)

    def to_xcom(self) -> dict[str, Any]:
        return {"action": self.action, "name": self.name, **self.details}

    def words(self) -> str:
        details = ", ".join(f"{name} {value}" for name, value in self.details.items())
        return f"{self.action} {self.name!r}" + (f" ({details})" if details else "")


@dataclass(frozen=True)
class DesiredStatePlan:
    """The changes, in the order in which they are made: deletions come last."""

    changes: Sequence[DesiredStateChange]
    unchanged: int  #: Number of objects that are already as declared.

    def count(self, action: Action) -> int:
        return sum(change.action == action for change in self.changes)


@dataclass(frozen=True)
class Prune:
    """Selects objects to delete unless they are declared: by exact names or a prefix, but never all objects."""

    names: frozenset[str] = frozenset()
    prefix: str | None = None
    allow_empty: bool = False  #: Whether the prefix selects objects even if none is declared.

    @classmethod
    def of(cls, prune: bool, names: object, prefix: object, *, allow_empty: bool) -> Prune:
        is_named = names is not None or prefix is not None
        require(prune or not is_named, "prune_names and prune_prefix have no effect without prune=True")
        if prefix is not None and (not isinstance(prefix, str) or not prefix.strip()):
            refuse("prune_prefix", "text that is not empty", prefix)
        return cls(frozenset(() if names is None else as_texts("prune_names", names)), prefix, allow_empty)

    def deletions(
        self, existing: Iterable[Any], desired: Iterable[str], delete: Callable[[Resources, Any], object]
    ) -> list[DesiredStateChange]:
        declared = set(desired)
        both = sorted(self.names & declared)
        require(not both, f"prune_names holds {', '.join(map(repr, both))}, which is declared as well")
        deletions, by_prefix = [], []
        for item in existing:
            name = str(item.key if hasattr(item, "key") else item.name)
            has_prefix = self.prefix is not None and name.startswith(self.prefix)
            if name in declared or not (name in self.names or has_prefix):
                continue
            if name not in self.names:
                by_prefix.append(repr(name))
            deletions.append(DesiredStateChange("delete", name, perform=partial(_delete, delete=delete, item=item)))
        require_source(
            declared or not by_prefix,
            "nothing is declared",
            f"prune_prefix={self.prefix!r} would delete {first_of(by_prefix, _MAX_NAMED)}",
            allow_empty=self.allow_empty,
        )
        return deletions


def _delete(client: Resources, delete: Callable[[Resources, Any], object], item: Any) -> None:
    # It has just been read: someone else deleted it, or the answer to this call's first try was lost.
    with suppress(ServiceNotFoundError):
        delete(client, item)


def read_desired_state(name: str, value: object, path: object, *, path_argument: str = "path") -> Any:
    if value is not None:
        return _parsed(name, value) if isinstance(value, str) else value
    if not isinstance(path, str):
        refuse(path_argument, "a path or an address of object storage", path)
    from airflow_provider_service._core.object_storage import reading

    try:
        with reading(path_argument, path) as file:
            text = hidden(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ServiceInputError(f"the file {path!r} is not UTF-8 text") from None
    except OSError as error:
        raise ServiceInputError(f"the file {path!r} cannot be read: {error.strerror or error}") from error
    return _parsed(f"the file {path!r}", text)


def named_values(name: str, value: object) -> Mapping[str, Any]:
    require(isinstance(value, Mapping), f"{name} must be a mapping of names, not {type_of(value)}")
    assert isinstance(value, Mapping)  # noqa: S101 - for type checkers
    return dict(zip(names_in(name, list(value)), value.values(), strict=True))


def require_short(kind: str, names: Iterable[str], max_chars: int) -> None:
    too_long = [name for name in names if len(name) > max_chars]
    require(not too_long, f"the name of a {kind} has at most {max_chars} characters: {', '.join(map(repr, too_long))}")


def names_in(name: str, names: Sequence[object]) -> list[str]:
    """Return declared names without surrounding blanks, which the service removes as well."""
    for declared in names:
        if not isinstance(declared, str) or not declared.strip():
            refuse(f"each name in {name}", "text that is not empty", declared)
    stripped = [str(declared).strip() for declared in names]
    twice = sorted(repeated(stripped))
    require(not twice, f"{name} has {', '.join(map(repr, twice))} more than once")
    return stripped


class _RefusedError(Exception):
    def __init__(self, mark: yaml.Mark | None, problem: str) -> None:
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        super().__init__(place + problem)


def _parsed(name: str, text: str) -> Any:
    """Parse a text, and return its value, whose text tracebacks do not show."""
    problem = ""
    # Not raised while the error is handled: errors of the parsers show the text, which may hold secrets.
    try:
        value = _loaded(text)
    except _RefusedError as error:
        problem = str(error)
    if problem:
        raise ServiceInputError(f"{name} cannot be read as YAML or JSON: {problem}")
    require(value is not None, f"{name} is empty")
    return value


def _loaded(text: str) -> Any:
    try:
        # YAML allows no tabs where JSON does.
        value = json.loads(text, object_pairs_hook=_once)
        # Airflow raises the limit of Python's recursion for a process. The YAML parser counts what the lists hold, too.
        if is_too_deep(value, MAX_DEPTH - 1):
            raise RecursionError
        return hidden(value)
    except (RecursionError, _TwiceError):
        text = text.replace("\t", " ")  # only the YAML parser reports the line
    except ValueError:
        pass
    return hidden(_load_yaml(text))


class _TwiceError(Exception):
    """A duplicate key of an object; parsers would silently keep the last."""


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise _TwiceError
    return mapping


def _load_yaml(text: str) -> Any:
    try:
        loader = _Loader(text)
    except yaml.YAMLError:
        raise _RefusedError(None, "it has characters that text cannot have") from None
    try:
        return loader.get_single_data()
    except RecursionError:
        raise _RefusedError(loader.get_mark(), _TOO_DEEP) from None
    except yaml.MarkedYAMLError as error:
        raise _RefusedError(error.problem_mark or error.context_mark, "the syntax is wrong") from None
    except yaml.YAMLError:
        raise _RefusedError(loader.get_mark(), "it holds characters that YAML does not allow") from None


class _Loader(yaml.SafeLoader):
    """Accepts the types of JSON and dates, and raises one error for all that SafeLoader fails on in many ways."""

    yaml_constructors = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in _TYPES
    }

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names: set[Any] = set()
        # Checked here, because merged keys are added to the node later.
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _RefusedError(key.start_mark, "a list or a mapping cannot be a key")
            if key.tag == _MERGE:
                continue
            name = self.construct_object(key)
            if name in names:
                raise _RefusedError(key.start_mark, f"the key {shown(name)} is there more than once")
            names.add(name)
        return node

    def construct_document(self, node: yaml.Node) -> Any:
        _check_extent(node)
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError):
            raise _RefusedError(node.start_mark, "this value does not fit its type") from None


def _check_extent(root: yaml.Node) -> None:
    """Refuse text that is nested too deeply or repeats too much, including aliases, which may be recursive."""
    visited: set[int] = set()
    repetitions, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        repetitions += id(node) in visited
        visited.add(id(node))
        if depth > MAX_DEPTH:
            raise _RefusedError(node.start_mark, _TOO_DEEP)
        if repetitions > MAX_REPEATED:
            raise _RefusedError(node.start_mark, f"its aliases repeat more than {MAX_REPEATED:,} values")
        if isinstance(node, yaml.MappingNode):
            waiting.extend((inner, depth + 1) for pair in node.value for inner in pair)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend((inner, depth + 1) for inner in node.value)
