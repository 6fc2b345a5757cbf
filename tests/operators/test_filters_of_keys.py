"""The quick check whether a filter fits into a URL agrees with its length."""

from __future__ import annotations

import pytest

from airflow_provider_service._core.rows.batches import MAX_URL_CHARS, fits_in_url
from airflow_provider_service.client._http.encoding import encode_query, to_json


@pytest.mark.parametrize("character", ["a", "\U0001f600", "\x01", '"', "é"])
@pytest.mark.parametrize("count", [1, 499, 500, 501, 583, 5000])
def test_a_text_fits_if_its_filter_does(character: str, count: int) -> None:
    condition = {"columnName": "", "condition": "eq", "value": character * count}
    length = len(encode_query({"": to_json(condition) + ","}))

    assert fits_in_url(character * count) == (length <= MAX_URL_CHARS)
