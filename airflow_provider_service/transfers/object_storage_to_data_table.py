"""Transfer a file in object storage into a data table."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service._core.arguments import require
from airflow_provider_service.transfers._loading import ServiceLoadTableOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import Templated
    from airflow_provider_service._core.lineage import Lineage
    from airflow_provider_service._core.object_storage import StoredPath
    from airflow_provider_service._core.rows.source_rows import NoteColumns
    from airflow_provider_service.operators.table_results import LoadTableResult
    from airflow_provider_service.transfers._loading import LoadArguments

__all__ = ["ObjectStorageToServiceDataTableOperator"]


class ObjectStorageToServiceDataTableOperator(ServiceLoadTableOperator):
    """Load a file of rows into a data table. Safe to repeat, except with ``mode="append"``.

    The task reads the rows once and checks them on disk before it writes anything, so memory does not depend on their
    number. If the table cannot store a value, the error names its row and column. A ``.csv`` file holds only text,
    which becomes a value of the column's type; an empty cell without quotes is null. The guide ``docs/transfers.md``
    describes what readers of the table see in the meantime.

    :param path: file to read, a path or an address such as ``s3://conn_id@bucket/key.csv``. Its ending chooses the
        format: ``.csv``, ``.jsonl`` or ``.parquet`` (needs the extra ``parquet``); the first two may end in ``.gz``.
        ``object_storage_conn_id`` is its Airflow connection, unless the address names one.
    :param kwargs: the arguments of :class:`ServiceLoadTableOperator`, and those of any task.
    :returns: a :class:`LoadTableResult`: numbers of rows that were read and left out, and of the changes to the table;
        ``deleted`` is None if ``mode="replace"`` could not count them.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceLoadTableOperator.template_fields, "path")

    def __init__(self, *, path: Templated[StoredPath], **kwargs: Unpack[LoadArguments]) -> None:
        super().__init__(**kwargs)
        self.path = cast("StoredPath", path)  # once Airflow has rendered it
        self.check_arguments()

    def other_lineage(self) -> Lineage | None:
        from airflow_provider_service._core.lineage import of_file
        from airflow_provider_service._core.object_storage import address_of

        return of_file(address_of(self.path, conn_id=self.object_storage_conn_id), is_output=False)

    def perform(self, context: Context) -> LoadTableResult:
        from airflow_provider_service._core.object_storage import is_same_file

        rejects, conn_id = self.reject_path, self.object_storage_conn_id
        is_source = rejects is not None and is_same_file(self.path, rejects, conn_id=conn_id)
        require(not is_source, "reject_path is the file to read, which it would replace; nothing was written")
        return super().perform(context)

    def source_rows(self, note_columns: NoteColumns) -> Generator[Mapping[str, Any], None, None]:
        from airflow_provider_service._core.rows.files import read_rows

        return read_rows(self.path, note_columns, conn_id=self.object_storage_conn_id)
