"""Base class for operators on executions that are selected by workflow and time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import (
    SECONDS_OR_ZERO,
    optional,
    read_choices,
    read_moment,
    read_seconds,
    require,
    require_flag,
)
from airflow_provider_service._airflow.references import OPTIONAL_WORKFLOW, PROJECT
from airflow_provider_service._airflow.task_arguments import as_rendered
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import EXECUTIONS_PAGE, WORKFLOW_EXECUTIONS_PAGE, ServicePageLink
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service._airflow.task_arguments import Duration, Templated


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
    operator_extra_links = (ServicePageLink(),)
    references = (OPTIONAL_WORKFLOW, PROJECT)
    checks = {"all_workflows": require_flag, "older_than": optional(SECONDS_OR_ZERO)}
    joint_checks = {("all_workflows", *PROJECT.fields): _narrowing_project}

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None],
        workflow_name: Templated[str | None],
        project_id: Templated[str | None],
        project_name: Templated[str | None],
        all_workflows: bool,
        status: Templated[str | Sequence[str] | None],
        started_before: Templated[datetime | str | None],
        older_than: Duration | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.all_workflows = all_workflows
        self.status = as_rendered(status)
        self.started_before = as_rendered(started_before)
        self.older_than = older_than

    @cached_property
    def selected_workflow_id(self) -> str | None:
        """Id of the workflow, looked up if only its name was given; None for every workflow."""
        return OPTIONAL_WORKFLOW.id_in(self, self.hook)

    def link(self, context: Context) -> str:
        if self.selected_workflow_id is not None:
            return self.link_to(context, ServicePageLink(), WORKFLOW_EXECUTIONS_PAGE, self.selected_workflow_id)
        return self.link_to(context, ServicePageLink(), EXECUTIONS_PAGE)

    def require_workflow(self) -> None:
        """Refuse to act on every workflow unless that is explicit."""
        is_one = self.workflow_id is not None or self.workflow_name is not None
        require(
            is_one != self.all_workflows,
            "give either workflow_id or workflow_name, or all_workflows=True for the executions of every workflow",
        )

    def statuses(self, default: Sequence[str], allowed: Sequence[str]) -> list[Any]:
        return list(default) if self.status is None else read_choices("status", self.status, allowed)

    def latest_start(self) -> datetime | None:
        require(self.started_before is None or self.older_than is None, "give either started_before or older_than")
        if self.older_than is None:
            return read_moment("started_before", self.started_before)
        return clock().utcnow() - timedelta(seconds=read_seconds("older_than", self.older_than, or_zero=True))
