"""Examine a connection: which features work, and what the key permits. The examination changes nothing."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from airflow_provider_service._core.connection_check import check_connection, server_version
from airflow_provider_service._core.pages.jobs import JOBS, state_of
from airflow_provider_service._core.runs.search import CLOCK_SKEW
from airflow_provider_service.client.errors import (
    ServiceError,
    ServiceMissingScopeError,
    ServiceNotLicensedError,
    ServiceNotOfferedError,
)

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient, ServiceConfig

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
    """The result of one check.

    :param grade: "FAIL" if it requires action, "note" if that depends on the use of the connection, and "skip" if the
        subject was not or could not be examined.
    """

    subject: str
    grade: Grade
    text: str

    @property
    def is_left_out(self) -> bool:
        """Whether it was not examined because an earlier check failed."""
        return self.text == LEFT_OUT


def examine(config: ServiceConfig) -> Iterator[Finding]:
    """Make all checks, one by one, and yield each finding as soon as it is known.

    Sends about eight requests, each once, which only read.
    """
    from airflow_provider_service.client import ServiceClient

    quick = config.one_try(timeout=min(config.timeout, REQUEST_SECONDS))
    with ServiceClient(quick) as client:
        reached = check_connection(client)
        yield Finding("service", "ok" if reached.is_good else "FAIL", reached.message)
        if not reached.is_good:
            return
        version = server_version(client)
        yield _version(version)
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
    """Whether no finding requires action."""
    return all(one.grade != "FAIL" for one in findings)


class Verdict(NamedTuple):
    """The verdict of an examination.

    :param grade: "FAIL" or "ok".
    :param text: number of checks that failed, and of those that were not made.
    """

    grade: Grade
    text: str


def complete(findings: Sequence[Finding]) -> list[Finding]:
    """Sort the findings, the most severe first, and add the subjects that were not examined after a failure."""
    found = {one.subject for one in findings}
    skipped = [Finding(one, "skip", LEFT_OUT) for one in SUBJECTS if one not in found]
    return sorted([*findings, *skipped], key=lambda one: GRADES.index(one.grade))


def verdict(findings: Sequence[Finding]) -> Verdict:
    """Sum up the findings of an examination."""
    number = Counter(one.grade for one in complete(findings))
    skipped = f" {_checks(number['skip'])} not made." if number["skip"] else ""
    if number["FAIL"]:
        failed = "1 check failed." if number["FAIL"] == 1 else f"{number['FAIL']} checks failed."
        return Verdict("FAIL", failed + skipped)
    text = "All checks passed." if not number["skip"] else "No check failed."
    return Verdict("ok", text + skipped)


def _checks(number: int) -> str:
    return "1 check was" if number == 1 else f"{number} checks were"


def _version(version: str | None) -> Finding:
    if version is None:
        return Finding("version", "skip", "unknown: neither the API nor the start page reports it")
    return Finding("version", "ok", f"n8n {version}")


def _clock(client: ServiceClient) -> Finding:
    offset = client.transport.certain_clock_offset
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
    from airflow_provider_service._core.runs.bridge.access import BridgeSecret
    from airflow_provider_service._core.runs.bridge.definition import VERSION, version_of
    from airflow_provider_service._core.runs.bridge.install import all_bridges, find_bridge

    try:
        found = find_bridge(all_bridges(client), BridgeSecret(config))
    except ServiceError as error:
        return Finding("bridge", "skip", f"not known: {error}")
    if found is None:
        return Finding("bridge", "note", "not installed for this connection; a task installs it when it is needed")
    version = version_of(found) or 0
    if not found.active or version < VERSION:
        state = "not active" if not found.active else f"of version {version}, older than {VERSION}"
        return Finding("bridge", "note", f"workflow {found.id} is {state}; the next installation repairs it")
    return Finding("bridge", "ok", f"workflow {found.id} is active")


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
