"""Processes that are killed at random moments of a load: the next loads produce the expected table."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.moments import seed_of_the_day, soon
from tests.runs.victims import FORKS

from .loading import load, load_in_a_process

KILLS = int(os.environ.get("KILLS", "4"))
#: Before the service acts on a request, or before it answers.
SLOW_SECONDS = 0.02
BEFORE = [{"k": f"k{number:02}", "n": number} for number in range(24)]
# A third stays as it is, a third changes, a third is missing, and a third is new.
ROWS = [{"k": f"k{number:02}", "n": number if number < 8 else -number} for number in (*range(16), *range(50, 58))]
UPSERT = {"keys": ("k",), "delete_missing": True}

LOADS: dict[str, dict[str, Any]] = {
    "replace": {"mode": "replace"},
    "upsert": {"mode": "upsert", **UPSERT},
    "upsert by replacing": {"mode": "upsert", **UPSERT, "change_strategy": "replace"},
}


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("name", LOADS)
def test_the_next_load_completes_what_was_killed(simulator: ServiceSimulator, client: ServiceClient, name: str) -> None:
    options, first_seed = LOADS[name], seed_of_the_day()
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)
    columns = [{"name": "k", "type": "string"}, {"name": "n", "type": "number"}]
    table = client.data_tables.create("t", columns)

    def held() -> list[tuple[Any, ...]]:
        return sorted((row["k"], row["n"]) for row in client.data_table_rows.list(table.id))

    def load_here() -> Any:
        return load(client, table, ROWS, **options)

    def requests() -> int:
        return len([one for one in simulator.requests if one.method != "GET"])

    expected = sorted((row["k"], row["n"]) for row in ROWS)
    client.data_table_rows.insert(table.id, BEFORE)
    simulator.clear_requests()
    load_here()
    whole, fell = requests(), Counter[int]()
    for seed in range(first_seed, first_seed + KILLS):
        chance = random.Random(seed)
        client.data_table_rows.clear(table.id)
        client.data_table_rows.insert(table.id, BEFORE)
        simulator.clear_requests()
        simulator.inject("latency", seconds=SLOW_SECONDS, times=None, after_processing=chance.random() < 0.5)
        process = FORKS.Process(target=load_in_a_process, args=(config, table.id, ROWS), kwargs=options)
        process.start()
        seen = chance.randint(1, whole)
        soon(lambda: requests() >= seen or not process.is_alive())  # noqa: B023 - called at once
        time.sleep(chance.uniform(0, 2 * SLOW_SECONDS))
        process.kill()
        process.join()
        process.close()
        simulator.clear_faults()
        fell[requests()] += 1
        present = {key for key, _ in held()}
        is_old_or_new = present >= {row["k"] for row in BEFORE} or present >= {row["k"] for row in ROWS}
        assert is_old_or_new if name == "replace" else present >= {row["k"] for row in ROWS[:16]}, f"KILL_SEED={seed}"

        load_here()  # what is on its way may arrive during this load, or after it
        soon(lambda: all(one.is_over for one in simulator.requests))
        load_here()
        assert held() == expected, f"KILL_SEED={seed}"
        if name != "replace":
            again = load_here()
            assert (again.inserted, again.updated, again.unchanged, again.deleted) == (0, 0, len(ROWS), 0)
    print(f"{name}: of {whole} requests that write, so many had come at the kills: {sorted(fell.elements())}")


SPOOLING = """
import pathlib, signal, sys
from airflow_provider_service._core.rows.spool import Spool
with Spool() as spool:
    for number in range(int(sys.argv[1])):
        spool.requested[(number,)] = {"text": "x" * 1_000}
    print(*(one.resolve() for one in pathlib.Path("/proc/self/fd").iterdir()), sep=";", flush=True)
    signal.pause()
"""


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 30_000])  # so many do not fit into the memory of a spool
def test_a_load_that_is_killed_leaves_no_rows_on_disk(tmp_path: Path, rows: int) -> None:
    command = [sys.executable, "-c", SPOOLING, str(rows)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        files = process.stdout.readline().split(";")
        process.kill()
    assert any(one.startswith(str(tmp_path)) for one in files) == (rows > 1)
    assert list(tmp_path.rglob("*")) == []
