"""What the nodes of an execution did, as a table for the log and in short for a result."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.text_table import cut, text_table
from airflow_provider_service.client._texts import one_line

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.client._execution_data import NodeRun
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

#: Nodes in a table or a result, in the order in which they began.
MAX_NODES = 50
MAX_MESSAGE_CHARS = 200

_COLUMNS = ("node", "status", "seconds", "items", "message")


def node_table(nodes: Sequence[NodeRun]) -> Iterator[str]:
    """The nodes as the lines of a table."""
    rows = [
        (
            cut(one_line(one.node)),
            one.status or "-",
            f"{one.seconds:.3f}",
            str(one.items),
            cut(one_line(one.message or ""), MAX_MESSAGE_CHARS),
        )
        for one in nodes[:MAX_NODES]
    ]
    yield from text_table(_COLUMNS, rows)
    if len(nodes) > MAX_NODES:
        yield f"and {len(nodes) - MAX_NODES} more nodes"


def log_nodes(nodes: Sequence[NodeRun]) -> None:
    """Write the table to the log of the task, unless it has no rows."""
    for line in node_table(nodes) if nodes else ():
        log.info("%s", line)


def read_small(config: ServiceConfig, execution_id: str, max_mib: int) -> Execution:
    """Read an execution with its data in one try, if that is not large.

    :raises ServiceAnswerTooLargeError: it is.
    """
    from airflow_provider_service.client import ServiceClient

    limit = min(max_mib, config.max_answer_mib)
    with ServiceClient(config.one_try(max_answer_mib=limit)) as client:
        return client.executions.get(execution_id, include_data=True)


def nodes_in_short(nodes: Sequence[NodeRun] | None) -> dict[str, Any]:
    """The nodes as a task returns them, without any data: at most 50 of them, and how many there are.

    :param nodes: None if they could not be read.
    """
    if not nodes:
        return {"nodes": None, "node_count": None}
    shown = [
        {"node": one.node, "status": one.status, "seconds": one.seconds, "items": one.items}
        for one in nodes[:MAX_NODES]
    ]
    return {"nodes": shown, "node_count": len(nodes)}
