"""Packages: ``/n8n-packages``."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_service.simulator.gateway import Call, Reply, operation
from airflow_provider_service.simulator.packages import archive
from airflow_provider_service.simulator.packages.export import VERSION_POLICIES, export
from airflow_provider_service.simulator.packages.importing import POLICIES, PackageImport
from airflow_provider_service.simulator.validation import ApiError, Array, Body, Boolean, Enum, Text

_IDS = Array(items=Text(min=1), max=300)
_EXPORT = Body(
    optional={
        "workflowIds": _IDS,
        "folderIds": _IDS,
        "projectIds": Array(items=Text(min=1)),
        "includeVariableValues": Boolean(),
        "includeTags": Boolean(),
        "includeArchivedWorkflows": Boolean(),
        "workflowVersionPolicy": Enum(VERSION_POLICIES),
        "missingWorkflowDependencyPolicy": Enum(("fail", "reference-only", "include-in-package")),
        "credentialExportPolicy": Enum(("expression-values-only", "no-values")),
    },
    closed=True,
)
_REQUIRED = ("package", "workflowConflictPolicy")
_FIELDS = {
    "package": Text(),
    "projectId": Text(),
    "folderId": Text(),
    "bindings": Text(),
    **{name: Enum(values) for name, values in POLICIES.items()},
}
_IMPORT = Body(
    required={name: _FIELDS[name] for name in _REQUIRED},
    optional={name: described for name, described in _FIELDS.items() if name not in _REQUIRED},
    multipart=True,
)


@operation(
    "export_n8n_package",
    "POST",
    "/n8n-packages/export",
    scope="project:export,workflow:export",
    family="strict",
    body=_EXPORT,
    any_scope=True,
)
def export_n8n_package(call: Call) -> Reply:
    if not call.allows("project:export" if call.body.get("projectIds") else "workflow:export"):
        raise ApiError(403, "Forbidden")
    package = export(call.state, call.body)
    headers = {
        "Content-Disposition": 'attachment; filename="export.n8np"',
        "X-N8n-Export-Counts": json.dumps(package.counts(), separators=(",", ":")),
        "Access-Control-Expose-Headers": "X-N8n-Export-Counts",
    }
    return Reply(archive.write(package), headers=headers, media_type="application/gzip")


@operation("import_n8n_package", "POST", "/n8n-packages/import", scope="workflow:import", family="strict", body=_IMPORT)
def import_n8n_package(call: Call) -> Any:
    for name in call.body:
        if name not in _FIELDS:
            raise ApiError(400, f'Unexpected form field "{name}"')
    if "package" not in call.files:
        raise ApiError(400, "request/body must have required property 'package'")
    bindings = _bindings(call.body.get("bindings") or "{}")
    package = archive.read(call.files["package"].content)
    project_id = call.body.get("projectId") or call.state.personal_project_id
    if call.state.projects.find(project_id) is None:
        raise ApiError(404, f"Project not found: {project_id}")
    folder_id = call.body.get("folderId") or None
    folder = call.state.folders.find(folder_id) if folder_id else None
    if folder_id and (folder is None or folder["projectId"] != project_id):
        raise ApiError(400, f"Folder not found in target project: {folder_id}")
    running = PackageImport(
        call.state,
        package,
        call.body,
        credential_bindings=bindings,
        project_id=project_id,
        folder_id=folder_id,
    )
    return running.run()


def _bindings(text: str) -> dict[str, str]:
    refused = ApiError(400, 'bindings must be a JSON object, e.g. {"credentials":{"<sourceId>":"<targetId>"}}')
    try:
        given = json.loads(text)
    except ValueError:
        raise refused from None
    credentials = given.get("credentials", {}) if isinstance(given, dict) else None
    if not isinstance(credentials, dict) or not all(isinstance(value, str) for value in credentials.values()):
        raise refused
    return credentials
