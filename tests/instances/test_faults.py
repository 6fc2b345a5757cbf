"""What the service would refuse: found by the plan, for all files at once, and by the rules of the server's version."""

from __future__ import annotations

import json
import re

import pytest
import requests_mock as requests_mock_module

from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client.errors import ServiceDeploymentError, ServiceInputError, ServiceInvalidRequestError

from .workflows import calling, node, webhook, workflow


def lead(*targets: object) -> dict[str, object]:
    return {"main": [list(targets)]}


def to(name: str) -> dict[str, object]:
    return {"node": name, "type": "main", "index": 0}


def without(key: str, **more: object) -> dict[str, object]:
    return {name: value for name, value in {**node("A", "noOp"), **more}.items() if name != key}


#: Definitions, what the plan says of them, and whether older servers accept them.
FAULTS = [
    (workflow("w" * 129), "the name of a workflow must have 1 to 128 characters", False),
    (workflow("one", node("A", "noOp"), node("A", "noOp"), connections={}), "more than one node has this name", True),
    (
        workflow("one", node("A", "noOp", id="x"), node("B", "noOp", id="x")),
        "'one', node 'B': node 'A' has the same id 'x'",
        True,
    ),
    (workflow("one", without("type"), connections={}), "'one', node 'A': it lacks type", True),
    (workflow("one", without("position"), connections={}), "node 'A': it lacks position", True),
    (workflow("one", node("A", "noOp", position=[1, 2, 3])), "'one', node 'A', position: it must have 2 entries", True),
    (
        workflow("one", node("A", "noOp"), connections={"A": lead(to("Nowhere"))}),
        "'one', connections of 'A': one leads to 'Nowhere', and there is no node of this name",
        True,
    ),
    (
        workflow("one", node("A", "noOp"), connections={"Nowhere": lead(to("A"))}),
        "'one', connections of 'Nowhere': there is no node of this name",
        True,
    ),
    *(
        (workflow("one", node("A", "noOp"), connections={"A": outputs}), f"'one', connections.A{words}", True)
        for outputs, words in (
            ("x", ": it must be of type object, not str"),
            ({"main": {}}, ".main: it must be of type array, not dict"),
            ({"main": ["x"]}, ".main.0: it must be of type array or null, not str"),
            (lead({"node": "A", "type": "main"}), ".main.0.0: it lacks index"),
            (lead({**to("A"), "node": ["A"]}), ".main.0.0.node: it must be of type string, not list"),
            (lead({**to("A"), "index": "0"}), ".main.0.0.index: it must be of type integer, not str"),
            (lead({**to("A"), "type": ""}), ".main.0.0.type: it must not be empty"),
        )
    ),
    (workflow("one", node("A", "noOp", colour="red")), "'one', node 'A': the server does not know 'colour'", False),
    (workflow("one", node("A", "noOp", notes=5)), "'one', node 'A', notes: it must be of type string, not int", False),
    (
        workflow("one", node("A", "noOp", position=["1", 2])),
        "'one', node 'A', position.0: it must be of type number, not str",
        False,
    ),
    (
        workflow("one", settings={"maxExecutions": 5, "another": 1}),
        "'one', settings: the server does not know 'another', 'maxExecutions'",
        False,
    ),
    (
        workflow("one", settings={"callerPolicy": "everybody"}),
        "'one', settings.callerPolicy: it must be one of any, none, workflowsFromAList, workflowsFromSameOwner",
        False,
    ),
]


@pytest.mark.parametrize(("definition", "words", "_accepted"), FAULTS, ids=lambda value: str(value)[:60])
def test_the_plan_refuses_what_the_service_refuses(client, deploy, writes, definition, words, _accepted):
    with pytest.raises(ServiceInputError) as caught:
        deploy([definition])
    assert words in str(caught.value)
    assert writes() == []
    with pytest.raises((ServiceInvalidRequestError, ServiceInputError)):
        client.workflows.create(**{name: definition[name] for name in ("name", "nodes", "connections", "settings")})


@pytest.mark.parametrize(("definition", "words", "is_accepted"), FAULTS, ids=lambda value: str(value)[:60])
def test_an_older_service_is_asked_for_its_own_rules(client, deploy, simulator, definition, words, is_accepted):
    simulator.version = "2.20.12"
    if is_accepted:
        make_plan(read_source([definition]), DeploymentTarget(client))
    else:
        with pytest.raises(ServiceInputError) as caught:
            deploy([definition])
        assert words in str(caught.value)


