"""Failures that would recur fail the task for good; temporary ones are left to Airflow's retries."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.operators.generic import ServiceOperator
from airflow_provider_service.operators.source_control import ServicePullSourceControlOperator
from airflow_provider_service.operators.tags import ServiceCreateTagOperator


def test_a_feature_that_the_plan_does_not_include(execute, simulator):
    simulator.state.licensed = False

    with pytest.raises(AirflowFailException, match="the server's plan does not include this"):
        execute(ServicePullSourceControlOperator)

    assert [one.path for one in simulator.requests] == ["/api/v1/source-control/pull"]


def test_a_scope_that_the_key_lacks(execute, simulator, monkeypatch):
    uri = simulator.connection_json().replace(simulator.api_key, simulator.create_key(["tag:list"]))
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", uri)

    with pytest.raises(AirflowFailException, match="lacks the scope 'tag:create'"):
        execute(ServiceCreateTagOperator, name="prod")


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_request_that_the_service_refuses_as_it_stands(execute, simulator, status):
    simulator.inject("status", status=status)

    with pytest.raises(AirflowFailException, match=rf"POST /tags: .*\(HTTP {status}\)"):
        execute(ServiceCreateTagOperator, name="prod")

    assert len(simulator.requests) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, errors.ServiceUnauthorizedError),  # a key can be given back while the task waits for its retry
        (409, errors.ServiceConflictError),
        (500, errors.ServiceServerError),
    ],
)
def test_a_temporary_failure_is_not_final(execute, simulator, status, error):
    simulator.inject("status", status=status)

    with pytest.raises(error):
        execute(ServiceOperator, resource="tags", action="list")
