"""A page's list of executions that tasks have started or waited for, and its search."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode

from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import EXECUTION_PAGE, WORKFLOW_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service.links.service import ExecutionAddress

#: Number of executions on one page, and of days in a plot.
SHOWN, DAYS = 50, 14
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

#: A workflow of a service: its server and its id.
Workflow = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TaskExecution:
    """The execution that a task instance runs, retries or waits for, or the last one that it did.

    :param state: state of the task instance, as Airflow names it.
    :param known_at: when the task received the id of the execution.
    :param started_at: when the execution began, if the task has told.
    :param stopped_at: when the execution ended, if the task has told.
    :param workflow_name: name of the workflow, if the task has told; otherwise empty.
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

    @property
    def workflow(self) -> Workflow:
        """The workflow that was executed."""
        return self.address.base_url, self.address.workflow_id

    @property
    def execution_url(self) -> str:
        """The page of the execution."""
        return page_url(self.address.base_url, EXECUTION_PAGE, *self.address[1:])

    @property
    def workflow_url(self) -> str:
        """The page of the workflow."""
        return page_url(self.address.base_url, WORKFLOW_PAGE, self.address.workflow_id)

    @property
    def task_name(self) -> str:
        """The id of the task, with its map index."""
        return self.task_id if self.map_index < 0 else f"{self.task_id} [{self.map_index}]"

    @property
    def dag_path(self) -> str:
        """The path of the DAG's page in Airflow."""
        return f"/dags/{quote(self.dag_id, safe='')}"

    @property
    def run_path(self) -> str:
        """The path of the DAG run's page in Airflow."""
        return f"{self.dag_path}/runs/{quote(self.run_id, safe='')}"

    @property
    def task_path(self) -> str:
        """The path of the task instance's page in Airflow."""
        mapped = "" if self.map_index < 0 else f"/mapped/{self.map_index}"
        return f"{self.run_path}/tasks/{quote(self.task_id, safe='')}{mapped}"

    @property
    def began_at(self) -> datetime:
        """When the execution began; if that is unknown, when the task received its id."""
        return self.started_at or self.known_at

    @property
    def is_under_way(self) -> bool:
        """Whether the task has not ended."""
        return self.state in _UNDER_WAY

    @property
    def seconds(self) -> float | None:
        """Duration of the execution, if its start and its end are known."""
        if self.started_at is None or self.stopped_at is None:
            return None
        return (self.stopped_at - self.started_at).total_seconds()

    @property
    def outcome(self) -> str:
        """Whether the task succeeded, failed, or did neither."""
        return "succeeded" if self.state == "success" else "failed" if self.state in _FAILED else "other"


def _told_moment(text: object) -> datetime | None:
    # The service shows the year 1970 for an execution that never left the queue, and a date in the future would come
    # before all others.
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
        return moment if EARLIEST < moment < clock().utcnow() + timedelta(days=1) else None
    except (ValueError, OverflowError):
        return None


class SearchError(ValueError):
    """The search is invalid."""


