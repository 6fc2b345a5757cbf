"""Runs of workflows over HTTP, and what they leave behind."""

from __future__ import annotations

from typing import Any

from airflow_provider_service.simulator._samples import chain, node, webhook

from .api_client import Api

DONE = node("Done", "noOp", 1, {}, 5)


def run(api: Api, nodes: list[dict[str, Any]], body: Any = None, **settings: Any) -> str:
    """Publish a webhook and ``nodes`` over HTTP, call the webhook, and return the execution's id."""
    start = webhook("run", options={"responseData": '={{ {"id": $execution.id} }}'})
    made = {**chain("Run", [start, *nodes]), "settings": settings}
    workflow = api.post("/workflows", made).json()
    assert api.post(f"/workflows/{workflow['id']}/publish").status_code == 200
    api.simulator.clock.advance(1)
    execution: str = api.hook("run", {} if body is None else body).json()["id"]
    return execution


def seen(api: Api, execution: str, after: float = 1) -> dict[str, Any]:
    """The execution as it is ``after`` more seconds."""
    api.simulator.clock.advance(after)
    found: dict[str, Any] = api.get(f"/executions/{execution}?includeData=true").json()
    return found


def ran(api: Api, workflow: dict[str, Any]) -> dict[str, Any]:
    """Run a workflow, and return the runs of its nodes."""
    api.post(f"/workflows/{api.post('/workflows', workflow).json()['id']}/publish")
    api.simulator.clock.advance(1)
    api.hook(workflow["nodes"][0]["parameters"]["path"], {})
    found: dict[str, Any] = seen(api, "1")["data"]["resultData"]["runData"]
    return found


def output(found: dict[str, Any]) -> list[Any]:
    result = found["data"]["resultData"]
    return [item["json"] for item in result["runData"][result["lastNodeExecuted"]][-1]["data"]["main"][0]]