def test_all_faults_of_all_files_are_told_at_once(deploy, writes, tmp_path):
    definitions = [definition for definition, _, _ in FAULTS if definition["name"] == "one"]
    for number, definition in enumerate(definitions):
        named = {**definition, "name": f"workflow {number}"}
        (tmp_path / f"{number}.json").write_text(json.dumps(named))
    lost = webhook("lost", credentials={"httpHeaderAuth": {"name": "lost"}})
    (tmp_path / "lost.json").write_text(json.dumps(workflow("missing", lost)))
    with pytest.raises(ServiceInputError) as caught:
        deploy(str(tmp_path))
    lines = str(caught.value).splitlines()
    for number in range(len(definitions)):
        assert any(f"'workflow {number}' ({number}.json), " in line for line in lines)
    assert any("'missing' (lost.json), node 'Webhook': there is no credential" in line for line in lines)
    assert writes() == []


def test_a_fault_of_hundreds_of_nodes_is_told_once(deploy):
    lost = {"httpHeaderAuth": {"name": "lost"}}
    source = [
        workflow(f"workflow {number}", *(node(f"N{each}", "noOp", credentials=lost) for each in range(20)))
        for number in range(20)
    ]
    with pytest.raises(ServiceInputError) as caught:
        deploy(source)
    text = str(caught.value)
    assert text.count("there is no credential of type httpHeaderAuth 'lost'") == 1
    assert text.count("\n  - 'workflow ") == 10
    assert text.endswith("\n  - and 390 more places")


def test_hundreds_of_different_faults_are_shortened(deploy):
    nodes = [node(f"N{each}", "noOp", credentials={"httpHeaderAuth": {"name": f"lost {each}"}}) for each in range(200)]
    with pytest.raises(ServiceInputError) as caught:
        deploy([workflow("one", *nodes)])
    assert str(caught.value).endswith("\n- and 150 more problems")
    assert len(str(caught.value).splitlines()) == 52


def test_files_that_cannot_be_read_are_told_at_once(deploy, tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text('{"nodes": []}')
    (tmp_path / "c.json").write_text(json.dumps(workflow("c", node("Code", "code", {"jsCode": {"file": "none.js"}}))))
    with pytest.raises(ServiceInputError) as caught:
        deploy(str(tmp_path))
    for words in ("a.json is not JSON", "- b.json: definition lacks name, connections", "none.js"):
        assert words in str(caught.value)


def test_no_value_of_a_definition_is_told(deploy):
    secret = "s3cret"
    nodes = node("A", "noOp", notes=[secret], disabled=secret, onError={"secret": secret})
    with pytest.raises(ServiceInputError) as caught:
        deploy([workflow("one", nodes, settings={"executionTimeout": secret, "callerPolicy": secret})])
    assert str(caught.value).count("\n- ") >= 5
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    "fault", [{"status": 404}, {"status": 500}, {"kind": "html", "status": 200}, {"kind": "drop"}], ids=repr
)
def test_without_the_published_contract_the_service_itself_refuses(deploy, client, simulator, fault):
    simulator.inject(**{"kind": "status", "times": None, "path": "/openapi.yml", **fault})
    source = [workflow("one", node("A", "noOp", colour="red")), workflow("two", node("A", "noOp"))]
    plan = make_plan(read_source(source), DeploymentTarget(client))
    assert any(line.startswith("the document of the server's API cannot be read") for line in plan.lines())
    with pytest.raises(ServiceDeploymentError, match="rolled back"):
        deploy(source)
    assert list(client.workflows.list()) == []


def test_an_unchanged_deployment_reads_no_contract(deploy, simulator):
    source = [workflow("one", node("A", "noOp"))]
    deploy(source)
    simulator.clear_requests()
    deploy(source)
    assert not [request for request in simulator.requests if "openapi" in request.path]


