"""Texts of the strict family, as the service writes them."""

from __future__ import annotations

import pytest

from .api_client import Api


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/data-tables?filter=", "Empty value found for query parameter 'filter'"),
        ("/data-tables?sortBy=", "Empty value found for query parameter 'sortBy'"),
        ("/data-tables?limit=", "Empty value found for query parameter 'limit'"),
        ("/data-tables?limit=abc", "request/query/limit must be number"),
        ("/data-tables?limit=-1", "Param `limit` must be a non-negative integer"),
        ("/data-tables?filter=zz", 'request/query/filter must match format "jsonString"'),
        ("/data-tables?filter=null", "Invalid filter fields"),
        ("/discover?resource=", "Empty value found for query parameter 'resource'"),
        ("/tags?limit=abc", "request/query/limit Param `limit` must be a valid integer"),
        ("/tags?limit=-1", "request/query/limit Param `limit` must be a non-negative integer"),
    ],
)
def test_queries(api: Api, path: str, message: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer.json()) == (400, {"message": message})


def test_an_unknown_key_of_a_closed_body(api: Api) -> None:
    answer = api.patch("/projects/p/folders/f", {"name": "y", "foo": 1})
    assert (answer.status_code, answer.json()) == (400, {"message": "request/body must NOT have additional properties"})


def test_a_cursor_may_stay_unencoded(api: Api) -> None:
    for name in ("a", "b"):
        api.post("/data-tables", {"name": name, "columns": []})
    cursor = api.get("/data-tables?limit=1").json()["nextCursor"]
    assert cursor.endswith("=")
    assert len(api.get(f"/data-tables?cursor={cursor}").json()["data"]) == 1
