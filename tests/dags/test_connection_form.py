"""The connection form in Airflow's API server: what it offers, saves, shows again and tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from airflow_provider_service.simulator import ServiceSimulator
from tests.airflow_features import AIRFLOW

MASK = "***"
#: What Airflow 3.3.1 and 3.3.2 answer to their own page for a saved connection without a port (apache/airflow#73298).
REFUSED_BY_AIRFLOW = "The host or port to test differs from the stored connection"


@pytest.fixture(scope="module")
def started(database: None) -> Iterator[TestClient]:
    """The API server, with an admin logged in."""
    from airflow.api_fastapi.app import create_app, init_auth_manager, purge_cached_app

    with pytest.MonkeyPatch.context() as settings:
        settings.setenv("AIRFLOW__CORE__TEST_CONNECTION", "Enabled")
        settings.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "True")
        server = TestClient(create_app("core"))
        server.headers["Authorization"] = f"Bearer {server.get('/auth/token').json()['access_token']}"
        yield server
        purge_cached_app()
    init_auth_manager()  # the application of the pages' tests, if it was made before, still needs one


@pytest.fixture
def api(started: TestClient) -> Iterator[TestClient]:
    yield started
    started.delete("/api/v2/connections/made")


@pytest.fixture(params=["n8n", "service"])
def kind(request: pytest.FixtureRequest) -> str:
    """The type of the connection."""
    return str(request.param)


@pytest.fixture
def form(api: TestClient, kind: str) -> dict[str, Any]:
    """What Airflow tells the browser of the form."""
    [ours] = [one for one in api.get("/ui/connections/hook_meta").json() if one["connection_type"] == kind]
    return dict(ours)


@pytest.fixture
def extras(form: dict[str, Any]) -> dict[str, Any]:
    """The extras that the form saves by default: every default value, and null for all others."""
    return {name: field["value"] for name, field in form["extra_fields"].items()}


@pytest.fixture
def save(api: TestClient, simulator: ServiceSimulator, kind: str) -> Callable[..., dict[str, Any]]:
    """``save(extras, port=...)`` saves a connection as the form does, and returns what the list then shows."""

    def make(extras: dict[str, Any], **fields: Any) -> dict[str, Any]:
        body = {"conn_type": kind, "connection_id": "made", "host": simulator.base_url}
        body |= {"password": simulator.api_key, "extra": json.dumps(extras, indent=2), **fields}
        assert api.post("/api/v2/connections", json=body).status_code == 201
        return dict(api.get("/api/v2/connections/made").json())

    return make


def click_test(api: TestClient, shown: dict[str, Any]) -> tuple[bool, str]:
    """What the button of the list of connections sends and is told; a missing port becomes 0 in the browser."""
    body = {name: value or "" for name, value in shown.items() if name != "team_name"}
    answer = api.post("/api/v2/connections/test", json={**body, "port": shown["port"] or 0}).json()
    return (answer["status"], answer["message"]) if "status" in answer else (False, answer["detail"])


def test_the_port_needs_to_be_entered_only_where_airflow_tests_no_connection_without_it(form: dict[str, Any]) -> None:
    shown = form["standard_fields"]["port"]["placeholder"]
    needs_it = f" (Airflow {AIRFLOW} needs it to test)" if AIRFLOW in ("3.3.1", "3.3.2") else ""
    assert shown == f"as in the base URL, or 443{needs_it}"


def test_nobody_reads_a_secret_off_the_screen_on_which_it_is_typed(form: dict[str, Any]) -> None:
    hidden = {name for name, field in form["extra_fields"].items() if field["schema"].get("format") == "password"}

    assert hidden == {"mcp_api_key", "bridge_secret"}


def test_the_form_asks_a_user_of_n8n_for_an_address_and_a_key(form: dict[str, Any], kind: str) -> None:
    names = {"n8n": ("n8n", "https://n8n.example.com"), "service": ("Service", "https://service.example.com")}

    fields = form["standard_fields"]
    assert (form["hook_name"], fields["host"]["placeholder"]) == names[kind]
    assert (fields["host"]["title"], fields["password"]["title"]) == ("Base URL", "API key")
    assert [name for name, field in fields.items() if field and field["hidden"]] == ["url_schema", "login"]


def test_the_form_offers_no_mask(extras: dict[str, Any], kind: str) -> None:
    assert extras.get("key_header") == {"n8n": None, "service": "X-SERVICE-API-KEY"}[kind]
    assert (extras["proxies"], extras["mcp_api_key"]) == (None, None)
    assert MASK not in extras.values()


def test_a_connection_of_the_form_alone_is_shown_again_without_a_mask(
    extras: dict[str, Any], save: Callable[..., dict[str, Any]]
) -> None:
    shown = save({**extras, "key_header": "X-N8N-API-KEY", "webhook_base_url": "https://hooks.example.com"})

    assert json.loads(shown["extra"]) == {
        **extras,
        "key_header": "X-N8N-API-KEY",
        "webhook_base_url": "https://hooks.example.com",
    }


@pytest.mark.parametrize("name", ["proxies", "mcp_api_key", "bridge_secret"])
@pytest.mark.parametrize("secret", [None, '{"https": "http://user:pass-word@proxy.example.com:3128"}'])
def test_the_button_is_green_for_a_good_connection(
    name: str,
    secret: str | None,
    extras: dict[str, Any],
    save: Callable[..., dict[str, Any]],
    api: TestClient,
    simulator: ServiceSimulator,
) -> None:
    shown = save({**extras, name: secret and secret.replace(" ", "")}, port=urlsplit(simulator.base_url).port)

    assert shown["password"] == MASK
    assert json.loads(shown["extra"])[name] == (secret and MASK)
    works, message = click_test(api, shown)
    assert works, message
    assert message.startswith(f"Connected to {simulator.base_url}; the key holds ")


def test_the_button_is_green_without_a_port_unless_airflow_refuses_to_test(
    extras: dict[str, Any], save: Callable[..., dict[str, Any]], api: TestClient
) -> None:
    works, message = click_test(api, save(extras))

    assert works or message.startswith(REFUSED_BY_AIRFLOW)


def test_the_button_reports_that_a_mask_was_saved(
    extras: dict[str, Any], save: Callable[..., dict[str, Any]], api: TestClient, simulator: ServiceSimulator
) -> None:
    shown = save({**extras, "key_header": MASK}, port=urlsplit(simulator.base_url).port)

    works, message = click_test(api, shown)

    assert not works
    assert "field 'key_header': is ***, the mask that Airflow shows in place of a secret" in message
