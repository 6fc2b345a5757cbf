"""The executions of a hook, which also reads the output of their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import require
from airflow_provider_service._core.runs.output import read_whole
from airflow_provider_service.client._constraints import ENDED_STATUSES
from airflow_provider_service.client._execution_data import last_output, nodes_of, output_of
from airflow_provider_service.client.errors import ServiceLookupError
from airflow_provider_service.client.resources import Executions

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient

__all__ = ["HookExecutions"]

_MAX_NAMED_NODES = 20


class HookExecutions(Executions):
    """Executions, and the output of their nodes.

    :param client: the service.
    """

    def __init__(self, client: ServiceClient) -> None:
        super().__init__(client.transport)
        self._client = client

    def output(self, execution_id: int | str, *, node: str | None = None) -> list[Any]:
        """Read the output of a node of an execution, whoever started it: ``GET /executions/{executionId}``.

        The output consists of the items of all outputs of the node in its last run, without files. It may contain
        whatever the workflow was called with, including headers and their secrets. Safe to repeat.

        :param node: name of the node; None, the default, for the node that ran last.
        :returns: the JSON value of each item.
        :raises ServiceInputError: the id is invalid, or the execution has not ended.
        :raises ServiceNotFoundError: there is no such execution, or it was not kept after its end.
        :raises ServiceLookupError: the node has not run, or the service did not keep the data of the execution.
        :raises ServiceAnswerTooLargeError: the data is larger than the connection's ``max_answer_mib``.
        """
        execution = read_whole(self._client, str(execution_id))
        require(
            execution.status in ENDED_STATUSES,
            f"execution {execution.id} has not ended (status '{execution.status}'), so its output is not complete; "
            "wait for it with ServiceExecutionSensor",
        )
        items = last_output(execution) if node is None else output_of(execution, node)
        if items is None:
            ran = ", ".join(repr(one.node) for one in nodes_of(execution)[:_MAX_NAMED_NODES]) or "none"
            whose = "of its last node" if node is None else f"of node {node!r}"
            raise ServiceLookupError(f"execution {execution.id} shows no output {whose}; its nodes that ran: {ran}")
        return items
