"""Names and values that differ between instances."""

from __future__ import annotations

import json
import logging

import pytest
import yaml
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator, ServicePromoteWorkflowsOperator

from .workflows import address, calling, child, node, parent, webhook, workflow

COLUMNS = [{"name": "n", "type": "number"}]
MAPPING = {
    "credentials": {"mail (test)": "mail"},
    "data_tables": {"stock_test": "stock"},
    "tags": {"test": "live"},
    "workflows": {"child": "child of all"},
    "values": {"orders": {"Get": {"url": "https://live.example.com", "options.headers.0.value": 5}}},
}


def get(credential, **more):
    held = {"httpHeaderAuth": credential}
    parameters = {"url": "https://test.example.com", "options": {"headers": [{"value": 1}]}}
    return node("Get", "httpRequest", parameters, typeVersion=4.2, credentials=held, **more)


def orders(*nodes, **more):
    return workflow("orders", webhook("orders"), *nodes, active=True, **more)


@pytest.fixture
def staging(client, deploy):
    """Workflows that name each other, a credential, tables by id and by name, and a tag."""
    credential = client.credentials.create("mail (test)", "httpHeaderAuth", {"name": "X", "value": "y"})
    table = client.data_tables.create("stock_test", COLUMNS)
    by_id = node("Rows", "dataTable", {"dataTableId": address(table.id)})
    by_name = node("More", "dataTable", {"dataTableId": {"__rl": True, "mode": "name", "value": "stock_test"}})
    found = get({"id": credential.id, "name": credential.name})
    one = orders(found, by_id, by_name, calling("child"), settings={"errorWorkflow": {"name": "child"}}, tags=["test"])
    deploy([child(tags=["test"]), one])


@pytest.fixture
def production(second_client):
    """The ids of what the workflows name there."""
    table = second_client.data_tables.create("stock", COLUMNS)
    credential = second_client.credentials.create("mail", "httpHeaderAuth", {"name": "X", "value": "z"})
    return {"table": table.id, "credential": credential.id}


@pytest.fixture
def promote(execute, staging):
    arguments = {"source_conn_id": "service_default", "service_conn_id": "production"}
    return lambda **more: execute(
        ServicePromoteWorkflowsOperator, **arguments, **{"workflow_names": ["child", "orders"], **more}
    )


@pytest.fixture
def deploy_mapped(execute):
    return lambda source, **more: execute(ServiceDeployWorkflowsOperator, source=source, **more)


def written(simulator):
    return [one for one in simulator.requests if one.method != "GET"]


def test_every_kind_gets_the_name_that_it_has_there(promote, production, second_client):
    done = promote(mapping=MAPPING)
    assert done["created"] == ["child of all", "orders"]
    held = {one.name: one for one in second_client.workflows.list()}
    nodes = {one["name"]: one for one in held["orders"].nodes}
    assert nodes["Get"]["credentials"]["httpHeaderAuth"] == {"id": production["credential"], "name": "mail"}
    assert nodes["Get"]["parameters"]["url"] == "https://live.example.com"
    assert nodes["Get"]["parameters"]["options"] == {"headers": [{"value": 5}]}
    assert nodes["Rows"]["parameters"]["dataTableId"]["value"] == production["table"]
    assert nodes["More"]["parameters"]["dataTableId"] == {"__rl": True, "mode": "name", "value": "stock"}
    assert nodes["Call"]["parameters"]["workflowId"]["value"] == held["child of all"].id
    assert held["orders"].settings["errorWorkflow"] == held["child of all"].id
    assert [tag.name for tag in held["orders"].tags] == ["live"]
    assert promote(mapping=MAPPING)["unchanged"] == ["child of all", "orders"]


def test_the_plan_shows_what_a_new_workflow_uses_there(promote, production, caplog):
    with caplog.at_level(logging.INFO):
        promote(mapping=MAPPING, preview=True)
    new_nodes = [line.strip() for line in caplog.text.splitlines() if "+ node" in line]
    assert [line.partition(", uses ")[2] for line in new_nodes if ", uses " in line] == [
        "credential 'mail'",
        "data table 'stock'",
        "data table 'stock'",
        "workflow 'child of all'",
    ]


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_file_holds_the_mapping(promote, production, tmp_path, ending):
    path = tmp_path / f"production.{ending}"
    path.write_text(yaml.safe_dump(MAPPING) if ending == "yaml" else json.dumps(MAPPING))
    assert promote(mapping_path=str(path))["created"] == ["child of all", "orders"]


