from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import Any

import pytest

from .api_client import Api


def content(body: bytes) -> dict[str, Any]:
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
        opened = {member.name: archive.extractfile(member) for member in archive}
        return {name: json.loads(file.read()) for name, file in opened.items() if file is not None}


def export(api: Api, **options: Any) -> bytes:
    answer = api.post("/n8n-packages/export", options)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/gzip"
    return answer.content


def bring_in(api: Api, package: bytes, policy: str = "new-version", **fields: str) -> Any:
    return api.post(
        "/n8n-packages/import",
        files={"package": ("export.n8np", package)},
        data={"workflowConflictPolicy": policy, **fields},
    )


@pytest.fixture
def workflow(api: Api) -> dict[str, Any]:
    """A workflow with a credential, a variable and a tag."""
    credential = api.post("/credentials", {"name": "cred", "type": "httpBasicAuth", "data": {"user": "u"}}).json()
    api.post("/variables", {"key": "stage", "value": "test"})
    tag = api.post("/tags", {"name": "tagged"}).json()
    created = api.simulator.create_webhook_workflow(path="p", active=False)
    known = api.simulator.state.workflows.get(created["id"])
    node = {
        **known.nodes[0],
        "credentials": {"httpBasicAuth": {"id": credential["id"], "name": "cred"}},
        "notes": "={{ $vars.stage }}",
    }
    body = {"nodes": [node, *known.nodes[1:]]}
    api.simulator.state.workflows.update(known, body)
    api.put(f"/workflows/{created['id']}/tags", [{"id": tag["id"]}])
    shown: dict[str, Any] = api.get(f"/workflows/{created['id']}").json()
    return shown


def test_an_export_holds_what_the_workflow_needs(api: Api, workflow: dict[str, Any]) -> None:
    answer = api.post("/n8n-packages/export", {"workflowIds": [workflow["id"]]})
    assert answer.headers["content-disposition"] == 'attachment; filename="export.n8np"'
    counts = json.loads(answer.headers["X-N8n-Export-Counts"])
    assert counts == {"workflows": 1, "folders": 0, "credentials": 1, "dataTables": 0, "variables": 1, "tags": 1}
    files = content(answer.content)
    manifest = files["manifest.json"]
    assert manifest["packageFormatVersion"] == "1"
    target = manifest["workflows"][0]["target"]
    assert files[f"{target}/workflow.json"]["nodes"] == workflow["nodes"]
    assert files[f"{target}/workflow-metadata.json"] == {"publishedVersionId": None}
    secret = files[f"{manifest['credentials'][0]['target']}/credential.json"]
    assert set(secret) == {"id", "name", "type"}


def test_tags_and_values_can_be_left_out(api: Api, workflow: dict[str, Any]) -> None:
    files = content(export(api, workflowIds=[workflow["id"]], includeTags=False, includeVariableValues=False))
    assert "tags" not in files["manifest.json"]
    variable = files[f"{files['manifest.json']['variables'][0]['target']}/variable.json"]
    assert "value" not in variable


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "At least one workflowId, folderId, or projectId is required"),
        ({"workflowIds": []}, "Array must contain at least 1 element(s)"),
        ({"workflowIds": 5}, "request/body/workflowIds must be array"),
        ({"workflowIds": ["nope"]}, "1 workflow(s) not found or not accessible. Export aborted."),
        ({"folderIds": ["nope"]}, "1 folder(s) not found or not accessible. Export aborted."),
        ({"projectIds": ["a", "b"]}, "2 project(s) not found or not accessible. Export aborted."),
        ({"workflowIds": ["x"], "projectIds": ["y"]}, "Provide either workflowIds/folderIds or projectIds, not both"),
    ],
)
def test_exports_that_are_refused(api: Api, body: object, message: str) -> None:
    answer = api.post("/n8n-packages/export", body)
    assert (answer.status_code, answer.json()) == (400, {"message": message})


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [("latest", "draft"), ("prefer-published", "published"), ("ignore-unpublished", "published")],
)
def test_the_version_policy(api: Api, policy: str, nodes: str) -> None:
    workflow = api.simulator.create_webhook_workflow(path="p")
    known = api.simulator.state.workflows.get(workflow["id"])
    api.simulator.state.workflows.update(known, {"nodes": [{**known.nodes[0], "position": [9, 9]}]})
    files = content(export(api, workflowIds=[workflow["id"]], workflowVersionPolicy=policy))
    target = files["manifest.json"]["workflows"][0]["target"]
    assert (files[f"{target}/workflow.json"]["nodes"][0]["position"] == [9, 9]) is (nodes == "draft")


