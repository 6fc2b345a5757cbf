"""Deployments: what is written, in which order, and that nothing is written where nothing differs."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client.errors import ServiceDeploymentError, ServiceInputError
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator

from .workflows import address, calling, child, node, parent, webhook, workflow


def plan_of(client, source, **options):
    return make_plan(read_source(source), DeploymentTarget(client), **options)


def test_a_plan_is_complete_and_writes_nothing(client, deploy, writes):
    deploy([child(), workflow("idle", webhook("idle"))])
    writes()
    changed = child()
    changed["nodes"][0]["parameters"]["inputSource"] = "workflowInputs"
    plan = plan_of(client, [parent(tags=["new"]), changed, workflow("idle", webhook("idle"), active=True)])
    assert writes() == []
    assert plan.new_tags == ("new",)
    assert [(one.name, one.actions) for one in plan.changes] == [
        ("child", ("update",)),
        ("idle", ("activate",)),
        ("parent", ("create", "activate")),
    ]
    assert list(plan.lines()) == [
        "Plan: create 1, update 1, activate 2",
        "create tag 'new'",
        "child: update",
        '    node \'Start\': parameters.inputSource: "passthrough" -> "workflowInputs"',
        "idle: activate",
        "parent: create, activate",
        "    + node 'Webhook' (n8n-nodes-base.webhook)",
        "    + node 'Call' (n8n-nodes-base.executeWorkflow), uses workflow 'child'",
        "    connections of 'Webhook': none -> \"Call\"",
        "    tags: none -> new",
    ]


def test_deploying_an_unchanged_source_writes_nothing(client, deploy, writes):
    source = [parent(tags=["a"], settings={"timezone": "UTC", "errorWorkflow": {"name": "parent"}}), child()]
    assert deploy(source) == {"create": ["child", "parent"], "activate": ["child", "parent"]}
    writes()
    for _ in range(2):
        assert deploy(source) == {"unchanged": ["child", "parent"]}
    assert writes() == []


def test_what_others_edit_before_the_publication_does_not_go_live(client, deploy, before_request):
    deploy([workflow("one", webhook("old"), active=True)])
    [one] = client.workflows.list()

    def edit(other):
        other.workflows.update(one.id, "one", [webhook("theirs")], {}, {}, publish_if_active=False)

    before_request("POST", "/activate$", edit)
    deploy([workflow("one", webhook("ours"), active=True)])
    now = client.workflows.get(one.id)
    paths = [nodes[0]["parameters"]["path"] for nodes in (now.active_version.nodes, now.nodes)]
    assert paths == ["ours", "theirs"]


def test_called_workflows_are_written_and_published_first(client, deploy, writes):
    deploy([parent(), child()])
    ids = {one.id: one.name for one in client.workflows.list()}
    done = [one.split("/") for one in writes()]
    assert [one[0].strip() for one in done] == ["POST", "POST", "PUT", "PUT", "POST", "POST"]
    assert [ids[one[2]] for one in done if one[-1] == "activate"] == ["child", "parent"]
    held = next(one for one in client.workflows.list() if one.name == "parent")
    called = held.nodes[1]["parameters"]["workflowId"]
    assert (ids[called["value"]], called["cachedResultName"]) == ("child", "child")


def test_nothing_that_runs_changes_before_all_drafts_are_accepted(client, deploy, simulator):
    deploy([child(), parent(), workflow("z", webhook("z"), active=True)])
    before = {one.name: one.active_version_id for one in client.workflows.list()}
    seen = []
    simulator.clear_requests()
    new = parent("elsewhere")
    deploy([child(), new, workflow("z", webhook("zz"), active=True)])
    seen = [(one.method, one.path.rpartition("/")[2]) for one in simulator.requests if one.method != "GET"]
    assert [one[0] for one in seen] == ["PUT", "PUT", "POST", "POST"]
    now = {one.name: one.active_version_id for one in client.workflows.list()}
    assert {name for name in now if now[name] != before[name]} == {"parent", "z"}


@pytest.mark.parametrize(("said", "told", "active"), [(True, None, True), (False, None, False), (True, False, False)])
def test_activation_follows_the_source_or_the_argument(client, deploy, said, told, active):
    for _ in range(2):
        deploy([workflow("one", webhook("one"), active=said)], activate=told)
    [held] = client.workflows.list()
    assert held.active is active


def test_a_definition_that_says_nothing_leaves_the_workflow_active(client, deploy):
    deploy([workflow("one", webhook("one"), active=True)])
    assert deploy([workflow("one", webhook("two"))]) == {"update": ["one"]}
    [held] = client.workflows.list()
    assert (held.active, held.active_version.nodes[0]["parameters"]["path"]) == (True, "two")
    assert deploy([workflow("one", webhook("two"), active=False)]) == {"deactivate": ["one"]}


def test_a_draft_that_matches_but_does_not_run_is_published(client, deploy, writes):
    deploy([workflow("one", webhook("one"), active=True)])
    [held] = client.workflows.list()
    draft = {**held.nodes[0], **webhook("two")}  # with its ids, as the editor writes it
    client.workflows.update(held.id, "one", [draft], {}, {}, publish_if_active=False)
    writes()
    assert deploy([workflow("one", webhook("two"), active=True)]) == {"publish": ["one"]}
    assert writes() == [f"POST /workflows/{held.id}/activate"]
    assert client.workflows.get(held.id).active_version.nodes[0]["parameters"]["path"] == "two"


def test_a_draft_beside_what_runs_stays(client, deploy, writes):
    deploy([workflow("one", webhook("one"), active=True)])
    [held] = client.workflows.list()
    client.workflows.update(held.id, "one", [webhook("two")], {}, {}, publish_if_active=False)
    writes()
    assert deploy([workflow("one", webhook("one"), active=True)]) == {"unchanged": ["one"]}
    assert writes() == []


def test_settings_that_the_definition_lacks_are_reset(client, deploy, writes):
    settings = {"timezone": "Europe/Berlin", "executionTimeout": 60, "saveDataSuccessExecution": "none"}
    deploy([workflow("one", webhook("one"), settings={**settings, "errorWorkflow": {"name": "one"}})])
    assert deploy([workflow("one", webhook("one"))]) == {"update": ["one"]}
    [held] = client.workflows.list()
    assert held.settings == {"saveDataSuccessExecution": "all"}
    writes()
    assert deploy([workflow("one", webhook("one"))]) == {"unchanged": ["one"]}
    assert writes() == []


def test_webhooks_keep_their_ids(client, deploy):
    deploy([workflow("one", webhook("one"))])
    [before] = client.workflows.list()
    deploy([workflow("one", webhook("two"))])
    [after] = client.workflows.list()
    assert after.nodes[0]["parameters"]["path"] == "two"
    assert [after.nodes[0][key] for key in ("id", "webhookId")] == [before.nodes[0][key] for key in ("id", "webhookId")]


def test_tags_are_created_replaced_and_cleared(client, deploy):
    for tags in (["a", "b"], ["b"], []):
        deploy([workflow("one", webhook("one"), tags=tags)])
        [held] = client.workflows.list()
        assert sorted(tag.name for tag in held.tags) == tags
    deploy([workflow("one", webhook("one"), tags=[{"id": "x", "name": "a"}])])
    deploy([workflow("one", webhook("two"))])
    [held] = client.workflows.list()
    assert [tag.name for tag in held.tags] == ["a"]


def test_tags_without_a_value_stay_and_surrounding_blanks_do_not_count(client, deploy, writes):
    for tags in ([" prod "], ["prod"], None):
        deploy([workflow("one", webhook("one"), tags=tags)])
        [held] = client.workflows.list()
        assert [tag.name for tag in held.tags] == ["prod"]
    writes()
    assert deploy([workflow("one", webhook("one"), tags=["prod "])]) == {"unchanged": ["one"]}
    assert writes() == []


def test_a_webhook_moves_from_one_workflow_to_another(client, deploy):
    deploy([workflow("a", webhook("old"), active=True), workflow("b", webhook("taken"), active=True)])
    deploy([workflow("a", webhook("taken"), active=True), workflow("b", webhook("new"), active=True)])
    held = {one.name: one.active_version.nodes[0]["parameters"]["path"] for one in client.workflows.list()}
    assert held == {"a": "taken", "b": "new"}


def test_a_webhook_that_another_workflow_holds_is_named_and_fails_for_good(execute, client, simulator):
    holder = client.workflows.create("holder", [webhook("taken")], {}, {}).id
    client.workflows.activate(holder)
    simulator.clock.advance(1)
    with pytest.raises(AirflowFailException, match=rf"activating 'one'.*POST 'taken' by 'holder' \({holder}\)"):
        execute(ServiceDeployWorkflowsOperator, source=[workflow("one", webhook("taken"), active=True)])
    assert [one.name for one in client.workflows.list()] == ["holder"]


def test_workflows_that_call_each_other(client, deploy, writes):
    circle = [workflow("a", webhook("a"), calling("b")), workflow("b", webhook("b"), calling("a"))]
    deploy(circle)
    ids = {one.name: one.id for one in client.workflows.list()}
    called = {one.name: one.nodes[1]["parameters"]["workflowId"]["value"] for one in client.workflows.list()}
    assert called == {"a": ids["b"], "b": ids["a"]}
    writes()
    with pytest.raises(ServiceInputError, match="'a', 'b' call each other"):
        deploy(circle, activate=True)
    assert writes() == []


def test_everything_that_is_missing_is_named_at_once_and_nothing_is_written(client, deploy, writes):
    lost = {"httpHeaderAuth": {"id": "1", "name": "lost"}}
    twice = [client.credentials.create("twice", "httpHeaderAuth", {"name": "X", "value": "y"}).id for _ in range(2)]
    nodes = (
        webhook("p", credentials=lost),
        calling("nobody"),
        node("Rows", "dataTable", {"dataTableId": address("nowhere")}),
        node("Mail", "httpRequest", credentials={"httpHeaderAuth": {"name": "twice"}}),
    )
    more = {"settings": {"errorWorkflow": {"name": "alerts"}}, "tags": ["t" * 25], "parentFolder": "Reports"}
    writes()
    with pytest.raises(ServiceInputError) as caught:
        deploy([workflow("one", *nodes, **more), child()])
    assert writes() == []
    text = str(caught.value)
    for words in (
        "nothing was written",
        "'one', node 'Webhook': there is no credential of type httpHeaderAuth 'lost'",
        "'one', node 'Call': there is no workflow 'nobody', or this key may not see it; create it, or name another one",
        "'one', node 'Rows': there is no data table with the id nowhere",
        "there is more than one credential of type httpHeaderAuth 'twice': ids",
        "'one', setting errorWorkflow: there is no workflow 'alerts'",
        "cannot be the name of a tag",
        "folder 'Reports' can only be found in a project",
        *twice,
    ):
        assert words in text


def test_of_several_with_a_name_the_one_in_use_is_taken(client, deploy, files, tmp_path, writes):
    ids = [client.credentials.create("twice", "httpHeaderAuth", {"name": "X", "value": "y"}).id for _ in range(2)]
    deploy([workflow("one", webhook("p", credentials={"httpHeaderAuth": {"id": ids[1], "name": "twice"}}))])
    files()
    writes()
    assert deploy(str(tmp_path / "export")) == {"unchanged": ["one"]}
    assert writes() == []


def test_two_workflows_of_a_name_are_refused(client, deploy):
    for _ in range(2):
        client.workflows.create("one", [webhook("p")], {}, {})
    with pytest.raises(ServiceInputError, match="'one': there is more than one workflow of this name: ids"):
        deploy([workflow("one", webhook("p"))])
    with pytest.raises(ServiceInputError, match="more than one definition is named 'two': definition 1, definition 2"):
        deploy([workflow("two"), workflow("two")])


def test_an_export_of_the_service_names_others_by_their_ids(client, deploy, second_client):
    deploy([child(), parent(settings={"errorWorkflow": {"name": "child"}})])
    raw = [client.workflows.get(one.id).to_wire() for one in client.workflows.list()]
    assert deploy(raw, to=second_client)["create"] == ["child", "parent"]
    ids = {one.name: one.id for one in second_client.workflows.list()}
    [held] = second_client.workflows.list(name="parent")
    assert held.settings["errorWorkflow"] == ids["child"]
    assert held.nodes[1]["parameters"]["workflowId"]["value"] == ids["child"]
    assert deploy(raw, to=second_client) == {"unchanged": ["child", "parent"]}


def test_expressions_and_objects_of_other_kinds_stay_as_they_are(client, deploy):
    chosen = node("Call", "executeWorkflow", {"workflowId": address("={{ $json.id }}")})
    inline = node("Inline", "executeWorkflow", {"source": "parameter", "workflowId": "x", "workflowJson": "{}"})
    by_name = node("Rows", "dataTable", {"dataTableId": {"__rl": True, "mode": "name", "value": "stock"}})
    deploy([workflow("one", chosen, inline, by_name)])
    [held] = client.workflows.list()
    assert [one["parameters"] for one in held.nodes] == [one["parameters"] for one in (chosen, inline, by_name)]


def test_new_workflows_go_to_the_folder_and_the_project(client, deploy, simulator, execute):
    project = client.projects.create("Sales")
    outer = client.folders.create(project.id, "Reports")
    inner = client.folders.create(project.id, "Daily", parent_folder_id=outer.id)
    done = execute(
        ServiceDeployWorkflowsOperator,
        source=[workflow("a", webhook("a")), workflow("b", webhook("b"), parentFolder={"name": "Reports/Daily"})],
        project_name="Sales",
        parent_folder_name="Reports",
    )
    held = {name: simulator.state.workflows.get(one) for name, one in done["workflow_ids"].items()}
    assert {name: one.parent_folder_id for name, one in held.items()} == {"a": outer.id, "b": inner.id}
    assert {one.project_id for one in held.values()} == {project.id}


# ---------------------------------------------------------------- the operator


def test_the_operator_deploys_a_folder_of_files(execute, client, tmp_path, link):
    folder = tmp_path / "workflows"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config.json").write_text("{}")
    (folder / "README.md").write_text("for people")
    (folder / "parent.json").write_text(json.dumps(parent()))
    (folder / "sub" / "child.json").write_text("\ufeff" + json.dumps(child()), encoding="utf-8")
    first = execute(ServiceDeployWorkflowsOperator, source=str(folder))
    assert (first["outcome"], first["created"], first["activated"]) == ("deployed", *[["child", "parent"]] * 2)
    assert first["workflow_ids"] == {one.name: one.id for one in client.workflows.list()}
    again = execute(ServiceDeployWorkflowsOperator, source=str(folder))
    assert (again["outcome"], again["unchanged"], again["created"]) == ("unchanged", ["child", "parent"], [])
    assert link() == "/home/workflows"


def test_a_preview_stops_after_the_plan_and_writes_the_report(execute, client, tmp_path, writes, caplog):
    report = tmp_path / "plan.md"
    with caplog.at_level("INFO"):
        done = execute(ServiceDeployWorkflowsOperator, source=[child()], preview=True, report_path=str(report))
    assert (done["outcome"], done["created"], done["workflow_ids"]) == ("planned", ["child"], {})
    assert writes() == []
    assert "child: create, activate" in caplog.messages
    assert "child" in report.read_text()


def test_expressions_of_the_service_are_not_rendered_but_paths_are(execute, client, tmp_path):
    definition = workflow("{{ 1 }}", webhook("={{ $json.path }}"))
    (tmp_path / "one.json").write_text(json.dumps(workflow("in a file", webhook("={{ 1 }}"))))
    text = json.dumps(workflow("as text", webhook("={{ 2 }}")))
    path = str(tmp_path / "{{ task.task_id and 'one' }}.json")
    execute(ServiceDeployWorkflowsOperator, source=[definition, path, text])
    paths = {one.name: one.nodes[0]["parameters"]["path"] for one in client.workflows.list()}
    assert paths == {"{{ 1 }}": "={{ $json.path }}", "in a file": "={{ 1 }}", "as text": "={{ 2 }}"}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("/nowhere/at/all", "there is no file or folder '/nowhere/at/all'"),
        ([], "source holds no definition"),
        ([{"name": "x"}, "[1]"], "(?s)definition 1: definition lacks nodes, connections.*definition 2: .*not int"),
        (7, "source must be a list, not int"),
        (["{not json"], "definition 1 is not JSON"),
        ([7], "source must be a path or an address of object storage, not 7"),
    ],
)
def test_a_source_that_cannot_be_read_fails_for_good(execute, writes, source, words):
    with pytest.raises(AirflowFailException, match=words):
        execute(ServiceDeployWorkflowsOperator, source=source)
    assert writes() == []


def test_code_outside_the_folder_is_not_read(execute, tmp_path):
    definition = workflow("one", node("Code", "code", {"jsCode": {"file": "../secret.js"}}))
    (tmp_path / "flows").mkdir()
    (tmp_path / "secret.js").write_text("x\ny\n")
    (tmp_path / "flows" / "one.json").write_text(json.dumps(definition))
    with pytest.raises(AirflowFailException, match="must be below the folder of the definition"):
        execute(ServiceDeployWorkflowsOperator, source=str(tmp_path / "flows"))


def test_a_deployment_points_to_the_log_of_a_service_that_fails(client, deploy, simulator):
    simulator.inject("status", status=500, method="POST", path="/activate", times=None)
    with pytest.raises(ServiceDeploymentError, match="The service's log says why"):
        deploy([workflow("two", webhook("two"), active=True)])
    assert list(client.workflows.list()) == []
