"""Bases of the transfers into a data table and out of one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import as_rendered
from airflow_provider_service._core.rows.options import LOAD_CHECKS, chosen_mode, chosen_strategy, require_rejects
from airflow_provider_service.operators._table import ServiceTableOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.object_storage import StoredPath
    from airflow_provider_service._core.rows.options import (
        ChangeStrategy,
        LoadMode,
        OnDuplicate,
        OnError,
        OnStoredDuplicates,
    )
    from airflow_provider_service._core.rows.source_rows import NoteColumns
    from airflow_provider_service.client.models import DataTable
    from airflow_provider_service.operators.table_results import LoadTableResult

    class LoadArguments(TaskArguments, total=False):
        """The arguments of :class:`ServiceLoadTableOperator`, for those of each transfer."""

        data_table_id: Templated[str | None]
        data_table_name: Templated[str | None]
        project_id: Templated[str | None]
        project_name: Templated[str | None]
        mode: LoadMode | None
        key_columns: Templated[str | Sequence[str]]
        delete_missing: bool
        allow_empty: bool
        column_mapping: Templated[Mapping[str, str | None] | None]
        create_table: bool
        add_columns: bool
        column_types: Templated[Mapping[str, str] | None]
        on_error: OnError
        reject_path: Templated[StoredPath | None]
        object_storage_conn_id: Templated[str | None]
        on_duplicate: OnDuplicate
        on_stored_duplicates: OnStoredDuplicates
        change_strategy: ChangeStrategy
        service_conn_id: Templated[str]


__all__ = ["ServiceLoadTableOperator"]


class ServiceLoadTableOperator(ServiceTableOperator):
    """Base of the transfers into a data table, with the arguments that they share.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name, or to create the table; None (the default) for
        any project, and to create the table in the personal project of the API key's user.
    :param project_name: exact name of that project, instead of its id.
    :param mode: ``"upsert"`` updates the rows whose keys exist and inserts the others; the default with
        ``key_columns``. ``"replace"`` inserts the rows and then deletes all others. ``"append"`` only inserts, and is
        NOT safe to repeat. Required without ``key_columns``.
    :param key_columns: columns of the table that identify a row, for an upsert.
    :param delete_missing: whether an upsert also deletes the rows with keys that the source lacks; False by default.
        The key of a row that is left out is not lacking.
    :param allow_empty: with ``mode="replace"`` or ``delete_missing``, delete all rows of the table even if the source
        has no rows; with False, the default, the task fails instead.
    :param column_mapping: name in the table by name in the source, None for a column that is left out; columns that it
        does not name keep their names. None (the default) for no changes.
    :param create_table: create the table, which then needs ``data_table_name``, if it does not exist; False by default.
    :param add_columns: add columns that the table lacks; False by default.
    :param column_types: types of columns that are created, ``{"price": "number"}``: string, number, boolean or date.
        Every other new column gets the type of its first value that is not null in a row that is not left out.
    :param on_error: how to treat a row that the table cannot store: ``"fail"`` (the default) writes nothing, ``"skip"``
        leaves the row out.
    :param reject_path: ``.jsonl`` file, or one that ends in ``.jsonl.gz``, for the rows that are left out, with their
        numbers and reasons; required with ``on_error="skip"``. It is written even if no row is left out.
    :param object_storage_conn_id: Airflow connection of the object storage of ``reject_path``, and of the file to
        read; None (the default) for the one that the address names, if any.
    :param on_duplicate: what to do with several rows of the source with the same key: use the ``"last"`` one (the
        default), or ``"fail"``.
    :param on_stored_duplicates: what to do with several rows of the table with the same key: ``"remove_copies"`` by
        default; see :class:`ServiceUpsertRowsOperator`.
    :param change_strategy: how rows are changed: ``"auto"`` by default; see :class:`ServiceUpsertRowsOperator`.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    """

    writes_table = True
    template_fields: Sequence[str] = (
        *ServiceTableOperator.template_fields,
        "key_columns",
        "column_mapping",
        "column_types",
        "reject_path",
        "object_storage_conn_id",
    )
    template_fields_renderers = {"column_mapping": "json", "column_types": "json"}
    checks = LOAD_CHECKS
    joint_checks = {
        ("change_strategy", "on_stored_duplicates"): chosen_strategy,
        ("mode", "key_columns", "delete_missing"): chosen_mode,
        ("on_error", "reject_path"): require_rejects,
    }

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        mode: LoadMode | None = None,
        key_columns: Templated[str | Sequence[str]] = (),
        delete_missing: bool = False,
        allow_empty: bool = False,
        column_mapping: Templated[Mapping[str, str | None] | None] = None,
        create_table: bool = False,
        add_columns: bool = False,
        column_types: Templated[Mapping[str, str] | None] = None,
        on_error: OnError = "fail",
        reject_path: Templated[StoredPath | None] = None,
        object_storage_conn_id: Templated[str | None] = None,
        on_duplicate: OnDuplicate = "last",
        on_stored_duplicates: OnStoredDuplicates = "remove_copies",
        change_strategy: ChangeStrategy = "auto",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            data_table_id=data_table_id,
            data_table_name=data_table_name,
            project_id=project_id,
            project_name=project_name,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.mode = mode
        self.key_columns = as_rendered(key_columns)
        self.delete_missing = delete_missing
        self.allow_empty = allow_empty
        self.column_mapping = as_rendered(column_mapping)
        self.create_table = create_table
        self.add_columns = add_columns
        self.column_types = as_rendered(column_types)
        self.on_error = on_error
        self.reject_path = as_rendered(reject_path)
        self.object_storage_conn_id = as_rendered(object_storage_conn_id)
        self.on_duplicate = on_duplicate
        self.on_stored_duplicates = on_stored_duplicates
        self.change_strategy = change_strategy

    def perform(self, context: Context) -> LoadTableResult:
        from airflow_provider_service._core.rows.target import LoadOptions, TableTarget, opening_rejects

        options = LoadOptions.of(self)
        rejects = opening_rejects(self.on_error, self.reject_path, self.object_storage_conn_id)
        target = TableTarget.named_by(self, self.hook, create_table=self.create_table)
        if target.table is not None:
            self.link_table(context, target.table)
        loaded = target.load(self.source_rows, options, rejects)
        url = self.link_table(context, loaded.table)
        self.log.info("%s: %s", loaded, url)
        return {**loaded.to_xcom(), "url": url}

    @abstractmethod
    def source_rows(self, note_columns: NoteColumns) -> Generator[Mapping[str, Any], None, None]:
        """Yield the rows of the source, each read once."""


class ServiceUnloadTableOperator(ServiceTableOperator):
    template_fields: Sequence[str] = (*ServiceTableOperator.template_fields, "filter", "search", "columns")
    template_fields_renderers = {"filter": "json"}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        filter: Templated[Mapping[str, Any] | None] = None,
        search: Templated[str | None] = None,
        columns: Templated[Sequence[str] | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            data_table_id=data_table_id,
            data_table_name=data_table_name,
            project_id=project_id,
            project_name=project_name,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.filter = as_rendered(filter)
        self.search = as_rendered(search)
        self.columns = as_rendered(columns)

    def types_of(self, table: DataTable, *, with_system_columns: bool) -> dict[str, str]:
        from airflow_provider_service._core.rows.files import chosen_types
        from airflow_provider_service._core.rows.values import column_types

        return chosen_types(column_types(table), self.columns, with_system_columns=with_system_columns)

    def stored_rows(self, table: DataTable, types: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of the table, with one page in memory at a time, and log the progress."""
        from airflow_provider_service._core.rows.batches import Progress
        from airflow_provider_service._core.rows.matching import matching_rows
        from airflow_provider_service._core.rows.upsert import checked_row

        rows = matching_rows(self.hook, table, self.filter, types, search=self.search)
        return Progress("Read").counting(checked_row(row, table.id) for row in rows)
