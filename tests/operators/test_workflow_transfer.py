"""The operator that transfers a workflow."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.workflows import ServiceTransferWorkflowOperator


@pytest.fixture
def workflow_id(simulator) -> str:
    return simulator.create_webhook_workflow("orders", path="orders", active=False)["id"]


def test_transfer_moves_once(execute, client, writes, link, workflow_id):
    project = client.projects.create("Analytics")
    writes()
    by_name = {"destination_project_name": "Analytics"}
    assert execute(ServiceTransferWorkflowOperator, workflow_id=workflow_id, **by_name)["moved"] is True
    assert client.workflows.get(workflow_id).shared[0]["projectId"] == project.id
    assert writes() == [f"PUT /workflows/{workflow_id}/transfer"]
    again = execute(ServiceTransferWorkflowOperator, workflow_id=workflow_id, destination_project_id=project.id)
    assert (again["moved"], again["project_id"], writes()) == (False, project.id, [])
    assert link() == f"/workflow/{workflow_id}"


def test_transfer_survives_a_lost_answer(execute, client, simulator, workflow_id):
    project = client.projects.create("Analytics")
    simulator.inject("drop", path="/transfer$", after_processing=True)
    execute(ServiceTransferWorkflowOperator, workflow_id=workflow_id, destination_project_id=project.id)
    assert client.workflows.get(workflow_id).shared[0]["projectId"] == project.id


def test_a_transfer_that_is_refused_fails(execute, client, simulator, workflow_id):
    project = client.projects.create("Analytics")
    simulator.inject("status", status=400, path="/transfer$")
    with pytest.raises(AirflowFailException):
        execute(ServiceTransferWorkflowOperator, workflow_id=workflow_id, destination_project_id=project.id)


def test_transfer_says_what_is_wrong(execute, client, workflow_id):
    with pytest.raises(ServiceInputError, match="either destination_project_id or destination_project_name"):
        execute(ServiceTransferWorkflowOperator, workflow_id=workflow_id)
    with pytest.raises(AirflowFailException, match="there is no project named 'Nope'"):
        execute(ServiceTransferWorkflowOperator, workflow_id=workflow_id, destination_project_name="Nope")
    twins = [client.projects.create("Twin").id for _ in range(2)]
    with pytest.raises(AirflowFailException, match=r"more than one project named 'Twin': ids \w+, \w+") as caught:
        execute(ServiceTransferWorkflowOperator, workflow_id=workflow_id, destination_project_name="Twin")
    assert all(one in str(caught.value) for one in twins)
