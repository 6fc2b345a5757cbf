from __future__ import annotations

from typing import Any

import pytest

from .api_client import Api


def audit(api: Api, *categories: str, **options: Any) -> Any:
    body = {"additionalOptions": {**({"categories": list(categories)} if categories else {}), **options}}
    answer = api.post("/audit", body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def titles(report: dict[str, Any]) -> list[str]:
    return [section["title"] for section in report["sections"]]


def test_an_audit_without_findings_is_an_empty_array(api: Api) -> None:
    assert audit(api, "credentials", "database", "nodes", "filesystem") == []
    assert list(api.post("/audit").json()) == ["Instance Risk Report"]


def test_unused_credentials_are_found(api: Api) -> None:
    credential = api.post("/credentials", {"name": "unused", "type": "httpBasicAuth", "data": {}}).json()
    report = audit(api, "credentials")["Credentials Risk Report"]
    assert report["risk"] == "credentials"
    assert titles(report) == [
        "Credentials not used in any workflow",
        "Credentials not used in any active workflow",
        "Credentials not used in recently executed workflows",
    ]
    assert report["sections"][0]["location"] == [{"kind": "credential", "id": credential["id"], "name": "unused"}]


def test_use_execution_and_age_matter(api: Api) -> None:
    credential = api.post("/credentials", {"name": "used", "type": "httpBasicAuth", "data": {}}).json()
    workflow = api.simulator.create_webhook_workflow(path="p")
    node = api.simulator.state.workflows.get(workflow["id"]).nodes[0]
    node["credentials"] = {"httpBasicAuth": {"id": credential["id"], "name": "used"}}
    report = audit(api, "credentials")["Credentials Risk Report"]
    assert titles(report) == ["Credentials not used in recently executed workflows"]
    api.simulator.start_execution(workflow["id"], status="success")
    assert audit(api, "credentials") == []
    api.simulator.clock.advance(2 * 86_400)
    assert list(audit(api, "credentials", daysAbandonedWorkflow=1)) == ["Credentials Risk Report"]
    assert audit(api, "credentials", daysAbandonedWorkflow=3) == []


def put(api: Api, *nodes: dict[str, Any], connections: dict[str, Any] | None = None) -> str:
    """Create a workflow of these nodes, and return its id."""
    placed = [{"name": "Risky", "position": [0, 0], "parameters": {}, **node} for node in nodes]
    body = {"name": "w", "nodes": placed, "connections": connections or {}, "settings": {}}
    return str(api.post("/workflows", body).json()["id"])


def query(kind: str, text: str, **fields: Any) -> dict[str, Any]:
    parameters = {"operation": "executeQuery", "query": text, "additionalFields": fields}
    return {"type": f"n8n-nodes-base.{kind}", "parameters": parameters}


@pytest.mark.parametrize(
    ("category", "node"),
    [
        ("nodes", {"type": "n8n-nodes-base.code"}),
        ("nodes", {"type": "n8n-nodes-base.ftp"}),
        ("filesystem", {"type": "n8n-nodes-base.readPdf"}),
        ("database", query("postgres", "=SELECT {{ $json.x }}")),
        ("database", query("postgres", "SELECT $1", queryParams="={{ $json.x }}")),
        ("database", query("timescaleDb", "SELECT 1")),
        ("database", query("mySql", "=SELECT {{ $json.x }}")),
    ],
)
def test_risky_nodes_are_found(api: Api, category: str, node: dict[str, Any]) -> None:
    workflow_id = put(api, node)
    report = audit(api)[f"{category.capitalize()} Risk Report"]
    (location,) = report["sections"][0]["location"]
    assert (location["workflowId"], location["nodeName"], location["kind"]) == (workflow_id, "Risky", "node")


@pytest.mark.parametrize(
    "node",
    [
        {"type": "n8n-nodes-base.readWriteFile"},
        {"type": "n8n-nodes-other.code"},
        {"type": "n8n-nodes-base.postgres", "parameters": {"query": "=SELECT {{ $json.x }}"}},
        query("postgres", "SELECT $1", queryParams="x"),
        query("mySql", "SELECT 1"),
    ],
)
def test_other_nodes_are_no_findings(api: Api, node: dict[str, Any]) -> None:
    put(api, node)
    assert audit(api, "nodes", "filesystem", "database") == []


@pytest.mark.parametrize(("output", "follower", "found"), [(0, "if", False), (1, "if", True), (0, "noOp", True)])
def test_a_webhook_is_unprotected_unless_its_input_is_checked(
    api: Api, output: int, follower: str, found: bool
) -> None:
    link = {"node": "Next", "type": "main", "index": 0}
    hook = {"type": "n8n-nodes-base.webhook", "name": "Webhook", "parameters": {"path": "p"}}
    after = {"type": f"n8n-nodes-base.{follower}", "name": "Next"}
    outputs = [[link] if number == output else [] for number in range(2)]
    workflow_id = put(api, hook, after, connections={"Webhook": {"main": outputs}})
    titled = "Unprotected webhooks in instance"
    assert titled not in titles(audit(api, "instance")["Instance Risk Report"]), "an inactive workflow is not called"
    assert api.post(f"/workflows/{workflow_id}/activate").status_code == 200
    assert (titled in titles(audit(api, "instance")["Instance Risk Report"])) is found


def test_a_webhook_with_authentication_is_protected(api: Api) -> None:
    parameters = {"path": "p", "authentication": "basicAuth"}
    credentials = {"httpBasicAuth": {"id": "any", "name": "hook"}}
    workflow_id = put(api, {"type": "n8n-nodes-base.webhook", "parameters": parameters, "credentials": credentials})
    assert api.post(f"/workflows/{workflow_id}/activate").status_code == 200
    assert titles(audit(api, "instance")["Instance Risk Report"]) == ["Security settings"]


def test_reports_can_be_set(api: Api) -> None:
    api.simulator.state.audit.reports = {"Nodes Risk Report": {"risk": "nodes", "sections": []}}
    assert list(audit(api)) == ["Nodes Risk Report"]
    api.simulator.state.audit.reports = []
    assert audit(api) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"additionalOptions": {"daysAbandonedWorkflow": 1.5}},
            "request/body/additionalOptions/daysAbandonedWorkflow must be integer",
        ),
        ({"additionalOptions": 5}, "request/body/additionalOptions must be object"),
    ],
)
def test_bodies_that_do_not_fit(api: Api, body: object, message: str) -> None:
    answer = api.post("/audit", body)
    assert (answer.status_code, answer.json()) == (400, {"message": message})
