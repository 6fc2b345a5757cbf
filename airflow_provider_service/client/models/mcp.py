"""The MCP endpoint: what it started, and which trigger nodes it can start."""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal, NamedTuple

#: ``production`` runs the published version, ``manual`` the draft.
Mode = Literal["production", "manual"]

#: The types of the trigger nodes that the endpoint can start, and the key of the ``inputs`` that each of them requires;
#: None means that it takes no inputs.
INPUTS_BY_TRIGGER = MappingProxyType(
    {
        "n8n-nodes-base.scheduleTrigger": None,
        "n8n-nodes-base.webhook": "webhookData",
        "n8n-nodes-base.formTrigger": "formData",
        "@n8n/n8n-nodes-langchain.chatTrigger": "chatInput",
        "n8n-nodes-base.manualTrigger": None,
    }
)
#: Those of them that only the mode ``manual`` can start.
MANUAL_TRIGGERS = frozenset({"n8n-nodes-base.manualTrigger"})


class StartedExecution(NamedTuple):
    """An execution that the MCP endpoint started.

    :param execution_id: id of the execution.
    :param status: ``started``.
    """

    execution_id: str
    status: str
