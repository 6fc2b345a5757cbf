"""Workers that are killed at random moments of a transfer from or to PostgreSQL, and the attempts after them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.transfers.data_table_to_sql import ServiceDataTableToSqlOperator
from airflow_provider_service.transfers.sql_to_data_table import SqlToServiceDataTableOperator
from tests.runs.moments import connections, seed_of_the_day, soon
from tests.runs.task_run import TaskRun
from tests.runs.victims import FORKS, attempt

KILLS = int(os.environ.get("KILLS", "4"))
SLOW_SECONDS = 0.02
COLUMNS = [{"name": "k", "type": "string"}, {"name": "n", "type": "number"}]
OLD = [(f"k{number:04}", number) for number in range(3_000)]
# Most stay as they are; of the others, some change, some go, and some are new.
NEW = [(key, number if number % 120 else -number - 1) for key, number in OLD[:2_950]] + [("new", 1), ("ä\r\n", None)]


def kill(run: TaskRun, chance: random.Random, requests: Callable[[], int], whole: int) -> None:
    """Execute an attempt in another process, and kill it after some of its requests."""
    process = FORKS.Process(target=attempt, args=(connections(), run, 1))
    process.start()
    seen = chance.randint(0, whole)
    soon(lambda: requests() >= seen or not process.is_alive())
    time.sleep(chance.uniform(0, 4 * SLOW_SECONDS))
    process.kill()
    process.join()
    process.close()


def test_a_table_of_the_database_is_the_old_or_the_new_one(simulator: ServiceSimulator, client: ServiceClient, query):
    table = client.data_tables.create("t", COLUMNS)
    client.data_table_rows.insert(table.id, [{"k": key, "n": number} for key, number in NEW])
    query("CREATE TABLE t (k text, n int)")
    options: dict[str, Any] = {"data_table_name": "t", "sql_table": "t", "sql_conn_id": "shop", "mode": "replace"}
    first_seed = seed_of_the_day()
    for seed in range(first_seed, first_seed + KILLS):
        query("TRUNCATE t")
        query("INSERT INTO t VALUES (%s, %s)", OLD)
        simulator.clear_requests()
        simulator.inject("latency", seconds=SLOW_SECONDS, times=None)
        run = TaskRun(ServiceDataTableToSqlOperator, options)
        kill(run, random.Random(seed), lambda: len(simulator.requests), whole=14)
        simulator.clear_faults()
        assert sorted(query("SELECT * FROM t")) in (OLD, sorted(NEW)), f"KILL_SEED={seed}"
        run.attempt(2)
        run.close()
        assert sorted(query("SELECT * FROM t")) == sorted(NEW), f"KILL_SEED={seed}"


def test_a_data_table_becomes_the_result_of_the_query(simulator: ServiceSimulator, client: ServiceClient, query):
    table = client.data_tables.create("t", COLUMNS)
    query("CREATE TABLE t (k text, n int)")
    query("INSERT INTO t VALUES (%s, %s)", NEW)
    source: dict[str, Any] = {"sql": "SELECT * FROM t", "sql_conn_id": "shop"}
    options = {**source, "data_table_name": "t", "key_columns": "k", "delete_missing": True}
    first_seed = seed_of_the_day()
    for seed in range(first_seed, first_seed + KILLS):
        client.data_table_rows.clear(table.id)
        client.data_table_rows.insert(table.id, [{"k": key, "n": number} for key, number in OLD])
        simulator.clear_requests()
        simulator.inject("latency", seconds=SLOW_SECONDS, times=None)
        run = TaskRun(SqlToServiceDataTableOperator, options)
        kill(run, random.Random(seed), lambda: len(simulator.requests), whole=40)
        simulator.clear_faults()
        run.attempt(2)  # what is on its way may arrive during this attempt, or after it
        soon(lambda: all(one.is_over for one in simulator.requests))
        run.attempt(3)
        done = run.attempt(4)
        run.close()
        held = sorted((row["k"], row["n"]) for row in client.data_table_rows.list(table.id))
        assert held == sorted(NEW), f"KILL_SEED={seed}"
        changes = [done[count] for count in ("inserted", "updated", "unchanged", "deleted")]
        assert changes == [0, 0, len(NEW), 0], f"KILL_SEED={seed}"
