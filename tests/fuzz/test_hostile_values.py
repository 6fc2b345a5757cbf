"""Everything that reads answers of the service gets hostile ids, names, numbers and types.

Whatever answer a surface gets, it ends with a value or with a named error, and writes no file outside its folder. A
failure names the surface and the seed; ``SEEDS=100 make test test-slow`` tries more seeds.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from airflow.exceptions import AirflowException
from airflow.providers.common.compat.sdk import AirflowSkipException

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.get_provider_info import get_provider_info
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._passing_time import time_passes_at
from tests.operators.test_every_operator import public_operators

from .hostile import KINDS
from .surfaces import CALLER, SURFACES, Place, Surface, fill

SEEDS = int(os.environ.get("SEEDS", "1"))
NAMED = (ServiceError, AirflowException)


@pytest.fixture
def place(
    simulator: ServiceSimulator, client: ServiceClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Place]:
    """``place()`` makes a filled service, and a folder deep below that of the test."""
    folder = tmp_path / "a/b/c/d/folder"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    fields = json.loads(simulator.connection_json())
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**fields, "extra": {"retry_deadline": 0}}))
    n8n = {"conn_type": "n8n", "host": simulator.base_url, "password": simulator.api_key}
    monkeypatch.setenv("AIRFLOW_CONN_N8N", json.dumps({**n8n, "extra": {"retry_deadline": 0}}))
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "sqlite", "host": str(folder / "shop.sqlite")}))
    orders = {"conn_type": "generic", "login": "X-Key", "password": "a-secret"}
    monkeypatch.setenv("AIRFLOW_CONN_ORDERS", json.dumps(orders))

    def make() -> Place:
        simulator.reset()
        with closing(sqlite3.connect(folder / "shop.sqlite")) as database:
            database.executescript(
                "DROP TABLE IF EXISTS articles; DROP TABLE IF EXISTS stock;"
                "CREATE TABLE articles (sku TEXT, amount REAL);"
                "CREATE TABLE stock (sku TEXT, amount REAL); INSERT INTO articles VALUES ('c', 3), ('e', 1);"
            )
        (folder / "files").mkdir(exist_ok=True)
        (folder / "files/caller.json").write_text(json.dumps(CALLER))
        (folder / "stock.jsonl").write_text('{"sku": "c", "amount": 3}\n')
        return Place(simulator, folder, *fill(simulator, client))

    return make


@pytest.fixture(scope="module")
def counts() -> Iterator[dict[str, Counter[str]]]:
    """How many inputs each surface got, and how they ended; ``pytest -s`` shows it. Any other error fails the test."""
    counts = defaultdict[str, Counter[str]](Counter)
    yield counts
    for name, one in [*counts.items(), ("all surfaces", sum(counts.values(), Counter[str]()))]:
        print(f"\n{name}: {dict(one)}", end="")


def outcome(surface: Surface, place: Place) -> str:
    """How a surface ends; anything but a value or a named error breaks the test."""
    with time_passes_at(place.simulator):
        try:
            surface(place)
        except NAMED as error:
            str(error).encode(errors="backslashreplace")
            return type(error).__name__
    return "a value"


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("name", SURFACES)
def test_a_surface_works_on_the_service_as_it_is(place: Callable[[], Place], name: str) -> None:
    assert outcome(SURFACES[name], place()) in ("a value", AirflowSkipException.__name__)


@pytest.mark.slow(one_in=10)
@pytest.mark.parametrize("name", SURFACES)
def test_a_surface_ends_with_a_value_or_a_named_error(
    place: Callable[[], Place], tmp_path: Path, counts: dict[str, Counter[str]], name: str
) -> None:
    for kind, hostile in KINDS.items():
        for seed in range(SEEDS):
            made = place()
            layer = hostile(random.Random(f"{name} {kind} {seed}"))
            made.simulator.wrap(layer.around)
            try:
                ended = outcome(SURFACES[name], made)
            except Exception as error:
                error.add_note(f"{name}: {kind}, seed {seed}")
                raise
            counts[name].update(inputs=1, changes=layer.count)
            counts[name]["values" if ended == "a value" else "named errors"] += 1
            outside = [one for one in tmp_path.rglob("*") if one.is_file() and made.folder not in one.parents]
            assert not outside, f"{name}: {kind}, seed {seed}"


def test_every_operator_transfer_sensor_and_trigger_is_a_surface() -> None:
    info = get_provider_info()
    modules = {one for kind in ("sensors", "triggers") for listed in info[kind] for one in listed["python-modules"]}
    kinds = {kind for one in SURFACES.values() for kind in getattr(one, "kinds", ())}
    assert {one.__name__ for one in public_operators()} <= {one.__name__ for one in kinds}
    assert modules <= {one.__module__ for one in kinds}
