"""The example DAGs and the pages once more, with the real server behind Airflow. Only in the long form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._lookup import find_workflow
from airflow_provider_service.simulator._samples import chain, webhook
from tests.live import running
from tests.live.servers import LiveServer

from . import needs, pages, workflows
from .airflow_api import AirflowApi
from .browser import Browser
from .conftest import IS_SHORT
from .deployment import Deployment
from .figures import FIGURES
from .recorder import Recorder
from .simulated import SimulatedService
from .test_examples import ENDS, PARTS, run_all

pytestmark = pytest.mark.skipif(IS_SHORT, reason="only in the long form")


@pytest.fixture(scope="module")
def real_client(
    deployment: Deployment, service: SimulatedService, progress: Callable[[str], None]
) -> Iterator[ServiceClient]:
    """A client of the newest real server, which the default connection leads to meanwhile."""
    api = deployment.api
    with LiveServer(progress=progress) as server:
        connection = running.connection(server)
        server.owner.switch_mcp(True)
        connection["extra"]["mcp_api_key"] = server.owner.new_mcp_key()
        key_header = connection["extra"]["key_header"]
        api.set_connection({**connection, "connection_id": "service_default", "extra": json.dumps(connection["extra"])})
        mcp_key = connection["extra"]["mcp_api_key"]
        config = ServiceConfig(
            base_url=server.base_url, api_key=server.api_key, key_header=key_header, mcp_api_key=mcp_key
        )
        with ServiceClient(config) as client:
            yield client
        api.set_connection(service.connection())


def test_every_example_but_for_the_pull(deployment: Deployment, real_client: ServiceClient, tmp_path: Path) -> None:
    api = deployment.api
    body = chain("Nightly sync", [{**webhook(workflows.path()), "webhookId": workflows.path()}])
    nightly_sync = real_client.workflows.create(body["name"], body["nodes"], body["connections"], {})
    real_client.workflows.activate(nightly_sync.id)

    confs = needs.meet(real_client, api, deployment.database, tmp_path)

    ends, runs = run_all(api, {"example_service_main_job": {"pull": False}, **confs})

    # The free edition has no source control.
    assert ends == {**ENDS, "example_service_nightly_audit": "failed"}
    assert api.task_states("example_service_nightly_audit", runs["example_service_nightly_audit"]) == {
        "pull": {"failed"},
        "audit": {"upstream_failed"},
    }
    workflow = find_workflow(real_client, "Airflow example: fan out")
    assert workflow is not None
    assert [one.status for one in real_client.executions.list(workflow_id=workflow.id)] == ["success"] * PARTS
    FIGURES.add("example DAGs that ended as they say on the real server", len(ends))


def test_the_pages_in_every_state(
    api: AirflowApi,
    real_client: ServiceClient,
    browser_of: Callable[[str | None], Browser],
    recorder: Recorder,
) -> None:
    with pages.executions_in_every_state(api, real_client) as started:
        browser = browser_of("viewer")
        for task_id in pages.ENDINGS:
            pages.check_tab(browser, started, task_id)
            browser.photograph(f"real-execution-{task_id}")
        browser = browser_of("admin")
        pages.check_connection(browser, "service_default")
        browser.photograph("real-connection")
        pages.assert_told_nothing(recorder, *real_client.transport.config.keys)

        browser = browser_of("stranger")
        recorder.received.clear()
        for path in (*map(started.own_page, pages.ENDINGS), pages.of_connection("service_default")):
            browser.open(path)
            assert "may not read" in browser.text()
        assert recorder.holding("Orders:") == recorder.holding("checks") == []
    FIGURES.add("pages looked at on the real server", len(pages.ENDINGS) + 1)