def test_unpublished_workflows_may_abort_or_drop_out(api: Api, workflow: dict[str, Any]) -> None:
    body = {"workflowIds": [workflow["id"]], "workflowVersionPolicy": "published-strict"}
    answer = api.post("/n8n-packages/export", body)
    text = "1 workflow(s) have no published version. Export aborted."
    assert (answer.status_code, answer.json()) == (400, {"message": text})
    dropped = content(export(api, workflowIds=[workflow["id"]], workflowVersionPolicy="ignore-unpublished"))
    assert "workflows" not in dropped["manifest.json"]


def test_an_import_restores_what_was_deleted(api: Api, workflow: dict[str, Any]) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    credential_id = workflow["nodes"][0]["credentials"]["httpBasicAuth"]["id"]
    for path in (f"/workflows/{workflow['id']}", f"/credentials/{credential_id}", f"/tags/{workflow['tags'][0]['id']}"):
        assert api.delete(path).status_code == 200
    answer = bring_in(api, package)
    assert answer.status_code == 200, answer.text
    report = answer.json()
    (row,) = report["workflows"]
    assert (row["localId"], row["status"], row["publishing"]) == (workflow["id"], "created", {"state": "unchanged"})
    assert report["credentials"] == {"matched": [], "stubbed": [credential_id]}
    assert report["tags"]["created"] == ["tagged"]
    assert report["variables"]["matched"] == ["stage"]
    restored = api.get(f"/workflows/{workflow['id']}").json()
    assert restored["nodes"] == workflow["nodes"]
    assert [tag["name"] for tag in restored["tags"]] == ["tagged"]
    assert api.simulator.state.credentials.data(credential_id) == {}


@pytest.mark.parametrize(("policy", "status"), [("new-version", "updated"), ("skip", "skipped")])
def test_an_existing_workflow_is_updated_or_skipped(
    api: Api, workflow: dict[str, Any], policy: str, status: str
) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    known = api.simulator.state.workflows.get(workflow["id"])
    known.name = "Changed"
    report = bring_in(api, package, policy).json()
    assert [row["status"] for row in report["workflows"]] == [status]
    assert (known.name == workflow["name"]) is (status == "updated")
    assert report["credentials"]["stubbed"] == []


def test_an_existing_workflow_may_block_the_import(api: Api, workflow: dict[str, Any]) -> None:
    answer = bring_in(api, export(api, workflowIds=[workflow["id"]]), "fail")
    issue = {
        "type": "workflow-conflict",
        "sourceWorkflowId": workflow["id"],
        "existingWorkflowId": workflow["id"],
        "name": workflow["name"],
    }
    text = "Import blocked: 1 issue(s) must be resolved before the package can be imported."
    assert (answer.status_code, answer.json()) == (409, {"message": text, "issues": [issue]})


def test_a_missing_credential_may_block_the_import(api: Api, workflow: dict[str, Any]) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    credential_id = workflow["nodes"][0]["credentials"]["httpBasicAuth"]["id"]
    api.delete(f"/credentials/{credential_id}")
    before = len(api.get("/workflows").json()["data"])
    answer = bring_in(api, package, credentialMissingMode="must-preexist", workflowIdPolicy="new")
    issue = {
        "type": "credential-unresolved",
        "kind": "not_found",
        "sourceId": credential_id,
        "usedByWorkflows": [workflow["id"]],
    }
    assert (answer.status_code, answer.json()["issues"]) == (422, [issue])
    assert len(api.get("/workflows").json()["data"]) == before


