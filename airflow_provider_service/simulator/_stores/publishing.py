"""What keeps a workflow from being published, judged as the real server does, by its description of its node types.

It first fills in the defaults of the parameters that its editor would show, and drops all others, even stored ones.
``tests/live/test_publishing.py`` compares both.
"""

from __future__ import annotations

import json
import lzma
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from airflow_provider_service.simulator._engine.expressions import as_text
from airflow_provider_service.simulator._engine.nodes import CONVERSIONS, SUB_WORKFLOW_TRIGGER, Node
from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._validation import ApiError, is_at_least

#: What ``scripts/node_types.py`` reads from a real server of each generation.
DATA = Path(__file__).with_name("node_types.json.xz")
#: Facts about a node type, a property or a credential, mostly in the form in which the server describes it.
Description = Mapping[str, Any]

# Triggers that only the editor starts. The server's description does not tell that the last one is none.
_MANUAL = {"n8n-nodes-base.manualTrigger", "@n8n/n8n-nodes-langchain.manualChatTrigger"}
_EVALUATION = "n8n-nodes-base.evaluationTrigger"
_NOT_COUNTED = {*_MANUAL, _EVALUATION, SUB_WORKFLOW_TRIGGER, "n8n-nodes-base.errorTrigger"}


@cache
def _data() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(lzma.decompress(DATA.read_bytes()))
    return content


def generations() -> list[str]:
    """The generations that are known, newest first."""
    return list(_data()["generations"])


@cache
def node_types(version: str) -> dict[str, list[Description]]:
    """The types of the newest generation that is not newer than a version, each with an entry for every description."""
    names = generations()
    name = next((name for name in names if is_at_least(version, name)), names[-1])
    properties = _data()["properties"]
    return {
        kind: [{**entry, "properties": [properties[index] for index in entry["properties"]]} for entry in entries]
        for kind, entries in _data()["generations"][name].items()
    }