@dataclass(frozen=True)
class Search:
    """A search by the reader; an empty text finds everything.

    :param given: the fields of the form.
    :param zone: the time zone of the form, and of the days in the plot.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    state: str = ""
    workflow: str = ""
    dag: str = ""
    since: datetime | None = None
    until: datetime | None = None
    zone: tzinfo = UTC
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Search:
        """Read the form of a page.

        :raises SearchError: a moment cannot be understood.
        """
        zone = _zone(given.get("zone", ""))
        page = given.get("page", "1")
        return cls(
            given={name: given[name] for name in ("state", "workflow", "dag", "from", "to", "zone") if given.get(name)},
            state=given.get("state", ""),
            workflow=given.get("workflow", "").strip().casefold(),
            dag=given.get("dag", "").strip().casefold(),
            since=_moment(given, "from", zone),
            until=_moment(given, "to", zone),
            zone=zone,
            page=int(page) if page.isascii() and page.isdecimal() and len(page) < 10 else 1,
        )

    def finds(self, one: TaskExecution, name: str) -> bool:
        """Whether the search finds an execution.

        :param name: name of its workflow, if that is known.
        """
        return (
            self.state in {"", str(one.state).lower()}
            and (self.workflow in name.casefold() or self.workflow in one.address.workflow_id.casefold())
            and self.dag in one.dag_id.casefold()
            and (self.since is None or self.since <= one.began_at)
            and (self.until is None or one.began_at <= self.until)
        )

    def address(self, **changed: str | int) -> str:
        """Return the address of the same search with other values of some fields, relative to the page."""
        return f"?{urlencode({**self.given, **changed})}"


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    return ZoneInfo(name) if name in _zones() else UTC


@cache
def _zones() -> Collection[str]:
    import zoneinfo

    return zoneinfo.available_timezones()


def _moment(given: Mapping[str, str], name: str, zone: tzinfo) -> datetime | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"the field {name!r} must be a date and time such as 2026-05-04T03:02, not {text[:40]!r}"
        raise SearchError(f"{message}. Nothing was searched.") from None


class Usual(NamedTuple):
    """The durations of the latest successful executions of a workflow, in seconds.

    :param number: number of these executions.
    """

    median: float
    shortest: float
    longest: float
    number: int

    def verdict(self, seconds: float) -> str:
        """Say why a duration is unusual, if it is."""
        if self.number < ENOUGH or self.shortest <= seconds <= self.longest:
            return ""
        return "longer than usual" if seconds > self.longest else "shorter than usual"


class WorkflowView(NamedTuple):
    """A workflow in a comparison.

    :param label: its name, or its id if the name is unknown.
    """

    label: str
    server: str
    usual: Usual | None


class Day(NamedTuple):
    """The numbers of executions that began on a day, and the durations of those that have ended."""

    date: date
    succeeded: int
    failed: int
    other: int
    seconds: Usual | None

    @property
    def number(self) -> int:
        """The number of executions."""
        return self.succeeded + self.failed + self.other


@dataclass(frozen=True)
class ExecutionsView:
    """The result of a search among the executions that the user may read.

    :param readable: all executions that the user may read, the latest first.
    :param names: the known names of workflows.
    :param place: the DAG or the DAG run that the page shows; empty if it shows all.
    :param limit: the period that the page covers, in a sentence.
    :param lacks: what could not be read of Airflow's database, in sentences.
    """

    readable: Sequence[TaskExecution]
    search: Search
    names: Mapping[Workflow, str] = field(default_factory=dict)
    place: str = ""
    limit: str = ""
    lacks: Sequence[str] = ()

    def name_of(self, one: TaskExecution) -> str:
        """Return the name of an execution's workflow; empty if it is unknown."""
        return self.names.get(one.workflow, "")

    @cached_property
    def found(self) -> list[TaskExecution]:
        """The executions that the search finds, the latest first."""
        return [one for one in self.readable if self.search.finds(one, self.name_of(one))]

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
        """The executions on the current page."""
        return self.found[(self.page - 1) * SHOWN : self.page * SHOWN]

    @property
    def states(self) -> list[str]:
        """The states that can be searched for."""
        return sorted({str(one.state).lower() for one in self.readable} | {self.search.state} - {""})

    @property
    def workflows(self) -> list[str]:
        """The workflows that can be searched for: their names, or their ids if the names are unknown."""
        return sorted({self.name_of(one) or one.address.workflow_id for one in self.readable})

    @property
    def dags(self) -> list[str]:
        """The DAGs that can be searched for."""
        return sorted({one.dag_id for one in self.readable})

    @property
    def servers(self) -> int:
        """The number of servers of the executions."""
        return len({one.address.base_url for one in self.readable})

    def number(self, outcome: str) -> int:
        """Return how many of the executions found have an outcome."""
        return sum(one.outcome == outcome for one in self.found)

    @cached_property
    def usual(self) -> Mapping[Workflow, Usual]:
        """The usual duration of each workflow, regardless of the search."""
        durations: dict[Workflow, list[float]] = {}
        for one in self.readable:
            if one.outcome == "succeeded" and one.seconds is not None:
                durations.setdefault(one.workflow, []).append(one.seconds)
        return {workflow: _usual(values[:USUAL_OF]) for workflow, values in durations.items()}

    @property
    def most_run(self) -> list[WorkflowView]:
        """The workflows with the most executions found."""
        count = Counter(one.workflow for one in self.found).most_common(LARGEST)
        return [WorkflowView(self.names.get(one) or one[1], one[0], self.usual.get(one)) for one, _ in count]

    @cached_property
    def days(self) -> Sequence[Day]:
        """The days up to the latest execution found, in order; none if nothing is found."""
        if not self.found:
            return ()
        by_date: dict[date, list[TaskExecution]] = {}
        for one in self.found:
            by_date.setdefault(one.began_at.astimezone(self.search.zone).date(), []).append(one)
        last = max(by_date)
        return [_day(on, by_date.get(on, ())) for on in (last - timedelta(days=DAYS - 1 - at) for at in range(DAYS))]


def _usual(seconds: Sequence[float]) -> Usual:
    return Usual(statistics.median(seconds), min(seconds), max(seconds), len(seconds))


def _day(on: date, executions: Iterable[TaskExecution]) -> Day:
    known = list(executions)
    succeeded, failed = (sum(one.outcome == outcome for one in known) for outcome in ("succeeded", "failed"))
    seconds = [one.seconds for one in known if one.seconds is not None]
    return Day(on, succeeded, failed, len(known) - succeeded - failed, _usual(seconds) if seconds else None)