@pytest.mark.parametrize("how", ["binding", "name-and-type", "type-only"])
def test_credentials_are_bound_to_local_ones(api: Api, workflow: dict[str, Any], how: str) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    source = workflow["nodes"][0]["credentials"]["httpBasicAuth"]["id"]
    api.delete(f"/credentials/{source}")
    name = "other" if how == "type-only" else "cred"
    local = api.post("/credentials", {"name": name, "type": "httpBasicAuth", "data": {}}).json()["id"]
    binding = {"bindings": json.dumps({"credentials": {source: local}})}
    report = bring_in(api, package, **(binding if how == "binding" else {"credentialMatchingMode": how})).json()
    assert report["bindings"]["credentials"] == {source: local}
    bound = api.get(f"/workflows/{workflow['id']}").json()["nodes"][0]["credentials"]["httpBasicAuth"]
    assert bound["id"] == local


@pytest.mark.parametrize(
    ("policy", "published_before", "state", "active"),
    [
        ("preserve-published-state", False, "unchanged", False),
        ("preserve-published-state", True, "published", True),
        ("match-source", True, "published", True),
        ("match-source", False, "unchanged", False),
        ("publish-all", False, "published", True),
        ("unpublish-all", True, "unpublished", False),
    ],
)
def test_the_publishing_policy(api: Api, policy: str, published_before: bool, state: str, active: bool) -> None:
    workflow = api.simulator.create_webhook_workflow(path="p", active=published_before)
    package = export(api, workflowIds=[workflow["id"]])
    (row,) = bring_in(api, package, workflowPublishingPolicy=policy).json()["workflows"]
    assert row["publishing"] == {"state": state}
    assert api.get(f"/workflows/{workflow['id']}").json()["active"] is active


def test_a_stub_credential_blocks_publishing(api: Api, workflow: dict[str, Any]) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    api.delete(f"/credentials/{workflow['nodes'][0]['credentials']['httpBasicAuth']['id']}")
    (row,) = bring_in(api, package, workflowPublishingPolicy="publish-all").json()["workflows"]
    assert row["publishing"] == {"state": "blocked", "blockedReason": "stub-credential"}


def test_a_workflow_without_a_trigger_is_imported_unpublished(api: Api) -> None:
    workflow = api.post("/workflows", {"name": "w", "nodes": [], "connections": {}, "settings": {}}).json()
    package = export(api, workflowIds=[workflow["id"]])
    (row,) = bring_in(api, package, workflowPublishingPolicy="publish-all").json()["workflows"]
    assert row["publishing"]["state"] == "failed"
    assert "no trigger node" in row["publishing"]["error"]


def test_missing_tags_may_be_skipped(api: Api, workflow: dict[str, Any]) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    api.delete(f"/tags/{workflow['tags'][0]['id']}")
    assert bring_in(api, package, tagMissingMode="do-nothing").json()["tags"]["skipped"] == ["tagged"]
    assert api.get("/tags").json()["data"] == []
    assert api.get(f"/workflows/{workflow['id']}/tags").json() == []


def test_unresolved_containers_and_variables_block_the_import(api: Api, workflow: dict[str, Any]) -> None:
    project = api.post("/projects", {"name": "team"}).json()
    answer = bring_in(api, export(api, projectIds=[project["id"]]), projectConflictPolicy="fail")
    issues = [{"type": "project-conflict", "sourceId": project["id"], "name": "team"}]
    assert (answer.status_code, answer.json()["issues"]) == (409, issues)
    package = export(api, workflowIds=[workflow["id"]])
    api.delete(f"/variables/{api.get('/variables').json()['data'][0]['id']}")
    answer = bring_in(api, package, variableMissingMode="must-preexist")
    assert (answer.status_code, answer.json()["issues"]) == (422, [{"type": "variable-unresolved", "name": "stage"}])


