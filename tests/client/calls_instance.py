"""Calls about deployment, packages, insight and evaluation."""

from __future__ import annotations

import re

from airflow_provider_service.client import errors

from . import samples
from .calling import (
    PACKAGE,
    PACKAGE_,
    TEXT_WHEN,
    TEXT_WHEN_ENCODED,
    V_,
    W_,
    WHEN,
    WHEN_ENCODED,
    Call,
    Pages,
    V,
    W,
    conflict,
    invalid,
    not_found,
)

NOT_INSTALLED = "This package is not installed - you must install it first"
NOT_CONNECTED = "Source Control is not connected to a repository"

IMPORT_FIELDS = {
    "projectId": "p1",
    "folderId": "f1",
    "credentialMatchingMode": "name-and-type",
    "credentialMissingMode": "create-stub",
    "workflowIdPolicy": "new",
    "missingNodeTypeMode": "fail",
    "workflowPublishingPolicy": "publish-all",
    "projectConflictPolicy": "merge",
    "folderConflictPolicy": "merge",
    "overwriteDeletionPolicy": "archive",
    "dataTableMatchingMode": "by-id",
    "dataTableMissingMode": "create",
    "dataTableSchemaConflictPolicy": "fail",
    "variableMissingMode": "create-stub",
    "variableConflictPolicy": "overwrite",
    "variableParentPolicy": "global",
    "tagMissingMode": "create",
    "tagConflictPolicy": "rename",
}


def _snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


DEPLOYMENT = [
    Call(
        "get_source_control_status",
        "source_control.get_status",
        ("push",),
        "GET /source-control/status?direction=push",
        {"data": [samples.FILE]},
        invalid(NOT_CONNECTED),
    ),
    Call(
        "push_source_control",
        "source_control.push",
        ("Release", [{"id": "w", "type": "workflow"}]),
        "POST /source-control/push",
        {"data": [samples.FILE]},
        conflict("Unresolved conflicts"),
        {"force": True, "timeout": 60.0},
        {"commitMessage": "Release", "fileNames": [{"id": "w", "type": "workflow"}], "force": True},
    ),
    Call(
        "pull_source_control",
        "source_control.pull",
        (),
        "POST /source-control/pull",
        [samples.FILE],
        invalid(NOT_CONNECTED),
        {"force": False, "auto_publish": "published", "timeout": 60.0},
        {"force": False, "autoPublish": "published"},
    ),
    Call(
        "list_community_packages",
        "community_packages.list",
        (),
        "GET /community-packages",
        [samples.COMMUNITY_PACKAGE],
        invalid("no"),
    ),
    Call(
        "install_community_package",
        "community_packages.install",
        (PACKAGE,),
        "POST /community-packages",
        samples.COMMUNITY_PACKAGE,
        invalid(f"Package {PACKAGE} is not vetted for installation"),
        {"version": "1.2.3", "verify": True, "timeout": 60.0},
        {"name": PACKAGE, "version": "1.2.3", "verify": True},
    ),
    Call(
        "update_community_package",
        "community_packages.update",
        (PACKAGE,),
        f"PATCH /community-packages/{PACKAGE_}",
        samples.COMMUNITY_PACKAGE,
        not_found(NOT_INSTALLED),
        {"version": "1.3.0", "verify": False, "timeout": 60.0},
        {"version": "1.3.0", "verify": False},
    ),
    Call(
        "uninstall_community_package",
        "community_packages.uninstall",
        (PACKAGE,),
        f"DELETE /community-packages/{PACKAGE_}",
        None,
        not_found(NOT_INSTALLED),
    ),
    Call(
        "export_n8n_package",
        "packages.export",
        (),
        "POST /n8n-packages/export",
        samples.ARCHIVE,
        not_found("Workflow not found"),
        {
            "workflow_ids": ["w"],
            "folder_ids": ["f"],
            "project_ids": ["p"],
            "include_variable_values": False,
            "include_tags": True,
            "missing_workflow_dependency_policy": "fail",
            "workflow_version_policy": "latest",
            "credential_export_policy": "no-values",
            "include_archived_workflows": True,
            "timeout": 60.0,
        },
        {
            "workflowIds": ["w"],
            "folderIds": ["f"],
            "projectIds": ["p"],
            "includeVariableValues": False,
            "includeTags": True,
            "missingWorkflowDependencyPolicy": "fail",
            "workflowVersionPolicy": "latest",
            "credentialExportPolicy": "no-values",
            "includeArchivedWorkflows": True,
        },
    ),
    Call(
        "import_n8n_package",
        "packages.import_",
        (samples.ARCHIVE, "new-version"),
        "POST /n8n-packages/import",
        samples.IMPORT_RESULT,
        conflict("Import blocked"),
        {
            **{_snake(name): value for name, value in IMPORT_FIELDS.items()},
            "bindings": {"credentials": {"a": "é"}},
            "timeout": 60.0,
        },
        {
            **IMPORT_FIELDS,
            "package": samples.ARCHIVE,
            "workflowConflictPolicy": "new-version",
            "bindings": '{"credentials":{"a":"é"}}',
        },
    ),
]

INSIGHT = [
    Call(
        "get_insights_summary",
        "insights.get_summary",
        (),
        f"GET /insights/summary?startDate={WHEN_ENCODED}&endDate={TEXT_WHEN_ENCODED}&projectId=p%2C1",
        samples.INSIGHTS,
        (
            403,
            "The selected date range exceeds the maximum history allowed by your license",
            errors.ServiceNotLicensedError,
        ),
        {"start_date": WHEN, "end_date": TEXT_WHEN, "project_id": "p,1"},
    ),
    Call(
        "generate_audit",
        "audit.generate",
        (),
        "POST /audit",
        samples.AUDIT,
        (500, "Internal server error", errors.ServiceServerError),
        {"categories": ["nodes"], "days_abandoned_workflow": 30, "timeout": 60.0},
        {"additionalOptions": {"categories": ["nodes"], "daysAbandonedWorkflow": 30}},
    ),
    Call(
        "discover",
        "discovery.discover",
        (),
        "GET /discover?include=schemas&resource=tags&operation=list",
        samples.CAPABILITIES,
        (401, "unauthorized", errors.ServiceUnauthorizedError),
        {"include": "schemas", "resource": "tags", "operation": "list"},
    ),
    Call(
        "list_test_runs",
        "test_runs.list",
        (W,),
        f"GET /workflows/{W_}/test-runs?status=error&limit=2",
        Pages(samples.TEST_RUN),
        not_found(),
        {"status": "error", "limit": 2},
    ),
    Call(
        "create_test_run",
        "test_runs.create",
        (W,),
        f"POST /workflows/{W_}/test-runs",
        samples.STARTED_TEST_RUN,
        (403, "Evaluations are not available on your plan", errors.ServiceNotLicensedError),
    ),
    Call("get_test_run", "test_runs.get", (W, V), f"GET /workflows/{W_}/test-runs/{V_}", samples.TEST_RUN, not_found()),
    Call(
        "cancel_test_run",
        "test_runs.cancel",
        (W, V),
        f"POST /workflows/{W_}/test-runs/{V_}/cancel",
        samples.CANCELLED_TEST_RUN,
        conflict("The test run has ended"),
    ),
    Call(
        "list_test_cases",
        "test_runs.list_cases",
        (W, V),
        f"GET /workflows/{W_}/test-runs/{V_}/test-cases?limit=2",
        Pages(samples.TEST_CASE),
        not_found(),
        {"limit": 2},
    ),
]
