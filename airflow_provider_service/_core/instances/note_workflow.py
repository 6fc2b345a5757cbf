"""Workflows that consist of a note: the provider's storage in an instance of any version and plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_service.client.models import Workflow

_NOTE = "n8n-nodes-base.stickyNote"


def note_node(words: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the only node of such a workflow.

    :param words: one paragraph for the people who open the workflow.
    :param data: what is stored, as JSON below it.
    """
    content = f"{words}\n\n{json.dumps(data, sort_keys=True)}"
    return {"name": "Note", "type": _NOTE, "typeVersion": 1, "position": [0, 0], "parameters": {"content": content}}


def note_data(workflow: Workflow) -> Any:
    """Return what is stored below the words of the note, whatever these are.

    :raises ValueError: somebody has changed the workflow, so that nothing can be read.
    """
    try:
        content = str((workflow.nodes or [])[0]["parameters"]["content"])
        return json.loads(content.partition("\n\n")[2])
    except (IndexError, KeyError, TypeError, RecursionError):
        raise ValueError("the workflow holds no note with data") from None
