"""Workers that are killed at chosen points of an upsert, and how the next runs repair what they leave behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.models import DataTable
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.simulator import ServiceSimulator

from . import victims
from .moments import connections, soon
from .task_run import TaskRun

pytestmark = pytest.mark.real_time  # processes are killed

LATE_SECONDS = 0.8
COUNT = 30
STORED = [{"sku": f"s{number:03}", "stock": number, "shop": f"shop {number}"} for number in range(COUNT)]
CHANGED = [{"sku": row["sku"], "stock": -row["stock"]} for row in STORED]
NEW = [{"sku": f"n{number}", "stock": number} for number in range(20)]
OTHERS = [{"sku": "other", "stock": 1}, {"sku": "other", "stock": 1}]


class Scene:
    """A service, and how far an upsert of a worker has come there."""

    def __init__(self, simulator: ServiceSimulator, client: ServiceClient, table: DataTable) -> None:
        self.simulator, self.client, self.table = simulator, client, table

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table, sorted."""
        listed = self.client.data_table_rows.list(self.table.id)
        return sorted(((row["sku"], row["stock"], row["shop"]) for row in listed), key=str)

    def late(self, method: str, path: str, *, after_processing: bool = False) -> None:
        """Delay requests before the service acts on them, or before it answers."""
        options: dict[str, Any] = {"seconds": LATE_SECONDS, "after_processing": after_processing, "times": None}
        self.simulator.inject("latency", method=method, path=path, **options)

    def came(self, method: str, path: str, count: int = 1, *, answered: bool = False) -> None:
        """Return once this number of requests, other than dry runs, has arrived."""

        def seen() -> bool:
            requests = [one for one in self.simulator.requests if one.path.endswith(path) and "dryRun" not in one.query]
            # A worker that dies between the head of a request and its body has requested nothing.
            whole = [one for one in requests if one.method == method and (one.body or method in ("GET", "DELETE"))]
            return len([one for one in whole if one.status or not answered]) >= count

        soon(seen)

    def has_inserted(self) -> None:
        """Return once the service has acted on the insert, but has not answered yet."""
        rows = self.simulator.state.data_tables.get(self.table.id).rows
        soon(lambda: len(rows) > len(STORED) + len(OTHERS))

    def settle(self) -> None:
        """Return once the service has acted on all requests."""
        soon(lambda: all(one.is_over for one in self.simulator.requests))


def reading(scene: Scene) -> Iterator[None]:
    scene.late("GET", "/rows$")
    yield
    scene.came("GET", "/rows")


def insert_on_its_way(scene: Scene) -> Iterator[None]:
    scene.late("POST", "/rows$")
    yield
    scene.came("POST", "/rows")


def insert_not_answered(scene: Scene) -> Iterator[None]:
    scene.late("POST", "/rows$", after_processing=True)
    yield
    scene.has_inserted()


def between_insert_and_delete(scene: Scene) -> Iterator[None]:
    yield from insert_not_answered(scene)
    scene.simulator.inject("status", method="DELETE", path="/rows/delete$", status=503, retry_after=5, times=None)
    scene.came("DELETE", "/rows/delete")


def delete_on_its_way(scene: Scene) -> Iterator[None]:
    yield from insert_not_answered(scene)
    scene.late("DELETE", "/rows/delete$")
    scene.came("DELETE", "/rows/delete")


def delete_not_answered(scene: Scene) -> Iterator[None]:
    yield from insert_not_answered(scene)
    scene.late("DELETE", "/rows/delete$", after_processing=True)
    scene.came("DELETE", "/rows/delete")


def between_updates(scene: Scene) -> Iterator[None]:
    scene.simulator.inject("latency", method="PATCH", path="/rows/update$", seconds=0.02, times=None)
    yield
    scene.came("PATCH", "/rows/update", 5, answered=True)


MOMENTS: dict[str, list[Callable[[Scene], Iterator[None]]]] = {
    "update": [reading, between_updates, insert_on_its_way, insert_not_answered],
    "replace": [
        reading,
        insert_on_its_way,
        insert_not_answered,
        between_insert_and_delete,
        delete_on_its_way,
        delete_not_answered,
    ],
}


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("policy", ["remove_copies", "keep_newest"])
@pytest.mark.parametrize(("strategy", "moment"), [(way, one) for way, moments in MOMENTS.items() for one in moments])
def test_no_row_is_lost_or_duplicated(
    simulator: ServiceSimulator,
    client: ServiceClient,
    strategy: str,
    moment: Callable[[Scene], Iterator[None]],
    policy: str,
) -> None:
    types = {"sku": "string", "stock": "number", "shop": "string"}
    table = client.data_tables.create("stock", [{"name": name, "type": kind} for name, kind in types.items()])
    client.data_table_rows.insert(table.id, [*STORED, *OTHERS])
    scene = Scene(simulator, client, table)
    run = TaskRun(
        ServiceUpsertRowsOperator,
        {
            "data_table_id": table.id,
            "rows": [*CHANGED, *NEW],
            "key_columns": ["sku"],
            "change_strategy": strategy,
            "on_stored_duplicates": policy,
        },
    )
    simulator.clear_requests()
    steps = moment(scene)
    next(steps)
    worker = victims.FORKS.Process(target=victims.attempt, args=(connections(), run, 1))
    worker.start()
    assert next(steps, "there") == "there"
    worker.kill()
    worker.join()
    worker.close()
    simulator.clear_faults()

    run.attempt(2)  # what is on its way may arrive during this attempt, or after it
    scene.settle()
    run.attempt(3)

    shops = {row["sku"]: row["shop"] for row in STORED}
    expected = [(row["sku"], row["stock"], shops.get(row["sku"])) for row in [*CHANGED, *NEW, *OTHERS]]
    assert scene.rows() == sorted(expected, key=str)
    done = run.attempt(4)
    run.close()
    assert [done[count] for count in ("inserted", "updated", "unchanged", "deleted")] == [
        0,
        0,
        len(CHANGED) + len(NEW),
        0,
    ]
