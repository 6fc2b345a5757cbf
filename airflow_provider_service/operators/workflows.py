"""Operators on workflows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_service.arguments import OPTIONAL_FLAG, as_texts, require, require_flag, require_one_of, required
from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceForbiddenError,
    ServiceInvalidRequestError,
)
from airflow_provider_service.client.lookup import find_workflow, get_project
from airflow_provider_service.links import WORKFLOW_PAGE, ServiceWorkflowLink
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.operators._rendering import VerbatimFieldsMixin, is_path
from airflow_provider_service.operators._workflow import ServiceWorkflowOperator, content, outcome_of, summary
from airflow_provider_service.operators.tags import create_tag
from airflow_provider_service.task_arguments import as_rendered

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service.client.models.workflows import Workflow
    from airflow_provider_service.task_arguments import TaskArguments, Templated


class ServiceActivateWorkflowOperator(ServiceWorkflowOperator):
    """Activate a workflow, so that its triggers run it. Safe to repeat.

    The server makes a webhook live shortly after it has answered, not before.

    :param workflow_id: id of the workflow.
    :param version_id: version to activate; None (the default) for the current draft.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"workflow_id", "name", "active", "archived", "version_id", "url"}``; ``version_id`` is the active one.
    """

    template_fields: Sequence[str] = (*ServiceWorkflowOperator.template_fields, "version_id")

    def __init__(
        self,
        *,
        workflow_id: Templated[str],
        version_id: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(workflow_id=workflow_id, service_conn_id=service_conn_id, **kwargs)
        self.version_id = as_rendered(version_id)
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Activate the workflow and return its state."""

        def activate() -> Workflow:
            return self.hook.workflows.activate(self.workflow_id, version_id=self.version_id)

        return self.change(context, activate, "is active")


