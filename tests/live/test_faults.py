"""What a plan refuses, the real server refuses, too, and the other way round."""

from __future__ import annotations

import pytest

from airflow_provider_service._core.instances.faults import Contract, faults_by, workflow_schema
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._definitions import content, read_definition
from airflow_provider_service.client.errors import ServiceInvalidRequestError
from tests.instances.test_faults import FAULTS
from tests.instances.workflows import node, workflow

from .servers import LiveServer

ACCEPTED = [
    workflow("x" * 128, node("A", "noOp")),
    workflow("one", node("A", "noOp", credentials={"httpBasicAuth": {"id": None, "name": "x"}}, disabled=True)),
    workflow("one", node("A", "noOp", position=[1.5, -2], notes="n", onError="continueRegularOutput")),
    workflow("one", node("A", "noOp"), connections={"A": {"main": [None, []]}}),
    workflow("one", node("A", "noOp"), settings={"executionTimeout": 60, "timezone": "UTC", "executionOrder": "v1"}),
    workflow("one", node("A", "noOp"), pinData={"A": [{"json": {}}]}),
]


@pytest.mark.parametrize("definition", [*(definition for definition, _, _ in FAULTS), *ACCEPTED], ids=str)
def test_a_plan_judges_as_the_server_does(live_server: LiveServer, client: ServiceClient, definition) -> None:
    wanted = read_definition(definition)
    if live_server.generation.major == 1:
        wanted.pop("pinData", None)
    # Where the tests install it, the server cannot publish its document, which lies below a hidden folder.
    schema = workflow_schema(live_server.openapi())
    faults = [*faults_by(schema, wanted), *Contract(client).problems("here", wanted)]
    refusals = []
    try:
        client.workflows.delete(client.workflows.create(**content(wanted)).id)
    except ServiceInvalidRequestError as error:
        refusals.append(str(error))
    assert bool(refusals) == bool(faults), refusals