def test_a_template_gives_the_mapping_as_text(promote, production):
    assert promote(mapping=str(MAPPING))["created"] == ["child of all", "orders"]


def test_templates_are_rendered_in_the_argument_and_not_in_the_file(deploy_mapped, client, tmp_path):
    path = tmp_path / "production.yaml"
    path.write_text("values: {w: {Webhook: {path: '={{ $json.path }}'}}}")
    source = workflow("w", webhook("test"))
    deploy_mapped(source, mapping_path=str(path))
    deploy_mapped(source, mapping={"workflows": {"w": "{{ 'live' }} w"}, "values": {"w": {"Webhook": {"path": "a"}}}})
    held = {one.name: one.nodes[0]["parameters"]["path"] for one in client.workflows.list()}
    assert held == {"w": "={{ $json.path }}", "live w": "a"}


def test_a_relative_path_starts_at_the_folder_of_the_dag_file(promote, production, tmp_path):
    (tmp_path / "production.yaml").write_text(yaml.safe_dump(MAPPING))
    with DAG("dag", schedule=None, template_searchpath=[str(tmp_path)]):
        assert promote(mapping_path="production.yaml")["created"] == ["child of all", "orders"]


def test_everything_that_does_not_exist_is_listed_and_nothing_is_written(promote, second):
    mapping = {
        "credentials": {"mail (test)": "post"},
        "values": {"orders": {"Got": {"url": ""}, "Get": {"uri": "", "options": 1, "options.headers.1.value": 2}}},
    }
    second.clear_requests()
    with pytest.raises(AirflowFailException) as caught:
        promote(mapping=mapping)
    for words in (
        "'orders', node 'Got': there is no single value at 'url' for the mapping",
        "'orders', node 'Get': there is no single value at 'uri' for the mapping",
        "'orders', node 'Get': there is no single value at 'options' for the mapping",
        "'orders', node 'Get': there is no single value at 'options.headers.1.value' for the mapping",
        "'orders', node 'Get': there is no credential of type httpHeaderAuth 'post'",
        "'orders', node 'Rows': there is no data table 'stock_test'",
    ):
        assert words in str(caught.value)
    assert written(second) == []


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("[1]", "mapping must be a mapping of credentials, data_tables, projects, tags, workflows, values, not list"),
        ("credentials: {a: b", "mapping cannot be read as YAML or JSON: line 1"),
        ({"credential": {}}, "mapping: 'credential' is none of credentials, data_tables"),
        ({"tags": None}, "mapping: tags must map names to names, not NoneType"),
        ({"tags": {"a": None}}, "mapping: tags: 'a' must be mapped to the text of a name, not None"),
        ({"tags": {"a": " "}}, "mapping: tags: 'a' must be mapped to the text of a name, not ' '"),
        ("tags: {1: a}", "mapping: tags: 1 must be the text of a name; put it in quotes"),
        ({"values": {"w": {"n": "p"}}}, "mapping: values: 'w': 'n' must be a mapping of parameters, not str"),
        ({"values": {"w": {"n": {"p": []}}}}, "values: 'w': 'n': 'p' must be text, a number, true or false, not list"),
        ("values: {w: {n: {p: .nan}}}", "values: 'w': 'n': 'p' must be text, a number, true or false, not float"),
        ("values: {w: {n: {p: 2026-01-01}}}", "'p' must be text, a number, true or false, not date"),
        ("values: {w: {1: {p: 1}}}", "mapping: values: 'w': 1 must be text; put it in quotes"),
    ],
)
def test_a_wrong_mapping_is_refused_before_anything_is_read(deploy_mapped, simulator, mapping, words):
    simulator.clear_requests()
    with pytest.raises(AirflowFailException) as caught:
        deploy_mapped(child(), mapping=mapping)
    assert words in str(caught.value)
    assert not simulator.requests


def test_every_error_is_named(deploy_mapped):
    with pytest.raises(AirflowFailException, match=r"'x' is none of .*; mapping: tags: 'a' must be"):
        deploy_mapped(child(), mapping={"x": {}, "tags": {"a": 1}})


def test_a_file_that_cannot_be_read_or_is_one_too_many(deploy_mapped, tmp_path):
    path = str(tmp_path / "none.yaml")
    with pytest.raises(AirflowFailException, match=r"none\.yaml. cannot be read: No such file"):
        deploy_mapped(child(), mapping_path=path)
    with pytest.raises(AirflowFailException, match="give either mapping or mapping_path"):
        deploy_mapped(child(), mapping={}, mapping_path=path)


