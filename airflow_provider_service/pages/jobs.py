"""What the package's operators need of an API key, by what people use them for."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_service.runs.bridge.install import SCOPES as BRIDGE_SCOPES


def _of(resource: str, actions: str) -> tuple[str, ...]:
    return tuple(f"{resource}:{action}" for action in actions.split())


#: The scopes of each job; a job needs all of its scopes only if all its operators are used.
JOBS: Mapping[str, tuple[str, ...]] = {
    "run a workflow and wait for it": (
        *_of("workflow", "read list activate"),
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
