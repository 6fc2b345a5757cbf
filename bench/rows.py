"""Measure an upsert of 2,000 rows, compared with one call of the service's own upsert per row.

``python -m bench.rows`` prints a table for docs/benchmarks.md, and fails if an upsert is not as much faster as
required. The service is the simulator in a separate process, or the server given by SERVICE_URL and SERVICE_API_KEY.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any, NamedTuple
from uuid import uuid4

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.models.data_tables import DataTable
from airflow_provider_service.rows.upsert import upsert_rows
from bench.service import Service

ROWS = 2000
HEADER = "| what is upserted | way | seconds | rows a second | times faster than one call a row |"

Row = dict[str, Any]


class Work(NamedTuple):
    """The rows of the table, and the rows to upsert."""

    stored: list[Row]
    given: list[Row]


def _row(number: int, stock: int) -> Row:
    return {"sku": f"sku-{number:05}", "name": f"Article {number}", "stock": stock, "active": True}


def mixed(count: int) -> Work:
    """Half of the rows are new, 40 % are unchanged, and 10 % are changed to one of 20 values."""
    half, changed = count // 2, count // 10
    stored = [_row(number, number) for number in range(half)]
    new = [_row(number, number) for number in range(half, count)]
    return Work(stored, [*(_row(number, -(number % 20) - 1) for number in range(changed)), *stored[changed:], *new])


def unchanged(count: int) -> Work:
    """The table already contains all rows."""
    rows = [_row(number, number) for number in range(count)]
    return Work(rows, rows)


def distinct(count: int) -> Work:
    """Every row changes, each to a different value."""
    return Work(
        [_row(number, number) for number in range(count)], [_row(number, -number - 1) for number in range(count)]
    )


def scattered(count: int) -> Work:
    """Every third row changes, each to a different value."""
    stored = [_row(number, number) for number in range(count)]
    return Work(stored, [_row(number, -number - 1) if number % 3 == 0 else row for number, row in enumerate(stored)])


class Case(NamedTuple):
    """A line of the table: the work, the strategy, and how much faster than one call per row it must be."""

    title: str
    work: Callable[[int], Work]
    strategy: str
    at_least: float


CASES = (
    Case("half new, 10 % changed to 20 values", mixed, "update", 10),
    Case("nothing changed", unchanged, "update", 100),
    Case("all changed, each differently", distinct, "replace", 10),
    Case("all changed, each differently", distinct, "update", 0.7),
    Case("every third changed, each differently", scattered, "replace", 10),
    Case("every third changed, each differently", scattered, "update", 0.7),
)


@contextmanager
def table_with(client: ServiceClient, rows: list[Row]) -> Iterator[DataTable]:
    """A table with these rows, deleted afterwards."""
    types = {"sku": "string", "name": "string", "stock": "number", "active": "boolean"}
    table = client.data_tables.create(
        f"bench {uuid4().hex}", [{"name": name, "type": kind} for name, kind in types.items()]
    )
    client.data_table_rows.insert(table.id, rows)
    yield table
    client.data_tables.delete(table.id)


def one_call_a_row(client: ServiceClient, work: Work) -> float:
    """Seconds that the service's own upsert takes, row by row."""
    with table_with(client, work.stored) as table:
        begin = time.perf_counter()
        for row in work.given:
            condition = {"columnName": "sku", "condition": "eq", "value": row["sku"]}
            client.data_table_rows.upsert(table.id, {"filters": [condition]}, row)
        return time.perf_counter() - begin


def planned(client: ServiceClient, work: Work, strategy: Any) -> float:
    """Seconds that the planned upsert takes."""
    with table_with(client, work.stored) as table:
        begin = time.perf_counter()
        upsert_rows(client, table, work.given, ["sku"], change_strategy=strategy)
        seconds = time.perf_counter() - begin
        held = {row["sku"]: row["stock"] for row in client.data_table_rows.list(table.id)}
    if held != {row["sku"]: row["stock"] for row in work.given}:
        raise RuntimeError("the table does not hold what was upserted")
    return seconds


def measure(client: ServiceClient, cases: Sequence[Case], repeats: int, count: int) -> list[str]:
    """Measure all cases in turn, print the table, and return those that are too slow."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for repeat in range(repeats):
        for case in cases:
            work = case.work(count)
            alone = seconds.setdefault((case.title, ""), [])
            if len(alone) == repeat:
                alone.append(one_call_a_row(client, work))
            ours = seconds.setdefault((case.title, case.strategy), [])
            ours.append(planned(client, work, case.strategy))
            print(f"{case.title}: {ours[-1]:.2f} s by {case.strategy}, {alone[-1]:.2f} s one call a row", flush=True)
    print("", HEADER, "|---|---|---|---|---|", sep="\n")
    slow = []
    for (title, strategy), taken in seconds.items():
        ratios = [alone / one for alone, one in zip(seconds[title, ""], taken, strict=True)]
        way = f"`upsert_rows`, `{strategy}`" if strategy else "one call a row"
        faster = f"{median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})" if strategy else ""
        print(f"| {title} | {way} | {_spread(taken)} | {count / median(taken):,.0f} | {faster} |")
        slow += [
            f"{title}, {strategy}: {median(ratios):.1f} times faster, at least {case.at_least} wanted"
            for case in cases
            if (case.title, case.strategy) == (title, strategy) and median(ratios) < case.at_least
        ]
    return slow


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


@contextmanager
def service(url: str | None) -> Iterator[ServiceClient]:
    """A client of the server at an address, or of a simulator in a separate process."""
    with ExitStack() as stack:
        if url is None:
            connection = json.loads(stack.enter_context(Service(0.0)).connection)
            config = ServiceConfig(base_url=connection["host"], api_key=connection["password"])
        else:
            config = ServiceConfig(base_url=url, api_key=os.environ["SERVICE_API_KEY"], key_header="X-N8N-API-KEY")
        yield stack.enter_context(ServiceClient(config))


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.rows", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each case (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows to upsert (default: %(default)s)")
    options = parser.parse_args()
    with service(os.environ.get("SERVICE_URL")) as client:
        slow = measure(client, CASES, options.repeats, options.rows)
    if slow:
        parser.exit(1, "\n".join(["", "Too slow:", *slow, ""]))


if __name__ == "__main__":
    main()
