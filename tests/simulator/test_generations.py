"""The simulator as an older version of the service: what its published contract lacks is not there."""

from __future__ import annotations

import pytest

from airflow_provider_service._core.connection_check import server_version
from airflow_provider_service.client._http import answers
from airflow_provider_service.client.errors import ServiceNotOfferedError
from airflow_provider_service.simulator import _validation
from airflow_provider_service.simulator._gateway import OPERATIONS
from tests.conformance.refusals import call, version_of

from .api_client import Api


@pytest.mark.parametrize(
    ("version", "data_tables", "discover", "started_after"),
    [
        ("1.123.81", 404, 404, 400),
        ("2.7.5", 200, 404, 400),
        ("2.20.12", 200, 200, 400),
        ("2.37.11", 200, 200, 200),
        ("2.41.1", 200, 200, 200),
    ],
)
def test_operations_and_parameters_are_there_from_their_version_on(
    api: Api, client, version: str, data_tables: int, discover: int, started_after: int
) -> None:
    api.simulator.version = version

    assert api.get("/data-tables").status_code == data_tables
    assert api.get("/discover").status_code == discover
    answer = api.get("/executions?startedAfter=2026-01-01T00%3A00%3A00Z")
    assert answer.status_code == started_after
    if started_after == 400:
        assert answer.json() == {"message": "Unknown query parameter 'startedAfter'"}
    assert api.get("/executions?workflowId=x").status_code == 200
    assert server_version(client) == version


def test_only_what_exists_can_be_lacking() -> None:
    for name in _validation._BY_NAME:
        operation, _, parameter = name.partition("?")
        assert operation in OPERATIONS
        assert not parameter or parameter in {param.name for param in OPERATIONS[operation].query}, name


def test_the_client_names_the_same_versions() -> None:
    assert {name: version_of(name) for name in _validation._BY_NAME} == _validation._BY_NAME
    assert len(answers._SINCE) == len(_validation._BY_NAME)


@pytest.mark.parametrize("operation", sorted(name for name in _validation._BY_NAME if "?" not in name))
def test_the_refusal_of_an_operation_names_the_version_that_offers_it(simulator, client, operation: str) -> None:
    simulator.version = "1.123.81"

    with pytest.raises(ServiceNotOfferedError, match=rf"n8n offers it from {_validation._BY_NAME[operation]} on"):
        call(client, operation)


def test_the_refusal_of_a_parameter_names_the_version_that_offers_it(simulator, client) -> None:
    simulator.version = "2.20.12"

    with pytest.raises(ServiceNotOfferedError, match=r"with this parameter.* n8n offers it from 2\.37 on"):
        list(client.executions.list(started_after="2026-01-01T00:00:00Z"))
    with pytest.raises(ServiceNotOfferedError, match=r"with this parameter.* The server may be an older version"):
        client.request("GET", "/executions", query={"unheardOf": "1"})
