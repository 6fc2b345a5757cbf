"""Find failures, outputs of nodes and the starting items in an execution's data, and read executions.

Except for :func:`read_state`, the execution must have been read with ``include_data=True``. Its data can have any
shape, because users decide what it contains: what is not where it should be counts as missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_service.client._values import dict_or_empty, list_or_empty
from airflow_provider_service.client.errors import ServiceError, ServiceServerError

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client._constraints import ExecutionStatus
    from airflow_provider_service.client.resources._executions import Execution

# The service counts milliseconds, and JavaScript counts exactly up to this number.
_LARGEST_NUMBER = 2**53
# Fields in which a language model reports the tokens that it has used; some models only estimate them.
_TOKENS = ("tokenUsage", "tokenUsageEstimate")
# An execution that cannot be read by its id is looked for in so many pages of a list.
MAX_PAGES_TO_LIST = 10


class NodeRun(NamedTuple):
    """The results of a node over all its runs."""

    node: str
    status: str | None  # of its last run, in the service's words
    seconds: float
    items: int  # of outputs of any kind: the sub-nodes of an agent have no main output
    message: str | None  # of its last run that failed


class Span(NamedTuple):
    """One run of a node of an execution; a node in a loop has several."""

    node: str
    began: float  # in milliseconds since 1970
    seconds: float
    status: str | None


class SubExecution(NamedTuple):
    workflow_id: str
    execution_id: str


class OutputFile(NamedTuple):
    """A file in the output of a node. The API describes the file, but does not return its content."""

    item: int  # counted from 1
    field: str
    name: str | None
    mime_type: str | None
    size: str | None  # in the service's words, such as "12.3 kB"


class Failure(NamedTuple):
    node: str | None
    message: str | None


def read_state(
    client: Resources, execution_id: str | int, workflow_id: str | None = None
) -> tuple[Execution, ServiceServerError | None]:
    """Read an execution without data; if its id cannot be read, from lists, and then also return why it cannot."""
    from airflow_provider_service.client.resources._executions import number_of

    try:
        return client.executions.get(execution_id), None
    except ServiceServerError as error:
        listed = None if error.repeat_may_help else _listed(client, number_of(str(execution_id)), workflow_id)
        if listed is None:
            raise
        return listed, error


def _listed(client: Resources, number: int, workflow_id: str | None) -> Execution | None:
    limit = MAX_PAGES_TO_LIST * client.transport.config.page_size
    # What ends between the two lists is in the second one.
    lists: tuple[ExecutionStatus | None, ...] = ("running", None)
    with suppress(ServiceError):
        for status in lists:
            for execution in client.executions.list(status=status, workflow_id=workflow_id, limit=limit):
                if execution.number == number:
                    return execution
                if 0 < execution.number < number:
                    break
    return None


def with_data(client: Resources, execution_id: str) -> Execution:
    execution = client.executions.get(execution_id, include_data=True)
    if not execution.data_too_large_to_display:
        return execution
    return client.executions.get(execution_id, include_data=True, ignore_data_size_limit=True)


def failure_of(execution: Execution) -> Failure:
    error = _at(execution.data, "resultData", "error")
    node = failed_node(execution) or last_node(execution)
    message = _text(_at(error, "message"))
    description = _text(_at(error, "description"))
    if message and description and description != message:
        message = f"{message} ({description})"
    return Failure(node, message)


def failed_node(execution: Execution) -> str | None:
    """The node that failed, by its error or its own status; None where the data does not show that one did."""
    failed = _text(_at(execution.data, "resultData", "error", "node", "name"))
    if failed:
        return failed
    # A node that failed and let the execution continue has the same status, so the last one comes first.
    runs = _runs(execution)
    for name in (last_node(execution), *runs):
        if _at(runs, name, -1, "executionStatus") == "error":
            return str(name)
    return None


def last_node(execution: Execution) -> str | None:
    return _text(_at(execution.data, "resultData", "lastNodeExecuted"))


def is_behind(execution: Execution) -> bool:
    """Whether the execution has succeeded, but its data is older, with nodes still to run."""
    return execution.status == "success" and bool(_stack(execution))


def last_output(execution: Execution) -> list[Any] | None:
    return output_of(execution, last_node(execution) or "")


def output_of(execution: Execution, node: str) -> list[Any] | None:
    """The JSON items of all outputs of a node's last run, in their order; None if the data does not show them."""
    items = _items(execution, node)
    return None if items is None else [item.get("json") for item in items]


