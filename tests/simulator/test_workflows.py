"""Workflows over HTTP: drafts, archive, versions, tags."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator.samples import node

from .api_client import Api
from .workflow_helpers import changed, created, published, refused, sample, state_of

MAY_NOT = "You do not have permission to {} this workflow. Ask the owner to share it with you."


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
        ({"active": True}, "request/body/active is read-only"),
        ({"description": "x"}, "request/body Unrecognized key(s) in object: 'description'"),
        ({"settings": {"foo": 1}}, "request/body/settings Unrecognized key(s) in object: 'foo'"),
        ({"name": ""}, "request/body/name String must contain at least 1 character(s)"),
        (
            {"nodes": [{"name": "a"}]},
            "Workflow structure is invalid. nodes[0].type (invalid_type): Required; "
            "nodes[0].position (invalid_type): Required",
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


@pytest.mark.parametrize("outputs", [5, {"main": 5}, {"main": [5]}, {"main": [[5]]}, {"main": [[{"node": [1]}]]}])
def test_create_refuses_connections_of_any_odd_shape(api: Api, outputs: Any) -> None:
    answer = api.post("/workflows", sample(connections={"Webhook": outputs}))
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Workflow structure is invalid. connections.Webhook")


def test_create_wants_every_required_key(api: Api) -> None:
    refused(api.post("/workflows", {"name": "a"}), 400, "request/body must have required property 'nodes'")


def test_create_accepts_no_nodes_and_unknown_ones(api: Api) -> None:
    created(api, nodes=[], connections={})
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


def test_unknown_ids(api: Api) -> None:
    for method, path, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("GET", "/tags", None),
        ("GET", "/history", None),
    ):
        refused(api.request(method, f"/workflows/nope{path}", json=body), 404, "Not Found")
    for verb in ("archive", "unarchive"):
        refused(api.post(f"/workflows/nope/{verb}"), 404, "Workflow not found")
    for verb, word in (("publish", "activate"), ("activate", "activate"), ("unpublish", "deactivate")):
        refused(api.post(f"/workflows/nope/{verb}"), 404, MAY_NOT.format(word))
    refused(api.put("/workflows/nope", sample()), 404, MAY_NOT.format("update"))


# ---------------------------------------------------------------- list


def test_list_filters(api: Api) -> None:
    first, second = created(api, name="Load Sales"), published(api, name="sales report", path="b")
    tag = api.post("/tags", {"name": "daily"}).json()
    other = api.post("/tags", {"name": "eu"}).json()
    api.put(f"/workflows/{second['id']}/tags", [{"id": tag["id"]}, {"id": other["id"]}])
    api.put(f"/workflows/{first['id']}/tags", [{"id": tag["id"]}])

    def ids(query: str) -> list[str]:
        return [found["id"] for found in api.get(f"/workflows?{query}").json()["data"]]

    both = sorted([first["id"], second["id"]])
    assert ids("") == both
    assert ids("name=SALES") == both
    assert ids("active=true") == [second["id"]]
    assert ids("active=false") == [first["id"]]
    assert ids("tags=daily") == both
    assert ids("tags=daily,eu") == [second["id"]]
    assert ids("tags=unknown") == []
    assert ids("projectId=unknown") == []
    assert ids(f"projectId={api.simulator.state.personal_project_id}") == both
    assert ids("offset=1") == both[1:]


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


def test_update_refuses_what_get_answered(api: Api) -> None:
    workflow = created(api)
    refused(api.put(f"/workflows/{workflow['id']}", state_of(api, workflow)), 400, "request/body/id is read-only")


def test_update_merges_settings_and_replaces_nodes(api: Api) -> None:
    workflow = created(api, settings={"timezone": "UTC", "executionTimeout": 5})
    nodes = [node("Only", "noOp", 1, {}, 0)]
    body = {"name": "New", "nodes": nodes, "connections": {}, "settings": {"executionTimeout": 9}, "description": "d"}
    answer = api.put(f"/workflows/{workflow['id']}", body).json()
    assert answer["settings"] == {"timezone": "UTC", "executionTimeout": 9}
    assert [found["name"] for found in answer["nodes"]] == ["Only"]
    assert (answer["name"], answer["description"]) == ("New", "d")
    assert answer["versionId"] != workflow["versionId"]


def test_rename_and_settings_make_no_new_version(api: Api) -> None:
    workflow = created(api)
    answer = api.put(f"/workflows/{workflow['id']}", sample(name="New", settings={"timezone": "UTC"})).json()
    assert answer["versionId"] == workflow["versionId"]
    assert len(api.get(f"/workflows/{workflow['id']}/history").json()["data"]) == 1


def test_update_of_an_active_workflow_goes_live(api: Api) -> None:
    workflow = published(api)
    answer = api.put(f"/workflows/{workflow['id']}", changed()).json()
    assert answer["activeVersionId"] == answer["versionId"] != workflow["versionId"]


def test_update_can_leave_the_live_version_alone(api: Api) -> None:
    workflow = published(api)
    answer = api.put(f"/workflows/{workflow['id']}?publishIfActive=false", changed()).json()
    assert answer["activeVersionId"] == workflow["versionId"] != answer["versionId"]


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
    refused(api.put(path, sample()), 400, "Cannot update an archived workflow.")
    refused(api.post(f"{path}/publish"), 400, "Cannot activate an archived workflow.")
    assert api.get("/workflows").json()["data"][0]["isArchived"] is True
    api.simulator.clock.advance(1)
    assert api.hook("sample").status_code == 404


def test_unarchive_leaves_it_inactive(api: Api) -> None:
    path = f"/workflows/{published(api)['id']}"
    refused(api.post(f"{path}/unarchive"), 400, "Workflow is not archived.")
    api.post(f"{path}/archive")
    answer = api.post(f"{path}/unarchive").json()
    assert (answer["isArchived"], answer["active"]) == (False, False)


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
    same = "You can't transfer a workflow into the same destination it already belongs to."
    refused(api.put(path, {"destinationProjectId": project["id"]}), 400, same)
    assert api.put(path, {"destinationProjectId": "nope"}).status_code == 404


def test_history_is_newest_first_and_paged(api: Api) -> None:
    workflow = created(api)
    newer = api.put(f"/workflows/{workflow['id']}", changed()).json()
    path = f"/workflows/{workflow['id']}/history"
    answer = api.get(f"{path}?limit=1").json()
    assert [found["versionId"] for found in answer["data"]] == [newer["versionId"]]
    assert set(answer["data"][0]) == {
        "versionId",
        "workflowId",
        "authors",
        "name",
        "description",
        "createdAt",
        "updatedAt",
    }
    last = api.get(path, params={"cursor": answer["nextCursor"]}).json()
    assert [found["versionId"] for found in last["data"]] == [workflow["versionId"]]
    assert last["nextCursor"] is None


def test_versions_keep_their_nodes(api: Api) -> None:
    workflow = created(api)
    api.put(f"/workflows/{workflow['id']}", changed())
    base = f"/workflows/{workflow['id']}"
    version = api.get(f"{base}/versions/{workflow['versionId']}")
    alias = api.get(f"{base}/{workflow['versionId']}")
    assert version.json()["nodes"] == workflow["nodes"]
    assert alias.json() == version.json()
    assert alias.headers["Deprecation"] == "@1787702400"
    refused(api.get(f"{base}/versions/nope"), 404, "Version not found")


def test_tags_are_replaced(api: Api) -> None:
    path = f"/workflows/{created(api)['id']}/tags"
    tag = api.post("/tags", {"name": "daily"}).json()
    assert api.put(path, [{"id": tag["id"]}]).json() == [tag]
    assert api.get(path).json() == [tag]
    refused(api.put(path, [{"id": "nope"}]), 404, "Some tags not found")
    refused(api.put(path, [{}]), 400, "request/body/0 must have required property 'id'")
    assert api.get(path).json() == [tag]
    assert api.put(path, []).json() == []


def test_deleted_workflow_takes_its_executions_along(api: Api) -> None:
    workflow = created(api)
    execution = api.simulator.start_execution(workflow["id"], status="success")
    assert api.get(f"/executions/{execution}").status_code == 200
    api.delete(f"/workflows/{workflow['id']}")
    refused(api.get(f"/executions/{execution}"), 404, "Not Found")
