"""What goes wrong around a real server."""

from __future__ import annotations

from pathlib import Path


class LiveServerError(Exception):
    """The real server cannot be installed, started or set up."""


def tail(log: Path, lines: int = 40) -> str:
    """The last lines of a log file; empty when there is none yet."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
