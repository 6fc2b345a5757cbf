"""The quick check whether filters fit into URLs never refuses those that do."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service._core.rows.batches import MAX_URL_CHARS, any_of_in_url, fits_in_url, may_fit_in_urls
from airflow_provider_service.client._http.encoding import encode_query, to_json

VALUES: dict[str, list[Any]] = {
    "texts": [f"sku-{number:05}" for number in range(3000)],
    "short": ["", None, *map(str, range(3000))],
    "wide": ["\U0001f600" * 20 + str(number) for number in range(200)],
    "escaped": ['"\\\x01' * 20 + str(number) for number in range(200)],
    "numbers": [*range(3000)],
    "fractions": [number / 8 for number in range(1000)],
    "flags": [True, False, None],
}


@pytest.mark.parametrize("name", VALUES)
def test_it_never_refuses_what_fits(name: str) -> None:
    values = VALUES[name]
    needed = len([*any_of_in_url("column", values)])

    assert may_fit_in_urls("column", values, needed)
    # It is of use: far fewer URLs are refused without a look at each value.
    assert name == "flags" or not may_fit_in_urls("column", values, needed // 10)


@pytest.mark.parametrize("character", ["a", "\U0001f600", "\x01", '"', "é"])
@pytest.mark.parametrize("count", [1, 499, 500, 501, 583, 5000])
def test_a_text_fits_if_its_filter_does(character: str, count: int) -> None:
    condition = {"columnName": "", "condition": "eq", "value": character * count}
    length = len(encode_query({"": to_json(condition) + ","}))

    assert fits_in_url(character * count) == (length <= MAX_URL_CHARS)
