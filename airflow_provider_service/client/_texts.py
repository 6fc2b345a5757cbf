"""Prepare external values so that a message can show them."""

from __future__ import annotations

import re

MAX_SHOWN_CHARS = 100
MAX_MESSAGE_CHARS = 500


def shown(value: object) -> str:
    """A short form of any refused value, for a message."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to convert numbers of thousands of digits
        return "a number with too many digits"
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


def type_of(value: object) -> str:
    """The type of a refused value, for a message that must not show the value."""
    return "str" if isinstance(value, str) else type(value).__name__


def one_line(text: str) -> str:
    """External text for a message: on one line, without control characters, and cut off at 500 characters."""
    printable = re.sub(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\uffff]", " ", text)
    return re.sub(r"\s+", " ", printable).strip()[:MAX_MESSAGE_CHARS]
