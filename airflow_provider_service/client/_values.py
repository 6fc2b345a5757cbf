"""Values from outside, of any shape: show them in messages, limit their depth, and take odd ones for empty."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MAX_SHOWN_CHARS = 100
MAX_MESSAGE_CHARS = 500


def shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python refuses to convert numbers of thousands of digits
        return "a number with too many digits"
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


def type_of(value: object) -> str:
    """The type of a refused value, for a message that must not show the value."""
    return "str" if isinstance(value, str) else type(value).__name__


def one_line(text: str) -> str:
    printable = re.sub(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\uffff]", " ", text)
    return re.sub(r"\s+", " ", printable).strip()[:MAX_MESSAGE_CHARS]


#: The depth that pydantic reads and writes; the limit of Python's json module differs between versions.
MAX_NESTING = 200


def is_too_deep(value: Any, levels: int = MAX_NESTING) -> bool:
    level = [value] if _is_container(value) else []
    for _ in range(levels):
        # Each value once, because many places can share one.
        inner = (item for outer in level for item in (outer.values() if isinstance(outer, Mapping) else outer))
        level = [*{id(item): item for item in inner if _is_container(item)}.values()]
    return bool(level)


def _is_container(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def dict_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
