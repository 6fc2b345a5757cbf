"""The server's MCP endpoint, which can start a workflow with any kind of trigger."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from airflow_provider_service.client import errors
from airflow_provider_service.client._constraints import MODES, Mode
from airflow_provider_service.client._http.transport import MCP_PATH, Transport
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.resources._base import Resource, require, without_none


class StartedExecution(NamedTuple):
    """An execution that the MCP endpoint started.

    :param execution_id: id of the execution.
    :param status: ``started``.
    """

    execution_id: str
    status: str


_TOOL = "execute_workflow"
# Every endpoint refuses it: older ones because of the inputs, newer ones because it has no mode.
_PROBE: Mapping[str, Any] = {"workflowId": "", "inputs": {}}


class Mcp(Resource):
    """The MCP endpoint. It is not part of the API: it has a key of its own, the connection's ``mcp_api_key``.

    :param transport: sends the requests.
    """

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._has_modes = False

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

        The service answers when the execution begins: at once, unless a limit of concurrent executions makes it wait
        for its turn. A try that provably started nothing is repeated automatically, if a repeat may help. Before the
        first call without inputs, the client sends one that starts nothing and recognises an older server.

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
        :raises ServiceNotOfferedError: MCP access is switched off, or the server's endpoint is an older one; nothing
            ran.
        :raises ServiceUnauthorizedError: the key was refused; nothing ran.
        :raises ServiceApiError: another failure; its ``not_processed`` is True if nothing can have run.
        """
        require(isinstance(workflow_id, str) and bool(workflow_id.strip()), "workflow_id must not be empty")
        require(mode in MODES, f"mode must be one of {', '.join(MODES)}, not {shown(mode)}")
        if inputs is None:
            self.require_modes(timeout, stopped)
        arguments = without_none(
            workflowId=workflow_id,
            executionMode=mode,
            triggerNodeName=trigger_node,
            inputs=None if inputs is None else dict(inputs),
        )
        answer = self._transport.call_mcp(_TOOL, arguments, timeout=timeout, stopped=stopped)
        return StartedExecution(answer["executionId"], str(answer.get("status")))

    def require_modes(self, timeout: float | None = None, stopped: threading.Event | None = None) -> None:
        """Refuse an older endpoint, which ignores the name of the trigger and, in its oldest version, the mode.

        An older endpoint would accept any call without inputs. To recognise it, this method sends
        ``POST /mcp-server/http`` with a request that every endpoint refuses, older and newer ones with different
        messages. Safe to repeat: it starts nothing. Once the endpoint has turned out to be a newer one, further calls
        send nothing.

        :param timeout: seconds within which the whole answer must arrive, instead of the connection's setting.
        :param stopped: set by the caller to stop further tries.
        :raises ServiceNotOfferedError: the endpoint is an older one.
        :raises ServiceRunNotStartedError: the age of the endpoint cannot be determined at present.
        :raises ServiceApiError: another failure, such as a key that was refused.
        """
        if self._has_modes:
            return
        try:
            self._transport.call_mcp(_TOOL, _PROBE, repeatable=True, timeout=timeout, stopped=stopped)
        except errors.ServiceInvalidRequestError as refused:
            if "executionMode" not in (refused.server_message or ""):
                raise
            self._has_modes = True
            return
        except errors.ServiceNotFoundError:
            pass
        except errors.ServiceApiError as error:
            if error.not_processed:
                raise
            raise errors.ServiceRunNotStartedError(f"{error}; nothing was started") from None
        raise errors.ServiceNotOfferedError(
            "the server's MCP endpoint is an older one, which chooses the trigger itself",
            method="POST",
            path=MCP_PATH,
            hint="A newer n8n has the endpoint that is needed",
        )
