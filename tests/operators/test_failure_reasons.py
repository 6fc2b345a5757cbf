"""What a task that fails leaves for its page: the reason, without the data and secrets of others, and without harm."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.exceptions import AirflowRescheduleException
from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    mask_secret,
)

from airflow_provider_service._airflow.attempts import ATTEMPTS_KEY, MAX_REASON_CHARS, REASON_KEY, failure_reported
from airflow_provider_service.client.errors import ServiceError, ServiceTaskKilledError
from airflow_provider_service.links.service import ServiceExecutionLink
from airflow_provider_service.operators.credentials import ServiceCreateCredentialOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.testing._tasks import FakeStateStore


def reported(error: Exception, **more: Any) -> dict[str, Any]:
    """The XComs of an attempt that fails with an error."""
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(try_number=2, xcom_push=lambda key, value: pushed.update({key: value}))
    context: Any = {"ti": ti, **more}
    with pytest.raises(type(error)) as raised, failure_reported(context):
        raise error
    assert raised.value is error
    return pushed


@pytest.mark.parametrize("error", [ServiceError("it is not active"), AirflowFailException("it is not active")])
def test_a_failure_says_why(error):
    store = FakeStateStore({ATTEMPTS_KEY: {"1": {"execution": "https://service.example.com"}}})

    assert reported(error, task_state_store=store) == {REASON_KEY: "it is not active"}
    assert store[ATTEMPTS_KEY] == {
        "1": {"execution": "https://service.example.com"},
        "2": {"reason": "it is not active"},
    }


def test_the_text_of_an_error_of_others_stays_in_the_log():
    [reason] = reported(ValueError("order of customer 7")).values()

    assert "ValueError" in reason
    assert "customer" not in reason


def test_a_reason_holds_no_secret_and_is_not_too_long():
    mask_secret("s3cr3t-0f-the-task")

    [reason] = reported(ServiceError("refused s3cr3t-0f-the-task " + "x" * 2 * MAX_REASON_CHARS)).values()

    assert "s3cr3t" not in reason
    assert len(reason) == MAX_REASON_CHARS


@pytest.mark.parametrize(
    "error", [AirflowSkipException("skipped"), AirflowRescheduleException(None), ServiceTaskKilledError("killed")]
)
def test_what_is_no_failure_has_no_reason(error):
    assert reported(error) == {}


def test_a_reason_that_cannot_be_left_does_not_hide_the_failure():
    reported(ServiceError("it is not active"), ti=None)


def test_a_state_that_airflow_cannot_keep_fails_no_task(caplog):
    class Away(FakeStateStore):
        def get(self, *_args: Any) -> Any:
            raise ConnectionError("the API server is away")

    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(try_number=1, task=None, xcom_push=lambda key, value: pushed.update({key: value}))
    ServiceExecutionLink().push({"ti": ti, "task_state_store": Away()}, "https://service.example.com")

    assert list(pushed.values()) == ["https://service.example.com"]
    assert "The execution of this attempt will be missing" in caplog.text


RUN = {"workflow_name": "Any"}
CREDENTIAL = {"name": "n", "credential_type": "httpBasicAuth", "data_conn_fields": {"user": "login"}}


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ServiceRunWorkflowOperator, {**RUN, "service_conn_id": "absent"}),
        (ServiceRunWorkflowOperator, {**RUN, "service_conn_id": "absent", "deferrable": True}),
        (ServiceRunWorkflowOperator, {**RUN, "webhook_conn_id": "absent"}),
        (ServiceCreateCredentialOperator, {**CREDENTIAL, "data_conn_id": "absent"}),
    ],
)
def test_a_task_without_its_connection_says_where_to_add_it(execute, simulator, kind, arguments):
    simulator.create_webhook_workflow("Any", path="any")

    with pytest.raises(AirflowNotFoundException) as raised:
        execute(kind, **arguments)

    assert str(raised.value) == (
        "connection 'absent': Airflow has no such connection; "
        "add it under Admin, Connections, or as a variable of the environment"
    )
