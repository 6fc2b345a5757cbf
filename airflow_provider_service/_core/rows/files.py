"""Files of rows: written complete or not at all, and read as a stream. The ending of the name chooses the format."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_provider_service._airflow.arguments import as_texts, require
from airflow_provider_service._core.object_storage import reading, require_place, whole_file
from airflow_provider_service._core.rows.formats import format_of
from airflow_provider_service._core.rows.source_rows import NoteColumns, SourceRow, ignore_columns
from airflow_provider_service._core.rows.values import types_of_stored_rows
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.object_storage import StoredPath


def chosen_types(types: Mapping[str, str], columns: object, *, with_system_columns: bool) -> dict[str, str]:
    """Return the chosen columns with their types, in the order in which they were chosen.

    :param types: types of the columns that can be written.
    :param columns: names of columns, including those of the service; None for all.
    :param with_system_columns: whether "all" includes the columns of the service.
    :raises ServiceInputError: a name is unknown or given twice, or no name is given.
    """
    known = types_of_stored_rows(types)
    if columns is None:
        return known if with_system_columns else dict(types)
    names = as_texts("columns", columns)
    unknown = [name for name in names if name not in known]
    require(not unknown, f"columns names {', '.join(unknown)}, which the table lacks; it has {', '.join(known)}")
    require(names and len(set(names)) == len(names), "columns must name at least one column, each once")
    return {name: known[name] for name in names}


def write_rows(
    path: StoredPath,
    types: Mapping[str, str],
    rows: Iterable[SourceRow],
    *,
    neutralize_formulas: bool = True,
    conn_id: str | None = None,
) -> int:
    """Write rows to a file, and return their number. Safe to repeat: the complete file replaces the existing one.

    :param path: path or address that ends in ``.csv``, ``.jsonl`` or ``.parquet``; the first two may end in ``.gz``.
    :param types: types by column, in the order in which they are written.
    :param neutralize_formulas: put an apostrophe before text in a ``.csv`` file that looks like a formula.
    :param conn_id: Airflow connection of the object storage, unless the address names one.
    :raises ServiceInputError: the path has another ending, or the file could never be written there.
    """
    file_format = format_of("path", path, neutralize_formulas=neutralize_formulas)
    require_place("path", path, conn_id=conn_id)
    with whole_file("path", path, conn_id=conn_id) as file:
        return file_format.write(file, types, rows)


def read_rows(
    path: StoredPath, note_columns: NoteColumns = ignore_columns, *, conn_id: str | None = None
) -> Generator[SourceRow, None, None]:
    """Read the rows of a file, whose values are all text or None if it is a ``.csv`` file. Safe to repeat.

    :param path: path or address that ends in ``.csv``, ``.jsonl`` or ``.parquet``; the first two may end in ``.gz``.
    :param note_columns: called with the names of the columns before the first row, if the format has them.
    :param conn_id: Airflow connection of the object storage, unless the address names one.
    :raises ServiceInputError: the path has another ending, or the file does not have the format of its ending.
    :raises FileNotFoundError: there is no such file.
    """
    file_format = format_of("path", path)
    with reading("path", path, conn_id=conn_id) as file:
        try:
            yield from file_format.read(file, note_columns)
        except ServiceInputError as error:
            raise ServiceInputError(f"{str(path)!r}: {error}") from error
