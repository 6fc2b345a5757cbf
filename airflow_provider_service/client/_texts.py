"""External values in the form in which a message can show them."""

from __future__ import annotations

import re

MAX_SHOWN_CHARS = 100
MAX_MESSAGE_CHARS = 500


def shown(value: object) -> str:
    """Any refused value in a short form that a message can show."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to convert numbers of thousands of digits
        return "a number with too many digits"
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


def type_of(value: object) -> str:
    """The type of a refused value that a message must not show."""
    return "str" if isinstance(value, str) else type(value).__name__


def one_line(text: str) -> str:
    """External text in a form that a message can show: on one line, without control characters, and not too long."""
    printable = re.sub(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\uffff]", " ", text)
    return re.sub(r"\s+", " ", printable).strip()[:MAX_MESSAGE_CHARS]
