"""Take secrets out of values that are shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

HIDDEN = "***"
# A shorter text is in too many places by chance; it is hidden only under its own name.
MIN_CHARS = 5


class HiddenText(str):
    """Text whose repr does not show it: tracebacks with local variables show their reprs, those of dicts too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


def masked(text: str, secret: str | None) -> str:
    """The text without one secret."""
    return text.replace(secret, HIDDEN) if secret else text


def redacted(value: Any, secrets: Mapping[str, Collection[str]]) -> Any:
    """Copy a JSON value with its secrets hidden: wherever a secret stands, and all that stands under its name.

    :param secrets: by name, whose case does not count: the texts to hide.
    """
    names = frozenset(name.lower() for name in secrets)
    # The longest first, since one secret can be a part of another.
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
