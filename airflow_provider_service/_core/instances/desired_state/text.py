"""Read YAML or JSON that people wrote: within limits, and with errors that say where, but quote no value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from airflow_provider_service._airflow.arguments import require
from airflow_provider_service.client._http.redaction import hidden
from airflow_provider_service.client._values import is_too_deep, shown
from airflow_provider_service.client.errors import ServiceInputError

#: How many values aliases may repeat, and how deeply values may be nested.
MAX_REPEATED = 100_000
MAX_DEPTH = 50
_MERGE = "tag:yaml.org,2002:merge"
_TYPES = ("null", "bool", "int", "float", "timestamp", "str", "seq", "map")
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


class _RefusedError(Exception):
    def __init__(self, mark: yaml.Mark | None, problem: str) -> None:
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        super().__init__(place + problem)


def parsed(name: str, text: str) -> Any:
    """Parse a text, and return its value; tracebacks do not show the text in it.

    :param name: where the text is from, for messages.
    :raises ServiceInputError: it is neither YAML nor JSON, is empty, holds a key twice or an unusual type, is nested
        too deeply, or grows too large by its aliases.
    """
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
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


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
    seen: set[int] = set()
    repeated, waiting = 0, [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        repeated += id(node) in seen
        seen.add(id(node))
        if depth > MAX_DEPTH:
            raise _RefusedError(node.start_mark, _TOO_DEEP)
        if repeated > MAX_REPEATED:
            raise _RefusedError(node.start_mark, f"its aliases repeat more than {MAX_REPEATED:,} values")
        waiting.extend((inner, depth + 1) for inner in _inside(node))


def _inside(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [one for pair in node.value for one in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else ()
