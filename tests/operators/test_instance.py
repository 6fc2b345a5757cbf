"""Operators on users, community packages, audit and insights."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.community_packages import ServiceInstallCommunityPackageOperator
from airflow_provider_service.operators.insights import ServiceGetInsightsOperator
from airflow_provider_service.operators.users import ServiceInviteUsersOperator

# ---------------------------------------------------------------- users


def test_users_are_invited_and_active_ones_left_alone(execute, client, simulator, link):
    simulator.state.add_user("active@example.com")
    users = ["new@example.com", {"email": "admin@example.com", "role": "global:admin"}, "Active@example.com"]
    users[2] = "active@example.com"
    done = execute(ServiceInviteUsersOperator, users=users)
    assert [one["email"] for one in done["invited"]] == ["new@example.com", "admin@example.com"]
    assert done["already_active"] == ["active@example.com"]
    roles = {one.email: one.role for one in client.users.list(include_role=True)}
    assert (roles["new@example.com"], roles["admin@example.com"]) == ("global:member", "global:admin")
    assert "token=" not in json.dumps(done)
    again = execute(ServiceInviteUsersOperator, users=users)
    assert [one["user_id"] for one in again["invited"]] == [one["user_id"] for one in done["invited"]]
    assert link() == "/settings/users"


def test_no_call_is_made_without_users(execute, writes):
    assert execute(ServiceInviteUsersOperator, users=[])["invited"] == []
    assert writes() == []


@pytest.mark.parametrize(
    ("users", "message"),
    [("a@example.com", "users must be a list, not str"), ([{"role": "global:member"}], "mappings with 'email'")],
)
def test_malformed_users_are_refused(execute, simulator, users, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceInviteUsersOperator, users=users)
    assert not simulator.requests


def test_an_unknown_role_is_refused_by_the_service(execute):
    with pytest.raises(AirflowFailException, match="Role global:king does not exist"):
        execute(ServiceInviteUsersOperator, users=["a@example.com"], role="global:king")


# ---------------------------------------------------------------- community packages


def test_a_package_is_installed_kept_and_updated(execute, client, writes, link):
    name = "n8n-nodes-example"
    first = execute(ServiceInstallCommunityPackageOperator, name=name, version="0.9.0")
    assert (first["outcome"], first["version"], first["previous_version"]) == ("installed", "0.9.0", None)
    assert writes() == ["POST /community-packages"]
    for version in (None, "0.9.0"):
        kept = execute(ServiceInstallCommunityPackageOperator, name=name, version=version)
        assert (kept["outcome"], kept["version"], writes()) == ("skipped", "0.9.0", [])
    updated = execute(ServiceInstallCommunityPackageOperator, name=name, version="1.0.0")
    assert (updated["outcome"], updated["version"], updated["previous_version"]) == ("updated", "1.0.0", "0.9.0")
    assert [(one.package_name, one.installed_version) for one in client.community_packages.list()] == [(name, "1.0.0")]
    assert link() == "/settings/community-nodes"


def test_a_package_that_is_not_vetted_is_refused(execute):
    with pytest.raises(AirflowFailException, match="not vetted for installation"):
        execute(ServiceInstallCommunityPackageOperator, name="n8n-nodes-unknown")


# ---------------------------------------------------------------- audit


@pytest.fixture
def risky(simulator):
    simulator.create_webhook_workflow("open", path="open")
    simulator.state.credentials.create("unused", "httpHeaderAuth", {"name": "a", "value": "b"})


@pytest.mark.usefixtures("risky")
def test_an_audit_is_counted_and_logged(execute, link, caplog):
    with caplog.at_level("INFO"):
        done = execute(ServiceGenerateAuditOperator)
    assert done["by_category"].keys() == {"credentials", "instance"}
    instance = done["by_category"]["instance"]
    assert instance == {"sections": 1, "locations": 1, "titles": ["Unprotected webhooks in instance"]}
    assert done["findings"] == 1 + done["by_category"]["credentials"]["sections"]
    assert "Recommendation: Require authentication." in caplog.text
    assert "unused" in caplog.text
    assert link() == "/home/workflows"


@pytest.mark.usefixtures("risky")
def test_findings_in_named_categories_fail(execute):
    with pytest.raises(AirflowFailException, match="findings in instance: Unprotected webhooks in instance"):
        execute(ServiceGenerateAuditOperator, fail_on=["database", "instance"])
    assert execute(ServiceGenerateAuditOperator, fail_on=["database", "nodes"])["findings"]
    only = execute(ServiceGenerateAuditOperator, categories=["credentials"], days_abandoned_workflow="30")
    assert only["by_category"].keys() == {"credentials"}


def test_listed_settings_are_not_a_finding(execute):
    assert execute(ServiceGenerateAuditOperator, fail_on=["instance"])["findings"] == 0


def test_an_audit_without_reports(execute, simulator):
    simulator.state.audit.reports = []
    done = execute(ServiceGenerateAuditOperator)
    assert (done["findings"], done["by_category"]) == (0, {})


def test_a_long_list_of_places_is_truncated_in_the_log(execute, simulator, caplog):
    places = [{"kind": "node", "nodeName": f"node {number}"} for number in range(25)]
    section = {"title": "t", "description": "d", "recommendation": "r", "location": places}
    simulator.state.audit.reports = {"Nodes Risk Report": {"risk": "nodes", "sections": [section]}}
    with caplog.at_level("INFO"):
        assert execute(ServiceGenerateAuditOperator)["by_category"]["nodes"]["locations"] == 25
    assert "node 19" in caplog.text
    assert "node 20" not in caplog.text
    assert "and 5 more" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"categories": ["network"]}, "categories must be one of credentials, database, nodes, filesystem, instance"),
        ({"fail_on": "nodes"}, "fail_on must be a list, not str"),
        (
            {"categories": ["nodes"], "fail_on": ["instance"]},
            "fail_on names instance, which categories does not include",
        ),
        (
            {"days_abandoned_workflow": "many"},
            "days_abandoned_workflow must be a whole number from 1 to .*, not 'many'",
        ),
    ],
)
def test_an_audit_refuses(execute, simulator, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceGenerateAuditOperator, **arguments)
    assert not simulator.requests


# ---------------------------------------------------------------- insights


def test_insights_of_a_range(execute, simulator, link):
    workflow_id = simulator.create_webhook_workflow("orders", path="orders")["id"]
    for status in ("success", "error"):
        simulator.start_execution(workflow_id, status=status)
    done = execute(ServiceGetInsightsOperator)
    assert done["total"].keys() == {"value", "unit", "deviation"}
    assert done.keys() == {"total", "failed", "failure_rate", "time_saved", "average_run_time", "report_path", "url"}
    assert link() == "/insights"
    texts = {"range_start": "2020-01-01 00:00:00+00:00", "range_end": datetime(2020, 2, 1, tzinfo=UTC)}
    assert execute(ServiceGetInsightsOperator, **texts)["total"]["value"] == 0
    starts = [request.query for request in simulator.requests if "insights" in request.path]
    assert starts[-1] == "startDate=2020-01-01T00%3A00%3A00.000Z&endDate=2020-02-01T00%3A00%3A00.000Z"


def test_an_invalid_range_is_refused(execute):
    with pytest.raises(AirflowFailException, match="range_start must be a date and time such as"):
        execute(ServiceGetInsightsOperator, range_start="last week")
    with pytest.raises(AirflowFailException, match="endDate must be"):
        execute(ServiceGetInsightsOperator, range_start="2026-02-01", range_end="2026-01-01")


# ---------------------------------------------------------------- reports


def test_an_audit_is_written_before_it_fails(execute, simulator, task_instance, tmp_path):
    simulator.create_webhook_workflow("<b>open</b>", path="open")
    path = tmp_path / "audit.html"
    with pytest.raises(AirflowFailException, match="findings in instance"):
        execute(ServiceGenerateAuditOperator, fail_on=["instance"], report_path=str(path))
    page = path.read_text()
    assert "Findings: 1, in 1 category. Those in instance fail the task." in page
    assert "instance: Unprotected webhooks in instance" in page
    assert "&lt;b&gt;open&lt;/b&gt;" in page
    assert "telemetry.diagnosticsEnabled" in page
    left = task_instance.pushed["audit"]
    assert (left["findings"], left["report_path"]) == (1, str(path))


@pytest.mark.usefixtures("risky")
def test_the_report_on_an_audit_shows_names_first_and_links_them(execute, simulator, tmp_path):
    execute(ServiceGenerateAuditOperator, report_path=f"{tmp_path}/audit.json")
    tables = {one["title"]: one for one in json.loads((tmp_path / "audit.json").read_text())["parts"] if "rows" in one}

    webhooks = tables["instance: Unprotected webhooks in instance"]
    assert webhooks["columns"] == ["Workflow", "Node", "Node type", "Kind", "Workflow id", "Node id"]
    [workflow] = simulator.state.workflows.all()
    assert webhooks["rows"][0][0] == {"text": "open", "url": f"{simulator.base_url}/workflow/{workflow.id}"}
    credentials = next(table for title, table in tables.items() if title.startswith("credentials: "))
    assert credentials["columns"] == ["Name", "Kind", "Id"]
    assert credentials["rows"][0][0] == {"text": "unused", "url": f"{simulator.base_url}/home/credentials"}


def test_columns_of_an_audit_that_nobody_knows_get_titles_too(execute, simulator, tmp_path):
    place = {
        "nodeId": 7,
        "someNewField": "<b>",
        "workflowId": "../x",
        "workflowName": "w",
        "packageUrl": "javascript:x",
    }
    section = {"title": "t", "description": "d", "recommendation": "r", "location": [place]}
    simulator.state.audit.reports = {"Nodes Risk Report": {"risk": "nodes", "sections": [section]}}
    execute(ServiceGenerateAuditOperator, report_path=f"{tmp_path}/audit.html")

    page = (tmp_path / "audit.html").read_text()

    titles = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', page)
    assert titles == ["Workflow", "Package url", "Some new field", "Node id", "Workflow id"]
    assert f'href="{simulator.base_url}/home/workflows"' in page
    assert "&lt;b&gt;" in page
    assert 'href="javascript' not in page


def test_an_audit_is_a_report_in_each_form(execute, tmp_path):
    done = execute(ServiceGenerateAuditOperator, report_path=f"{tmp_path}/audit.json")
    report = json.loads((tmp_path / "audit.json").read_text())
    assert done["report_path"] == f"{tmp_path}/audit.json"
    assert (report["title"], report["tone"], report["url"]) == ("Security audit", "good", done["url"])
    assert execute(ServiceGenerateAuditOperator)["report_path"] is None


@pytest.mark.usefixtures("risky")
def test_findings_without_places_are_in_the_report(execute, simulator, tmp_path):
    section = {"title": "Old version", "description": "It is old.", "recommendation": "Update.", "nextVersions": []}
    simulator.state.audit.reports = {"Instance Risk Report": {"risk": "instance", "sections": [section]}}
    execute(ServiceGenerateAuditOperator, report_path=f"{tmp_path}/audit.md")
    assert "## instance: Old version\n\nIt is old. Recommendation: Update.\n" in (tmp_path / "audit.md").read_text()


def test_insights_are_compared_with_the_previous_period(execute, simulator, tmp_path):
    workflow_id = simulator.create_webhook_workflow("orders", path="orders")["id"]
    simulator.clock.shift(-10 * 86_400)
    simulator.start_execution(workflow_id, status="success")
    simulator.clock.shift(10 * 86_400)
    for status in ("success", "error"):
        simulator.start_execution(workflow_id, status=status)
    done = execute(ServiceGetInsightsOperator, report_path=f"{tmp_path}/insights.json")
    report = json.loads((tmp_path / "insights.json").read_text())
    assert done["report_path"] == f"{tmp_path}/insights.json"
    assert report["message"] == "2 production executions from 7 days ago to now; 1 failed."
    assert report["parts"][0]["bars"] == [
        {"label": "this period", "parts": [1.0, 1.0]},
        {"label": "previous period", "parts": [1.0, 0.0]},
    ]
    shown = {one["label"]: (one["value"], one["note"]) for one in report["figures"]}
    assert shown["Failure rate"] == ("50 %", "+0.5 from the previous period")


def test_large_insights_are_shown_with_all_their_digits(execute, simulator, requests_mock, tmp_path, caplog):
    def figure(value: float, unit: str, deviation: float | None = None) -> dict[str, object]:
        return {"value": value, "unit": unit, "deviation": deviation}

    summary = {
        "total": figure(1_234_567, "count", -1_000_001),
        "failed": figure(1_000_009, "count"),
        "failureRate": figure(0.81, "ratio"),
        "timeSaved": figure(12_345_678, "minute"),
        "averageRunTime": figure(1234, "millisecond"),
    }
    requests_mock.get(f"{simulator.base_url}/api/v1/insights/summary", json=summary)
    caplog.set_level("INFO")
    execute(ServiceGetInsightsOperator, report_path=f"{tmp_path}/insights.json")

    report = json.loads((tmp_path / "insights.json").read_text())
    assert "1,234,567 production executions from" in report["message"]
    assert "; 1,000,009 failed." in report["message"]
    shown = {one["label"]: (one["value"], one["note"]) for one in report["figures"]}
    assert shown["Executions"] == ("1,234,567", "-1,000,001 from the previous period")
    assert shown["Time saved"] == ("12,345,678 min", "")
    assert "total 1,234,567 count" in caplog.text


@pytest.mark.parametrize("operator", [ServiceGenerateAuditOperator, ServiceGetInsightsOperator])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/tmp/report.pdf", "report_path must end in .md, .html, .json"),
        ("/nowhere/report.md", "the directory of report_path '/nowhere/report.md' does not exist"),
    ],
)
def test_a_report_that_could_not_be_written_is_refused(execute, simulator, operator, path, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(operator, report_path=path)
    assert not simulator.requests
