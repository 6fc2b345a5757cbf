"""The example DAGs once more, with the real server behind Airflow. Only in the long form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.lookup import find_workflow
from airflow_provider_service.simulator.samples import chain, webhook
from tests.live import running
from tests.live.servers import LiveServer

from . import needs, workflows
from .airflow_api import AirflowApi
from .conftest import IS_SHORT
from .figures import FIGURES
from .simulated import SimulatedService
from .test_examples import ENDS, PARTS, run_all

pytestmark = pytest.mark.skipif(IS_SHORT, reason="only in the long form")


@pytest.fixture
def real_client(api: AirflowApi, service: SimulatedService, progress: Callable[[str], None]) -> Iterator[ServiceClient]:
    """A client of the newest real server, which the default connection leads to meanwhile."""
    with LiveServer(progress=progress) as server:
        connection = running.connection(server)
        server.owner.switch_mcp(True)
        connection["extra"]["mcp_api_key"] = server.owner.new_mcp_key()
        key_header = connection["extra"]["key_header"]
        api.set_connection({**connection, "connection_id": "service_default", "extra": json.dumps(connection["extra"])})
        config = ServiceConfig(base_url=server.base_url, api_key=server.api_key, key_header=key_header)
        with ServiceClient(config) as client:
            yield client
        api.set_connection(service.connection())


def test_every_example_but_for_the_pull(api: AirflowApi, real_client: ServiceClient, tmp_path: Path) -> None:
    body = chain("Nightly sync", [{**webhook(workflows.path()), "webhookId": workflows.path()}])
    nightly_sync = real_client.workflows.create(body["name"], body["nodes"], body["connections"], {})
    real_client.workflows.activate(nightly_sync.id)

    confs = needs.meet(real_client, api, tmp_path)

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
