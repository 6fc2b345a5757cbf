"""The hook: how it reads a connection, and the results of its connection test."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import requests_mock
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, Connection, redact

from airflow_provider_service import __version__
from airflow_provider_service._airflow.connection import config_for, config_of
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceConfigError
from airflow_provider_service.client.models import WebhookTrigger
from airflow_provider_service.hooks.service import N8nHook, ServiceHook
from airflow_provider_service.simulator import ServiceSimulator
from tests import airflow_features

KEY = "a-very-secret-key"
MCP_KEY = "a-very-secret-mcp-key"
Connect = Callable[..., ServiceHook]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """``connect(host=..., extra={...})`` makes the hook of such a connection."""

    def make(uri: str | None = None, **fields: Any) -> ServiceHook:
        value = uri or json.dumps({"conn_type": "service", "password": KEY, **fields})
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_TEST", value)
        return ServiceHook("service_test")

    return make


@pytest.mark.parametrize(
    ("fields", "api_root"),
    [
        ({"host": "https://s.example.com"}, "https://s.example.com/api/v1"),
        ({"host": "https://s.example.com/"}, "https://s.example.com/api/v1"),
        ({"host": "https://s.example.com/api/v1"}, "https://s.example.com/api/v1"),
        ({"host": "https://s.example.com/api/v2/"}, "https://s.example.com/api/v2"),
        ({"host": "http://s.example.com:5678/prefix/api/v1"}, "http://s.example.com:5678/prefix/api/v1"),
        ({"host": "s.example.com"}, "https://s.example.com/api/v1"),
        ({"host": "s.example.com", "schema": "http", "port": 5678}, "http://s.example.com:5678/api/v1"),
        ({"host": "https://s.example.com", "port": 8443}, "https://s.example.com:8443/api/v1"),
        ({"host": "https://s.example.com:8443", "port": 8443}, "https://s.example.com:8443/api/v1"),
        ({"host": "s.example.com", "schema": "prefix"}, "https://s.example.com/prefix/api/v1"),
        ({"host": "http://[::1]:5678"}, "http://[::1]:5678/api/v1"),
        ({"host": "::1", "schema": "HTTP", "port": 5678}, "http://[::1]:5678/api/v1"),
        ({"host": "https://s.example.com", "extra": {"api_version": 3}}, "https://s.example.com/api/v3"),
    ],
)
def test_addresses(connect: Connect, fields: dict[str, Any], api_root: str) -> None:
    assert connect(**fields).config.api_root == api_root


@pytest.mark.parametrize(
    ("uri", "api_root"),
    [
        (f"service://:{KEY}@s.example.com", "https://s.example.com/api/v1"),
        (f"n8n://:{KEY}@s.example.com", "https://s.example.com/api/v1"),
        (f"n8n://http://:{KEY}@localhost:5678?timeout=7", "http://localhost:5678/api/v1"),
        (f"service://:{KEY}@s.example.com:5678/http?timeout=7", "http://s.example.com:5678/api/v1"),
        (f"service://https://:{KEY}@s.example.com:8443/prefix?timeout=7", "https://s.example.com:8443/prefix/api/v1"),
        (f"service://:{KEY}@http%3A%2F%2Fs.example.com%3A5678%2Fp", "http://s.example.com:5678/p/api/v1"),
        (f"n8n://:{KEY}@[2001:db8::1]:5678/http", "http://[2001:db8::1]:5678/api/v1"),
        (f"n8n://http://:{KEY}@[::1]:5678?timeout=7", "http://[::1]:5678/api/v1"),
    ],
)
def test_uris(connect: Connect, uri: str, api_root: str) -> None:
    config = connect(uri).config

    assert config.api_root == api_root
    assert config.api_key.get_secret_value() == KEY
    assert config.timeout == (7 if "timeout" in uri else 30)


@pytest.mark.parametrize("connection_type", ["n8n", "service"])
@pytest.mark.parametrize("extra", [{}, {"key_header": None}, {"key_header": " "}])
def test_the_type_of_the_connection_says_which_header_carries_the_key(
    connect: Connect, connection_type: str, extra: dict[str, Any]
) -> None:
    fields = {"conn_type": connection_type, "host": "https://s.example.com"}
    expected = {"n8n": "X-N8N-API-KEY", "service": "X-SERVICE-API-KEY"}[connection_type]

    assert connect(**fields, extra=extra).config.key_header == expected
    assert connect(**fields, extra={"key_header": "X-Own"}).config.key_header == "X-Own"


@pytest.mark.parametrize("get", ["in a worker", "in an event loop"])
def test_the_default_connection_may_be_that_of_n8n(get: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def host_of(service_conn_id: str) -> str:
        config = (
            asyncio.run(config_for(service_conn_id))
            if get == "in an event loop"
            else ServiceHook(service_conn_id).config
        )
        return config.base_url.removeprefix("https://")

    with pytest.raises(AirflowNotFoundException, match="'service_default' or 'n8n_default': Airflow has no"):
        host_of("service_default")
    monkeypatch.setenv("AIRFLOW_CONN_N8N_DEFAULT", f"n8n://:{KEY}@n8n.example.com")
    assert (host_of("service_default"), host_of("n8n_default")) == ("n8n.example.com", "n8n.example.com")
    with pytest.raises(AirflowNotFoundException, match="connection 'another': Airflow has no such connection"):
        host_of("another")
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", f"service://:{KEY}@s.example.com")
    assert (host_of("service_default"), host_of("n8n_default")) == ("s.example.com", "n8n.example.com")


def test_a_default_connection_that_cannot_be_used_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", f"postgres://:{KEY}@s.example.com")
    monkeypatch.setenv("AIRFLOW_CONN_N8N_DEFAULT", f"n8n://:{KEY}@n8n.example.com")

    with pytest.raises(ServiceConfigError, match="'service_default' is of type 'postgres', not 'n8n' or 'service'"):
        _ = ServiceHook().config


@pytest.mark.parametrize(("connection_type", "kind"), [("n8n", N8nHook), ("service", ServiceHook)])
def test_airflow_makes_the_hook_of_a_connection(
    connection_type: str, kind: type[ServiceHook], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MADE", f"{connection_type}://:{KEY}@s.example.com")

    hook = BaseHook.get_hook("made")

    assert type(hook) is kind
    assert hook.config.base_url == "https://s.example.com"
    assert kind().service_conn_id == f"{connection_type}_default"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "host is empty"),
        ({"host": "https://s.example.com", "password": None}, "password is empty; it holds the API key"),
        ({"host": "ftp://s.example.com"}, "'base_url': must be an address"),
        ({"host": "https://exa mple.com"}, "'base_url': must be an address"),
        ({"host": f"https://{'x' * 64}.example.com"}, "'base_url': must be an address"),
        ({"host": "https://s.exa\nmple.com"}, "host is not an address"),
        ({"host": "https://u:p@s.example.com"}, "must not contain a user or password"),
        ({"host": "https://s.example.com?x=1"}, "must not contain a query"),
        ({"host": "https://s.example.com:99999999"}, "'base_url': is not a valid address"),
        ({"host": "https://s.example.com:99999999", "port": 1}, "host is not an address"),
        (
            {"host": "https://s.example.com", "extra": {"key_heder": "x"}},
            "unknown field 'key_heder'; the known fields are",
        ),
        ({"host": "https://s.example.com", "extra": {"base_url": "x"}}, "base_url cannot be in extra; the address"),
        ({"host": "https://s.example.com", "extra": {"application": "x"}}, "application cannot be in extra"),
        ({"host": "https://s.example.com", "extra": {"page_size": 251}}, "'page_size'"),
        ({"host": "https://s.example.com", "extra": {"timeout": "soon"}}, "'timeout'"),
        *(
            pytest.param(
                {"host": "https://s.example.com", "extra": text},
                "extra must be a JSON object",
                marks=airflow_features.errors_of_extras,
            )
            for text in ("[1]", "{")
        ),
        ({"host": "https://s.example.com", "password": "***"}, "'api_key': is ***, the mask"),
        ({"host": "https://s.example.com", "password": "two\nlines"}, "was a line break copied"),
    ],
)
def test_errors_in_connections_are_reported(connect: Connect, fields: dict[str, Any], message: str) -> None:
    hook = connect(**fields)

    with pytest.raises(ServiceConfigError, match="connection 'service_test'") as caught:
        _ = hook.config

    assert message in str(caught.value)
    assert KEY not in str(caught.value)
    assert hook.test_connection() == (False, str(caught.value))


def test_an_extra_that_is_nested_too_deeply_is_refused() -> None:
    connection = Connection(conn_id="deep", conn_type="service", host="https://s.example.com")
    with suppress(RecursionError):  # Airflow 2 reads the text when it is set
        connection.extra = '{"a":' * 5000

    with pytest.raises(ServiceConfigError, match="connection 'deep': "):
        config_of(connection)


def test_the_keys_are_in_no_repr(connect: Connect) -> None:
    hook = connect(host="https://s.example.com", extra={"mcp_api_key": MCP_KEY})

    for key in (KEY, MCP_KEY):
        assert key not in repr(hook.config)
        assert key not in repr(vars(hook))
        assert key not in repr(vars(hook.client))


def test_the_keys_are_hidden_in_logs() -> None:
    """Also where Airflow itself hides nothing of a connection, as of one from a secrets backend."""

    class Hook(ServiceHook):
        @classmethod
        def get_connection(cls, conn_id: str) -> Any:
            extra = json.dumps({"mcp_api_key": "the-second-key-of-this-test"})
            fields = {"host": "https://s.example.com", "password": "the-first-key-of-this-test", "extra": extra}
            return SimpleNamespace(conn_id=conn_id, conn_type="service", schema=None, login=None, port=None, **fields)

    _ = Hook().config

    assert redact("the-first-key-of-this-test and the-second-key-of-this-test") == "*** and ***"


def test_the_hook_is_its_client(connect: Connect) -> None:
    with ServiceSimulator() as simulator:
        with connect(simulator.connection_json()) as hook:
            assert isinstance(hook.get_conn(), ServiceClient)
            tag = hook.tags.create("prod")
            assert [one.name for one in hook.get_conn().tags.list()] == ["prod"]
            assert hook.request("GET", "/tags/{}", tag.id)["name"] == "prod"
        assert hook.tags.get(tag.id).name == "prod"


def test_every_call_names_the_provider_and_airflow(connect: Connect, requests_mock: requests_mock.Mocker) -> None:
    anything = re.compile("")
    requests_mock.register_uri("GET", anything, json={})
    requests_mock.register_uri("POST", anything, json={})
    hook = connect(host="https://s.example.com")

    hook.request("GET", "/tags")
    hook.webhooks.call(WebhookTrigger("Webhook", "POST", "w", "none"))
    hook.transport.probe("/healthz")

    sent = {request.headers["User-Agent"] for request in requests_mock.request_history}
    own = f"airflow-provider-service/{__version__} apache-airflow/{airflow_features.AIRFLOW}"
    assert sent == {f"{own} python-requests/{requests.__version__}"}


def test_a_hook_that_was_not_used_opens_nothing_to_close(connect: Connect) -> None:
    with connect(host="https://s.example.com") as hook:
        pass

    assert not {"config", "client"} & set(vars(hook))


def test_connection_works(connect: Connect) -> None:
    with ServiceSimulator() as simulator:
        key = simulator.create_key(["tag:list", "tag:read"])
        assert connect(host=simulator.base_url, password=key).test_connection() == (
            True,
            f"Connected to {simulator.base_url}; the key holds 2 scopes",
        )


def test_connection_with_a_refused_key(connect: Connect) -> None:
    with ServiceSimulator() as simulator:
        works, message = connect(host=simulator.base_url, password="wrong").test_connection()

    assert not works
    assert "the key was refused" in message
    assert "n8n expects X-N8N-API-KEY" in message


def test_connection_with_a_missing_bundle(connect: Connect) -> None:
    works, message = connect(host="https://s.example.com", extra={"verify": "/no/such.pem"}).test_connection()

    assert not works
    assert "'verify'" in message


def test_connection_to_nothing(connect: Connect) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"

    works, message = connect(host=address).test_connection()

    assert not works
    assert f"{address} is not reachable" in message
    assert "Check host and port of the connection" in message


def test_connection_to_a_server_that_is_starting(connect: Connect) -> None:
    with ServiceSimulator(boot_seconds=3600) as simulator:
        works, message = connect(simulator.connection_json()).test_connection()

    assert (works, message) == (
        False,
        f"The service at {simulator.base_url} is still starting; try again in a minute",
    )


def test_connection_to_another_site(connect: Connect) -> None:
    with ServiceSimulator() as simulator:
        works, message = connect(host=f"{simulator.base_url}/elsewhere", password=simulator.api_key).test_connection()

    assert not works
    assert f"{simulator.base_url}/elsewhere/api/v1 is not the service's API" in message
    assert message.endswith("not with the path of a page")


def test_connection_to_a_page(connect: Connect, requests_mock: requests_mock.Mocker) -> None:
    requests_mock.get(
        "https://s.example.com/api/v1/discover", text="<html>Welcome</html>", headers={"Content-Type": "text/html"}
    )

    works, message = connect(host="https://s.example.com").test_connection()

    assert not works
    assert "the answer is text/html, not JSON" in message


def test_connection_to_an_older_server(connect: Connect, requests_mock: requests_mock.Mocker) -> None:
    json_type = {"Content-Type": "application/json; charset=utf-8"}
    root = "https://s.example.com/api/v1"
    requests_mock.get(f"{root}/discover", status_code=404, json={"message": "not found"}, headers=json_type)
    workflows = requests_mock.get(f"{root}/workflows", json={"data": [], "nextCursor": None}, headers=json_type)

    works, message = connect(host="https://s.example.com").test_connection()

    assert works
    assert message.startswith("Connected to https://s.example.com; the key may list workflows")
    assert workflows.last_request.qs == {"limit": ["1"]}