class NodeTypes:
    """The node types of the service's version, and those of its community packages.

    ``allow_unknown`` lets it publish other types as well, which then lack nothing, and start runs if their names end
    with ``Trigger``.
    """

    def __init__(self, host: Host, packages: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
        self._host = host
        self._packages = packages
        self.allow_unknown = False

    def find(self, node: Node) -> Description | None:
        """The description of a node's type in the node's version; None if the service has none."""
        kind = str(node.get("type"))
        entries = self._listed(kind)
        if not entries:
            installed = {each["type"] for package in self._packages() for each in package["installedNodes"]}
            is_known = self.allow_unknown or kind in installed
            return {"trigger": kind.endswith("Trigger"), "properties": []} if is_known else None
        if len(entries) == 1:  # its class takes any version
            return entries[0]
        version = node.get("typeVersion") or entries[-1]["default"]
        return next((entry for entry in entries if version in entry["versions"]), None)

    def _listed(self, kind: str) -> Sequence[Description]:
        return node_types(self._host.version).get(kind, ())

    def has_webhooks(self, node: Node) -> bool:
        return bool((self.find(node) or {}).get("webhooks"))

    def count_triggers(self, nodes: Sequence[Node]) -> int:
        """How many nodes start production runs by themselves."""
        return sum(
            described.get("webhooks") == "start"
            or bool(described.get("polling") or (described.get("trigger") and not described.get("webhooks")))
            for node in nodes
            if not node.get("disabled") and node["type"] not in _NOT_COUNTED
            if (described := self.find(node)) is not None
        )

    def require_publishable(self, nodes: Sequence[Node], connections: Mapping[str, Any]) -> None:
        described = []
        for node in nodes:
            found = self.find(node)
            if found is None:
                raise ApiError(400, self._unknown(str(node.get("type")), node.get("typeVersion")))
            if not node.get("disabled"):
                described.append((node, found))
        triggers = [node["type"] for node, found in described if _is_trigger(node, found)]
        if not set(triggers) - _MANUAL:
            text = "Workflow cannot be activated because it has no trigger node. "
            raise ApiError(400, text + "At least one trigger, webhook, or polling node is required.")
        if not is_at_least(self._host.version, "2.20"):
            return
        connected = _connected(connections)
        faults = [
            "\n  - ".join([f'Node "{node.get("name")}":', *issues])
            for node, found in described
            if node.get("name") in connected or _is_trigger(node, found)
            if (issues := list(_issues(node, found)))
        ]
        if faults:
            count = f"{len(faults)} node{'s' if len(faults) > 1 else ''}"
            text = f"Cannot publish workflow: {count} have configuration issues:"
            raise ApiError(400, "\n\n".join([text, *faults]))

    def _unknown(self, kind: str, version: Any) -> str:
        listed = self._listed(kind)
        if listed and not is_at_least(self._host.version, "2.41"):
            return "Cannot read properties of undefined (reading 'execute')"
        if listed:
            versions = sorted(version for entry in listed for version in entry["versions"])
            names, name = ", ".join(map(str, versions)), kind.rpartition(".")[2]
            text = f'Node type "{name}" is not available in version {version}. Available versions: {names}.'
            return f"{text} Use the latest version {versions[-1]}."
        kind = kind.removesuffix("Tool")
        if self._listed(kind):
            return "Node cannot be used as a tool"
        return f"Unrecognized node type: {kind if '.' in kind else f'{kind}.undefined'}"


def _is_trigger(node: Node, described: Description) -> bool:
    is_described = described.get("trigger") or described.get("webhooks") or described.get("polling")
    return bool(is_described) and node["type"] != _EVALUATION


def _connected(connections: Mapping[str, Any]) -> set[str]:
    names = {source for source, by_kind in connections.items() if by_kind}
    for by_kind in connections.values():
        names |= {target["node"] for outputs in by_kind.values() for targets in outputs for target in targets or []}
    return names


def _issues(node: Node, described: Description) -> Iterator[str]:
    parameters = _filled(described["properties"], node.get("parameters") or {}, node)
    for credential in described.get("credentials", ()):
        if not _is_shown(credential, parameters, parameters, node):
            continue
        reference = (node.get("credentials") or {}).get(credential["name"])
        name = credential.get("displayName", credential["name"])
        if reference in (None, ""):
            yield f"Missing required credential: {name}"
        elif not (isinstance(reference, dict) and reference.get("id")):
            yield f"Credential not configured: {name}"
    faults = (_faults(rule, parameters, parameters, node) for rule in described["properties"])
    try:
        names = dict.fromkeys(chain.from_iterable(faults))
    except (AttributeError, KeyError, TypeError):  # parameters of an odd shape
        yield "Error validating node parameters"
        return
    if names:
        yield f"Missing or invalid required parameters: {', '.join(names)}"


# ---------------------------------------------------------------- defaults

#: Stands for a parameter that is not stored, which differs from one that is null.
_ABSENT: Any = object()

_GROUPS = ("collection", "fixedCollection")


def _filled(
    rules: Sequence[Description], values: Any, node: Node, root: Any = None, *, in_collection: bool = False
) -> dict[str, Any]:
    """The values of the parameters that are shown, with the defaults of those that are not stored."""
    values = values if isinstance(values, dict) else {}
    repeated = {name for name, count in Counter(rule["name"] for rule in rules).items() if count > 1}
    simple: dict[str, Any] = {}
    for rule in [*rules, *rules]:  # twice, since whether one is shown may depend on one that comes later
        is_skipped = rule["type"] in _GROUPS or (in_collection and rule["name"] not in values)
        # Of several parameters with one name, one is shown.
        if not is_skipped and (rule["name"] not in repeated or _is_shown(rule, simple, root or simple, node)):
            simple[rule["name"]] = _value(rule, values)
    root = root or simple
    filled: dict[str, Any] = {}
    for rule in rules:
        name, kind = rule["name"], rule["type"]
        if (in_collection and name not in values) or not _is_shown(rule, simple, root, node):
            continue
        stored = values.get(name, rule.get("default", _ABSENT))
        if kind == "fixedCollection":
            groups = stored.items() if isinstance(stored, dict) else ()
            filled[name] = {
                option: [_filled(children, each, node, root) for each in group]
                if rule.get("multipleValues") and isinstance(group, list)
                else _filled(children, group, node, root)
                for option, group in groups
                if (children := rule.get("options", {}).get(option)) is not None
            }
        elif kind == "collection" and name in values and not rule.get("multipleValues"):
            filled[name] = _filled(rule.get("options", ()), stored, node, root, in_collection=True)
        else:
            filled[name] = stored if kind == "collection" else _value(rule, values)
    return filled


def _value(rule: Description, values: Mapping[str, Any]) -> Any:
    name, kind, default = rule["name"], rule["type"], rule.get("default", _ABSENT)
    value = values.get(name, _ABSENT)
    if value is _ABSENT and kind == "resourceLocator" and isinstance(default, dict):
        return {"__rl": True, **default}
    if value is _ABSENT or (value is None and kind not in ("boolean", "number", "options", "resourceLocator")):
        value = default
    if rule.get("noDataExpression") and isinstance(value, str):
        value = value.removeprefix("=")
    return value


# ---------------------------------------------------------------- whether a parameter or credential is shown


def _is_shown(rule: Description, values: Any, root: Any, node: Node) -> bool:
    conditions = rule.get("displayOptions", {})
    for key, wanted in conditions.get("show", {}).items():
        found = _compared(key, values, root, node)
        if any(isinstance(value, str) and value.startswith("=") for value in found):
            return True
        if not _is_met(wanted, found):
            return False
    hiding = ((_compared(key, values, root, node), unwanted) for key, unwanted in conditions.get("hide", {}).items())
    return not any(found and _is_met(unwanted, found) for found, unwanted in hiding)


def _compared(key: str, values: Any, root: Any, node: Node) -> list[Any]:
    """The values that a condition looks at: of a parameter beside this one, or, after a slash, of one of the node."""
    if key == "@version":
        return [node.get("typeVersion") or 0]
    if key == "@tool":
        return [node["type"].endswith("Tool")]
    value = _at(root, key[1:]) if key.startswith("/") else _at(values, key)
    if isinstance(value, dict) and value.get("__rl"):
        value = value.get("value")
    return value if isinstance(value, list) else [value]


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values.get(key, _ABSENT) if isinstance(values, dict) else _ABSENT
    return values


def _is_same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _of_text(test: Callable[[str, str], Any]) -> Callable[[Any, Any], bool]:
    return lambda value, target: isinstance(value, str) and bool(test(value, target))


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _is_same,
    "not": lambda value, target: not _is_same(value, target),
    "gte": operator.ge,
    "lte": operator.le,
    "gt": operator.gt,
    "lt": operator.lt,
    "between": lambda value, target: bool(target["from"] <= value <= target["to"]),
    "includes": _of_text(operator.contains),
    "regex": _of_text(lambda value, target: re.search(target, value)),
    "exists": lambda value, _: value not in (_ABSENT, None, ""),
}


