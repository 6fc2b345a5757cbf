"""Find the executions of a task run among those of a workflow, by the key that its calls carried.

The data of an execution shows which call started it, but can be large. So lists are read without data, and then the
data of one execution at a time, newest first, no further than needed. What started an execution never changes, so a
search reads none twice.

The run key: by what its call carries, an execution shows which task run and which attempt has started it.

Find executions that wait for a worker: in queue mode, no list shows them, but they can be read by id.

Ids are assigned one after the other, so the ids that no list shows lie between those that are listed, or follow them.

Make a call whose answer may come late or never: call in the background, and meanwhile search for what it started.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import merge
from itertools import chain, count, islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from airflow_provider_service._core.daemon_threads import in_background
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._constraints import ACTIVE_STATUSES, ENDED_STATUSES, FAILED_STATUSES
from airflow_provider_service.client._execution_data import starting_items, with_data
from airflow_provider_service.client.errors import (
    ServiceError,
    ServiceRunInDoubtError,
    ServiceTaskKilledError,
    ServiceWaitError,
)
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client._constraints import ExecutionStatus
    from airflow_provider_service.client.models import Execution


# The number of an attempt until a search has found the earlier ones, if Airflow does not count them.
UNCOUNTED = 0
# Stands for an attempt from before the DAG run was cleared.
_BEFORE_CLEARING = 0
_HEADER = re.compile(r"([^.]+)\.([^.]*)\.([^.]*)\.([0-9]{1,9})")


class CallTag(NamedTuple):
    """The identity of a caller, as the header of its call states it.

    :param task: identifies the DAG, the run, the task and the map index.
    :param start: identifies the time at which the DAG run began.
    :param deployment: identifies the deployment of Airflow.
    :param attempt: number of the attempt.
    """

    task: str
    start: str
    deployment: str
    attempt: int

    @property
    def header(self) -> str:
        """Value of the header that carries the tag."""
        return f"{self.task}.{self.start}.{self.deployment}.{self.attempt}"

    @classmethod
    def read(cls, header: object) -> CallTag | None:
        """Read a header's value; None for one that no task has sent."""
        parts = _HEADER.fullmatch(header) if isinstance(header, str) else None
        return cls(parts[1], parts[2], parts[3], int(parts[4])) if parts else None


class RunKey(NamedTuple):
    """The key that the calls of one task run carry.

    :param task: identifies the DAG, the run, the task and the map index.
    :param attempt: number of the attempt.
    :param first: the first attempt since another run was requested, for example by clearing the task.
    :param start: identifies the time at which the DAG run began, if known; clearing a finished DAG run changes it.
    :param deployment: identifies the deployment of Airflow.
    :param was_cleared: whether the DAG run may have begun before, with another ``start``.
    """

    task: str
    attempt: int
    first: int = 1
    start: str = ""
    deployment: str = ""
    was_cleared: bool = False

    @property
    def tag(self) -> CallTag:
        """The tag that the calls of this attempt carry."""
        return CallTag(self.task, self.start, self.deployment, self.attempt)

    @property
    def header(self) -> str:
        """Value of the header that carries the key."""
        return self.tag.header

    def attempt_of(self, tag: CallTag | None) -> int | None:
        """Return the attempt of this task run that made a call; 0 if it was made before the DAG run was cleared.

        The time at which the DAG run began identifies it, even if the configuration changes between two attempts. The
        deployment decides only if that time has changed.
        """
        if tag is None or tag.task != self.task:
            return None
        if tag.start == self.start:
            return tag.attempt
        return _BEFORE_CLEARING if self.was_cleared and tag.deployment == self.deployment else None

    @property
    def is_numbered(self) -> bool:
        """Whether the number of the attempt is known."""
        return self.attempt != UNCOUNTED

    def follows(self, made_by: int, status: str | None) -> bool:
        """Whether no execution of this task run came between one that was found and this attempt.

        Without the number of this attempt, that is known only of one that has not failed.

        :param made_by: the attempt that started it.
        :param status: its status; None if that does not show how the run ended.
        """
        return made_by >= self.attempt - 1 if self.is_numbered else status not in (None, *FAILED_STATUSES)

    def may_resume(self, made_by: int, status: str) -> bool:
        """Whether this attempt resumes the execution that another has started, instead of starting one itself."""
        if made_by < self.first:
            return status not in ENDED_STATUSES
        return made_by == self.attempt or status not in FAILED_STATUSES


