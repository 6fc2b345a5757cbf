"""How deep values may lie in each other: what goes through them recursively reaches the end of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: The depth that pydantic reads and writes; the limit of Python's json module differs between versions.
MAX_NESTING = 200


def is_too_deep(value: Any) -> bool:
    """Whether lists and mappings lie in each other deeper than :data:`MAX_NESTING`."""
    level = [value] if _is_container(value) else []
    for _ in range(MAX_NESTING):
        # Each once, because one value may be held in many places.
        level = [*{id(inner): inner for one in level for inner in _inside(one) if _is_container(inner)}.values()]
    return bool(level)


def _is_container(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value
