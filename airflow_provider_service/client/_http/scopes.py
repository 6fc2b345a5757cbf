"""Every key scope of the specification, and how to name it to a caller whose key lacks it."""

from __future__ import annotations

_ACTIONS = {
    "communityPackage": "install list uninstall update",
    "credential": "create read list update delete move",
    "dataTable": "create read list update delete",
    "dataTableColumn": "create read update delete",
    "dataTableRow": "create read update delete upsert",
    "execution": "read list retry stop delete",
    "executionTags": "list update",
    "folder": "create read list update delete",
    "insights": "read",
    "project": "create list update delete",
    "securityAudit": "generate",
    "sourceControl": "pull",
    "tag": "create read list update delete",
    "user": "create read list changeRole enforceMfa delete",
    "variable": "create list update delete",
    "workflow": "create read list update delete move activate",
    "workflowTags": "list update",
}

SPECIFIED_SCOPES: frozenset[str] = frozenset(
    f"{resource}:{action}" for resource, actions in _ACTIONS.items() for action in actions.split()
)

# Operations for which the server requires a different scope from the one in the specification.
_SPECIFIED_AS = {
    "workflow:deactivate": "workflow:activate",
    "project:manageMembers": "project:update",
}


def describe_scope(scope: str) -> str:
    """Name the scope or scopes that an operation needs, with the specification's name where the two differ.

    :param scope: server scope, or several joined by a comma, e.g. ``"workflow:deactivate"``.
    """
    return " and ".join(_describe_one(name) for name in scope.split(","))


def _describe_one(scope: str) -> str:
    if scope in SPECIFIED_SCOPES:
        return f"'{scope}'"
    if scope in _SPECIFIED_AS:
        return f"'{scope}' (the specification names '{_SPECIFIED_AS[scope]}')"
    return f"'{scope}' (a scope of the server that the specification does not list)"
