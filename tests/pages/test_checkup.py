"""The examination of a connection: what it finds on a service that works, and on one that does not."""

from __future__ import annotations

import base64
import io
import resource
import sys

import pytest

from airflow_provider_service._cli import commands
from airflow_provider_service._core.connection_check import server_version
from airflow_provider_service._core.pages.checkup import (
    JOBS,
    SUBJECTS,
    Finding,
    examine,
    in_order,
    since,
    verdict,
)
from airflow_provider_service._core.runs.bridge import BridgeSecret, Installer
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._http.answers import SPECIFIED_SCOPES
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._gateway import OPERATIONS
from airflow_provider_service.simulator._validation import NEWEST, offers
from tests.client.tiny_server import TinyServer, answer

# Scopes that no job names: operators work without them, or there is no operator that needs them.
UNNAMED = {"executionTags:list", "executionTags:update", "user:enforceMfa"}


@pytest.fixture
def config(simulator):
    return ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)


def found(config: ServiceConfig) -> dict[str, tuple[str, str]]:
    return {one.subject: (one.grade, one.text) for one in examine(config)}


def test_a_key_with_every_scope_can_do_every_job(config, simulator):
    simulator.clear_requests()

    findings = found(config)

    notes = {subject for subject, (grade, _) in findings.items() if grade == "note"}
    assert notes - {"open files"} == {"MCP", "bridge", "pull from source control"}
    assert findings["version"] == ("ok", f"n8n {NEWEST}")
    assert findings["service"] == ("ok", f"{simulator.base_url} answers")
    assert findings["key"] == ("ok", "accepted; it holds 70 scopes")
    assert findings["clock"] == ("ok", "agrees with Airflow's clock")
    assert findings["plan"] == ("ok", "includes variables and projects")
    works = {job for job in JOBS if findings[job] == ("ok", "")}
    assert JOBS.keys() - works == {"pull from source control"}
    assert {one.method for one in simulator.requests} == {"GET"}
    assert len(simulator.requests) < 10


@pytest.mark.parametrize(
    "page",
    [
        b"<html>no version</html>",
        b'<meta name="n8n:config:sentry" content="===">',
        b'<meta name="n8n:config:sentry" content="/////w==">',
        b'<meta name="n8n:config:sentry" content="'
        + base64.b64encode(b'{"release":"n8n@<script>1.2.3</script>"}')
        + b'">',
        None,
    ],
    ids=str,
)
def test_a_start_page_without_a_version(page):
    with TinyServer(page and answer(page, "Content-Type: text/html")) as tiny:
        assert server_version(ServiceClient(ServiceConfig(base_url=tiny.address, api_key="the-key"))) is None

    assert "the-key" not in str(tiny.received)


def test_missing_scopes_are_named_by_job(simulator):
    key = simulator.create_key(["workflow:read", "workflow:list", "execution:read"])

    findings = found(ServiceConfig(base_url=simulator.base_url, api_key=key))

    assert findings["run a workflow and wait for it"] == ("note", "the key lacks execution:list, execution:stop")
    assert findings["plan"] == ("note", "not known, since the key may not list variables and projects")
    assert findings["key"] == ("ok", "accepted; it holds 3 scopes")
    assert verdict(list(examine(ServiceConfig(base_url=simulator.base_url, api_key=key)))).grade == "ok"


@pytest.mark.parametrize(
    ("limit", "grade", "waits"), [(40, "note", "0"), (1_024, "note", "974"), (4_096, "ok", "4,046")]
)
def test_the_limit_of_open_files_says_for_how_many_waits_it_suffices(config, monkeypatch, limit, grade, waits):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit, most))
    assert found(config)["open files"] == (
        grade,
        f"this process may open {limit:,} (ulimit -n); in a triggerer, enough for {waits} deferred waits",
    )


def test_a_process_without_a_limit_of_open_files_says_so(config, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY,) * 2)
    assert found(config)["open files"] == ("ok", "no limit for this process")


def test_every_specified_scope_belongs_to_a_job():
    assert {scope for scopes in JOBS.values() for scope in scopes} >= SPECIFIED_SCOPES - UNNAMED


def test_an_older_server_is_asked_for_no_more_than_it_has(config, simulator):
    simulator.version = "2.20.12"
    assert {job for job in JOBS if found(config)[job][0] == "note"} == {"pull from source control"}

    simulator.version = "2.8.4"
    findings = found(config)
    assert findings["version"] == ("ok", "n8n 2.8.4")
    assert findings["read insights"] == ("note", "not offered before n8n 2.17")
    assert findings["key"] == ("ok", "accepted")
    assert findings["jobs"] == ("note", "not examined, since this server does not report the scopes of a key")
    assert "manage tags" not in findings
    assert findings["retry, stop and delete executions"] == ("note", "execution:stop is not offered before n8n 2.10")
    assert verdict(list(examine(config))).text.startswith("Ready. ")
    simulator.version = "1.123.81"
    table_job = "create and change data tables"
    assert found(config)[table_job] == ("note", "not offered before n8n 2.7, and in full from 2.20 on")


@pytest.mark.parametrize("scope", sorted({scope for scopes in JOBS.values() for scope in scopes}))
def test_the_versions_of_the_jobs_are_those_of_the_published_contracts(scope):
    versions = [f"{major}.{minor}" for major, minor in [(1, 123), *((2, minor) for minor in range(42))]]
    names = [one.name for one in OPERATIONS.values() if scope in one.scopes]

    assert names
    first = next(one for one in versions if any(offers(one, name) for name in names))
    assert since(scope) == ("0.0" if first == "1.123" else first)


