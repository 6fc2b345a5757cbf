"""Prepare texts of strangers so that a page can show them."""

from __future__ import annotations

import re

# Control characters, halves of surrogate pairs, reversals of the direction, and what XML and HTML do not allow.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replace the characters of a text that cannot be shown, or that would show it in another order."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """Printable text without line breaks."""
    return " ".join(printable(text).split())
