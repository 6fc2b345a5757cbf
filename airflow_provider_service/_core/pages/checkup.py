"""Examine a connection: which features work, and which jobs the server, its plan and the key permit. Only reads."""

from __future__ import annotations

import resource
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from airflow_provider_service._core.connection_check import check_connection, server_version
from airflow_provider_service._core.health.statistics import span
from airflow_provider_service._core.reports.report import Link, Table
from airflow_provider_service._core.runs import bridge
from airflow_provider_service._core.runs.attempt import CLOCK_SKEW
from airflow_provider_service.client import errors

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

#: What cannot be found out about a job that the key permits.
_UNKNOWN = {"pull from source control": "works if the plan of the server includes source control, which is not known"}


def since(scope: str) -> str:
    """Return the first version of n8n in which a scope has an effect."""
    return _SINCE.get(scope) or _SINCE.get(scope.partition(":")[0]) or "0.0"


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


#: Seconds that each request may take.
REQUEST_SECONDS = 10.0

#: The checks of a reachable service, in order.
SUBJECTS = ("service", "key", "version", "clock", "plan", *JOBS, "MCP", "bridge", "open files")

#: Open files of a triggerer besides one for each trigger: libraries, sockets, and files of Airflow itself.
OTHER_FILES = 50
#: Number of triggers that one of Airflow's triggerers runs by default.
USUAL_TRIGGERS = 1_000

Grade = Literal["FAIL", "ok", "note"]


@dataclass(frozen=True)
class Finding:
    """The result of one check: FAIL requires action; a note matters for some uses, or says what is not known."""

    subject: str
    grade: Grade
    text: str = ""


def examine(config: ServiceConfig) -> Iterator[Finding]:
    """Make all checks, one by one, by about eight requests, each once, which only read."""
    from airflow_provider_service.client import ServiceClient

    quick = config.one_try(timeout=min(config.timeout, REQUEST_SECONDS))
    with ServiceClient(quick) as client:
        reached = check_connection(client)
        if reached.is_good or reached.is_key_refused:
            yield Finding("service", "ok", f"{client.base_url} answers")
        if not reached.is_good:
            yield Finding("key" if reached.is_key_refused else "service", "FAIL", reached.message)
            return
        scopes, version = reached.scopes, server_version(client)
        number = "" if scopes is None else f"; it holds {len(scopes)} scope{'s' * (len(scopes) != 1)}"
        yield Finding("key", "ok", f"accepted{number}")
        unknown = "not known: neither the API nor the start page reports it"
        yield Finding("version", "ok", f"n8n {version}") if version else Finding("version", "note", unknown)
        yield _clock(client)
        plan, excluded = _plan(client)
        yield plan
        yield from filter(None, (_job(job, version, scopes) for job in JOBS if job not in excluded))
        if scopes is None:
            yield Finding("jobs", "note", "not examined, since this server does not report the scopes of a key")
        yield _mcp(client, config)
        yield _bridge(client, config)
        yield _open_files()


