"""The guide's examples of data tables; tests/docs/test_row_examples.py runs them."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator


def upsert_of_prices(prices: list[dict[str, Any]]) -> ServiceUpsertRowsOperator:
    upsert = ServiceUpsertRowsOperator(
        task_id="upsert",
        data_table_name="prices",
        rows=prices,
        key_columns=["sku"],
        change_strategy="update",  # rows keep their ids; thousands of different changes take as many calls
    )
    return upsert  # noqa: RET504 - the guide shows the task without its function
