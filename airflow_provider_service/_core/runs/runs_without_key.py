"""Find executions that show that a call started them, and when, but not which call."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from airflow_provider_service._core.runs.queued import QueuedExecutions
from airflow_provider_service._core.runs.search import EarlierRuns, IsOlder, list_back, read_again
from airflow_provider_service._core.runs.start_and_find import IsAnswered, never
from airflow_provider_service.client import errors
from airflow_provider_service.client._constraints import FAILED_STATUSES
from airflow_provider_service.client._execution_data import pinned_nodes

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.run_key import CallTag, RunKey
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._constraints import ExecutionStatus
    from airflow_provider_service.client.models import Execution


class KeylessSearch:
    """Searches a workflow for executions that a task run may have started through MCP. None is certainly its own.

    :param workflow_id: the workflow.
    :param trigger: name of the node that began them. The service pins the data that a call passes to the node, which
        distinguishes these runs from those that the node begins by itself.
    :param mode: mode of the executions that such calls start.
    :param is_older: whether an execution was created before the calls.
    :param and_failed: also find failed executions. By default they are left out, because another may be started after
        them.
    """

    def __init__(
        self, workflow_id: str, trigger: str, mode: str, is_older: IsOlder, *, and_failed: bool = False
    ) -> None:
        self._workflow_id, self._trigger, self._mode, self._is_older = workflow_id, trigger, mode, is_older
        self._no_matter = frozenset() if and_failed else FAILED_STATUSES

    def made_by(self, client: ServiceClient, tag: CallTag, is_answered: IsAnswered = never) -> str | None:
        """Always None, because an execution does not show which call started it."""
        return None

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        """Find the executions that this attempt or an earlier one may have started."""
        listed = list_back(client, self._workflow_id, self._is_older)
        queued = QueuedExecutions(self._workflow_id).read(client, exhaustive=exhaustive)
        candidates = (one for one in chain(listed, queued) if one.mode == self._mode and not self._is_older(one))
        return EarlierRuns(
            found=[],
            unreadable=[
                one for one in candidates if one.status not in self._no_matter and self._may_be_called(client, one)
            ],
        )

    def _may_be_called(self, client: ServiceClient, execution: Execution) -> bool:
        try:
            read = read_again(client, execution.id)
        except errors.ServiceNotFoundError:  # deleted meanwhile
            return False
        except (errors.ServiceAnswerTooLargeError, errors.ServiceUnexpectedResponseError):
            return True
        return not read.data or self._trigger in pinned_nodes(read)


def made_until(number: int) -> IsOlder:
    """Return a condition on executions: whether the number is at most this one."""
    return lambda execution: execution.number <= number


def newest_number(client: ServiceClient, workflow_id: str) -> int:
    """Return the number of the newest execution of a workflow, or 0 if it has none."""
    statuses: tuple[ExecutionStatus | None, ...] = ("running", None)
    lists = (client.executions.list(workflow_id=workflow_id, status=status, limit=1) for status in statuses)
    return max((one.number for one in chain.from_iterable(islice(one, 1) for one in lists)), default=0)
