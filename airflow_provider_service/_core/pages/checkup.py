"""Examine a connection: which features work, and which jobs the server, its plan and the key permit. Only reads.

Its page also shows the waits of the triggerers, and the latest runs on the server.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_service._core.connection_check import check_connection, server_version
from airflow_provider_service._core.health.statistics import span
from airflow_provider_service._core.reports.report import Link, Table
from airflow_provider_service._core.runs import bridge
from airflow_provider_service._core.runs.attempt import CLOCK_SKEW
from airflow_provider_service.client.errors import (
    ServiceError,
    ServiceMissingScopeError,
    ServiceNotLicensedError,
    ServiceNotOfferedError,
)

if TYPE_CHECKING:
    from airflow_provider_service._core.pages.executions import TaskExecution
    from airflow_provider_service.client import ServiceClient, ServiceConfig


def _of(resource: str, actions: str) -> tuple[str, ...]:
    return tuple(f"{resource}:{action}" for action in actions.split())


#: The first version of n8n that has an operation for a scope, or for any scope of a resource, by its published
#: contracts. All versions have the operations of scopes that are not listed.
_SINCE = {
    "communityPackage": "2.16",
    "credential:list": "2.8",
    "credential:read": "2.20",
    "credential:update": "2.3",
    "dataTable": "2.7",
    "dataTableColumn": "2.20",
    "dataTableRow": "2.7",
    "execution:stop": "2.10",
    "folder": "2.20",
    "insights": "2.17",
}

#: The scopes of each job. A job needs all its scopes only if all its operators are used.
JOBS: Mapping[str, tuple[str, ...]] = {
    "run a workflow and wait for it": (*_of("workflow", "read list"), *_of("execution", "read list stop")),
    "install the bridge": bridge.SCOPES,
    "wait for executions, and see their ends as events": (*_of("execution", "read list"), "workflow:list"),
    "check the health of workflows": ("workflow:list", "execution:list"),
    "retry, stop and delete executions": _of("execution", "read list retry stop delete"),
    "read and write rows": (*_of("dataTable", "list read"), *_of("dataTableRow", "create read update delete upsert")),
    "create and change data tables": (
        *_of("dataTable", "list read create update delete"),
        *_of("dataTableColumn", "create read update delete"),
    ),
    "deploy workflows": (
        *_of("workflow", "read list create update delete activate deactivate move"),
        *_of("workflowTags", "list update"),
        *_of("tag", "list create"),
    ),
    "manage tags": _of("tag", "list read create update delete"),
    "manage variables": _of("variable", "list create update delete"),
    "manage credentials": _of("credential", "list read create update delete move"),
    "manage projects and folders": (
        *_of("project", "list create update delete"),
        *_of("folder", "list read create update delete"),
    ),
    "manage users": _of("user", "list read create delete changeRole"),
    "manage community packages": _of("communityPackage", "list install update uninstall"),
    "pull from source control": ("sourceControl:pull",),
    "read insights": ("insights:read",),
    "generate an audit": ("securityAudit:generate",),
}

#: What the plan of the server must include, by job.
_FEATURES = {
    "manage variables": "variables",
    "manage projects and folders": "projects",
    "pull from source control": "source control",
}


class State(NamedTuple):
    is_good: bool
    text: str
    is_known: bool = True  # False if it could not be examined


def state_of(job: str, *, version: str | None, scopes: Collection[str] | None, plan: Mapping[str, bool]) -> State:
    """Find out whether a server, its plan and a key allow a job; None, or a feature missing in the plan, is unknown."""
    later = {scope: since(scope) for scope in JOBS[job] if version and _numbers(version) < _numbers(since(scope))}
    offered = [scope for scope in JOBS[job] if scope not in later]
    if not offered:
        first, last = (choose(later.values(), key=_numbers) for choose in (min, max))
        return State(
            False, f"not offered before n8n {first}" + ("" if first == last else f", and in full from {last} on")
        )
    feature = _FEATURES.get(job)
    if feature is not None and plan.get(feature) is False:
        return State(False, f"not licensed: the plan of the server does not include {feature}")
    notes = [f"{scope} is not offered before n8n {version}" for scope, version in later.items()]
    if scopes is None:
        unknown = "not examined, since this server does not report the scopes of a key"
        return State(False, "; ".join([unknown, *notes]), is_known=False)
    if missing := [scope for scope in offered if scope not in scopes]:
        return State(False, "; ".join([f"the key lacks {', '.join(missing)}", *notes]))
    if feature is not None and feature not in plan:
        notes.append(f"whether the plan of the server includes {feature} was not examined")
    return State(not notes, "; ".join(["works", *notes]) if notes else "works: the key holds every scope")


def since(scope: str) -> str:
    """Return the first version of n8n in which a scope has an effect."""
    return _SINCE.get(scope) or _SINCE.get(scope.partition(":")[0]) or "0.0"


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


#: Seconds that each request may take.
REQUEST_SECONDS = 10.0

#: The checks of a reachable service, in order.
SUBJECTS = ("service", "version", "clock", "variables", "projects", "MCP", "bridge", "open files", *JOBS)

#: Open files of a triggerer besides one for each trigger: libraries, sockets, and files of Airflow itself.
OTHER_FILES = 50
#: Number of triggers that one of Airflow's triggerers runs by default.
USUAL_TRIGGERS = 1_000

Grade = Literal["FAIL", "note", "skip", "ok"]
#: The most severe first.
GRADES: tuple[Grade, ...] = ("FAIL", "note", "skip", "ok")
LEFT_OUT = "not examined, since an earlier check failed"


@dataclass(frozen=True)
class Finding:
    """The result of one check: FAIL requires action, a note does so for some uses, and skip was not examined."""

    subject: str
    grade: Grade
    text: str

    @property
    def is_left_out(self) -> bool:
        return self.text == LEFT_OUT


def examine(config: ServiceConfig) -> Iterator[Finding]:
    """Make all checks, one by one, by about eight requests, each once, which only read."""
    from airflow_provider_service.client import ServiceClient

    quick = config.one_try(timeout=min(config.timeout, REQUEST_SECONDS))
    with ServiceClient(quick) as client:
        reached = check_connection(client)
        yield Finding("service", "ok" if reached.is_good else "FAIL", reached.message)
        if not reached.is_good:
            return
        version = server_version(client)
        unknown = "unknown: neither the API nor the start page reports it"
        yield Finding("version", "ok", f"n8n {version}") if version else Finding("version", "skip", unknown)
        yield _clock(client)
        plan: dict[str, bool] = {}
        yield _gate("variables", lambda: next(client.variables.list(limit=1), None), plan)
        yield _gate("projects", lambda: next(client.projects.list(limit=1), None), plan)
        yield _mcp(client, config)
        yield _bridge(client, config)
        yield _open_files()
        for job in JOBS:
            state = state_of(job, version=version, scopes=reached.scopes, plan=plan)
            yield Finding(job, "ok" if state.is_good else "note" if state.is_known else "skip", state.text)


def is_healthy(findings: list[Finding]) -> bool:
    return all(finding.grade != "FAIL" for finding in findings)


class Verdict(NamedTuple):
    grade: Grade
    text: str


def complete(findings: Sequence[Finding]) -> list[Finding]:
    """Sort the findings, the most severe first, and add the subjects that were not examined after a failure."""
    examined = {finding.subject for finding in findings}
    skipped = [Finding(subject, "skip", LEFT_OUT) for subject in SUBJECTS if subject not in examined]
    return sorted([*findings, *skipped], key=lambda finding: GRADES.index(finding.grade))


def verdict(findings: Sequence[Finding]) -> Verdict:
    number = Counter(finding.grade for finding in complete(findings))
    failed, skipped = number["FAIL"], number["skip"]
    if failed:
        text = "1 check failed." if failed == 1 else f"{failed} checks failed."
    else:
        text = "No check failed." if skipped else "All checks passed."
    if skipped:
        text += f" {'1 check was' if skipped == 1 else f'{skipped} checks were'} not made."
    return Verdict("FAIL" if failed else "ok", text)


def _clock(client: ServiceClient) -> Finding:
    offset = client.transport.server_clock.certain_offset
    if offset is None:
        return Finding("clock", "skip", "the answers of the service carry no date")
    seconds = round(offset / timedelta(seconds=1))
    if seconds == 0:
        return Finding("clock", "ok", "the clock of the service agrees with Airflow's clock")
    way = "ahead of" if seconds > 0 else "behind"
    text = f"the clock of the service is {abs(seconds)} s {way} Airflow's clock"
    if abs(offset) < CLOCK_SKEW:
        return Finding("clock", "ok", text)
    return Finding("clock", "FAIL", f"{text}; a run is found again only if they differ by less than {CLOCK_SKEW}")


def _gate(feature: str, ask: Callable[[], Any], plan: dict[str, bool]) -> Finding:
    """Find out whether the plan of the server includes a feature, and record the answer in ``plan`` if it is known."""
    try:
        ask()
    except ServiceNotLicensedError:
        plan[feature] = False
        return Finding(feature, "note", "not included in the plan of the server")
    except ServiceMissingScopeError:
        return Finding(feature, "skip", "unknown, since the key lacks the scope to read it")
    except ServiceNotOfferedError:
        return Finding(feature, "note", "not offered by this server")
    except ServiceError as error:
        return Finding(feature, "FAIL", str(error))
    plan[feature] = True
    return Finding(feature, "ok", "included in the plan of the server")


def _mcp(client: ServiceClient, config: ServiceConfig) -> Finding:
    if config.mcp_api_key is None:
        return Finding("MCP", "note", "the connection has no mcp_api_key, so no workflow is started through MCP")
    try:
        client.mcp.require_modes()
    except ServiceError as error:
        return Finding("MCP", "FAIL", str(error))
    return Finding("MCP", "ok", "the endpoint accepts the key, and can start workflows")


def _bridge(client: ServiceClient, config: ServiceConfig) -> Finding:
    try:
        workflow = bridge.find_bridge(bridge.all_bridges(client), bridge.BridgeSecret(config))
    except ServiceError as error:
        return Finding("bridge", "skip", f"not known: {error}")
    if workflow is None:
        return Finding("bridge", "note", "not installed for this connection; a task installs it when it is needed")
    version = bridge.version_of(workflow) or 0
    if not workflow.active or version < bridge.VERSION:
        state = "not active" if not workflow.active else f"of version {version}, older than {bridge.VERSION}"
        return Finding("bridge", "note", f"workflow {workflow.id} is {state}; the next installation repairs it")
    return Finding("bridge", "ok", f"workflow {workflow.id} is active")


def _open_files() -> Finding:
    """Compute the number of waits for which the limit of this process would suffice in a triggerer."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return Finding("open files", "ok", "no limit for this process")
    waits = max(limit - OTHER_FILES, 0)
    text = (
        f"this process may open {limit:,} (ulimit -n), which suffices for {waits:,} deferred waits in a triggerer with "
        "the same limit: Airflow keeps a file open for each"
    )
    return Finding("open files", "ok" if waits >= USUAL_TRIGGERS else "note", text)


