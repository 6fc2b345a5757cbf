"""Workflows over HTTP: drafts, archive, versions, tags."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import node

from .api_client import Api
from .workflow_helpers import changed, created, published, refused, sample, state_of

# ---------------------------------------------------------------- create, read


def test_created_workflow_is_inactive_and_complete(api: Api) -> None:
    workflow = created(api, settings={"executionTimeout": 5, "binaryMode": "separate"})
    assert len(workflow["id"]) == 16
    assert (workflow["active"], workflow["activeVersion"], workflow["parentFolder"]) == (False, None, None)
    assert workflow["settings"] == {"executionTimeout": 5}
    assert workflow["nodes"][0]["webhookId"]
    assert all(node["id"] for node in workflow["nodes"])
    assert workflow["shared"][0]["project"]["type"] == "personal"
    del workflow["parentFolder"]
    assert state_of(api, workflow) == workflow


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"description": "x"}, "request/body Unrecognized key(s) in object: 'description'"),
        ({"settings": {"foo": 1}}, "request/body/settings Unrecognized key(s) in object: 'foo'"),
        ({"name": ""}, "Workflow name must be 1 to 128 characters long."),
        ({"name": "x" * 129, "nodes": []}, "Workflow name must be 1 to 128 characters long."),
        ({"versionCounter": 1}, "request/body Unrecognized key(s) in object: 'versionCounter'"),
        ({"foo": 1, "connections": []}, "request/body/connections must be object"),
        (
            {"settings": {"foo": 1, "saveManualExecutions": "DEFAULT"}},
            "request/body/settings/saveManualExecutions Expected boolean, received string",
        ),
        (
            {"settings": {"saveExecutionProgress": "DEFAULT"}},
            "request/body/settings/saveExecutionProgress Expected boolean, received string",
        ),
        (
            {"settings": {"saveDataErrorExecution": "DEFAULT"}},
            "request/body/settings/saveDataErrorExecution Invalid enum value. Expected 'all' | 'none', "
            "received 'DEFAULT'",
        ),
        (
            {"settings": {"callerPolicy": None}},
            "request/body/settings/callerPolicy Expected 'any' | 'none' | 'workflowsFromAList' | "
            "'workflowsFromSameOwner', received null",
        ),
        ({"staticData": "text"}, "request/body/staticData must be a JSON string"),
        ({"staticData": []}, "request/body/staticData Invalid input"),
        (
            {"nodes": [{"name": "a", "type": "t", "position": [0, 0], "color": "#fff", "extendsCredential": "b"}]},
            "request/body/nodes/0 Unrecognized key(s) in object: 'color', 'extendsCredential'",
        ),
        (
            {"nodes": [{"type": "t", "position": [0, 0]}], "connections": {}},
            "Workflow structure is invalid. nodes[0].name (invalid_type): Required",
        ),
        (
            {"nodes": [{"name": "a", "type": "t", "position": [0, 0], "x": 1}]},
            "request/body/nodes/0 Unrecognized key(s) in object: 'x'",
        ),
        (
            {"connections": {"Webhook": {"main": [[{"node": "Nowhere", "type": "main", "index": 0}]]}}},
            'Workflow structure is invalid. connections.Webhook (custom): Unknown target node "Nowhere"',
        ),
    ],
)
def test_create_refuses(api: Api, change: dict[str, Any], message: str) -> None:
    refused(api.post("/workflows", sample(**change)), 400, message)
    assert api.get("/workflows").json()["data"] == []


@pytest.mark.parametrize(
    ("sent", "kept"), [('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1}), ("[]", None), ("1", None), (None, None)]
)
def test_static_data_is_kept_as_an_object(api: Api, sent: Any, kept: Any) -> None:
    workflow = created(api, staticData=sent)
    assert workflow["staticData"] == kept
    changed = api.put(f"/workflows/{workflow['id']}", sample(staticData=sent)).json()
    assert changed["staticData"] == kept


@pytest.mark.parametrize(
    ("kind", "version", "is_made"),
    [
        ("telegramTrigger", 1.2, True),
        ("github", 1.1, True),
        ("wait", 1.1, True),
        ("gmail", 2.1, True),
        ("gmail", 1, False),
        ("slackTool", 2, True),
        ("cron", 1, False),
        ("neverHeardOf", 1, False),
    ],
)
def test_nodes_with_webhooks_get_an_id(api: Api, kind: str, version: float, is_made: bool) -> None:
    workflow = created(api, nodes=[node("Node", kind, version, {}, 0)], connections={})
    assert ("webhookId" in workflow["nodes"][0]) is is_made


MISSING = "nopenopenopenope"


@pytest.mark.parametrize(
    ("method", "path", "body", "text"),
    [
        (
            "PUT",
            "",
            sample(),
            "You do not have permission to update this workflow. Ask the owner to share it with you.",
        ),
        (
            "PUT",
            "/transfer",
            {"destinationProjectId": "x"},
            f'Could not find workflow with the id "{MISSING}". Make sure you have the permission to move it.',
        ),
        ("GET", "/versions/x", None, "Workflow not found"),
        ("GET", "/x", None, "Version not found"),
    ],
)
def test_a_missing_workflow_has_a_text_for_each_operation(
    api: Api, method: str, path: str, body: Any, text: str
) -> None:
    refused(api.request(method, f"/workflows/{MISSING}{path}", json=body), 404, text)
    if body is not None:  # a body is checked first
        assert api.request(method, f"/workflows/{MISSING}{path}", json={"nodes": 5}).status_code == 400


@pytest.mark.parametrize("outputs", [5, {"main": 5}, {"main": [5]}, {"main": [[5]]}, {"main": [[{"node": [1]}]]}])
def test_create_refuses_connections_of_any_odd_shape(api: Api, outputs: Any) -> None:
    answer = api.post("/workflows", sample(connections={"Webhook": outputs}))
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Workflow structure is invalid. connections.Webhook")


def placed(name: str, **more: Any) -> dict[str, Any]:
    return {**node(name, "noOp", 1, {}, 0), **more}


@pytest.mark.parametrize(
    ("since", "nodes", "fault"),
    [
        ("2.30.8", [placed("")], "nodes[0].name (too_small): String must contain at least 1 character(s)"),
        (
            "2.30.8",
            [placed("A", position=[1, 2, 3])],
            "nodes[0].position (too_big): Array must contain at most 2 element(s)",
        ),
        (
            "2.30.8",
            [placed("A", position=[1])],
            "nodes[0].position (too_small): Array must contain at least 2 element(s)",
        ),
        (
            "2.30.8",
            [placed("A"), placed("A")],
            'nodes[1].name (duplicate_node_name): Duplicate node name "A"',
        ),
        (
            "2.39.10",
            [placed("A", id="x"), placed("B", id="x")],
            'nodes[1].id (duplicate_node_id): Nodes "A" and "B" share the node ID "x"',
        ),
    ],
)
def test_nodes_that_cannot_be_placed_or_told_apart_are_refused(
    api: Api, since: str, nodes: list[dict[str, Any]], fault: str
) -> None:
    body = sample(nodes=nodes, connections={})
    for version in (since, "2.41.1"):
        api.simulator.version = version
        refused(api.post("/workflows", body), 400, f"Workflow structure is invalid. {fault}")
    api.simulator.version = "2.20.12"
    assert api.post("/workflows", body).status_code == 200


def test_pinned_data_has_a_limit(api: Api) -> None:
    fits = sample(pinData={"Webhook": [{"json": {"a": "x" * 12_000_000}}]})
    too_large = sample(pinData={"Webhook": [{"json": {"a": "x" * 12_600_000}}]})
    workflow = api.post("/workflows", fits).json()
    message = "Pinned data exceeds the maximum allowed size of 12 MB"
    refused(api.post("/workflows", too_large), 400, message)
    refused(api.put(f"/workflows/{workflow['id']}", too_large), 400, message)


def test_create_accepts_unknown_nodes(api: Api) -> None:
    created(api, nodes=[node("Odd", "neverHeardOf", 1, {}, 0)], connections={})


def test_create_in_unknown_project_or_folder_is_404(api: Api) -> None:
    refused(api.post("/workflows", sample(projectId="nope")), 404, "Project not found")
    refused(api.post("/workflows", sample(parentFolderId="nope")), 404, "Could not find the folder: nope")


def test_create_in_a_folder(api: Api) -> None:
    project = api.simulator.state.personal_project_id
    folder = api.post(f"/projects/{project}/folders", {"name": "Folder"}).json()
    workflow = created(api, parentFolderId=folder["id"])
    assert workflow["parentFolder"]["name"] == "Folder"
    totals = api.get(f"/projects/{project}/folders/{folder['id']}").json()
    assert totals["totalWorkflows"] == 1


# ---------------------------------------------------------------- list


def test_the_list_has_offsets(api: Api) -> None:
    made = sorted(created(api)["id"] for _ in range(2))
    assert [found["id"] for found in api.get("/workflows?offset=1").json()["data"]] == made[1:]


def test_list_items_lack_what_the_detail_has(api: Api) -> None:
    created(api)
    (item,) = api.get("/workflows").json()["data"]
    assert not {"description", "versionCounter", "sourceWorkflowId"} & set(item)
    assert "project" not in item["shared"][0]


def test_pinned_data_can_be_left_out(api: Api) -> None:
    workflow = created(api, pinData={"Webhook": [{"json": {"a": 1}}]})
    assert "pinData" not in api.get(f"/workflows/{workflow['id']}?excludePinnedData=true").json()
    assert "pinData" not in api.get("/workflows?excludePinnedData=true").json()["data"][0]
    assert state_of(api, workflow)["pinData"] == {"Webhook": [{"json": {"a": 1}}]}


# ---------------------------------------------------------------- update


def test_rename_and_settings_make_no_new_version(api: Api) -> None:
    workflow = created(api)
    answer = api.put(
        f"/workflows/{workflow['id']}", sample(name="New", nodes=workflow["nodes"], settings={"timezone": "UTC"})
    ).json()
    assert answer["versionId"] == workflow["versionId"]
    assert len(api.get(f"/workflows/{workflow['id']}/history").json()["data"]) == 1


def test_update_without_the_right_to_publish_saves_a_draft(simulator: ServiceSimulator, connect: Any) -> None:
    api = connect(simulator)
    workflow = published(api)
    editor = connect(simulator, simulator.create_key(["workflow:update"]))
    answer = editor.put(f"/workflows/{workflow['id']}", changed())
    after = state_of(api, workflow)
    assert answer.status_code == 403
    assert answer.json()["reason"] == "insufficient_api_key_scope"
    assert answer.json()["message"].startswith("Your change was saved as a draft. ")
    assert answer.json()["versionId"] == after["versionId"] != workflow["versionId"]
    assert after["activeVersionId"] == workflow["versionId"]


# ---------------------------------------------------------------- archive, transfer, versions, tags


def test_archive_unpublishes_and_locks(api: Api) -> None:
    workflow = published(api)
    path = f"/workflows/{workflow['id']}"
    answer = api.post(f"{path}/archive").json()
    assert (answer["isArchived"], answer["active"]) == (True, False)
    assert answer["versionId"] != workflow["versionId"]
    assert api.post(f"{path}/archive").json()["versionId"] == answer["versionId"]
    api.simulator.clock.advance(1)
    assert api.hook("sample").status_code == 404


def test_archived_workflow_can_be_deleted(api: Api) -> None:
    path = f"/workflows/{created(api)['id']}"
    api.post(f"{path}/archive")
    assert api.delete(path).status_code == 200


def test_transfer(api: Api) -> None:
    workflow = created(api)
    project = api.post("/projects", {"name": "Team"}).json()
    path = f"/workflows/{workflow['id']}/transfer"
    answer = api.put(path, {"destinationProjectId": project["id"]})
    assert (answer.status_code, answer.content) == (204, b"")
    assert state_of(api, workflow)["shared"][0]["projectId"] == project["id"]


def test_versions_keep_their_nodes(api: Api) -> None:
    workflow = created(api)
    api.put(f"/workflows/{workflow['id']}", changed())
    base = f"/workflows/{workflow['id']}"
    version = api.get(f"{base}/versions/{workflow['versionId']}")
    alias = api.get(f"{base}/{workflow['versionId']}")
    assert version.json()["nodes"] == workflow["nodes"]
    assert alias.json() == version.json()
    assert alias.headers["Deprecation"] == "@1787702400"
