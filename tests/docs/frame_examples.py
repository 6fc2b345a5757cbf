"""The guide's examples of DataFrames; tests/docs/test_frame_examples.py runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas

from airflow_provider_service.hooks.service import ServiceHook


def load_frame(prices: pandas.DataFrame) -> dict[str, Any]:
    with ServiceHook() as service:
        return service.data_tables.load(prices, data_table_name="prices", key_columns="sku", create_table=True)


def load_large_file(path: Path) -> dict[str, Any]:
    def changed() -> Iterator[pandas.DataFrame]:
        for chunk in pandas.read_csv(path, chunksize=50_000):  # one chunk in memory at a time
            yield chunk[chunk["changed"]].drop(columns="changed")

    with ServiceHook() as service:
        return service.data_tables.load(changed(), data_table_name="prices", key_columns="sku")


def mean_price() -> float:
    with ServiceHook() as service:
        prices = service.data_tables.to_pandas(data_table_name="prices", columns=["sku", "price"])
    return float(prices["price"].mean())