# ---------------------------------------------------------------- the page

#: Number of runs to show.
SHOWN_RUNS = 20
#: A triggerer without a heartbeat for longer than this has probably died.
SILENT_SECONDS = 60.0
OF_ALL = "The waits of all connections, because Airflow stores encrypted which connection a wait uses."
NO_WAITS = "There are none."
NO_RUNS = "There are none in the last seven days that you may read."


@dataclass(frozen=True)
class Waits:
    """Waits for triggers of one class in one triggerer; ``triggerer`` is its host, None if none runs them yet."""

    trigger: str
    number: int
    triggerer: str | None = None
    heartbeat_at: datetime | None = None


@dataclass(frozen=True)
class ConnectionView:
    """``lacks`` says in sentences what could not be read of Airflow's database."""

    connection_id: str
    findings: Sequence[Finding]
    base_url: str | None
    waits: Sequence[Waits]
    runs: Sequence[TaskExecution]
    made_at: datetime
    lacks: Sequence[str] = ()


def waits_table(waits: Sequence[Waits], now: datetime) -> Table:
    rows = [(wait.triggerer or "none yet", wait.trigger, wait.number, last_heartbeat(wait, now)) for wait in waits]
    columns = ("triggerer", "trigger", "number", "last heartbeat")
    return Table("Waits in the triggerers", columns, rows, note=OF_ALL if rows else NO_WAITS)


def runs_table(runs: Sequence[TaskExecution]) -> Table:
    rows = [
        (
            Link(run.address.execution_id, run.execution_url),
            f"{run.known_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
            run.dag_id,
            run.task_name,
            run.run_id,
            run.state or "no state yet",
        )
        for run in runs
    ]
    columns = ("execution", "since, UTC", "DAG", "task", "run of the DAG", "state of the task")
    return Table("Latest runs from Airflow", columns, rows, note="" if rows else NO_RUNS)


def last_heartbeat(waits: Waits, now: datetime) -> str:
    if waits.heartbeat_at is None:
        return ""
    seconds = max(0.0, (now - waits.heartbeat_at).total_seconds())
    ago = f"{span(round(seconds))} ago"
    return ago if seconds < SILENT_SECONDS else f"{ago}: check whether it still runs"
