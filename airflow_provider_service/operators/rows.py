"""Operators for the rows of a data table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service._core.arguments import (
    BATCH_BYTES,
    BATCH_ROWS,
    as_list,
    as_rendered,
    read_count,
    require,
    text_or_texts,
)
from airflow_provider_service._core.references import Alternatives
from airflow_provider_service._core.rows.options import ChangeStrategy, OnDuplicate, OnStoredDuplicates, chosen_strategy
from airflow_provider_service.client.errors import ServiceAnswerTooLargeError
from airflow_provider_service.operators._table import ServiceTableOperator, given_rows

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service.operators.table_results import (
        DeleteRowsResult,
        InsertRowsResult,
        UpdateRowsResult,
        UpsertRowsResult,
    )

__all__ = [
    "ServiceDeleteRowsOperator",
    "ServiceInsertRowsOperator",
    "ServiceUpdateRowsOperator",
    "ServiceUpsertRowsOperator",
]

log = logging.getLogger(__name__)


class ServiceInsertRowsOperator(ServiceTableOperator):
    """Insert rows. Not safe to repeat: a repeat inserts them again; prefer :class:`ServiceUpsertRowsOperator`.

    The task checks all rows before it inserts the first, as an upsert does: each value must fit its column, and a date
    without a time zone means UTC. It sends the rows in batches. The service inserts each batch completely or not at
    all; if a batch fails, the batches before it stay. If a batch fails after others were inserted, or if its answer is
    lost, the task fails without further retries and says how many rows were inserted. A task that is killed is retried,
    and then inserts the rows again.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param rows: mappings of column names to values; a column that is left out is null. It may also be the output of a
        task that returns a DataFrame of pandas or polars.
    :param batch_rows: maximum number of rows in a batch; 10,000 by default.
    :param batch_bytes: maximum size of a batch in bytes; 8 MiB by default, and the server accepts 16 MiB by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`InsertRowsResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    writes_table = True
    template_fields: Sequence[str] = (*ServiceTableOperator.template_fields, "rows")
    template_fields_renderers = {"rows": "json"}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        rows: Templated[Sequence[Mapping[str, Any]]],
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
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
        self.rows = as_rendered(rows)
        self.batch_rows = batch_rows
        self.batch_bytes = batch_bytes
        self.check_arguments()

    def perform(self, context: Context) -> InsertRowsResult:
        from airflow_provider_service._core.rows.batches import insert_in_batches
        from airflow_provider_service._core.rows.source_rows import checked_rows
        from airflow_provider_service._core.rows.values import column_types

        batch_rows, batch_bytes = read_count("batch_rows", self.batch_rows), read_count("batch_bytes", self.batch_bytes)
        rows = given_rows(self.rows)
        table, url = self.open_table(context)
        rows = checked_rows(rows, column_types(table))
        inserted = 0
        for inserted in insert_in_batches(
            self.hook, table.id, rows, max_rows=batch_rows, max_bytes=batch_bytes, may_repeat=False
        ):
            if inserted < len(rows):
                self.log.info("Inserted %d of %d rows into %s", inserted, len(rows), table.name)
        self.log.info("Rows inserted into %s: %d; see %s", table.name, inserted, url)
        return {"data_table_id": table.id, "inserted": inserted, "url": url}


class ServiceUpsertRowsOperator(ServiceTableOperator):
    """Upsert rows: update those whose keys exist, and insert the others. Safe to repeat.

    The task checks the whole input before it writes anything. It compares values by the type of their column (a date
    without a time zone means UTC), and writes only the rows that differ, many per call. An upsert is not atomic: it can
    miss rows that others write at the same time, so let only one task at a time write to a table. The guide
    ``docs/data-tables.md`` describes what the options below guarantee.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param rows: mappings of column names to values, with the key columns; a column that is left out is not changed. It
        may also be the output of a task that returns a DataFrame of pandas or polars.
    :param key_columns: name of the column that identifies a row, or a list of several.
    :param on_duplicate: what to do with several input rows with the same key: use the ``"last"`` one (the default), or
        ``"fail"``.
    :param on_stored_duplicates: what to do with several stored rows with the same key, such as those of an earlier
        attempt whose insert arrived late: ``"remove_copies"`` (the default) updates all of them and deletes those that
        then equal a newer one in every column, ``"keep_newest"`` deletes all except the one that was inserted last,
        ``"update_all"`` updates all of them and deletes none, ``"fail"`` writes nothing.
    :param change_strategy: how rows are changed: ``"update"`` changes them in place, with one call for each group of
        equal changes; ``"replace"`` inserts the new rows, then deletes the old ones, in few calls, so changed rows get
        new ids and a new ``createdAt``; ``"auto"`` (the default) updates up to 100 groups, and replaces rows if there
        are more. ``"replace"`` requires ``on_stored_duplicates`` to be ``"remove_copies"`` or ``"keep_newest"``. With
        other values, or if the key may not delete rows, ``"auto"`` always updates.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`UpsertRowsResult`, which counts rows of the table; ``deleted`` counts those with the same key
        as another.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    writes_table = True
    template_fields: Sequence[str] = (*ServiceTableOperator.template_fields, "rows", "key_columns")
    template_fields_renderers = {"rows": "json"}
    joint_checks = {("change_strategy", "on_stored_duplicates"): chosen_strategy}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        rows: Templated[Sequence[Mapping[str, Any]]],
        key_columns: Templated[str | Sequence[str]],
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
        self.rows = as_rendered(rows)
        self.key_columns = as_rendered(key_columns)
        self.on_duplicate = on_duplicate
        self.on_stored_duplicates = on_stored_duplicates
        self.change_strategy = change_strategy
        self.check_arguments()

    def perform(self, context: Context) -> UpsertRowsResult:
        from airflow_provider_service._core.rows.frames import rows_in
        from airflow_provider_service._core.rows.target import LoadOptions, TableTarget

        keys = text_or_texts("key_columns", self.key_columns)
        require(keys, "key_columns must name columns of the table")
        options = LoadOptions(
            key_columns=keys,
            on_duplicate=self.on_duplicate,
            on_stored_duplicates=self.on_stored_duplicates,
            change_strategy=self.change_strategy,
        )
        rows = given_rows(self.rows)
        table, url = self.open_table(context)
        changes = asdict(TableTarget(self.hook, table).load(partial(rows_in, rows), options).changes)
        counts = ", ".join(f"{number} {what}" for what, number in changes.items())
        self.log.info("Rows of %s: %s: %s", table.name, counts, url)
        return cast("UpsertRowsResult", {"data_table_id": table.id, **changes, "url": url})


class ServiceUpdateRowsOperator(ServiceTableOperator):
    """Write the same values into every row that matches a filter. Safe to repeat.

    The filter may name columns that ``data`` changes. A repeat then finds no rows, and returns a count of 0.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param filter: conditions on columns, as ``{"type": "and", "filters": [{"columnName": "stock", "condition": "lt",
        "value": 10}]}``; the page *Data tables* lists them. If it compares dates, the rows are read first, and then
        updated by their ids.
    :param data: new values by column, each of which must fit its column; columns that it does not name are not changed.
        A date without a time zone means UTC.
    :param preview: True to count the rows that would be updated, without updating them; False by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: an :class:`UpdateRowsResult`; ``updated`` is the number of rows that were updated or, with ``preview``,
        would be. It is None if the updated rows, which the service returns, exceed ``max_answer_mib``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    writes_table = True
    template_fields: Sequence[str] = (*ServiceTableOperator.template_fields, "filter", "data")
    template_fields_renderers = {"filter": "json", "data": "json"}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        filter: Templated[Mapping[str, Any]],
        data: Templated[Mapping[str, Any]],
        preview: bool = False,
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
        self.data = as_rendered(data)
        self.preview = preview
        self.check_arguments()

    def perform(self, context: Context) -> UpdateRowsResult:
        from airflow_provider_service._core.rows.batches import any_of
        from airflow_provider_service._core.rows.matching import exact_filters
        from airflow_provider_service._core.rows.source_rows import checked_values
        from airflow_provider_service._core.rows.values import column_types

        table, url = self.open_table(context)
        data = checked_values(self.data, column_types(table))
        filters = exact_filters(self.hook, table, self.filter, partial(any_of, "id"))
        update = self.hook.data_table_rows.update
        updated = _count_changes((partial(update, table.id, filter, data) for filter in filters), self.preview)
        what = "that would be updated" if self.preview else "updated"
        count = "an unknown number" if updated is None else updated
        self.log.info("Rows of %s %s: %s; see %s", table.name, what, count, url)
        return {"data_table_id": table.id, "updated": updated, "preview": self.preview, "url": url}


class ServiceDeleteRowsOperator(ServiceTableOperator):
    """Delete rows by id, or those that match a filter. Safe to repeat: rows that no longer exist are not counted.

    On SQLite, the service reuses the highest id of a table once its row is deleted. Do not store ids for long, and
    prefer a filter where others insert rows: a repeat would delete a new row that got the id.

    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param row_ids: ids of the rows, in any number; give either ids or a filter.
    :param filter: conditions on columns, as ``{"type": "and", "filters": [{"columnName": "stock", "condition": "lt",
        "value": 10}]}``; the page *Data tables* lists them. A filter is sent in the URL, so its length is
        limited. If it compares dates, the rows are read first, and then deleted by their ids.
    :param preview: True to count the rows that would be deleted, without deleting them; False by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`DeleteRowsResult`; ``deleted`` is the number of rows that were deleted or, with ``preview``,
        would be. It is None if the deleted rows, which the service returns, exceed ``max_answer_mib``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    writes_table = True
    references = (*ServiceTableOperator.references, Alternatives("row_ids", "filter"))
    template_fields: Sequence[str] = (*ServiceTableOperator.template_fields, "row_ids", "filter")
    template_fields_renderers = {"filter": "json"}

    def __init__(
        self,
        *,
        data_table_id: Templated[str | None] = None,
        data_table_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        row_ids: Templated[Sequence[int | str] | None] = None,
        filter: Templated[Mapping[str, Any] | None] = None,
        preview: bool = False,
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
        self.row_ids = as_rendered(row_ids)
        self.filter = as_rendered(filter)
        self.preview = preview
        self.check_arguments()

    def perform(self, context: Context) -> DeleteRowsResult:
        from airflow_provider_service._core.rows.batches import exactly_in_url
        from airflow_provider_service._core.rows.matching import exact_filters

        row_ids = [read_count("each of row_ids", row_id) for row_id in as_list("row_ids", self.row_ids or [])]
        table, url = self.open_table(context)
        filters: Iterable[Mapping[str, Any]] = exactly_in_url(row_ids)
        if self.filter is not None:
            filters = exact_filters(self.hook, table, self.filter, exactly_in_url)
        delete = self.hook.data_table_rows.delete
        deleted = _count_changes((partial(delete, table.id, filter) for filter in filters), self.preview)
        what = "that would be deleted" if self.preview else "deleted"
        count = "an unknown number" if deleted is None else deleted
        self.log.info("Rows of %s %s: %s; see %s", table.name, what, count, url)
        return {"data_table_id": table.id, "deleted": deleted, "preview": self.preview, "url": url}


def _count_changes(changes: Iterable[Callable[..., Any]], preview: bool) -> int | None:
    """Make changes, or preview them, and count their rows; None if some were changed, but are too large to be read."""
    count: int | None = 0
    for change in changes:
        try:
            answer = change(dry_run=True) if preview else change(return_data=True)
        except ServiceAnswerTooLargeError as error:
            if preview or error.status != HTTPStatus.OK:
                raise
            log.warning("The rows were changed, but cannot be counted: %s", error)
            count = None
            continue
        rows = answer if isinstance(answer, list) else []
        if count is not None:
            # A preview contains each row twice: before and after.
            count += len(rows) // 2 if preview else len(rows)
    return count
