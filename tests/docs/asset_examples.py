"""The guide's examples of assets; tests/docs/test_asset_examples.py runs them."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import DAG, AssetAlias
from airflow.providers.standard.operators.empty import EmptyOperator

from airflow_provider_service.assets.service import data_table_asset
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator

with DAG("after_prices", schedule=[data_table_asset("https://service.example.com", "hG5xK2")]):
    EmptyOperator(task_id="start")

with DAG("prices", schedule=None) as prices:
    ServiceUpsertRowsOperator(
        task_id="upsert",
        data_table_name="prices",
        rows=[{"sku": "a", "price": 1}],
        key_columns="sku",
        outlets=[AssetAlias("prices")],
    )
