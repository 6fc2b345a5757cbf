"""Describe what a deployment changes in a workflow, in readable lines: node by node, setting by setting.

What looks like a secret, by the name of a field or in text, is never shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import unified_diff
from itertools import islice
from typing import Any

from airflow_provider_service._core.instances.references import references
from airflow_provider_service._core.text_table import cut
from airflow_provider_service.client._definitions import UNSET, settings_not_kept, without_caches
from airflow_provider_service.client._http.redaction import HIDDEN, TOKENS
from airflow_provider_service.client._values import list_or_empty

# All quantifiers that could be tried again on a long text are possessive or bounded, because others would take hours.
_END_OF_WORD = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z\d]++")
# Names of fields and variables, in small letters, with their words joined by underscores.
_SECRET = re.compile(
    r"passw(?:or[dt]|d)|passphrase|passcode|pwd|secret|(?<!page_)(?<!max_)token|authorization|bearer|credential|cookie"
    r"|sess(?:ion)?_?id|(?:api|access|auth|private|secret|account|encryption|license|master)_?keys?(?:_|$)"
    r"|(?:^|_)(?:pass|pat|pin|otp|jwt|sid|sig)$"
)
_SECRET_ENDING = re.compile(r"_(?:key|auth)$")
# Names that contain one of these words of a secret, but hold none.
_HARMLESS = re.compile(
    r"_(?:type|name|url|uri|field|limit|count|usage|length|method|expiry|in)$|(?:^|_)(?:primary|foreign|sort|"
    r"partition|unique|group|order|hash|range|row|column|field|property|item|object|parent|child|index|lookup|match|"
    r"matching|merge|join|dedupe|deduplication|cache|idempotency|routing|message|event|issue|project|ticket|document|"
    r"file|binary|data|json|map|dict|translation|language|label|tag|custom|destination|source|target|input|output|"
    r"public|hot|short|redis|folder|path|attribute|metadata|list|record|date|time|next|previous)_key$"
)
# Under these names, only what looks random is a secret: letters and digits mixed.
_DOUBTFUL = re.compile(r"(?:^|_)(?:key|auth|signature|hmac|salt)$|^code$")
_RANDOM = re.compile(r"(?=[\w+/=-]{16})[\w+/=-]{0,100}?\d[A-Za-z]")
# Fields that hold the value of what another field beside them names.
_VALUES = ("value", "stringValue", "fieldValue", "headerValue", "keyValue")
_LABELS = ("name", "key", "fieldId", "fieldName", "keyName", "header")
# In text: a name of one or two words before an equals sign or colon.
_ASSIGNED = re.compile(r"(?<![\w-])((?:[\w-]++ (?=[\w-]))?+[\w-]++)[\"'`]?\]?\s*+[:=]\s*+(?=\S)")
# What follows it on its line, and on further lines if a text in quotes goes on there.
_ASSIGNED_TEXT = re.compile(
    r"""(?:"(?!"")(?:[^"\\]|\\.)*+"|'(?!'')(?:[^'\\]|\\.)*+')?+"""
    r"""(?:`(?:[^`\\]|\\.)*+`|"{3}.*?"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|\\.|[^\n])*+""",
    re.DOTALL,
)
_WORD = re.compile(r"[^\s&\"'`,;<>(){}\[\]]++")
# An expression that only refers to data, such as {{ $json.token }}, is no secret.
_REFERENCE = (
    r"""\$(?:(?:json|node|input|items?|env|vars|secrets|binary|execution|workflow|parameter)\b|(?=\())"""
    r"""(?:\((?:"[^"\n]*+"|'[^'\n]*+')?\))?+(?:[\w.?]|\[(?:\d++|"[^"\n]*+"|'[^'\n]*+')\]|\(\))*+"""
)
_SCHEME = "(?i:bearer|basic|token|apikey)"
_EXPRESSION = rf"\{{\{{\s*+{_REFERENCE}\s*+\}}\}}"
_REFERRING = re.compile(rf"=?(?:{_SCHEME} )?(?:{_EXPRESSION}[\s:/_.-]*+)++")
_REFERENCE_ASSIGNED = re.compile(
    rf"(?:([\"'`]?)=?(?:{_SCHEME} )?{_EXPRESSION}\1|{_REFERENCE})(?=[ \t]*+(?:[,;)}}\]&\n]|\Z))"
)
# Before a secret: in a URL, a header or a command line, and addresses by which everybody can send.
_IN_URL = r"""(//[^/\s:@"']*+:)[^\s/"']+(?=@)"""
_BEFORE = (
    r"\b(?i:bearer) ++(?!\{\{|\$[{A-Z]|tokens?\b)",
    r"\b(?i:basic) ++(?=[\w+/]*[a-z\d][A-Z\d])",
    r"""(?<!\S)(?:-u|--user|--proxy-user)[ =]*+["']?(?=[A-Za-z])[^\s:"']*+:""",
    r"--[\w-]{0,40}(?i:password|token|secret|key)[ ]++(?=[^\s-])",
    r"\bdiscord(?:app)?\.com/api/webhooks/",
    r"\bhooks\.slack\.com/\w++/",
    r"\bhooks\.zapier\.com/hooks/catch/",
    r"\bwebhook\.office\.com/",
)
_ANYWHERE = re.compile(rf"""{_IN_URL}|({"|".join(_BEFORE)})[^\s"'`,;<>]++""")
_PRIVATE_KEY = re.compile(r"-----BEGIN [\w ]{0,40}PRIVATE KEY.*?(?:-----END[\w ]{0,60}-----|\Z)", re.DOTALL)
_TOKENS = re.compile(TOKENS)
#: Maximum number of lines that are shown of a text, such as code.
_MAX_LINES = 40
# A definition may leave these out. A new webhook id would mean a new address.
_GENERATED = ("id", "webhookId")
_MISSING = object()


