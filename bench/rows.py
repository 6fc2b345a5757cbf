"""Measure reading, inserting and upserting rows, beside what users do without this provider.

``python -m bench.rows`` prints a table for docs/benchmarks.md. The service is the simulator in a separate process, or
the server given by SERVICE_URL and SERVICE_API_KEY. With a server, it fails if a way is not as much faster as it must
be; the simulator answers a call in a tenth of the time, so that ways with fewer calls gain less.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from uuid import uuid4

from airflow_provider_service._core.rows.batches import insert_in_batches
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.models import DataTable
from bench.measuring import Measured, measured, spread
from bench.row_work import CASES, Case, Row, Way, Work
from bench.service import Service

HEADER = "| job | rows | method | seconds | rows a second | memory, MiB | times faster than the first |"
TYPES = {"sku": "string", "name": "string", "stock": "number", "active": "boolean"}


@contextmanager
def table_with(client: ServiceClient, rows: list[Row]) -> Iterator[DataTable]:
    """A table with these rows, deleted afterwards."""
    columns = [{"name": name, "type": kind} for name, kind in TYPES.items()]
    table = client.data_tables.create(f"bench {uuid4().hex}", columns)
    try:
        for _ in insert_in_batches(client, table.id, rows):
            pass
        yield table
    finally:
        client.data_tables.delete(table.id)


def do(config: ServiceConfig, way: Way, table: DataTable, rows: list[Row]) -> None:
    """Do some work with a client of its own."""
    with ServiceClient(config) as client:
        way.do(client, table, rows)


def once(config: ServiceConfig, way: Way, work: Work) -> Measured:
    """Measure one way, and check what the table holds afterwards."""
    small = [{**row, "sku": f"warm-up {row['sku']}"} for row in work.given[:1]]
    with ServiceClient(config) as client, table_with(client, work.stored) as table, table_with(client, []) as other:
        found = measured(partial(do, config, way, table, work.given), partial(do, config, way, other, small))
        held = {row["sku"]: row["stock"] for row in client.data_table_rows.list(table.id)}
    expected = {row["sku"]: row["stock"] for row in (*work.stored, *work.given)}
    if held != expected:
        raise RuntimeError(f"the table does not hold what {way.title} should have written")
    return found


def measure(
    config: ServiceConfig, cases: Sequence[Case], repeats: int, rows: int | None, *, judge_times: bool
) -> list[str]:
    """Measure all cases in turn, print the table, and return what is too slow or takes too much memory."""
    found: dict[tuple[str, str], list[Measured]] = {}
    for _ in range(repeats):
        for case in cases:
            work = case.make(rows or case.rows)
            for way in case.ways:
                one = once(config, way, work)
                found.setdefault((case.title, way.title), []).append(one)
                print(f"{case.title}, {way.title}: {one.seconds:.2f} s, {one.mebibytes:.1f} MiB", flush=True)
    print("", HEADER, f"|{'---|' * (HEADER.count('|') - 1)}", sep="\n")
    problems = []
    for case in cases:
        for way in case.ways:
            these = found[case.title, way.title]
            print(_line(case, way, rows or case.rows, these, found[case.title, case.ways[0].title]))
            for title, least in way.limits.items() if judge_times else ():
                times = median(_ratios(these, found[case.title, title]))
                if times < least:
                    problems.append(f"{case.title}, {way.title}: {times:.2f} times {title}, at least {least} wanted")
            grown = median(one.mebibytes for one in these)
            if way.most_mib is not None and grown > way.most_mib:
                problems.append(f"{case.title}, {way.title}: {grown:.1f} MiB, at most {way.most_mib} wanted")
    return problems


def _line(case: Case, way: Way, rows: int, these: Sequence[Measured], first: Sequence[Measured]) -> str:
    seconds = [one.seconds for one in these]
    faster = spread(_ratios(these, first), ".1f") if these is not first else ""
    memory = spread([one.mebibytes for one in these], ".1f")
    rate = f"{rows / median(seconds):,.0f}"
    return f"| {case.title} | {rows:,} | {way.title} | {spread(seconds)} | {rate} | {memory} | {faster} |"


def _ratios(these: Sequence[Measured], others: Sequence[Measured]) -> list[float]:
    return [other.seconds / one.seconds for one, other in zip(these, others, strict=True)]


@contextmanager
def service(url: str | None) -> Iterator[ServiceConfig]:
    """The settings for the server at an address, or for a simulator in a separate process."""
    with ExitStack() as stack:
        if url is None:
            connection = json.loads(stack.enter_context(Service(0.0)).connection)
            yield ServiceConfig(base_url=connection["host"], api_key=connection["password"])
        else:
            yield ServiceConfig(base_url=url, api_key=os.environ["SERVICE_API_KEY"], key_header="X-N8N-API-KEY")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.rows", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each case (default: %(default)s)")
    parser.add_argument("--rows", type=int, help="rows of each case (default: its own number)")
    parser.add_argument("--only", default="", help="only the cases whose titles contain this text")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.title]
    url = os.environ.get("SERVICE_URL")
    with service(url) as config:
        problems = measure(config, cases, options.repeats, options.rows, judge_times=url is not None)
    if problems:
        parser.exit(1, "\n".join(["", "Not as it must be:", *problems, ""]))


if __name__ == "__main__":
    main()
