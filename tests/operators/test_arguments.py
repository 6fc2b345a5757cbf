"""Invalid arguments are refused at once, by name, before anything is sent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceConfigError, ServiceInputError, ServiceLookupError
from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.community_packages import ServiceInstallCommunityPackageOperator
from airflow_provider_service.operators.credentials import (
    ServiceCreateCredentialOperator,
    ServiceUpdateCredentialOperator,
)
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.executions import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionOperator,
    ServiceStopExecutionsOperator,
)
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.operators.insights import ServiceGetInsightsOperator
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceReadRowsOperator,
    ServiceUpdateRowsOperator,
    ServiceUpsertRowsOperator,
)
from airflow_provider_service.operators.source_control import ServicePullSourceControlOperator
from airflow_provider_service.operators.tags import ServiceCreateTagOperator
from airflow_provider_service.operators.users import ServiceInviteUsersOperator
from airflow_provider_service.operators.variables import ServiceCreateVariableOperator, ServiceDeleteVariableOperator
from airflow_provider_service.operators.workflows import (
    ServiceActivateWorkflowOperator,
    ServiceCreateOrUpdateWorkflowOperator,
    ServiceSetWorkflowTagsOperator,
)

FILTER = {"filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]}
DATA_CONNECTION = {"name": "n", "credential_type": "httpBasicAuth", "data_conn_id": "tracker"}
SECONDS = "must be a timedelta or a number of seconds above 0"
COUNT = "must be a whole number from"
FLAG = "must be True or False, not 'no'"

STOP = (ServiceStopExecutionOperator, {"execution_id": 1})
STOP_MANY = (ServiceStopExecutionsOperator, {})
DELETE = (ServiceDeleteExecutionsOperator, {"workflow_id": "w"})
AUDIT = (ServiceGenerateAuditOperator, {})
PACKAGE = (ServiceInstallCommunityPackageOperator, {"name": "n8n-nodes-example"})
PULL = (ServicePullSourceControlOperator, {})
GENERIC = (ServiceOperator, {"resource": "tags", "action": "list"})
INSERT = (ServiceInsertRowsOperator, {"data_table_id": "t", "rows": []})
UPSERT = (ServiceUpsertRowsOperator, {"data_table_id": "t", "rows": [], "key_columns": ["sku"]})
UPDATE_ROWS = (ServiceUpdateRowsOperator, {"data_table_id": "t", "filter": FILTER, "data": {"sku": "b"}})
DELETE_ROWS = (ServiceDeleteRowsOperator, {"data_table_id": "t"})
READ = (ServiceReadRowsOperator, {"data_table_id": "t"})
CREATE_TABLE = (ServiceCreateDataTableOperator, {"name": "stock"})
SET_TAGS = (ServiceSetWorkflowTagsOperator, {"workflow_id": "w"})
CREATE_TAG = (ServiceCreateTagOperator, {"name": "billing"})
CREATE_VARIABLE = (ServiceCreateVariableOperator, {"key": "STAGE", "value": "test"})
DELETE_VARIABLE = (ServiceDeleteVariableOperator, {"key": "STAGE"})
CREATE_CREDENTIAL = (ServiceCreateCredentialOperator, DATA_CONNECTION)
INVITE = (ServiceInviteUsersOperator, {})
INSIGHTS = (ServiceGetInsightsOperator, {})


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        # numbers of seconds
        (STOP, {"timeout": "soon"}, f"timeout {SECONDS}, up to 1000000000, not 'soon'"),
        (STOP, {"timeout": -1}, f"timeout {SECONDS}"),
        (STOP, {"timeout": 0}, f"timeout {SECONDS}"),
        (STOP, {"timeout": True}, f"timeout {SECONDS}"),
        (STOP, {"timeout": timedelta(0)}, f"timeout {SECONDS}"),
        (STOP, {"timeout": float("nan")}, f"timeout {SECONDS}"),
        (STOP, {"timeout": 10**5000}, f"timeout {SECONDS}, up to .*, not a number with too many digits"),
        (STOP, {"poll_interval": [1]}, f"poll_interval {SECONDS}"),
        (AUDIT, {"timeout": "inf"}, f"timeout {SECONDS}"),
        (PACKAGE, {"timeout": None}, f"timeout {SECONDS}"),
        (PULL, {"timeout": 0}, f"timeout {SECONDS}"),
        # whole numbers
        (GENERIC, {"limit": 10**30}, f"limit {COUNT} 1 to 9007199254740992, not 1000"),
        (GENERIC, {"limit": "9" * 5000}, f"limit {COUNT}"),
        (GENERIC, {"limit": "1.5"}, f"limit {COUNT}"),
        (GENERIC, {"limit": True}, f"limit {COUNT}"),
        (GENERIC, {"limit": 0}, f"limit {COUNT} 1 to .*, not 0"),
        (READ, {"max_rows": "many"}, f"max_rows {COUNT} 0"),
        (READ, {"max_rows": -1}, f"max_rows {COUNT} 0 to .*, not -1"),
        (INSERT, {"batch_rows": 2.0}, f"batch_rows {COUNT}"),
        (INSERT, {"batch_bytes": 0}, f"batch_bytes {COUNT}"),
        (DELETE, {"max_deletions": -1}, f"max_deletions {COUNT}"),
        (DELETE, {"max_deletions": 0}, f"max_deletions {COUNT} 1 to"),
        (DELETE_ROWS, {"row_ids": [1, "9" * 5000]}, f"each of row_ids {COUNT}"),
        (DELETE_ROWS, {"row_ids": [10**5000]}, f"each of row_ids {COUNT}"),
        # flags
        (STOP_MANY, {"all_workflows": "no"}, f"all_workflows {FLAG}"),
        (STOP_MANY, {"all_workflows": 1}, "all_workflows must be True or False, not 1"),
        (DELETE, {"workflow_id": None, "all_workflows": "no"}, f"all_workflows {FLAG}"),
        (DELETE, {"preview": "no"}, f"preview {FLAG}"),
        (UPDATE_ROWS, {"preview": "no"}, f"preview {FLAG}"),
        (DELETE_ROWS, {"row_ids": [1], "preview": "no"}, f"preview {FLAG}"),
        (STOP, {"wait_for_completion": "no"}, f"wait_for_completion {FLAG}"),
        (SET_TAGS, {"tags": [], "create_missing": "no"}, f"create_missing {FLAG}"),
        (PULL, {"force": "no"}, f"force {FLAG}"),
        (READ, {"neutralize_formulas": "no"}, f"neutralize_formulas {FLAG}"),
        (PACKAGE, {"verify": "no"}, "verify must be True, False or None, not 'no'"),
        ((ServiceUpdateCredentialOperator, {"name": "n"}), {"merge_data": "no"}, f"merge_data {FLAG}"),
        (
            (ServiceCreateOrUpdateWorkflowOperator, {"definition": {}}),
            {"activate": 1},
            "activate must be True, Fal",
        ),
        # choices
        (UPSERT, {"on_duplicate": "first"}, "on_duplicate must be one of last, fail, not 'first'"),
        (UPSERT, {"on_stored_duplicates": "newest"}, "on_stored_duplicates must be one of remove_copies, keep_newest,"),
        (UPSERT, {"change_strategy": "insert"}, "change_strategy must be one of update, replace, auto, not 'insert'"),
        (CREATE_TABLE, {"columns": {}, "if_exists": "replace"}, "if_exists must be one of skip, fail, not 'replace'"),
        (CREATE_CREDENTIAL, {"if_exists": "x"}, "if_exists must be one of skip, update, fail, not 'x'"),
        (CREATE_TAG, {"if_exists": "update"}, "if_exists must be one of skip, fail, not 'update'"),
        (CREATE_VARIABLE, {"if_exists": "x"}, "if_exists must be one of update, skip, fail, not 'x'"),
        (DELETE_VARIABLE, {"if_missing": "skip"}, "if_missing must be one of ignore, fail, not 'skip'"),
        (PULL, {"auto_publish": "some"}, "auto_publish must be one of none, all, published, not 'some'"),
        # several values
        (SET_TAGS, {"tags": [1, None]}, "each of tags must be text that is not empty, not 1"),
        (SET_TAGS, {"tags": [["a"]]}, r"each of tags must be text that is not empty, not \['a'\]"),
        (SET_TAGS, {"tags": ["a", " "]}, "each of tags must be text that is not empty, not ' '"),
        (UPSERT, {"key_columns": [None]}, "each of key_columns must be text that is not empty, not None"),
        (AUDIT, {"categories": []}, "categories must not be an empty list; None audits all of them"),
        (DELETE, {"status": [["error"]]}, "status must be one of success, .*, not "),
        (INVITE, {"users": [{"email": 5}]}, "users must list e-mail addresses"),
        (INVITE, {"users": ["a@example.com", "A@Example.com"]}, "users lists a@example.com more than once"),
        # dates and times
        (INSIGHTS, {"range_start": 5}, "range_start must be a date and time such as 2026-01-31T00:00:00Z, not 5"),
        (DELETE, {"started_before": 5}, "started_before must be a date and time"),
        (
            DELETE,
            {"older_than": "old"},
            "older_than must be a timedelta or a number of seconds from 0, up to .*, not 'old'",
        ),
        (DELETE, {"older_than": timedelta.max}, "older_than must be a timedelta"),
        # mappings
        (CREATE_CREDENTIAL, {"data_conn_fields": ["x"]}, "data_conn_fields must be a mapping .*, not ."),
        (CREATE_CREDENTIAL, {"data_conn_fields": {"name": 5}}, "a field in data_conn_fields must be one of .*, not 5"),
        (CREATE_CREDENTIAL, {"data_conn_fields": {"user": "uri"}}, "one of host, port, login, .*, not 'uri'"),
        (CREATE_TABLE, {"columns": 5}, "columns must be a list, not int"),
        (CREATE_TABLE, {"columns": {5: "string"}}, "columns must map names to types"),
        (CREATE_TABLE, {"columns": {"SKU": "string", "sku": "number"}}, "each name once, regardless of case"),
        (READ, {"filter": '{"filters": [1]}'}, "filter must be a mapping, not str"),
        (READ, {"filter": {}}, "filter must hold at least one condition"),
        (GENERIC, {"arguments": []}, "arguments must be a mapping, not list"),
        # ids
        (STOP, {"execution_id": "9" * 5000}, "'9+' cannot be an id"),
        (STOP, {"execution_id": 10**5000}, "cannot be an id"),
        (STOP, {"execution_id": True}, "an id must be text or a whole number, not bool"),
        (STOP, {"execution_id": "all"}, "an execution id must be a whole number from 1, not 'all'"),
        ((ServiceActivateWorkflowOperator, {}), {"workflow_id": "\udc80"}, r"'\\udc80' is not valid Unicode text"),
        (SET_TAGS, {"workflow_id": "\udc80", "tags": []}, r"'\\udc80' is not valid Unicode text"),
        (DELETE, {"workflow_id": "\udc80"}, r"'\\udc80' is not valid Unicode text"),
    ],
)
def test_invalid_arguments_are_refused(execute, simulator, monkeypatch, kind, arguments, message):
    monkeypatch.setenv("AIRFLOW_CONN_TRACKER", '{"conn_type": "http", "login": "u"}')
    operator, others = kind
    # Arguments that are not templates are refused before the task exists.
    expected = AirflowFailException if operator.checks.keys().isdisjoint(arguments) else ServiceInputError
    with pytest.raises(expected, match=message) as refused:
        execute(operator, **{**others, **arguments})
    assert len(str(refused.value)) < 500
    assert not simulator.requests


def test_a_path_that_is_not_text(execute, client):
    table = client.data_tables.create("stock", [{"name": "sku", "type": "string"}])
    with pytest.raises(AirflowFailException, match="path must be a path or an address of object storage, not 5"):
        execute(ServiceReadRowsOperator, data_table_id=table.id, path=5)


def test_numbers_may_be_text_as_templates_render_them(execute, client):
    table = client.data_tables.create("stock", [{"name": "sku", "type": "string"}])
    rows = [{"sku": "a"}, {"sku": "b"}]
    inserted = execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_rows="1", batch_bytes="50")
    assert inserted["inserted"] == 2
    assert execute(ServiceReadRowsOperator, data_table_id=table.id, max_rows="2")["count"] == 2
    assert execute(ServiceDeleteRowsOperator, data_table_id=table.id, row_ids=["1"])["deleted"] == 1
    assert execute(ServiceGenerateAuditOperator, timeout="30.5")["findings"] == 0


# ---------------------------------------------------------------- failures that a retry would meet again


@pytest.mark.parametrize(
    ("operator", "arguments", "cause", "message"),
    [
        (ServiceStopExecutionOperator, {"execution_id": "x"}, ServiceInputError, "an execution id must be a whole"),
        (ServiceReadRowsOperator, {"data_table_name": "x"}, ServiceLookupError, "there is no data table named 'x'"),
        (ServiceCreateTagOperator, {"name": "x", "service_conn_id": "bad"}, ServiceConfigError, "unknown field 'colou"),
    ],
)
def test_they_are_not_retried_and_keep_their_message(execute, monkeypatch, operator, arguments, cause, message):
    connection = '{"conn_type": "service", "host": "https://example.com", "password": "k", "extra": {"colour": "red"}}'
    monkeypatch.setenv("AIRFLOW_CONN_BAD", connection)
    with pytest.raises(AirflowFailException, match=message) as failed:
        execute(operator, **arguments)
    assert type(failed.value.__cause__) is cause
    assert str(failed.value) == str(failed.value.__cause__)


# ---------------------------------------------------------------- templates that render to nothing


def test_executions_of_every_workflow_stay(execute, client, simulator):
    workflow_id = simulator.create_webhook_workflow("orders", path="orders")["id"]
    ids = {simulator.start_execution(workflow_id, status="success") for _ in range(2)}
    for selection in ({"workflow_id": "{{ nope }}"}, {"workflow_id": workflow_id, "started_before": "{{ x }}"}):
        for operator in (ServiceDeleteExecutionsOperator, ServiceStopExecutionsOperator):
            with pytest.raises(AirflowFailException, match=r"^(workflow_id|started_before) is empty; give a value"):
                execute(operator, **selection)
    assert {one.id for one in client.executions.list()} == ids


def test_the_draft_is_not_activated(execute, client, simulator):
    workflow_id = simulator.create_webhook_workflow("orders", path="orders", active=False)["id"]
    with pytest.raises(AirflowFailException, match="version_id is empty"):
        execute(ServiceActivateWorkflowOperator, workflow_id=workflow_id, version_id=" {{ nope }} ")
    assert not client.workflows.get(workflow_id).active


@pytest.mark.parametrize("selection", [{"workflow_id": ""}, {"project_id": " "}, {"workflow_id": 5}])
def test_the_client_selects_by_no_empty_id(client, simulator, selection):
    with pytest.raises(ServiceInputError, match=f"{next(iter(selection))} must not be empty; nothing was sent"):
        client.executions.list(**selection)
    assert not simulator.requests


def test_the_operator_for_any_method_selects_by_no_empty_id(execute, simulator):
    with pytest.raises(AirflowFailException, match="workflow_id must not be empty"):
        execute(ServiceOperator, resource="executions", action="list", arguments={"workflow_id": "{{ nope }}"})
    assert not simulator.requests
