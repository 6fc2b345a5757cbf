"""Workflows as files: stable, without what changes by itself, and with names in place of ids."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlencode

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_service.operators.instances import ServiceExportWorkflowsOperator, ServicePromoteWorkflowsOperator

from .workflows import address, calling, child, node, parent, webhook, workflow


def test_a_file_names_objects_and_leaves_out_what_changes_by_itself(client, deploy, files):
    credential = client.credentials.create("mail", "httpHeaderAuth", {"name": "X", "value": "y"})
    table = client.data_tables.create("stock", [{"name": "n", "type": "number"}])
    held = {"httpHeaderAuth": {"id": credential.id, "name": "mail"}}
    rows = node("Rows", "dataTable", {"dataTableId": address(table.id)}, credentials=held)
    deploy([child(), parent(settings={"errorWorkflow": {"name": "child"}}, tags=["b", "a"])])
    deploy([workflow("stock", webhook("stock"), rows, settings={"timezone": "UTC", "callerIds": [{"name": "child"}]})])
    exported = {name: json.loads(text) for name, text in files().items()}
    assert exported.keys() == {"child.json", "parent.json", "stock.json"}
    one = exported["parent.json"]
    assert one.keys() == {"active", "connections", "id", "name", "nodes", "settings", "tags"}
    assert one["id"] == next(held.id for held in client.workflows.list() if held.name == "parent")
    assert (one["active"], one["tags"], one["settings"]) == (True, ["a", "b"], {"errorWorkflow": {"name": "child"}})
    assert one["nodes"][1]["parameters"]["workflowId"] == {"__rl": True, "mode": "list", "value": {"name": "child"}}
    nodes = exported["stock.json"]["nodes"]
    assert nodes[1]["parameters"]["dataTableId"]["value"] == {"name": "stock"}
    assert nodes[1]["credentials"] == {"httpHeaderAuth": {"name": "mail"}}
    assert exported["stock.json"]["settings"] == {"timezone": "UTC", "callerIds": [{"name": "child"}]}


def test_the_text_is_sorted_and_ends_with_a_line_break(deploy, files):
    deploy([workflow("größe", webhook("p"))])
    text = files()["größe.json"]
    assert text.endswith("}\n")
    assert "größe" in text
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def test_an_active_workflow_is_exported_as_it_runs(client, deploy, files):
    deploy([child()])
    before = files()
    held = client.workflows.get(next(iter(client.workflows.list())).id)
    client.workflows.update(held.id, "child", [], {}, {}, publish_if_active=False)
    assert files() == before


def test_an_export_deployed_to_the_same_instance_writes_nothing(client, deploy, files, tmp_path, writes):
    deploy([child(), parent(), workflow("loop", webhook("loop"), calling("loop"), description="why")])
    before = files(code_files=True)
    writes()
    assert deploy(str(tmp_path / "export")) == {"unchanged": ["child", "loop", "parent"]}
    assert writes() == []
    assert files() == before


def test_code_is_a_file_of_its_own_and_comes_back(client, deploy, files, tmp_path, writes):
    code = "const n = 1;\nreturn [{ json: { n } }];\n"
    nodes = [node(name, "code", {"jsCode": code}) for name in ("Sum/1", "sum:1")]
    deploy([workflow("totals", *nodes, node("Short", "code", {"jsCode": "return []"}))])
    exported = files(code_files=True)
    assert sorted(exported) == ["totals.json", "totals/Sum_1.js", "totals/sum_1 2.js"]
    assert exported["totals/Sum_1.js"] == code
    definition = json.loads(exported["totals.json"])
    assert definition["nodes"][0]["parameters"] == {"jsCode": {"file": "totals/Sum_1.js"}}
    assert definition["nodes"][2]["parameters"] == {"jsCode": "return []"}
    writes()
    assert deploy(str(tmp_path / "export")) == {"unchanged": ["totals"]}
    assert writes() == []
    (tmp_path / "export/totals/Sum_1.js").write_text("return [];\n")
    assert deploy(str(tmp_path / "export")) == {"update": ["totals"]}
    [held] = client.workflows.list()
    assert held.nodes[0]["parameters"] == {"jsCode": "return [];\n"}


def test_names_that_are_not_names_of_files(client, deploy, files):
    names = ["a/b", "A:B", "..", "x" * 100, " blank "]
    deploy([workflow(name, webhook(f"p{number}")) for number, name in enumerate(names)])
    exported = files()
    assert len(exported) == len(names)
    assert {json.loads(text)["name"] for text in exported.values()} == {*names}
    assert all(len(name) < 120 and "/" not in name and not name.startswith(".") for name in exported)


def test_a_deleted_object_keeps_its_id(client, files):
    client.workflows.create("one", [node("Call", "executeWorkflow", {"workflowId": address("a" * 16)})], {}, {})
    definition = json.loads(files()["one.json"])
    assert definition["nodes"][0]["parameters"]["workflowId"]["value"] == "a" * 16


def test_the_operator_exports_a_selection(execute, client, deploy, tmp_path, link):
    deploy([child(tags=["nightly"]), parent(), workflow("old", webhook("old"))])
    [old] = client.workflows.list(name="old")
    client.workflows.archive(old.id)

    def names(**selected) -> list[str]:
        folder = tmp_path / str(len(selected)) / "-".join(selected)
        done = execute(ServiceExportWorkflowsOperator, path=str(folder), **selected)
        assert done["workflows"] == len(done["files"])
        return sorted(path.stem for path in folder.glob("*.json"))

    assert names() == ["child", "parent"]
    assert names(tag_name="nightly") == ["child"]
    assert names(workflow_names=["parent"]) == ["parent"]
    assert names(project_id="nope") == []
    assert link() == "/home/workflows"
    with pytest.raises(AirflowFailException, match=r"no workflow named 'Parent'.*'parent' differs only"):
        names(workflow_names=["Parent"], code_files=True)
    assert names(workflow_names=["child"], tag_name="nightly") == ["child"]
    with pytest.raises(AirflowFailException, match="workflow_names holds 'parent', which does not have the tag 'night"):
        names(workflow_names=["child", "parent"], tag_name="nightly", code_files=True)
    assert not list((tmp_path / "3").rglob("*.json"))


def twins(client) -> list[str]:
    """Three workflows, of which two share a name, and the third is called as the file of one of them would be."""
    first = client.workflows.create("x", [webhook("first")], {}, {}).id
    calls = node("Call", "executeWorkflow", {"workflowId": address(first)}, typeVersion=1.2)
    second = client.workflows.create("x", [webhook("second"), calls], {}, {}).id
    return [first, second, client.workflows.create(f"x ({first})", [webhook("third")], {}, {}).id]


def test_workflows_that_share_a_name_are_exported_and_deployed_again(
    client, second_client, deploy, files, tmp_path, writes
):
    ids = twins(client)
    exported = {name: json.loads(text) for name, text in files().items()}
    assert sorted(one["id"] for one in exported.values()) == sorted(ids)
    assert {f"{one['name']}.json" for one in exported.values()} == exported.keys()
    writes()
    assert deploy(str(tmp_path / "export")).keys() == {"unchanged"}
    assert writes() == []
    made = deploy(str(tmp_path / "export"), to=second_client)
    assert len(made["create"]) == 3
    held = {one.name: one for one in second_client.workflows.list()}
    caller, called = held[f"x ({ids[1]})"], held[f"x ({ids[0]})"]
    assert caller.nodes[1]["parameters"]["workflowId"]["value"] == called.id
    assert deploy(str(tmp_path / "export"), to=second_client).keys() == {"unchanged"}


def test_a_promotion_carries_all_workflows_that_share_a_name(execute, client, second_client, second):
    twins(client)
    tag = client.tags.create("all").id
    for one in list(client.workflows.list()):
        client.workflows.update_tags(one.id, [tag])
    arguments = {"source_conn_id": "service_default", "service_conn_id": "production", "tag_name": "all"}
    assert len(execute(ServicePromoteWorkflowsOperator, **arguments)["created"]) == 3
    assert len(list(second_client.workflows.list())) == 3
    assert execute(ServicePromoteWorkflowsOperator, **arguments)["outcome"] == "unchanged"


def test_a_tag_with_a_comma_in_its_name_selects_its_own_workflows(execute, client, tmp_path):
    tags = {name: client.tags.create(name).id for name in ("red,blue", "red", "blue")}
    workflows = {name: client.workflows.create(name, [webhook(name)], {}, {}).id for name in ("mine", "theirs")}
    client.workflows.update_tags(workflows["mine"], [tags["red,blue"]])
    client.workflows.update_tags(workflows["theirs"], [tags["red"], tags["blue"]])
    for given in ({"tag_id": tags["red,blue"]}, {"tag_name": "red,blue"}):
        execute(ServiceExportWorkflowsOperator, path=str(tmp_path), remove_stale=True, **given)
        assert [path.name for path in tmp_path.glob("*.json")] == ["mine.json"]


def ignoring_tags(app: ASGIApp) -> ASGIApp:
    """As a server before 2.39, which ignores the filter for tags if it also gets a project."""

    async def layer(scope: Scope, receive: Receive, send: Send) -> None:
        query = [(key, value) for key, value in parse_qsl(scope["query_string"].decode()) if key != "tags"]
        await app({**scope, "query_string": urlencode(query).encode()}, receive, send)

    return layer


def test_a_tag_selects_among_the_workflows_of_a_project_where_the_server_does_not(execute, client, simulator, tmp_path):
    project_id = client.projects.create("team").id
    for name in ("ready", "draft"):
        client.workflows.create(name, [webhook(name)], {}, {}, project_id=project_id)
    ready = next(client.workflows.list(name="ready")).id
    client.workflows.update_tags(ready, [client.tags.create("release").id])
    simulator.wrap(ignoring_tags)

    execute(ServiceExportWorkflowsOperator, path=str(tmp_path), tag_name="release", project_id=project_id)

    assert [path.name for path in tmp_path.glob("*.json")] == ["ready.json"]
