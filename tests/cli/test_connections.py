"""Which instance a command is for."""

from __future__ import annotations

import io
import socket
import sys

import pytest

from airflow_provider_service.client._clock import using
from tests.cli.conftest import Terminal
from tests.set_clock import SetClock

SECRET = "sim_a-key-that-the-service-refuses"


@pytest.fixture(autouse=True)
def no_connection(simulator, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")


def test_by_an_airflow_connection(cli, second, folder):
    ended = cli("plan", folder, "--conn-id", "production")

    assert ended.status == 0
    assert f"Instance: {second.base_url} (production)" in ended.err


@pytest.mark.parametrize("kind", ["json", "uri"])
def test_by_a_uri(cli, simulator, folder, kind):
    host = simulator.base_url.removeprefix("http://")
    uris = {"json": simulator.connection_json(), "uri": f"service://:{simulator.api_key}@{host}/http"}

    ended = cli("plan", folder, "--uri", uris[kind])

    assert ended.status == 0, ended.err
    assert f"Instance: {simulator.base_url} (--uri)" in ended.err


def test_by_variables(cli, simulator, folder, monkeypatch):
    monkeypatch.setenv("SERVICE_URL", simulator.base_url)
    monkeypatch.setenv("SERVICE_API_KEY", simulator.api_key)

    ended = cli("plan", folder)

    assert ended.status == 0
    assert f"Instance: {simulator.base_url} (SERVICE_URL)" in ended.err


def test_an_option_overrides_the_variables(cli, second, folder, monkeypatch):
    monkeypatch.setenv("SERVICE_URL", "http://no-such-host.invalid")
    monkeypatch.setenv("SERVICE_API_KEY", "x")

    assert cli("plan", folder, "--conn-id", "production").status == 0


def test_half_of_the_variables_is_not_enough(cli, folder, monkeypatch):
    monkeypatch.setenv("SERVICE_URL", "http://no-such-host.invalid")

    ended = cli("plan", folder)

    assert (ended.status, ended.err) == (2, "Error: set both SERVICE_URL and SERVICE_API_KEY, or neither\n")


def test_two_connections_are_one_too_many(cli, folder):
    ended = cli("plan", folder, "--conn-id", "a", "--uri", "service://b")

    assert (ended.status, ended.err) == (2, "Error: give --conn-id or --uri, not both\n")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("deploy", "{folder}", "--yes", "--conn-id", ""), "--conn-id"),
        (("deploy", "{folder}", "--yes", "--uri", " "), "--uri"),
        (("promote", "--yes", "--workflow-names", "child", "--source-conn-id", ""), "--source-conn-id"),
        (("doctor", ""), "--conn-id"),
    ],
)
def test_an_empty_option_does_not_mean_another_instance(cli, simulator, folder, monkeypatch, words, option):
    monkeypatch.setenv("SERVICE_URL", simulator.base_url)
    monkeypatch.setenv("SERVICE_API_KEY", simulator.api_key)
    simulator.clear_requests()

    ended = cli(*(one.format(folder=folder) for one in words))

    assert (ended.status, ended.err) == (2, f"Error: {option} must not be empty\n")
    assert not simulator.requests


def test_an_unknown_connection_is_named(cli, database, folder):
    ended = cli("plan", folder, "--conn-id", "nope")

    assert ended.status == 1
    assert ended.err.startswith("Error: connection: 'nope' cannot be used: Airflow has no such connection")
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("text", ["{bad", "n8n://:key@http://n8n.example.com"])
def test_what_is_no_connection_is_wrong_usage(cli, database, folder, monkeypatch, text):
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", text)

    for words, name in ((["--uri", text], "--uri"), ([], "service_default")):
        ended = cli("plan", folder, *words)
        assert ended.status == 2
        assert ended.err == f"Error: {name} is neither a URI, such as n8n://:KEY@n8n.example.com, nor JSON\n"


@pytest.mark.parametrize("verbose", [[], ["--verbose"]])
def test_no_key_is_shown(cli, simulator, folder, monkeypatch, verbose):
    monkeypatch.setenv("SERVICE_URL", simulator.base_url)
    monkeypatch.setenv("SERVICE_API_KEY", SECRET)

    ended = cli("plan", folder, "--json", *verbose)

    assert ended.status == 1
    assert "key was refused" in ended.result["error"]
    assert ("Traceback" in ended.err) is bool(verbose)
    assert SECRET not in ended.out + ended.err


def test_a_key_in_a_definition_is_masked(cli, simulator, tmp_path, monkeypatch):
    monkeypatch.setenv("SERVICE_URL", simulator.base_url)
    monkeypatch.setenv("SERVICE_API_KEY", simulator.api_key)
    (tmp_path / "w.json").write_text(
        f'{{"name": "as {simulator.api_key}", "nodes": [], "connections": {{}}, "settings": {{}}}}'
    )

    for more in ([], ["--json"]):
        ended = cli("plan", tmp_path, *more)
        assert "as ***" in ended.out
        assert simulator.api_key not in ended.out + ended.err


def test_the_default_id_is_shown_as_the_connection_that_it_stands_for(cli, simulator, folder, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_N8N_DEFAULT", simulator.connection_json())

    assert f"Instance: {simulator.base_url} (n8n_default)" in cli("plan", folder).err


@pytest.fixture
def closed_port(monkeypatch):
    """The address of a service is that of a port at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        monkeypatch.setenv("SERVICE_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("SERVICE_API_KEY", "x")
        yield


@pytest.mark.parametrize(("is_terminal", "tries"), [(True, range(1)), (False, range(3, 40))])
def test_only_at_a_terminal_a_service_that_is_away_is_an_error_at_once(cli, closed_port, is_terminal, tries):
    original, sys.stderr = sys.stderr, (screen := Terminal() if is_terminal else io.StringIO())
    try:
        with using(SetClock()) as time:
            ended = cli("executions", "show", "1")
    finally:
        sys.stderr = original

    assert ended.status == 1
    assert "is not reachable: " in screen.getvalue()
    assert len(time.pauses) in tries


def test_http_spoken_to_a_port_with_tls_says_so(cli, simulator, folder, monkeypatch):
    monkeypatch.setenv("SERVICE_URL", simulator.base_url)
    monkeypatch.setenv("SERVICE_API_KEY", simulator.api_key)
    simulator.inject("drop", times=None)

    ended = cli("doctor")

    assert ended.status == 1
    assert "the connection broke" in ended.out
    assert "If the port speaks TLS, the connection's host must begin with https://" in ended.out
