"""Types of the results of tasks. In XCom, each is a plain mapping of JSON values."""

from typing import Any, TypedDict

from airflow_provider_service._core.runs import NodeInShort, RunResult

__all__ = [
    "AuditCategory",
    "AuditResult",
    "BackupResult",
    "BridgeResult",
    "ChangedFile",
    "CommunityPackageResult",
    "CreateOrUpdateWorkflowResult",
    "CredentialResult",
    "DeleteExecutionsResult",
    "DeployResult",
    "EnsureResult",
    "ExportResult",
    "Gap",
    "HealthBreach",
    "HealthResult",
    "Insight",
    "InsightsResult",
    "InviteUsersResult",
    "InvitedUser",
    "NodeInShort",
    "RestoreResult",
    "RunResult",
    "SourceControlResult",
    "StopResult",
    "StopSelectionResult",
    "TagResult",
    "TransferWorkflowResult",
    "VariableResult",
    "WorkflowHealth",
    "WorkflowResult",
    "WorkflowTagsResult",
]


class StopResult(TypedDict):
    """An execution, and whether this task stopped it. The status is None if the execution does not exist."""

    execution_id: str
    status: str | None
    stopped: bool
    url: str | None


class StopSelectionResult(TypedDict):
    """The number of executions that were stopped."""

    stopped: int
    url: str


class DeleteExecutionsResult(TypedDict):
    """The numbers of executions that were given or selected, deleted, and missing; the last two are 0 with ``preview``.

    ``more`` says whether the selection has more than ``max_deletions``, and ``execution_ids`` holds the first 100 ids
    that were given or selected.
    """

    selected: int
    deleted: int
    missing: int
    preview: bool
    more: bool
    execution_ids: list[str]
    url: str


class WorkflowResult(TypedDict):
    """A workflow after the task; ``version_id`` is the id of its active version."""

    workflow_id: str
    name: str
    active: bool
    archived: bool
    version_id: str | None
    url: str


class CreateOrUpdateWorkflowResult(WorkflowResult):
    """A workflow, and the outcome: created, updated, activated, deactivated or unchanged."""

    outcome: str


class BridgeResult(TypedDict):
    """The bridge, the version of its definition, and the outcome: created, updated or unchanged."""

    workflow_id: str
    name: str
    version: int | None
    outcome: str
    url: str


class TransferWorkflowResult(TypedDict):
    """The project of a workflow, and whether the task moved it there."""

    workflow_id: str
    project_id: str
    moved: bool
    url: str


class WorkflowTagsResult(TypedDict):
    """The names of a workflow's tags, and whether the task changed them."""

    workflow_id: str
    tags: list[str]
    changed: bool
    url: str


class Gap(TypedDict):
    """Something that was left out of an export or a backup, or could not be restored, and the reason."""

    what: str
    why: str


class ExportResult(TypedDict):
    """The number of workflows, the address of each file by the id of its workflow, and what was left out.

    ``removed`` lists the paths, in the folder, of the files that were removed.
    """

    path: str
    workflows: int
    files: dict[str, str]
    left_out: list[Gap]
    removed: list[str]


class DeployResult(TypedDict):
    """The outcome (deployed, unchanged or planned), and the workflows: names by action, and ids by name."""

    outcome: str
    created: list[str]
    renamed: list[str]
    updated: list[str]
    published: list[str]
    activated: list[str]
    deactivated: list[str]
    archived: list[str]
    unchanged: list[str]
    workflow_ids: dict[str, str]


class BackupResult(TypedDict):
    """The size and checksum of an archive, the number of objects by kind, and what was left out.

    ``deleted`` is the number of older backups that were deleted.
    """

    path: str
    bytes: int
    sha256: str
    counts: dict[str, int]
    left_out: list[Gap]
    deleted: int


