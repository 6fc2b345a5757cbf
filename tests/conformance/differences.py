"""Every known and explained difference between the simulator, the server's generations and the published contract.

The one place for them: a test asks :meth:`Target.differs` for a topic and expects what the difference says. A topic is
an operation's name, or a few words that name a behaviour.
"""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """``target`` (``simulator``, a server such as ``2.40``, ``queue``) does otherwise than the newest in ``topic``.

    ``operation`` is the one whose row of the table names the ``reason``; none for what concerns many.
    """

    topic: str
    target: str
    reason: str
    operation: str | None = None


#: Operations that no server could be made to answer with success, and why.
REFUSING_ONLY = {
    **dict.fromkeys(
        ("install_community_package", "update_community_package", "uninstall_community_package"),
        "what may be installed is known to a host out of reach.",
    ),
    **dict.fromkeys(("get_test_run", "list_test_cases"), "this edition starts no test runs."),
}

_SECOND_GENERATION = ("2.41", "2.40")

DIFFERENCES = (
    Difference("key scopes", "1.123", "Its free edition does not hold keys to their scopes."),
    Difference("families of endpoints", "1.123", "It has one family of endpoints, with the strict one's texts."),
    Difference("limits above 250", "1.123", "It refuses limits above 250 everywhere.", "list_tags"),
    Difference("form of limits", "1.123", "It takes the limit -1, and refuses empty values.", "list_workflows"),
    Difference("forged cursors", "1.123", "It takes a cursor of another kind for the first page.", "list_tags"),
    Difference("structure of a workflow", "1.123", "It takes nodes without type and position.", "create_workflow"),
    Difference("versions of a workflow", "1.123", "Every update makes a new version.", "update_workflow"),
    Difference("pinned data", "1.123", "It does not take pinned data.", "update_workflow"),
    Difference("deprecations", "1.123", "The older names of its calls are the only ones.", "activate_workflow"),
    Difference(
        "transfer_workflow", "1.123", "Other words, and what is not found is a bad request.", "transfer_workflow"
    ),
    Difference("deletion of an active workflow", "1.123", "It deletes active workflows.", "delete_workflow"),
    Difference("form of execution ids", "1.123", "It refuses other ids, in other words.", "get_execution"),
    Difference("retry of a success", "1.123", "It is refused with 400 and not 409.", "retry_execution"),
    Difference("call beyond the limit", "1.123", "It is answered at once, though the run is queued."),
    Difference("readiness", "1.123", "It calls itself ready before its API is."),
    Difference("list of waiting executions", "1.123", "It lists no waiting executions.", "list_executions"),
    Difference("start of what slept", "1.123", "What wakes is started anew, under the same id.", "get_execution"),
    Difference("error of a code node", "1.123", "It names the node.", "get_execution"),
    Difference("id in a webhook's answer", "1.123", "It does not know the id when it answers at once."),
    Difference("wrong password of a webhook", "1.123", "It is answered as a wrong header is."),
    Difference("answer of a run that fails first", "1.123", "It is 200 and empty."),
    Difference(
        "unknown projects", "1.123", "A credential for an unknown project is made, without one.", "create_credential"
    ),
    Difference("transfer_credential", "1.123", "What is not found is a bad request.", "transfer_credential"),
    Difference(
        "delete_credential", "1.123", "The answer to a delete has no id and no scope of usage.", "delete_credential"
    ),
    Difference("inviting administrators", "1.123", "What the plan does not include is a bad request.", "create_users"),
    Difference("fields of users", "1.123", "A user has no 'mfaEnabled'.", "get_user"),
    Difference("offsets", "1.123", "There is no parameter 'offset'.", "list_users"),
    Difference("users of unknown projects", "1.123", "An unknown project has no users, and is no error.", "list_users"),
    Difference("deleting unknown users", "1.123", "An unknown user is a bad request.", "delete_user"),
    Difference("family of folders", "2.40", "It checks the license for reading folders before the scope."),
    Difference(
        "family of insights",
        "2.40",
        "It refuses unknown parameters and values that are not encoded, in the strict family's words.",
        "get_insights_summary",
    ),
    Difference("family of tags", "2.40", "It refuses in the strict family's words.", "update_tag"),
    *(
        Difference(
            "moments without offset",
            target,
            "A moment without an offset is read in the zone of the workflow that ran last; in the simulator in UTC.",
            "insert_data_table_rows",
        )
        for target in _SECOND_GENERATION
    ),
    *(
        Difference(operation, target, f"Seen refusing only: {why}", operation)
        for operation, why in REFUSING_ONLY.items()
        for target in _SECOND_GENERATION
    ),
)

#: Operations that the free edition refuses: an unlicensed server answers ServiceNotLicensedError.
GATED = frozenset(
    {
        "add_project_users",
        "cancel_test_run",
        "change_project_user_role",
        "change_user_role",
        "create_folder",
        "create_project",
        "create_test_run",
        "create_variable",
        "delete_folder",
        "delete_project",
        "delete_project_user",
        "delete_variable",
        "get_folder",
        "get_source_control_status",
        "list_folders",
        "list_project_users",
        "list_projects",
        "list_variables",
        "pull_source_control",
        "push_source_control",
        "update_folder",
        "update_project",
        "update_variable",
    }
)


class ContractDifference(NamedTuple):
    """What the published contract has against a request that the server takes, or an answer that it gives.

    ``part`` is ``sent`` or ``answered``, ``complaint`` what :class:`PublishedContract` says.
    """

    operation: str
    part: str
    complaint: str
    reason: str


CONTRACT_DIFFERENCES = (
    *(
        ContractDifference(
            operation,
            "sent",
            "$.connections Additional properties are not allowed ('Webhook' was unexpected)",
            "The document does not say that connections are named by node.",
        )
        for operation in ("create_workflow", "update_workflow")
    ),
    ContractDifference(
        "create_users", "answered", "Unknown response http status: 201", "The server answers 201 and a list, not 200."
    ),
    ContractDifference(
        "change_user_role", "answered", "Unknown response http status: 204", "The server's code answers 204, not 200."
    ),
    *(
        ContractDifference(
            operation, "answered", f"{place}.{name} null is not of type 'string'", "A pending user has no names."
        )
        for operation, place in (("get_user", "$"), ("list_users", "$.data[]"))
        for name in ("firstName", "lastName")
    ),
    ContractDifference(
        "delete_data_table_rows",
        "answered",
        "$[].id null is not of type 'integer'",
        "In a dry run, the row after its deletion is all null.",
    ),
    ContractDifference(
        "upsert_data_table_rows",
        "answered",
        "$ a list is not of type 'boolean'",
        "The server answers a list of rows, not one row.",
    ),
    ContractDifference(
        "generate_audit", "answered", "$ a list is not of type 'object'", "Without findings the server answers []."
    ),
    ContractDifference(
        "retry_execution",
        "answered",
        "$.annotation.vote null is not one of ['up', 'down']",
        "An annotation need not hold a vote.",
    ),
    ContractDifference(
        "list_test_runs",
        "answered",
        "$.data[].finalResult null is not one of ['success', 'error', 'warning']",
        "Called nullable, while null is not in the list of values: a run that has not ended has no result.",
    ),
)


def difference(topic: str, target: str) -> Difference | None:
    """The difference of a target in a topic, if it is known to have one."""
    return next((one for one in DIFFERENCES if (one.topic, one.target) == (topic, target)), None)
