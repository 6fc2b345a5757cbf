"""Insights, the audit and the discovery."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_service._core.connection_check import server_version
from airflow_provider_service.client.errors import (
    ServiceInvalidRequestError,
    ServiceNotLicensedError,
    ServiceNotOfferedError,
    ServiceUnauthorizedError,
)
from airflow_provider_service.client.models import InsightsSummary

from .expecting import NO_ID, refused, status_and_message, unique
from .target import Target
from .workbench import Workbench, webhook

UNITS = {
    "total": "count",
    "failed": "count",
    "failureRate": "ratio",
    "timeSaved": "minute",
    "averageRunTime": "millisecond",
}


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


# ---------------------------------------------------------------- insights


@pytest.mark.covers("get_insights_summary")
def test_every_figure_has_its_unit(service: Target) -> None:
    wire = service.client.insights.get_summary().to_wire()
    assert {name: figure["unit"] for name, figure in wire.items()} == UNITS
    assert all(set(figure) == {"value", "unit", "deviation"} for figure in wire.values())


@pytest.mark.covers("get_insights_summary")
def test_an_unknown_project_has_no_figures(service: Target) -> None:
    summary = service.client.insights.get_summary(
        start_date=days_ago(2), end_date=days_ago(1).isoformat(), project_id=NO_ID
    )
    assert {figure["value"] for figure in summary.to_wire().values()} == {0}


@pytest.mark.covers("get_insights_summary")
def test_a_range_must_not_end_before_it_starts(service: Target) -> None:
    with refused(ServiceInvalidRequestError, "endDate must be the same as or after startDate", 400):
        service.client.insights.get_summary(start_date=days_ago(1), end_date=days_ago(2))


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-01", "2026-01-01T00%3A00%3A00"])
@pytest.mark.covers("get_insights_summary")
def test_insights_refuse_what_is_not_a_full_date_and_time(service: Target, moment: str) -> None:
    answer = service.raw("GET", f"/insights/summary?startDate={moment}")
    told = 'must match format "date-time"' if service.differs("family of insights") else "Invalid datetime"
    assert status_and_message(answer) == (400, f"request/query/startDate {told}")


@pytest.mark.covers("get_insights_summary")
def test_insights_ignore_an_unknown_parameter(service: Target) -> None:
    answer = service.raw("GET", "/insights/summary?foo=1")
    if service.differs("family of insights"):
        assert status_and_message(answer) == (400, "Unknown query parameter 'foo'")
    else:
        assert answer.status_code == 200


@pytest.mark.covers("get_insights_summary")
def test_figures_of_less_than_a_day_depend_on_the_plan(service: Target) -> None:
    def summary() -> InsightsSummary:
        return service.client.insights.get_summary(start_date=days_ago(0.5), end_date=days_ago(0.25))

    if service.free_edition:
        with refused(ServiceNotLicensedError, "Hourly data is not available with your current license"):
            summary()
    else:
        assert summary().total.value == 0


@pytest.mark.covers("get_insights_summary")
def test_the_accessible_history_depends_on_the_plan(service: Target) -> None:
    if service.free_edition:
        message = "The selected date range exceeds the maximum history allowed by your license"
        with refused(ServiceNotLicensedError, message):
            service.client.insights.get_summary(start_date=days_ago(30), end_date=days_ago(20))
    else:
        summary = service.client.insights.get_summary(start_date=days_ago(30), end_date=days_ago(20))
        assert summary.total.value == 0


# ---------------------------------------------------------------- audit


@pytest.mark.covers("generate_audit", needs=("create_workflow",))
def test_an_audit_names_a_webhook_that_anyone_can_call(service: Target, bench: Workbench) -> None:
    workflow = bench.publish(webhook(unique()))

    reports = service.client.audit.generate(categories=["instance"])

    assert set(reports) == {"Instance Risk Report"}
    report = reports["Instance Risk Report"]
    assert report.risk == "instance"
    places = [place for section in report.sections for place in section.location or []]
    assert workflow.id in [place.get("workflowId") for place in places]


@pytest.mark.covers("generate_audit", needs=("create_credential",))
def test_an_audit_names_a_credential_that_nothing_uses(service: Target) -> None:
    credential = service.client.credentials.create(unique(), "httpHeaderAuth", {"name": "X", "value": "s"})
    try:
        reports = service.client.audit.generate(categories=["credentials"], days_abandoned_workflow=1)
    finally:
        service.client.credentials.delete(credential.id)

    sections = reports["Credentials Risk Report"].sections
    assert all(section.title and section.description and section.recommendation for section in sections)
    assert credential.id in [place["id"] for section in sections for place in section.location or []]


@pytest.mark.covers("generate_audit")
def test_an_audit_of_everything(service: Target) -> None:
    assert set(service.client.audit.generate()) <= {
        f"{risk} Risk Report" for risk in ("Credentials", "Database", "Nodes", "Filesystem", "Instance")
    }


@pytest.mark.covers("generate_audit")
def test_an_audit_without_findings_is_an_empty_list(service: Target) -> None:
    answer = service.raw("POST", "/audit", json={"additionalOptions": {"categories": ["database"]}})

    assert (answer.status_code, answer.json()) == (200, [])
    assert service.client.audit.generate(categories=["database"]) == {}


@pytest.mark.covers("generate_audit")
def test_an_unknown_category_is_refused(service: Target) -> None:
    message = (
        "request/body/additionalOptions/categories/0 must be equal to one of the allowed values: "
        "credentials, database, nodes, filesystem, instance"
    )
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("POST", "/audit", body={"additionalOptions": {"categories": ["x"]}})


# ---------------------------------------------------------------- discovery


@pytest.mark.covers("discover")
def test_a_key_finds_out_what_it_may_do(service: Target) -> None:
    key = service.create_key(["tag:list", "tag:create"])

    found = service.client_for(key).discovery.discover()

    assert sorted(found.scopes) == ["tag:create", "tag:list"]
    assert sorted(found.resources["tags"].operations) == ["create", "list"]
    assert {(endpoint.method, endpoint.path) for endpoint in found.resources["tags"].endpoints} == {
        ("GET", "/api/v1/tags"),
        ("POST", "/api/v1/tags"),
    }
    assert found.spec_url == "/api/v1/openapi.yml"


@pytest.mark.covers("discover")
def test_the_discovery_is_narrowed_and_widened(service: Target) -> None:
    discover = service.client.discovery.discover

    narrowed = discover(resource="tags", operation="create", include="schemas")

    assert set(narrowed.resources) == {"tags"}
    (endpoint,) = narrowed.resources["tags"].endpoints
    assert endpoint.method == "POST"
    assert "name" in (endpoint.request_schema or {})["properties"]
    assert discover(resource="nothing").resources == {}
    assert all(endpoint.request_schema is None for endpoint in discover(resource="tags").resources["tags"].endpoints)


@pytest.mark.covers("discover")
def test_the_key_with_all_scopes_sees_them_all(service: Target) -> None:
    assert set(service.client.discovery.discover().scopes) == service.scopes


@pytest.mark.covers("discover")
def test_the_discovery_needs_a_good_key(service: Target) -> None:
    with refused(ServiceUnauthorizedError, "unauthorized"):
        service.client_for("wrong").discovery.discover()
    with refused(ServiceNotOfferedError, "Unknown query parameter 'foo'", 400):
        service.client.request("GET", "/discover", query={"foo": "1"})


# ---------------------------------------------------------------- the start page


def test_the_start_page_tells_the_version(service: Target) -> None:
    assert server_version(service.client) == service.version
