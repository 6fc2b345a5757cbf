"""The guide's examples of assets do what the guide says."""

from __future__ import annotations

from collections import defaultdict

from airflow_provider_service.assets.service import data_table_asset
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from tests.lineage.test_assets import Outlets
from tests.operators.conftest import FakeTaskInstance


def test_a_task_that_writes_emits_to_its_alias(simulator: ServiceSimulator, client: ServiceClient) -> None:
    from .asset_examples import prices

    table = client.data_tables.create(
        "prices", [{"name": "sku", "type": "string"}, {"name": "price", "type": "number"}]
    )
    emitted: defaultdict[object, Outlets] = defaultdict(Outlets)
    [task] = prices.tasks
    with task.hook:
        task.execute({"ti": FakeTaskInstance(), "task": task, "outlet_events": emitted})
    [(alias, outlets)] = emitted.items()
    counts = {"inserted": 1, "updated": 0, "unchanged": 0, "deleted": 0}
    assert alias == task.outlets[0]
    assert outlets.added == [(data_table_asset(simulator.base_url, table.id).uri, counts)]
