"""Deployments on a real server: nothing is written twice, all or nothing, and from one server to another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.export import ExportSelection, exported, write_folder
from airflow_provider_service._core.instances.mapping import InstanceMapping
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import Source, read_source
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceDeploymentError, ServiceInputError
from airflow_provider_service.client.models import Workflow
from airflow_provider_service.operators.instances import ServicePromoteWorkflowsOperator
from airflow_provider_service.testing import run_task
from tests.instances.workflows import address, node, parent, webhook, workflow

from .conftest import MakeServer
from .running import DRAFTS, called, connect, delete_credentials, delete_workflows, deploy
from .servers import LiveServer


@pytest.fixture
def client(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceClient]:
    with connect(monkeypatch, live_server) as client:
        yield client
        delete_workflows(client)


def put_credential(
    client: ServiceClient, server: LiveServer, name: str = "promoted", path: str = "uses"
) -> dict[str, Any]:
    """Create a credential; how a node names it. An older server, which lists none, knows those that workflows use."""
    made = client.credentials.create(name, "httpHeaderAuth", {"name": "X-Key", "value": "one"})
    uses = {"httpHeaderAuth": {"id": made.id, "name": name}}
    if server.generation.major == 1:
        client.workflows.create(f"uses {name}", [webhook(path, credentials=uses)], {}, {})
    return uses


def state_of(client: ServiceClient) -> tuple[dict[str, Any], list[str]]:
    """Everything that counts of every workflow, drafts included, and the names of the tags."""

    def of(one: Workflow) -> tuple[Any, ...]:
        live = one.active_version
        tags = sorted(str(tag.name) for tag in one.tags or ())
        return one.id, one.active, live and live.nodes, one.nodes, one.connections, one.settings, tags

    found = [client.workflows.get(one.id) for one in client.workflows.list()]
    return {one.name: of(one) for one in found}, sorted(str(tag.name) for tag in client.tags.list())


def without_ids(client: ServiceClient, selection: ExportSelection) -> list[dict[str, Any]]:
    """Exported definitions without the ids of the workflows, which each server has its own of."""
    return [{**definition, "id": None} for _, definition in exported(client, selection)]


def test_deploying_twice_writes_nothing(client: ServiceClient, live_server: LiveServer, tmp_path: Path) -> None:
    source = [called(live_server), parent(tags=["live a", "live b"], settings={"timezone": "UTC"})]
    assert deploy(client, source)["create"] == ["child", "parent"]
    changed_at = {one.id: one.updated_at for one in client.workflows.list()}
    assert deploy(client, source) == {"unchanged": ["child", "parent"]}
    write_folder(str(tmp_path / "one"), exported(client, ExportSelection(["child", "parent"])))
    assert deploy(client, [str(tmp_path / "one")]) == {"unchanged": ["child", "parent"]}
    assert {one.id: one.updated_at for one in client.workflows.list()} == changed_at
    write_folder(str(tmp_path / "two"), exported(client, ExportSelection(["child", "parent"])))
    files = [{path.name: path.read_text() for path in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1]


def test_what_the_service_keeps_in_another_form_is_deployed_once(
    client: ServiceClient, live_server: LiveServer
) -> None:
    if not live_server.generation.has("2.41"):
        pytest.skip("what other generations make of it has not been measured")
    made = client.credentials.create("as text", "httpBasicAuth", {"user": "u", "password": "p"})
    client.credentials.create("another", "httpBasicAuth", {"user": "u", "password": "p"})
    parameters = {"url": "http://127.0.0.1:9", "authentication": "basicAuth"}
    uses = {"httpBasicAuth": "as text"}
    requests = [node(name, "httpRequest", parameters, typeVersion=1, credentials=uses) for name in ("Get", "Get again")]
    form = node("Form", "formTrigger", {"formTitle": "Form", "path": "form"}, typeVersion=2, webhookId="", id="")
    dropped = {"binaryMode": "separate", "redactionPolicy": "none", "credentialResolverId": "x"}
    source = [
        workflow("credentials", webhook("text", webhookId=""), *requests, active=True),
        workflow("settings", webhook("dropped"), active=True, settings={"executionOrder": "v1", **dropped}),
        workflow("triggers", form, active=True),
        workflow("pushed", node("Pushed", "githubTrigger", typeVersion=1, webhookId="")),
    ]
    names = sorted(one["name"] for one in source)
    assert deploy(client, source)["create"] == names
    before = {one.name: (one.version_id, one.active_version_id) for one in client.workflows.list()}
    for _ in range(2):
        assert deploy(client, source) == {"unchanged": names}
    assert {one.name: (one.version_id, one.active_version_id) for one in client.workflows.list()} == before
    held = {one.name: client.workflows.get(one.id) for one in client.workflows.list()}
    found = {"httpBasicAuth": {"id": made.id, "name": "as text"}}
    assert [one["credentials"] for one in (held["credentials"].nodes or [])[1:]] == [found] * 2
    assert held["settings"].settings == {"executionOrder": "v1"}
    with pytest.raises(ServiceInputError, match="there is no credential of type httpBasicAuth 'missing'"):
        deploy(client, [workflow("missing", node("Get", "httpRequest", credentials={"httpBasicAuth": "missing"}))])
    delete_credentials(client)


def test_the_third_of_ten_that_fails_takes_all_back(client: ServiceClient, live_server: LiveServer) -> None:
    names = [f"ten {number}" for number in range(10)]

    def ten(path: str) -> list[dict[str, Any]]:
        return [workflow(name, webhook(f"{path}-{name[-1]}"), active=True, tags=[f"live {path}"]) for name in names[:9]]

    deploy(client, ten("first"))
    if has_drafts := live_server.generation.has(DRAFTS):
        [edited] = client.workflows.list(name=names[5])
        client.workflows.update(edited.id, names[5], [webhook("draft")], {}, {}, publish_if_active=False)
    before, versions = state_of(client), {one.id: one.active_version_id for one in client.workflows.list()}
    changed = [*ten("second"), workflow(names[9], webhook("second-9"), active=True)]
    changed[2] = workflow(names[2], node("No trigger", "noOp"), active=True)
    with pytest.raises(ServiceDeploymentError, match=r"'ten 2'.*was rolled back") as caught:
        deploy(client, changed)
    assert caught.value.final
    assert state_of(client) == before
    if has_drafts:
        assert {one.id: one.active_version_id for one in client.workflows.list()} == versions


def test_promotion_between_two_servers(
    client: ServiceClient, live_server: LiveServer, make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [{"name": "n", "type": "number"}]
    uses = put_credential(client, live_server)
    call = node("Get", "httpRequest", {"url": "http://127.0.0.1:9"}, typeVersion=4.2, credentials=uses)
    get = workflow("get", webhook("get"), call, active=True, settings={"errorWorkflow": {"name": "child"}})
    rows = workflow("rows", webhook("rows"), tags=["live release"], active=True)
    if has_tables := live_server.generation.major > 1:
        table = client.data_tables.create("promoted", columns)
        rows["nodes"].append(node("Rows", "dataTable", {"dataTableId": address(table.id)}, typeVersion=1))
    deploy(client, [called(live_server), parent(), get, rows])
    names = ExportSelection(["child", "parent", "get", "rows"])
    promoted = [Source(definition, workflow_id) for workflow_id, definition in exported(client, names)]
    with make_server() as other, connect(monkeypatch, other) as there:
        uses_there = put_credential(there, other)
        if has_tables:
            own_table = there.data_tables.create("promoted", columns)
        assert deploy(there, promoted)["create"] == ["child", "get", "parent", "rows"]
        held = {one.name: one for one in there.workflows.list()}
        assert (held["get"].nodes or [])[1]["credentials"] == uses_there != uses
        assert (held["get"].settings or {})["errorWorkflow"] == held["child"].id
        assert (held["parent"].nodes or [])[1]["parameters"]["workflowId"]["value"] == held["child"].id
        assert [tag.name for tag in held["rows"].tags or ()] == ["live release"]
        if has_tables:
            assert (held["rows"].nodes or [])[1]["parameters"]["dataTableId"]["value"] == own_table.id != table.id
        assert deploy(there, promoted) == {"unchanged": ["child", "get", "parent", "rows"]}
        assert without_ids(there, names) == without_ids(client, names)
    if has_tables:
        client.data_tables.delete(table.id)


def test_a_promotion_archives_what_it_promoted_and_is_no_longer_selected(
    client: ServiceClient, live_server: LiveServer, make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if live_server.generation.major == 1:
        pytest.skip("a server of version 1 does not archive by its API")
    tag = ["live promotion"]
    deploy(client, [workflow(name, webhook(f"left-{name}"), active=True, tags=tag) for name in ("stays", "leaves")])
    with make_server() as other, connect(monkeypatch, other, "N8N_PRODUCTION") as there:
        there.workflows.create("by hand", [webhook("hand")], {}, {})

        def promote() -> dict[str, list[str]]:
            connections = {"source_conn_id": "service_default", "service_conn_id": "n8n_production"}
            owned = {"tag_name": tag[0], "deployment_name": "live", "archive_missing": True}
            return run_task(ServicePromoteWorkflowsOperator(task_id="promote", **connections, **owned)).return_value

        assert promote()["created"] == ["leaves", "stays"]
        [left] = client.workflows.list(name="leaves")
        client.workflows.update_tags(left.id, [])

        assert promote()["archived"] == ["leaves"]

        held = {one.name: (bool(one.is_archived), one.active) for one in there.workflows.list()}
        assert {name: held[name] for name in ("stays", "leaves", "by hand")} == {
            "stays": (False, True),
            "leaves": (True, False),
            "by hand": (False, False),
        }
        assert promote()["outcome"] == "unchanged"


def test_a_mapping_leads_to_other_names_and_values(client: ServiceClient, live_server: LiveServer) -> None:
    columns = [{"name": "n", "type": "number"}]
    source_uses, uses = (
        put_credential(client, live_server, name, path)
        for name, path in (("mapped (test)", "test"), ("mapped", "live"))
    )
    request = {"url": "http://127.0.0.1:9/test", "options": {"timeout": 1000}}
    get = node("Get", "httpRequest", request, typeVersion=4.2, credentials=source_uses)
    orders = workflow("orders (test)", webhook("mapped-orders"), get, tags=["live test"])
    if has_tables := live_server.generation.major > 1:
        tables = [client.data_tables.create(name, columns) for name in ("live_test", "live")]
        by_name = {"__rl": True, "mode": "name", "value": "live_test"}
        orders["nodes"] += [
            node("By id", "dataTable", {"dataTableId": address(tables[0].id)}, typeVersion=1),
            node("By name", "dataTable", {"dataTableId": by_name}, typeVersion=1),
        ]
    mapping = {
        "credentials": {"mapped (test)": "mapped"},
        "data_tables": {"live_test": "live"},
        "tags": {"live test": "live production"},
        "workflows": {"child": "live child", "orders (test)": "orders"},
        "values": {"orders (test)": {"Get": {"url": "http://127.0.0.1:9/live", "options.timeout": 2000}}},
    }
    deploy(client, [called(live_server), orders])
    sources = [
        Source(definition, workflow_id)
        for workflow_id, definition in exported(client, ExportSelection(["child", "orders (test)"]))
    ]
    target = DeploymentTarget(client, mapping=InstanceMapping.read(mapping, None))
    apply_plan(make_plan(sources, target), target)
    assert [one.actions for one in make_plan(sources, target).changes] == [(), ()]
    held = {one.name: client.workflows.get(one.id) for one in client.workflows.list()}
    assert {"child", "live child", "orders (test)", "orders"} <= held.keys()
    nodes = {str(one["name"]): one for one in held["orders"].nodes or []}
    assert nodes["Get"]["credentials"] == uses != source_uses
    assert nodes["Get"]["parameters"] == {"url": "http://127.0.0.1:9/live", "options": {"timeout": 2000}}
    assert [tag.name for tag in held["orders"].tags or ()] == ["live production"]
    if has_tables:
        assert nodes["By id"]["parameters"]["dataTableId"]["value"] == tables[1].id
        assert nodes["By name"]["parameters"]["dataTableId"]["value"] == "live"
        for table in tables:
            client.data_tables.delete(table.id)
    for one in (source_uses, uses):
        client.credentials.delete(one["httpHeaderAuth"]["id"])


def test_a_rename_a_removal_and_a_taken_path(client: ServiceClient, live_server: LiveServer) -> None:
    if live_server.generation.major == 1:
        pytest.skip("a server of version 1 does not archive by its API")
    target = DeploymentTarget(client, deployment_name="live", archive_missing=True)

    def run(*definitions: dict[str, Any]) -> dict[str, list[str]]:
        plan = make_plan(read_source([*definitions]), target)
        apply_plan(plan, target)
        return {action: names for action, names in plan.by_action().items() if names}

    one, two = (workflow(name, webhook(f"live-{name}"), active=True) for name in ("one", "two"))
    run(one, two)
    ids = {held.name: held.id for held in client.workflows.list()}
    renamed = {**one, "name": "first", "id": ids["one"]}
    assert run(renamed, two) == {"rename": ["first"], "unchanged": ["two"]}
    held = client.workflows.get(ids["one"])
    assert (held.name, held.active) == ("first", True)

    # What replaces an archived workflow takes over its webhook; if the deployment fails, that one runs again.
    before = client.workflows.get(ids["two"])
    refused = workflow("z", node("No trigger", "noOp"), active=True)
    successor = workflow("third", webhook("live-two"), active=True)
    with pytest.raises(ServiceDeploymentError, match="Everything that it had changed was rolled back"):
        run(renamed, refused, successor)
    back = client.workflows.get(ids["two"])
    assert (bool(back.is_archived), back.active, back.nodes) == (False, True, before.nodes)
    if live_server.generation.has(DRAFTS):
        assert back.active_version_id == before.active_version_id
    assert run(renamed, successor)["archive"] == ["two"]
    assert client.workflows.get(ids["two"]).is_archived

    with pytest.raises(ServiceDeploymentError, match=r"POST 'live-one' by 'first'") as caught:
        deploy(client, [workflow("other", webhook("live-one"), active=True)])
    assert caught.value.final
