"""The order of checks, the two endpoint families' texts, paging, and the answers that are no JSON."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import requests

from airflow_provider_service.simulator import ServiceSimulator

from .api_client import Api

HTML = "text/html; charset=utf-8"
LICENSE = "Your license does not allow for {0}. To enable {0}, please upgrade to a license that supports this feature."


def refused(response: requests.Response, status: int, message: str) -> None:
    assert (response.status_code, response.json()) == (status, {"message": message})


# ---------------------------------------------------------------- keys, scopes, license


def test_missing_key_is_told_in_each_familys_words(simulator: ServiceSimulator) -> None:
    refused(requests.get(f"{simulator.api_url}/workflows", timeout=5), 401, "Unauthorized")
    refused(requests.get(f"{simulator.api_url}/users", timeout=5), 401, "'X-N8N-API-KEY' header required")


def test_wrong_key_is_told_in_each_familys_words(simulator: ServiceSimulator, connect: Any) -> None:
    stranger = connect(simulator, "wrong")
    refused(stranger.get("/workflows"), 401, "Unauthorized")
    refused(stranger.get("/users"), 401, "unauthorized")


@pytest.mark.parametrize("header", ["X-SERVICE-API-KEY", "x-n8n-api-key"])
def test_either_header_carries_the_key(simulator: ServiceSimulator, header: str) -> None:
    answer = requests.get(f"{simulator.api_url}/workflows", headers={header: simulator.api_key}, timeout=5)
    assert answer.json() == {"data": [], "nextCursor": None}


def test_bearer_token_is_no_key(simulator: ServiceSimulator) -> None:
    headers = {"Authorization": f"Bearer {simulator.api_key}"}
    refused(requests.get(f"{simulator.api_url}/workflows", headers=headers, timeout=5), 401, "Unauthorized")


def test_revoked_key_is_refused(simulator: ServiceSimulator, connect: Any) -> None:
    key = simulator.create_key()
    guest = connect(simulator, key)
    assert guest.get("/workflows").status_code == 200
    simulator.revoke_key(key)
    refused(guest.get("/workflows"), 401, "Unauthorized")


def test_scope_is_checked_before_the_body_in_the_lenient_family_only(simulator: ServiceSimulator, connect: Any) -> None:
    guest = connect(simulator, simulator.create_key(["workflow:read"]))
    refused(guest.post("/tags", {}), 403, "Forbidden")
    refused(guest.post("/data-tables", {}), 400, "request/body must have required property 'name'")
    refused(guest.post("/data-tables", {"name": "t", "columns": []}), 403, "Forbidden")


def test_unlicensed_feature_is_refused(build: Any) -> None:
    api = build(licensed=False)
    refused(api.get("/variables"), 403, LICENSE.format("feat:variables"))
    refused(api.get("/projects/personal/folders"), 403, LICENSE.format("feat:folders"))


def test_scope_comes_before_license(build: Any, connect: Any) -> None:
    api = build(licensed=False)
    guest = connect(api.simulator, api.simulator.create_key(["tag:list"]))
    refused(guest.get("/variables"), 403, "Forbidden")


# ---------------------------------------------------------------- routes and pages


def test_unknown_route_is_404_even_without_a_key(simulator: ServiceSimulator) -> None:
    refused(requests.get(f"{simulator.api_url}/nope", timeout=5), 404, "not found")


def test_wrong_method_is_405_even_without_a_key(simulator: ServiceSimulator) -> None:
    refused(requests.delete(f"{simulator.api_url}/workflows", timeout=5), 405, "DELETE method not allowed")


@pytest.mark.parametrize("path", ["/api/v2/workflows", "/api", "/", "/rest/login"])
def test_paths_outside_the_api_answer_a_page(api: Api, path: str) -> None:
    answer = api.raw("GET", path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, HTML)
    assert f"Cannot GET {path}" in answer.text


def test_pages_escape_what_they_quote(api: Api) -> None:
    assert "<script>" not in api.raw("GET", "/<script>").text


def test_encoded_slash_stays_inside_a_path_segment(api: Api) -> None:
    answer = api.get("/credentials/schema/a%2Fb")
    refused(answer, 404, "Not Found")


def test_preflight_is_empty(api: Api) -> None:
    answer = api.request("OPTIONS", "/workflows")
    assert (answer.status_code, answer.content) == (204, b"")


def test_published_contract_needs_no_key(simulator: ServiceSimulator) -> None:
    answer = requests.get(f"{simulator.api_url}/openapi.yml", timeout=5)
    assert "post" in answer.json()["paths"]["/executions/{executionId}/retry"]


def test_health_and_pages_while_booting(simulator: ServiceSimulator) -> None:
    simulator.restart(boot_seconds=60)
    health = requests.get(f"{simulator.base_url}/healthz", timeout=5)
    readiness = requests.get(f"{simulator.base_url}/healthz/readiness", timeout=5)
    page = requests.post(f"{simulator.api_url}/tags", timeout=5)
    hook = requests.post(f"{simulator.base_url}/webhook/x", timeout=5)
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (readiness.status_code, readiness.json()) == (503, {"status": "error"})
    assert (page.status_code, page.headers["content-type"]) == (404, HTML)
    assert "Cannot POST /api/v1/tags" in page.text
    assert "Cannot POST /webhook/x" in hook.text
    simulator.clock.advance(61)
    assert requests.get(f"{simulator.base_url}/healthz/readiness", timeout=5).json() == {"status": "ok"}
    refused(requests.get(f"{simulator.api_url}/tags", timeout=5), 401, "Unauthorized")


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize("content", ["{", '{"name": NaN}', b"\xff"])
def test_malformed_json_is_a_500_page(api: Api, content: Any) -> None:
    answer = api.request("POST", "/tags", data=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (500, HTML)
    assert "Internal Server Error" in answer.text


def test_too_large_a_body_is_a_413_page(api: Api) -> None:
    answer = api.post("/tags", {"name": "x" * (16 * 1024 * 1024)})
    assert (answer.status_code, answer.headers["content-type"]) == (413, HTML)
    assert api.get("/tags").json()["data"] == []


@pytest.mark.parametrize("path", ["/tags", "/data-tables"])
def test_required_body_without_content_type_is_415(api: Api, path: str) -> None:
    refused(api.request("POST", path), 415, "unsupported media type undefined")
    wrong = api.request("POST", path, data="x", headers={"Content-Type": "text/plain"})
    refused(wrong, 415, "unsupported media type text/plain")


def test_empty_json_body_counts_as_an_empty_object(api: Api) -> None:
    answer = api.request("POST", "/tags", headers={"Content-Type": "application/json"})
    refused(answer, 400, "request/body must have required property 'name'")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tags", {"name": 5}, "request/body/name Expected string, received number"),
        ("/tags", {"name": None}, "request/body/name Expected string, received null"),
        ("/tags", {"name": "a", "foo": 1}, "request/body Unrecognized key(s) in object: 'foo'"),
        ("/tags", [], "request/body Expected object, received array"),
        ("/data-tables", {"name": "t", "columns": {}}, "request/body/columns must be array"),
        ("/data-tables", [], "request/body must be object"),
    ],
)
def test_bodies_of_the_wrong_shape(api: Api, path: str, body: Any, message: str) -> None:
    refused(api.post(path, body), 400, message)


# ---------------------------------------------------------------- query


@pytest.mark.parametrize("value", ["yes", "True", "1"])
def test_booleans_are_lower_case_words(api: Api, value: str) -> None:
    expected = f"Invalid enum value. Expected 'true' | 'false', received '{value}'"
    refused(api.get(f"/workflows?active={value}"), 400, f"request/query/active {expected}")
    assert api.get(f"/users?includeRole={value}").status_code == 400


def test_unknown_query_parameter_matters_to_the_strict_family_only(api: Api) -> None:
    assert api.get("/tags?foo=1").status_code == 200
    refused(api.get("/users?foo=1"), 400, "Unknown query parameter 'foo'")


@pytest.mark.parametrize("value", ["name:asc", "a+b", "a(b", "a@b", "{'a'}"])
def test_strict_family_wants_values_fully_encoded(api: Api, value: str) -> None:
    # Prepared by hand: the client library would encode some of it.
    request = requests.Request("GET", f"{api.simulator.api_url}/data-tables").prepare()
    request.url = f"{request.url}?sortBy={value}"
    request.headers.update(api.session.headers)
    message = "Parameter 'sortBy' must be url encoded. Its value may not contain reserved characters."
    refused(api.session.send(request, timeout=5), 400, message)


def test_strict_family_accepts_encoded_values(api: Api) -> None:
    assert api.get("/data-tables?sortBy=name%3Aasc").status_code == 200


def test_lenient_family_accepts_raw_values(api: Api) -> None:
    assert api.get("/executions?startedAfter=2026-01-01T00:00:00Z").status_code == 200


def test_bad_path_ids(api: Api) -> None:
    for bad in ("abc", "0", "-1"):
        message = "request/params/executionId must be a positive integer"
        refused(api.get(f"/executions/{bad}"), 400, message)
    refused(api.get("/data-tables/short"), 400, 'request/params/dataTableId must match format "nanoid"')
    refused(api.get("/users/nobody"), 400, 'request/params/id must match format "identifier"')


# ---------------------------------------------------------------- paging


def cursor(**position: Any) -> str:
    return base64.b64encode(json.dumps(position).encode()).decode()


@pytest.fixture
def tags(simulator: ServiceSimulator) -> list[str]:
    return [simulator.state.tags.create(f"tag {number}")["name"] for number in range(260)]


def names(answer: requests.Response) -> list[str]:
    return [item["name"] for item in answer.json()["data"]]


def test_pages_follow_each_other_until_the_cursor_is_null(api: Api, tags: list[str]) -> None:
    seen: list[str] = []
    following: str | None = ""
    while following is not None:
        answer = api.get("/tags", params={"cursor": following}).json()
        seen += [tag["name"] for tag in answer["data"]]
        following = answer["nextCursor"]
    assert seen == tags


def test_cursor_is_base64_of_limit_and_offset(api: Api, tags: list[str]) -> None:
    answer = api.get("/tags?limit=3").json()
    assert json.loads(base64.b64decode(answer["nextCursor"])) == {"limit": 3, "offset": 3}


def test_cursors_limit_wins_even_above_the_maximum(api: Api, tags: list[str]) -> None:
    forged = api.get("/tags", params={"limit": 2, "cursor": cursor(limit=1000, offset=1)})
    assert names(forged) == tags[1:]


def test_limit_of_zero_answers_everything_and_a_cursor_that_never_ends(api: Api, tags: list[str]) -> None:
    for query in ({"limit": 0}, {"cursor": cursor(limit=0, offset=0)}):
        answer = api.get("/tags", params=query)
        assert names(answer) == tags
        assert json.loads(base64.b64decode(answer.json()["nextCursor"])) == {"limit": 0, "offset": 0}


def test_limit_above_the_maximum_is_clamped_or_refused(api: Api, tags: list[str]) -> None:
    assert names(api.get("/tags?limit=1000")) == tags[:250]
    for path in ("/users", "/data-tables"):
        refused(api.get(f"{path}?limit=251"), 400, "request/query/limit must be <= 250")


@pytest.mark.parametrize(
    ("limit", "message"),
    [("-1", "Param `limit` must be a non-negative integer"), ("abc", "Param `limit` must be a valid integer")],
)
def test_bad_limits(api: Api, limit: str, message: str) -> None:
    refused(api.get(f"/tags?limit={limit}"), 400, f"request/query/limit {message}")


def test_odd_limits(api: Api, tags: list[str]) -> None:
    assert names(api.get("/tags?limit=1.5")) == tags[:1]
    assert names(api.get("/tags?limit=")) == tags[:100]


@pytest.mark.parametrize("text", ["garbage!", cursor(lastId="3", limit=2), base64.b64encode(b"[1]").decode()])
def test_bad_cursors(api: Api, text: str) -> None:
    refused(api.get("/tags", params={"cursor": text}), 400, "An invalid cursor was provided")


def test_cursor_with_an_offset_that_is_no_number_is_a_500(api: Api) -> None:
    refused(api.get("/tags", params={"cursor": cursor(limit=1, offset="x")}), 500, "Internal server error")


# ---------------------------------------------------------------- conditional requests


def test_unchanged_answer_is_304(api: Api) -> None:
    first = api.get("/tags")
    again = api.get("/tags", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    api.post("/tags", {"name": "new"})
    assert api.get("/tags", headers={"If-None-Match": first.headers["etag"]}).status_code == 200
