"""What bench.rows measures: work on rows, with what users do today for it and what they do with this provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import requests

from airflow_provider_service._core.rows.batches import insert_in_batches
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.models import DataTable
from airflow_provider_service.hooks._data_tables import HookDataTables

Row = dict[str, Any]

DEFAULT_PAGE, LARGEST_PAGE = 100, 250
LARGEST_INSERT = 10_000


class Work(NamedTuple):
    """The rows of the table, and the rows to write."""

    stored: list[Row]
    given: list[Row]


class Way(NamedTuple):
    """One way to do some work.

    :param do: takes a client, the table and the rows to write.
    :param limits: how many times faster it must be than other ways, by their titles.
    :param most_mib: by how much its memory may grow.
    """

    title: str
    do: Callable[[ServiceClient, DataTable, list[Row]], object]
    limits: Mapping[str, float] = {}
    most_mib: float | None = None


class Case(NamedTuple):
    """Some work, and the ways to do it; the others are compared with the first."""

    title: str
    rows: int
    make: Callable[[int], Work]
    ways: tuple[Way, ...]


def _row(number: int, stock: int) -> Row:
    return {"sku": f"sku-{number:05}", "name": f"Article {number}", "stock": stock, "active": True}


def stored(count: int) -> Work:
    """The table holds all rows, and none is written."""
    return Work([_row(number, number) for number in range(count)], [])


def new(count: int) -> Work:
    """The table is empty."""
    return Work([], stored(count).stored)


def mixed(count: int) -> Work:
    """Half of the rows are new, 40 % are unchanged, and 10 % are changed to one of 20 values."""
    rows, half, changed = stored(count).stored, count // 2, count // 10
    return Work(rows[:half], [*(_row(number, -(number % 20) - 1) for number in range(changed)), *rows[changed:]])


def unchanged(count: int) -> Work:
    """The table already contains all rows."""
    rows = stored(count).stored
    return Work(rows, rows)


def distinct(count: int) -> Work:
    """Every row changes, each to a different value."""
    return Work(stored(count).stored, [_row(number, -number - 1) for number in range(count)])


def scattered(count: int) -> Work:
    """Every third row changes, each to a different value."""
    rows = stored(count).stored
    return Work(rows, [_row(number, -number - 1) if number % 3 == 0 else row for number, row in enumerate(rows)])


def pages_of(size: int, *, one_connection: bool) -> Callable[[ServiceClient, DataTable, list[Row]], None]:
    """Read all rows with requests."""

    def read(client: ServiceClient, table: DataTable, _rows: list[Row]) -> None:
        with requests.Session() as session:
            get, cursor = session.get if one_connection else requests.get, None
            while True:
                query = {"limit": size, "cursor": cursor}
                answer = get(_address(client, table), params=query, headers=_headers(client), timeout=60)
                answer.raise_for_status()
                if (cursor := answer.json()["nextCursor"]) is None:
                    return

    return read


def inserts_of(size: int) -> Callable[[ServiceClient, DataTable, list[Row]], None]:
    """Insert rows with requests."""

    def insert(client: ServiceClient, table: DataTable, rows: list[Row]) -> None:
        with requests.Session() as session:
            for batch in _batches(rows, size):
                body = {"data": batch, "returnType": "count"}
                answer = session.post(_address(client, table), json=body, headers=_headers(client), timeout=60)
                answer.raise_for_status()

    return insert


def one_call_a_row(client: ServiceClient, table: DataTable, rows: list[Row]) -> None:
    """Upsert rows as the service does, one at a time, with requests."""
    with requests.Session() as session:
        for row in rows:
            condition = {"columnName": "sku", "condition": "eq", "value": row["sku"]}
            body = {"filter": {"type": "and", "filters": [condition]}, "data": row}
            answer = session.post(f"{_address(client, table)}/upsert", json=body, headers=_headers(client), timeout=60)
            answer.raise_for_status()


def read_all(client: ServiceClient, table: DataTable, _rows: list[Row]) -> None:
    """Read all rows as the hook and the operators do."""
    for _ in client.data_table_rows.list(table.id):
        pass


def insert_all(client: ServiceClient, table: DataTable, rows: list[Row]) -> None:
    """Insert rows as the hook and the operators do."""
    for _ in insert_in_batches(client, table.id, rows):
        pass


def planned(strategy: Any) -> Callable[[ServiceClient, DataTable, list[Row]], object]:
    """Upsert rows as the hook and the operators do."""
    return lambda client, table, rows: HookDataTables(client).load(
        rows, data_table_id=table.id, key_columns="sku", change_strategy=strategy
    )


def _address(client: ServiceClient, table: DataTable) -> str:
    return f"{client.transport.config.base_url}/api/v1/data-tables/{table.id}/rows"


def _headers(client: ServiceClient) -> dict[str, str]:
    config = client.transport.config
    return {config.key_header: config.api_key.get_secret_value()}


def _batches(rows: list[Row], size: int) -> Iterator[list[Row]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


# What HttpOperator does by default, but for what Airflow adds to it.
_DEFAULT_PAGES = Way("requests, a connection for each page of 100", pages_of(DEFAULT_PAGE, one_connection=False))
_LARGE_PAGES = Way("requests, one connection, pages of 250", pages_of(LARGEST_PAGE, one_connection=True))
_SMALL_INSERTS = Way("requests, 100 rows a call", inserts_of(100))
_LARGE_INSERTS = Way("requests, 10,000 rows a call", inserts_of(LARGEST_INSERT))
_ONE_CALL = Way("requests, one call a row", one_call_a_row)


def _upsert(strategy: str, times: float) -> Way:
    return Way(f"`data_tables.load`, `{strategy}`", planned(strategy), {_ONE_CALL.title: times})


CASES = (
    Case(
        "read",
        20_000,
        stored,
        (
            _DEFAULT_PAGES,
            _LARGE_PAGES,
            Way(
                "`data_table_rows.list`", read_all, {_DEFAULT_PAGES.title: 1.8, _LARGE_PAGES.title: 0.87}, most_mib=3.0
            ),
        ),
    ),
    Case(
        "insert",
        100_000,
        new,
        (
            _SMALL_INSERTS,
            _LARGE_INSERTS,
            Way("`insert_in_batches`", insert_all, {_LARGE_INSERTS.title: 0.9}),
        ),
    ),
    Case("upsert: half new, 10 % changed to 20 values", 2_000, mixed, (_ONE_CALL, _upsert("update", 10))),
    Case("upsert: nothing changed", 2_000, unchanged, (_ONE_CALL, _upsert("update", 100))),
    Case(
        "upsert: all changed, each differently",
        2_000,
        distinct,
        (_ONE_CALL, _upsert("auto", 10), _upsert("update", 0.7)),
    ),
    Case(
        "upsert: every third changed, each differently",
        2_000,
        scattered,
        (_ONE_CALL, _upsert("auto", 10), _upsert("update", 0.7)),
    ),
)
