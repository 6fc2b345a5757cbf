"""Where an execution's data holds what: the failure, the last node's output, the item that started it.

Reads executions that were asked for with ``include_data=True``. The data is the user's and of any shape: what is
not where it should be counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources
    from airflow_provider_service.client.models.executions import Execution


class Failure(NamedTuple):
    """What made an execution fail: the node, if known, and the service's message, if any."""

    node: str | None
    message: str | None


def failure_of(execution: Execution) -> Failure:
    """Find the failing node and the message of a failed execution."""
    error = _at(execution.data, "resultData", "error")
    node = _text(_at(error, "node", "name")) or _failed_node(execution) or _last_node(execution)
    message = _text(_at(error, "message"))
    description = _text(_at(error, "description"))
    if message and description and description != message:
        message = f"{message} ({description})"
    return Failure(node, message)


def with_data(client: Resources, execution_id: str) -> Execution:
    """Read an execution with its data, also where that is larger than the service shows unasked."""
    execution = client.executions.get(execution_id, include_data=True)
    if not execution.data_too_large_to_display:
        return execution
    return client.executions.get(execution_id, include_data=True, ignore_data_size_limit=True)


def last_output(execution: Execution) -> list[Any] | None:
    """The JSON items that the last node put out; None where the data does not show that."""
    runs = _at(execution.data, "resultData", "runData", _last_node(execution) or "")
    if not runs:
        return None
    return [item.get("json") for item in _list(_at(runs, -1, "data", "main", 0)) if isinstance(item, dict)]


def starting_items(execution: Execution) -> Iterator[dict[str, Any]]:
    """The JSON items that started the execution: for a webhook those with ``headers``, ``query`` and ``body``.

    They sit at the first node's run once it ran, and on the stack of nodes to run before that. A webhook that takes
    several methods has an output for each.
    """
    stack = _list(_at(execution.data, "executionData", "nodeExecutionStack"))
    places = [_at(entry, "data", "main") for entry in stack]
    places += [_at(runs, 0, "data", "main") for runs in _runs(execution).values()]
    for output in chain.from_iterable(map(_list, places)):
        for item in _list(output):
            value = _at(item, "json")
            if isinstance(value, dict):
                yield value


def pinned_nodes(execution: Execution) -> frozenset[str]:
    """The names of the nodes whose output was given to the execution, rather than made by it."""
    pinned = _at(execution.data, "resultData", "pinData")
    return frozenset(pinned) if isinstance(pinned, dict) else frozenset()


def sub_execution_id(execution: Execution) -> str | None:
    """The id of the execution that one of its nodes has started, if one did."""
    for runs in _runs(execution).values():
        for run in _list(runs):
            found = _at(run, "metadata", "subExecution", "executionId")
            if found:
                return str(found)
    return None


def parent_execution_id(execution: Execution) -> str | None:
    """The id of the execution whose node has started it, if one did."""
    found = _at(execution.data, "parentExecution", "executionId")
    return str(found) if found else None


def _last_node(execution: Execution) -> str | None:
    return _text(_at(execution.data, "resultData", "lastNodeExecuted"))


def _failed_node(execution: Execution) -> str | None:
    for name, runs in _runs(execution).items():
        if _at(runs, -1, "executionStatus") == "error":
            return str(name)
    return None


def _runs(execution: Execution) -> dict[str, Any]:
    """The runs of each node."""
    runs = _at(execution.data, "resultData", "runData")
    return runs if isinstance(runs, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _at(value: Any, *path: str | int) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
