"""Transfer of a file in object storage into a data table."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service.transfers._loading import ServiceLoadTableOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_provider_service.lineage.facets import Lineage
    from airflow_provider_service.object_storage import StoredPath
    from airflow_provider_service.rows.options import (
        ChangeStrategy,
        LoadMode,
        OnDuplicate,
        OnError,
        OnStoredDuplicates,
    )
    from airflow_provider_service.rows.source_rows import NoteColumns
    from airflow_provider_service.task_arguments import TaskArguments, Templated


class ObjectStorageToServiceDataTableOperator(ServiceLoadTableOperator):
    """Load a file of rows into a data table. Safe to repeat, except with ``mode="append"``.

    The rows are read once and checked on disk before anything is written, so that any number of them needs the same
    memory. A value that the table cannot store is refused with its row and column. A ``.csv`` file holds only text,
    which becomes a value of the column's type; a cell without quotes and content is null. The guide
    ``docs/transfers.md`` says what readers of the table see in the meantime.

    :param path: file to read, a path or an address such as ``s3://conn_id@bucket/key.csv``. Its ending names the
        format: ``.csv``, ``.jsonl`` or ``.parquet`` (needs the extra ``parquet``); the first two may end in ``.gz``.
    :param data_table_id: id of the table; give either the id or the name.
    :param data_table_name: exact, case-sensitive name of the table.
    :param project_id: id of the project in which to look up the name, or to create the table; None (the default) for
        any project, and for the personal project of the key's user.
    :param project_name: exact name of that project, instead of its id.
    :param mode: ``"upsert"`` updates the rows whose keys exist and inserts the others; the default with
        ``key_columns``. ``"replace"`` inserts the rows and then deletes all others. ``"append"`` only inserts, and is
        NOT safe to repeat. Required without ``key_columns``.
    :param key_columns: columns of the table that identify a row, for an upsert.
    :param delete_missing: whether an upsert also deletes the rows with keys that the source lacks; False by default.
    :param allow_empty: with ``mode="replace"`` or ``delete_missing``, delete all rows of the table even if the source
        has no rows; with False, the default, the task fails instead.
    :param column_mapping: name in the table by name in the source, None for a column that is left out; columns that it
        does not name keep their names. None (the default) for no changes.
    :param create_table: create the table, which then needs ``data_table_name``, if it does not exist; False by default.
    :param add_columns: add columns that the table lacks; False by default.
    :param column_types: types of columns that are created, ``{"price": "number"}``: string, number, boolean or date.
        Every other new column gets the type of its first value that is not null.
    :param on_error: what to do with a row that the table cannot store: ``"fail"`` (the default) writes nothing,
        ``"skip"`` leaves the row out.
    :param reject_path: ``.jsonl`` file, or one that ends in ``.jsonl.gz``, for the rows that are left out, with their
        numbers and reasons; required with ``on_error="skip"``. It is also written if there are none.
    :param object_storage_conn_id: Airflow connection of the object storage of ``path`` and ``reject_path``; None (the
        default) for the one that an address names, if any.
    :param on_duplicate: what to do with several rows of the source with the same key: use the ``"last"`` one (the
        default), or ``"fail"``.
    :param on_stored_duplicates: what to do with several rows of the table with the same key: ``"remove_copies"`` by
        default; see :class:`ServiceUpsertRowsOperator`.
    :param change_strategy: how rows are changed: ``"auto"`` by default; see :class:`ServiceUpsertRowsOperator`.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`LoadTableResult`: rows that were read and left out, and what became of the table's rows;
        ``deleted`` is None if ``mode="replace"`` could not count them.
    """

    template_fields: Sequence[str] = (*ServiceLoadTableOperator.template_fields, "path")

    def __init__(
        self,
        *,
        path: Templated[StoredPath],
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
            mode=mode,
            key_columns=key_columns,
            delete_missing=delete_missing,
            allow_empty=allow_empty,
            column_mapping=column_mapping,
            create_table=create_table,
            add_columns=add_columns,
            column_types=column_types,
            on_error=on_error,
            reject_path=reject_path,
            object_storage_conn_id=object_storage_conn_id,
            on_duplicate=on_duplicate,
            on_stored_duplicates=on_stored_duplicates,
            change_strategy=change_strategy,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.path = cast("StoredPath", path)  # once Airflow has rendered it
        self.check_arguments()

    def other_lineage(self) -> Lineage | None:
        """The file that the task reads."""
        from airflow_provider_service.lineage.facets import of_file
        from airflow_provider_service.object_storage import address_of

        return of_file(address_of(self.path, conn_id=self.object_storage_conn_id), is_output=False)

    def source_rows(self, note_columns: NoteColumns) -> Generator[Mapping[str, Any], None, None]:
        """The rows of the file, each read once."""
        from airflow_provider_service.rows.files import read_rows

        return read_rows(self.path, note_columns, conn_id=self.object_storage_conn_id)
