"""Measure transfers of 100,000 and 1,000,000 rows: PostgreSQL, data table, Parquet, data table, PostgreSQL.

``python -m bench.transfers`` prints a table for docs/benchmarks.md, and fails if ten times as many rows need more
memory, or if other rows come back than were sent. It starts a PostgreSQL server and, in a separate process, the
simulator.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from airflow_provider_service.testing import run_task
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from bench.measuring import Measured, measured
from bench.service import Service
from tests.databases import Postgres

SIZES = (100_000, 1_000_000)
#: Rows that are moved before each measurement.
WARM_UP_ROWS = 12_000
#: Memory by which a transfer of ten times as many rows may be larger, for the allocator's own fluctuation.
MORE_MIB = 16.0
HEADER = "| transfer | rows | seconds | rows a second | memory, MiB |"
CREATE = """
    CREATE TABLE source AS SELECT
        n AS number, 'sku-' || n AS sku, md5(n::text) AS name, (n % 100 / 4.0)::float8 AS price,
        n % 3 = 0 AS active, timestamptz '2026-01-01' + n * interval '1 second' AS sold_at
    FROM generate_series(1, {last}) AS n
"""
SELECT = "SELECT * FROM source WHERE number <= {last}"
NO_SYSTEM_COLUMNS = dict.fromkeys(("id", "createdAt", "updatedAt"))
DIGEST = "SELECT count(*), md5(string_agg(t::text, '' ORDER BY number)) FROM {table} AS t"


def transfers(folder: Path, count: int, tables: str) -> dict[str, Callable[[], Any]]:
    """The transfers in their order, each of which moves this number of rows.

    :param tables: prefix of the names of their tables and files.
    """
    first, second = {"data_table_name": f"{tables} a"}, {"data_table_name": f"{tables} b"}
    path = str(folder / f"{tables}.parquet")
    database: dict[str, Any] = {"sql_conn_id": "bench"}
    loads: dict[str, Any] = {"create_table": True, "mode": "replace"}
    source = SELECT.format(last=count)
    back = {"sql_table": f"{tables}_back", "mode": "replace"}
    operators: dict[str, Callable[[], Any]] = {
        "PostgreSQL to data table": partial(SqlToServiceDataTableOperator, sql=source, **database, **first, **loads),
        "data table to Parquet": partial(ServiceDataTableToObjectStorageOperator, path=path, **first),
        "Parquet to data table": partial(
            ObjectStorageToServiceDataTableOperator, path=path, column_mapping=NO_SYSTEM_COLUMNS, **second, **loads
        ),
        "data table to PostgreSQL": partial(ServiceDataTableToSqlOperator, **back, **database, **second),
    }
    return {title: lambda make=make: run_task(make(task_id="task")) for title, make in operators.items()}


def measure(postgres: Postgres, service: Service, sizes: tuple[int, ...]) -> list[str]:
    """Measure all transfers, print the table, and return what is wrong."""
    postgres.run_sql(CREATE.format(last=max(sizes)), database="bench")
    found: dict[tuple[str, int], Measured] = {}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for count in sizes:
            tables, small = f"rows_{count}", f"warm_{count}"
            for name in (tables, small):
                postgres.run_sql(f"CREATE TABLE {name}_back (LIKE source)", database="bench")
            warm_ups = transfers(Path(folder), WARM_UP_ROWS, small)
            for title, transfer in transfers(Path(folder), count, tables).items():
                found[title, count] = one = measured(transfer, warm_ups[title])
                service.count_requests()  # forgets them, bodies and all
                print(f"{title}, {count:,} rows: {one.seconds:.1f} s, {one.mebibytes:.1f} MiB", flush=True)
            sent = postgres.run_sql(DIGEST.format(table=f"({SELECT.format(last=count)})"), database="bench")
            if postgres.run_sql(DIGEST.format(table=f"{tables}_back"), database="bench") != sent:
                problems.append(f"other rows came back than the {count:,} that were sent")
    print("", HEADER, f"|{'---|' * (HEADER.count('|') - 1)}", sep="\n")
    for (title, count), one in found.items():
        print(f"| {title} | {count:,} | {one.seconds:.0f} | {count / one.seconds:,.0f} | {one.mebibytes:.1f} |")
        more = one.mebibytes - found[title, min(sizes)].mebibytes
        if more > MORE_MIB:
            problems.append(f"{title}: {count:,} rows need {more:.1f} MiB more than {min(sizes):,}")
    return problems


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.transfers", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES, help="numbers of rows (default: %(default)s)")
    options = parser.parse_args()
    with Postgres() as postgres, Service(0.0) as service:
        postgres.create_database("bench")
        address = {"host": postgres.host, "port": postgres.port, "login": postgres.user, "password": postgres.password}
        fields = {"conn_type": "postgres", "schema": "bench", **address}
        os.environ["AIRFLOW_CONN_BENCH"] = json.dumps(fields)
        os.environ["AIRFLOW_CONN_SERVICE_DEFAULT"] = service.connection
        problems = measure(postgres, service, tuple(options.rows))
    if problems:
        parser.exit(1, "\n".join(["", "Not as it must be:", *problems, ""]))


if __name__ == "__main__":
    main()
