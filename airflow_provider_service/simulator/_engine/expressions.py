"""The subset of the service's expressions that the simulator evaluates.

``={{ ... }}`` holds ``$json``, ``$execution``, ``$workflow`` and ``$('Node').item.json`` paths, literals, and objects
and arrays of these. Text around the braces makes it a string. Anything else, such as a call of a method, is an
:class:`ExpressionError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>-?\d+(?:\.\d+)?)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>\$?[A-Za-z_][A-Za-z0-9_]*|\$(?=\())
      | (?P<mark>\?\.|[{}\[\]():,.])
    )""",
    re.VERBOSE | re.DOTALL,
)
# The first "}}" ends the expression, even inside an object, as on the service.
_BRACES = re.compile(r"\{\{((?:(?!\}\}).)*)\}\}", re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}


class ExpressionError(Exception):
    """The expression is malformed or outside the simulated subset."""


@dataclass(frozen=True)
class Scope:
    """The values visible to an expression. ``nodes`` maps a node's name to those of its outputs that have items."""

    json: Any
    execution: Mapping[str, Any]
    workflow: Mapping[str, Any]
    nodes: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]


def evaluate(value: Any, scope: Scope) -> Any:
    """Evaluate a node parameter: strings that start with ``=`` are expressions, containers are walked.

    :raises ExpressionError: the expression is outside the subset
    """
    if isinstance(value, dict):
        return {key: evaluate(item, scope) for key, item in value.items()}
    if isinstance(value, list):
        return [evaluate(item, scope) for item in value]
    if not isinstance(value, str) or not value.startswith("="):
        return value
    text = value[1:]
    whole = _BRACES.fullmatch(text.strip())
    if whole:
        return _Parser(whole[1], scope).parse()
    return _BRACES.sub(lambda match: as_text(_Parser(match[1], scope).parse()), text)


def as_text(value: Any) -> str:
    """Write a value as the service puts it inside a string."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def require_simulated(kind: str, values: Mapping[str, Any], **simulated: Any) -> None:
    """Refuse parameters of a node of a kind unless they are missing or have the only values that are simulated.

    :raises ExpressionError: one of them has another value
    """
    for name, value in simulated.items():
        if values.get(name, value) != value:
            raise ExpressionError(f"{name} {values[name]!r} of {kind} is not simulated, only {value!r}")


class _Parser:
    def __init__(self, source: str, scope: Scope) -> None:
        self._scope = scope
        self._tokens = _tokens(source)
        self._position = 0

    def parse(self) -> Any:
        value = self._value()
        if self._peek()[1]:
            raise ExpressionError(f"unexpected {self._peek()[1]!r}")
        return value

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._position]

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._position += bool(token[0])
        return token

    def _accept(self, *marks: str) -> bool:
        if self._peek()[0] == "mark" and self._peek()[1] in marks:
            self._position += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise ExpressionError(f"expected {mark!r}, found {self._peek()[1]!r}")

    def _value(self) -> Any:
        kind, text = self._next()
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind == "string":
            return _unquote(text)
        if kind == "name":
            return self._path(text)
        if text == "{":
            return self._object()
        if text == "[":
            return self._array()
        if text == "(":
            value = self._value()
            self._expect(")")
            return value
        raise ExpressionError(f"unexpected {text!r}")

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._accept("}"):
            kind, text = self._next()
            if kind not in ("name", "string", "number"):
                raise ExpressionError(f"unexpected {text!r}")
            self._expect(":")
            found[_unquote(text) if kind == "string" else text] = self._value()
            if not self._accept(","):
                self._expect("}")
                break
        return found

    def _array(self) -> list[Any]:
        found: list[Any] = []
        while not self._accept("]"):
            found.append(self._value())
            if not self._accept(","):
                self._expect("]")
                break
        return found

    def _path(self, name: str) -> Any:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        value, key = self._root(name), name
        while True:
            if self._accept(".", "?."):
                if self._accept("["):
                    value = self._index(value)
                else:
                    kind, key = self._next()
                    if kind != "name":
                        raise ExpressionError(f"unexpected {key!r}")
                    value = _member(value, key)
            elif self._accept("["):
                value = self._index(value)
            elif self._peek()[1] == "(":
                raise ExpressionError(f"a call of {key}() is not simulated")
            else:
                return value

    def _index(self, value: Any) -> Any:
        key = self._value()
        self._expect("]")
        return _member(value, key)

    def _root(self, name: str) -> Any:
        scope = self._scope
        if name == "$":
            return self._item_of_node()
        roots = {
            "$json": scope.json,
            "$execution": _Known("$execution", scope.execution),
            "$workflow": _Known("$workflow", scope.workflow),
        }
        if name not in roots:
            raise ExpressionError(f"{name} is not simulated")
        return roots[name]

    def _item_of_node(self) -> Any:
        self._expect("(")
        node = self._value()
        self._expect(")")
        if node not in self._scope.nodes:
            raise ExpressionError(f"Referenced node doesn't exist: {node}")
        self._expect(".")
        member = self._next()[1]
        if member not in ("item", "first", "last"):
            raise ExpressionError(f"$('...').{member} is not simulated")
        if member != "item":
            self._expect("(")
            self._expect(")")
        return _Known("the item of a node", {"json": self._json_of(node, member)})

    def _json_of(self, node: str, member: str) -> Any:
        outputs = self._scope.nodes[node]
        if len(outputs) > 1:
            raise ExpressionError("$('...') of a node with items at several outputs is not simulated")
        items = outputs[0] if outputs else [{"json": {}}]
        if member == "item" and len(items) > 1:
            raise ExpressionError("$('...').item of a node with several items is not simulated")
        return items[-1 if member == "last" else 0]["json"]


class _Known(dict[str, Any]):
    """An object of the service, of which only these members are simulated."""

    def __init__(self, name: str, members: Mapping[str, Any]) -> None:
        super().__init__(members)
        self.name = name


def _tokens(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position = 0
    source = source.rstrip()
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"invalid syntax: {source[position : position + 20]!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    found.append(("", ""))
    return found


def _unquote(text: str) -> str:
    body = text[1:-1]
    if text[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError as error:
        raise ExpressionError(f"invalid string {text}") from error


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, _Known) and key not in value:
        raise ExpressionError(f"{key} of {value.name} is not simulated")
    if isinstance(value, Mapping):
        return value.get(str(key))
    if isinstance(value, (list, str)) and isinstance(key, int):
        return value[key] if 0 <= key < len(value) else None
    if isinstance(value, (list, str)) and key == "length":
        return len(value)
    return None
