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


@pytest.mark.parametrize(
    ("category", "node"),
    [
        ("nodes", {"type": "n8n-nodes-base.code"}),
        ("filesystem", {"type": "n8n-nodes-base.readWriteFile"}),
        ("database", {"type": "n8n-nodes-base.postgres", "parameters": {"query": "=SELECT {{ $json.x }}"}}),
    ],
)
def test_risky_nodes_are_found(api: Api, category: str, node: dict[str, Any]) -> None:
    placed = {"name": "Risky", "position": [0, 0], "parameters": {}, **node}
    body = {"name": "w", "nodes": [placed], "connections": {}, "settings": {}}
    workflow = api.post("/workflows", body).json()
    report = audit(api)[f"{category.capitalize()} Risk Report"]
    (location,) = report["sections"][0]["location"]
    assert (location["workflowId"], location["nodeName"], location["kind"]) == (workflow["id"], "Risky", "node")


def test_unprotected_webhooks_are_found(api: Api) -> None:
    api.simulator.create_webhook_workflow(path="p")
    report = audit(api, "instance")["Instance Risk Report"]
    assert titles(report) == ["Unprotected webhooks in instance", "Security settings"]


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
