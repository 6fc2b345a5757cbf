"""Queries and inserts through the hooks of SQL databases, and the names of tables and columns in their statements.

Drivers differ in what a cursor keeps in memory, in the time zone of dates, and in what they report, so this module asks
which driver a connection has. All other knowledge of databases is that of Airflow's hooks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_provider_service._core.arguments import refuse, require
from airflow_provider_service._core.rows.batches import Progress
from airflow_provider_service._core.rows.options import require_rows
from airflow_provider_service._core.rows.source_rows import require_distinct
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceInputError

if TYPE_CHECKING:
    from airflow_provider_service._core.rows.options import LoadMode
    from airflow_provider_service._core.rows.source_rows import NoteColumns

log = logging.getLogger(__name__)

#: Rows that are inserted at a time.
INSERT_ROWS = 1_000
#: Pause before a task asks again whether another one has stopped replacing the rows of its table, which it waits for.
TURN_SECONDS = 1.0

_MYSQL = ("MySQLdb", "mysql", "pymysql")
# What drivers report if a table does not exist: SQLSTATEs of PostgreSQL and of ODBC, and numbers of MySQL and of SQL
# Server. Other databases do not distinguish it from a table that the user may not read.
_UNDEFINED_TABLE = ("42P01", "42S02", 1146, 208)

# A "#" begins the names of temporary tables, and elsewhere a comment of MySQL; "--" is a comment everywhere.
_PLAIN = r"#{0,2}[\w$]+(?:-[\w$]+)*"
_QUOTED = r'"(?:[^"\0]|"")+"', r"`(?:[^`\0]|``)+`", r"\[(?:[^\]\0]|\]\])+\]"
_PART = f"(?:{'|'.join((_PLAIN, *_QUOTED))})"
_QUOTES = '"`['
_TABLE = re.compile(rf"{_PART}(?:(?:\.{_PART}?){{0,2}}\.{_PART})?")
# The hook of the database quotes names with special characters, but not names that contain quotes.
_COLUMN = re.compile(rf"[\w $#@.-]+|{'|'.join(_QUOTED)}")


def sql_hook(conn_id: str, hook_params: Mapping[str, Any] | None) -> Any:
    from airflow.providers.common.compat.sdk import BaseHook

    hook = BaseHook.get_connection(conn_id).get_hook(hook_params=dict(hook_params or {}))
    require(
        hasattr(hook, "get_conn") and hasattr(type(hook), "dialect"), f"{conn_id!r} is not the connection of a database"
    )
    return hook


def query_rows(
    hook: Any, sql: str, parameters: Any, fetch_rows: int, note_columns: NoteColumns
) -> Generator[Mapping[str, Any], None, None]:
    """Yield the rows of a query, through a server-side cursor if the database has one."""
    with _transaction(hook) as connection, closing(_streaming_cursor(connection)) as cursor:
        cursor.execute(sql) if parameters is None else cursor.execute(sql, parameters)
        fetched = cursor.fetchmany(fetch_rows) if cursor.description or _is_postgres(connection) else None
        if not cursor.description:
            raise ServiceInputError("sql must be one query that returns rows; nothing was written")
        names = [str(column[0]) for column in cursor.description]
        require_distinct(names, "the query", ": name them with AS")
        note_columns(names)
        while fetched:
            for row in fetched:
                # The connection may use cursors that return mappings.
                values = row.values() if isinstance(row, Mapping) else row
                yield dict(zip(names, values, strict=True))
            fetched = cursor.fetchmany(fetch_rows)


def insert_all(
    hook: Any,
    table: str,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    mode: LoadMode,
    key_columns: Sequence[str] = (),
    allow_empty: bool = False,
) -> tuple[int, int | None]:
    """Write rows in one transaction: readers see all of them or none.

    Return the number of rows that were written, and of those that were deleted first; None if the driver does not tell.
    """
    progress = Progress("Inserted")
    remaining = iter(rows)
    with _transaction(hook) as connection, closing(connection.cursor()) as cursor:
        _require_table(connection, table)
        if _is_mysql(connection):
            _require_transactions(connection, table)
        if key_columns:
            statement = hook.dialect.generate_replace_sql(table, names, list(names), replace_index=list(key_columns))
        else:
            statement = hook.dialect.generate_insert_sql(table, names, list(names))
        if mode == "replace" and _is_postgres(connection):
            _take_turn(connection, table)
        try:
            if _is_postgres(connection):
                # Dates of the service are in UTC, even in columns without a time zone.
                cursor.execute("SET LOCAL timezone TO 'UTC'")
            elif _is_mysql(connection):
                # Otherwise the setting of the server may let it clip numbers and cut off text, without an error.
                cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")
            batch = list(islice(remaining, INSERT_ROWS))
            require_rows(len(batch), mode, delete_missing=False, allow_empty=allow_empty)
            deleted: int | None = 0
            if mode == "replace":
                cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - a name that was checked
                deleted = None if cursor.rowcount < 0 else cursor.rowcount
            while batch:
                _insert(hook, connection, statement, names, batch, progress.count)
                progress.reach(progress.count + len(batch))
                batch = list(islice(remaining, INSERT_ROWS))
        except BaseException:
            with suppress(Exception):  # the first error says more, and a closed connection commits nothing
                connection.rollback()
            raise
        connection.commit()
    progress.report()
    return progress.count, deleted


def _require_table(connection: Any, table: str) -> None:
    """Refuse a table that certainly does not exist, before any row is read."""
    with closing(connection.cursor()) as cursor:
        try:
            cursor.execute(f"SELECT * FROM {table} WHERE 1 = 0")  # noqa: S608 - a name that was checked
            cursor.fetchall()
        except Exception as error:
            codes = [getattr(error, "sqlstate", None), getattr(error, "pgcode", None), *error.args[:1]]
            is_of_sqlite = str(error).startswith("no such table: ")
            if not is_of_sqlite and not any(code in _UNDEFINED_TABLE for code in codes):
                # Who may write to a table need not be allowed to read it.
                with suppress(Exception):
                    connection.rollback()
                return
            raise ServiceInputError(
                f"sql_table must be an existing table, and the database has no {table}: {str(error).strip()}; no row "
                "was read or written"
            ) from error


def _require_transactions(connection: Any, table: str) -> None:
    """Refuse a table of MySQL whose storage engine has no transactions, before any row is read."""
    words = [
        word[1:-1].replace(word[-1] * 2, word[-1]) if word[0] in _QUOTES else word for word in re.findall(_PART, table)
    ]
    *_, schema, name = (None, *words)
    statement = (
        "SELECT 1 FROM information_schema.TABLES AS t JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE "
        "WHERE t.TABLE_SCHEMA = COALESCE(%s, DATABASE()) AND t.TABLE_NAME = %s AND e.TRANSACTIONS = 'NO'"
    )
    engines_without: Sequence[Any] = ()
    # Other databases with the protocol of MySQL need not have these views.
    with closing(connection.cursor()) as cursor, suppress(Exception):
        cursor.execute(statement, (schema, name))
        engines_without = cursor.fetchall()
    require(
        not engines_without,
        f"sql_table must be a table with transactions, and the storage engine of {table} has none: a failure could "
        f"lose its rows. ALTER TABLE {table} ENGINE = InnoDB gives it another one; no row was read or written",
    )


def _take_turn(connection: Any, table: str) -> None:
    """Wait until no other transaction replaces the rows of this table of PostgreSQL.

    Otherwise, a task whose worker stalled and the attempt that replaces it would both insert their rows, because the
    statement that deletes does not see rows that were committed while it waited.
    """
    number = int.from_bytes(sha256(table.encode()).digest()[:8], "big", signed=True)
    is_waiting = False
    with closing(connection.cursor()) as cursor:
        while True:
            try:
                cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (number,))
                [(is_ours,)] = cursor.fetchall()
            except Exception:  # noqa: BLE001 - other databases with the protocol of PostgreSQL need not have such locks
                connection.rollback()
                return
            if is_ours:
                return
            if not is_waiting:
                log.info("Another transaction is replacing the rows of %s; waiting for its end", table)
            is_waiting = True
            clock().sleep(TURN_SECONDS)


def _insert(
    hook: Any, connection: Any, statement: str, names: Sequence[str], rows: Sequence[Sequence[Any]], done: int
) -> None:
    try:
        with closing(connection.cursor()) as cursor:
            cursor.executemany(statement, rows)
    except Exception as error:
        if not _is_of_value(error):
            raise
        if not _rolls_back(hook, connection):
            raise ServiceInputError(
                f"rows {done + 1} to {done + len(rows)}: the database refuses one of the values: {str(error).strip()}; "
                "some rows may have been written, because nothing can be rolled back here"
            ) from error
        refused: ServiceInputError | None = None
        with suppress(Exception):  # the first error says more
            refused = _refused_value(connection, statement, names, rows, done + 1)
        if refused is None:
            raise
        raise refused from error


def _rolls_back(hook: Any, connection: Any) -> bool:
    """Whether the connection is certainly in a transaction, so that rows can be tried."""
    if hook.supports_autocommit:
        return not hook.get_autocommit(connection)
    # The hook of SQLite does not know, but its connections do.
    return getattr(connection, "in_transaction", False) is True


def _refused_value(
    connection: Any, statement: str, names: Sequence[str], rows: Sequence[Sequence[Any]], first: int
) -> ServiceInputError | None:
    """Halve a refused batch until its first refused row is left, and name the value that is refused even alone."""
    error = _refusal(connection, statement, rows)
    if error is None:
        return None
    if len(rows) > 1:
        # Rows that are in the table again can hide a refused value behind another error, so both halves are searched.
        half = len(rows) // 2
        return _refused_value(connection, statement, names, rows[:half], first) or _refused_value(
            connection, statement, names, rows[half:], first + half
        )
    if not _is_of_value(error):
        return None
    place = f"row {first}"
    for position, value in enumerate(rows[0]):
        alone = [value if column == position else None for column in range(len(names))]
        refused = None if value is None else _refusal(connection, statement, [alone])
        if refused is not None and _is_of_value(refused):
            place, error = f"{place}, column {names[position]!r}: {shown(value)}", refused
            break
    return ServiceInputError(f"{place}: the database refuses this: {str(error).strip()}; nothing was written")


def _refusal(connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> Exception | None:
    """The error with which the database refuses rows, if it does; writes nothing."""
    connection.rollback()
    try:
        with closing(connection.cursor()) as cursor:
            cursor.executemany(statement, rows)
    except Exception as error:  # noqa: BLE001 - each driver has its own
        return error
    finally:
        connection.rollback()
    return None


def _is_of_value(error: Exception) -> bool:
    # Every driver has an error of this name, and some of them check values before the database does.
    is_data_error = any(kind.__name__ == "DataError" for kind in type(error).__mro__)
    return is_data_error or isinstance(error, (ArithmeticError, ValueError))


@contextmanager
def _transaction(hook: Any) -> Iterator[Any]:
    with closing(hook.get_conn()) as connection:
        if hook.supports_autocommit:
            hook.set_autocommit(connection, False)
        if _is_mysql(connection):
            # MySQL takes and returns dates without a time zone, in the time zone of the session.
            with closing(connection.cursor()) as cursor:
                cursor.execute("SET time_zone = '+00:00'")
        yield connection


def _streaming_cursor(connection: Any) -> Any:
    # The usual cursors of these drivers load the whole result before the first row is fetched.
    if _is_postgres(connection):
        return connection.cursor(name=f"airflow_{uuid4().hex}")
    driver = _driver(connection)
    if driver in ("MySQLdb", "pymysql"):
        return connection.cursor(import_module(f"{driver}.cursors").SSCursor)
    return connection.cursor()


def _is_postgres(connection: Any) -> bool:
    return _driver(connection) in ("psycopg", "psycopg2")


def _is_mysql(connection: Any) -> bool:
    return _driver(connection) in _MYSQL


def _driver(connection: Any) -> str:
    return type(connection).__module__.partition(".")[0]


def require_table_name(name: str, value: object) -> None:
    """Refuse text that is not the name of a table: up to four words with dots between them, plain or quoted.

    A word in the middle may be left out, as in ``mydb..sales``.
    """
    if not isinstance(value, str) or not _TABLE.fullmatch(value):
        refuse(name, 'the name of a table such as shop.sales, with words such as "Sales 2026" in quotes', value)


def require_column_name(name: str, value: object) -> None:
    if not isinstance(value, str) or not _COLUMN.fullmatch(value):
        refuse(name, "the name of a column", value)
