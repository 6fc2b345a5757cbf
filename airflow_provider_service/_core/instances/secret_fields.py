"""Hide what looks like a secret in the parts of a definition that a plan shows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_service.client._http.redaction import HIDDEN

_NAME = (
    r"authorization|bearer|api[-_]?key|access[-_]?key|private[-_]?key|passphrase|password|passwd|pwd|secret|token|"
    r"credential|cookie"
)
_SECRET = re.compile(_NAME, re.IGNORECASE)
#: In text: a name and what follows it on its line, the credentials of a header, and those of a URL.
_ASSIGNED = re.compile(rf"((?:{_NAME})[\w-]*[\"'`]?\s*[:=]\s*)\S.*", re.IGNORECASE)
_ASSIGNED_VALUE = re.compile(r"(\bvalue[\"'`]?\s*[:=]\s*)\S.*", re.IGNORECASE)
_ANYWHERE = re.compile(r"(\b(?:bearer|basic) +|//[^/\s:@]*:(?=[^\s/@]+@))[^\s/@\"']+", re.IGNORECASE)


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
            text = _ASSIGNED_VALUE.sub(rf"\1{HIDDEN}", _ASSIGNED.sub(rf"\1{HIDDEN}", text))
        else:
            if isinstance(parsed, (dict, list)):
                indent = 2 if "\n" in content else None
                return prefix + json.dumps(without_secrets(parsed), ensure_ascii=False, indent=indent)
    return _ANYWHERE.sub(rf"\1{HIDDEN}", text)
