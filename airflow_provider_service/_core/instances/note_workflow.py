"""Workflows that consist of a note: the provider's storage in an instance of any version and plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_service.client.models import Workflow

_NOTE = "n8n-nodes-base.stickyNote"


def note_node(text: str) -> dict[str, Any]:
    """Return the only node of such a workflow."""
    return {"name": "Note", "type": _NOTE, "typeVersion": 1, "position": [0, 0], "parameters": {"content": text}}


def note_of(workflow: Workflow) -> str:
    """Return the text of the note.

    :raises ValueError: somebody has changed the workflow, and it contains no note.
    """
    try:
        return str((workflow.nodes or [])[0]["parameters"]["content"])
    except (IndexError, KeyError, TypeError):
        raise ValueError("the workflow holds no note") from None
