from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api

NODE = {
    "name": "Webhook",
    "type": "n8n-nodes-base.webhook",
    "typeVersion": 2,
    "position": [0, 0],
    "parameters": {"httpMethod": "POST", "path": "from-git", "options": {}},
}
WORKFLOW = {"name": "From git", "nodes": [NODE], "connections": {}, "settings": {}}
FILE_KEYS = {"file", "id", "name", "type", "status", "location", "conflict", "updatedAt"}


def remote(**changes: Any) -> dict[str, Any]:
    return {"id": "GitWorkflow00001", "name": "From git", "type": "workflow", "content": WORKFLOW, **changes}


def pending(api: Api, direction: str) -> list[dict[str, Any]]:
    answer = api.get(f"/source-control/status?direction={direction}")
    assert answer.status_code == 200, answer.text
    files: list[dict[str, Any]] = answer.json()["data"]
    return files


def test_a_new_simulator_has_changes_to_pull(api: Api) -> None:
    assert [file["type"] for file in pending(api, "pull")] == ["workflow", "variables", "tags"]
    pulled = api.post("/source-control/pull", {})
    assert pulled.status_code == 200
    assert all(set(file) == FILE_KEYS for file in pulled.json())
    assert [w["name"] for w in api.get("/workflows").json()["data"]] == ["Pulled workflow"]
    assert [(v["key"], v["value"]) for v in api.get("/variables").json()["data"]] == [("stage", "test")]
    assert [tag["name"] for tag in api.get("/tags").json()["data"]] == ["pulled"]
    assert (pending(api, "pull"), pending(api, "push")) == ([], [])
    assert api.post("/source-control/pull", {}).json() == []


def test_a_pull_creates_updates_and_deletes(api: Api) -> None:
    control = api.simulator.state.source_control
    control.connect([remote(), {"id": "cred1", "name": "stub", "type": "credential", "content": {"type": "slackApi"}}])
    api.post("/source-control/pull", {})
    assert api.get("/credentials/cred1").json()["type"] == "slackApi"
    control.connect([remote(status="modified", content={**WORKFLOW, "name": "Renamed"})])
    api.post("/source-control/pull", {})
    assert api.get("/workflows/GitWorkflow00001").json()["name"] == "Renamed"
    control.connect([remote(status="deleted", content=None)])
    api.post("/source-control/pull", {})
    assert api.get("/workflows/GitWorkflow00001").status_code == 404
    assert pending(api, "push") == []


@pytest.mark.parametrize(
    ("auto_publish", "published_before", "published_after"),
    [("none", False, False), ("all", False, True), ("published", False, False), ("published", True, True)],
)
def test_auto_publish(api: Api, auto_publish: str, published_before: bool, published_after: bool) -> None:
    control = api.simulator.state.source_control
    control.connect([remote()])
    api.post("/source-control/pull", {})
    if published_before:
        api.post("/workflows/GitWorkflow00001/publish")
    changed = {**WORKFLOW, "nodes": [{**NODE, "position": [10, 10]}]}
    control.connect([remote(status="modified", content=changed)])
    assert api.post("/source-control/pull", {"autoPublish": auto_publish}).status_code == 200
    workflow = api.get("/workflows/GitWorkflow00001").json()
    assert workflow["active"] is published_after
    if published_after:
        assert workflow["activeVersionId"] == workflow["versionId"]


def test_a_workflow_that_cannot_be_published_says_so(api: Api) -> None:
    content = {**WORKFLOW, "nodes": [{**NODE, "type": "n8n-nodes-base.noOp"}]}
    api.simulator.state.source_control.connect([remote(content=content)])
    (file,) = api.post("/source-control/pull", {"autoPublish": "all"}).json()
    assert "no trigger node" in file["publishingError"]


def test_a_pull_over_local_changes_needs_force(api: Api) -> None:
    control = api.simulator.state.source_control
    control.connect([remote()])
    api.post("/source-control/pull", {})
    api.put("/workflows/GitWorkflow00001", {**WORKFLOW, "name": "Mine"})
    control.connect([remote(status="modified", content={**WORKFLOW, "name": "Theirs"})])
    refused = api.post("/source-control/pull", {"force": False})
    assert refused.status_code == 409
    assert [(file["id"], file["conflict"]) for file in refused.json()] == [("GitWorkflow00001", True)]
    assert api.get("/workflows/GitWorkflow00001").json()["name"] == "Mine"
    assert api.post("/source-control/pull", {"force": True}).status_code == 200
    assert api.get("/workflows/GitWorkflow00001").json()["name"] == "Theirs"


def test_local_workflows_are_pushed(api: Api) -> None:
    control = api.simulator.state.source_control
    control.connect()
    workflow = api.post("/workflows", WORKFLOW).json()
    (file,) = pending(api, "push")
    assert (file["id"], file["status"], file["location"]) == (workflow["id"], "created", "local")
    assert file["owner"]["type"] == "personal"
    wanted = [{"id": workflow["id"], "type": "workflow"}]
    pushed = api.post("/source-control/push", {"commitMessage": "first", "fileNames": wanted})
    assert (pushed.status_code, pushed.json()["data"][0]["pushed"]) == (200, True)
    assert (control.commits[0]["message"], control.commits[0]["files"][0]["id"]) == ("first", workflow["id"])
    assert pending(api, "push") == []
    api.put(f"/workflows/{workflow['id']}", {**WORKFLOW, "name": "Changed"})
    assert pending(api, "push")[0]["status"] == "modified"
    api.delete(f"/workflows/{workflow['id']}")
    assert pending(api, "push")[0]["status"] == "deleted"


def test_a_push_over_remote_changes_needs_force(api: Api) -> None:
    control = api.simulator.state.source_control
    control.connect([{"id": "v", "name": "variables", "type": "variables"}])
    control.change_locally([{"id": "v", "name": "variables", "type": "variables", "status": "modified"}])
    body = {"commitMessage": "mine", "fileNames": [{"id": "v", "type": "variables"}]}
    refused = api.post("/source-control/push", body)
    assert refused.status_code == 409
    assert [file["conflict"] for file in refused.json()["conflicts"]] == [True]
    assert control.commits == []
    assert api.post("/source-control/push", {**body, "force": True}).status_code == 200
    assert pending(api, "pull") == []


def test_without_a_repository(api: Api) -> None:
    api.simulator.state.source_control.disconnect()
    text = "Source Control is not connected to a repository"
    pulled = api.post("/source-control/pull", {})
    assert (pulled.status_code, pulled.json()) == (400, {"status": "Error", "message": text})
    status = api.get("/source-control/status?direction=push")
    assert (status.status_code, status.json()["message"]) == (400, text)


def test_a_pull_can_fail_with_plain_text(api: Api) -> None:
    api.simulator.state.source_control.failure = "Failed to reach the repository"
    answer = api.post("/source-control/pull", {})
    assert (answer.status_code, answer.text) == (400, "Failed to reach the repository")
    assert answer.headers["content-type"].startswith("text/plain")


def test_a_pull_needs_a_license(api: Api) -> None:
    api.simulator.state.licensed = False
    answer = api.post("/source-control/pull", {})
    assert answer.status_code == 403
    assert answer.json()["message"].startswith("Your license does not allow for feat:sourceControl. ")
