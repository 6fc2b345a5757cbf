"""The pages that links lead to."""

from __future__ import annotations

from airflow_provider_service.links.service import EXECUTION_PAGE, WORKFLOW_PAGE, page_url
from airflow_provider_service.simulator import ServiceSimulator

from .api_client import Api


def test_links_lead_to_pages_that_name_what_they_show(api: Api, simulator: ServiceSimulator) -> None:
    workflow = simulator.create_webhook_workflow("<Nightly> sync", path="nightly")
    execution_id = simulator.start_execution(workflow["id"])

    of_workflow = api.raw("GET", page_url("", WORKFLOW_PAGE, workflow["id"]))
    of_execution = api.raw("GET", page_url("", EXECUTION_PAGE, workflow["id"], execution_id))

    assert of_workflow.headers["content-type"].startswith("text/html")
    assert "<h1>Workflow &lt;Nightly&gt; sync</h1><p>active</p>" in of_workflow.text
    assert f"<h1>Execution {execution_id}</h1><p>running</p>" in of_execution.text


def test_pages_of_nothing(api: Api, simulator: ServiceSimulator) -> None:
    workflow = simulator.create_webhook_workflow("w", path="w")
    other = simulator.create_webhook_workflow("v", path="v")
    execution_id = simulator.start_execution(workflow["id"])

    paths = ["/workflow/none", f"/workflow/{workflow['id']}/executions/0", f"/workflow/{workflow['id']}/executions/x"]
    for path in [*paths, f"/workflow/{other['id']}/executions/{execution_id}"]:
        assert api.raw("GET", path).status_code == 404
