"""The first version of n8n that offers an operation or a parameter, according to its published contracts."""

from __future__ import annotations

_ADDED = {
    "2.3": ("PATCH /credentials/{}",),
    "2.7": (
        "GET /data-tables",
        "POST /data-tables",
        "GET /data-tables/{}",
        "PATCH /data-tables/{}",
        "DELETE /data-tables/{}",
        "GET /data-tables/{}/rows",
        "POST /data-tables/{}/rows",
        "PATCH /data-tables/{}/rows/update",
        "POST /data-tables/{}/rows/upsert",
        "DELETE /data-tables/{}/rows/delete",
    ),
    "2.8": ("GET /credentials", "GET /projects/{}/users"),
    "2.10": (
        "POST /executions/{}/stop",
        "POST /executions/stop",
        "GET /executions/{}/tags",
        "PUT /executions/{}/tags",
    ),
    "2.14": ("GET /discover",),
    "2.15": ("POST /workflows/{}/archive", "POST /workflows/{}/unarchive"),
    "2.16": (
        "GET /community-packages",
        "POST /community-packages",
        "PATCH /community-packages/{}",
        "DELETE /community-packages/{}",
        "GET /executions?redactExecutionData",
        "GET /executions/{}?redactExecutionData",
    ),
    "2.17": ("GET /insights/summary", "GET /users?offset"),
    "2.20": (
        "GET /credentials/{}",
        "POST /credentials/{}/test",
        "GET /data-tables/{}/columns",
        "POST /data-tables/{}/columns",
        "PATCH /data-tables/{}/columns/{}",
        "DELETE /data-tables/{}/columns/{}",
        "GET /projects/{}/folders",
        "POST /projects/{}/folders",
        "GET /projects/{}/folders/{}",
        "PATCH /projects/{}/folders/{}",
        "DELETE /projects/{}/folders/{}",
    ),
    "2.30": (
        "DELETE /data-tables/{}/rows/clear",
        "GET /executions?ignoreDataSizeLimit",
        "GET /executions/{}?ignoreDataSizeLimit",
    ),
    "2.33": ("POST /workflows/{}/publish", "POST /workflows/{}/unpublish", "GET /workflows/{}/history"),
    "2.35": ("PUT /workflows/{}?publishIfActive",),
    "2.36": ("GET /workflows?offset",),
    "2.37": ("GET /executions?startedAfter", "GET /executions?startedBefore"),
    "2.39": ("GET /source-control/status", "POST /source-control/push", "GET /workflows/{}/versions/{}"),
}
_SINCE = {name: version for version, names in _ADDED.items() for name in names}


def since(method: str, path: str, parameter: str | None = None) -> str | None:
    """The version that added an operation, or a parameter of its query.

    :param path: path below the API root, with ``{}`` for each id.
    :returns: None if n8n 1.123 offers it already, or no known version does.
    """
    return _SINCE.get(f"{method} {path}" + (f"?{parameter}" if parameter else ""))
