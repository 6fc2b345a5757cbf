"""The order of checks, the forms of bodies and limits, and the answers that are not JSON."""

from __future__ import annotations

import base64
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


@pytest.mark.parametrize("header", ["X-SERVICE-API-KEY", "x-n8n-api-key"])
def test_either_header_carries_the_key(simulator: ServiceSimulator, header: str) -> None:
    answer = requests.get(f"{simulator.api_url}/workflows", headers={header: simulator.api_key}, timeout=60)
    assert answer.json() == {"data": [], "nextCursor": None}


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


@pytest.mark.parametrize("path", ["/api/v2/workflows", "/api", "/nowhere", "/rest/login"])
def test_paths_outside_the_api_answer_a_page(api: Api, path: str) -> None:
    answer = api.raw("GET", path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, HTML)
    assert f"Cannot GET {path}" in answer.text


def test_pages_escape_what_they_quote(api: Api) -> None:
    assert "<script>" not in api.raw("GET", "/<script>").text


def test_encoded_slash_stays_inside_a_path_segment(api: Api) -> None:
    answer = api.get("/credentials/schema/a%2Fb")
    refused(answer, 404, "Not Found")


@pytest.mark.parametrize("path", ["/webhook/a%2Fb?c=1", ""])
def test_a_request_that_is_sent_as_to_a_proxy(simulator: ServiceSimulator, path: str) -> None:
    through_proxy = requests.get(f"http://service.test{path}", proxies={"http": simulator.base_url}, timeout=60)
    direct = requests.get(f"{simulator.base_url}{path}", timeout=60)
    assert (through_proxy.status_code, through_proxy.content) == (direct.status_code, direct.content)
    first, second = simulator.requests
    assert (first.path, first.query) == (second.path, second.query)


def test_published_contract_needs_no_key(simulator: ServiceSimulator) -> None:
    answer = requests.get(f"{simulator.api_url}/openapi.yml", timeout=60)
    assert "post" in answer.json()["paths"]["/executions/{executionId}/retry"]


def test_health_and_pages_while_booting(simulator: ServiceSimulator) -> None:
    simulator.restart(boot_seconds=60)
    health = requests.get(f"{simulator.base_url}/healthz", timeout=60)
    readiness = requests.get(f"{simulator.base_url}/healthz/readiness", timeout=60)
    page = requests.post(f"{simulator.api_url}/tags", timeout=60)
    hook = requests.post(f"{simulator.base_url}/webhook/x", timeout=60)
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (readiness.status_code, readiness.json()) == (503, {"status": "error"})
    assert (page.status_code, page.headers["content-type"]) == (404, HTML)
    assert "Cannot POST /api/v1/tags" in page.text
    assert "Cannot POST /webhook/x" in hook.text
    simulator.clock.advance(61)
    assert requests.get(f"{simulator.base_url}/healthz/readiness", timeout=60).json() == {"status": "ok"}
    refused(requests.get(f"{simulator.api_url}/tags", timeout=60), 401, "Unauthorized")


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize("content", ['{"name": NaN}', b"\xff"])
def test_malformed_json_is_a_500_page(api: Api, content: Any) -> None:
    answer = api.request("POST", "/tags", data=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (500, HTML)
    assert "Internal Server Error" in answer.text


def test_the_strict_family_needs_a_content_type_too(api: Api) -> None:
    refused(api.request("POST", "/data-tables"), 415, "unsupported media type undefined")
    wrong = api.request("POST", "/data-tables", data="x", headers={"Content-Type": "text/plain"})
    refused(wrong, 415, "unsupported media type text/plain")


def test_empty_json_body_counts_as_an_empty_object(api: Api) -> None:
    answer = api.request("POST", "/tags", headers={"Content-Type": "application/json"})
    refused(answer, 400, "request/body must have required property 'name'")


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/tags", {"name": None}, "request/body/name Expected string, received null"),
        ("/tags", [], "request/body Expected object, received array"),
        ("/data-tables", [], "request/body must be object"),
    ],
)
def test_bodies_of_the_wrong_shape(api: Api, path: str, body: Any, message: str) -> None:
    refused(api.post(path, body), 400, message)


# ---------------------------------------------------------------- paging


@pytest.fixture
def tags(simulator: ServiceSimulator) -> list[str]:
    return [simulator.state.tags.create(f"tag {number}")["name"] for number in range(260)]


def names(answer: requests.Response) -> list[str]:
    return [item["name"] for item in answer.json()["data"]]


def test_odd_limits(api: Api, tags: list[str]) -> None:
    assert names(api.get("/tags?limit=1.5")) == tags[:1]
    assert names(api.get("/tags?limit=")) == tags[:100]


def test_a_cursor_that_is_a_list(api: Api) -> None:
    text = base64.b64encode(b"[1]").decode()
    refused(api.get("/tags", params={"cursor": text}), 400, "An invalid cursor was provided")


# ---------------------------------------------------------------- conditional requests


def test_a_changed_answer_is_sent(api: Api) -> None:
    first = api.get("/tags")
    api.post("/tags", {"name": "new"})
    assert api.get("/tags", headers={"If-None-Match": first.headers["etag"]}).status_code == 200
