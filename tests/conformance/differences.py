"""Every known and explained difference between the simulator, the server's generations and the published contract.

The one place for them: a test asks :meth:`Target.differs` for a topic and expects what the difference says. A topic is
an operation's name, or a few words that name a behaviour.
"""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """``target`` (``simulator``, a server such as ``2.40``, ``queue``) differs from the newest server in ``topic``.

    ``operation`` is the operation whose row of the table names the ``reason``; None if it concerns several.
    """

    topic: str
    target: str
    reason: str
    operation: str | None = None


#: Operations that no server could be made to answer with success, and why.
REFUSING_ONLY = dict.fromkeys(
    ("install_community_package", "update_community_package", "uninstall_community_package"),
    "the list of packages that may be installed is on a host that cannot be reached.",
)

_SECOND_GENERATION = ("2.41", "2.40", "2.39", "2.30", "2.20")


def _each(targets: str, topic: str, reason: str, operation: str | None = None) -> tuple[Difference, ...]:
    """The same difference of several targets."""
    return tuple(Difference(topic, target, reason, operation) for target in targets.split())


DIFFERENCES = (
    Difference("key scopes", "1.123", "Its free edition does not hold keys to their scopes."),
    *_each(
        "2.30 2.20 1.123", "families of endpoints", "All its endpoints answer with the messages of the strict family."
    ),
    *_each("2.30 2.20 1.123", "limits above 250", "It refuses limits above 250 everywhere.", "list_tags"),
    *_each("2.30 2.20 1.123", "form of limits", "It accepts the limit -1, and refuses empty values.", "list_workflows"),
    *_each("2.30 2.20 1.123", "forged cursors", "It treats a cursor of another kind as the first page.", "list_tags"),
    *_each("2.20 1.123", "structure of a workflow", "It accepts nodes without type and position.", "create_workflow"),
    Difference("versions of a workflow", "1.123", "Every update creates a new version.", "update_workflow"),
    Difference("pinned data", "1.123", "It does not accept pinned data.", "update_workflow"),
    Difference("order of publishing", "1.123", "It activates what calls workflows that are not active."),
    Difference("an error workflow that is taken back", "1.123", "It keeps 'DEFAULT' as the error workflow's id."),
    *_each("2.30 2.20 1.123", "deprecations", "It only has the older names of the calls.", "activate_workflow"),
    Difference(
        "transfer_workflow",
        "1.123",
        "Its messages differ, and 400 stands for not found.",
        "transfer_workflow",
    ),
    *_each("2.39 2.30 2.20 1.123", "deletion of an active workflow", "It deletes active workflows.", "delete_workflow"),
    *_each(
        "2.39 2.30 2.20 1.123",
        "form of execution ids",
        "It refuses different ids, with different messages.",
        "get_execution",
    ),
    Difference("retry of a success", "1.123", "It is refused with 400, not 409.", "retry_execution"),
    *_each("2.30 2.20 1.123", "MCP endpoint", "It takes other inputs, and chooses the trigger itself."),
    Difference(
        "publishing of sub-workflows",
        "1.123",
        "A workflow whose only trigger is for sub-workflows cannot be published.",
    ),
    Difference(
        "start of what is not published",
        "1.123",
        "Another workflow starts the draft, whether it is published or not, and even if it is archived.",
    ),
    Difference("call beyond the limit", "1.123", "It is answered at once, although the run is queued."),
    Difference("readiness", "1.123", "It reports that it is ready before its API is."),
    *_each("2.20 1.123", "list of waiting executions", "It does not list waiting executions.", "list_executions"),
    Difference(
        "start of what slept",
        "1.123",
        "An execution that wakes up is started again, under the same id.",
        "get_execution",
    ),
    Difference("error of a code node", "1.123", "The error names the node.", "get_execution"),
    Difference("id in a webhook's answer", "1.123", "It does not know the id if the webhook answers at once."),
    *_each("2.39 2.30 1.123", "taken path with parameters", "The second workflow of such a path is refused with 400."),
    Difference(
        "empty file of a form",
        "1.123",
        "A webhook runs the workflow without the file and those after it; if one comes before it, the run fails.",
    ),
    Difference("files above the limit", "1.123", "They are left out as empty files are, and the workflow runs."),
    Difference("form that cannot be read", "1.123", "A webhook takes it for one without fields and files."),
    *_each("2.20 1.123", "wrong password of a webhook", "It is answered like a wrong header."),
    *_each("2.30 2.20 1.123", "answer of a run that fails first", "It is 200 and has no body."),
    Difference(
        "unknown projects",
        "1.123",
        "A credential for an unknown project is created without a project.",
        "create_credential",
    ),
    Difference("transfer_credential", "1.123", "It answers 400 for what is not found.", "transfer_credential"),
    *_each(
        "2.30 2.20 1.123",
        "delete_credential",
        "The answer to a deletion has neither an id nor a scope of usage.",
        "delete_credential",
    ),
    Difference(
        "inviting administrators", "1.123", "It answers 400 for what the plan does not include.", "create_users"
    ),
    *_each("2.20 1.123", "fields of users", "A user has no 'mfaEnabled'.", "get_user"),
    Difference("offsets", "1.123", "There is no parameter 'offset'.", "list_users"),
    Difference(
        "users of unknown projects", "1.123", "An unknown project is not an error, and has no users.", "list_users"
    ),
    Difference("deleting unknown users", "1.123", "It answers 400 for an unknown user.", "delete_user"),
    *_each("2.40 2.39", "family of folders", "To read folders, it checks the license before the scope."),
    *_each(
        "2.40 2.39 2.30 2.20",
        "family of insights",
        "It refuses unknown parameters, and values that are not encoded, with the messages of the strict family.",
        "get_insights_summary",
    ),
    Difference("family of new tags", "2.39", "It refuses them with the messages of the strict family.", "create_tag"),
    *_each("2.40 2.39", "family of tags", "It refuses requests with the messages of the strict family.", "update_tag"),
    *_each(
        "2.39 2.30 2.20",
        "order of checks",
        "It checks the license before the scope of the key; an older one, the request, too.",
    ),
    *_each(
        "2.39 2.30 2.20 1.123",
        "start of an unknown workflow",
        "The failure says that there is no such workflow.",
    ),
    *_each(
        "2.30 2.20",
        "stop of an ended execution",
        "It answers 500 instead of 409.",
        "stop_execution",
    ),
    Difference("stop of an unknown execution", "2.20", "It says less of what it does not find.", "stop_execution"),
    Difference("status of files above the limit", "2.20", "It is 500."),
    *_each("2.30 2.20", "faults of forms", "It answers 500 to empty files, and to forms that it cannot read."),
    Difference("archive_workflow", "2.20", "Its messages differ.", "archive_workflow"),
    *_each("2.30 2.20 1.123", "tags with a project", "The filter for tags is ignored if a project is given, too."),
    *_each("2.30 2.20", "queued run after a restart", "It is not started again, and stays in the queue."),
    Difference("second path with parameters", "2.20", "The second workflow of such a path runs."),
    Difference(
        "faults of the database",
        "2.20",
        "It answers 400, in the words of the database.",
        "create_data_table",
    ),
    *_each(
        "2.39 2.30 2.20",
        "comparisons",
        "Filters have neither isEmpty nor isNotEmpty.",
        "list_data_table_rows",
    ),
    *_each(
        "2.20 1.123",
        "data of credentials",
        "A field that belongs to a value of another one must be given exactly if that one has this value or is absent.",
    ),
    *_each("2.30 2.20", "test_credential", "It refuses to test what it cannot test.", "test_credential"),
    *(
        Difference(
            "moments without offset",
            target,
            "A date without an offset is read in the zone of the workflow that ran last; in the simulator in UTC.",
            "insert_data_table_rows",
        )
        for target in _SECOND_GENERATION
    ),
    *(
        Difference(operation, target, f"Only refusals were observed: {why}", operation)
        for operation, why in REFUSING_ONLY.items()
        for target in _SECOND_GENERATION
    ),
)

#: Operations that the free edition refuses: an unlicensed server answers ServiceNotLicensedError.
GATED = frozenset(
    {
        "add_project_users",
        "change_project_user_role",
        "change_user_role",
        "create_folder",
        "create_project",
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
    """A complaint of the published contract about a request that the server accepts, or an answer that it gives.

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
            "The document does not say that connections are keyed by node name.",
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
        "In a dry run, all values of the row after its deletion are null.",
    ),
    ContractDifference(
        "upsert_data_table_rows",
        "answered",
        "$ a list is not of type 'boolean'",
        "The server answers a list of rows, not one row.",
    ),
    ContractDifference(
        "generate_audit",
        "answered",
        "$ a list is not of type 'object'",
        "If there are no findings, the server answers [].",
    ),
    ContractDifference(
        "retry_execution",
        "answered",
        "$.annotation.vote null is not one of ['up', 'down']",
        "An annotation does not need to have a vote.",
    ),
)


def difference(topic: str, target: str) -> Difference | None:
    """The difference of a target in a topic, if it is known to have one."""
    return next((one for one in DIFFERENCES if (one.topic, one.target) == (topic, target)), None)
