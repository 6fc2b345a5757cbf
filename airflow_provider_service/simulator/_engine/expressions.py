"""The subset of the service's expressions that the simulator evaluates, and the If, Filter and Switch nodes.

``={{ ... }}`` holds ``$json``, ``$execution``, ``$workflow`` and ``$('Node').item.json`` paths, literals, and objects
and arrays of these. Text around the braces makes it a string. Anything else, such as a call of a method or an unknown
operator of a condition, is an :class:`ExpressionError`, since a test must not pass because of a guessed branch.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
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


Items = list[dict[str, Any]]
#: The scope of expressions for the JSON of an input item.
ScopeOf = Callable[[dict[str, Any]], Scope]


def evaluate(value: Any, scope: Scope) -> Any:
    """Evaluate a node parameter: strings that start with ``=`` are expressions, containers are walked."""
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
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def require_simulated(kind: str, values: Mapping[str, Any], **simulated: Any) -> None:
    """Refuse parameters of a node of a kind unless they are missing or have the only values that are simulated."""
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
        members: dict[str, Any] = {}
        while not self._accept("}"):
            kind, text = self._next()
            if kind not in ("name", "string", "number"):
                raise ExpressionError(f"unexpected {text!r}")
            self._expect(":")
            members[_unquote(text) if kind == "string" else text] = self._value()
            if not self._accept(","):
                self._expect("}")
                break
        return members

    def _array(self) -> list[Any]:
        elements: list[Any] = []
        while not self._accept("]"):
            elements.append(self._value())
            if not self._accept(","):
                self._expect("]")
                break
        return elements

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
        if name == "$":
            return self._item_of_node()
        if name == "$json":
            return self._scope.json
        if name == "$execution":
            return _Known(name, self._scope.execution)
        if name == "$workflow":
            return _Known(name, self._scope.workflow)
        raise ExpressionError(f"{name} is not simulated")

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
        outputs = self._scope.nodes[node]
        if len(outputs) > 1:
            raise ExpressionError("$('...') of a node with items at several outputs is not simulated")
        items = outputs[0] if outputs else [{"json": {}}]
        if member == "item" and len(items) > 1:
            raise ExpressionError("$('...').item of a node with several items is not simulated")
        return _Known("the item of a node", {"json": items[-1 if member == "last" else 0]["json"]})


class _Known(dict[str, Any]):
    """An object of the service, of which only these members are simulated."""

    def __init__(self, name: str, members: Mapping[str, Any]) -> None:
        super().__init__(members)
        self.name = name


def _tokens(source: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    source = source.rstrip()
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"invalid syntax: {source[position : position + 20]!r}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return [*tokens, ("", "")]


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


# ---------------------------------------------------------------- conditions

_Comparison = Callable[[Any, Any], bool]
_ORDER: dict[str, _Comparison] = {"gt": operator.gt, "lt": operator.lt, "gte": operator.ge, "lte": operator.le}
_EQUALITY: dict[str, _Comparison] = {"equals": operator.eq, "notEquals": operator.ne}
_TEXT: dict[str, _Comparison] = {
    **_EQUALITY,
    "contains": operator.contains,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "notContains": lambda left, right: right not in left,
    "notStartsWith": lambda left, right: not left.startswith(right),
    "notEndsWith": lambda left, right: not left.endswith(right),
}
_LENGTH = {f"length{name[0].upper()}{name[1:]}": compare for name, compare in {**_ORDER, **_EQUALITY}.items()}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def holds(conditions: Mapping[str, Any], item: int = 0) -> bool:
    """Whether conditions hold; their values must have been evaluated."""
    options = conditions.get("options") or {}
    combinator = conditions.get("combinator", "and")
    if combinator not in ("and", "or"):
        raise ExpressionError(f"combinator {combinator!r} is not simulated")
    results = (
        _holds(condition, options, f"[condition {number}, item {item}]")
        for number, condition in enumerate(conditions.get("conditions") or [])
    )
    return all(results) if combinator == "and" else any(results)


def _holds(condition: Mapping[str, Any], options: Mapping[str, Any], place: str) -> bool:
    by = condition.get("operator") or {}
    kind, operation = by.get("type"), by.get("operation")
    unknown = ExpressionError(f"operator {kind}:{operation} of conditions is not simulated")
    left, right = condition.get("leftValue"), condition.get("rightValue")
    if operation in ("exists", "notExists"):
        return (left is not None) is (operation == "exists")
    if kind not in _TYPES:
        raise unknown
    strict = options.get("typeValidation") == "strict"
    left = _as_type(left, kind, strict, place)
    if operation in ("empty", "notEmpty"):
        is_empty = left is None or (kind in ("string", "array", "object") and not left)
        return is_empty is (operation == "empty")
    if kind == "boolean" and operation in ("true", "false"):
        return bool(left) is (operation == "true")
    ignore_case = not options.get("caseSensitive")
    if kind == "array" and operation in ("contains", "notContains"):
        wanted = _folded(right, ignore_case)
        return any(_is_same(_folded(value, ignore_case), wanted) for value in left or []) is (operation == "contains")
    if kind == "array" and operation in _LENGTH:
        return _LENGTH[operation](len(left or []), _not_none(_as_type(right, "number", strict, place)))
    right = _as_type(right, by.get("rightType", kind), strict, place)
    if kind == "string" and operation in _TEXT:
        return _TEXT[operation](_folded(left or "", ignore_case), _folded(right or "", ignore_case))
    if kind == "number" and operation in _ORDER:
        return _ORDER[operation](_not_none(left), _not_none(right))
    if kind in ("number", "boolean") and operation in _EQUALITY:
        return _EQUALITY[operation](left, _not_none(right))
    raise unknown


def _as_type(value: Any, kind: str, strict: bool, place: str) -> Any:
    is_of_kind = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if value is None or is_of_kind:
        return value
    if strict:
        actual = next(name for name, types in reversed(_TYPES.items()) if isinstance(value, types))
        raise ExpressionError(
            f"Wrong type: '{as_text(value)}' is {_article(actual)} but was expecting {_article(kind)} {place}"
        )
    if kind == "string":
        return as_text(value)
    if kind == "number" and isinstance(value, str) and value.strip():
        try:
            return float(value)
        except ValueError:
            text = f"Conversion error: the string '{value}' can't be converted to a number {place}"
            raise ExpressionError(text) from None
    if kind == "boolean" and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise ExpressionError(f"the conversion of {as_text(value)!r} to {_article(kind)} is not simulated")


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _not_none(value: Any) -> Any:
    # Here "undefined" and null are one, but the service compares them with numbers in different ways.
    if value is None:
        raise ExpressionError("a comparison with nothing is not simulated")
    return value


def _folded(value: Any, ignore_case: bool) -> Any:
    return value.lower() if ignore_case and isinstance(value, str) else value


def _is_same(left: Any, right: Any) -> bool:
    # The service compares lists and objects by identity.
    return not isinstance(left, (list, dict)) and isinstance(left, bool) is isinstance(right, bool) and left == right


# ---------------------------------------------------------------- nodes that choose outputs

IF = "n8n-nodes-base.if"
FILTER = "n8n-nodes-base.filter"
SWITCH = "n8n-nodes-base.switch"
#: The oldest versions of the nodes whose conditions are simulated.
_OLDEST = {IF: 2, FILTER: 2, SWITCH: 3}


def route(node: Mapping[str, Any], items: Items, scope_of: ScopeOf) -> list[Items]:
    kind, version = node["type"], float(node.get("typeVersion", 1))
    if version < _OLDEST[kind]:
        raise ExpressionError(f"version {version:g} of {kind} is not simulated, only {_OLDEST[kind]} and newer ones")
    written = node.get("parameters") or {}
    outputs: list[Items] = [[] for _ in range(_count(kind, written))]
    for index, item in enumerate(items):
        parameters = evaluate(written, scope_of(item["json"]))
        if kind == SWITCH:
            chosen = _switched(parameters, len(outputs), index)
        else:
            # The second output of a Filter, with the items that it discards, is in the data, too.
            chosen = [0] if holds(parameters.get("conditions") or {}, index) else [1]
        for output in chosen:
            outputs[output].append({"pairedItem": {"item": index}, **item})
    return outputs


def _count(kind: str, parameters: Mapping[str, Any]) -> int:
    if kind != SWITCH:
        return 2
    if parameters.get("mode") == "expression":
        return int(parameters.get("numberOutputs", 4))
    return len(_rules(parameters)) + int(_fallback(parameters) == "extra")


def _switched(parameters: Mapping[str, Any], count: int, item: int) -> list[int]:
    if parameters.get("mode") == "expression":
        return [_existing(parameters.get("output"), count)]
    rules = enumerate(_rules(parameters))
    matching = [output for output, rule in rules if holds(rule.get("conditions") or {}, item)]
    if matching:
        return matching if (parameters.get("options") or {}).get("allMatchingOutputs") else matching[:1]
    fallback = _fallback(parameters)
    if fallback == "none":
        return []
    return [count - 1 if fallback == "extra" else _existing(fallback, count)]


def _rules(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = (parameters.get("rules") or {}).get("values") or []
    return rules


def _fallback(parameters: Mapping[str, Any]) -> Any:
    return (parameters.get("options") or {}).get("fallbackOutput", "none")


def _existing(output: Any, count: int) -> int:
    if isinstance(output, bool) or not isinstance(output, int) or not 0 <= output < count:
        raise ExpressionError(f"there is no output {as_text(output)} among {count}")
    return output
