"""Hide what looks like a secret in the parts of a definition that a plan shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_provider_service.client._http.redaction import HIDDEN

_NAME = (
    r"authorization|bearer|api[-_]?key|access[-_]?key|private[-_]?key|passphrase|password|passwd|pwd|secret|token|"
    r"credential|cookie"
)
_SECRET = re.compile(_NAME, re.IGNORECASE)
# In text: a name before an equals sign or colon. Quantifiers are possessive, because others would take hours for some
# long texts.
_ASSIGNED = re.compile(r"(?<![\w-])([\w-]++)[\"'`]?\s*+[:=]\s*+(?=\S)")
_ASSIGNED_NAME = re.compile(rf"{_NAME}|\bvalue$", re.IGNORECASE)
# What follows it on its line, and on further lines if a text in quotes goes on there.
_ASSIGNED_TEXT = re.compile(
    r"""(?:"(?!"")(?:[^"\\]|\\.)*+"|'(?!'')(?:[^'\\]|\\.)*+')?+"""
    r"""(?:`(?:[^`\\]|\\.)*+`|"{3}.*?"{3}|'{3}.*?'{3}|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|\\.|[^\n])*+""",
    re.DOTALL,
)
# The credentials of a header, and those of a URL.
_ANYWHERE = re.compile(r"(\b(?:bearer|basic) +|//[^/\s:@]*:(?=[^\s/@]+@))[^\s/@\"']+", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [\w ]{0,40}PRIVATE KEY.*?(?:-----END[\w ]{0,60}-----|\Z)", re.DOTALL)


def is_secret(name: str, *fields: Mapping[str, Any]) -> bool:
    """Whether a field holds a secret by its name, or as the value of what the field ``name`` beside it names.

    :param fields: the mappings that hold the field.
    """
    if name == "value":
        return any(_SECRET.search(str(one.get("name", ""))) for one in fields)
    # The credentials of a node are names and ids.
    return name != "credentials" and _SECRET.search(name) is not None


def without_secrets(value: Any) -> Any:
    """Return a value without what looks like a secret, also in text that holds JSON or code."""
    if isinstance(value, Mapping):
        return {name: HIDDEN if is_secret(str(name), value) else without_secrets(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_secrets(one) for one in value]
    return _text_without_secrets(value) if isinstance(value, str) else value


def _text_without_secrets(text: str) -> str:
    if _SECRET.search(text):
        # A text that the service evaluates begins with an equals sign.
        prefix, content = ("=", text[1:]) if text.startswith("=") else ("", text)
        try:
            parsed = json.loads(content)
        except ValueError:
            text = "".join(_without_assigned(text))
        else:
            if isinstance(parsed, (dict, list)):
                indent = 2 if "\n" in content else None
                return prefix + json.dumps(without_secrets(parsed), ensure_ascii=False, indent=indent)
    return _PRIVATE_KEY.sub(HIDDEN, _ANYWHERE.sub(rf"\1{HIDDEN}", text))


def _without_assigned(text: str) -> Iterator[str]:
    end = 0
    for assigned in _ASSIGNED.finditer(text):
        if assigned.start() >= end and _ASSIGNED_NAME.search(assigned[1]):
            yield text[end : assigned.end()] + HIDDEN
            value = _ASSIGNED_TEXT.match(text, assigned.end())
            end = value.end() if value else assigned.end()
    yield text[end:]
