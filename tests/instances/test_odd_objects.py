"""Workflows and data tables that cannot be created as they are: each is named, and affects no other."""

from __future__ import annotations

import json
import re

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator, ServicePromoteWorkflowsOperator
from tests.fuzz.hostile import HostileLayer

from .workflows import node, webhook, workflow

ODD = {
    "parameters": ({"parameters": [1]}, "a mapping, not list"),
    "credentials": ({"credentials": "mail"}, "a mapping, not str"),
    "name": ({"name": 7}, "text, not int"),
}
odd_nodes = pytest.mark.parametrize(("field", "wrong", "expected"), [(name, *one) for name, one in ODD.items()])


@pytest.fixture
def plant(simulator):
    """``plant(nodes)`` puts a workflow with such nodes into the instance, which a database may hold."""

    def put(*nodes, name="odd"):
        body = {**workflow(name), "nodes": list(nodes)}
        return simulator.in_loop(lambda: simulator.state.workflows.create(body)).id

    return put


def left_out(made):
    return {one["what"]: one["why"] for one in made["left_out"]}


@odd_nodes
def test_a_backup_names_the_workflow_and_holds_all_others(
    execute, client, plant, path, second_client, caplog, field, wrong, expected
):
    client.workflows.create("good", [webhook("good")], {}, {})
    odd = plant({**webhook("odd"), **wrong})
    made = execute(ServiceBackupOperator, path=path)
    assert made["counts"]["workflows"] == 1
    what, why = f"workflow 'odd' with the id '{odd}'", f"{field} of nodes[0] of its definition must be {expected}"
    assert left_out(made)[what] == why
    [warning] = [one.getMessage() for one in caplog.records if one.levelname == "WARNING" and "references" in one.name]
    assert warning == f"Left out: {what}: {why}"
    execute(ServiceRestoreOperator, path=path, service_conn_id="production")
    assert [one.name for one in second_client.workflows.list()] == ["good"]


def test_a_backup_names_a_workflow_whose_draft_alone_is_odd(execute, client, simulator, plant, path):
    odd = plant(webhook("odd"))
    client.workflows.activate(odd)
    stored = simulator.state.workflows.get(odd)
    simulator.in_loop(lambda: setattr(stored, "nodes", [{**webhook("draft"), "parameters": "x"}]))
    made = execute(ServiceBackupOperator, path=path)
    why = "parameters of nodes[0] of its draft must be a mapping, not str"
    assert left_out(made)[f"workflow 'odd' with the id '{odd}'"] == why


def test_a_backup_names_a_workflow_whose_published_version_has_no_nodes(execute, client, simulator, plant, path):
    odd = plant(webhook("odd"))
    client.workflows.activate(odd)
    layer = HostileLayer(lambda name, value: {**value, "nodes": None} if name == "activeVersion" and value else value)
    simulator.wrap(layer.around)
    why = left_out(execute(ServiceBackupOperator, path=path))[f"workflow 'odd' with the id '{odd}'"]
    assert why == "nodes of its definition must be a list, not NoneType"


def test_a_backup_names_a_workflow_without_a_name(execute, plant, path):
    odd = plant(webhook("odd"), name="")
    why = left_out(execute(ServiceBackupOperator, path=path))[f"workflow '' with the id '{odd}'"]
    assert why == "its definition has no name"


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("name", " ", "it has no name"),
        (
            "columns",
            [{"id": "1", "dataTableId": "t", "name": "n", "type": "color", "index": 0}],
            "the type of column 'n' must be one of string, number, boolean, date, not 'color'",
        ),
        (
            "columns",
            [{"id": "1", "dataTableId": "t", "name": "id", "type": "number", "index": 0}],
            "'id' cannot be the name of a column",
        ),
    ],
)
def test_a_backup_names_a_table_and_holds_all_others(
    execute, client, simulator, path, second_client, field, value, why
):
    client.data_tables.create("good", [{"name": "n", "type": "number"}])
    odd = client.data_tables.create("odd", [{"name": "n", "type": "number"}])
    simulator.in_loop(lambda: setattr(simulator.state.data_tables.get(odd.id), field, value))
    made = execute(ServiceBackupOperator, path=path)
    assert made["counts"]["data_tables"] == 1
    name = value if field == "name" else "odd"
    assert left_out(made)[f"data table {name!r} with the id '{odd.id}'"].startswith(why)
    execute(ServiceRestoreOperator, path=path, service_conn_id="production")
    assert [one.name for one in second_client.data_tables.list()] == ["good"]


@pytest.mark.parametrize("field", ["parameters", "credentials"])
def test_an_empty_list_is_an_empty_mapping(execute, client, plant, path, second_client, simulator, field):
    plant({**node("Start", "noOp"), field: []})
    assert execute(ServiceBackupOperator, path=path)["counts"]["workflows"] == 1
    simulator.clear_requests()
    assert execute(ServiceRestoreOperator, path=path)["outcome"] == "unchanged"
    assert execute(ServiceRestoreOperator, path=path, service_conn_id="production")["outcome"] == "restored"
    [restored] = second_client.workflows.list()
    assert restored.nodes[0][field] == {}
    assert execute(ServiceRestoreOperator, path=path, service_conn_id="production")["outcome"] == "unchanged"
    assert [one for one in simulator.requests if one.method != "GET"] == []


