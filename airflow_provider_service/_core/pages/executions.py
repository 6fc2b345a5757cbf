"""A page's list of executions that tasks have started or waited for, and its search."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo, available_timezones

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

# They are read from many files.
_zones = cache(available_timezones)
#: A workflow of a service: its server and its id.
Workflow = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TaskExecution:
    """The execution that a task instance runs, retries or waits for, or the last one that it did.

    Its start, its end and its workflow's name are known only if the task has told; ``known_at`` is when it got the id.
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
    def is_under_way(self) -> bool:
        """Whether the task has not ended."""
        return self.state in _UNDER_WAY

    @property
    def seconds(self) -> float | None:
        if self.started_at is None or self.stopped_at is None:
            return None
        return (self.stopped_at - self.started_at).total_seconds()

    @property
    def outcome(self) -> str:
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
    """A search by the reader, whose zone is also that of the days in the plot; an empty text finds everything."""

    form: Mapping[str, str] = field(default_factory=dict)
    state: str = ""
    workflow: str = ""
    dag: str = ""
    since: datetime | None = None
    until: datetime | None = None
    zone: tzinfo = UTC
    page: int = 1

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Search:
        zone = ZoneInfo(form["zone"]) if form.get("zone") in _zones() else UTC
        page = form.get("page", "1")
        return cls(
            form={name: form[name] for name in ("state", "workflow", "dag", "from", "to", "zone") if form.get(name)},
            state=form.get("state", ""),
            workflow=form.get("workflow", "").strip().casefold(),
            dag=form.get("dag", "").strip().casefold(),
            since=_moment(form, "from", zone),
            until=_moment(form, "to", zone),
            zone=zone,
            page=int(page) if page.isascii() and page.isdecimal() and len(page) < 10 else 1,
        )

    def finds(self, execution: TaskExecution, workflow_name: str) -> bool:
        return (
            self.state in {"", str(execution.state).lower()}
            and (self.workflow in workflow_name.casefold() or self.workflow in execution.address.workflow_id.casefold())
            and self.dag in execution.dag_id.casefold()
            and (self.since is None or self.since <= execution.began_at)
            and (self.until is None or execution.began_at <= self.until)
        )

    def address(self, **changed: str | int) -> str:
        """Return the address of the same search with other values of some fields, relative to the page."""
        return f"?{urlencode({**self.form, **changed})}"


def _moment(form: Mapping[str, str], name: str, zone: tzinfo) -> datetime | None:
    text = form.get(name, "").strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"the field {name!r} must be a date and time such as 2026-05-04T03:02, not {text[:40]!r}"
        raise SearchError(f"{message}. Nothing was searched.") from None


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
    """``readable`` is all that the user may read, the latest first; ``place`` the DAG or run of the page, if any;
    ``limit`` and ``lacks`` say in sentences what period it covers, and what could not be read of Airflow's database.
    """

    readable: Sequence[TaskExecution]
    search: Search
    names: Mapping[Workflow, str] = field(default_factory=dict)
    place: str = ""
    limit: str = ""
    lacks: Sequence[str] = ()

    def name_of(self, execution: TaskExecution) -> str:
        """Return the name of an execution's workflow; empty if it is unknown."""
        return self.names.get(execution.workflow, "")

    @cached_property
    def found(self) -> list[TaskExecution]:
        return [execution for execution in self.readable if self.search.finds(execution, self.name_of(execution))]

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

    @property
    def states(self) -> list[str]:
        return sorted({str(execution.state).lower() for execution in self.readable} | {self.search.state} - {""})

    @property
    def workflows(self) -> list[str]:
        """The workflows that can be searched for: their names, or their ids if the names are unknown."""
        return sorted({self.name_of(execution) or execution.address.workflow_id for execution in self.readable})

    @property
    def dags(self) -> list[str]:
        return sorted({execution.dag_id for execution in self.readable})

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
            if execution.outcome == "succeeded" and execution.seconds is not None:
                durations.setdefault(execution.workflow, []).append(execution.seconds)
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
        return [_day(on, by_date.get(on, [])) for on in dates]


def _day(on: date, executions: Sequence[TaskExecution]) -> Day:
    outcomes = Counter(execution.outcome for execution in executions)
    seconds = [execution.seconds for execution in executions if execution.seconds is not None]
    usual = Usual.of(seconds) if seconds else None
    return Day(on, outcomes["succeeded"], outcomes["failed"], outcomes["other"], usual)