class RestoreResult(TypedDict):
    """The outcome (restored, unchanged or planned), and the numbers of objects by kind and action.

    ``left`` holds the names of objects that differ and were left unchanged, by kind; ``not_restored`` holds what could
    not be restored; ``credentials_without_secrets`` holds the names of the credentials that were created.
    """

    outcome: str
    counts: dict[str, dict[str, int]]
    left: dict[str, list[str]]
    not_restored: list[Gap]
    credentials_without_secrets: list[str]


class AuditCategory(TypedDict):
    """The findings of a category of a security audit."""

    sections: int
    locations: int
    titles: list[str]


class AuditResult(TypedDict):
    """The number of findings of a security audit, and the categories that have any."""

    findings: int
    by_category: dict[str, AuditCategory]
    report_path: str | None
    url: str


class Insight(TypedDict):
    """A statistic. The deviation is the change from the previous period, or None if there was no such period."""

    value: float
    unit: str
    deviation: float | None


class InsightsResult(TypedDict):
    """Statistics on production executions in a time range."""

    total: Insight
    failed: Insight
    failure_rate: Insight
    time_saved: Insight
    average_run_time: Insight
    report_path: str | None
    url: str


class HealthBreach(TypedDict):
    """A breached threshold, with the measured value and the limit."""

    threshold: str
    value: float | None
    limit: float


class WorkflowHealth(TypedDict):
    """The statistics of one workflow; all durations and ages are in seconds."""

    workflow_id: str
    name: str
    runs: int
    succeeded: int
    failed: int
    canceled: int
    failure_rate: float | None
    success_age: float | None
    duration_median: float | None
    duration_p95: float | None
    last_success_at: str | None
    breaches: list[HealthBreach]
    url: str


class HealthResult(TypedDict):
    """The health of workflows: at most 50, unhealthy ones first; ``more`` says whether there are more."""

    healthy: bool
    message: str
    checked: int
    unhealthy: int
    runs: int
    failed: int
    failure_rate: float | None
    window_start: str
    window_end: str
    workflows: list[WorkflowHealth]
    more: bool
    report_path: str | None
    url: str


class ChangedFile(TypedDict):
    """An object that source control pulls or pushes."""

    file: str
    type: str
    id: str
    name: str
    status: str
    conflict: bool


class SourceControlResult(TypedDict):
    """The objects that were pulled or pushed, or with ``preview`` would be.

    ``changes`` holds the number of objects by type and status, and ``files`` the first 200.
    """

    count: int
    by_type: dict[str, int]
    by_status: dict[str, int]
    changes: dict[str, dict[str, int]]
    files: list[ChangedFile]
    preview: bool
    url: str


class EnsureResult(TypedDict):
    """The numbers of objects by outcome, and the first 200 changes.

    Each change holds ``"action"``, ``"name"`` and details of its kind. ``more`` says whether there are more. With
    ``preview``, the numbers and changes are those that a run without it would produce.
    """

    created: int
    updated: int
    deleted: int
    unchanged: int
    changes: list[dict[str, Any]]
    more: bool
    preview: bool
    url: str


class TagResult(TypedDict):
    """A tag, and the outcome: created or skipped."""

    tag_id: str
    name: str
    outcome: str
    url: str


class VariableResult(TypedDict):
    """A variable, and the outcome: created, updated, unchanged, skipped, deleted or missing."""

    variable_id: str | None
    key: str | None
    outcome: str
    url: str


class CredentialResult(TypedDict):
    """A credential, and the outcome: created, updated or skipped."""

    credential_id: str
    name: str
    type: str
    outcome: str
    url: str


class InvitedUser(TypedDict):
    """A user who was invited, and whether an e-mail was sent."""

    user_id: str | None
    email: str
    email_sent: bool | None


class InviteUsersResult(TypedDict):
    """The invited users, and the e-mail addresses of those who are already active."""

    invited: list[InvitedUser]
    already_active: list[str]
    url: str


class CommunityPackageResult(TypedDict):
    """A package, its versions before and after the task, and the outcome: installed, updated or skipped."""

    name: str
    version: str
    previous_version: str | None
    outcome: str
    url: str
