"""No secret is left in a log or in the database. This file runs last, after all others have used their secrets."""

from __future__ import annotations

import json
import secrets as random

import pytest

from airflow_provider_service.simulator._samples import WITH_ID, webhook
from tests.polling import wait_until

from . import search, workflows
from .airflow_api import AirflowApi
from .deployment import Deployment
from .figures import FIGURES
from .simulated import SimulatedService
from .telemetry import Telemetry

NAMES = ("webhook password", "wrong webhook password", "refused key", "proxy password", "credential data", "MCP key")


@pytest.fixture(scope="module")
def secrets(deployment: Deployment, service: SimulatedService) -> dict[str, str]:
    """Secrets by their names, all in connections."""
    made = {name: f"s3cret/{random.token_urlsafe(24)}" for name in NAMES}
    header = {"conn_type": "generic", "login": "X-Token"}
    to_service = {**service.connection(), "extra": None}
    proxies = {"http": f"http://user:{made['proxy password'].replace('/', '%2F')}@127.0.0.1:9"}
    without_retries = {"proxies": proxies, "retry_deadline": 0}
    for connection in (
        {"connection_id": "stack_webhook", **header, "password": made["webhook password"]},
        {"connection_id": "stack_wrong_webhook", **header, "password": made["wrong webhook password"]},
        {"connection_id": "stack_credential", **header, "password": made["credential data"]},
        {**to_service, "connection_id": "stack_refused", "password": made["refused key"]},
        {**to_service, "connection_id": "stack_mcp", "extra": json.dumps({"mcp_api_key": made["MCP key"]})},
        {**to_service, "connection_id": "stack_proxied", "extra": json.dumps(without_retries)},
    ):
        deployment.api.set_connection(connection)
    return {**made, "API key": service.api_key}


@pytest.fixture(scope="module")
def workflow_ids(service: SimulatedService, secrets: dict[str, str]) -> dict[str, str]:
    """A workflow whose webhook is protected, and one for MCP."""
    with service.client() as client:
        own = {"name": "X-Token", "value": secrets["webhook password"]}
        credential = client.credentials.create("Of the webhook", "httpHeaderAuth", own)
    start = webhook(workflows.path(), authentication="headerAuth", options={"responseData": WITH_ID})
    reference = {"httpHeaderAuth": {"id": credential.id, "name": credential.name}}
    workflow_id = service.create_workflow("Protected", [{**start, "credentials": reference}])
    return {"workflow_id": workflow_id, "other_id": service.create_workflow("Through MCP", [webhook(workflows.path())])}


def run_tasks_with_secrets(api: AirflowApi, workflow_ids: dict[str, str]) -> str:
    """Run the DAG of this file, and return the id of its run, in which each task has ended as it should."""
    api.unpause("stack_secrets")
    run_id = api.trigger("stack_secrets", workflow_ids)

    api.wait_for_run("stack_secrets", run_id, seconds=240)

    assert api.task_states("stack_secrets", run_id) == {
        "protected_deferred": {"success"},
        "protected_in_worker": {"success"},
        "credential": {"success"},
        "fails_wrong": {"failed"},
        "fails_proxied": {"failed"},
        "fails_refused": {"failed"},
        "fails_mcp": {"failed"},
    }
    return run_id


@pytest.mark.smoke
def test_tasks_that_handle_secrets_end_as_they_should(api: AirflowApi, workflow_ids: dict[str, str]) -> None:
    run_id = run_tasks_with_secrets(api, workflow_ids)

    # The search below means something only where the tasks have written what went wrong.
    assert "127.0.0.1:9" in api.log("stack_secrets", run_id, "fails_proxied")
    assert "/mcp-server/http" in api.log("stack_secrets", run_id, "fails_mcp")


def test_no_secret_is_in_metrics_traces_or_lineage(
    deployment: Deployment, api: AirflowApi, workflow_ids: dict[str, str], secrets: dict[str, str]
) -> None:
    with Telemetry(deployment.folder / "telemetry") as telemetry:
        deployment.restart(telemetry.environment())
        run_tasks_with_secrets(api, workflow_ids)

        def has_all() -> bool:
            metrics, lineage = telemetry.read("metrics"), telemetry.read("lineage")
            # What the tasks report, and what the triggerers do; the facet of the execution; the names of the spans.
            return (
                b"service.runs.started:" in metrics
                and b"service.polls.requests:" in metrics
                and lineage.count(b"externalQueryId") >= 2
                and b"protected_deferred" in telemetry.read("traces")
            )

        wait_until(has_all, seconds=120, what="metrics, traces and lineage", interval=1)
    events = len(list((telemetry.folder / "lineage").iterdir()))
    found = search.in_files(telemetry.folder, secrets)
    FIGURES.add("events of lineage", events)
    FIGURES.add("secrets found in metrics, traces and lineage", len(found))
    assert found == []


@pytest.mark.smoke
def test_no_secret_is_in_a_log(deployment: Deployment, secrets: dict[str, str]) -> None:
    found = [
        *search.in_files(deployment.folder / "logs", secrets),
        *search.in_files(deployment.folder / "output", secrets),
    ]
    FIGURES.add("secrets found in logs", len(found))
    assert found == []


@pytest.mark.smoke
def test_no_secret_is_in_the_database_but_encrypted_in_connections(
    deployment: Deployment, secrets: dict[str, str]
) -> None:
    found = search.in_database(deployment, secrets)
    kept = ("connection.password, encrypted", "connection.extra, encrypted")
    elsewhere = [one for one in found if not one.startswith(kept)]
    FIGURES.add("secrets found in the database", len(elsewhere))
    assert elsewhere == []
    # Secrets that must be found are found, so the search works.
    assert {one.rpartition(": ")[2] for one in found} == secrets.keys()
