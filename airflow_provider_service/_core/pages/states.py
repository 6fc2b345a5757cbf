"""How a node, an execution or an attempt stands. Each state has its own sign and word, not only its own colour."""

from __future__ import annotations

from typing import Literal

State = Literal[
    "succeeded", "failed", "failed in part", "waiting", "running", "canceled", "disabled", "unreported", "not run"
]
SIGNS: dict[State, str] = {
    "succeeded": "✓",
    "failed": "✕",
    "failed in part": "!",
    "waiting": "‖",
    "running": "▶",
    "canceled": "■",
    "disabled": "-",
    "unreported": "?",
    "not run": "○",
}
_OF_STATUS: dict[str | None, State] = {
    "success": "succeeded",
    "error": "failed",
    "crashed": "failed",
    "canceled": "canceled",
    "waiting": "waiting",
    "running": "running",
    "new": "running",
}


def state_of(status: str | None) -> State:
    """The meaning of a status of the service."""
    return _OF_STATUS.get(status, "unreported")