# Number of the newest listed executions among whose ids queued ones are searched for.
LISTED = 100
# The search ends after this many consecutive ids that lead to no execution.
MAX_MISSING = 5
MAX_SINGLE_READS = 200


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
        for number in islice(left_out, MAX_SINGLE_READS):
            execution = self._get(client, number)
            if execution is None:
                # An execution that is being created at this moment can be missed once.
                (self._absent if number in self._missed else self._missed).add(number)
            elif self._is_queued(execution):
                yield execution

    def _following(self, client: ServiceClient, newest: int, max_missing: int) -> Iterator[Execution]:
        missing = 0
        unknown = (number for number in count(newest + 1) if number not in self._others)
        for number in islice(unknown, MAX_SINGLE_READS):
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
    return max((later - one for one, later in pairwise(numbers)), default=MAX_SINGLE_READS)


log = logging.getLogger(__name__)

T = TypeVar("T")

IsAnswered = Callable[[], bool]
LookMeanwhile = Callable[[IsAnswered], str | None]

# Seconds to wait for an answer before the search begins; some calls are answered only when the run has ended.
PATIENCE_SECONDS = 1.0
# The same for calls that are answered when the run begins: of many at once, each would search the others' runs.
PATIENCE_AT_ONCE_SECONDS = 10.0
MAX_SEARCH_PAUSE = 5.0
# A call without an answer may still be on its way, so the search for its execution lasts at least this many seconds.
SETTLING_SECONDS = 3.0
# A call that was answered has started its execution, which becomes visible within this many seconds.
VISIBLE_WITHIN_SECONDS = 30.0
# If executions are not kept, one that is not visible after this many seconds has already ended.
UNKEPT_SECONDS = 1.0


def answer_or_found(
    send: Callable[[], T], search: LookMeanwhile, stopped: threading.Event, *, at_once: bool = False
) -> tuple[T | None, str | None]:
    """Send a call and wait for its answer, or for the search to find what it started, whichever comes first.

    :param send: makes the call; what it raises is raised here.
    :param search: returns the id of the started execution, or None; ends early once the call is answered.
    :param stopped: set from outside to give up.
    :param at_once: whether the call is answered when the run begins, and not only when it ends.
    :returns: the answer and None, or None and the id that was found.
    :raises ServiceRunInDoubtError: the search is refused for good, or gives the call up.
    :raises ServiceWaitError: the search is refused at present, for example because the key has expired.
    :raises ServiceTaskKilledError: the task was killed; if that was before the call, nothing was sent.
    """
    if stopped.is_set():
        raise ServiceTaskKilledError("the task was killed before it started anything")
    # An open call must not hold a worker that defers.
    call = in_background(send, name="service-start")
    answered = threading.Event()
    call.add_done_callback(lambda _: answered.set())
    pause = PATIENCE_AT_ONCE_SECONDS if at_once else PATIENCE_SECONDS
    while True:
        if clock().wait(answered, pause):
            return call.result(), None
        found = _tolerant(search, answered.is_set)
        if found is not None:
            return None, found
        # Not earlier: a task that is killed right after its call should still learn what the call has started.
        if stopped.is_set():
            raise ServiceTaskKilledError("the task was killed before it was known which execution it had started")
        pause = min(pause * 1.5, MAX_SEARCH_PAUSE)


def never() -> bool:
    """Answer for a call that nobody waits for: it is never answered."""
    return False


def search_for(search: Callable[[], T | None], seconds: float, stopped: threading.Event) -> T | None:
    """Search repeatedly for a number of seconds, and once more at the end. Return what was found, or None.

    An execution can move between the lists while one search reads them, so a single search proves nothing.

    :raises ServiceTaskKilledError: the task was killed before the time was over, so nothing is proven.
    """
    deadline = clock().monotonic() + seconds
    pause = min(0.1, seconds / 2)
    while True:
        remaining = deadline - clock().monotonic()
        found = search()
        if found is not None or remaining <= 0:
            return found
        if clock().wait(stopped, min(pause, remaining)):
            raise ServiceTaskKilledError("the task was killed while it searched for the execution that it had started")
        pause = min(pause * 2, 1.0)


def _tolerant(search: LookMeanwhile, is_answered: IsAnswered) -> str | None:
    """Search while the call is still open. A failed search is no reason to give up or to call again."""
    try:
        return search(is_answered)
    except ServiceRunInDoubtError:
        raise
    except ServiceError as error:
        if error.ends_wait:
            kind = ServiceRunInDoubtError if error.final else ServiceWaitError
            raise kind(f"a run was requested, but its execution cannot be searched for: {error}") from error
        log.warning("The search for the started execution failed: %s", error)
        return None


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
    if clock().wait(stopped, SETTLING_SECONDS):
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
