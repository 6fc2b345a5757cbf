"""Invalid paths, ids, times and time limits are refused before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import requests_mock

from airflow_provider_service.client import errors
from airflow_provider_service.client._http.encoding import fill_path

from .clients import Client


@pytest.fixture
def server() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        yield mocker


@pytest.mark.parametrize(
    "path",
    [
        "x",
        "",
        "/",
        "//x",
        "/x/",
        "/../../rest/login",
        "/x/./y",
        "/x?y=1",
        "/x#y",
        "/x y",
        "/x\ny",
        "/{0.__class__}",
        "/x/{",
    ],
)
def test_a_path_that_leaves_the_api_or_is_malformed_is_refused(path: str, server: requests_mock.Mocker) -> None:
    with pytest.raises(errors.ServiceInputError, match=r"not a path below the API root.*nothing was sent"):
        Client().request("GET", path)

    assert server.call_count == 0


def test_a_date_and_time_without_a_time_zone_is_refused(server: requests_mock.Mocker) -> None:
    with pytest.raises(errors.ServiceInputError, match=r"2026-01-02T03:04:00 has no time zone; nothing was sent"):
        Client().data_table_rows.insert("t", [{"day": datetime(2026, 1, 2, 3, 4)}])

    assert server.call_count == 0


@pytest.mark.parametrize(("path", "ids"), [("/x/{}", []), ("/x", ["a"]), ("/x/{}/y/{}", ["a"])])
def test_a_path_needs_as_many_ids_as_it_has_placeholders(path: str, ids: list[str]) -> None:
    with pytest.raises(errors.ServiceInputError, match=f"placeholders for ids, not {len(ids)}; nothing was sent"):
        fill_path(path, ids)


@pytest.mark.parametrize("value", ["x" * 301, 10**5000, -(10**5000)], ids=["text", "number", "negative"])
def test_an_id_that_is_too_long_is_refused(value: str | int) -> None:
    with pytest.raises(errors.ServiceInputError, match=r"cannot be used as an id: .*; nothing was sent"):
        fill_path("/x/{}", [value])


@pytest.mark.parametrize("timeout", [0, -1, "5", True, float("nan")])
def test_a_timeout_is_a_positive_number(timeout: Any, server: requests_mock.Mocker) -> None:
    with pytest.raises(errors.ServiceInputError, match="timeout must be a number of seconds above 0"):
        Client().request("GET", "/x", timeout=timeout)

    assert server.call_count == 0