class ServiceDeactivateWorkflowOperator(ServiceWorkflowOperator):
    """Deactivate a workflow, so that its triggers no longer start it. Safe to repeat. Active executions keep running.

    :param workflow_id: id of the workflow.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: see :class:`ServiceActivateWorkflowOperator`.
    """

    def __init__(
        self,
        *,
        workflow_id: Templated[str],
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(workflow_id=workflow_id, service_conn_id=service_conn_id, **kwargs)
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Deactivate the workflow and return its state."""
        return self.change(context, lambda: self.hook.workflows.deactivate(self.workflow_id), "is inactive")


class ServiceArchiveWorkflowOperator(ServiceWorkflowOperator):
    """Deactivate and archive a workflow. Safe to repeat.

    :param workflow_id: id of the workflow.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: see :class:`ServiceActivateWorkflowOperator`.
    """

    def __init__(
        self,
        *,
        workflow_id: Templated[str],
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(workflow_id=workflow_id, service_conn_id=service_conn_id, **kwargs)
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Archive the workflow and return its state."""
        return self.change(context, lambda: self.hook.workflows.archive(self.workflow_id), "is archived")


class ServiceUnarchiveWorkflowOperator(ServiceWorkflowOperator):
    """Unarchive a workflow, which is then inactive. Safe to repeat: a workflow that is not archived is not changed.

    :param workflow_id: id of the workflow.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: see :class:`ServiceActivateWorkflowOperator`.
    """

    def __init__(
        self,
        *,
        workflow_id: Templated[str],
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(workflow_id=workflow_id, service_conn_id=service_conn_id, **kwargs)
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Unarchive the workflow and return its state."""
        return self.change(context, self._unarchived, "is not archived")

    def _unarchived(self) -> Workflow:
        try:
            return self.hook.workflows.unarchive(self.workflow_id)
        except ServiceInvalidRequestError:
            workflow = self.hook.workflows.get(self.workflow_id)
            if workflow.is_archived:
                raise
            return workflow


class ServiceTransferWorkflowOperator(ServiceWorkflowOperator):
    """Move a workflow to another project. Safe to repeat: a workflow that is already there is not moved.

    :param workflow_id: id of the workflow.
    :param destination_project_id: id of the project; give either the id or the name.
    :param destination_project_name: exact name of the project.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"workflow_id", "project_id", "moved", "url"}``.
    """

    template_fields: Sequence[str] = (
        *ServiceWorkflowOperator.template_fields,
        "destination_project_id",
        "destination_project_name",
    )

    def __init__(
        self,
        *,
        workflow_id: Templated[str],
        destination_project_id: Templated[str | None] = None,
        destination_project_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(workflow_id=workflow_id, service_conn_id=service_conn_id, **kwargs)
        self.destination_project_id = as_rendered(destination_project_id)
        self.destination_project_name = as_rendered(destination_project_name)
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Move the workflow, unless it is already in the project."""
        project_id = self._destination()
        moved = not self._is_in(project_id)
        url = self.link(context)
        if moved:
            try:
                self.hook.workflows.transfer(self.workflow_id, project_id)
            except ServiceInvalidRequestError:
                # If the first answer was lost, the call was repeated, and the workflow is already there.
                if not self._is_in(project_id):
                    raise
        self.log.info(
            "Workflow %s %s project %s: %s", self.workflow_id, "was moved to" if moved else "is in", project_id, url
        )
        return {"workflow_id": self.workflow_id, "project_id": project_id, "moved": moved, "url": url}

    def _destination(self) -> str:
        require_one_of(
            destination_project_id=self.destination_project_id, destination_project_name=self.destination_project_name
        )
        if self.destination_project_id:
            return self.destination_project_id
        return get_project(self.hook, required("destination_project_name", self.destination_project_name)).id

    def _is_in(self, project_id: str) -> bool:
        workflow = self.hook.workflows.get(self.workflow_id)
        return any(
            place.get("projectId") == project_id and place.get("role", "workflow:owner") == "workflow:owner"
            for place in workflow.shared or ()
        )


class ServiceCreateOrUpdateWorkflowOperator(VerbatimFieldsMixin, ServiceBaseOperator):
    """Deploy a workflow: create it from a definition, or update it if it differs. Safe to repeat.

    An active workflow is compared by the version that runs, any other by its draft; if that already matches the
    definition, nothing is written. Nodes and connections are replaced; the service merges the settings. Read-only keys
    of the definition are left out, and so are its tags and its static data, which is state of the running workflow.

    An active workflow runs the new version at once, for which the key also needs ``workflow:activate``. If the service
    refuses that, it may keep the definition as the draft while the old version runs; every attempt of the task fails.

    :param definition: the workflow as the service exports it (``name``, ``nodes``, ``connections``, ``settings``, ...),
        its JSON text, or the path of a ``.json`` file, absolute or relative to the DAG file. A file that another task
        names must be in the DAG's folder or its ``template_searchpath``. Its expressions ``{{ ... }}`` belong to the
        service and are not rendered; the output of other tasks is resolved.
    :param workflow_id: id of the workflow to update; None (the default) looks up its name among those not archived.
    :param activate: True to activate the workflow, False to deactivate it, None (the default) to leave it as it is.
    :param project_id: project in which to look for the workflow and to create it; if None, it is looked up in all
        projects and created in the personal project of the key's user.
    :param parent_folder_id: folder in which to create the workflow; None (the default) for no folder.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"workflow_id", "name", "active", "archived", "version_id", "url", "outcome"}``; ``version_id`` is the
        active version. The outcome is ``"created"``; ``"updated"`` if the definition was written, or a draft that
        matches it was published; ``"activated"`` or ``"deactivated"`` if only that changed; or ``"unchanged"``.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "definition",
        "workflow_id",
        "project_id",
        "parent_folder_id",
    )
    template_fields_renderers = {"definition": "json"}
    template_ext = (".json",)
    verbatim_fields = ("definition",)
    checks = {"activate": OPTIONAL_FLAG}
    operator_extra_links = (ServiceWorkflowLink(),)

    def __init__(
        self,
        *,
        definition: Templated[Mapping[str, Any] | str],
        workflow_id: Templated[str | None] = None,
        activate: bool | None = None,
        project_id: Templated[str | None] = None,
        parent_folder_id: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.definition = as_rendered(definition)
        self.workflow_id = as_rendered(workflow_id)
        self.activate = activate
        self.project_id = as_rendered(project_id)
        self.parent_folder_id = as_rendered(parent_folder_id)
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Create or update the workflow if necessary, and make sure that the right version runs."""
        from airflow_provider_service.client.definitions import parse_definition, read_definition

        require(
            not is_path(self.definition, self.template_ext),
            f"definition: there is no file {self.definition!r}; a relative path starts at the folder of the DAG file",
        )
        definition = parse_definition(self.definition)
        wanted = read_definition(definition)
        before = self._find(wanted["name"])
        workflow = before or self._create(wanted)
        url = self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, workflow.id)
        self._warn_of_tags(definition, workflow)
        workflow, is_updated = self._deploy(workflow, wanted)
        outcome = outcome_of(before, workflow, is_updated)
        self.log.info(
            "Workflow %s (%s) was %s and is %s: %s",
            workflow.id,
            workflow.name,
            "left unchanged" if outcome == "unchanged" else outcome,
            f"active with version {workflow.active_version_id}" if workflow.active else "inactive",
            url,
        )
        return {**summary(workflow, url), "outcome": outcome}

    def _deploy(self, workflow: Workflow, wanted: Mapping[str, Any]) -> tuple[Workflow, bool]:
        """Write what differs and publish it; also return whether the definition was written or published."""
        from airflow_provider_service.client.definitions import is_as_defined, runs_as_defined

        is_held, runs = is_as_defined(workflow, wanted), runs_as_defined(workflow, wanted)
        if self.activate is False and workflow.active:
            workflow = self.hook.workflows.deactivate(workflow.id)  # first: the new version must not run
        goes_live = workflow.active or bool(self.activate)
        if goes_live and runs:
            if not is_held:
                self.log.info("The draft of workflow %s differs from what runs, and was not changed", workflow.id)
            return workflow, False
        live_version = workflow.active_version_id
        with self._saying_what_runs(workflow):
            if not is_held:
                text = wanted.get("description")
                workflow = self.hook.workflows.update(workflow.id, **content(wanted), description=text)
            # A server without versions names none: the definition that it holds is the one that runs.
            if goes_live and not (workflow.active and workflow.active_version_id in (None, workflow.version_id)):
                workflow = self.hook.workflows.activate(workflow.id)
        is_published = live_version is not None and workflow.active_version_id != live_version
        return workflow, is_published or not is_held

    def _warn_of_tags(self, definition: Mapping[str, Any], workflow: Workflow) -> None:
        from airflow_provider_service.client.definitions import tag_names

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

    def _find(self, name: str) -> Workflow | None:
        found = None if self.workflow_id else find_workflow(self.hook, name, project_id=self.project_id)
        known_id = self.workflow_id or (found.id if found else None)
        # An item of a list lacks the description, so it cannot be compared.
        return self.hook.workflows.get(known_id) if known_id else None

    def _create(self, wanted: Mapping[str, Any]) -> Workflow:
        return self.hook.workflows.create(
            **content(wanted), project_id=self.project_id, parent_folder_id=self.parent_folder_id
        )