def test_a_project_is_exported_with_its_folders_and_workflows(api: Api) -> None:
    project = api.post("/projects", {"name": "team"}).json()
    folder = api.post(f"/projects/{project['id']}/folders", {"name": "folder"}).json()
    child = api.post(f"/projects/{project['id']}/folders", {"name": "child", "parentFolderId": folder["id"]}).json()
    workflow = api.simulator.create_webhook_workflow(path="p", active=False)
    known = api.simulator.state.workflows.get(workflow["id"])
    known.project_id, known.parent_folder_id = project["id"], child["id"]
    package = export(api, projectIds=[project["id"]])
    api.delete(f"/projects/{project['id']}")
    report = bring_in(api, package).json()
    assert [row["status"] for row in report["projects"] + report["folders"]] == ["created"] * 3
    restored = api.simulator.state.workflows.get(workflow["id"])
    assert (restored.project_id, restored.parent_folder_id) == (project["id"], child["id"])
    assert api.get(f"/projects/{project['id']}/folders/{child['id']}").json()["parentFolderId"] == folder["id"]


@pytest.mark.parametrize(
    ("mode", "outcome", "value"),
    [
        ("create-with-value", "created", "test"),
        ("create-stub", "stubbed", ""),
        ("do-nothing", "missing", None),
    ],
)
def test_missing_variables(api: Api, workflow: dict[str, Any], mode: str, outcome: str, value: str | None) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    api.delete(f"/variables/{api.get('/variables').json()['data'][0]['id']}")
    report = bring_in(api, package, variableMissingMode=mode).json()
    assert report["variables"][outcome] == ["stage"]
    assert [v["value"] for v in api.get("/variables").json()["data"]] == ([] if value is None else [value])


def test_an_existing_variable_is_kept_overwritten_or_blocks(api: Api, workflow: dict[str, Any]) -> None:
    package = export(api, workflowIds=[workflow["id"]])
    variable = api.get("/variables").json()["data"][0]
    api.put(f"/variables/{variable['id']}", {"key": "stage", "value": "mine"})
    assert bring_in(api, package, variableConflictPolicy="fail").status_code == 409
    assert bring_in(api, package).json()["variables"]["matched"] == ["stage"]
    assert api.get("/variables").json()["data"][0]["value"] == "mine"
    assert bring_in(api, package, variableConflictPolicy="overwrite").json()["variables"]["updated"] == ["stage"]
    assert api.get("/variables").json()["data"][0]["value"] == "test"


def _tar(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "package",
    [b"garbage", gzip.compress(b"garbage"), _tar("other.json", b"{}"), _tar("manifest.json", b"[]"), b""],
    ids=["no gzip", "no tar", "no manifest", "bad manifest", "empty"],
)
def test_archives_that_cannot_be_read(api: Api, package: bytes) -> None:
    answer = bring_in(api, package)
    assert (answer.status_code, answer.json()) == (400, {"message": "Failed to read package archive"})


def test_an_archive_bomb_is_refused(api: Api) -> None:
    answer = bring_in(api, gzip.compress(bytes(70 * 1024 * 1024), compresslevel=1))
    assert (answer.status_code, answer.json()) == (400, {"message": "Failed to read package archive"})


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"projectId": "nope"}, 404, "Project not found: nope"),
        ({"folderId": "nope"}, 400, "Folder not found in target project: nope"),
        ({"foo": "x"}, 400, 'Unexpected form field "foo"'),
        (
            {"bindings": "zz"},
            400,
            'bindings must be a JSON object, e.g. {"credentials":{"<sourceId>":"<targetId>"}}',
        ),
        (
            {"workflowIdPolicy": "zz"},
            400,
            "request/body/workflowIdPolicy must be equal to one of the allowed values: source, new",
        ),
    ],
)
def test_imports_that_are_refused(
    api: Api, workflow: dict[str, Any], fields: dict[str, str], status: int, message: str
) -> None:
    answer = bring_in(api, export(api, workflowIds=[workflow["id"]]), **fields)
    assert (answer.status_code, answer.json()) == (status, {"message": message})


def test_the_form_must_be_complete(api: Api) -> None:
    without_policy = api.post("/n8n-packages/import", files={"package": ("p", b"x")})
    assert without_policy.json() == {"message": "request/body must have required property 'workflowConflictPolicy'"}
    assert api.post("/n8n-packages/import", {}).status_code == 415
