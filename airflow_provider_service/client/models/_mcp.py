"""The MCP endpoint: its workflows, and the executions that it started."""

from __future__ import annotations

from typing import NamedTuple


class StartedExecution(NamedTuple):
    """An execution that the MCP endpoint started.

    :param execution_id: id of the execution.
    :param status: ``started``.
    """

    execution_id: str
    status: str
