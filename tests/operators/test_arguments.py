"""Invalid arguments are refused at once, by name, before anything is sent."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_provider_service.client.errors import ServiceConfigError, ServiceInputError, ServiceLookupError
from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.community_packages import ServiceInstallCommunityPackageOperator
from airflow_provider_service.operators.credentials import (
    ServiceCreateCredentialOperator,
    ServiceUpdateCredentialOperator,
)
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureDataTablesOperator,
    ServiceEnsureVariablesOperator,
)
from airflow_provider_service.operators.execution_selections import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionsOperator,
)
from airflow_provider_service.operators.executions import ServiceStopExecutionOperator
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.operators.insights import ServiceGetInsightsOperator
from airflow_provider_service.operators.instances import ServiceExportWorkflowsOperator
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import (
    ServiceDeleteRowsOperator,
    ServiceInsertRowsOperator,
    ServiceUpdateRowsOperator,
    ServiceUpsertRowsOperator,
)
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.source_control import (
    ServicePullSourceControlOperator,
    ServicePushSourceControlOperator,
)
from airflow_provider_service.operators.tags import ServiceCreateTagOperator
from airflow_provider_service.operators.users import ServiceInviteUsersOperator
from airflow_provider_service.operators.variables import ServiceCreateVariableOperator, ServiceDeleteVariableOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator, ServiceSetWorkflowTagsOperator
from airflow_provider_service.testing import run_task

FILTER = {"filters": [{"columnName": "sku", "condition": "eq", "value": "a"}]}
DATA_CONNECTION = {"name": "n", "credential_type": "httpBasicAuth", "data_conn_id": "tracker"}

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
ENSURE_TABLES = (ServiceEnsureDataTablesOperator, {"data_tables": {}, "prune": True, "prune_prefix": "tmp_"})
ENSURE_VARIABLES = (ServiceEnsureVariablesOperator, {"variables": {}, "prune": True, "prune_prefix": "TMP_"})
PUSH = (ServicePushSourceControlOperator, {"commit_message": "nightly"})
EXPORT = (ServiceExportWorkflowsOperator, {"path": "flows", "remove_stale": True})


@pytest.fixture
def refused(execute, simulator, monkeypatch):
    """``refused(kind, arguments)`` executes a task that is refused before it sends anything; the message."""
    monkeypatch.setenv("AIRFLOW_CONN_TRACKER", '{"conn_type": "http", "login": "u"}')

    def run(kind, arguments):
        operator, others = kind
        # Arguments that are not templates are refused before the task exists.
        expected = AirflowFailException if operator.checks.keys().isdisjoint(arguments) else ServiceInputError
        with pytest.raises(expected) as failed:
            execute(operator, **{**others, **arguments})
        assert len(str(failed.value)) < 500
        assert not simulator.requests
        return str(failed.value)

    return run


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        # numbers of seconds
        (STOP, {"timeout": "soon"}),
        (STOP, {"timeout": -1}),
        (STOP, {"timeout": 0}),
        (STOP, {"timeout": True}),
        (STOP, {"timeout": timedelta(0)}),
        (STOP, {"timeout": float("nan")}),
        (STOP, {"timeout": 10**5000}),
        (STOP, {"poll_interval": [1]}),
        (AUDIT, {"timeout": "inf"}),
        (PACKAGE, {"timeout": None}),
        (PULL, {"timeout": 0}),
        # whole numbers
        (GENERIC, {"limit": 10**30}),
        (GENERIC, {"limit": "9" * 5000}),
        (GENERIC, {"limit": "1.5"}),
        (GENERIC, {"limit": True}),
        (GENERIC, {"limit": 0}),
        (READ, {"max_rows": "many"}),
        (READ, {"max_rows": -1}),
        (INSERT, {"batch_rows": 2.0}),
        (INSERT, {"batch_bytes": 0}),
        (DELETE, {"max_deletions": -1}),
        (DELETE, {"max_deletions": 0}),
        (DELETE_ROWS, {"row_ids": [1, "9" * 5000]}),
        (DELETE_ROWS, {"row_ids": [10**5000]}),
        # flags
        (STOP_MANY, {"all_workflows": "no"}),
        (STOP_MANY, {"all_workflows": 1}),
        (DELETE, {"workflow_id": None, "all_workflows": "no"}),
        (DELETE, {"preview": "no"}),
        (UPDATE_ROWS, {"preview": "no"}),
        (DELETE_ROWS, {"row_ids": [1], "preview": "no"}),
        (STOP, {"wait_for_completion": "no"}),
        (SET_TAGS, {"tags": [], "create_missing": "no"}),
        (PULL, {"force": "no"}),
        (READ, {"neutralize_formulas": "no"}),
        (PACKAGE, {"verify": "no"}),
        ((ServiceUpdateCredentialOperator, {"name": "n"}), {"merge_data": "no"}),
        ((ServiceCreateOrUpdateWorkflowOperator, {"definition": {}}), {"activate": 1}),
        # choices
        (UPSERT, {"on_duplicate": "first"}),
        (UPSERT, {"on_stored_duplicates": "newest"}),
        (UPSERT, {"change_strategy": "insert"}),
        (CREATE_TABLE, {"columns": {}, "if_exists": "replace"}),
        (CREATE_CREDENTIAL, {"if_exists": "x"}),
        (CREATE_TAG, {"if_exists": "update"}),
        (CREATE_VARIABLE, {"if_exists": "x"}),
        (DELETE_VARIABLE, {"if_missing": "skip"}),
        (PULL, {"auto_publish": "some"}),
        (DELETE, {"status": [["error"]]}),
        # several values
        (SET_TAGS, {"tags": [1, None]}),
        (SET_TAGS, {"tags": [["a"]]}),
        (SET_TAGS, {"tags": ["a", " "]}),
        (UPSERT, {"key_columns": [None]}),
        (AUDIT, {"categories": []}),
        (INVITE, {"users": [{"email": 5}]}),
        # dates and times
        (INSIGHTS, {"range_start": 5}),
        (DELETE, {"started_before": 5}),
        (DELETE, {"older_than": "old"}),
        (DELETE, {"older_than": timedelta.max}),
        # mappings
        (CREATE_CREDENTIAL, {"data_conn_fields": ["x"]}),
        (CREATE_CREDENTIAL, {"data_conn_fields": {"name": 5}}),
        (CREATE_TABLE, {"columns": 5}),
        (CREATE_TABLE, {"columns": {5: "string"}}),
        (READ, {"filter": '{"filters": [1]}'}),
        (READ, {"filter": {}}),
        (GENERIC, {"arguments": []}),
    ],
)
def test_invalid_arguments_are_refused_by_name(refused, kind, arguments):
    *_, name = arguments
    assert re.search(rf"\b{name}\b", refused(kind, arguments))


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (STOP, {"timeout": "soon"}, "timeout must be .* number of seconds above 0, up to 1000000000, not 'soon'"),
        (GENERIC, {"limit": 0}, "limit must be a whole number from 1 to 9007199254740992, not 0"),
        (READ, {"max_rows": -1}, "max_rows must be a whole number from 0 to .*, not -1"),
        (PULL, {"force": "no"}, "force must be True or False, not 'no'"),
        (PACKAGE, {"verify": "no"}, "verify must be True, False or None, not 'no'"),
        (PULL, {"auto_publish": "some"}, "auto_publish must be one of none, all, published, not 'some'"),
        (AUDIT, {"categories": []}, "None audits all of them"),
        (INVITE, {"users": ["a@example.com", "A@Example.com"]}, "users lists a@example.com more than once"),
        (INSIGHTS, {"range_start": 5}, "a date and time such as 2026-01-31T00:00:00Z, not 5"),
        (CREATE_CREDENTIAL, {"data_conn_fields": {"user": "uri"}}, "one of host, port, login, .*, not 'uri'"),
        (CREATE_TABLE, {"columns": {"SKU": "string", "sku": "number"}}, "each name once, regardless of case"),
        # ids
        (STOP, {"execution_id": "9" * 5000}, "'9+'?\\.* cannot be used as an id"),
        (STOP, {"execution_id": 10**5000}, "cannot be used as an id"),
        (STOP, {"execution_id": True}, "an id must be text or a whole number, not bool"),
        (STOP, {"execution_id": "all"}, "an execution id must be a whole number from 1, not 'all'"),
        ((ServiceActivateWorkflowOperator, {}), {"workflow_id": "\udc80"}, r"'\\udc80' cannot be used as an id"),
        (SET_TAGS, {"workflow_id": "\udc80", "tags": []}, r"'\\udc80' cannot be used as an id"),
        (DELETE, {"workflow_id": "\udc80"}, r"'\\udc80' is not valid Unicode text"),
    ],
)
def test_the_message_says_what_was_expected_instead(refused, kind, arguments, message):
    assert re.search(message, refused(kind, arguments))


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


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (DELETE, "started_before"),
        (DELETE, "status"),
        ((ServiceDeleteExecutionsOperator, {"all_workflows": True}), "execution_ids"),
        ((ServiceStopExecutionsOperator, {"all_workflows": True}), "workflow_id"),
        (ENSURE_TABLES, "project_id"),
        (ENSURE_VARIABLES, "project_name"),
        (DELETE_VARIABLE, "project_id"),
        (CREATE_VARIABLE, "project_name"),
        (PUSH, "object_ids"),
        (PUSH, "types"),
        (EXPORT, "workflow_names"),
        (EXPORT, "tag_name"),
        ((ServiceActivateWorkflowOperator, {"workflow_id": "w"}), "version_id"),
    ],
)
@pytest.mark.parametrize("value", ["template", "output"])
def test_none_does_not_make_a_task_act_on_more(simulator, kind, field, value):
    operator, others = kind
    with DAG("dag", schedule=None, params={"nothing": None}, render_template_as_native_obj=True):
        output = ServiceGenerateAuditOperator(task_id="before").output
        given = "{{ params.nothing }}" if value == "template" else output
        task = operator(task_id="task", **others, **{field: given})
    with pytest.raises(AirflowFailException, match=f"^{field} is None; give a value, or leave it out$"):
        run_task(task, upstream={"before": None})
    assert not simulator.requests


@pytest.mark.usefixtures("virtual_time")
def test_none_is_a_value_of_one_of_two_alternatives_and_of_what_chooses_nothing(client, simulator):
    workflow_id = simulator.create_webhook_workflow("orders", path="orders")["id"]
    project = client.projects.create("Sales")
    client.workflows.transfer(workflow_id, project.id)
    nothing = "{{ params.nothing }}"
    with DAG("dag", schedule=None, params={"nothing": None}, render_template_as_native_obj=True):
        run = ServiceRunWorkflowOperator(
            task_id="run",
            workflow_id=ServiceGenerateAuditOperator(task_id="before").output,
            workflow_name="{{ 'orders' }}",
            project_id=nothing,
            project_name="{{ 'Sales' }}",
            payload=nothing,
        )
        delete = ServiceDeleteExecutionsOperator(task_id="delete", workflow_id=nothing, execution_ids="{{ [1] }}")
        audit = ServiceGenerateAuditOperator(task_id="audit", days_abandoned_workflow=nothing, report_path=nothing)
    assert run_task(run, upstream={"before": None}).return_value["status"] == "success"
    assert run_task(delete).return_value["deleted"] == 1
    assert "findings" in run_task(audit).return_value


@pytest.mark.parametrize("selection", [{"workflow_id": ""}, {"project_id": " "}, {"workflow_id": 5}])
def test_the_client_selects_by_no_empty_id(client, simulator, selection):
    with pytest.raises(ServiceInputError, match=f"{next(iter(selection))} must not be empty; nothing was sent"):
        client.executions.list(**selection)
    assert not simulator.requests


@pytest.mark.parametrize("several", [["error", "success"], ("error",), {"error"}, {"a": "b"}, b"error", []])
@pytest.mark.parametrize(("kind", "name"), [("executions", "status"), ("workflows", "name"), ("variables", "state")])
def test_the_client_filters_by_one_value_at_a_time(client, simulator, kind, name, several):
    with pytest.raises(ServiceInputError, match=f"^{name} must be a single value, not .*; nothing was sent$"):
        list(getattr(client, kind).list(**{name: several}))
    assert not simulator.requests


def test_the_operator_for_any_method_selects_by_no_empty_id(execute, simulator):
    with pytest.raises(AirflowFailException, match="workflow_id must not be empty"):
        execute(ServiceOperator, resource="executions", action="list", arguments={"workflow_id": "{{ nope }}"})
    assert not simulator.requests
