"""The states of nodes, executions and attempts. Each has its own sign and word, and not only its own colour."""

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
    """Return the state that a status of the service stands for."""
    return _OF_STATUS.get(status, "unreported")