def verdict(findings: Sequence[Finding]) -> Finding:
    """Sum up an examination."""
    failed = [finding.subject for finding in findings if finding.grade == "FAIL"]
    if failed:
        number = f"{len(failed)} check{'s' * (len(failed) > 1)}"
        rest = " The rest was not examined." if failed[0] in ("connection", "service", "key") else ""
        return Finding("connection", "FAIL", f"{number} failed: {', '.join(failed)}.{rest}")
    able = sum(finding.grade == "ok" for finding in findings if finding.subject in JOBS)
    are_known = all(finding.subject != "jobs" for finding in findings)
    jobs = f" for {able} of {len(JOBS)} jobs" if are_known and able < len(JOBS) else ""
    notes = sum(finding.grade == "note" for finding in findings)
    return Finding("connection", "ok", f"Ready{jobs}." + (f" {notes} note{'s' * (notes > 1)}." if notes else ""))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Put the notes last, so that what everybody asks comes first."""
    return sorted(findings, key=lambda finding: finding.grade == "note")


def _clock(client: ServiceClient) -> Finding:
    offset = client.transport.server_clock.certain_offset
    if offset is None:
        return Finding("clock", "note", "not known: the answers of the service carry no date")
    seconds = round(offset / timedelta(seconds=1))
    way = "ahead of" if seconds > 0 else "behind"
    text = f"{abs(seconds)} s {way} Airflow's clock" if seconds else "agrees with Airflow's clock"
    if abs(offset) < CLOCK_SKEW:
        return Finding("clock", "ok", text)
    return Finding("clock", "FAIL", f"{text}; a run is found again only if they differ by less than {CLOCK_SKEW}")


def _plan(client: ServiceClient) -> tuple[Finding, set[str]]:
    """Find out which features the plan of the server includes, and the jobs that it excludes."""
    features: dict[str, list[str]] = {}  # by what is known of them
    excluded: set[str] = set()
    for feature, job, ask in (
        ("variables", "manage variables", client.variables.list),
        ("projects", "manage projects and folders", client.projects.list),
    ):
        try:
            next(ask(limit=1), None)
        except errors.ServiceNotLicensedError:
            excluded.add(job)
            known = "does not include"
        except errors.ServiceMissingScopeError:
            known = "not known, since the key may not list"
        except errors.ServiceNotOfferedError:
            known = "not known, since the server does not offer"
        except errors.ServiceError as error:
            return Finding("plan", "FAIL", str(error)), excluded
        else:
            known = "includes"
        features.setdefault(known, []).append(feature)
    text = "; ".join(f"{known} {' and '.join(names)}" for known, names in features.items())
    return Finding("plan", "ok" if features.keys() == {"includes"} else "note", text), excluded


def _job(job: str, version: str | None, scopes: Collection[str] | None) -> Finding | None:
    """Find out whether server and key permit a job; None if that is not known."""
    later = {scope: since(scope) for scope in JOBS[job] if version and _numbers(version) < _numbers(since(scope))}
    offered = [scope for scope in JOBS[job] if scope not in later]
    if not offered:
        versions = sorted(set(later.values()), key=_numbers)
        full = f", and in full from {versions[-1]} on" if len(versions) > 1 else ""
        return Finding(job, "note", f"not offered before n8n {versions[0]}{full}")
    notes = [f"{scope} is not offered before n8n {first}" for scope, first in later.items()]
    if scopes is None:
        return Finding(job, "note", "; ".join(notes)) if notes else None
    if missing := [scope for scope in offered if scope not in scopes]:
        notes.insert(0, f"the key lacks {', '.join(missing)}")
    elif job in _UNKNOWN:
        notes.append(_UNKNOWN[job])
    return Finding(job, "note" if notes else "ok", "; ".join(notes))


def _mcp(client: ServiceClient, config: ServiceConfig) -> Finding:
    if config.mcp_api_key is None:
        return Finding("MCP", "note", "not set up: the connection has no mcp_api_key")
    try:
        client.mcp.require_modes()
    except errors.ServiceError as error:
        return Finding("MCP", "FAIL", str(error))
    return Finding("MCP", "ok", "accepts its key, and can start workflows")


def _bridge(client: ServiceClient, config: ServiceConfig) -> Finding:
    try:
        workflow = bridge.find_bridge(bridge.all_bridges(client), bridge.BridgeSecret(config))
    except errors.ServiceError as error:
        return Finding("bridge", "note", f"not known: {error}")
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
    text = f"this process may open {limit:,} (ulimit -n); in a triggerer, enough for {waits:,} deferred waits"
    return Finding("open files", "ok" if waits >= USUAL_TRIGGERS else "note", text)


# ---------------------------------------------------------------- the page

#: Number of runs to show.
SHOWN_RUNS = 20
#: A triggerer without a heartbeat for longer than this has probably died.
SILENT_SECONDS = 60.0
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
    is_n8n: bool = False

    @property
    def title(self) -> str:
        return f"{'n8n connection' if self.is_n8n else 'Connection'} {self.connection_id}"


def waits_table(waits: Sequence[Waits], now: datetime) -> Table:
    rows = [(wait.triggerer or "none yet", wait.trigger, wait.number, _last_heartbeat(wait, now)) for wait in waits]
    columns = ("triggerer", "trigger", "number", "last heartbeat")
    of_all = "The waits of all connections, because Airflow stores encrypted which connection a wait uses."
    return Table("Waits in the triggerers", columns, rows, note=of_all if rows else "There are none.")


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


def _last_heartbeat(waits: Waits, now: datetime) -> str:
    if waits.heartbeat_at is None:
        return ""
    seconds = max(0.0, (now - waits.heartbeat_at).total_seconds())
    ago = f"{span(round(seconds))} ago"
    return ago if seconds < SILENT_SECONDS else f"{ago}: check whether it still runs"