def changed_lines(before: Mapping[str, Any], desired: Mapping[str, Any]) -> Iterator[str]:
    if before and before.get("name") != desired["name"]:
        yield f"renamed {before.get('name')!r} to {desired['name']!r}"
    if before and "description" in desired:
        yield from _values("description", before.get("description"), desired["description"])
    yield from _nodes(before.get("nodes") or [], desired.get("nodes") or [])
    connections, new_connections = before.get("connections") or {}, desired.get("connections") or {}
    for name in sorted(connections.keys() | new_connections.keys()):
        if connections.get(name) != new_connections.get(name):
            old, new = (", ".join(_targets(of.get(name))) or "none" for of in (connections, new_connections))
            yield f"connections of {name!r}" + (f": {old} -> {new}" if old != new else " changed in form only")
    settings, new_settings = before.get("settings") or {}, desired.get("settings") or {}
    for name in sorted(new_settings.keys() - settings_not_kept(new_settings, settings)):
        yield from _values(f"setting {name}", settings.get(name, UNSET.get(name)), new_settings[name])
    for name, words in {"nodeGroups": "groups of nodes", "pinData": "pinned data"}.items():
        if name in desired and (before.get(name) or None) != (desired[name] or None):
            yield f"{words} changed"


def _nodes(before: list[Any], desired: list[Any]) -> Iterator[str]:
    existing, new = (
        {str(node.get("name")): node for node in nodes if isinstance(node, Mapping)} for nodes in (before, desired)
    )
    for name, node in existing.items():
        if name not in new:
            yield f"- node {name!r} ({node.get('type')})"
    for name, node in new.items():
        if name not in existing:
            used = dict.fromkeys(
                f"{named.kind} {repr(named.name) if named.name else json.dumps(named.id)}"
                for named in references({"nodes": [node]})
            )
            yield f"+ node {name!r} ({node.get('type')})" + (f", uses {', '.join(used)}" if used else "")
            continue
        old = {"typeVersion": 1, "parameters": {}, **existing[name]}
        kept = {key: old[key] for key in _GENERATED if key in old}
        now = {"typeVersion": 1, "parameters": {}, **kept, **node}
        yield from _values(f"node {name!r}", without_caches(old), without_caches(now))
    if list(existing) != list(new) and existing.keys() == new.keys():
        yield "order of the nodes changed"


