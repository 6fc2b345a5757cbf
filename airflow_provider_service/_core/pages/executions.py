"""A page's list of executions that tasks have started or waited for, and its search."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo, available_timezones

from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import EXECUTION_PAGE, WORKFLOW_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service.links.service import ExecutionAddress

#: Number of executions on one page, and of days in a plot.
SHOWN, DAYS = 50, 14
#: Maximum number of waiting executions on a page that are read for the node at which they wait.
MAX_NODES = 20
#: Number of workflows to compare.
LARGEST = 5
#: Number of executions that define a workflow's usual duration, and the minimum to mark others as unusual.
USUAL_OF, ENOUGH = 20, 5
#: Maximum length of a name, in characters; the service allows 128.
MAX_NAME_CHARS = 128
#: An execution cannot have begun before the service existed.
EARLIEST = datetime(2019, 1, 1, tzinfo=UTC)
# States in which Airflow has not finished with an attempt.
_UNDER_WAY = frozenset({None, "scheduled", "queued", "running", "deferred", "restarting", "up_for_reschedule"})
_FAILED = frozenset({"failed", "upstream_failed", "up_for_retry"})
# States in which Airflow does nothing more about the execution of a task.
_GIVEN_UP = frozenset({"failed", "upstream_failed"})
#: The states of executions that can be searched for; the service lists the first three.
EXECUTION_STATES = {
    "running": "running",
    "waiting": "waiting",
    "queued": "queued",
    "left": "runs although its task has failed",
    "longer": "longer than usual",
}
#: By what the list can be sorted, with what comes first at the first click: ``-`` for the largest.
_ORDERS = {"state": "", "workflow": "", "start": "-", "duration": "-"}
_FIELDS = ("state", "execution", "workflow", "dag", "from", "to", "zone", "sort")

# They are read from many files.
_zones = cache(available_timezones)
#: A workflow of a service: its server and its id.
Workflow = tuple[str, str]


class OpenExecution(NamedTuple):
    """An execution that the service lists as running, waiting or queued."""

    workflow_id: str | None
    status: str
    started_at: datetime | None
    waits_since: datetime | None = None
    waits_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskExecution:
    """The execution that a task instance runs, retries or waits for, or the last one that it did.

    Its start, its end and its workflow's name are known only if the task has told; ``known_at`` is when it got the id.
    ``open`` is what the service says of it, if it lists it as open.
    """

    dag_id: str
    task_id: str
    map_index: int
    run_id: str
    state: str | None
    known_at: datetime
    address: ExecutionAddress
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    workflow_name: str = ""
    open: OpenExecution | None = None

    def told(self, pushed: object) -> TaskExecution:
        """Add what an XCom of the task tells about this execution. Whoever may write XComs may have written it."""
        if not isinstance(pushed, Mapping) or pushed.get("execution_id") != self.address.execution_id:
            return self
        started, stopped = (_told_moment(pushed.get(name)) for name in ("started_at", "stopped_at"))
        is_in_order = started is not None and stopped is not None and started <= stopped
        name = pushed.get("workflow_name")
        return replace(
            self,
            started_at=started,
            stopped_at=stopped if is_in_order else None,
            workflow_name=name.strip()[:MAX_NAME_CHARS] if isinstance(name, str) else "",
        )

    def listed(self, listed: OpenExecution | None) -> TaskExecution:
        """Add what the service lists under its id, unless that is of another workflow than the link says."""
        if listed is None or listed.workflow_id != self.address.workflow_id:
            return self
        return replace(self, open=listed, started_at=listed.started_at or self.started_at, stopped_at=None)

    @property
    def workflow(self) -> Workflow:
        return self.address.base_url, self.address.workflow_id

    @property
    def execution_url(self) -> str:
        return page_url(self.address.base_url, EXECUTION_PAGE, *self.address[1:])

    @property
    def workflow_url(self) -> str:
        return page_url(self.address.base_url, WORKFLOW_PAGE, self.address.workflow_id)

    @property
    def task_name(self) -> str:
        return self.task_id if self.map_index < 0 else f"{self.task_id} [{self.map_index}]"

    @property
    def dag_path(self) -> str:
        return f"/dags/{quote(self.dag_id, safe='')}"

    @property
    def run_path(self) -> str:
        return f"{self.dag_path}/runs/{quote(self.run_id, safe='')}"

    @property
    def task_path(self) -> str:
        mapped = "" if self.map_index < 0 else f"/mapped/{self.map_index}"
        return f"{self.run_path}/tasks/{quote(self.task_id, safe='')}{mapped}"

    @property
    def began_at(self) -> datetime:
        """When the execution began; if that is unknown, when the task received its id."""
        return self.started_at or self.known_at

    @property
    def may_be_open(self) -> bool:
        """Whether the execution may not have ended, as far as the task tells."""
        return self.stopped_at is None or self.state != "success"

    @property
    def is_open(self) -> bool:
        return self.open is not None or (self.state in _UNDER_WAY and self.stopped_at is None)

    @property
    def is_left(self) -> bool:
        """Whether it goes on although its task has failed."""
        return self.open is not None and self.state in _GIVEN_UP

    def seconds(self, now: datetime) -> float | None:
        """How long it has taken, or so far if it is open."""
        until = now if self.is_open else self.stopped_at
        return None if self.started_at is None or until is None else (until - self.started_at).total_seconds()

    @property
    def outcome(self) -> str:
        return "succeeded" if self.state == "success" else "failed" if self.state in _FAILED else "other"


def plausible(moment: datetime | None) -> datetime | None:
    """Return a moment of an execution's past, if it can be one."""
    # The service shows the year 1970 for an execution that never left the queue, and a date in the future would come
    # before all others.
    return moment if moment is not None and EARLIEST < moment < clock().utcnow() + timedelta(days=1) else None


