"""Export and import of workflow packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from airflow_provider_service.client.models.packages import ImportResult
from airflow_provider_service.client.resources._base import Resource, given, json_text, require


class Packages(Resource):
    """Workflow packages (beta in the service); available on some plans of the server only."""

    def export(
        self,
        *,
        workflow_ids: Sequence[str] | None = None,
        folder_ids: Sequence[str] | None = None,
        project_ids: Sequence[str] | None = None,
        include_variable_values: bool | None = None,
        include_tags: bool | None = None,
        missing_workflow_dependency_policy: Literal["fail", "reference-only", "include-in-package"] | None = None,
        workflow_version_policy: Literal["published-strict", "prefer-published", "ignore-unpublished", "latest"]
        | None = None,
        credential_export_policy: Literal["expression-values-only", "no-values"] | None = None,
        include_archived_workflows: bool | None = None,
        timeout: float | None = None,
    ) -> bytes:
        """Export workflows and folders, or projects: ``POST /n8n-packages/export``. Safe to repeat.

        Scope ``workflow:export``, or ``project:export`` for projects; also ``variable:list`` if the values of
        variables are included and there are any. For policies left out, the server's defaults apply.

        :param workflow_ids: workflows to export.
        :param folder_ids: folders to export, with everything below them.
        :param project_ids: projects to export, instead of workflows and folders.
        :param include_variable_values: include the values of variables that the workflows use, not only their names.
        :param include_tags: include the tags of the workflows.
        :param missing_workflow_dependency_policy: what to do if a workflow that another one calls is not selected:
            ``"fail"``, ``"reference-only"`` or ``"include-in-package"``.
        :param workflow_version_policy: which version to export: the ``"latest"`` draft; the published one, or else the
            draft (``"prefer-published"``); or only published ones, leaving other workflows out
            (``"ignore-unpublished"``) or failing because of them (``"published-strict"``).
        :param credential_export_policy: which fields of credentials to include: ``"expression-values-only"`` or
            ``"no-values"``.
        :param include_archived_workflows: export archived workflows too.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :returns: a gzipped tar archive.
        :raises ServiceInvalidRequestError: a workflow that another one calls is missing from the selection.
        :raises ServiceNotFoundError: one of the ids does not exist.
        """
        body = given(
            workflowIds=workflow_ids,
            folderIds=folder_ids,
            projectIds=project_ids,
            includeVariableValues=include_variable_values,
            includeTags=include_tags,
            missingWorkflowDependencyPolicy=missing_workflow_dependency_policy,
            workflowVersionPolicy=workflow_version_policy,
            credentialExportPolicy=credential_export_policy,
            includeArchivedWorkflows=include_archived_workflows,
        )
        scope = "project:export" if project_ids else "workflow:export"
        return self._call(
            bytes,
            "POST",
            "/n8n-packages/export",
            scope=scope,
            body=body,
            repeatable=True,
            timeout=timeout,
            binary=True,
        )

    def import_(
        self,
        package: bytes,
        workflow_conflict_policy: Literal["new-version", "fail", "skip"],
        *,
        project_id: str | None = None,
        folder_id: str | None = None,
        credential_matching_mode: Literal["id-only", "name-and-type", "type-only"] | None = None,
        credential_missing_mode: Literal["must-preexist", "create-stub"] | None = None,
        bindings: Mapping[str, Any] | None = None,
        workflow_id_policy: Literal["new", "source"] | None = None,
        missing_node_type_mode: Literal["fail", "import-anyway"] | None = None,
        workflow_publishing_policy: Literal["preserve-published-state", "match-source", "publish-all", "unpublish-all"]
        | None = None,
        project_conflict_policy: Literal["merge", "fail", "overwrite"] | None = None,
        folder_conflict_policy: Literal["merge", "fail", "overwrite"] | None = None,
        overwrite_deletion_policy: Literal["archive", "hard-delete"] | None = None,
        data_table_matching_mode: Literal["by-id"] | None = None,
        data_table_missing_mode: Literal["create", "must-preexist", "do-nothing"] | None = None,
        data_table_schema_conflict_policy: Literal["keep-existing", "fail"] | None = None,
        variable_missing_mode: Literal["do-nothing", "must-preexist", "create-stub", "create-with-value"] | None = None,
        variable_conflict_policy: Literal["keep-existing", "overwrite", "fail"] | None = None,
        variable_parent_policy: Literal["project", "global"] | None = None,
        tag_missing_mode: Literal["create", "do-nothing"] | None = None,
        tag_conflict_policy: Literal["skip", "fail", "rename"] | None = None,
        timeout: float | None = None,
    ) -> ImportResult:
        """Import a package: ``POST /n8n-packages/import``. Scope ``workflow:import``.

        Not safe to repeat: it would write another version of each workflow, or another workflow.

        For modes and policies left out, the server's defaults apply.

        :param package: a gzipped tar archive, as :meth:`export` returns it.
        :param workflow_conflict_policy: what to do with a workflow that already exists: write a ``"new-version"``,
            ``"skip"`` it, or ``"fail"``.
        :param project_id: project to import into, by default the personal project of the key's user.
        :param folder_id: folder to import into, by default the project's root.
        :param credential_matching_mode: how a credential of the package is found here: ``"id-only"``,
            ``"name-and-type"`` or ``"type-only"``.
        :param credential_missing_mode: what to do if it is not found: ``"create-stub"``, a credential without values,
            or fail (``"must-preexist"``).
        :param bindings: local ids by kind and id in the package, e.g. ``{"credentials": {"a": "b"}}``.
        :param workflow_id_policy: whether a created workflow keeps its id (``"source"``) or gets a ``"new"`` one.
        :param missing_node_type_mode: what to do if a node's type is not installed: ``"fail"`` or ``"import-anyway"``.
        :param workflow_publishing_policy: which of the workflows are published afterwards: those that were published
            here before (``"preserve-published-state"``) or in the source (``"match-source"``), all (``"publish-all"``)
            or none (``"unpublish-all"``).
        :param project_conflict_policy: what to do if a project exists: ``"merge"``, ``"overwrite"`` or ``"fail"``.
        :param folder_conflict_policy: what to do if a folder exists: ``"merge"``, ``"overwrite"`` or ``"fail"``.
        :param overwrite_deletion_policy: what ``"overwrite"`` does to what the package lacks: ``"archive"`` or
            ``"hard-delete"``.
        :param data_table_matching_mode: how a data table of the package is found here: ``"by-id"``.
        :param data_table_missing_mode: what to do if it is not found: ``"create"`` it, fail (``"must-preexist"``) or
            ``"do-nothing"``.
        :param data_table_schema_conflict_policy: what to do if its columns differ: ``"keep-existing"`` or ``"fail"``.
        :param variable_missing_mode: what to do if a variable does not exist: ``"create-with-value"``,
            ``"create-stub"`` without a value, fail (``"must-preexist"``) or ``"do-nothing"``.
        :param variable_conflict_policy: what to do if its value differs: ``"keep-existing"``, ``"overwrite"`` or
            ``"fail"``.
        :param variable_parent_policy: where variables are looked up and created: ``"project"`` or ``"global"``.
        :param tag_missing_mode: what to do if a tag does not exist: ``"create"`` it or ``"do-nothing"``.
        :param tag_conflict_policy: what to do if a tag conflicts: ``"skip"``, ``"fail"`` or ``"rename"``.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :raises ServiceConflictError: a conflict that a policy does not allow.
        :raises ServiceInvalidRequestError: the bytes are not a package, or something that must exist is missing.
        :raises ServiceNotFoundError: no such project or folder.
        """
        require(isinstance(package, bytes) and len(package) > 0, "package must be the bytes of an archive")
        fields = given(
            workflowConflictPolicy=workflow_conflict_policy,
            projectId=project_id,
            folderId=folder_id,
            credentialMatchingMode=credential_matching_mode,
            credentialMissingMode=credential_missing_mode,
            bindings=json_text(bindings),
            workflowIdPolicy=workflow_id_policy,
            missingNodeTypeMode=missing_node_type_mode,
            workflowPublishingPolicy=workflow_publishing_policy,
            projectConflictPolicy=project_conflict_policy,
            folderConflictPolicy=folder_conflict_policy,
            overwriteDeletionPolicy=overwrite_deletion_policy,
            dataTableMatchingMode=data_table_matching_mode,
            dataTableMissingMode=data_table_missing_mode,
            dataTableSchemaConflictPolicy=data_table_schema_conflict_policy,
            variableMissingMode=variable_missing_mode,
            variableConflictPolicy=variable_conflict_policy,
            variableParentPolicy=variable_parent_policy,
            tagMissingMode=tag_missing_mode,
            tagConflictPolicy=tag_conflict_policy,
        )
        return self._call(
            ImportResult,
            "POST",
            "/n8n-packages/import",
            scope="workflow:import",
            body=fields,
            files={"package": ("package.n8np", package, "application/gzip")},
            repeatable=False,
            timeout=timeout,
        )