def test_a_workflow_without_a_name_can_have_that_of_its_file(client, deploy, tmp_path):
    (tmp_path / "Orders.json").write_text(json.dumps({**workflow("x", node("A", "noOp")), "name": ""}))
    (tmp_path / "named.json").write_text(json.dumps(workflow("its own", node("A", "noOp"))))
    with pytest.raises(ServiceInputError, match="1 to 128 characters"):
        deploy(str(tmp_path))
    source = read_source(str(tmp_path), from_file_names=True)
    assert sorted(one.name for one in source) == ["Orders", "its own"]


def test_two_workflows_of_one_file_do_not_share_its_name(tmp_path):
    (tmp_path / "both.json").write_text(json.dumps([{**workflow("x", node("A", "noOp")), "name": None}] * 2))
    with pytest.raises(ServiceInputError, match="more than one definition is named 'both'"):
        read_source(str(tmp_path), from_file_names=True)


def test_what_a_newer_version_of_the_service_would_refuse_stays_if_it_does_not_change(client, deploy, simulator):
    simulator.version = "2.20.12"
    stored = workflow("old", node("A", "noOp", id="x"), connections={"A": lead(to("Nowhere"))})
    deploy([stored])
    simulator.version = "2.41.1"
    assert deploy([{**stored, "settings": {"executionTimeout": 60}}]) == {"update": ["old"]}
    with pytest.raises(ServiceInputError, match="one leads to 'Nowhere'"):
        deploy([{**stored, "nodes": [node("A", "noOp", id="x"), node("B", "noOp")]}])


def test_a_service_that_hides_its_version_judges_nodes_and_connections_itself(deploy, client, simulator):
    simulator.inject("status", status=404, path="^/$", times=None)
    source = [workflow("one", node("A", "noOp"), connections={"A": lead(to("Nowhere"))})]
    plan = make_plan(read_source(source), DeploymentTarget(client))
    assert "the server does not tell its version" in "\n".join(plan.lines())
    with pytest.raises(ServiceDeploymentError, match="rolled back"):
        deploy(source)


def test_a_new_node_with_the_former_name_of_another_gets_an_id_of_its_own(client, deploy):
    deploy([workflow("one", node("A", "noOp", id="x"))])
    assert deploy([workflow("one", node("B", "noOp", id="x"), node("A", "noOp"))]) == {"update": ["one"]}
    [stored] = client.workflows.list()
    ids = {each["name"]: each["id"] for each in stored.nodes}
    assert ids["B"] == "x" != ids["A"]


def test_definitions_in_python_are_judged_as_they_are_sent(deploy):
    assert deploy([workflow("one", node("A", "noOp", position=(0, 0)))]) == {"create": ["one"]}
    with pytest.raises(ServiceInputError, match="the server does not know '1'"):
        deploy([workflow("two", node("A", "noOp"), settings={1: 2})])


@pytest.mark.parametrize(
    "schema",
    [
        '{"$ref": "#/components/nowhere"}',
        '{"$ref": "http://127.0.0.1:9/schema"}',
        '{"$ref": "file:///etc/hostname"}',
        '{"$ref": "#"}',
        '{"properties": {"name": {"pattern": "\\\\p{L}"}}}',
        '{"type": "nothing"}',
        "[]",
        "2020-13-45",
        "[" * 5000,
    ],
    ids=lambda schema: schema[:40],
)
def test_a_document_that_is_wrong_itself_refuses_nothing(client, simulator, requests_mock, schema):
    requests_mock.register_uri(requests_mock_module.ANY, re.compile(re.escape(simulator.base_url)), real_http=True)
    requests_mock.register_uri(
        "GET",
        simulator.api_url + "/openapi.yml",
        text=(
            '{"paths": {"/workflows/{id}": {"put": {"requestBody": {"content": {"application/json": {"schema": '
            + schema
            + "}}}}}}}"
        ),
    )
    plan = make_plan(read_source([workflow("one", node("A", "noOp"))]), DeploymentTarget(client))
    assert "the document of the server's API cannot be read" in "\n".join(plan.lines())


def test_workflows_that_call_each_other_in_a_long_chain_are_planned(client):
    chain = [workflow(f"w{number:04}", calling(f"w{number + 1:04}")) for number in range(1200)]
    last = workflow("w1200", node("A", "noOp"))
    plan = make_plan(read_source([*chain, last]), DeploymentTarget(client))
    assert [plan.changes[0].name, plan.changes[-1].name] == ["w1200", "w0000"]
