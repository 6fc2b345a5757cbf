"""Remove secrets from values that are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

HIDDEN = "***"
# A shorter text occurs in too many places by chance, so it is hidden only under its own name.
MIN_CHARS = 5


class HiddenText(str):
    """Text that its repr does not show, because tracebacks with local variables show the reprs of values and dicts."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


def masked(text: str, *secrets: str | None) -> str:
    """The text with secrets masked."""
    for secret in filter(None, secrets):
        text = text.replace(secret, HIDDEN)
    return text


def redacted(value: Any, secrets: Mapping[str, Collection[str]]) -> Any:
    """Copy a JSON value with its secrets hidden: wherever a secret occurs, and everything under a secret's name.

    :param secrets: the texts to hide, by name; the case of a name does not matter.
    """
    names = frozenset(name.lower() for name in secrets)
    # The longest first, because one secret can be part of another.
    texts = sorted({text for many in secrets.values() for text in many if len(text) >= MIN_CHARS}, key=len)[::-1]
    return _redacted(value, names, texts)


def _redacted(value: Any, names: Collection[str], texts: Collection[str]) -> Any:
    if isinstance(value, str):
        for text in texts:
            value = value.replace(text, HIDDEN)
        return value
    if isinstance(value, Mapping):
        return {
            _redacted(name, (), texts): HIDDEN if str(name).lower() in names else _redacted(inner, names, texts)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_redacted(inner, names, texts) for inner in value]
    return value