def files_of(execution: Execution, node: str) -> list[OutputFile]:
    return [
        OutputFile(
            number, str(field), _text(_at(file, "fileName")), _text(_at(file, "mimeType")), _text(_at(file, "fileSize"))
        )
        for number, item in enumerate(_items(execution, node) or (), start=1)
        for field, file in dict_or_empty(item.get("binary")).items()
    ]


def _items(execution: Execution, node: str) -> list[dict[str, Any]] | None:
    runs = _runs(execution).get(node)
    if not runs:
        return None
    outputs = list_or_empty(_at(runs, -1, "data", "main"))
    return [item for output in outputs for item in list_or_empty(output) if isinstance(item, dict)]


def nodes_of(execution: Execution) -> list[NodeRun]:
    nodes = []
    for name, node_runs in sorted(_runs(execution).items(), key=lambda named: _number(_at(named[1], 0, "startTime"))):
        runs = list_or_empty(node_runs)
        messages = filter(None, (_text(_at(run, "error", "message")) for run in reversed(runs)))
        nodes.append(
            NodeRun(
                node=str(name),
                status=_text(_at(runs, -1, "executionStatus")),
                seconds=sum(_number(_at(run, "executionTime")) for run in runs) / 1000,
                items=sum(1 for run in runs for _ in _all_items(run)),
                message=next(messages, None),
            )
        )
    return nodes


def spans_of(execution: Execution) -> list[Span]:
    spans = [
        Span(
            node=str(name),
            began=_number(_at(run, "startTime")),
            seconds=_number(_at(run, "executionTime")) / 1000,
            status=_text(_at(run, "executionStatus")),
        )
        for name, runs in _runs(execution).items()
        for run in list_or_empty(runs)
    ]
    return sorted(spans, key=lambda span: span.began)


def items_by_output(execution: Execution, node: str) -> list[int]:
    """How many items each main output of a node has, over all its runs."""
    counts: list[int] = []
    for run in list_or_empty(_runs(execution).get(node)):
        for output, items in enumerate(list_or_empty(_at(run, "data", "main"))):
            if output == len(counts):
                counts.append(0)
            counts[output] += len(list_or_empty(items))
    return counts


def tokens_of(execution: Execution, node: str) -> int:
    items = (item for run in list_or_empty(_runs(execution).get(node)) for item in _all_items(run))
    return int(sum(_number(_at(item, "json", use, "totalTokens")) for item in items for use in _TOKENS))


def sub_executions_of(execution: Execution, node: str) -> Iterator[SubExecution]:
    """The executions that a node has started, each once: one for a run of it, or one for each item of a run."""
    seen = set()
    for run in list_or_empty(_runs(execution).get(node)):
        metadata = _at(run, "metadata")
        has_started_for_items = _at(metadata, "subExecutionsCount") and _at(metadata, "subExecution") is None
        for place in (run, *(_all_items(run) if has_started_for_items else ())):
            started = _at(place, "metadata", "subExecution")
            ids = _at(started, "workflowId"), _at(started, "executionId")
            if all(isinstance(part, (str, int)) and part for part in ids) and ids not in seen:
                seen.add(ids)
                yield SubExecution(*map(str, ids))


def current_node(execution: Execution) -> str | None:
    """The node that is running or waiting; None if the execution has ended, or the data shows no run."""
    if execution.status not in ("running", "waiting") or not _runs(execution):
        return None
    return _text(_at(_stack(execution), 0, "node", "name"))


