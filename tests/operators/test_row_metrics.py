"""What operators of rows report to Airflow's metrics."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.operators.rows import ServiceInsertRowsOperator, ServiceUpsertRowsOperator


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("update", {"inserted": 2, "updated": 1}), ("replace", {"inserted": 3, "deleted": 1})],
)
def test_rows_are_counted(execute: Any, table: Any, metrics: Any, strategy: str, expected: dict[str, int]) -> None:
    def counted() -> dict[str, int]:
        rows = {name: number for name, number in metrics.counters.items() if name.startswith("service.rows.")}
        return {name.removeprefix("service.rows."): number for name, number in rows.items()}

    execute(
        ServiceInsertRowsOperator, data_table_id=table.id, rows=[{"sku": "a", "stock": 1}, {"sku": "b", "stock": 2}]
    )
    assert counted() == {"inserted": 2}
    metrics.counters.clear()
    rows = [{"sku": "a", "stock": 1}, {"sku": "b", "stock": 3}, {"sku": "c", "stock": 4}, {"sku": "d", "stock": 5}]
    options = {"key_columns": ["sku"], "change_strategy": strategy}
    execute(ServiceUpsertRowsOperator, data_table_id=table.id, rows=rows, **options)
    assert counted() == expected
