"""One run of a workflow: a stack of nodes still to run, and the results of the nodes run so far.

Below it, workflows that others start: where such a run begins, who may start it, and how the service refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from airflow_provider_service.simulator._clock import epoch_milliseconds
from airflow_provider_service.simulator._engine.expressions import Items, Scope
from airflow_provider_service.simulator._engine.nodes import (
    CODE,
    MERGE,
    SUB_WORKFLOW_TRIGGER,
    WAIT,
    Node,
    NodeFailedError,
    NotSimulatedError,
    Outcome,
    WebhookAnswer,
    operation_error,
    run_node,
)

#: Starts a workflow for a node: takes the node, the workflow's id and the items, and returns the new execution's id.
StartSubWorkflow = Callable[[Node, str, Items], int]

# A loop in the connections may never end.
_MOST_NODE_RUNS = 10_000


@dataclass(frozen=True)
class Snapshot:
    """A workflow as a run sees it. Its parts are replaced when the workflow changes, never changed in place."""

    workflow_id: str
    name: str
    nodes: list[Node]
    connections: Mapping[str, Any]
    settings: Mapping[str, Any]
    node_groups: list[Any]
    version_id: str | None

    def node(self, name: str) -> Node | None:
        return next((node for node in self.nodes if node["name"] == name), None)

    def joins(self, node: Node) -> bool:
        """Whether a node is a Merge that waits for several branches."""
        return node["type"] == MERGE and any(
            target["node"] == node["name"] and target.get("index")
            for outputs in self.connections.values()
            for targets in outputs.get("main") or []
            for target in targets or []
        )

    @property
    def is_ordered_by_position(self) -> bool:
        """Whether each branch runs to its end before the next one, from top to bottom."""
        return self.settings.get("executionOrder") == "v1"

    def trigger(self) -> Node | None:
        triggers = (node for node in self.nodes if node["type"].endswith(("Trigger", ".webhook")))
        return next(triggers, self.nodes[0] if self.nodes else None)


@dataclass(frozen=True)
class Pending:
    node: Node
    items: Items
    source: tuple[str, int, int] | None = None  # previous node, its output, its run
    output: int = 0  # number of the output that gets the items

    def source_json(self) -> dict[str, Any] | None:
        if self.source is None:
            return None
        name, output, run = self.source
        return {"previousNode": name, "previousNodeOutput": output, "previousNodeRun": run}


@dataclass
class Run:
    snapshot: Snapshot
    execution_id: int
    stack: list[Pending]
    run_data: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    last_node: str | None = None
    error: dict[str, Any] | None = None
    answer: WebhookAnswer | None = None
    custom_data: dict[str, str] = field(default_factory=dict)
    pinned: Mapping[str, Items] = field(default_factory=dict)  # output of nodes that are not run
    wait_over: bool = False
    initial: Pending | None = None
    _waiting_since: datetime | None = None
    _node_runs: int = 0

    def __post_init__(self) -> None:
        if self.initial is None and self.stack:
            self.initial = self.stack[0]

    def proceed(self, moment: datetime, start_sub_workflow: StartSubWorkflow) -> datetime | None:
        """Run nodes until one has to wait, and return until when; None if the run has ended."""
        while self.stack:
            pending = self.stack[0]
            try:
                outcome = self._run(pending, moment, start_sub_workflow)
            except NotSimulatedError as failure:
                self.fail(failure.error, moment)
                return None
            except NodeFailedError as failure:
                if not self._go_on_after(pending, failure.error, moment):
                    return None
                continue
            if outcome.wait_until is not None and outcome.wait_until > moment:
                self.wait_over = True
                self._waiting_since = moment
                return outcome.wait_until
            self.custom_data.update(outcome.custom_data)
            # Only the first Respond to Webhook node has an effect.
            self.answer = self.answer or outcome.answer
            outputs = [*([] for _ in range(pending.output)), outcome.items, *outcome.others]
            self._complete(pending, outputs, moment, outcome.metadata)
        return None

    def _run(self, pending: Pending, moment: datetime, start_sub_workflow: StartSubWorkflow) -> Outcome:
        node, items = pending.node, pending.items
        self._node_runs += 1
        if self._node_runs > _MOST_NODE_RUNS:
            raise NotSimulatedError(operation_error(node, "The workflow runs in a circle"))
        if node["name"] in self.pinned:
            return Outcome(self.pinned[node["name"]])
        if node["type"] == MERGE and node["name"] in self.run_data:
            raise NotSimulatedError(operation_error(node, "The simulator does not merge several branches"))
        if self.snapshot.joins(node) and not self.snapshot.is_ordered_by_position:
            # There, the service also runs the branch that has no items.
            text = "The simulator merges branches only with the execution order v1"
            raise NotSimulatedError(operation_error(node, text))
        if self.wait_over and node["type"] == WAIT:
            return Outcome(items)
        if node.get("executeOnce") and not node.get("disabled"):
            items = items[:1]
        outcome = run_node(node, items, self.scope, moment)
        if outcome.calls is None:
            return outcome
        started = start_sub_workflow(node, outcome.calls, outcome.items)
        started_as = {"executionId": str(started), "workflowId": outcome.calls}
        return replace(outcome, metadata={"subExecution": started_as, "subExecutionsCount": 1})

    def scope(self, item: dict[str, Any]) -> Scope:
        nodes = {}
        for name, runs in self.run_data.items():
            nodes[name] = [items for items in runs[-1].get("data", {}).get("main", []) if items]
        execution = {"id": str(self.execution_id), "mode": "production"}
        workflow = {"id": self.snapshot.workflow_id, "name": self.snapshot.name, "active": True}
        return Scope(item, execution, workflow, nodes)

    def _go_on_after(self, pending: Pending, error: dict[str, Any], moment: datetime) -> bool:
        node = pending.node
        policy = node.get("onError") or ("continueRegularOutput" if node.get("continueOnFail") else "stopWorkflow")
        if policy == "stopWorkflow":
            self.fail(error, moment)
            return False
        if node["type"] != CODE:
            # Each type of node has its own way to go on.
            text = f"to go on after a failure of {node['type']} is not simulated: {error['message']}"
            self.fail(operation_error(node, text), moment)
            return False
        failed: Items = [{"json": {"error": error["message"]}, "pairedItem": {"item": 0}}]
        self._complete(pending, [[], failed] if policy == "continueErrorOutput" else [failed], moment)
        return True

    def fail(self, error: dict[str, Any], moment: datetime) -> None:
        """End at the node on top of the stack, which stays there, because a retry begins with it."""
        self.error = error
        if self.stack:
            self._record(self.stack[0], None, moment, status="error", error=error)

    def _complete(
        self, pending: Pending, outputs: list[Items], moment: datetime, metadata: Mapping[str, Any] | None = None
    ) -> None:
        if pending.node.get("alwaysOutputData") and not (outputs and outputs[0]):
            paired = [{"item": index} for index in range(len(pending.items))]
            outputs = [[{"json": {}, "pairedItem": paired}], *outputs[1:]]
        self._record(pending, outputs, moment, status="success", metadata=metadata)
        self.stack.pop(0)
        self.wait_over = False
        self._waiting_since = None
        run_index = len(self.run_data[pending.node["name"]]) - 1
        followers = self._followers(pending.node["name"], outputs, run_index)
        if self.snapshot.is_ordered_by_position:
            followers.reverse()  # of nodes at the same place, the one connected last runs first
            self.stack[:0] = sorted(followers, key=lambda pending: pending.node.get("position", [])[1::-1])
        else:
            self.stack += followers
        # What waits for several branches runs when nothing else is left.
        self.stack.sort(key=lambda pending: self.snapshot.joins(pending.node))

    def _followers(self, name: str, outputs: list[Items], run_index: int) -> list[Pending]:
        connected = (self.snapshot.connections.get(name) or {}).get("main") or []
        followers = []
        for index, targets in enumerate(connected):
            items = outputs[index] if index < len(outputs) else []
            for target in targets or []:
                node = self.snapshot.node(target["node"])
                if node is not None and items:
                    followers.append(Pending(node, items, (name, index, run_index)))
        return followers

    def _record(
        self,
        pending: Pending,
        outputs: list[Items] | None,
        moment: datetime,
        *,
        status: str,
        error: dict[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        name = pending.node["name"]
        entry = self._entry(pending, moment, status)
        if error is not None:
            entry["error"] = error
        if metadata is not None:
            entry["metadata"] = metadata
        if outputs is not None:
            entry["data"] = {"main": outputs}
        self.run_data.setdefault(name, []).append(entry)
        self.last_node = name

    def _entry(self, pending: Pending, moment: datetime, status: str) -> dict[str, Any]:
        since = self._waiting_since or moment
        return {
            "startTime": epoch_milliseconds(since),
            "executionIndex": sum(map(len, self.run_data.values())),
            "source": [] if pending.source is None else [pending.source_json()],
            "hints": [],
            "executionTime": int((moment - since).total_seconds() * 1000),
            "executionStatus": status,
        }

    # ------------------------------------------------------------ from outside

    def cancel(self) -> None:
        message = "The execution was cancelled manually"
        self.error = _error(message, name="ManualExecutionCancelledError")

    def crash(self, moment: datetime) -> None:
        message = "Workflow did not finish, possible out-of-memory issue"
        self.error = _error(message, level="error", name="WorkflowCrashedError")
        if self.stack:
            crashed = {
                "level": "error",
                "name": "NodeCrashedError",
                "message": "Node crashed, possible out-of-memory issue",
                "node": self.stack[0].node,
            }
            artificial: list[Items] = [[{"json": {"isArtificialRecoveredEventItem": True}}]]
            self._record(self.stack[0], artificial, moment, status="crashed", error=crashed)

    def complete_top(self, moment: datetime) -> None:
        """Treat the node on top of the stack as done and drop the rest: the run is declared a success."""
        if self.stack:
            self._record(self.stack[0], [self.stack[0].items], moment, status="success")
        self.stack = []

    def jump_to(self, node: Node) -> None:
        items = self.stack[0].items if self.stack else [{"json": {}}]
        self.stack = [Pending(node, items)]

    def retried(self, execution_id: int, snapshot: Snapshot, *, resume: bool, skip_wait: bool) -> Run:
        stack = self.stack if resume else [self.initial] if self.initial else []
        renewed = [replace(each, node=snapshot.node(each.node["name"]) or each.node) for each in stack]
        top = renewed[0].node if renewed else None
        run_data = {name: list(runs) for name, runs in self.run_data.items()} if resume else {}
        if top is not None and self.error is not None:
            # The failed attempt is not part of the new run.
            succeeded = [run for run in run_data.pop(top["name"], []) if run["executionStatus"] == "success"]
            if succeeded:
                run_data[top["name"]] = succeeded
        is_wait = top is not None and top["type"] == WAIT
        return Run(
            snapshot,
            execution_id,
            renewed,
            run_data,
            pinned=self.pinned,
            initial=self.initial,
            wait_over=skip_wait and is_wait,
        )

    # ------------------------------------------------------------ results

    def first_output(self) -> Items:
        """The items of the first output of the node that ran last: a webhook answers with these only."""
        main = self.run_data[self.last_node][-1].get("data", {}).get("main", []) if self.last_node is not None else []
        return main[0] if main else []

    def waiting_entry(self) -> dict[str, list[dict[str, Any]]]:
        if not self.stack or self._waiting_since is None:
            return {}
        top = self.stack[0]
        entry = {**self._entry(top, self._waiting_since, "waiting"), "data": {"main": [top.items]}}
        return {top.node["name"]: [entry]}


# ---------------------------------------------------------------- workflows that others start

_MANUAL_TRIGGER = "n8n-nodes-base.manualTrigger"
_CALLING = "n8n-nodes-base.executeWorkflow"


class Callee(NamedTuple):
    """A published workflow that another one starts."""

    snapshot: Snapshot
    project_id: str

    def first_node(self) -> Node:
        """Where it begins. A disabled trigger counts as well, as on the service."""
        for kind in (SUB_WORKFLOW_TRIGGER, _MANUAL_TRIGGER):
            trigger = next((node for node in self.snapshot.nodes if node["type"] == kind), None)
            if trigger is not None:
                return trigger
        hint = "Please make sure the workflow you're calling contains an Execute Workflow Trigger node"
        error = _error(
            "Missing node to start execution", name="SubworkflowOperationError", description=hint, context={}
        )
        raise NodeFailedError(error)

    def allows(self, caller_id: str, caller_project_id: str) -> bool:
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