def _is_met(conditions: Sequence[Any], found: Sequence[Any]) -> bool:
    return any(_holds(condition, found) for condition in conditions)


def _holds(condition: Any, found: Sequence[Any]) -> bool:
    if not (isinstance(condition, dict) and "_cnd" in condition):
        return any(_is_same(value, condition) for value in found)
    ((name, target),) = condition["_cnd"].items()
    try:
        return all(_TESTS[name](value, target) for value in found) if found else name == "not"
    except TypeError:  # a text or nothing beside a number
        return False


# ---------------------------------------------------------------- whether a parameter is missing or invalid

_LOCATORS = ("resourceLocator", "workflowSelector", "agentSelector")


def _faults(rule: Description, values: Any, root: Any, node: Node, *, nested: bool = False) -> Iterator[str]:
    """The names of faulty parameters that a rule is about, at the place where ``values`` are."""
    name, kind, is_shown = rule["name"], rule["type"], _is_shown(rule, values, root, node)
    value = _at(values, name)
    if rule.get("required") and is_shown:
        listed = value if isinstance(value, list) else []
        if any(_is_empty(kind, each) for each in (listed if "multipleValues" in rule else [value])):
            yield name
    if kind in _LOCATORS:
        if is_shown and isinstance(value, dict) and not _fits_mode(rule, value):
            yield name
    elif kind == "resourceMapper":
        unmapped = list(_unmapped(rule, value)) if is_shown and isinstance(value, dict) else []
        yield from [name, *unmapped] if unmapped else []
    elif not _is_valid(rule.get("validateType"), value, rule.get("options", ())):
        yield name
    if kind == "collection":
        # A quirk: parameters in a collection are looked for beside it, and, in a nested one, nowhere.
        for child in rule.get("options", ()):
            yield from _faults(child, _ABSENT if nested else values, root, node, nested=nested)
    elif kind == "fixedCollection" and is_shown:
        for option, children in rule.get("options", {}).items():
            group = _ABSENT if nested else _at(value, option)
            groups = group if isinstance(group, list) else []
            if not rule.get("minRequiredFields", 0) <= len(groups) <= rule.get("maxAllowedFields", len(groups)):
                yield name
            if group is not _ABSENT and "multipleValues" not in rule:
                groups = [group]
            for each in groups:
                for child in children:
                    yield from _faults(child, each, root, node, nested=True)


def _is_empty(kind: str, value: Any) -> bool:
    if kind == "multiOptions":
        return bool(value == [])
    if kind in _LOCATORS:
        inner = value.get("value") if isinstance(value, dict) else value
        is_number = isinstance(value, dict) and isinstance(inner, (int, float)) and not isinstance(inner, bool)
        return not is_number and (inner is _ABSENT or inner in (None, "", 0))
    return value is _ABSENT or value == ""


def _fits_mode(rule: Description, value: Mapping[str, Any]) -> bool:
    text = as_text(value.get("value") or "")
    patterns = rule.get("modes", {}).get(value.get("mode"), ())
    return text.startswith("=") or all(re.search(f"^{pattern}$", text) for pattern in patterns)


def _unmapped(rule: Description, mapping: Mapping[str, Any]) -> Iterator[str]:
    given = mapping.get("value")
    if mapping.get("mappingMode") == "autoMapInputData" or "value" not in mapping:
        return
    for field in mapping.get("schema") or ():
        value = _at(given, field["id"]) if given else None
        is_missing = field.get("required") and rule.get("mode") == "add" and (given is None or value is _ABSENT)
        allowed = [option.get("value") for option in field.get("options") or ()]
        if is_missing or not _is_valid(field.get("type"), value, allowed):
            yield f"{rule['name']}.{field['id']}"


def _is_valid(kind: str | None, value: Any, allowed: Sequence[Any]) -> bool:
    if value is _ABSENT or value is None or as_text(value).startswith("="):
        return True
    if kind == "options":
        return any(_is_same(value, each) for each in allowed)
    if kind == "string-alphanumeric":
        return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", as_text(value)) is not None
    return kind not in ("number", "boolean", "array", "object") or CONVERSIONS[kind](value) is not None
