"""The service goes away in the middle of a deployment: the task is retried, and its next attempt finishes."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator

from .workflows import child, parent, webhook, workflow

BEFORE = [
    child(),
    parent(tags=["old"]),
    workflow("leaves", webhook("taken"), active=True),
    workflow("stops", webhook("stops"), active=True),
]
AFTER = [
    child(description="new"),
    parent("elsewhere", tags=["new"]),
    workflow("stops", webhook("stopped"), active=False),
    workflow("fresh", webhook("taken"), active=True),
]
REQUESTS = 28
STATE = {
    "child": [[None, None], "new", True, False, []],
    "parent": [["elsewhere", None, "elsewhere", None], None, True, False, ["new"]],
    "stops": [["stopped"], None, False, False, []],
    "fresh": [["taken", "taken"], None, True, False, []],
    "leaves": [["taken"], None, False, True, []],
}


def state_of(client):
    def of(one):
        live, tags = one.active_version, sorted(tag.name for tag in one.tags)
        paths = [node["parameters"].get("path") for version in (one, live) if version for node in version.nodes]
        return [paths, one.description or None, one.active, one.is_archived, tags]

    found = (client.workflows.get(one.id) for one in client.workflows.list())
    return {one.name: of(one) for one in found if not one.name.startswith("Airflow: ")}


@pytest.fixture
def deploy(execute):
    def run(source):
        return execute(ServiceDeployWorkflowsOperator, source=source, deployment_name="shop", archive_missing=True)

    run(BEFORE)
    return run


def test_an_undisturbed_deployment_sends_so_many_requests(deploy, client, simulator, virtual_time):
    simulator.clear_requests()
    deploy(AFTER)
    assert len(simulator.requests) == REQUESTS
    assert state_of(client) == STATE


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("number", range(REQUESTS))
@pytest.mark.parametrize(
    "fault", [{"kind": "drop"}, {"kind": "drop", "after_processing": True}, {"kind": "html", "status": 404}], ids=repr
)
def test_the_task_is_retried_whenever_the_service_goes_away(deploy, client, simulator, virtual_time, number, fault):
    simulator.inject(**fault, skip=number)
    simulator.inject(**{**fault, "after_processing": False}, skip=number, times=None)
    with pytest.raises(ServiceError):  # an AirflowFailException would not be retried
        deploy(AFTER)
    simulator.clear_faults()
    deploy(AFTER)
    assert state_of(client) == STATE
    assert deploy(AFTER)["outcome"] == "unchanged"
