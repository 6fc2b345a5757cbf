"""The real server starts, and answers as the rest of these tests expect."""

from __future__ import annotations

import pytest
import requests

from .servers import LiveServer

pytestmark = pytest.mark.smoke

METHODS = frozenset({"get", "put", "post", "patch", "delete"})
OPERATION_COUNT = {"1.123": 42, "2.20": 78, "2.30": 84, "2.39": 134, "2.40": 146, "2.41": 154}


def get(server: LiveServer, path: str, key: str | None = None, **query: str) -> requests.Response:
    headers = {server.key_header: key or server.api_key}
    return requests.get(server.api_url + path, params=query, headers=headers, timeout=30)


def test_the_server_is_ready_and_is_the_pinned_version(live_server: LiveServer) -> None:
    answer = requests.get(f"{live_server.base_url}/healthz/readiness", timeout=30)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert live_server.owner.settings()["versionCli"] == live_server.version


def test_discover_lists_the_scopes_of_the_key(live_server: LiveServer) -> None:
    answer = get(live_server, "/discover")
    if live_server.generation.major == 1:
        assert (answer.status_code, answer.json()) == (404, {"message": "not found"})
        return
    assert answer.status_code == 200
    assert sorted(answer.json()["data"]["scopes"]) == live_server.scopes


def test_a_fresh_server_has_no_workflows(live_server: LiveServer) -> None:
    answer = get(live_server, "/workflows", limit="1")
    assert (answer.status_code, answer.json()) == (200, {"data": [], "nextCursor": None})


def test_a_key_with_few_scopes_is_held_to_them_by_the_newer_generation_only(live_server: LiveServer) -> None:
    key = live_server.create_key(["tag:list"])
    assert get(live_server, "/tags", key).status_code == 200
    answer = get(live_server, "/workflows", key)
    if live_server.generation.major == 1:
        assert answer.status_code == 200
        return
    assert (answer.status_code, answer.json()) == (403, {"message": "Forbidden"})


def test_keys_made_in_the_same_second_differ(live_server: LiveServer) -> None:
    keys = [live_server.create_key(["tag:list"]) for _ in range(3)]
    assert len({*keys, live_server.api_key}) == 4


def test_a_wrong_key_is_refused(live_server: LiveServer) -> None:
    answer = get(live_server, "/workflows", "wrong")
    assert answer.status_code == 401


def test_the_openapi_document_describes_the_api(live_server: LiveServer) -> None:
    document = live_server.openapi()
    assert document["openapi"].startswith("3.")
    assert document["servers"][0]["url"].endswith("/api/v1")
    operations = [(method, path) for path, item in document["paths"].items() for method in item if method in METHODS]
    assert ("get", "/workflows") in operations
    assert len(operations) == OPERATION_COUNT[live_server.generation.name]


def test_a_killed_server_comes_back_with_its_data_and_keys(live_server: LiveServer) -> None:
    headers = {live_server.key_header: live_server.api_key}
    tag = requests.post(f"{live_server.api_url}/tags", json={"name": "kept"}, headers=headers, timeout=30).json()
    live_server.halt(kill=True)
    with pytest.raises(requests.ConnectionError):
        get(live_server, "/tags")
    live_server.restart()
    assert get(live_server, f"/tags/{tag['id']}").json() == tag
    requests.delete(f"{live_server.api_url}/tags/{tag['id']}", headers=headers, timeout=30).raise_for_status()
