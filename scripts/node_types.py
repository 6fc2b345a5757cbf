"""Renew what the simulator knows of node types: ``python -m scripts.node_types 2.41 2.20``.

Starts the real server of each generation, reads its own description of its node types through its owner's session, and
writes what decides about publishing into ``node_types.json.xz``: names and rules, no texts. A description keeps
its form (``displayOptions`` and others), and loses all that never keeps a workflow from being published.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from airflow_provider_service.simulator._stores.publishing import DATA, Description, generations, node_types
from tests.live.servers import GENERATIONS, LiveServer

_REQUIRABLE = {"string", "multiOptions", "dateTime", "options", "resourceLocator", "workflowSelector", "agentSelector"}
#: The others accept whatever is stored, or are left to the real server.
_VALIDATED = {"number", "boolean", "array", "object", "options", "string-alphanumeric"}
_OF_ALL = {"name", "type", "default", "displayOptions", "noDataExpression"}


def facts(types: Iterable[Description]) -> dict[str, list[dict[str, Any]]]:
    """What decides about publishing, by node type: an entry for each description, which one or more versions share."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for described in types:
        versions = described["version"]
        # A webhook that only continues a run does not start one.
        webhooks = [bool(webhook.get("restartWebhook")) for webhook in described.get("webhooks", ())]
        credentials = [
            _pick(credential, "name", "displayName", "displayOptions")
            for credential in described.get("credentials", ())
            if credential.get("required")
        ]
        found = {
            "default": described.get("defaultVersion"),
            "trigger": "trigger" in described["group"],
            "polling": described.get("polling"),
            "webhooks": webhooks and ("continue" if all(webhooks) else "start"),
            "credentials": credentials,
        }
        entry = {
            "versions": versions if isinstance(versions, list) else [versions],
            **{key: value for key, value in found.items() if value},
            "properties": _reduced(described["properties"], credentials),
        }
        entries = by_type.setdefault(described["name"], [])
        if entry not in entries:  # now and then, a server lists a type twice
            entries.append(entry)
    for entries in by_type.values():
        entries.sort(key=lambda entry: min(entry["versions"]))
    return dict(sorted(by_type.items()))


def _pick(described: Description, *keys: str) -> dict[str, Any]:
    return {key: described[key] for key in keys if described.get(key)}


def _reduced(properties: Iterable[Description], others: Iterable[Description] = ()) -> list[dict[str, Any]]:
    """The properties that can be faulty, and those on which it depends whether they, or the others, are shown."""
    rules = [_property(described) for described in properties if "type" in described]
    needed = {name for other in others for name in _named(other)}
    while True:
        kept = [rule for rule in rules if rule["name"] in needed or rule.keys() - _OF_ALL]
        # Of several properties with one name, one that is never faulty may give the value.
        names = needed | {name for rule in kept for name in (rule["name"], *_named(rule))}
        if names == needed:
            return kept
        needed = names


def _named(rule: Description, *, inside: bool = False) -> Iterator[str]:
    """The names of the properties of its own level that a rule looks at; ``inside``, only those at the root."""
    for conditions in rule.get("displayOptions", {}).values():
        yield from (key.lstrip("/") for key in conditions if key[0] == "/" or not (inside or key[0] == "@"))
    options = rule.get("options", ()) if rule.get("type") in {"collection", "fixedCollection"} else ()
    for group in options.values() if isinstance(options, dict) else [options]:
        for child in group:
            yield from _named(child, inside=True)


def _property(described: Description) -> dict[str, Any]:
    kind, options, limits = described["type"], described.get("options") or (), described.get("typeOptions") or {}
    rule: dict[str, Any] = {"name": described["name"], "type": kind, **_pick(described, "noDataExpression")}
    if "default" in described:
        default = described["default"]
        is_text = isinstance(default, str) and kind != "options"
        # Of a text, no more counts than whether there is one, and whether it is an expression.
        rule["default"] = "".join(default.split()[:1]) if is_text else default
        if is_text and "validateType" in described and rule["default"] != default:
            rule["default"] = None  # is valid
    if conditions := _pick(described.get("displayOptions") or {}, "show", "hide"):
        rule["displayOptions"] = conditions
    if described.get("required") is True and kind in _REQUIRABLE:
        rule["required"] = True
    if kind == "resourceMapper":
        rule["mode"] = (limits.get("resourceMapper") or {}).get("mode")
    elif described.get("validateType") in _VALIDATED:
        rule["validateType"] = described["validateType"]
        if described["validateType"] == "options":
            rule["options"] = [option["value"] for option in options if "value" in option]
    patterns = {
        mode["name"]: [rule["properties"]["regex"] for rule in mode.get("validation", ()) if rule["type"] == "regex"]
        for mode in described.get("modes", ())
    }
    if any(patterns.values()):
        rule["modes"] = {name: regexes for name, regexes in patterns.items() if regexes}
    if kind == "collection" and (children := _reduced(options)):
        rule["options"] = children
    if kind == "fixedCollection":
        values = {option["name"]: _reduced(option["values"]) for option in options}
        bounds = _pick(limits, "minRequiredFields", "maxAllowedFields")
        if bounds or any(values.values()):
            rule |= {"options": values, **bounds}
    if "multipleValues" in limits and rule.keys() - _OF_ALL:
        rule["multipleValues"] = limits["multipleValues"]
    return rule


def packed(generations: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The file's content: each property once, since versions, tools and generations share most of them."""
    places: dict[str, int] = {}
    named = {
        name: {kind: [_with_places(entry, places) for entry in entries] for kind, entries in types.items()}
        for name, types in generations.items()
    }
    content = json.dumps({"properties": list(map(json.loads, places)), "generations": named}, separators=(",", ":"))
    return lzma.compress(content.encode(), preset=9 | lzma.PRESET_EXTREME)


def _with_places(entry: Description, places: dict[str, int]) -> dict[str, Any]:
    indexes = [places.setdefault(json.dumps(each), len(places)) for each in entry.get("properties", ())]
    return {**entry, "properties": indexes}


def main() -> None:
    """Renew the generations that the command names; the others stay as they are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("generations", nargs="+", choices=GENERATIONS)
    known = {name: node_types(name) for name in generations()} if DATA.exists() else {}
    for name in parser.parse_args().generations:
        with LiveServer(name, progress=print) as server:
            known[name] = facts(server.owner.node_types())
    DATA.write_bytes(packed({name: known[name] for name in GENERATIONS if name in known}))
    print(f"{DATA.name}: {DATA.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
