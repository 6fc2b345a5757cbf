"""What operators act on: executions selected by workflow and time, one workflow, or definitions of workflows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_service._core.arguments import (
    SECONDS_OR_ZERO,
    optional,
    read_choices,
    read_moment,
    read_seconds,
    require,
)
from airflow_provider_service._core.references import OPTIONAL_WORKFLOW, PROJECT, WORKFLOW
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInvalidRequestError
from airflow_provider_service.links.service import (
    EXECUTIONS_PAGE,
    WORKFLOW_EXECUTIONS_PAGE,
    WORKFLOW_PAGE,
    ServiceWorkflowLink,
)
from airflow_provider_service.operators._base import ServiceBaseOperator, template_folders, verbatim

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service._core.arguments import Duration
    from airflow_provider_service._core.references import Alternatives, Reference
    from airflow_provider_service.client.models import Workflow
    from airflow_provider_service.operators.results import WorkflowResult


def _workflow_or_all(
    execution_ids: object, all_workflows: bool, workflow_id: str | None, workflow_name: str | None
) -> None:
    """Refuse to act on every workflow unless that is explicit."""
    names_workflow = workflow_id is not None or workflow_name is not None
    require(
        execution_ids is not None or names_workflow != all_workflows,
        "give either workflow_id or workflow_name, or all_workflows=True for the executions of every workflow",
    )


def _narrowing_project(all_workflows: bool, project_id: str | None, project_name: str | None) -> None:
    require(
        not all_workflows or (project_id is None and project_name is None),
        "a project can only narrow workflow_name; all_workflows=True is for the workflows of every project",
    )


class SelectedExecutionsOperator(ServiceBaseOperator):
    """Base class for operators on executions that are selected by workflow and time."""

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        *OPTIONAL_WORKFLOW.fields,
        *PROJECT.fields,
        "status",
        "started_before",
    )
    references = (OPTIONAL_WORKFLOW, PROJECT)
    checks = {"older_than": optional(SECONDS_OR_ZERO)}
    joint_checks = {
        ("execution_ids", "all_workflows", *OPTIONAL_WORKFLOW.fields): _workflow_or_all,
        ("all_workflows", *PROJECT.fields): _narrowing_project,
    }
    execution_ids: Sequence[str | int] | None = None
    workflow_id: str | None
    workflow_name: str | None
    all_workflows: bool
    status: str | Sequence[str] | None
    started_before: datetime | str | None
    older_than: Duration | None

    @cached_property
    def selected_workflow_id(self) -> str | None:
        """Id of the workflow, looked up if only its name was given; None for every workflow."""
        return OPTIONAL_WORKFLOW.id_in(self, self.hook)

    def link(self, context: Context) -> str:
        if self.selected_workflow_id is not None:
            return self.link_page(context, WORKFLOW_EXECUTIONS_PAGE, self.selected_workflow_id)
        return self.link_page(context, EXECUTIONS_PAGE)

    def statuses(self, default: Sequence[str], allowed: Sequence[str]) -> list[Any]:
        return list(default) if self.status is None else read_choices("status", self.status, allowed)

    def latest_start(self) -> datetime | None:
        require(self.started_before is None or self.older_than is None, "give either started_before or older_than")
        if self.older_than is None:
            return read_moment("started_before", self.started_before)
        return clock().utcnow() - timedelta(seconds=read_seconds("older_than", self.older_than, or_zero=True))


class ServiceWorkflowOperator(ServiceBaseOperator):
    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, *WORKFLOW.fields, *PROJECT.fields)
    references: ClassVar[Sequence[Alternatives]] = (WORKFLOW, PROJECT)
    #: How the workflow is found.
    reference: ClassVar[Reference] = WORKFLOW
    operator_extra_links = (ServiceWorkflowLink(),)

    @cached_property
    def target_id(self) -> str:
        return self.reference.required_id_in(self, self.hook)

    def link(self, context: Context) -> str:
        return self.link_to(context, ServiceWorkflowLink(), WORKFLOW_PAGE, self.target_id)

    def change(self, context: Context, call: Callable[[], Workflow], state: str) -> WorkflowResult:
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
    return {
        "workflow_id": workflow.id,
        "name": workflow.name,
        "active": workflow.active,
        "archived": bool(workflow.is_archived),
        "version_id": workflow.active_version_id,
        "url": url,
    }


class DefinitionsMixin:
    """Mixin for operators whose ``source`` holds definitions, which are not rendered, or paths of them, which are."""

    #: Template fields in which definitions are not rendered.
    definition_fields: Sequence[str] = ("source",)
    source: Any

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        parent.source = _unrendered(parent.source)
        super()._do_render_template_fields(parent, *args, **kwargs)  # type: ignore[misc]

    def located(self) -> Any:
        """Return the source, with relative paths resolved against the folder of the DAG file."""
        if isinstance(self.source, (list, tuple)):
            return [from_dag_folder(item, self) for item in self.source]
        return from_dag_folder(self.source, self)


def _unrendered(value: Any) -> Any:
    if isinstance(value, Mapping) or _is_json(value):
        return verbatim(value)
    return [_unrendered(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_json(value: Any) -> bool:
    text = value.lstrip() if isinstance(value, str) else ""
    return text.startswith(("{", "[")) and not text.startswith(("{{", "{%", "{#"))


def from_dag_folder(value: Any, task: Any) -> Any:
    """Resolve a relative path against the folder of the DAG file; return any other value unchanged."""
    is_path = isinstance(value, str) and "://" not in value and not _is_json(value)
    if not is_path or Path(value).is_absolute():
        return value
    for folder in template_folders(task):
        if (folder / value).exists():
            return str(folder / value)
    return str(Path(value))