class ServiceSetWorkflowTagsOperator(ServiceWorkflowOperator):
    """Give a workflow exactly these tags. Safe to repeat; order and duplicates do not matter.

    :param workflow_id: id of the workflow.
    :param tags: names of the tags; an empty list removes all tags.
    :param create_missing: create tags that do not exist yet (the default); if False, they fail the task.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"workflow_id", "tags", "changed", "url"}``; ``tags`` are the names.
    """

    template_fields: Sequence[str] = (*ServiceWorkflowOperator.template_fields, "tags")
    checks = {"create_missing": require_flag}

    def __init__(
        self,
        *,
        workflow_id: Templated[str],
        tags: Templated[Sequence[str]],
        create_missing: bool = True,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(workflow_id=workflow_id, service_conn_id=service_conn_id, **kwargs)
        self.tags = as_rendered(tags)
        self.create_missing = create_missing
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Set the tags, unless the workflow already has exactly these."""
        names = sorted(set(as_texts("tags", self.tags)))
        carried = {tag.name: tag.id for tag in self.hook.workflows.list_tags(self.workflow_id)}
        url = self.link(context)
        changed = carried.keys() != set(names)
        if changed:
            self.hook.workflows.update_tags(self.workflow_id, self._tag_ids(names, carried))
        self.log.info(
            "Workflow %s %s the tags %s: %s", self.workflow_id, "now has" if changed else "has", names or "(none)", url
        )
        return {"workflow_id": self.workflow_id, "tags": names, "changed": changed, "url": url}

    def _tag_ids(self, names: Sequence[str], carried: Mapping[str, str]) -> list[str]:
        known = dict(carried)
        if not known.keys() >= set(names):
            known.update((tag.name, tag.id) for tag in self.hook.tags.list())
        missing = [name for name in names if name not in known]
        require(
            self.create_missing or not missing,
            f"these tags do not exist: {', '.join(map(repr, missing))}; create_missing=True creates them",
        )
        known.update((name, create_tag(self.hook, name)[0].id) for name in missing)
        return [known[name] for name in names]
