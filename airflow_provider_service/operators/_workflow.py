"""Base class and helpers for operators on workflows: id, link and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from airflow_provider_service._airflow.references import PROJECT, WORKFLOW
from airflow_provider_service._airflow.task_arguments import as_rendered
from airflow_provider_service.client.errors import ServiceInvalidRequestError
from airflow_provider_service.links.service import WORKFLOW_PAGE, ServiceWorkflowLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._airflow.references import Alternatives, Reference
    from airflow_provider_service._airflow.task_arguments import TaskArguments, Templated
    from airflow_provider_service.client.models import Workflow
    from airflow_provider_service.operators.results import WorkflowResult


class ServiceWorkflowOperator(ServiceBaseOperator):
    """Base class for operators on one workflow, given by its id or name.

    :param workflow_id: id of the workflow; give either the id or the name.
    :param workflow_name: exact name of the workflow; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, *WORKFLOW.fields, *PROJECT.fields)
    references: ClassVar[Sequence[Alternatives]] = (WORKFLOW, PROJECT)
    #: How the workflow is found.
    reference: ClassVar[Reference] = WORKFLOW
    operator_extra_links = (ServiceWorkflowLink(),)

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

    @cached_property
    def target_id(self) -> str:
        """Id of the workflow, looked up if only its name was given."""
        return self.reference.required_id_in(self, self.hook)

    def link(self, context: Context) -> str:
        """Point the task's link at the workflow and return the address."""
        return self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, self.target_id)

    def change(self, context: Context, call: Callable[[], Workflow], state: str) -> WorkflowResult:
        """Make a call that changes the workflow, and return the state of the workflow."""
        try:
            workflow = call()
        except ServiceInvalidRequestError:
            # The workflow exists, and its page shows why the change was refused.
            self.link(context)
            raise
        url = self.link(context)
        self.log.info("Workflow %s (%s) %s: %s", workflow.id, workflow.name, state, url)
        return summary(workflow, url)


def summary(workflow: Workflow, url: str) -> WorkflowResult:
    """Return the summary of a workflow, as a task returns it."""
    return {
        "workflow_id": workflow.id,
        "name": workflow.name,
        "active": workflow.active,
        "archived": bool(workflow.is_archived),
        "version_id": workflow.active_version_id,
        "url": url,
    }


def outcome_of(before: Workflow | None, after: Workflow, is_updated: bool) -> str:
    """Return what a deployment did to a workflow."""
    if before is None:
        return "created"
    if is_updated:
        return "updated"
    if before.active != after.active:
        return "activated" if after.active else "deactivated"
    return "unchanged"
