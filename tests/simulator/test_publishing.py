"""Publishing and unpublishing over HTTP: when they take effect, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_service.simulator._samples import chain, node, webhook

from .api_client import Api
from .workflow_helpers import created, published, refused

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


@pytest.mark.parametrize("kind", ["manualTrigger", "errorTrigger"])
def test_publish_wants_a_trigger(api: Api, kind: str) -> None:
    workflow = api.post("/workflows", chain("No trigger", [node("Only", kind, 1, {}, 0)])).json()
    refused(api.post(f"/workflows/{workflow['id']}/publish"), 400, NO_TRIGGER)


def lacking(*nodes: tuple[str, str]) -> str:
    """The refusal to publish nodes, each with what it lacks."""
    count = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
    faults = "".join(f'\n\nNode "{name}":\n  - {issue}' for name, issue in nodes)
    return f"Cannot publish workflow: {count} have configuration issues:{faults}"


NO_URL = ("Call", "Missing or invalid required parameters: url")
NO_CREDENTIAL = ("Webhook", "Missing required credential: httpHeaderAuth")
GUARDED = webhook("x", authentication="headerAuth")


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