def _targets(outputs: Any) -> Iterator[str]:
    """Yield the nodes that a node's outputs lead to, and name any output or input but the first one for items."""
    for kind, groups in _mapping(outputs).items():
        for number, group in enumerate(list_or_empty(groups)):
            for target in map(_mapping, list_or_empty(group)):
                to, place = target.get("type", kind), target.get("index", 0)
                words = (
                    kind if kind != "main" else "",
                    f"output {number}" if number else "",
                    f"input {place}" if place != 0 or to != kind else "",
                    f"of kind {to}" if to != kind else "",
                )
                described = " ".join(filter(None, words))
                yield _shown(target.get("node")) + (f" ({described})" if described else "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _values(place: str, before: Any, desired: Any) -> Iterator[str]:
    if before == desired:
        return
    if isinstance(before, Mapping) and isinstance(desired, Mapping):
        for name in sorted({*map(str, before), *map(str, desired)}):
            old, new = before.get(name, _MISSING), desired.get(name, _MISSING)
            if _is_secret(name, before, desired):
                yield from _hidden(f"{place}: {name}", old, new)
            else:
                yield from _values(f"{place}.{name}" if ": " in place else f"{place}: {name}", old, new)
    elif isinstance(before, list) and isinstance(desired, list) and len(before) == len(desired):
        for number, (old, new) in enumerate(zip(before, desired, strict=True)):
            yield from _values(f"{place}[{number}]", old, new)
    else:
        yield from _changed(place, before, desired)


def _changed(place: str, before: Any, desired: Any) -> Iterator[str]:
    old, new = _without_secrets(before), _without_secrets(desired)
    if old == new:
        yield from _hidden(place, before, desired)
    elif isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        lines = unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm="")
        yield f"{place}:"
        yield from (f"  {line}" for line in islice(lines, 2, 2 + _MAX_LINES))
    else:
        yield f"{place}: {_shown(old)} -> {_shown(new)}"


def _hidden(place: str, before: Any, desired: Any) -> Iterator[str]:
    if before != desired:
        yield f"{place}: {HIDDEN} changed"


def _shown(value: Any) -> str:
    if value is _MISSING or value is None:
        return "not set"
    return cut(json.dumps(value, ensure_ascii=False, default=str))


def _is_secret(name: str, *holders: Mapping[str, Any]) -> bool:
    """Whether a field of any of these holds a secret by its name, or as the value of what a field beside it names."""
    for holder in holders:
        value = holder.get(name)
        labels = [name, *(holder.get(label) for label in _LABELS if name in _VALUES)]
        if any(isinstance(label, str) and _names_secret(label, value) for label in labels):
            return True
    return False


def _names_secret(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return False
    # The credentials of a node, and each of them, are names and ids.
    if isinstance(value, Mapping) and (name == "credentials" or value.keys() <= {"id", "name"}):
        return False
    words = _words(name)
    if _HARMLESS.search(words) or (isinstance(value, str) and _REFERRING.fullmatch(value)):
        return False
    if _SECRET.search(words) or _SECRET_ENDING.search(words):
        return True
    return isinstance(value, str) and bool(_DOUBTFUL.search(words) and _RANDOM.match(value))


def _words(name: str) -> str:
    return _END_OF_WORD.sub("_", name).lower()


def _without_secrets(value: Any) -> Any:
    """Return a value without what looks like a secret, also in text that holds JSON or code."""
    if isinstance(value, Mapping):
        return {
            name: HIDDEN if _is_secret(str(name), value) else _without_secrets(inner) for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in value]
    return _text_without_secrets(value) if isinstance(value, str) else value


def _text_without_secrets(text: str) -> str:
    # A text that the service evaluates begins with an equals sign.
    prefix, content = ("=", text[1:]) if text.startswith("=") else ("", text)
    if content.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            parsed = json.loads(content)
            safe = _without_secrets(parsed)
            indent = 2 if "\n" in content else None
            return text if safe == parsed else prefix + json.dumps(safe, ensure_ascii=False, indent=indent)
    text = "".join(_without_assigned(text))
    return _PRIVATE_KEY.sub(HIDDEN, _TOKENS.sub(HIDDEN, _ANYWHERE.sub(rf"\1\2{HIDDEN}", text)))


def _without_assigned(text: str) -> Iterator[str]:
    """Yield the text without the values of secrets: words in a URL's query, or else all up to the end of the line."""
    end, names_secrets = 0, _SECRET.search(text.lower())
    for assigned in _ASSIGNED.finditer(text):
        start = assigned.end()
        words = _words(assigned[1])
        if assigned.start() < end or _HARMLESS.search(words) or _REFERENCE_ASSIGNED.match(text, start):
            continue
        is_secret = (
            _SECRET.search(words)
            or _SECRET_ENDING.search(_words(assigned[1].rpartition(" ")[2]))
            or (names_secrets and words.endswith("value"))
        )
        is_quoted = text[start] in "\"'`"
        in_query = text[assigned.start() - 1 : assigned.start()] in ("?", "&") and not is_quoted
        if is_secret and not in_query:
            value = _ASSIGNED_TEXT.match(text, start)
        elif is_secret or (_DOUBTFUL.search(words) and (in_query or _RANDOM.match(text, start + is_quoted))):
            start += is_quoted
            value = _WORD.match(text, start)
        else:
            continue
        yield text[end:start] + HIDDEN
        end = value.end() if value else start
    yield text[end:]
