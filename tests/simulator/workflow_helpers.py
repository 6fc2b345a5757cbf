"""Workflows made over HTTP."""

from __future__ import annotations

from typing import Any

import requests

from airflow_provider_service.simulator._samples import node, webhook_workflow

from .api_client import Api


def refused(response: requests.Response, status: int, message: str) -> None:
    assert (response.status_code, response.json()) == (status, {"message": message})


def sample(name: str = "Sample", path: str = "sample", **change: Any) -> dict[str, Any]:
    return {**webhook_workflow(name, path, "immediate"), **change}


def created(api: Api, **change: Any) -> dict[str, Any]:
    answer = api.post("/workflows", sample(**change))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def published(api: Api, **change: Any) -> dict[str, Any]:
    workflow = created(api, **change)
    assert api.post(f"/workflows/{workflow['id']}/publish").status_code == 200
    api.simulator.clock.advance(1)
    return workflow


def state_of(api: Api, workflow: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/workflows/{workflow['id']}").json()
    return found


def changed(path: str = "sample") -> dict[str, Any]:
    body = sample(path=path)
    body["nodes"].append(node("More", "noOp", 1, {}, 9))
    return body