@odd_nodes
def test_a_promotion_names_the_workflow(execute, plant, second, field, wrong, expected):
    plant({**webhook("odd"), **wrong})
    message = rf"{field} of nodes\[0\] of the definition of 'odd' must be {expected}; nothing was sent"
    second.clear_requests()
    with pytest.raises(AirflowFailException, match=message):
        execute(
            ServicePromoteWorkflowsOperator,
            source_conn_id="service_default",
            service_conn_id="production",
            workflow_names=["odd"],
        )
    assert [one for one in second.requests if one.method != "GET"] == []


@odd_nodes
def test_a_definition_is_refused(execute, client, field, wrong, expected):
    message = re.escape(f"{field} of nodes[0] of definition must be {expected}; nothing was sent")
    definition = {**workflow("odd"), "nodes": [{**webhook("odd"), **wrong}]}
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceCreateOrUpdateWorkflowOperator, definition=definition)
    assert list(client.workflows.list()) == []


def nested(levels):
    """A value that many others hold."""
    value = 1
    for _ in range(levels):
        value = {"value": value}
    return value


@pytest.mark.parametrize("operator", [ServiceCreateOrUpdateWorkflowOperator, ServiceDeployWorkflowsOperator])
def test_a_definition_that_is_nested_too_deep_is_refused(execute, client, tmp_path, operator):
    definition = json.dumps(workflow("odd", node("deep", "set", nested(400))))
    (tmp_path / "odd.json").write_text(definition)
    name, value = (
        ("source", str(tmp_path)) if operator is ServiceDeployWorkflowsOperator else ("definition", definition)
    )
    with pytest.raises(AirflowFailException, match="nested more than 200 levels deep"):
        execute(operator, **{name: value})
    assert list(client.workflows.list()) == []


def test_a_definition_as_deep_as_answers_may_be_is_deployed(execute, client):
    deep = workflow("deep", node("deep", "set", nested(195)))
    for _ in range(2):
        execute(ServiceDeployWorkflowsOperator, source=[deep])
    [made] = client.workflows.list()
    assert client.workflows.get(made.id).nodes[0]["parameters"] == nested(195)


@pytest.mark.parametrize("callers", [5, True, {"name": "caller"}, [5, None]])
def test_callers_of_another_form_are_left_to_the_service(execute, client, callers):
    with pytest.raises(AirflowFailException, match=r"callerIds|settings"):
        execute(ServiceDeployWorkflowsOperator, source=[{**workflow("odd"), "settings": {"callerIds": callers}}])
    assert list(client.workflows.list()) == []


def test_a_workflow_that_names_deleted_objects_can_be_restored_to_its_own_instance(
    execute, client, deploy, path, second
):
    mail = client.credentials.create("mail", "httpHeaderAuth", {"name": "x", "value": "y"})
    held = {"httpHeaderAuth": {"id": mail.id, "name": "mail"}}
    get = node("Get", "httpRequest", {"url": "http://127.0.0.1:9"}, credentials=held)
    settings = {"errorWorkflow": {"name": "handler"}}
    deploy([workflow("handler", node("E", "errorTrigger")), workflow("w", webhook("w"), get, settings=settings)])
    [handler] = client.workflows.list(name="handler")
    client.workflows.archive(handler.id)
    client.credentials.delete(mail.id)
    gaps = left_out(execute(ServiceBackupOperator, path=path))
    assert [one for one in gaps if "workflow 'w'" in one] == [
        "the credential of type httpHeaderAuth 'mail' of workflow 'w', node 'Get'",
        f"the workflow with the id {handler.id} of workflow 'w', setting errorWorkflow",
    ]
    assert execute(ServiceRestoreOperator, path=path)["outcome"] == "unchanged"
    with pytest.raises(AirflowFailException, match="'w', node 'Get': there is no credential"):
        execute(ServiceRestoreOperator, path=path, service_conn_id="production")


def test_a_backup_lists_a_deleted_object_once_for_each_workflow_that_names_it(execute, client, path):
    held = {"postgres": {"id": "goneGoneGone1234", "name": "db"}}
    nodes = [node(f"N{number} {'x' * 10_000}", "postgres", credentials=held) for number in range(500)]
    client.workflows.create("w", nodes, {}, {})
    gaps = left_out(execute(ServiceBackupOperator, path=path))
    [gap] = [one for one in gaps if "workflow 'w'" in one]
    assert gap.startswith("the credential of type postgres 'db' of workflow 'w', node 'N0 ")
    assert gap.endswith("' and 499 more")


@pytest.mark.parametrize(("tags", "words"), [("x", "tags of .* a list, not str"), ([1], r"tags\[0\] .* text, not int")])
def test_tags_that_are_no_names_are_refused(execute, tags, words):
    with pytest.raises(AirflowFailException, match=words):
        execute(ServiceDeployWorkflowsOperator, source=[workflow("one", webhook("one"), tags=tags)])
