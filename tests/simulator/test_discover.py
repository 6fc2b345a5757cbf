from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from .api_client import Api


def discover(api: Api, query: str = "", scopes: Iterable[str] | None = None, connect: Any = None) -> dict[str, Any]:
    caller = api if scopes is None else connect(api.simulator, api.simulator.create_key(scopes))
    answer = caller.get(f"/discover{query}")
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def test_a_key_that_may_do_everything(api: Api) -> None:
    data = discover(api)
    assert list(data) == ["scopes", "resources", "filters", "specUrl"]
    assert data["specUrl"] == "/api/v1/openapi.yml"
    assert {"tag:create", "workflow:deactivate", "dataTableRow:upsert"} <= set(data["scopes"])
    assert set(data["resources"]) == set(data["filters"]["resource"]["values"])
    assert {"tags", "workflow", "executions", "datatable", "credential", "folders"} <= set(data["resources"])
    assert set(data["resources"]["tags"]["operations"]) == {"list", "create", "read", "update", "delete"}
    endpoints = {(e["method"], e["path"]) for e in data["resources"]["tags"]["endpoints"]}
    assert ("PUT", "/api/v1/tags/{tagId}") in endpoints


def test_scopes_decide_what_is_shown(api: Api, connect: Callable[..., Api]) -> None:
    data = discover(api, scopes=["tag:list"], connect=connect)
    assert data["scopes"] == ["tag:list"]
    assert data["resources"]["tags"]["operations"] == ["list"]
    assert [e["path"] for e in data["resources"]["tags"]["endpoints"]] == ["/api/v1/tags"]
    assert "variables" not in data["resources"]
    bare = discover(api, scopes=[], connect=connect)
    assert bare["scopes"] == []
    assert bare["resources"]["discover"]["operations"] == []


@pytest.mark.parametrize(
    ("query", "resources"),
    [
        ("?operation=upsert", {"datatable"}),
        ("?operation=nope", set()),
    ],
)
def test_filters(api: Api, query: str, resources: set[str]) -> None:
    assert set(discover(api, query)["resources"]) == resources


def test_schemas_are_inlined_when_requested(api: Api) -> None:
    query = "?resource=datatable&include=schemas"
    endpoints = discover(api, query)["resources"]["datatable"]["endpoints"]
    by_path = {(e["method"], e["path"]): e.get("requestSchema") for e in endpoints}
    assert by_path["GET", "/api/v1/data-tables"] is None
    assert by_path["PATCH", "/api/v1/data-tables/{dataTableId}"] == {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 128}},
        "required": ["name"],
    }
    insert = by_path["POST", "/api/v1/data-tables/{dataTableId}/rows"]
    assert insert is not None
    assert insert["properties"]["returnType"] == {"type": "string", "enum": ["count", "id", "all"]}
    assert insert["properties"]["data"]["minItems"] == 1
    assert all("requestSchema" not in e for e in discover(api, "?resource=tags")["resources"]["tags"]["endpoints"])


def test_queries_that_are_refused(api: Api) -> None:
    answer = api.get("/discover?include=zz")
    assert (answer.status_code, answer.json()) == (
        400,
        {"message": "request/query/include must be equal to one of the allowed values: schemas"},
    )