def test_what_the_plan_lacks_is_reported():
    with ServiceSimulator(licensed=False) as free:
        findings = found(ServiceConfig(base_url=free.base_url, api_key=free.api_key))

    assert findings["plan"] == ("note", "does not include variables and projects")
    assert JOBS.keys() - findings.keys() == {"manage variables", "manage projects and folders"}  # the plan says so
    unknown = "works if the plan of the server includes source control, which is not known"
    assert findings["pull from source control"] == ("note", unknown)


def test_mcp_and_bridge_are_ready_where_they_are(config, client, simulator):
    Installer(client, BridgeSecret(config)).install()

    findings = found(config.model_copy(update={"mcp_api_key": type(config.api_key)(simulator.mcp_api_key)}))

    assert findings["MCP"][0] == findings["bridge"][0] == "ok"
    assert found(config.model_copy(update={"mcp_api_key": config.api_key}))["MCP"][0] == "FAIL"


def test_a_clock_that_is_far_off_fails(config, simulator):
    simulator.clock.shift(-1200)

    grade, text = found(config)["clock"]

    assert (grade, "behind Airflow's clock" in text) == ("FAIL", True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_command_shows_how_far_it_has_come(database, simulator, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)

    assert commands.main(["doctor"]) == 0

    assert f"{len(SUBJECTS)}/{len(SUBJECTS)}" in screen.getvalue()
    assert f"1/{len(SUBJECTS)}" in screen.getvalue()
    assert f"ok    service: {simulator.base_url} answers" in screen.getvalue()
    assert simulator.api_key not in screen.getvalue()


def test_every_subject_is_found_in_its_order(config, simulator):
    assert tuple(one.subject for one in examine(config)) == SUBJECTS


def test_a_wrong_key_ends_the_examination(simulator):
    findings = list(examine(ServiceConfig(base_url=simulator.base_url, api_key="a-wrong-key-of-somebody")))

    assert [(one.subject, one.grade) for one in findings] == [("service", "ok"), ("key", "FAIL")]
    assert "a-wrong-key-of-somebody" not in str(findings)
    assert verdict(findings) == Finding("connection", "FAIL", "1 check failed: key. The rest was not examined.")


def test_something_else_at_the_address_does_not_count_as_a_service_that_answers():
    with TinyServer(answer(b"<html>hello</html>", "Content-Type: text/html")) as tiny:
        findings = list(examine(ServiceConfig(base_url=tiny.address, api_key="the-key")))

    assert [(one.subject, one.grade) for one in findings] == [("service", "FAIL")]
    assert verdict(findings) == Finding("connection", "FAIL", "1 check failed: service. The rest was not examined.")


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ({}, ("ok", "Ready.")),
        ({"MCP": "note"}, ("ok", "Ready. 1 note.")),
        ({"plan": "note", "manage tags": "note"}, ("ok", f"Ready for {len(JOBS) - 1} of {len(JOBS)} jobs. 2 notes.")),
        ({"clock": "FAIL", "MCP": "note"}, ("FAIL", "1 check failed: clock.")),
        ({"MCP": "FAIL", "plan": "FAIL"}, ("FAIL", "2 checks failed: plan, MCP.")),
    ],
)
def test_the_headline_agrees_with_the_lines_and_notes_come_last(grades, expected):
    findings = [Finding(one, grades.get(one, "ok")) for one in SUBJECTS]

    assert verdict(findings) == Finding("connection", *expected)
    notes = [one for one in SUBJECTS if grades.get(one) == "note"]
    assert [one.subject for one in in_order(findings)] == [*(one for one in SUBJECTS if one not in notes), *notes]


def test_the_command_prints_what_it_finds_and_fails_if_somebody_has_to_act(
    database_without_runs, simulator, capsys, monkeypatch
):
    assert commands.main(["doctor"]) == 0
    out = capsys.readouterr().out
    first, *lines = out[: out.index("\nWaits")].splitlines()
    assert first == f"Ready for {len(JOBS) - 1} of {len(JOBS)} jobs. 3 notes."
    assert lines[:2] == [f"ok    service: {simulator.base_url} answers", "ok    key: accepted; it holds 70 scopes"]
    assert "ok    run a workflow and wait for it" in lines
    grades = [line.split()[0] for line in lines]
    assert grades == sorted(grades, key=["ok", "note"].index)
    assert "note  MCP: not set up" in out
    assert "\x1b" not in out
    assert "Waits in the triggerers. There are none." in out
    assert "Latest runs from Airflow. There are none" in out
    assert simulator.api_key not in out

    simulator.inject("status", status=503, times=None)
    assert commands.main(["doctor"]) == 1
    assert "FAIL  service:" in capsys.readouterr().out

    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    assert commands.main(["doctor", "no_such_connection"]) == 1
    failed = "1 check failed: connection. The rest was not examined.\n"
    assert capsys.readouterr().out == (
        f"{failed}FAIL  connection: 'no_such_connection' cannot be used: Airflow has no such connection; "
        "add it under Admin, Connections, or as a variable of the environment\n"
    )

    monkeypatch.setenv("AIRFLOW_CONN_WITHOUT_KEY", '{"conn_type": "service", "host": "http://x.test"}')
    assert commands.main(["doctor", "without_key"]) == 1
    expected = f"{failed}FAIL  connection: 'without_key' cannot be used: password is empty; it holds the API key\n"
    assert capsys.readouterr().out == expected
