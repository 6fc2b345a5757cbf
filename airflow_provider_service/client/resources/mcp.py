"""The server's MCP endpoint, which starts a workflow whatever its trigger."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from airflow_provider_service.client.errors import ServiceUnexpectedResponseError, shown
from airflow_provider_service.client.http.transport import MCP_PATH
from airflow_provider_service.client.models.mcp import Mode, StartedExecution
from airflow_provider_service.client.resources._base import Resource, given, require

MODES = ("production", "manual")


class Mcp(Resource):
    """The MCP endpoint. It is not part of the API: it has a key of its own, the connection's ``mcp_api_key``."""

    def execute_workflow(
        self,
        workflow_id: str,
        *,
        trigger_node: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        mode: Mode = "production",
        timeout: float | None = None,
        stopped: threading.Event | None = None,
    ) -> StartedExecution:
        """Start a workflow by ``POST /mcp-server/http``. Not safe to repeat: each call runs the workflow.

        The service answers as soon as it has created the execution. A try that provably started nothing is repeated
        automatically, if a repeat may help.

        :param workflow_id: id of the workflow; its setting ``availableInMCP`` must be true.
        :param trigger_node: name of the trigger node to begin at; required with ``inputs``, and if there are several.
        :param inputs: what the trigger takes: ``{"webhookData": {"headers", "query", "body"}}``,
            ``{"formData": {...}}`` or ``{"chatInput": "..."}``; None, the default, for a schedule or a manual trigger.
        :param mode: ``"production"`` runs the published version (the default), ``"manual"`` the draft.
        :param timeout: seconds within which the whole answer must arrive, instead of the connection's setting.
        :param stopped: set by the caller to stop further tries.
        :returns: the id of the execution, and its status.
        :raises ServiceConfigError: the connection has no ``mcp_api_key``; nothing was sent.
        :raises ServiceInputError: an argument cannot be sent, or the inputs are too large; nothing was sent.
        :raises ServiceMcpRefusedError: the workflow or its trigger cannot be started in this way; nothing ran.
        :raises ServiceNotPublishedError: the workflow is not active, or was activated only just now; nothing ran.
        :raises ServiceNotFoundError: the workflow does not exist, or the user of the key may not run it; nothing ran.
        :raises ServiceInvalidRequestError: the inputs are not what the trigger takes; nothing ran.
        :raises ServiceNotOfferedError: MCP access is switched off, or the server has no such endpoint; nothing ran.
        :raises ServiceUnauthorizedError: the key was refused; nothing ran.
        :raises ServiceApiError: another failure; its ``not_processed`` is True if nothing can have run.
        """
        require(isinstance(workflow_id, str) and bool(workflow_id.strip()), "workflow_id must not be empty")
        require(mode in MODES, f"mode must be one of {', '.join(MODES)}, not {shown(mode)}")
        arguments = given(
            workflowId=workflow_id, executionMode=mode, triggerNodeName=trigger_node, inputs=inputs and dict(inputs)
        )
        answer = self._transport.call_mcp("execute_workflow", arguments, timeout=timeout, stopped=stopped)
        execution_id = answer.get("executionId")
        if not isinstance(execution_id, str) or not execution_id:
            raise ServiceUnexpectedResponseError(
                "the answer names no execution, though the service says that it has started one",
                method="POST",
                path=MCP_PATH,
            )
        return StartedExecution(execution_id, str(answer.get("status")))
