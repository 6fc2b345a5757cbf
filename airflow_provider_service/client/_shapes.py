"""Read data that can have any shape: what has another one than expected counts as empty."""

from __future__ import annotations

from typing import Any


def list_or_empty(value: Any) -> list[Any]:
    """A list unchanged; an empty one for any other value."""
    return value if isinstance(value, list) else []


def dict_or_empty(value: Any) -> dict[str, Any]:
    """A dictionary unchanged; an empty one for any other value."""
    return value if isinstance(value, dict) else {}
