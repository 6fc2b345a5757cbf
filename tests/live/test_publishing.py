"""The simulator publishes what the real server publishes, and refuses the rest with the same words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.simulator._samples import chain, webhook
from airflow_provider_service.simulator._stores.publishing import generations, node_types
from scripts.node_types import facts
from tests.polling import wait_until

from .servers import LiveServer

SEED, ALONE, SHAPED = 20, 40, 80
# They ask another server before they are published, which the simulator does not.
ASKING = {"n8n-nodes-base.rssFeedReadTrigger"}

Outcome = tuple[int, Any, bool]


@pytest.fixture(scope="module")
def described(live_server: LiveServer) -> list[dict[str, Any]]:
    """The server's own description of its node types."""
    if live_server.generation.name not in generations():
        pytest.skip(f"the simulator has no data of {live_server.generation.name}")
    return live_server.owner.node_types()


@pytest.fixture(scope="module")
def twin(live_server: LiveServer) -> Iterator[ServiceSimulator]:
    """A simulator of the server's version."""
    with ServiceSimulator(licensed=False) as simulator:
        simulator.version = live_server.version
        yield simulator


def test_the_data_is_what_the_server_says_today(live_server: LiveServer, described: list[dict[str, Any]]) -> None:
    assert facts(described) == node_types(live_server.generation.name)


def test_what_is_published_is_the_same(
    live_server: LiveServer, twin: ServiceSimulator, described: list[dict[str, Any]]
) -> None:
    chooser = random.Random(SEED)
    versions = [(each, version) for each in described for version in _listed(each["version"])]
    bodies = [alone(each, version) for each, version in chooser.sample(versions, ALONE)]
    bodies += [shaped(chooser, each, version) for each, version in chooser.sample(versions, SHAPED)]
    differences = [
        (body["nodes"], real, simulated)
        for body in bodies
        if not {node["type"] for node in body["nodes"]} & ASKING
        if (real := outcome(live_server.api_url, live_server.api_key, body))
        != (simulated := outcome(f"{twin.base_url}/api/v1", twin.api_key, body))
    ]
    assert differences == []


def outcome(url: str, key: str, body: Mapping[str, Any]) -> Outcome:
    """The status of publishing, the refusal, and whether the last node got a webhook id."""
    with requests.Session() as session:
        session.headers["X-N8N-API-KEY"] = key
        created = session.post(f"{url}/workflows", json=body).json()
        address = f"{url}/workflows/{created['id']}"
        answer = session.post(f"{address}/activate", json={})
        session.post(f"{address}/deactivate")
        wait_until(lambda: session.delete(address).ok, seconds=30, what="the deletion")
    refusal = None if answer.ok else answer.json()["message"]
    return answer.status_code, refusal, "webhookId" in created["nodes"][-1]


def alone(described: Mapping[str, Any], version: float) -> dict[str, Any]:
    return chain("Alone", [_node(described, version, {}, {})])


def shaped(chooser: random.Random, described: Mapping[str, Any], version: float) -> dict[str, Any]:
    """A node behind a webhook, with some parameters and credentials, good and bad ones."""
    parameters = _values(chooser, described["properties"], 0.5)
    forms = [{"id": "missing", "name": "Some"}, {"name": "Some"}, "Some", {"id": "", "name": "Some"}]
    credentials = {
        each["name"]: chooser.choice(forms) for each in described.get("credentials", ()) if chooser.random() < 0.5
    }
    return chain("Shaped", [webhook("shaped"), _node(described, version, parameters, credentials)])


def _node(described: Mapping[str, Any], version: float, parameters: Any, credentials: Any) -> dict[str, Any]:
    node = {"name": "Node", "type": described["name"], "typeVersion": version, "position": [0, 0]}
    return {**node, "parameters": parameters, "credentials": credentials}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _values(chooser: random.Random, properties: list[dict[str, Any]], share: float) -> dict[str, Any]:
    return {each["name"]: _value(chooser, each) for each in properties if "type" in each and chooser.random() < share}


def _value(chooser: random.Random, described: Mapping[str, Any]) -> Any:
    kind, options = described["type"], described.get("options") or []
    if chooser.random() < 0.2:
        return chooser.choice(["", "={{ $json.x }}"])
    if kind in {"options", "multiOptions"}:
        values = [option["value"] for option in options if "value" in option] or ["other"]
        return chooser.choice(values) if kind == "options" else values[: chooser.randrange(3)]
    if kind == "resourceLocator":
        mode = chooser.choice(described.get("modes") or [{"name": "list"}])["name"]
        return {"__rl": True, "mode": mode, "value": chooser.choice(["", "some", "https://example.com/some", 5])}
    if kind == "collection":
        return _values(chooser, options, 0.3)
    if kind == "fixedCollection":
        multiple = (described.get("typeOptions") or {}).get("multipleValues")
        groups = {option["name"]: _values(chooser, option["values"], 0.5) for option in options}
        return {name: [group] * chooser.randrange(3) if multiple else group for name, group in groups.items()}
    return chooser.choice(
        {"boolean": [True, False], "number": [0, 5.5, "3", "x"], "json": ["{}", "[1]", "x"]}.get(kind, ["text"])
    )
