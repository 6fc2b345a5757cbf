"""Injected faults, the record of requests, and the simulator's own life: start, reset, restart, stop."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

import pytest
import requests

from airflow_provider_service.simulator import ServiceSimulator
from tests.polling import wait_until

from .api_client import Api

pytest_plugins = ["airflow_provider_service.testing.pytest_plugin"]


def tag_names(api: Api) -> list[str]:
    return [tag["name"] for tag in api.simulator.state.tags.all()]


# ---------------------------------------------------------------- faults


def test_status_with_retry_after_for_a_number_of_requests(api: Api) -> None:
    api.simulator.inject("status", times=2, status=429, retry_after=7)
    answers = [api.post("/tags", {"name": "a"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 201]
    assert answers[0].headers["retry-after"] == "7"
    assert answers[0].json() == {"message": "Too Many Requests"}
    assert tag_names(api) == ["a"]


def test_fault_for_some_requests_only(api: Api) -> None:
    api.simulator.inject("status", times=None, method="POST", path="/tags$")
    assert api.get("/tags").status_code == 200
    assert api.post("/executions/stop", {}).status_code == 400
    assert [api.post("/tags", {"name": "a"}).status_code for _ in range(3)] == [503] * 3
    api.simulator.clear_faults()
    assert api.post("/tags", {"name": "a"}).status_code == 201


def test_fault_for_one_execution_or_only_for_its_data(api: Api) -> None:
    workflow = api.simulator.create_webhook_workflow(path="w")
    one, other = (api.simulator.start_execution(workflow["id"], status="success") for _ in range(2))
    api.simulator.inject("status", times=None, path=f"/executions/{one}$", query="includeData=true", status=500)

    def statuses(of: str) -> list[int]:
        return [api.get(f"/executions/{of}{query}").status_code for query in ("", "?includeData=true")]

    assert (statuses(one), statuses(other)) == ([200, 500], [200, 200])
    assert len(api.get("/executions?includeData=true").json()["data"]) == 2
    api.simulator.inject("status", times=None, path=f"/executions/{one}$", status=500)
    assert statuses(one) == [500, 500]


def test_the_first_requests_are_left_alone(api: Api) -> None:
    api.simulator.inject("status", times=2, method="POST", skip=2)
    assert [api.post("/tags", {"name": name}).status_code for name in "abcde"] == [201, 201, 503, 503, 201]
    assert api.get("/tags").status_code == 200


def test_faults_are_cleared_among_requests_that_they_break(api: Api) -> None:
    over = threading.Event()

    def keep_asking() -> None:
        with requests.Session() as session:
            while not over.is_set():
                session.get(f"{api.simulator.base_url}/api/v1/tags", timeout=60)

    askers = [threading.Thread(target=keep_asking) for _ in range(2)]
    for asker in askers:
        asker.start()
    try:
        for _ in range(50):
            api.simulator.inject("status", times=None)
            api.simulator.clear_faults()
            assert api.get("/tags").status_code == 200
    finally:
        over.set()
        for asker in askers:
            asker.join(60)


def test_html(api: Api) -> None:
    api.simulator.inject("html", status=502, path="/webhook/")
    answer = api.hook("x", {})
    assert (answer.status_code, answer.headers["content-type"]) == (502, "text/html; charset=utf-8")
    assert "Bad Gateway" in answer.text


@pytest.mark.parametrize("after_processing", [False, True])
def test_drop(api: Api, after_processing: bool) -> None:
    api.simulator.inject("drop", after_processing=after_processing)
    with pytest.raises(requests.ConnectionError):
        api.post("/tags", {"name": "a"})
    assert tag_names(api) == (["a"] if after_processing else [])
    assert api.get("/tags").status_code == 200


@pytest.mark.parametrize("after_processing", [False, True])
def test_truncate(api: Api, after_processing: bool) -> None:
    api.simulator.inject("truncate", after_processing=after_processing)
    with pytest.raises((requests.exceptions.ChunkedEncodingError, requests.ConnectionError)) as caught:
        api.post("/tags", {"name": "a"})
    assert "IncompleteRead" in str(caught.value)
    assert tag_names(api) == (["a"] if after_processing else [])


@pytest.mark.parametrize("after_processing", [False, True])
def test_latency(api: Api, after_processing: bool) -> None:
    api.simulator.inject("latency", seconds=60, after_processing=after_processing)
    with api.unanswered("/api/v1/tags", {"name": "a"}):
        wait_until(lambda: not api.simulator.has_faults, what="the call")
        if after_processing:
            wait_until(lambda: tag_names(api) == ["a"], what="the tag")
    assert tag_names(api) == (["a"] if after_processing else [])


def test_answer_replaced_after_processing(api: Api) -> None:
    api.simulator.inject("status", status=504, after_processing=True)
    assert api.post("/tags", {"name": "a"}).status_code == 504
    assert tag_names(api) == ["a"]


def test_latency_adds_to_another_fault(api: Api) -> None:
    api.simulator.inject("latency", times=None, seconds=0.1)
    api.simulator.inject("status")
    began = time.monotonic()
    assert [api.get("/tags").status_code for _ in range(2)] == [503, 200]
    assert time.monotonic() - began >= 0.2


def test_a_client_that_dies_within_its_body_does_nothing(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    host, port = api.simulator.base_url.removeprefix("http://").split(":")
    head = f"POST /api/v1/tags HTTP/1.1\r\nHost: {host}\r\nX-N8N-API-KEY: {api.simulator.api_key}\r\n"
    with socket.create_connection((host, int(port))) as client:
        client.sendall(f'{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{"na'.encode())
        wait_until(lambda: len(api.simulator.requests) == 1, seconds=60, what="the request")
    wait_until(lambda: api.simulator.requests[0].is_over, seconds=60, what="its end")
    assert tag_names(api) == []
    assert "Exception in ASGI application" not in caplog.text


# ---------------------------------------------------------------- records


def test_requests_are_recorded_without_the_key(api: Api) -> None:
    api.simulator.inject("drop", path="/users")
    api.post("/tags", {"name": "ä"})
    api.get("/credentials/schema/a%20b?x=%3A")
    with pytest.raises(requests.ConnectionError):
        api.get("/users")
    seen = api.simulator.requests
    shown = [(found.method, found.path, found.query, found.body, found.status) for found in seen]
    assert shown == [
        ("POST", "/api/v1/tags", "", {"name": "ä"}, 201),
        ("GET", "/api/v1/credentials/schema/a b", "x=%3A", None, 404),
        ("GET", "/api/v1/users", "", None, None),
    ]
    assert api.simulator.api_key not in repr(list(seen)) + repr([vars(found) for found in seen])
    api.simulator.clear_requests()
    assert api.simulator.requests == []


# ---------------------------------------------------------------- life


def test_restart_breaks_open_connections(build: Any) -> None:
    api = build()
    api.simulator.create_webhook_workflow(path="x", behaviour="long", seconds=60, response_mode="lastNode")
    outcomes: list[str] = []

    def call() -> None:
        try:
            api.hook("x", {})
        except requests.ConnectionError:
            outcomes.append("broken")

    caller = threading.Thread(target=call)
    caller.start()
    wait_until(lambda: len(api.simulator.state.executions), interval=0.01)
    api.simulator.restart(boot_seconds=0.1)
    caller.join(60)
    assert outcomes == ["broken"]


def test_boot_seconds_from_the_start(build: Any) -> None:
    api = build(boot_seconds=30)
    assert api.get("/tags").headers["content-type"].startswith("text/html")
    api.simulator.clock.advance(31)
    assert api.get("/tags").status_code == 200


def test_start_and_stop_are_clean() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulator = ServiceSimulator().start()
        with requests.Session() as session:
            session.get(f"{simulator.base_url}/healthz", timeout=60)
            simulator.stop()
        simulator.stop()
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{simulator.base_url}/healthz", timeout=60)
    assert not [
        thread for thread in threading.enumerate() if thread.name == "service-simulator" and not thread.is_alive()
    ]
    with pytest.raises(RuntimeError, match="already been started"):
        simulator.start()


def test_port_in_use_is_reported(simulator: ServiceSimulator) -> None:
    port = int(simulator.base_url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"):
        ServiceSimulator(port=port).start()


def test_reset_forgets_everything_but_address_and_key(build: Any) -> None:
    api = build(licensed=False)
    api.post("/tags", {"name": "a"})
    api.simulator.inject("status")
    address = api.simulator.base_url
    api.simulator.reset()
    assert api.get("/tags").json()["data"] == []
    assert api.get("/variables").status_code == 403
    assert api.simulator.base_url == address


def test_clock_cannot_be_moved_back(simulator: ServiceSimulator) -> None:
    with pytest.raises(ValueError, match="cannot go back"):
        simulator.clock.advance(-1)


def test_connection_for_airflow(simulator: ServiceSimulator) -> None:
    plain = json.loads(simulator.connection_json())
    named = json.loads(simulator.connection_json("X-N8N-API-KEY"))
    assert plain == {"conn_type": "service", "host": simulator.base_url, "password": simulator.api_key}
    assert named == {**plain, "extra": {"key_header": "X-N8N-API-KEY"}}


@pytest.mark.parametrize("header", ["X-SERVICE-API-KEY", "X-N8N-API-KEY"])
def test_connection_uri_is_read_back_by_airflow(
    simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    models = pytest.importorskip("airflow.models.connection")
    connection = models.Connection(conn_id="service_default", uri=simulator.connection_uri(header))
    assert (connection.conn_type, connection.host) == ("service", simulator.base_url)
    assert connection.password == simulator.api_key
    expected = {} if header == "X-SERVICE-API-KEY" else {"key_header": header}
    assert connection.extra_dejson == expected


def test_fixture_for_users(service_simulator: ServiceSimulator) -> None:
    assert requests.get(f"{service_simulator.base_url}/healthz", timeout=60).json() == {"status": "ok"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command_line(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "airflow_provider_service.simulator", "--api-key", "k", "--unlicensed"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())
            headers = {"X-SERVICE-API-KEY": ready["api_key"]}
            answer = requests.get(f"{ready['base_url']}/api/v1/variables", headers=headers, timeout=60)
            process.send_signal(number)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert ready["api_key"] == "k"
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--port", "{port}"], "127.0.0.1, port {port}: Address already in use"),
        (["--port", "99999"], "127.0.0.1, port 99999: bind(): port must be 0-65535."),
        (["--host", "host.invalid"], "host.invalid, port 0: "),
    ],
)
def test_a_port_that_cannot_be_used_is_named_in_one_line(options: list[str], reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "airflow_provider_service.simulator", *options]
        done = subprocess.run(
            [one.format(port=port) for one in command], capture_output=True, text=True, timeout=600, check=False
        )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Cannot listen on " + reason.format(port=port))


def test_importing_the_package_loads_no_server() -> None:
    code = "import sys, airflow_provider_service.simulator; print('starlette' in sys.modules, 'uvicorn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_simulator_needs_neither_airflow_nor_the_client() -> None:
    code = (
        "import sys; from airflow_provider_service.simulator import ServiceSimulator; "
        "print([name for name in sys.modules if name in ('airflow', 'requests') "
        "or name.startswith('airflow_provider_service.client')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.strip() == "[]"
