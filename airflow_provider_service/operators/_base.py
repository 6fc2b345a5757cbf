"""The base class of all operators: connection, hook, links, and checks of arguments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_service._airflow.arguments import CheckedArguments, require, require_context
from airflow_provider_service._airflow.attempts import failure_reported
from airflow_provider_service._airflow.fail_without_retry import fail_without_retry
from airflow_provider_service._airflow.task_arguments import as_rendered
from airflow_provider_service.links.service import page_url
from airflow_provider_service.operators._rendering import revealed

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._airflow.references import Alternatives
    from airflow_provider_service._airflow.task_arguments import TaskArguments, Templated
    from airflow_provider_service.hooks.service import ServiceHook
    from airflow_provider_service.links.service import ServiceLink


#: Template fields that say on what a task acts, or must not act. Of those that belong together, one suffices.
_CHOOSING_FIELDS = (
    ("workflow_id", "workflow_name", "execution_ids"),
    ("project_id", "project_name"),
    ("destination_project_id", "destination_project_name"),
    ("parent_folder_id", "parent_folder_name"),
    ("tag_id", "tag_name"),
    ("credential_id", "credential_name"),
    ("filter", "row_ids"),
    *((name,) for name in ("status", "started_before", "workflow_names", "names", "kinds", "types", "object_ids")),
    *((name,) for name in ("search", "columns", "categories", "version", "version_id", "arguments")),
)


class ServiceBaseOperator(CheckedArguments, BaseOperator):
    """Base class of all operators.

    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    """

    template_fields: Sequence[str] = ("service_conn_id",)
    #: Template fields that may be empty text.
    blank_fields: Sequence[str] = ()
    #: The objects that arguments name by id or by name.
    references: ClassVar[Sequence[Alternatives]] = ()
    #: The variables of Airflow's context that the task needs.
    context_names: ClassVar[Sequence[str]] = ("ti",)
    #: The addresses that this process has pushed, by XCom key; None until it begins the task.
    pushed_links: dict[str, str] | None = None
    #: The template fields that had a value before they were rendered.
    _given_fields: Sequence[str] = ()
    ui_color = "#ede9fe"

    def __init__(self, *, service_conn_id: Templated[str] = "service_default", **kwargs: Unpack[TaskArguments]) -> None:
        super().__init__(**kwargs)
        self.service_conn_id = as_rendered(service_conn_id)

    def execute(self, context: Context) -> Any:
        """Check the rendered arguments and perform the task. Errors that would recur are not retried."""
        with failure_reported(context), fail_without_retry():
            require_context(context, self.context_names)
            self.pushed_links = {}
            self._refuse_blank_fields()
            self._refuse_fields_without_value()
            self.check_arguments(are_rendered=True)
            result = self.perform(context)
            self.note_result(context, result)
            return result

    def check_arguments(self, *, are_rendered: bool = False) -> None:
        """Refuse invalid arguments, such as a pair of id and name of which neither or both are given."""
        super().check_arguments(are_rendered=are_rendered)
        for reference in self.references:
            reference.check(self, are_rendered=are_rendered)

    @abstractmethod
    def perform(self, context: Context) -> Any:
        """Perform the task and return its XCom value."""

    def note_result(self, context: Context, result: Any) -> None:
        """Handle the result before the task returns it; does nothing by default."""

    def _refuse_blank_fields(self) -> None:
        # To the service, an empty value would often mean "all".
        for name in self.template_fields:
            value = revealed(getattr(self, name))
            is_blank = isinstance(value, str) and not value.strip()
            require(not is_blank or name in self.blank_fields, f"{name} is empty; give a value, or leave it out")

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        # The only rendering method that plain and mapped tasks share. Airflow also calls it for what is inside a field.
        if parent is self:
            self._given_fields = [name for name in self.template_fields if getattr(self, name) is not None]
        super()._do_render_template_fields(parent, *args, **kwargs)

    def _refuse_fields_without_value(self) -> None:
        # The output of another task can be None, and so can a template that renders to a native object. Without such a
        # value, the task would act on more than the DAG says.
        for names in _CHOOSING_FIELDS:
            given = [name for name in names if name in self._given_fields]
            is_left = any(getattr(self, name) is not None for name in given)
            require(is_left or not given, f"{' and '.join(given)} is None; give a value, or leave it out")

    @cached_property
    def hook(self) -> ServiceHook:
        """Hook for the connection of this task."""
        from airflow_provider_service.hooks.service import ServiceHook

        return ServiceHook(self.service_conn_id)

    def link_to(self, context: Context, link: ServiceLink, page: str, *ids: str | int) -> str:
        """Point the task's link at a page of the service and return the address."""
        url = page_url(self.hook.config.base_url, page, *ids)
        link.push(context, url)
        return url
