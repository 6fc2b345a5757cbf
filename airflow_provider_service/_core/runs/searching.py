"""Make a call that starts an execution, and find that execution by the run key that the call carried.

The answer of a call may come late or never, and then nothing tells whether the call has arrived. So a call is made in
the background, and meanwhile a search looks for what it has started. Only a search that could have seen the execution,
and has not, allows another call. The searches of later attempts are the same.

A search is harder than it looks:

- What started an execution is part of its data, which can be large. So lists are read without data, and then the data
  of one execution at a time, newest first, no further than needed. It never changes, so a search reads none twice.
- Running executions are in a list of their own. One that begins or ends while lists are read can be missing from both:
  a single search proves nothing.
- In queue mode, no list shows the executions that wait for a worker, but they can be read by id. Ids are assigned one
  after the other, so those that no list shows lie between those that are listed, or follow them.
- Some executions hide what started them, or are not kept. Then the run is in doubt, and nothing is started.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import merge
from itertools import chain, count, islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from airflow_provider_service._core.daemon_threads import in_background
from airflow_provider_service._core.runs.attempt import RunKey
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

#: Seconds to wait for the answer of a call that may come when the run ends, before its execution is searched for.
ANSWER_PATIENCE_SECONDS = 1.0
#: The same for a call that is answered when the run begins: of many at once, each would search the others' runs.
PATIENCE_AT_ONCE_SECONDS = 10.0
#: Longest pause in seconds between two searches for the execution of a call.
MAX_SEARCH_PAUSE = 5.0
#: Seconds for which the execution of a call without an answer is searched for, as the call may still be on its way.
SETTLING_SECONDS = 3.0
#: Seconds within which the service shows the execution that an answered call has started.
VISIBLE_WITHIN_SECONDS = 30.0
#: Seconds after which an execution that is not visible has already ended, if its workflow does not keep executions.
UNKEPT_SECONDS = 1.0
#: Times that an execution is read to see what started it, before the whole task run is in doubt.
MAX_DATA_READS = 3
#: Executions that a message about a doubt names.
MAX_SHOWN_IDS = 5
#: Newest listed executions among whose ids those that wait for a worker are searched for.
LISTED = 100
#: Consecutive ids without an execution that end the search for those that wait for a worker.
MAX_MISSING = 5
#: Executions that one search reads by id, at most, in each of its two directions.
MAX_SINGLE_READS = 200

T = TypeVar("T")
IsAnswered = Callable[[], bool]
LookMeanwhile = Callable[[IsAnswered], str | None]
IsOlder = Callable[["Execution"], bool]


def answer_or_found(
    send: Callable[[], T], search: LookMeanwhile, stopped: threading.Event, *, at_once: bool = False
) -> tuple[T | None, str | None]:
    """Send a call, and wait for its answer or for the search to find what it started, whichever comes first.

    The search ends early once the call is answered; a final refusal is raised.
    """
    if stopped.is_set():
        raise errors.ServiceTaskKilledError("the task was killed before it started anything")
    # An open call must not hold a worker that defers.
    call = in_background(send, name="service-start")
    answered = threading.Event()
    call.add_done_callback(lambda _: answered.set())
    pause = PATIENCE_AT_ONCE_SECONDS if at_once else ANSWER_PATIENCE_SECONDS
    while True:
        if clock().wait(answered, pause):
            return call.result(), None
        execution_id = _tolerant(search, answered.is_set)
        if execution_id is not None:
            return None, execution_id
        # Not earlier: a task that is killed right after its call should still learn what the call has started.
        if stopped.is_set():
            raise errors.ServiceTaskKilledError(
                "the task was killed before it was known which execution it had started"
            )
        pause = min(pause * 1.5, MAX_SEARCH_PAUSE)


def never() -> bool:
    """Answer for a call that nobody waits for: it is never answered."""
    return False


def search_for(search: Callable[[], T | None], seconds: float, stopped: threading.Event) -> T | None:
    """Search repeatedly for a number of seconds, and once more at the end."""
    deadline = clock().monotonic() + seconds
    pause = min(0.1, seconds / 2)
    while True:
        remaining = deadline - clock().monotonic()
        result = search()
        if result is not None or remaining <= 0:
            return result
        if clock().wait(stopped, min(pause, remaining)):
            raise errors.ServiceTaskKilledError(
                "the task was killed while it searched for the execution that it had started"
            )
        pause = min(pause * 2, MAX_SEARCH_PAUSE)


def _tolerant(search: LookMeanwhile, is_answered: IsAnswered) -> str | None:
    """Search while the call is still open. A failed search is no reason to give up or to call again."""
    try:
        return search(is_answered)
    except errors.ServiceRunInDoubtError:
        raise
    except errors.ServiceError as error:
        if error.ends_wait:
            kind = errors.ServiceRunInDoubtError if error.final else errors.ServiceWaitError
            raise kind(f"a run was requested, but its execution cannot be searched for: {error}") from error
        log.warning("The search for the started execution failed: %s", error)
        return None


class FoundRun(NamedTuple):
    execution: Execution
    attempt: int


class EarlierRuns(NamedTuple):
    #: Newest first, back to the execution of the previous attempt.
    found: list[FoundRun]
    #: Others that may be its own: they hide what started them, and have not failed.
    unreadable: list[Execution]

    @classmethod
    def joined(cls, several: Iterable[EarlierRuns]) -> EarlierRuns:
        each = list(several)
        found = sorted((run for runs in each for run in runs.found), key=lambda run: -run.execution.number)
        return cls(found, [execution for runs in each for execution in runs.unreadable])

    @property
    def ids(self) -> set[str]:
        return {run.execution.id for run in self.found} | {execution.id for execution in self.unreadable}

    def is_complete(self, key: RunKey) -> bool:
        """Whether an execution was found that no other of the same task run can have followed."""
        return any(key.follows(run.attempt, run.execution.status) for run in self.found)

    def own(self, key: RunKey) -> str | None:
        """Return the id of the execution that this attempt has started."""
        return next((run.execution.id for run in self.found if run.attempt == key.attempt), None)

    def resumable(self, key: RunKey) -> FoundRun | None:
        return next((run for run in self.found if key.may_resume(run.attempt, run.execution.status)), None)

    def failed(self, key: RunKey) -> str | None:
        """Return the id of the newest execution since another run was requested; call this if none can be resumed."""
        return next((run.execution.id for run in self.found if run.attempt >= key.first), None)

    def doubt(self, base_url: str, *, all_are_kept: bool) -> str | None:
        """Say why there may be an execution that was not found; None if there cannot be one."""
        if self.unreadable:
            shown = self.unreadable[:MAX_SHOWN_IDS]
            ids = ", ".join(execution.id for execution in shown)
            pages = " ".join(execution_url(base_url, execution.workflow_id or "", execution.id) for execution in shown)
            return f"executions {ids} do not show what started them, and one of them may be its own: {pages}"
        return None if all_are_kept else "the workflow does not keep all its executions"


class StartingCall(NamedTuple):
    #: The key that the call carried, if a task made it.
    tag: RunKey | None
    is_shown: bool

    def carries(self, key: RunKey) -> bool:
        return self.tag is not None and self.tag.header == key.header


_NOT_CALLED = StartingCall(None, is_shown=True)


class KeyLocation(NamedTuple):
    """Where calls leave their key in the executions that they start."""

    name: str
    #: Mode of these executions; a retry shows the call of the execution that it retries.
    mode: str
    #: The part of a starting item that holds the key; None for the item itself.
    part: str | None


KEY_IN_HEADERS = KeyLocation(RUN_KEY_HEADER.lower(), "webhook", "headers")


def starting_call(execution: Execution, location: KeyLocation = KEY_IN_HEADERS) -> StartingCall:
    parts: Iterator[Any] = starting_items(execution)
    if location.part is not None:
        parts = (item.get(location.part) for item in parts)
    sent = [part for part in parts if isinstance(part, dict) and (part or location.part is not None)]
    tags = (RunKey.read(part.get(location.name)) for part in sent)
    # An execution that was started in another way cannot be ours, even if it hides its data.
    return StartingCall(next(filter(None, tags), None), is_shown=execution.mode != location.mode or bool(sent))


class Search(Protocol):
    """A search for the executions of a task run. It only reads, so its errors say nothing about what was started."""

    def made_by(self, client: ServiceClient, key: RunKey, is_answered: IsAnswered = never) -> str | None:
        """Find the execution that the call of this attempt has made; ends once the call is answered."""

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        """An exhaustive search looks longer for executions that wait for a worker before it says that there is none."""


class RunSearch:
    """By our clock, no call was made before ``since``, if known. Unless ``are_runs``, the executions start the runs."""

    def __init__(
        self, workflow_id: str, since: datetime | None, location: KeyLocation = KEY_IN_HEADERS, *, are_runs: bool = True
    ) -> None:
        self._workflow_id, self._are_runs = workflow_id, are_runs
        self._since = since
        self._location = location
        self._starting_calls: dict[str, StartingCall] = {}
        self._queued = QueuedExecutions(workflow_id)

    def made_by(self, client: ServiceClient, key: RunKey, is_answered: IsAnswered = never) -> str | None:
        listed = list_back(client, self._workflow_id, began_before(client, self._since))
        executions = takewhile(lambda _: not is_answered(), chain(listed, self._queued.read(client)))
        own = (execution for execution in executions if self._starting_call(client, execution).carries(key))
        return next((execution.id for execution in own), None)

    def earlier(self, client: ServiceClient, key: RunKey, *, exhaustive: bool = False) -> EarlierRuns:
        """Find the executions of earlier attempts, newest first.

        The search ends at an execution of the previous attempt, which had itself searched for older ones. If the
        DAG run was cleared, the search also finds older executions that have not ended.
        """
        found: list[FoundRun] = []
        unreadable: list[Execution] = []
        is_older = began_before(client, self._since, by_another_clock=bool(key.start))  # when the DAG run began
        lists = _lists(client, self._workflow_id, is_older, and_all_active=key.was_cleared)
        listed = _each_once(merge(*lists, key=lambda execution: -execution.number))
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
    for _ in range(MAX_DATA_READS - 1):
        with suppress(errors.ServiceUnexpectedResponseError):
            return with_data(client, execution_id)
    return with_data(client, execution_id)


def find_earlier_runs(client: ServiceClient, search: Search, key: RunKey, stopped: threading.Event) -> EarlierRuns:
    """Search again if none is of the previous attempt, which may have been killed while its call was on its way."""
    runs = search.earlier(client, key)
    if runs.is_complete(key):
        return runs
    if clock().wait(stopped, SETTLING_SECONDS):
        raise errors.ServiceTaskKilledError("the task was killed while it searched for executions of earlier attempts")
    return search_again(partial(search.earlier, client, key, exhaustive=True), runs)


def search_again(look: Callable[[], EarlierRuns], before: EarlierRuns) -> EarlierRuns:
    """Search again, and once more if an execution is missing that was found before."""
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

    If another clock of Airflow took the time and ours is behind that, the service's only seems to be ahead, so the time
    is never moved forward.
    """

    def is_older(execution: Execution) -> bool:
        if since is None or execution.started_at is None:
            return False
        started = execution.started_at
        offset = client.transport.server_clock.offset or timedelta()  # known once the service has answered
        bound = since + (min(offset, timedelta()) if by_another_clock else offset)
        return (started if started.tzinfo else started.replace(tzinfo=UTC)) < bound

    return is_older