def awaited_event(execution: Execution) -> str | None:
    """What the current node waits for, in words; None for a mere time, or if the data does not show it."""
    node = _at(_stack(execution), 0, "node")
    kind, parameters = _at(node, "type"), _at(node, "parameters")
    if _at(parameters, "operation") == "sendAndWait":
        return "an answer to its message"
    resume = "form" if kind == "n8n-nodes-base.form" else kind == "n8n-nodes-base.wait" and _at(parameters, "resume")
    return {"form": "a form to be submitted", "webhook": "a call of its webhook"}.get(str(resume))


def names_that_ran(execution: Execution) -> list[str]:
    return list(_runs(execution))


def telling_nodes(execution: Execution) -> frozenset[str]:
    """The names of the node that failed and of the one that ran last, as far as the data shows them."""
    return frozenset(filter(None, (failed_node(execution), last_node(execution))))


def first_with(names: Sequence[str], most: int, needed: Collection[str]) -> list[str]:
    """Reduce distinct names to at most ``most``, in their order: those to keep, and the first of the others."""
    if len(names) <= most:
        return list(names)
    others = (name for name in names if name not in needed)
    chosen = {*islice(others, most - sum(name in needed for name in names)), *needed}
    return [name for name in names if name in chosen]


def with_few_runs(execution: Execution, most_nodes: int, most_runs: int) -> tuple[Execution, bool]:
    """Limit the nodes and runs in the data, except for the :func:`telling_nodes` and the last run of each node.

    The second value is whether runs of the nodes that stay were left out.
    """
    names = first_with(names_that_ran(execution), most_nodes, telling_nodes(execution))
    runs = {name: list_or_empty(_runs(execution)[name]) for name in names}
    if sum(map(len, runs.values())) <= most_runs and len(runs) == len(_runs(execution)):
        return execution, False
    most = max(1, most_runs // len(runs))
    few = {name: some if len(some) <= most else [*some[: most - 1], some[-1]] for name, some in runs.items()}
    data = {**(execution.data or {})}
    data["resultData"] = {**data["resultData"], "runData": few}
    return execution.model_copy(update={"data": data}), any(len(few[name]) < len(runs[name]) for name in runs)


def starting_items(execution: Execution) -> Iterator[dict[str, Any]]:
    """The JSON items that started the execution: for a webhook those with ``headers``, ``query`` and ``body``.

    They are at the first node's run once it has run, and before that on the stack of nodes to run. A webhook that takes
    several methods has one output for each.
    """
    places = [_at(entry, "data", "main") for entry in _stack(execution)]
    places += [_at(runs, 0, "data", "main") for runs in _runs(execution).values()]
    for outputs in places:
        for output in list_or_empty(outputs):
            for item in list_or_empty(output):
                if isinstance(value := _at(item, "json"), dict):
                    yield value


def pinned_nodes(execution: Execution) -> frozenset[str]:
    pinned = _at(execution.data, "resultData", "pinData")
    return frozenset(pinned) if isinstance(pinned, dict) else frozenset()


def sub_execution_id(execution: Execution) -> str | None:
    """The first execution that a node started for a whole run; not for items, which pass on those of sub-workflows."""
    for runs in _runs(execution).values():
        for run in list_or_empty(runs):
            execution_id = _at(run, "metadata", "subExecution", "executionId")
            if execution_id:
                return str(execution_id)
    return None


def parent_execution_id(execution: Execution) -> str | None:
    execution_id = _at(execution.data, "parentExecution", "executionId")
    return str(execution_id) if execution_id else None


def _stack(execution: Execution) -> list[Any]:
    return list_or_empty(_at(execution.data, "executionData", "nodeExecutionStack"))


def _runs(execution: Execution) -> dict[str, Any]:
    return dict_or_empty(_at(execution.data, "resultData", "runData"))


def _all_items(run: Any) -> Iterator[Any]:
    for outputs in dict_or_empty(_at(run, "data")).values():
        for items in list_or_empty(outputs):
            yield from list_or_empty(items)


def _at(value: Any, *path: str | int | None) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _number(value: Any) -> float:
    """A number unchanged; 0 for any other value, and for numbers too large to be a time or a duration."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) <= _LARGEST_NUMBER else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
