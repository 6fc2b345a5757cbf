"""Find executions that wait for a worker: in queue mode, no list shows them, but they can be read by id.

Ids are assigned one after the other, so the ids that no list shows lie between those that are listed, or follow them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING

from airflow_provider_service.client import errors

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._constraints import ExecutionStatus
    from airflow_provider_service.client.models import Execution

# Number of the newest listed executions among whose ids queued ones are searched for.
LISTED = 100
# The search ends after this many consecutive ids that lead to no execution.
MAX_MISSING = 5
MAX_READS = 200


class QueuedExecutions:
    """The executions of one workflow that wait for a worker.

    :param workflow_id: the workflow.
    :param after: number of an execution that is older than all executions to find.
    """

    def __init__(self, workflow_id: str, after: int = 0) -> None:
        self._workflow_id = workflow_id
        self._after = after
        self._others: set[int] = set()
        self._missed: set[int] = set()
        self._absent: set[int] = set()

    def read(self, client: ServiceClient, *, exhaustive: bool = False) -> Iterator[Execution]:
        """Read these executions, newest first: first two lists, and then the ids that the lists leave out.

        :param exhaustive: end only after twice as many consecutive ids without an execution as the widest gap in the
            list, because the newest executions may have been deleted or not kept. Costs up to 200 reads.
        :raises ServiceApiError: a list or an execution cannot be read.
        """
        statuses: tuple[ExecutionStatus | None, ...] = ("running", None)
        listed = {one.number for status in statuses for one in client.executions.list(status=status, limit=LISTED)}
        newest, oldest = max(listed, default=0), min(listed, default=0)
        missing = max(MAX_MISSING, 2 * _widest_gap(listed)) if exhaustive else MAX_MISSING
        yield from reversed(list(self._following(client, max(newest, self._after), missing)))
        # On a slow database, even an execution that was missed twice may still appear.
        known = listed | self._others | (set() if exhaustive else self._absent)
        left_out = (one for one in range(newest - 1, max(oldest, self._after), -1) if one not in known)
        for number in islice(left_out, MAX_READS):
            execution = self._get(client, number)
            if execution is None:
                # An execution that is being created at this moment can be missed once.
                (self._absent if number in self._missed else self._missed).add(number)
            elif self._is_queued(execution):
                yield execution

    def _following(self, client: ServiceClient, newest: int, max_missing: int) -> Iterator[Execution]:
        missing = 0
        unknown = (number for number in count(newest + 1) if number not in self._others)
        for number in islice(unknown, MAX_READS):
            execution = self._get(client, number)
            missing = 0 if execution else missing + 1
            if missing == max_missing:
                return
            if execution is not None and self._is_queued(execution):
                yield execution

    def _is_queued(self, execution: Execution) -> bool:
        if execution.workflow_id != self._workflow_id:
            self._others.add(execution.number)
        return execution.status == "new" and execution.workflow_id == self._workflow_id

    def _get(self, client: ServiceClient, number: int) -> Execution | None:
        try:
            return client.executions.get(str(number))
        except errors.ServiceNotFoundError:
            return None


def _widest_gap(listed: set[int]) -> int:
    """Return the widest gap between two ids, or before the first one if all executions are listed."""
    numbers = sorted(listed if len(listed) >= LISTED else {0} | listed)
    return max((later - one for one, later in pairwise(numbers)), default=MAX_READS)