def test_names_can_be_swapped(deploy_mapped, client):
    names = ["a", "b"]
    ids = {name: client.credentials.create(name, "httpHeaderAuth", {"name": "X", "value": "y"}).id for name in names}
    source = [workflow(f"uses {name}", webhook(name), get({"name": name})) for name in names]
    deploy_mapped(source, mapping={"credentials": {"a": "b", "b": "a"}})
    held = {one.name: one.nodes[1]["credentials"]["httpHeaderAuth"]["id"] for one in client.workflows.list()}
    assert held == {"uses a": ids["b"], "uses b": ids["a"]}


def test_several_names_may_become_one_but_not_those_of_workflows(deploy_mapped, client, simulator):
    client.credentials.create("mail", "httpHeaderAuth", {"name": "X", "value": "y"})
    source = [workflow(f"uses {name}", webhook(name), get({"name": name}), tags=["x", "y"]) for name in "ab"]
    mapping = {"credentials": {"a": "mail", "b": "mail"}, "tags": {"x": "one", "y": "one"}}
    simulator.clear_requests()
    with pytest.raises(AirflowFailException, match="more than one definition is named 'uses b': definition 1, defini"):
        deploy_mapped(source, mapping={**mapping, "workflows": {"uses a": "uses b"}})
    assert written(simulator) == []
    deploy_mapped(source, mapping=mapping)
    assert [[tag.name for tag in one.tags] for one in client.workflows.list()] == [["one"], ["one"]]


def test_a_workflow_with_another_name_is_another_one_even_where_its_id_is_known(deploy_mapped, deploy, client):
    deploy([child(), parent()])
    ids = {one.name: one.id for one in client.workflows.list()}
    named = {**address(ids["child"]), "cachedResultName": "outdated"}
    call = node("Call", "executeWorkflow", {"workflowId": named, "options": {}}, typeVersion=1.2)
    source = [
        {**child(), "id": ids["child"]},
        {**workflow("parent", webhook("copy"), call), "id": ids["parent"], "active": True},
    ]
    names = {"child": "child (copy)", "parent": "parent (copy)"}
    mapping = {"workflows": {**names, "outdated": "parent"}}
    assert deploy_mapped(source, mapping=mapping)["created"] == ["child (copy)", "parent (copy)"]
    held = {one.name: one for one in client.workflows.list()}
    assert {name: held[name].id for name in ids} == ids
    assert held["parent (copy)"].nodes[1]["parameters"]["workflowId"]["value"] == held["child (copy)"].id


def test_an_expression_is_no_name(deploy_mapped, client):
    expression = {"__rl": True, "mode": "name", "value": "={{ $json.table }}"}
    rows = node("Rows", "dataTable", {"dataTableId": expression})
    deploy_mapped(orders(rows), mapping={"data_tables": {"={{ $json.table }}": "x"}})
    [held] = client.workflows.list()
    assert held.nodes[1]["parameters"]["dataTableId"] == expression


def test_unused_names_are_reported(deploy_mapped, caplog):
    caplog.set_level(logging.INFO, logger="airflow_provider_service")
    mapping = {"tags": {"tset": "live"}, "workflows": {"child": "kid"}, "values": {"other": {"n": {"p": 1}}}}
    deploy_mapped(child(tags=["test"]), mapping=mapping)
    assert "No workflow uses these names of the mapping: tags: 'tset'; values: 'other'" in caplog.text


@pytest.mark.parametrize("by_id", [True, False])
def test_a_project_is_promoted_to_the_one_to_which_it_is_mapped(execute, client, second_client, deploy, by_id):
    source, target = client.projects.create("Sales (test)"), second_client.projects.create("Sales")
    deploy([workflow("one")])
    [moved] = client.workflows.list()
    client.workflows.transfer(moved.id, source.id)
    arguments = {
        "source_conn_id": "service_default",
        "service_conn_id": "production",
        **({"project_id": source.id} if by_id else {"project_name": "Sales (test)"}),
        "mapping": {"projects": {"Sales (test)": "Sales"}},
    }
    assert execute(ServicePromoteWorkflowsOperator, **arguments)["created"] == ["one"]
    assert [one.name for one in second_client.workflows.list(project_id=target.id)] == ["one"]
    assert execute(ServicePromoteWorkflowsOperator, **arguments)["unchanged"] == ["one"]
