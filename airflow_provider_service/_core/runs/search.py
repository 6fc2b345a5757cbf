"""Find the executions of a task run among those of a workflow, by the key that its calls carried.

The data of an execution shows which call started it, but can be large. So lists are read without data, and then the
data of one execution at a time, newest first, no further than needed. What started an execution never changes, so a
search reads none twice.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import merge
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from airflow_provider_service._core.runs import start_and_find
from airflow_provider_service._core.runs.queued import QueuedExecutions
from airflow_provider_service._core.runs.run_key import CallTag, RunKey
from airflow_provider_service._core.runs.start_and_find import IsAnswered, never
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ACTIVE_STATUSES, ENDED_STATUSES, FAILED_STATUSES
from airflow_provider_service.client._execution_data import starting_items, with_data
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._constraints import ExecutionStatus
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

RUN_KEY_HEADER = "X-Airflow-Run-Key"
# A form is unlikely to have a field of its own with this name.
RUN_KEY_FIELD = "airflow_run_key"
MAX_SHOWN_IDS = 5
# Reads of an execution: if its data cannot be read, the whole task run is in doubt.
MAX_READS = 3
# Possible difference between the clocks of Airflow and of the service that remains after correction by the offset.
CLOCK_SKEW = timedelta(minutes=10)

IsOlder = Callable[["Execution"], bool]


class FoundRun(NamedTuple):
    """An execution that carries a run key, and the attempt that started it."""

    execution: Execution
    attempt: int


class EarlierRuns(NamedTuple):
    """What a search for the executions of a task run has found.

    :param found: executions that carry its key, newest first, back to that of the previous attempt.
    :param unreadable: other executions that may be its own: they hide what started them, and have not failed.
    """

    found: list[FoundRun]
    unreadable: list[Execution]

    @classmethod
    def joined(cls, several: Iterable[EarlierRuns]) -> EarlierRuns:
        """Join the results of several searches."""
        each = list(several)
        found = sorted((run for runs in each for run in runs.found), key=lambda run: -run.execution.number)
        return cls(found, [one for runs in each for one in runs.unreadable])

    @property
    def ids(self) -> set[str]:
        """The ids of all executions."""
        return {one.id for one in (*(run.execution for run in self.found), *self.unreadable)}

    def is_complete(self, key: RunKey) -> bool:
        """Whether an execution was found that no other of the same task run can have followed."""
        return any(key.follows(run.attempt, run.execution.status) for run in self.found)

    def own(self, key: RunKey) -> str | None:
        """Return the id of the execution that this attempt has started."""
        return next((run.execution.id for run in self.found if run.attempt == key.attempt), None)

    def resumable(self, key: RunKey) -> FoundRun | None:
        """Return the newest execution that this attempt may resume."""
        return next((run for run in self.found if key.may_resume(run.attempt, run.execution.status)), None)

    def failed(self, key: RunKey) -> str | None:
        """Return the id of the newest execution since another run was requested; call this if none can be resumed."""
        return next((run.execution.id for run in self.found if run.attempt >= key.first), None)

    def doubt(self, base_url: str, *, all_are_kept: bool) -> str | None:
        """Say why there may be an execution that was not found; None if there cannot be one.

        :param base_url: address of the service.
        :param all_are_kept: whether the workflow keeps its executions.
        """
        if self.unreadable:
            shown = self.unreadable[:MAX_SHOWN_IDS]
            pages = " ".join(execution_url(base_url, one.workflow_id or "", one.id) for one in shown)
            ids = ", ".join(one.id for one in shown)
            return f"executions {ids} do not show what started them, and one of them may be its own: {pages}"
        return None if all_are_kept else "the workflow does not keep all its executions"


class StartingCall(NamedTuple):
    """What an execution shows about the call that started it.

    :param tag: tag of the task that made the call, if a task made it.
    :param is_shown: whether the execution shows what started it.
    """

    tag: CallTag | None
    is_shown: bool


_NOT_CALLED = StartingCall(None, is_shown=True)


class KeyLocation(NamedTuple):
    """Where calls leave their key in the executions that they start.

    :param name: name of the header or field that holds the key.
    :param mode: mode of the executions; a retry shows the call of the execution that it retries.
    :param within: returns the part of a starting item that holds the key; None for an item of another kind.
    """

    name: str
    mode: str
    within: Callable[[dict[str, Any]], dict[str, Any] | None]


def _headers(item: dict[str, Any]) -> dict[str, Any] | None:
    headers = item.get("headers")
    return headers if isinstance(headers, dict) else None


KEY_IN_HEADERS = KeyLocation(RUN_KEY_HEADER.lower(), "webhook", _headers)


def starting_call(execution: Execution, location: KeyLocation = KEY_IN_HEADERS) -> StartingCall:
    """Read from the data of an execution which call started it."""
    sent = [place for item in starting_items(execution) if (place := location.within(item)) is not None]
    tags = (CallTag.read(place.get(location.name)) for place in sent)
    # An execution that was started in another way cannot be ours, even if it hides its data.
    return StartingCall(next(filter(None, tags), None), is_shown=execution.mode != location.mode or bool(sent))


class Search(Protocol):
    """A search for the executions of a task run. It only reads, so its errors say nothing about what was started."""

    def made_by(self, client: ServiceClient, tag: CallTag, is_answered: IsAnswered = never) -> str | None:
        """Find the execution that a call with exactly this tag has made.

        :param is_answered: whether the call was answered meanwhile, which ends the search.
        """

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        """Find the executions of this attempt and of earlier ones.

        :param exhaustive: search longer for executions that wait for a worker, before concluding that there is none.
        """


class RunSearch:
    """Searches a workflow for the executions that carry a run key.

    :param workflow_id: the workflow.
    :param since: date and time by our clock before which no call was made; None if that is unknown.
    :param location: where calls leave the key.
    :param are_runs: whether its executions are the runs, and not those that start the runs.
    """

    def __init__(
        self,
        workflow_id: str,
        since: datetime | None,
        location: KeyLocation = KEY_IN_HEADERS,
        *,
        are_runs: bool = True,
    ) -> None:
        self._workflow_id, self._are_runs = workflow_id, are_runs
        self._since = since
        self._location = location
        self._starting_calls: dict[str, StartingCall] = {}
        self._queued = QueuedExecutions(workflow_id)

    def made_by(self, client: ServiceClient, tag: CallTag, is_answered: IsAnswered = never) -> str | None:
        """Find the execution that a call with exactly this tag has made.

        :param is_answered: whether the call was answered meanwhile, which ends the search.
        """
        listed = list_back(client, self._workflow_id, began_before(client, self._since))
        executions = takewhile(lambda _: not is_answered(), chain(listed, self._queued.read(client)))
        return next((one.id for one in executions if self._starting_call(client, one).tag == tag), None)

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        """Find the executions of earlier attempts, newest first.

        The search ends at an execution of the previous attempt, which had itself searched for older ones. If the
        DAG run was cleared, the search also finds older executions that have not ended.

        :param exhaustive: search longer for executions that wait for a worker, before concluding that there is none.
        """
        found: list[FoundRun] = []
        unreadable: list[Execution] = []
        is_older = began_before(client, self._since, by_another_clock=bool(key.start))  # when the DAG run began
        lists = _lists(client, self._workflow_id, is_older, and_all_active=key.was_cleared)
        listed = _each_once(merge(*lists, key=lambda one: -one.number))
        for execution in chain(listed, self._queued.read(client, exhaustive=exhaustive)):
            call = self._starting_call(client, execution)
            attempt = key.attempt_of(call.tag)
            if attempt is not None:
                found.append(FoundRun(execution, attempt))
                if key.follows(attempt, execution.status if self._are_runs else None):
                    break
            elif call.tag is not None and call.tag.task == key.task:
                _warn_of_namesake(execution)
            elif not call.is_shown and execution.status not in FAILED_STATUSES:
                unreadable.append(execution)
        return EarlierRuns(sorted(found, key=lambda run: -run.execution.number), unreadable)

    def _starting_call(self, client: ServiceClient, execution: Execution) -> StartingCall:
        if execution.mode not in (self._location.mode, "retry", None):
            return _NOT_CALLED
        if execution.id in self._starting_calls:
            return self._starting_calls[execution.id]
        try:
            call = starting_call(read_again(client, execution.id), self._location)
        except errors.ServiceNotFoundError:  # deleted meanwhile
            call = _NOT_CALLED
        except (errors.ServiceAnswerTooLargeError, errors.ServiceUnexpectedResponseError) as error:
            log.warning("Execution %s does not show what called it: %s", execution.id, error)
            return StartingCall(None, is_shown=False)
        if call.is_shown or execution.status in ENDED_STATUSES:
            self._starting_calls[execution.id] = call
        return call


def read_again(client: ServiceClient, execution_id: str) -> Execution:
    """Read an execution with its data, several times if the answers arrive damaged."""
    for _ in range(MAX_READS - 1):
        with suppress(errors.ServiceUnexpectedResponseError):
            return with_data(client, execution_id)
    return with_data(client, execution_id)


def find_earlier_runs(client: ServiceClient, search: Search, key: RunKey, stopped: threading.Event) -> EarlierRuns:
    """Find the executions that the attempts of a task run have started.

    If there is none of the previous attempt, searches again after a while, because that attempt may have been killed
    while its call was on its way.

    :param search: reaches back at least to the first attempt.
    :param stopped: set from outside to give up.
    :raises ServiceTaskKilledError: given up.
    """
    runs = search.earlier(client, key)
    if runs.is_complete(key):
        return runs
    if clock().wait(stopped, start_and_find.SETTLING_SECONDS):
        raise errors.ServiceTaskKilledError("the task was killed while it searched for executions of earlier attempts")
    return search_again(partial(search.earlier, client, key, exhaustive=True), runs)


def search_again(look: Callable[[], EarlierRuns], before: EarlierRuns) -> EarlierRuns:
    """Search again, and once more if an execution is missing that was found before.

    An execution can move between the lists while a search reads them, so a single search proves nothing.
    """
    again = look()
    return again if before.ids <= again.ids else look()


def list_back(client: ServiceClient, workflow_id: str, is_older: IsOlder) -> Iterator[Execution]:
    """List the executions of a workflow, each once, back to the first that is too old.

    Running executions are only in a list of their own, so several lists are read, each newest first. An execution that
    begins or ends between two of these reads can be missing from both lists: search twice before concluding that there
    is none.
    """
    return _each_once(chain(*_lists(client, workflow_id, is_older)))


def began_before(client: ServiceClient, since: datetime | None, *, by_another_clock: bool = False) -> IsOlder:
    """Return a condition on executions: whether one, and therefore every older one, began before a time by our clock.

    Without a time, none did. The offset of the service's clock is known only after the service has answered, so the
    condition reads it.

    :param by_another_clock: the time was taken on another machine of Airflow. If our clock is behind, the service's
        only seems to be ahead, so the time is never moved forward.
    """

    def is_older(execution: Execution) -> bool:
        if since is None or execution.started_at is None:
            return False
        started = execution.started_at
        offset = client.transport.clock_offset or timedelta()
        bound = since + (min(offset, timedelta()) if by_another_clock else offset)
        return (started if started.tzinfo else started.replace(tzinfo=UTC)) < bound

    return is_older


def _lists(
    client: ServiceClient, workflow_id: str, is_older: IsOlder, *, and_all_active: bool = False
) -> list[Iterator[Execution]]:
    """Return the lists to read, each newest first.

    :param and_all_active: also list the executions that have not ended, however old.
    """
    bounds: dict[ExecutionStatus | None, IsOlder] = {"running": is_older}
    if and_all_active:
        bounds = dict.fromkeys(ACTIVE_STATUSES, began_before(client, None))
    return [_list(client, workflow_id, status, bound) for status, bound in {**bounds, None: is_older}.items()]


def _list(
    client: ServiceClient, workflow_id: str, status: ExecutionStatus | None, is_older: IsOlder
) -> Iterator[Execution]:
    for execution in client.executions.list(workflow_id=workflow_id, status=status):
        if is_older(execution):
            return
        yield execution


def _each_once(executions: Iterator[Execution]) -> Iterator[Execution]:
    seen: set[str] = set()
    for execution in executions:
        if execution.id not in seen:
            seen.add(execution.id)
            yield execution


def _warn_of_namesake(execution: Execution) -> None:
    if execution.status not in ENDED_STATUSES:
        log.warning(
            "Execution %s has not ended and belongs to a task of the same DAG, run and task ids, so it is left alone: "
            "either another deployment of Airflow has started it, or this one has changed its address since "
            "([api] base_url, or [service] deployment)",
            execution.id,
        )