def _told_moment(text: object) -> datetime | None:
    try:
        return plausible(datetime.fromisoformat(text).astimezone(UTC)) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class Search:
    """A search by the reader, whose zone is also that of the days in the plot; an empty text finds everything.

    ``problem`` says why the search is invalid and finds nothing.
    """

    form: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    zone: tzinfo = UTC
    page: int = 1
    problem: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Search:
        form = {name: given[name] for name in _FIELDS if given.get(name)}
        for name, known in (("execution", EXECUTION_STATES), ("sort", [*_ORDERS, *map("-{}".format, _ORDERS)])):
            if form.get(name) not in known:
                form.pop(name, None)
        zone = ZoneInfo(form["zone"]) if form.get("zone") in _zones() else UTC
        page = given.get("page", "1")
        number = int(page) if page.isascii() and page.isdecimal() and len(page) < 10 else 1
        try:
            since, until = (_moment(form, name, zone) for name in ("from", "to"))
        except ValueError as error:
            return cls(form, zone=zone, problem=str(error))
        return cls(form, since, until, zone, number)

    @property
    def sort(self) -> str:
        return self.form.get("sort", "-start")

    def finds(self, execution: TaskExecution, workflow_name: str) -> bool:
        workflow, dag = (self.form.get(name, "").strip().casefold() for name in ("workflow", "dag"))
        return (
            self.form.get("state", "") in {"", str(execution.state).lower()}
            and (workflow in workflow_name.casefold() or workflow in execution.address.workflow_id.casefold())
            and dag in execution.dag_id.casefold()
            and (self.since is None or self.since <= execution.began_at)
            and (self.until is None or execution.began_at <= self.until)
        )

    def address(self, **changed: str | int) -> str:
        """Return the address of the same search with other values of some fields, relative to the page."""
        return f"?{urlencode({**self.form, **changed}, errors='replace')}"

    @property
    def link(self) -> str:
        """Its address with moments that mean the same in each zone."""
        moments = {"from": self.since, "to": self.until}
        return self.address(**{name: moment.isoformat() for name, moment in moments.items() if moment})

    def local(self, name: str) -> str:
        """A moment as its field takes it."""
        moment = self.since if name == "from" else self.until
        try:
            return self.form.get(name, "") if moment is None else f"{moment.astimezone(self.zone):%Y-%m-%dT%H:%M}"
        except OverflowError:
            return self.form[name]

    def order(self, name: str) -> tuple[str, str]:
        """Return how a column is sorted now, in the word of ``aria-sort``, and the address that sorts it."""
        now = {name: "ascending", f"-{name}": "descending"}.get(self.sort, "")
        upwards = {"ascending": "-", "descending": ""}.get(now, _ORDERS[name])
        return now, self.address(sort=upwards + name)


def _moment(form: Mapping[str, str], name: str, zone: tzinfo) -> datetime | None:
    text = form.get(name, "").strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"the field {name!r} must be a date and time such as 2026-05-04T03:02, not {text[:40]!r}"
        raise ValueError(f"{message}. Nothing was searched.") from None


class Usual(NamedTuple):
    median: float
    shortest: float
    longest: float
    number: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Usual:
        return cls(statistics.median(seconds), min(seconds), max(seconds), len(seconds))

    def verdict(self, seconds: float) -> str:
        if self.number < ENOUGH or self.shortest <= seconds <= self.longest:
            return ""
        return "longer than usual" if seconds > self.longest else "shorter than usual"


class WorkflowView(NamedTuple):
    """A workflow in a comparison, by its name, or its id if the name is unknown."""

    label: str
    server: str
    usual: Usual | None


class Day(NamedTuple):
    date: date
    succeeded: int
    failed: int
    other: int
    seconds: Usual | None

    @property
    def number(self) -> int:
        return self.succeeded + self.failed + self.other


