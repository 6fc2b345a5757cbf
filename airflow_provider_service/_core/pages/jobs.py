"""What the package's operators require of a server and an API key, by job."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from airflow_provider_service._core.runs.bridge.install import SCOPES as BRIDGE_SCOPES


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
    "run a workflow and wait for it": (
        *_of("workflow", "read list"),
        *_of("execution", "read list stop"),
    ),
    "install the bridge": BRIDGE_SCOPES,
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
    """Whether a job can be done and, if not or only in part, why.

    :param is_known: whether that could be examined.
    """

    is_good: bool
    text: str
    is_known: bool = True


def state_of(job: str, *, version: str | None, scopes: Collection[str] | None, plan: Mapping[str, bool]) -> State:
    """Find out whether a server, its plan and a key allow a job.

    :param version: version of the server, such as ``"2.20.12"``; None if it is unknown.
    :param scopes: scopes of the key; None if the server does not report them.
    :param plan: whether the plan of the server includes a feature; features that are missing were not examined.
    """
    later = {scope: since(scope) for scope in JOBS[job] if not _has(version, since(scope))}
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


def _has(version: str | None, since: str) -> bool:
    return version is None or _numbers(version) >= _numbers(since)


def _numbers(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
