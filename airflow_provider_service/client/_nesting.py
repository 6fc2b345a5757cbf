"""Limit the depth of nested values, so that recursive functions do not exceed the limit of Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: The depth that pydantic reads and writes; the limit of Python's json module differs between versions.
MAX_NESTING = 200


def is_too_deep(value: Any, levels: int = MAX_NESTING) -> bool:
    """Whether lists and mappings are nested more than so many levels deep."""
    level = [value] if _is_container(value) else []
    for _ in range(levels):
        # Each value once, because many places can share one.
        level = [*{id(inner): inner for one in level for inner in _inside(one) if _is_container(inner)}.values()]
    return bool(level)


def _is_container(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value