def _lists(
    client: ServiceClient, workflow_id: str, is_older: IsOlder, *, and_all_active: bool = False
) -> list[Iterator[Execution]]:
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


class QueuedExecutions:
    """The executions of one workflow that wait for a worker, and have higher numbers than ``after``."""

    def __init__(self, workflow_id: str, after: int = 0) -> None:
        self._workflow_id = workflow_id
        self._after = after
        self._others: set[int] = set()
        self._missed: set[int] = set()
        self._absent: set[int] = set()

    def read(self, client: ServiceClient, *, exhaustive: bool = False) -> Iterator[Execution]:
        """Read two lists, and then the ids that they leave out, newest first.

        The newest executions may have been deleted or not kept. So an exhaustive search ends only after twice as many
        consecutive ids without an execution as the widest gap in the list, which costs up to 200 reads.
        """
        listed: set[int] = set()
        for status in ("running", None):
            listed.update(execution.number for execution in client.executions.list(status=status, limit=LISTED))
        newest, oldest = max(listed, default=0), min(listed, default=0)
        missing = max(MAX_MISSING, 2 * _widest_gap(listed)) if exhaustive else MAX_MISSING
        yield from reversed(list(self._following(client, max(newest, self._after), missing)))
        # On a slow database, even an execution that was missed twice may still appear.
        excluded = listed | self._others | (set() if exhaustive else self._absent)
        left_out = (number for number in range(newest - 1, max(oldest, self._after), -1) if number not in excluded)
        for number in islice(left_out, MAX_SINGLE_READS):
            execution = self._get(client, number)
            if execution is None:
                # An execution that is being created at this moment can be missed once.
                (self._absent if number in self._missed else self._missed).add(number)
            elif self._is_queued(execution):
                yield execution

    def _following(self, client: ServiceClient, newest: int, max_missing: int) -> Iterator[Execution]:
        missing = 0
        candidates = (number for number in count(newest + 1) if number not in self._others)
        for number in islice(candidates, MAX_SINGLE_READS):
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
    return max((later - earlier for earlier, later in pairwise(numbers)), default=MAX_SINGLE_READS)
