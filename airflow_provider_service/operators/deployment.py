"""Operator that deploys workflows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import as_rendered, require
from airflow_provider_service._core.references import OPTIONAL_WORKFLOW, PARENT_FOLDER, PROJECT
from airflow_provider_service.client._lookup import find_workflow
from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceForbiddenError,
    ServiceInvalidRequestError,
)
from airflow_provider_service.links.service import WORKFLOW_PAGE, ServiceWorkflowLink
from airflow_provider_service.operators._base import ServiceBaseOperator, VerbatimFieldsMixin, is_path
from airflow_provider_service.operators._selection import summary

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.client.models import Workflow
    from airflow_provider_service.operators.results import CreateOrUpdateWorkflowResult

__all__ = ["ServiceCreateOrUpdateWorkflowOperator"]


class ServiceCreateOrUpdateWorkflowOperator(VerbatimFieldsMixin, ServiceBaseOperator):
    """Deploy a workflow: create it from a definition, or update it if it differs. Safe to repeat.

    The task compares the definition with the version that runs, or with the draft if the workflow is not active. If
    they match, it writes nothing. It replaces nodes and connections; the service merges the settings. It ignores
    read-only keys of the definition, its tags, and its static data, which is the state of the running workflow.

    An active workflow runs the new version at once, for which the key also needs ``workflow:activate``. If the service
    refuses that, it may keep the definition as the draft while the old version runs; every attempt of the task fails.

    The service allows several workflows with the same name, so two tasks that create one at the same time create two.
    Let only one run of the DAG be active (``max_active_runs=1``).

    :param definition: the workflow as the service exports it (``name``, ``nodes``, ``connections``, ``settings``, ...),
        its JSON text, or the path of a ``.json`` file, absolute or relative to the DAG file. A file that another task
        names must be in the DAG's folder or its ``template_searchpath``. Its expressions ``{{ ... }}`` belong to the
        service and are not rendered; the output of other tasks is resolved.
    :param workflow_id: id of the workflow to update; without id and name, the definition's name is looked up among the
        workflows that are not archived.
    :param workflow_name: exact current name of the workflow to update, if the definition renames it.
    :param activate: True to activate the workflow, False to deactivate it, None (the default) to leave it as it is.
    :param project_id: id of the project in which to look for the workflow and to create it; if None, it is looked up in
        all projects and created in the personal project of the key's user.
    :param project_name: exact name of that project, instead of its id.
    :param parent_folder_id: id of the folder in which to create the workflow; None (the default) for no folder.
    :param parent_folder_name: exact name of that folder, instead of its id; for a nested folder, a path such as
        ``"Reports/Daily"``. Requires ``project_id`` or ``project_name``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`CreateOrUpdateWorkflowResult`; ``version_id`` is the active version. The outcome is
        ``"created"``; ``"updated"`` if the definition was written, or a draft that matches it was published;
        ``"activated"`` or ``"deactivated"`` if only that changed; or ``"unchanged"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "definition",
        *OPTIONAL_WORKFLOW.fields,
        *PROJECT.fields,
        *PARENT_FOLDER.fields,
    )
    references = (OPTIONAL_WORKFLOW, PROJECT, PARENT_FOLDER)
    template_fields_renderers = {"definition": "json"}
    template_ext = (".json",)
    verbatim_fields = ("definition",)
    operator_extra_links = (ServiceWorkflowLink(),)

    def __init__(
        self,
        *,
        definition: Templated[Mapping[str, Any] | str],
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        activate: bool | None = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        parent_folder_id: Templated[str | None] = None,
        parent_folder_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.definition = as_rendered(definition)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.activate = activate
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.parent_folder_id = as_rendered(parent_folder_id)
        self.parent_folder_name = as_rendered(parent_folder_name)
        self.check_arguments()

    def perform(self, context: Context) -> CreateOrUpdateWorkflowResult:
        from airflow_provider_service.client._definitions import parse_definition, read_definition

        require(
            not is_path(self.definition, self.template_ext),
            f"definition: there is no file {self.definition!r}; a relative path starts at the folder of the DAG file",
        )
        definition = parse_definition(self.definition)
        desired = read_definition(definition)
        project_id = PROJECT.id_in(self, self.hook)
        before = self._find(desired["name"], project_id)
        workflow = before or self._create(desired, project_id)
        url = self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, workflow.id)
        self._warn_of_tags(definition, workflow)
        workflow, is_updated = self._deploy(workflow, desired)
        if before is None:
            outcome = "created"
        elif is_updated:
            outcome = "updated"
        elif before.active != workflow.active:
            outcome = "activated" if workflow.active else "deactivated"
        else:
            outcome = "unchanged"
        self.log.info(
            "Workflow %s (%s) was %s and is %s: %s",
            workflow.id,
            workflow.name,
            "left unchanged" if outcome == "unchanged" else outcome,
            f"active with version {workflow.active_version_id}" if workflow.active else "inactive",
            url,
        )
        return {**summary(workflow, url), "outcome": outcome}

    def _deploy(self, workflow: Workflow, desired: Mapping[str, Any]) -> tuple[Workflow, bool]:
        """Write and publish what differs; return the workflow, and whether its definition was written or published."""
        from airflow_provider_service.client._definitions import content, is_as_defined, runs_as_defined, with_known_ids
        from airflow_provider_service.client._webhook_conflicts import naming_the_holder

        is_held, runs = is_as_defined(workflow, desired), runs_as_defined(workflow, desired)
        if self.activate is False and workflow.active:
            workflow = self.hook.workflows.deactivate(workflow.id)  # first: the new version must not run
        goes_live = workflow.active or bool(self.activate)
        if goes_live and runs:
            if not is_held:
                self.log.info("The draft of workflow %s differs from what runs, and was not changed", workflow.id)
            return workflow, False
        live_version = workflow.active_version_id
        with self._saying_what_runs(workflow), naming_the_holder(self.hook, workflow.id, nodes=desired["nodes"]):
            if not is_held:
                text = desired.get("description")
                wanted = {**desired, "nodes": with_known_ids(desired["nodes"], workflow)}
                workflow = self.hook.workflows.update(workflow.id, **content(wanted), description=text)
            # A server without versions reports none; it runs the definition that it holds.
            if goes_live and not (workflow.active and workflow.active_version_id in (None, workflow.version_id)):
                workflow = self.hook.workflows.activate(workflow.id)
        is_published = live_version is not None and workflow.active_version_id != live_version
        return workflow, is_published or not is_held

    def _warn_of_tags(self, definition: Mapping[str, Any], workflow: Workflow) -> None:
        from airflow_provider_service.client._definitions import tag_names

        missing = tag_names(definition) - {tag.name for tag in workflow.tags or ()}
        if missing:
            self.log.warning(
                "The definition's tags %s were not set, because the service accepts no tags with a definition; "
                "set them with ServiceSetWorkflowTagsOperator",
                ", ".join(map(repr, sorted(missing))),
            )

    @contextmanager
    def _saying_what_runs(self, workflow: Workflow) -> Iterator[None]:
        try:
            yield
        except (ServiceInvalidRequestError, ServiceForbiddenError, ServiceConflictError):
            if workflow.active:
                self.log.error(
                    "Workflow %s still runs version %s; the service may have kept the definition as its draft",
                    workflow.id,
                    workflow.active_version_id,
                )
            raise

    def _find(self, name: str, project_id: str | None) -> Workflow | None:
        workflow_id = self.workflow_id or self._id_by_name(name, project_id)
        # Lists omit the description, so their items cannot be compared.
        return self.hook.workflows.get(workflow_id) if workflow_id else None

    def _id_by_name(self, defined_name: str, project_id: str | None) -> str | None:
        # After an earlier attempt has renamed the workflow, a repeat finds it by its new name.
        for name in [defined_name] if self.workflow_name is None else [self.workflow_name, defined_name]:
            workflow = find_workflow(self.hook, name, project_id=project_id)
            if workflow is not None:
                return workflow.id
        return OPTIONAL_WORKFLOW.id_in(self, self.hook)

    def _create(self, desired: Mapping[str, Any], project_id: str | None) -> Workflow:
        from airflow_provider_service.client._definitions import content

        folder_id = PARENT_FOLDER.id_in(self, self.hook)
        return self.hook.workflows.create(**content(desired), project_id=project_id, parent_folder_id=folder_id)