@dataclass(frozen=True)
class ExecutionsView:
    """``readable`` is all that the user may read; ``hosts`` are those of known connections; ``place`` is the DAG or run
    of the page, if any; ``limit`` and ``lacks`` say in sentences what period it covers, and what could not be read.
    """

    readable: Sequence[TaskExecution]
    search: Search
    now: datetime
    hosts: Collection[str] = ()
    names: Mapping[Workflow, str] = field(default_factory=dict)
    place: str = ""
    limit: str = ""
    lacks: Sequence[str] = ()

    def name_of(self, execution: TaskExecution) -> str:
        """Return the name of an execution's workflow; empty if it is unknown."""
        return self.names.get(execution.workflow, "")

    @cached_property
    def found(self) -> list[TaskExecution]:
        found = [one for one in self.readable if self.search.finds(one, self.name_of(one)) and self._has_state(one)]
        found.sort(key=lambda one: one.began_at, reverse=True)
        return sorted(found, key=self._rank, reverse=self.search.sort.startswith("-"))

    def _rank(self, one: TaskExecution) -> Any:
        column = self.search.sort.removeprefix("-")
        if column == "state":
            return str(one.state), "" if one.open is None else one.open.status
        if column == "workflow":
            return (self.name_of(one) or one.address.workflow_id).casefold()
        if column == "start":
            return one.began_at
        seconds, last = one.seconds(self.now), math.inf if column == self.search.sort else -math.inf
        return last if seconds is None else seconds

    def _has_state(self, one: TaskExecution) -> bool:
        chosen = self.search.form.get("execution")
        if chosen == "longer":
            return self.verdict(one) == EXECUTION_STATES["longer"]
        if chosen == "left":
            return one.is_left
        return chosen is None or (one.open is not None and one.open.status == chosen)

    def verdict(self, one: TaskExecution) -> str:
        """Whether it took longer or shorter than usual, or takes longer; empty if not, or if that is unknown."""
        usual, seconds = self.usual.get(one.workflow), one.seconds(self.now)
        verdict = "" if usual is None or seconds is None else usual.verdict(seconds)
        return "" if one.is_open and verdict.startswith("shorter") else verdict

    @property
    def pages(self) -> int:
        """The number of pages, which is one if nothing is found."""
        return max(1, -(-len(self.found) // SHOWN))

    @property
    def page(self) -> int:
        """The number of the current page, from 1."""
        return min(max(1, self.search.page), self.pages)

    @property
    def shown(self) -> Sequence[TaskExecution]:
        return self.found[(self.page - 1) * SHOWN : self.page * SHOWN]

    @cached_property
    def waiting(self) -> Sequence[TaskExecution]:
        """Those of which the page shows the node at which they wait."""
        waiting = (one for one in self.shown if one.open is not None and one.open.status == "waiting")
        return list(islice(waiting, MAX_NODES))

    @property
    def states(self) -> list[str]:
        chosen = {self.search.form.get("state", "")} - {""}
        return sorted({str(execution.state).lower() for execution in self.readable} | chosen)

    @property
    def workflows(self) -> list[str]:
        """The workflows that can be searched for: their names, or their ids if the names are unknown."""
        return sorted({self.name_of(execution) or execution.address.workflow_id for execution in self.readable})

    @property
    def servers(self) -> int:
        return len({execution.address.base_url for execution in self.readable})

    def number(self, outcome: str) -> int:
        return sum(execution.outcome == outcome for execution in self.found)

    @cached_property
    def usual(self) -> Mapping[Workflow, Usual]:
        """The usual duration of each workflow, regardless of the search."""
        durations: dict[Workflow, list[float]] = {}
        for execution in self.readable:
            seconds = execution.seconds(self.now)
            if execution.outcome == "succeeded" and seconds is not None and not execution.is_open:
                durations.setdefault(execution.workflow, []).append(seconds)
        return {workflow: Usual.of(seconds[:USUAL_OF]) for workflow, seconds in durations.items()}

    @property
    def most_run(self) -> list[WorkflowView]:
        most_common = Counter(execution.workflow for execution in self.found).most_common(LARGEST)
        return [
            WorkflowView(self.names.get((server, id_)) or id_, server, self.usual.get((server, id_)))
            for (server, id_), _ in most_common
        ]

    @cached_property
    def days(self) -> Sequence[Day]:
        """The days up to the latest execution found, in order; none if nothing is found."""
        if not self.found:
            return ()
        by_date: dict[date, list[TaskExecution]] = {}
        for execution in self.found:
            by_date.setdefault(execution.began_at.astimezone(self.search.zone).date(), []).append(execution)
        dates = [max(by_date) - timedelta(days=before) for before in reversed(range(DAYS))]
        return [self._day(on, by_date.get(on, [])) for on in dates]

    def _day(self, on: date, executions: Sequence[TaskExecution]) -> Day:
        outcomes = Counter(execution.outcome for execution in executions)
        durations = (one.seconds(self.now) for one in executions if not one.is_open)
        seconds = [taken for taken in durations if taken is not None]
        usual = Usual.of(seconds) if seconds else None
        return Day(on, outcomes["succeeded"], outcomes["failed"], outcomes["other"], usual)
