"""Operators for instances as code: they export workflows to files, deploy files, and promote workflows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service._core.arguments import as_rendered
from airflow_provider_service._core.references import (
    MAPPING,
    OPTIONAL_DESTINATION_PROJECT,
    OPTIONAL_TAG,
    PARENT_FOLDER,
    PROJECT,
)
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import WORKFLOWS_PAGE
from airflow_provider_service.operators._base import RollingBackMixin, ServiceBaseOperator
from airflow_provider_service.operators._selection import DefinitionsMixin, from_dag_folder

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.instances.mapping import InstanceMapping
    from airflow_provider_service._core.instances.source import Source
    from airflow_provider_service.operators.results import DeployResult, ExportResult

__all__ = ["ServiceDeployWorkflowsOperator", "ServiceExportWorkflowsOperator", "ServicePromoteWorkflowsOperator"]


class ServiceExportWorkflowsOperator(ServiceBaseOperator):
    """Write each workflow to a file of its own, which changes only if the workflow does. Safe to repeat.

    A file holds the active version of an active workflow, and the draft of any other. It has sorted keys, no values
    that change by themselves, such as dates, and names instead of ids for other objects of the instance, such as
    credentials. It keeps the id of the workflow, so that a deployment finds the workflow after it was renamed.
    ``ServiceDeployWorkflowsOperator`` deploys such files to the same instance, where they change nothing, or to another
    one. Archived workflows are left out.

    :param path: path of the folder, or an address of object storage such as ``s3://my_conn@bucket/workflows``. The
        folder is created if it does not exist.
    :param workflow_names: exact names of the workflows; None (the default) for all.
    :param tag_id: id of a tag, to export only workflows that have it; None (the default) for all workflows. Those in
        ``workflow_names`` must have it.
    :param tag_name: exact name of that tag, instead of its id.
    :param project_id: id of a project, to export only its workflows; None (the default) for all projects.
    :param project_name: exact name of that project, instead of its id.
    :param code_files: True to write code of several lines in nodes to separate files, in a folder beside the workflow's
        file; False by default.
    :param pinned_data: True to include the pinned data of nodes, which is often real data; False by default.
    :param remove_stale: True to remove the exported files, in this folder, of workflows that were renamed, archived or
        deleted, or are not selected; False by default, which keeps them, and warns of those under a former name.
    :param allow_empty: True to remove files even if the service returns no workflow to export; with False, the default,
        the task then fails, and all files stay.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`ExportResult`: the number of workflows, the address of each file by the id of its workflow, and
        the workflows that were left out, with a warning, because their ids could lead to other addresses or folders. If
        ``workflow_names`` names one of these, nothing is written. ``removed`` lists the files that were removed.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "path",
        "workflow_names",
        *OPTIONAL_TAG.fields,
        *PROJECT.fields,
    )
    references = (OPTIONAL_TAG, PROJECT)

    def __init__(
        self,
        *,
        path: Templated[str],
        workflow_names: Templated[Sequence[str] | None] = None,
        tag_id: Templated[str | None] = None,
        tag_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        code_files: bool = False,
        pinned_data: bool = False,
        remove_stale: bool = False,
        allow_empty: bool = False,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.path = as_rendered(path)
        self.workflow_names = as_rendered(workflow_names)
        self.tag_id = as_rendered(tag_id)
        self.tag_name = as_rendered(tag_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.code_files = code_files
        self.pinned_data = pinned_data
        self.remove_stale = remove_stale
        self.allow_empty = allow_empty
        self.check_arguments()

    def perform(self, context: Context) -> ExportResult:
        from airflow_provider_service._core.instances.export import export_folder

        self.link_page(context, WORKFLOWS_PAGE)
        done = cast("ExportResult", export_folder(self, self.hook))
        self.log.info(
            "Workflows written to %s: %d; files removed: %d", self.path, done["workflows"], len(done["removed"])
        )
        return done


class _DeployingOperator(RollingBackMixin, ServiceBaseOperator):
    deployment_name: str | None
    archive_missing: bool
    allow_empty: bool
    activate: bool | None
    preview: bool
    report_path: str | None
    mapping: Any
    mapping_path: str | None

    @abstractmethod
    def sources(self) -> list[Source]:
        """Read the definitions."""

    @abstractmethod
    def target_project_id(self, mapping: InstanceMapping) -> str | None:
        """Return the id of the project to deploy to, if any."""

    def target_folder_id(self) -> str | None:
        """Return the id of the folder in which to create workflows, if any."""
        return None

    def perform(self, context: Context) -> DeployResult:
        from airflow_provider_service._core.instances.apply import deployed, plan_report
        from airflow_provider_service._core.instances.deployment_record import require_deployment_name
        from airflow_provider_service._core.instances.mapping import InstanceMapping
        from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
        from airflow_provider_service._core.reports.report import require_report_place, write_report

        require_report_place(self.report_path)
        mapping = InstanceMapping.read(self.mapping, from_dag_folder(self.mapping_path, self))
        url = self.link_page(context, WORKFLOWS_PAGE)
        target = DeploymentTarget(
            self.hook,
            self.target_project_id(mapping),
            self.target_folder_id(),
            deployment_name=require_deployment_name(self.deployment_name, archive_missing=self.archive_missing),
            archive_missing=self.archive_missing,
            mapping=mapping,
        )
        plan = make_plan(self.sources(), target, activate=self.activate)
        for line in plan.lines():
            self.log.info("%s", line)
        made_at = clock().utcnow()
        write_report(self.report_path, lambda: plan_report(plan, made_at=made_at, url=url))
        return cast("DeployResult", deployed(plan, target, preview=self.preview))


class ServiceDeployWorkflowsOperator(DefinitionsMixin, _DeployingOperator):
    """Bring the workflows of an instance in line with definitions: all of them, or none. Safe to repeat.

    First, the task makes a plan, and logs what changes in each node. It compares each definition with the workflow that
    has the same id, or else the same name: with the version that runs if the workflow is active, otherwise with its
    draft. A workflow that is found by its id gets the name in the definition. If the instance already matches the
    definitions, nothing is written. Credentials, workflows, data tables and folders that a definition names must exist
    in the instance under the same name, or be deployed with it. If any are missing, the error lists all of them, and
    nothing is written. Missing tags are created.

    Then the task writes all drafts, and publishes the workflows, beginning with those that others call. If anything
    fails, it gives every workflow its former version, draft and tags, deletes what it has created, and fails. Airflow
    retries it only if the failure may be temporary. Workflows without a definition are not changed, unless an earlier
    deployment with the same ``deployment_name`` deployed them and ``archive_missing`` is True.

    :param source: a folder (such as a git checkout), a ``.json`` file, or an address of object storage such as
        ``s3://my_conn@bucket/workflows``; a definition as a mapping or as JSON text; or a list of these. All files
        ``*.json`` below a folder are read, except in hidden folders. A relative path starts at the folder of the DAG
        file. Expressions ``{{ ... }}`` in definitions are not rendered; templates in paths are.
    :param activate: True to activate all workflows, False to deactivate them; None (the default) to do what the key
        ``active`` of each definition says, and to leave the workflow as it is if the definition lacks this key.
    :param project_id: id of the project in which to look up workflows and what they refer to, and in which to create
        new workflows; if None, they are looked up in all projects, and created in the personal project of the key's
        user.
    :param project_name: exact name of that project, instead of its id.
    :param parent_folder_id: id of the folder in which to create new workflows; None (the default) for no folder.
    :param parent_folder_name: exact name of that folder, instead of its id; for a nested folder, a path such as
        ``"Reports/Daily"``. Requires ``project_id`` or ``project_name``.
    :param deployment_name: name under which to record the ids of the deployed workflows, in an inactive workflow of the
        instance; give each folder a name of its own. None (the default) for no record.
    :param archive_missing: True to archive recorded workflows that no longer have a definition; False by default.
        Requires ``deployment_name``. If other workflows start one of them, the deployment is refused.
    :param allow_empty: True to accept a source without a definition, with which ``archive_missing`` archives all
        recorded workflows; with False, the default, the task then fails.
    :param mapping: names that differ between the definitions and the instance, and values of nodes, such as
        ``{"credentials": {"Mail (test)": "Mail"}}``, likewise ``data_tables``, ``projects``, ``tags``, ``workflows``
        and ``values``; or the same as text in YAML or JSON. None (the default) if all names are the same.
    :param mapping_path: path or address of a YAML or JSON file with the mapping, instead of ``mapping``; templates in
        it are not rendered. A relative path starts at the folder of the DAG file.
    :param preview: True to stop after the plan; False by default.
    :param report_path: file for the plan, on a disk or in object storage; its suffix chooses the format: ``.md``,
        ``.html`` or ``.json``. It is written before anything is changed. None (the default) for no file.
    :param from_file_names: True to give a definition without a name the name of its file; with False, the default, the
        task then fails.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`DeployResult`. The outcome is ``"deployed"``, ``"unchanged"`` or, with ``preview``,
        ``"planned"``; ``workflow_ids`` holds ids by name; and each other key lists the names of the workflows to which
        it applies.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    :raises ServiceDeploymentError: the deployment failed and was rolled back; a retry may reach the goal.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "source",
        *PROJECT.fields,
        *PARENT_FOLDER.fields,
        "deployment_name",
        *MAPPING.fields,
        "report_path",
    )
    references = (PROJECT, PARENT_FOLDER, MAPPING)

    def __init__(
        self,
        *,
        source: Templated[Any],
        activate: bool | None = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        parent_folder_id: Templated[str | None] = None,
        parent_folder_name: Templated[str | None] = None,
        deployment_name: Templated[str | None] = None,
        archive_missing: bool = False,
        allow_empty: bool = False,
        mapping: Templated[Mapping[str, Any] | str | None] = None,
        mapping_path: Templated[str | None] = None,
        preview: bool = False,
        report_path: Templated[str | None] = None,
        from_file_names: bool = False,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.source = as_rendered(source)
        self.activate = activate
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.parent_folder_id = as_rendered(parent_folder_id)
        self.parent_folder_name = as_rendered(parent_folder_name)
        self.deployment_name = as_rendered(deployment_name)
        self.archive_missing = archive_missing
        self.allow_empty = allow_empty
        self.mapping = as_rendered(mapping)
        self.mapping_path = as_rendered(mapping_path)
        self.preview = preview
        self.report_path = as_rendered(report_path)
        self.from_file_names = from_file_names
        self.check_arguments()

    def sources(self) -> list[Source]:
        from airflow_provider_service._core.instances.source import read_source

        return read_source(self.located(), allow_empty=self.allow_empty, from_file_names=self.from_file_names)

    def target_project_id(self, mapping: InstanceMapping) -> str | None:
        return PROJECT.id_in(self, self.hook)

    def target_folder_id(self) -> str | None:
        return PARENT_FOLDER.id_in(self, self.hook)


class ServicePromoteWorkflowsOperator(_DeployingOperator):
    """Deploy workflows of one instance to another: all of them, or none. Safe to repeat.

    The task reads the version that runs on the source, or the draft of a workflow that is not active there. It deploys
    these to the instance of ``service_conn_id`` exactly as ``ServiceDeployWorkflowsOperator`` deploys a folder: it
    makes a plan first, looks up by name whatever the workflows refer to, and rolls everything back if anything fails.
    Give ``workflow_names``, a tag, a project, or several of these. A workflow that is no longer selected stays in that
    instance, unless an earlier promotion with the same ``deployment_name`` deployed it and ``archive_missing`` is True.

    :param source_conn_id: Airflow connection of type ``n8n`` or ``service`` of the instance to read from.
    :param workflow_names: exact names of the workflows.
    :param tag_id: id of a tag on the source, to promote only workflows that have it. Those in ``workflow_names`` must
        have it.
    :param tag_name: exact name of that tag, instead of its id.
    :param project_id: id of a project of the source, to promote only its workflows.
    :param project_name: exact name of that project, instead of its id.
    :param destination_project_id: id of the project to deploy to; if None, workflows are looked up in all projects, and
        created in the personal project of the key's user, unless ``mapping`` maps the project of the source.
    :param destination_project_name: exact name of that project, instead of its id.
    :param deployment_name: name under which to record the ids of the deployed workflows, in an inactive workflow of the
        target instance; give each promotion a name of its own. None (the default) for no record.
    :param archive_missing: True to archive recorded workflows that are no longer selected, for example because they
        were deleted, archived or renamed on the source; False by default. Requires ``deployment_name``. If other
        workflows start one of them, the promotion is refused.
    :param allow_empty: True to accept that no workflow is selected, with which ``archive_missing`` archives all
        recorded workflows; with False, the default, the task then fails.
    :param mapping: names that differ between the two instances, and values of nodes, such as
        ``{"credentials": {"Mail (test)": "Mail"}}``, likewise ``data_tables``, ``projects``, ``tags``, ``workflows``
        and ``values``; or the same as text in YAML or JSON. None (the default) if all names are the same.
    :param mapping_path: path or address of a YAML or JSON file with the mapping, instead of ``mapping``; templates in
        it are not rendered. A relative path starts at the folder of the DAG file.
    :param activate: True to activate all workflows, False to deactivate them; None (the default) to give each of them
        the state that it has on the source.
    :param preview: True to stop after the plan; False by default.
    :param report_path: file for the plan, on a disk or in object storage; its suffix chooses the format: ``.md``,
        ``.html`` or ``.json``. It is written before anything is changed. None (the default) for no file.
    :param service_conn_id: Airflow connection of the instance to deploy to; ``service_default`` by default.
    :returns: a :class:`DeployResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    :raises ServiceDeploymentError: the deployment failed and was rolled back; a retry may reach the goal.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "source_conn_id",
        "workflow_names",
        *OPTIONAL_TAG.fields,
        *PROJECT.fields,
        *OPTIONAL_DESTINATION_PROJECT.fields,
        "deployment_name",
        *MAPPING.fields,
        "report_path",
    )
    references = (OPTIONAL_TAG, PROJECT, OPTIONAL_DESTINATION_PROJECT, MAPPING)

    def __init__(
        self,
        *,
        source_conn_id: Templated[str],
        workflow_names: Templated[Sequence[str] | None] = None,
        tag_id: Templated[str | None] = None,
        tag_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        destination_project_id: Templated[str | None] = None,
        destination_project_name: Templated[str | None] = None,
        deployment_name: Templated[str | None] = None,
        archive_missing: bool = False,
        allow_empty: bool = False,
        mapping: Templated[Mapping[str, Any] | str | None] = None,
        mapping_path: Templated[str | None] = None,
        activate: bool | None = None,
        preview: bool = False,
        report_path: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.source_conn_id = as_rendered(source_conn_id)
        self.workflow_names = as_rendered(workflow_names)
        self.tag_id = as_rendered(tag_id)
        self.tag_name = as_rendered(tag_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.destination_project_id = as_rendered(destination_project_id)
        self.destination_project_name = as_rendered(destination_project_name)
        self.deployment_name = as_rendered(deployment_name)
        self.archive_missing = archive_missing
        self.allow_empty = allow_empty
        self.mapping = as_rendered(mapping)
        self.mapping_path = as_rendered(mapping_path)
        self.activate = activate
        self.preview = preview
        self.report_path = as_rendered(report_path)
        self.check_arguments()

    def sources(self) -> list[Source]:
        from airflow_provider_service._core.instances.export import to_promote
        from airflow_provider_service.hooks.service import ServiceHook

        with ServiceHook(self.source_conn_id) as source:
            return to_promote(self, source)

    def target_project_id(self, mapping: InstanceMapping) -> str | None:
        """Return the project that the arguments name, or else the one that the source's project is mapped to."""
        from airflow_provider_service._core.instances.export import destination_project_id
        from airflow_provider_service.hooks.service import ServiceHook

        with ServiceHook(self.source_conn_id) as source:
            return destination_project_id(self, source, self.hook, mapping.projects)
