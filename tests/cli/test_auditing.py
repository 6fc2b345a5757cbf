"""``audit`` and ``doctor``: the exit status says whether somebody has to act."""

from __future__ import annotations

from tests.runs.workflows import put, webhook


def test_an_audit_without_findings(cli):
    ended = cli("audit", "--fail-on", "credentials", "nodes")

    assert ended.status == 0
    assert "Findings: 0" in ended.out


def test_an_audit_with_findings_that_matter(cli, client, tmp_path):
    client.credentials.create("unused", "httpHeaderAuth", {"name": "X", "value": "y"})
    report = tmp_path / "audit.html"

    ended = cli("audit", "--fail-on", "credentials", "--report-path", report, "--json")

    assert ended.status == 1
    assert ended.result["failure"].startswith("the audit has findings in credentials: ")
    assert ended.result["by_category"].keys() == {"credentials"}
    assert "unused" in report.read_text()
    assert cli("audit", "--fail-on", "nodes").status == 0


def test_an_audit_shows_names_and_no_ids(cli, simulator):
    workflow_id = put(simulator, webhook(), name="Open")

    lines = cli("audit").out.splitlines()

    assert "    - Open, Webhook, n8n-nodes-base.webhook" in lines
    assert workflow_id not in "".join(lines)


def test_categories_that_do_not_fit(cli, simulator):
    simulator.clear_requests()

    assert cli("audit", "--categories", "weather").status == 2
    assert cli("audit", "--categories", "nodes", "--fail-on", "database").status == 2
    assert not simulator.requests


def test_a_doctor_for_machines(cli, database, simulator):
    ended = cli("doctor", "--json")
    assert (ended.status, ended.result["healthy"]) == (0, True)
    assert {one["grade"] for one in ended.result["findings"]} == {"ok", "note"}

    simulator.inject("status", status=503, times=None)
    ended = cli("doctor", "service_default", "--json")
    assert (ended.status, ended.result["healthy"]) == (1, False)
