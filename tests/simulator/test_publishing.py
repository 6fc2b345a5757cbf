"""Publishing and unpublishing over HTTP: when they take effect, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator._samples import chain, node, webhook

from .api_client import Api
from .workflow_helpers import created, published, refused, state_of

NO_TRIGGER = (
    "Workflow cannot be activated because it has no trigger node. "
    "At least one trigger, webhook, or polling node is required."
)


def test_publish_takes_effect_after_the_delay(build: Any) -> None:
    api = build(publish_delay=30)
    workflow = created(api)
    answer = api.post(f"/workflows/{workflow['id']}/publish")
    assert answer.json()["active"] is True
    assert answer.json()["activeVersionId"] == workflow["versionId"]
    assert not {"tags", "shared"} & set(answer.json())
    assert api.hook("sample").status_code == 404
    api.simulator.clock.advance(31)
    assert api.hook("sample").json() == {"message": "Workflow was started"}
    api.post(f"/workflows/{workflow['id']}/unpublish")
    assert api.hook("sample").status_code == 200
    api.simulator.clock.advance(31)
    assert api.hook("sample").status_code == 404


def test_delete_right_after_unpublish_is_409(build: Any) -> None:
    api = build(publish_delay=30)
    workflow = published(api)
    path = f"/workflows/{workflow['id']}"
    refused(api.delete(path), 409, "Cannot delete a published workflow. Unpublish it before deleting.")
    api.post(f"{path}/unpublish")
    refused(api.delete(path), 409, "Workflow is still being unpublished. Please try again in a few moments.")
    api.simulator.clock.advance(31)
    answer = api.delete(path)
    assert answer.status_code == 200
    assert not {"tags", "activeVersion"} & set(answer.json())
    refused(api.get(path), 404, "Not Found")


def test_publish_is_idempotent_and_names_the_version(api: Api) -> None:
    workflow = created(api)
    path = f"/workflows/{workflow['id']}/publish"
    first = api.post(path, {"name": "v1", "description": "first"}).json()
    second = api.post(path).json()
    assert (second["activeVersion"]["name"], second["activeVersion"]["description"]) == ("v1", "first")
    assert [entry["event"] for entry in second["activeVersion"]["workflowPublishHistory"]] == ["activated"]
    assert first["versionCounter"] == second["versionCounter"]


@pytest.mark.parametrize(
    "only",
    [
        node("Only", "manualTrigger", 1, {}, 0),
        node("Only", "evaluationTrigger", 4.6, {}, 0),
        node("Only", "noOp", 1, {}, 0),
        {**webhook("x"), "disabled": True},
    ],
)
def test_publish_wants_a_trigger(api: Api, only: dict[str, Any]) -> None:
    workflow = api.post("/workflows", chain("No trigger", [only])).json()
    refused(api.post(f"/workflows/{workflow['id']}/publish"), 400, NO_TRIGGER)


@pytest.mark.parametrize(
    ("nodes", "count"),
    [
        ([node("Failed", "errorTrigger", 1, {}, 0)], 0),
        ([node("Old", "cron", 1, {}, 0)], 1),
        ([node("Old", "interval", 1, {}, 0)], 1),
        ([node("Begin", "manualTrigger", 1, {}, 0), node("Wait", "wait", 1.1, {}, 1)], 0),
        ([webhook("x"), node("Wait", "wait", 1.1, {}, 1)], 1),
        ([webhook("x"), node("Other", "scheduleTrigger", 1.2, {}, 1)], 2),
        ([webhook("x"), {**node("Other", "scheduleTrigger", 1.2, {}, 1), "disabled": True}], 1),
    ],
)
def test_triggers_are_counted_once_they_are_live(build: Any, nodes: list[dict[str, Any]], count: int) -> None:
    api = build(publish_delay=30)
    body = {**chain("Triggers", nodes), "settings": {}}
    for version, at_once in (("2.41.1", 0), ("2.20.12", count)):
        api.simulator.version = version
        workflow = api.post("/workflows", body).json()
        assert api.post(f"/workflows/{workflow['id']}/activate").json()["triggerCount"] == at_once
        api.simulator.clock.advance(31)
        assert state_of(api, workflow)["triggerCount"] == count
        stopped = api.post(f"/workflows/{workflow['id']}/deactivate").json()
        assert (stopped["active"], stopped["triggerCount"]) == (False, count)
        api.simulator.clock.advance(31)


ODD = "n8n-nodes-odd.odd"


@pytest.mark.parametrize(
    ("kind", "version", "text"),
    [
        ("n8n-nodes-base.thereIsNone", 1, "Unrecognized node type: n8n-nodes-base.thereIsNone"),
        ("n8n-nodes-base.thereIsNoneTool", 1, "Unrecognized node type: n8n-nodes-base.thereIsNone"),
        (ODD, 1, f"Unrecognized node type: {ODD}"),
        ("odd", 1, "Unrecognized node type: odd.undefined"),
        ("n8n-nodes-base.noOpTool", 1, "Node cannot be used as a tool"),
        (
            "n8n-nodes-base.httpRequest",
            9.5,
            'Node type "httpRequest" is not available in version 9.5. Available versions: 1, 2, 3, 4, 4.1, 4.2, 4.3, '
            "4.4, 4.5. Use the latest version 4.5.",
        ),
    ],
)
def test_a_node_that_the_service_does_not_have_cannot_be_published(
    api: Api, kind: str, version: float, text: str
) -> None:
    unknown = {**node("Odd", "x", version, {}, 1), "type": kind, "disabled": True}
    workflow = api.post("/workflows", {**chain("Odd", [webhook("x"), unknown]), "connections": {}}).json()
    refused(api.post(f"/workflows/{workflow['id']}/activate"), 400, text)


def test_a_generation_has_its_own_node_types(api: Api) -> None:
    newer = node("Call", "httpRequest", 4.5, {"url": "http://127.0.0.1:9"}, 1)
    workflow = api.post("/workflows", chain("Newer", [webhook("x"), newer])).json()
    api.simulator.version = "2.39.2"
    refused(
        api.post(f"/workflows/{workflow['id']}/activate"),
        400,
        "Cannot read properties of undefined (reading 'execute')",
    )
    api.simulator.version = "2.41.1"
    assert api.post(f"/workflows/{workflow['id']}/activate").json()["active"]


def test_a_type_without_versions_takes_any(api: Api) -> None:
    workflow = api.post("/workflows", chain("Any", [webhook("x"), node("Done", "noOp", 99, {}, 1)])).json()
    assert api.post(f"/workflows/{workflow['id']}/activate").json()["active"]


def test_nodes_of_installed_packages_can_be_published(api: Api) -> None:
    odd = {**node("Odd", "x", 1, {}, 1), "type": "n8n-nodes-example.example"}
    workflow = api.post("/workflows", chain("Odd", [webhook("x"), odd])).json()
    path = f"/workflows/{workflow['id']}/activate"
    refused(api.post(path), 400, "Unrecognized node type: n8n-nodes-example.example")
    api.post("/community-packages", {"name": "n8n-nodes-example"})
    assert api.post(path).json()["active"]


def lacking(*nodes: tuple[str, str]) -> str:
    """The refusal to publish nodes, each with what it lacks."""
    count = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
    faults = "".join(f'\n\nNode "{name}":\n  - {issue}' for name, issue in nodes)
    return f"Cannot publish workflow: {count} have configuration issues:{faults}"


NO_URL = ("Call", "Missing or invalid required parameters: url")
NO_TOKEN = ("Send", "Missing required credential: telegramApi")
NO_CREDENTIAL = ("Webhook", "Missing required credential: httpHeaderAuth")
GUARDED = webhook("x", authentication="headerAuth")
MESSAGE = {"chatId": "1", "text": "hello"}
KNOWN = {"googleSheetsOAuth2Api": {"id": "x", "name": "x"}}


def sheet(**parameters: Any) -> dict[str, Any]:
    fields = {"operation": "read", "documentId": locator("id", "x"), "sheetName": locator("list", "0")} | parameters
    return {**node("Sheet", "googleSheets", 4.5, fields, 1), "credentials": KNOWN}


def locator(mode: str, value: Any) -> dict[str, Any]:
    return {"__rl": True, "mode": mode, "value": value}


@pytest.mark.parametrize(
    ("nodes", "faults"),
    [
        ([webhook("x"), node("Call", "httpRequest", 4.2, {"url": ""}, 1)], [NO_URL]),
        ([GUARDED], [NO_CREDENTIAL]),
        ([GUARDED, node("Call", "httpRequest", 4.2, {}, 1)], [NO_CREDENTIAL, NO_URL]),
        (
            [{**GUARDED, "credentials": {"httpHeaderAuth": {"name": "hook"}}}],
            [("Webhook", "Credential not configured: httpHeaderAuth")],
        ),
        (
            [node("Form", "formTrigger", 2.2, {}, 0), node("Split", "splitOut", 1, {}, 1)],
            [
                ("Form", "Missing or invalid required parameters: formTitle"),
                ("Split", "Missing or invalid required parameters: fieldToSplitOut"),
            ],
        ),
        ([webhook("x"), node("Send", "telegram", 1.2, MESSAGE, 1)], [NO_TOKEN]),
        # Its default operation takes a message.
        (
            [webhook("x"), node("Send", "telegram", 1.2, {"chatId": "1"}, 1)],
            [("Send", f"{NO_TOKEN[1]}\n  - Missing or invalid required parameters: text")],
        ),
        # A parameter that is not shown counts for nothing, even if it is stored.
        (
            [webhook("x"), node("Send", "telegram", 1.2, {"resource": "chat", "operation": "get", "text": "x"}, 1)],
            [("Send", f"{NO_TOKEN[1]}\n  - Missing or invalid required parameters: chatId")],
        ),
        (
            [webhook("x"), sheet(documentId=locator("url", "nowhere"), sheetName=locator("list", ""))],
            [("Sheet", "Missing or invalid required parameters: documentId, sheetName")],
        ),
    ],
)
def test_a_node_that_lacks_what_it_needs_cannot_be_published(
    api: Api, nodes: list[dict[str, Any]], faults: list[tuple[str, str]]
) -> None:
    workflow = api.post("/workflows", chain("Lacking", nodes)).json()
    for version in ("2.20.12", "2.41.1"):
        api.simulator.version = version
        refused(api.post(f"/workflows/{workflow['id']}/activate"), 400, lacking(*faults))
    api.simulator.version = "1.123.81"
    assert api.post(f"/workflows/{workflow['id']}/activate").json()["active"]


def test_an_expression_is_neither_missing_nor_invalid(api: Api) -> None:
    nodes = [webhook("x"), sheet(documentId=locator("url", "={{ $json.url }}"), sheetName="={{ $json.sheet }}")]
    workflow = api.post("/workflows", chain("Later", nodes)).json()
    assert api.post(f"/workflows/{workflow['id']}/publish").json()["active"]


def test_a_node_that_nothing_starts_may_lack_what_it_needs(api: Api) -> None:
    call = node("Call", "httpRequest", 4.2, {}, 1)
    nodes = [webhook("x"), {**call, "disabled": True}, {**call, "name": "Left over"}]
    body = {**chain("Lacking", nodes[:2]), "nodes": nodes}
    workflow = api.post("/workflows", body).json()
    assert api.post(f"/workflows/{workflow['id']}/publish").json()["active"]


def test_conflict_within_the_delay_goes_unnoticed_but_never_live(build: Any) -> None:
    api = build(publish_delay=30)
    first, second = created(api), created(api)
    api.post(f"/workflows/{first['id']}/publish")
    assert api.post(f"/workflows/{second['id']}/publish").status_code == 200
    api.simulator.clock.advance(31)
    api.hook("sample")
    api.post(f"/workflows/{first['id']}/unpublish")
    api.simulator.clock.advance(31)
    assert api.hook("sample").status_code == 404
    assert [found["workflowId"] for found in api.get("/executions").json()["data"]] == [first["id"]]


def test_activate_and_deactivate_are_deprecated_aliases(api: Api) -> None:
    workflow = created(api)
    on = api.post(f"/workflows/{workflow['id']}/activate")
    off = api.post(f"/workflows/{workflow['id']}/deactivate")
    assert [answer.headers["Deprecation"] for answer in (on, off)] == ["@1784764800"] * 2
