"""Rules of single operations: null, dates and times, guards, and results that depend on an argument."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import requests_mock

from airflow_provider_service.client import errors
from airflow_provider_service.client._models import NULL
from airflow_provider_service.client.models import InsertedRows, Workflow
from airflow_provider_service.client.resources._base import moment
from airflow_provider_service.client.resources._workflows import writable

from . import samples
from .clients import ROOT, Client

FILTER = {"filters": [{"columnName": "id", "value": 1}]}
EITHER = {"type": "or", "filters": [*FILTER["filters"], {"columnName": "id", "value": 2}]}
Calls = Callable[[Client], Any]


@pytest.fixture
def server(server: requests_mock.Mocker) -> requests_mock.Mocker:
    server.register_uri(requests_mock.ANY, requests_mock.ANY, json=True)
    return server


def answer(server: requests_mock.Mocker, value: Any, status: int = 200) -> None:
    json_type = {"Content-Type": "application/json"}
    server.register_uri(requests_mock.ANY, requests_mock.ANY, json=value, status_code=status, headers=json_type)


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (lambda client: client.workflows.publish("w"), None),
        (lambda client: client.workflows.activate("w", name="x"), {"name": "x"}),
        (lambda client: client.executions.retry(7), None),
        (lambda client: client.executions.retry(7, load_workflow=False), {"loadWorkflow": False}),
        (lambda client: client.community_packages.update("p"), None),
        (lambda client: client.audit.generate(), None),
        (lambda client: client.audit.generate(categories=["nodes"]), {"additionalOptions": {"categories": ["nodes"]}}),
        (lambda client: client.source_control.pull(), {}),
        (lambda client: client.credentials.update("c"), {}),
        (lambda client: client.workflows.update_tags("w", []), []),
        (lambda client: client.variables.update("v", "k", ""), {"key": "k", "value": ""}),
        (
            lambda client: client.variables.update("v", "k", "x", project_id=NULL),
            {"key": "k", "value": "x", "projectId": None},
        ),
    ],
)
def test_only_what_is_given_is_sent(client: Client, server: requests_mock.Mocker, call: Calls, body: Any) -> None:
    with suppress(errors.ServiceUnexpectedResponseError):  # the answer does not matter here
        call(client)

    (request,) = server.request_history
    assert (json.loads(request.body) if request.body else None) == body
    assert ("Content-Type" in request.headers) == (body is not None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2026, 7, 1, 2, 3, 4, 5678, tzinfo=timezone(timedelta(hours=2))), "2026-07-01T00:03:04.005Z"),
        (datetime(2026, 7, 1, tzinfo=UTC), "2026-07-01T00:00:00.000Z"),
        ("2026-07-01", "2026-07-01"),
        (None, None),
    ],
)
def test_dates_and_times_are_written_as_the_service_does(value: Any, text: str | None) -> None:
    assert moment("since", value) == text


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("started_after", lambda client, naive: client.executions.list(started_after=naive)),
        ("started_before", lambda client, naive: client.executions.list(started_before=naive)),
        ("started_after", lambda client, naive: client.executions.stop_many(["running"], started_after=naive)),
        ("end_date", lambda client, naive: client.insights.get_summary(end_date=naive)),
    ],
)
def test_a_date_and_time_without_a_time_zone_is_not_sent(
    client: Client, server: requests_mock.Mocker, argument: str, call: Callable[[Client, datetime], Any]
) -> None:
    expected = f"{argument} must have a time zone, unlike 2026-01-01T00:00:00; nothing was sent"
    with pytest.raises(errors.ServiceInputError, match=expected):
        call(client, datetime(2026, 1, 1))

    assert server.request_history == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda client: client.data_table_rows.list("t", filter=EITHER, search="a"),
            "a search cannot be combined with",
        ),
        (lambda client: client.data_table_rows.delete("t", {}), "filter must contain at least one condition"),
        (lambda client: client.data_table_rows.delete("t", {"filters": []}), "at least one condition"),
        (lambda client: client.data_table_rows.delete("t", None), "at least one condition"),
        (lambda client: client.data_table_rows.delete("t", '{"filters": [1]}'), "at least one condition"),
        (lambda client: client.data_table_rows.update("t", {"type": "or"}, {"a": 1}), "at least one condition"),
        (lambda client: client.data_table_rows.upsert("t", {"filters": []}, {"a": 1}), "at least one condition"),
        (lambda client: client.data_table_rows.update("t", FILTER, {}), "data must be one object"),
        (lambda client: client.data_table_rows.upsert("t", FILTER, [{"a": 1}]), "data must be one object"),
        (lambda client: client.data_table_rows.insert("t", []), "data must be a list of at least one row"),
        (lambda client: client.data_table_rows.insert("t", {"a": 1}), "data must be a list of at least one row"),
        (lambda client: client.executions.stop_many([]), "status must be a list of at least one status"),
        (lambda client: client.executions.stop_many("running"), "status must be a list"),
        (lambda client: client.executions.stop_many(["running"], workflow_id=" "), "workflow_id must not be empty"),
        (lambda client: client.executions.stop_many(["running"], workflow_id="all"), "must be the id of a workflow"),
        (lambda client: client.workflows.list(project_id=""), "project_id must not be empty"),
        (lambda client: client.workflows.list(name=" "), "name must not be empty"),
        (lambda client: client.workflows.list(tags=""), "tags must not be empty"),
        (lambda client: client.workflows.list(tags=["a", ""]), "tags must not be empty"),
        (lambda client: client.insights.get_summary(project_id=""), "project_id must not be empty"),
        (lambda client: client.executions.get("abc"), "whole number from 1, not 'abc'"),
        (lambda client: client.executions.delete(0), "whole number from 1, not 0"),
        (lambda client: client.executions.stop(-1), "whole number from 1"),
        (lambda client: client.executions.retry("١"), "whole number from 1"),  # noqa: RUF001
        (lambda client: client.executions.list_tags("1.0"), "whole number from 1"),
        (lambda client: client.workflows.update_tags("w", "t1"), "ids must be a list"),
        (lambda client: client.executions.update_tags(7, "t1"), "ids must be a list"),
        (lambda client: client.users.create([]), "users must be a list of at least one user"),
        (lambda client: client.users.create({"email": "a@example.com"}), "users must be a list"),
        (lambda client: client.users.delete("a@example.com"), "by id, not by e-mail address"),
        (lambda client: client.projects.add_users("p", []), "relations must be a list"),
        (lambda client: client.source_control.push("m", []), "file_names must be a list"),
        (lambda client: client.tags.list(limit=-1), "limit must be a whole number from 0, not -1"),
        (lambda client: client.tags.list(limit=True), "limit must be a whole number from 0, not True"),
        (lambda client: client.folders.list("p", limit="5"), "limit must be a whole number from 0, not '5'"),
        (lambda client: client.data_tables.list(filter={"id": float("nan")}), "cannot be written as JSON"),
        (lambda client: client.workflows.create("n", [], {}, {"x": object()}), "cannot be written as JSON"),
        (lambda client: client.tags.create("\ud800"), "cannot be written as JSON"),
        (lambda client: client.workflows.list(name="\ud800"), "not valid Unicode"),
    ],
)
def test_a_dangerous_or_unclear_argument_is_not_sent(
    client: Client, server: requests_mock.Mocker, call: Calls, message: str
) -> None:
    with pytest.raises(errors.ServiceInputError, match=message) as caught:
        [*call(client)]  # a lazy request is sent here at the latest

    assert "nothing was sent" in str(caught.value)
    assert server.request_history == []


def test_inserted_rows_are_returned_in_the_requested_form(client: Client, server: requests_mock.Mocker) -> None:
    answer(server, {"success": True, "insertedRows": 2})
    counted = client.data_table_rows.insert("t", [{}, {}])
    assert isinstance(counted, InsertedRows)
    assert counted.inserted_rows == 2
    assert server.last_request.json()["returnType"] == "count"

    answer(server, [{"id": 2}, {"id": 3}])
    assert client.data_table_rows.insert("t", [{}, {}], return_type="id") == [{"id": 2}, {"id": 3}]


@pytest.mark.parametrize("value", [True, [], [samples.ROW]], ids=str)
def test_changed_rows_are_returned_unchanged(client: Client, server: requests_mock.Mocker, value: Any) -> None:
    answer(server, value)

    assert client.data_table_rows.update("t", FILTER, {"a": 1}) == value
    assert client.data_table_rows.upsert("t", FILTER, {"a": 1}) == value
    assert client.data_table_rows.delete("t", FILTER) == value


@pytest.mark.parametrize(
    ("options", "repeated"),
    [({}, True), ({"return_data": True}, False), ({"return_data": True, "dry_run": True}, True)],
)
@pytest.mark.parametrize("method", ["update", "delete"])
def test_a_change_of_rows_is_repeated_unless_its_answer_contains_the_rows(
    server: requests_mock.Mocker, method: str, options: dict[str, bool], repeated: bool
) -> None:
    client = Client(retry_deadline=30)
    server.register_uri(requests_mock.ANY, requests_mock.ANY, [{"status_code": 502}, {"json": True}])
    arguments = ["t", FILTER, {"a": 1}] if method == "update" else ["t", FILTER]

    with suppress(errors.ServiceUnavailableError):
        getattr(client.data_table_rows, method)(*arguments, **options)

    assert len(server.request_history) == 1 + repeated


def test_an_audit_without_findings_is_empty(client: Client, server: requests_mock.Mocker) -> None:
    answer(server, [])

    assert client.audit.generate() == {}


def test_a_request_sends_files_and_returns_bytes(client: Client, server: requests_mock.Mocker) -> None:
    archive = b"\x1f\x8b\x08\x00not json"
    server.post(f"{ROOT}/n8n-packages/export", content=archive, headers={"Content-Type": "application/gzip"})
    server.post(f"{ROOT}/n8n-packages/import", json={"workflows": []})

    package = client.request("POST", "/n8n-packages/export", body={"workflowIds": ["w"]}, binary=True)
    files = {"package": ("package.n8np", package, "application/gzip")}
    answer = client.request("POST", "/n8n-packages/import", body={"workflowConflictPolicy": "fail"}, files=files)

    assert (package, answer) == (archive, {"workflows": []})
    assert b'name="package"; filename="package.n8np"\r\nContent-Type: application/gzip\r\n\r\n' + archive in (
        server.last_request.body
    )
    assert b'name="workflowConflictPolicy"\r\n\r\nfail\r\n' in server.last_request.body


@pytest.mark.parametrize("as_model", [True, False])
def test_writable_keeps_the_fields_that_an_update_accepts(as_model: bool) -> None:
    read: Any = Workflow.model_validate(samples.WORKFLOW) if as_model else samples.WORKFLOW

    assert writable(read) == {
        "name": "Orders",
        **samples.GRAPH,
        "settings": {"executionTimeout": 60, "timeSavedPerExecution": 1.5},
        "pinData": {"Webhook": [{"json": {"n": 1}}]},
    }


def test_writable_always_returns_settings() -> None:
    assert writable({"name": "x", "nodes": [], "connections": {}, "settings": None}) == {
        "name": "x",
        "nodes": [],
        "connections": {},
        "settings": {},
    }


def test_a_single_tag_name_with_a_comma_stays_one_text(client: Client, server: requests_mock.Mocker) -> None:
    answer(server, samples.page())

    assert list(client.workflows.list(tags="a,b")) == []
    assert server.last_request.url.endswith("?tags=a%2Cb&limit=250")


def test_any_other_endpoint_can_be_called(client: Client, server: requests_mock.Mocker) -> None:
    answer(server, {"slug": "x"})

    assert client.request("GET", "/roles/{}", "global:owner", query={"withUsageCount": True}) == {"slug": "x"}
    assert server.last_request.url.endswith("/api/v1/roles/global%3Aowner?withUsageCount=true")


@pytest.mark.parametrize("row_id", [0.5, 0, 2**63, "1", None])
def test_ids_that_no_row_has_are_refused(client: Client, server: requests_mock.Mocker, row_id: Any) -> None:
    answer(server, {"data": [{"id": row_id}], "nextCursor": None})
    with pytest.raises(errors.ServiceUnexpectedResponseError):
        list(client.data_table_rows.list("t"))
    answer(server, [{"id": row_id}])
    with pytest.raises(errors.ServiceUnexpectedResponseError):
        client.data_table_rows.insert("t", [{"sku": "a"}], return_type="id")
