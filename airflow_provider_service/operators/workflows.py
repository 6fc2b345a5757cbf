"""Operators for workflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from airflow_provider_service._core.arguments import as_rendered, as_texts, require
from airflow_provider_service._core.references import (
    DESTINATION_PROJECT,
    PROJECT,
    TAGS,
    WORKFLOW_TO_ARCHIVE,
    WORKFLOW_TO_UNARCHIVE,
)
from airflow_provider_service.client._lookup import create_tag, find_workflow
from airflow_provider_service.client.errors import ServiceInvalidRequestError
from airflow_provider_service.operators._selection import ServiceWorkflowOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.client.models import Tag, Workflow
    from airflow_provider_service.operators.results import TransferWorkflowResult, WorkflowResult, WorkflowTagsResult

__all__ = [
    "ServiceActivateWorkflowOperator",
    "ServiceArchiveWorkflowOperator",
    "ServiceDeactivateWorkflowOperator",
    "ServiceSetWorkflowTagsOperator",
    "ServiceTransferWorkflowOperator",
    "ServiceUnarchiveWorkflowOperator",
]

# What becomes of the current tags of a workflow, with those that the task lists.
_TAG_MODES: Mapping[str, Callable[[set[str], set[str]], set[str]]] = {
    "set": lambda _, listed: listed,
    "add": set.union,
    "remove": set.difference,
}


class ServiceActivateWorkflowOperator(ServiceWorkflowOperator):
    """Activate a workflow, so that its triggers run it. Safe to repeat.

    The workflow's webhooks go live shortly after the server has answered.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param version_id: version to activate; None (the default) for the current draft.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`WorkflowResult`; ``version_id`` is the active one.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceWorkflowOperator.template_fields, "version_id")

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        version_id: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.version_id = as_rendered(version_id)
        self.check_arguments()

    def perform(self, context: Context) -> WorkflowResult:
        from airflow_provider_service.client._webhook_conflicts import naming_the_holder

        def activate() -> Workflow:
            with naming_the_holder(self.hook, self.target_id, version_id=self.version_id):
                return self.hook.workflows.activate(self.target_id, version_id=self.version_id)

        return self.change(context, activate, "is active")


class _PlainWorkflowOperator(ServiceWorkflowOperator):
    """Base class for operators that take no arguments besides the workflow."""

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.check_arguments()


class ServiceDeactivateWorkflowOperator(_PlainWorkflowOperator):
    """Deactivate a workflow, so that its triggers no longer start it. Safe to repeat. Active executions keep running.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`WorkflowResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    def perform(self, context: Context) -> WorkflowResult:
        return self.change(context, lambda: self.hook.workflows.deactivate(self.target_id), "is inactive")


class ServiceArchiveWorkflowOperator(_PlainWorkflowOperator):
    """Deactivate and archive a workflow. Safe to repeat.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow; if all workflows with this name are archived, the one that was
        changed last is meant, so that a repeat finds it again.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`WorkflowResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    reference = WORKFLOW_TO_ARCHIVE

    def perform(self, context: Context) -> WorkflowResult:
        return self.change(context, lambda: self.hook.workflows.archive(self.target_id), "is archived")


class ServiceUnarchiveWorkflowOperator(_PlainWorkflowOperator):
    """Unarchive a workflow, which is then inactive. Safe to repeat: a workflow that is not archived is not changed.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow, archived or not.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`WorkflowResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    reference = WORKFLOW_TO_UNARCHIVE

    def perform(self, context: Context) -> WorkflowResult:
        return self.change(context, self._unarchived, "is not archived")

    def _unarchived(self) -> Workflow:
        try:
            return self.hook.workflows.unarchive(self.target_id)
        except ServiceInvalidRequestError:
            workflow = self.hook.workflows.get(self.target_id)
            if workflow.is_archived:
                raise
            return workflow


