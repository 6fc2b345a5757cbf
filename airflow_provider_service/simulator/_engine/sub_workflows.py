"""Workflows that other workflows start: which of them may, where the run begins, and how the service refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from airflow_provider_service.simulator._engine.nodes import SUB_WORKFLOW_TRIGGER, Node, NodeFailedError
from airflow_provider_service.simulator._engine.run import Snapshot

_MANUAL_TRIGGER = "n8n-nodes-base.manualTrigger"
_CALLING = "n8n-nodes-base.executeWorkflow"
_MISSING_START = "Missing node to start execution"
_START_HINT = "Please make sure the workflow you're calling contains an Execute Workflow Trigger node"


class Callee(NamedTuple):
    """A published workflow that another one starts."""

    snapshot: Snapshot
    project_id: str

    def first_node(self) -> Node:
        """Where it begins. A disabled trigger counts as well, as on the service.

        :raises NodeFailedError: it has no node that another workflow can start
        """
        for kind in (SUB_WORKFLOW_TRIGGER, _MANUAL_TRIGGER):
            found = next((node for node in self.snapshot.nodes if node["type"] == kind), None)
            if found is not None:
                return found
        name = "SubworkflowOperationError"
        raise NodeFailedError(_error(_MISSING_START, name=name, description=_START_HINT, context={}))

    def allows(self, caller_id: str, caller_project_id: str) -> bool:
        """Whether its settings let another workflow start it."""
        policy = self.snapshot.settings.get("callerPolicy", "workflowsFromSameOwner")
        if policy == "workflowsFromAList":
            listed = str(self.snapshot.settings.get("callerIds") or "").split(",")
            return caller_id in map(str.strip, listed)
        return policy == "any" or (policy == "workflowsFromSameOwner" and caller_project_id == self.project_id)


def called_workflows(nodes: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """The names of the nodes that call other workflows, with the ids of those, unless an id is an expression."""
    for node in nodes:
        parameters = node.get("parameters") or {}
        address = parameters.get("workflowId")
        called = address.get("value") if isinstance(address, dict) else address
        is_stored = parameters.get("source") in (None, "", "database")
        if node["type"] != _CALLING or node.get("disabled") or not is_stored:
            continue
        if isinstance(called, str) and called and not called.startswith("="):
            yield node["name"], called


def not_active(workflow_id: str) -> NodeFailedError:
    """The failure of a node that calls a workflow which does not exist or is not published."""
    return NodeFailedError(_error("Workflow is not active and cannot be executed.", extra={"workflowId": workflow_id}))


def denial(workflow_id: str, node: Node) -> dict[str, Any]:
    """The error of an execution whose workflow may not be called by the node's workflow."""
    return _error(
        f"The sub-workflow ({workflow_id}) cannot be called by this workflow",
        name="SubworkflowPolicyDenialError",
        description=(
            "The sub-workflow you’re trying to execute limits which workflows it can be called by. You will need to "  # noqa: RUF001
            f"update the sub-workflow ({workflow_id}) settings to allow this workflow to call it."
        ),
        node=node,
    )


def _error(message: str, **details: Any) -> dict[str, Any]:
    stack = f"{details.get('name', 'Error')}: {message}"
    return {"level": "warning", "tags": {}, **details, "message": message, "stack": stack}
