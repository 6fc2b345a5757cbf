"""Operator for data tables; those for their rows are in ``rows``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from airflow_provider_service._core.arguments import as_rendered
from airflow_provider_service._core.references import PROJECT
from airflow_provider_service.client._lookup import get_data_table
from airflow_provider_service.client.errors import ServiceConflictError, ServiceForbiddenError
from airflow_provider_service.operators._table import TableLinkedOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.client.models import DataTable
    from airflow_provider_service.operators.table_results import DataTableResult

__all__ = ["ServiceCreateDataTableOperator"]


class ServiceCreateDataTableOperator(TableLinkedOperator):
    """Make sure that a data table with these columns exists. Safe to repeat with ``if_exists="skip"``.

    Missing columns are added to an existing table; its other columns and its rows are kept.

    :param name: name of the table, 1 to 128 characters, unique in the project and case-sensitive.
    :param columns: types by column name, in order: ``{"sku": "string", "stock": "number"}``. The types are string,
        number, boolean and date. A list of ``{"name", "type"}`` is accepted too. The service itself adds ``id``,
        ``createdAt`` and ``updatedAt``.
    :param project_id: id of the project in which to create the table; None (the default) for the personal project of
        the key's user. If a team project has a table of that name, too, a repeat needs the scope ``project:list``.
    :param project_name: exact name of that project, instead of its id.
    :param if_exists: what to do if a table of that name exists in the project: ``"skip"`` (the default) or ``"fail"``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`DataTableResult`; the outcome is ``"created"``, ``"extended"`` or ``"unchanged"``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*TableLinkedOperator.template_fields, "name", "columns", *PROJECT.fields)
    references = (PROJECT,)
    template_fields_renderers = {"columns": "json"}

    def __init__(
        self,
        *,
        name: Templated[str],
        columns: Templated[Mapping[str, str] | Sequence[Mapping[str, str]]],
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        if_exists: Literal["skip", "fail"] = "skip",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.name = as_rendered(name)
        self.columns = as_rendered(columns)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.if_exists = if_exists
        self.check_arguments()

    def perform(self, context: Context) -> DataTableResult:
        from airflow_provider_service._core.instances.desired_state import add_columns, missing_columns, types_by_name

        desired = types_by_name(self.columns)
        table, created = self._create_or_find(desired)
        url = self.link_table(context, table)
        added = [] if created else missing_columns(table, desired)
        add_columns(self.hook, table, desired, added)
        outcome = "created" if created else "extended" if added else "unchanged"
        self.log.info("Data table %s (%s) is %s: %s", table.id, table.name, outcome, url)
        return {
            "data_table_id": table.id,
            "name": table.name,
            "project_id": table.project_id,
            "outcome": outcome,
            "added_columns": added,
            "url": url,
        }

    def _create_or_find(self, desired: Mapping[str, str]) -> tuple[DataTable, bool]:
        from airflow_provider_service._core.instances.desired_state import create_table

        project_id = PROJECT.id_in(self, self.hook)
        try:
            return create_table(self.hook, self.name, desired, project_id), True
        except ServiceConflictError:
            if self.if_exists == "fail":
                raise
        name = self.name.strip()  # as the service does
        return get_data_table(self.hook, name, project_id=project_id or self._personal_project_with(name)), False

    def _personal_project_with(self, name: str) -> str | None:
        """The only personal project with such a table, if several projects have one and the key may list projects.

        The service does not say which personal project is that of the key's user.
        """
        tables = self.hook.data_tables.list(filter={"name": name})
        project_ids = {table.project_id for table in tables if table.name == name}
        if len(project_ids) < 2:
            return None
        try:
            projects = list(self.hook.projects.list())
        except ServiceForbiddenError:
            return None
        personal = [project.id for project in projects if project.type == "personal" and project.id in project_ids]
        return personal[0] if len(personal) == 1 else None