class ServiceTransferWorkflowOperator(ServiceWorkflowOperator):
    """Move a workflow to another project. Safe to repeat: a workflow that is already there is not moved.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param destination_project_id: id of the project to move it to; give either the id or the name.
    :param destination_project_name: exact name of that project.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`TransferWorkflowResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceWorkflowOperator.template_fields, *DESTINATION_PROJECT.fields)
    references = (*ServiceWorkflowOperator.references, DESTINATION_PROJECT)

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        destination_project_id: Templated[str | None] = None,
        destination_project_name: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.destination_project_id = as_rendered(destination_project_id)
        self.destination_project_name = as_rendered(destination_project_name)
        self.check_arguments()

    def perform(self, context: Context) -> TransferWorkflowResult:
        project_id = self._destination
        moved = not self._is_in(project_id)
        url = self.link(context)
        if moved:
            try:
                self.hook.workflows.transfer(self.target_id, project_id)
            except ServiceInvalidRequestError:
                # If the first answer was lost and the call was repeated, the workflow is already there.
                if not self._is_in(project_id):
                    raise
        self.log.info(
            "Workflow %s %s project %s: %s", self.target_id, "was moved to" if moved else "is in", project_id, url
        )
        return {"workflow_id": self.target_id, "project_id": project_id, "moved": moved, "url": url}

    @cached_property
    def target_id(self) -> str:
        """Id of the workflow. By name, a repeat also finds it in the project to which it was moved before."""
        source = PROJECT.id_in(self, self.hook)
        if self.workflow_name is not None and source is not None:
            for project_id in (source, self._destination):
                workflow = find_workflow(self.hook, self.workflow_name, project_id=project_id)
                if workflow is not None:
                    return workflow.id
        return super().target_id

    @cached_property
    def _destination(self) -> str:
        return DESTINATION_PROJECT.required_id_in(self, self.hook)

    def _is_in(self, project_id: str) -> bool:
        workflow = self.hook.workflows.get(self.target_id)
        return any(
            place.get("projectId") == project_id and place.get("role", "workflow:owner") == "workflow:owner"
            for place in workflow.shared or ()
        )


class ServiceSetWorkflowTagsOperator(ServiceWorkflowOperator):
    """Give a workflow exactly these tags, or add or remove some. Safe to repeat: order and duplicates do not matter.

    The service only replaces all tags of a workflow. With ``mode="add"`` or ``"remove"``, a change of its tags that
    somebody else makes at the same moment can therefore be lost.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param tags: names of the tags; with ``mode="set"``, an empty list removes all tags. Give either names or ids.
    :param tag_ids: ids of the tags.
    :param mode: ``"set"`` (the default) to replace all tags of the workflow by these, ``"add"`` to keep the others, or
        ``"remove"`` to remove these and keep the others.
    :param create_missing: True (the default) to create tags that do not exist yet; with False, they fail the task. A
        tag to remove need not exist.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`WorkflowTagsResult`; ``tags`` are the names.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceWorkflowOperator.template_fields, "tags", "tag_ids")
    references = (*ServiceWorkflowOperator.references, TAGS)

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        tags: Templated[Sequence[str] | None] = None,
        tag_ids: Templated[Sequence[str] | None] = None,
        mode: Literal["set", "add", "remove"] = "set",
        create_missing: bool = True,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.tags = as_rendered(tags)
        self.tag_ids = as_rendered(tag_ids)
        self.mode = mode
        self.create_missing = create_missing
        self.check_arguments()

    def perform(self, context: Context) -> WorkflowTagsResult:
        is_by_name = self.tags is not None
        listed = set(as_texts("tags", self.tags) if is_by_name else as_texts("tag_ids", self.tag_ids))
        existing = self.hook.workflows.list_tags(self.target_id)
        url = self.link(context)
        current = {tag.name if is_by_name else tag.id for tag in existing}
        desired = _TAG_MODES[self.mode](current, listed)
        changed = desired != current
        if changed:
            tag_ids = self._ids_of(desired, existing) if is_by_name else sorted(desired)
            existing = self.hook.workflows.update_tags(self.target_id, tag_ids)
        names = sorted(tag.name for tag in existing)
        self.log.info(
            "Workflow %s %s the tags %s: %s", self.target_id, "now has" if changed else "has", names or "(none)", url
        )
        return {"workflow_id": self.target_id, "tags": names, "changed": changed, "url": url}

    def _ids_of(self, desired: Set[str], existing: Sequence[Tag]) -> list[str]:
        names = sorted(desired)
        ids = {tag.name: tag.id for tag in existing}
        if not ids.keys() >= desired:
            ids.update((tag.name, tag.id) for tag in self.hook.tags.list())
        missing = [name for name in names if name not in ids]
        require(
            self.create_missing or not missing,
            f"these tags do not exist: {', '.join(map(repr, missing))}; create_missing=True creates them",
        )
        ids.update((name, create_tag(self.hook, name)[0].id) for name in missing)
        return [ids[name] for name in names]
