"""Durations of every operator are timedeltas or numbers of seconds, also in the call that they limit."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException

from airflow_provider_service._core.arguments import read_seconds
from airflow_provider_service.client.errors import (
    ServiceExecutionFailedError,
    ServiceInputError,
    ServiceTimeoutError,
)
from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.community_packages import ServiceInstallCommunityPackageOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.source_control import (
    ServicePullSourceControlOperator,
    ServicePushSourceControlOperator,
)
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task

from .test_every_operator import OPERATORS

PACKAGE = {"name": "n8n-nodes-example"}
LONG_CALLS: dict[str, tuple[type[Any], dict[str, Any], str]] = {
    "audit": (ServiceGenerateAuditOperator, {}, "POST"),
    "pull": (ServicePullSourceControlOperator, {}, "POST"),
    "push": (ServicePushSourceControlOperator, {"commit_message": "Nightly"}, "POST"),
    "install": (ServiceInstallCommunityPackageOperator, {**PACKAGE, "version": "0.9.0"}, "POST"),
    "update": (ServiceInstallCommunityPackageOperator, {**PACKAGE, "version": "1.0.0"}, "PATCH"),
}


def durations(operator: type[Any]) -> list[str]:
    """The arguments that are durations."""
    parameters = inspect.signature(operator.__init__).parameters.values()
    return [one.name for one in parameters if str(one.annotation).startswith(("Duration", "TemplatedDuration"))]


def operators_with_durations() -> list[Any]:
    return [operator for operator in OPERATORS if durations(operator)]


@pytest.mark.parametrize("operator", operators_with_durations(), ids=lambda operator: operator.__name__)
@pytest.mark.parametrize("given", [timedelta(minutes=5), 300, 300.0, "300"], ids=str)
def test_each_duration_may_be_a_timedelta_or_a_number(operator: type[Any], given: Any) -> None:
    fields = dict.fromkeys(operator.template_fields, "{{ value }}")
    for name in durations(operator):
        task = operator(task_id="task", **{**fields, name: given})
        assert getattr(task, name) == given


@pytest.mark.parametrize("operator", operators_with_durations(), ids=lambda operator: operator.__name__)
def test_each_limit_and_interval_of_a_task_may_be_a_template(operator: type[Any]) -> None:
    limits = {"timeout", "poll_interval"} & set(durations(operator))
    assert limits == {"timeout", "poll_interval"} & set(operator.template_fields)
    for name in limits:
        wrong: dict[str, Any] = {name: "soon"}
        with pytest.raises(ServiceInputError, match=rf"^{name} must be a timedelta or a number of seconds"):
            operator(task_id="task", **{**dict.fromkeys(operator.template_fields, "{{ value }}"), **wrong})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("300", 300), (" 0.5 ", 0.5), ("PT5M", 300), ("0:05:00", 300), ("1 day, 0:00:01", 86_401), ("P1DT1S", 86_401)],
)
def test_the_text_of_a_duration_is_read(text: str, seconds: float) -> None:
    assert read_seconds("timeout", text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "5m", "-300", "-PT5M", "nan", "None", "0", "P100Y"])
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(ServiceInputError, match="timeout must be a timedelta or a number of seconds above 0"):
        read_seconds("timeout", text)


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize("deferrable", [False, True])
def test_a_run_is_stopped_after_a_timeout_that_a_template_gives(
    simulator: ServiceSimulator, deferrable: bool, is_native: bool
) -> None:
    workflow = simulator.create_webhook_workflow(path="w", behaviour="long", seconds=3600, respond_with_id=True)
    with DAG("dag", schedule=None, params={"limit": 42}, render_template_as_native_obj=is_native):
        run = ServiceRunWorkflowOperator(
            task_id="run",
            workflow_id=workflow["id"],
            timeout="{{ params.limit }}",
            poll_interval="{{ macros.timedelta(seconds=5) }}",
            deferrable=deferrable,
        )
    with pytest.raises(ServiceExecutionFailedError, match=r"had not ended 42 s after the wait began"):
        run_task(run)
    with pytest.raises(AirflowFailException, match=r"^timeout must be a timedelta or a number of seconds .*'soon'"):
        run_task(run, params={"limit": "soon"})


@pytest.mark.parametrize("name", LONG_CALLS)
@pytest.mark.parametrize("given", [timedelta(milliseconds=300), 0.3], ids=["timedelta", "seconds"])
def test_a_long_call_is_limited_by_it(
    execute: Callable[..., Any], simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, name: str, given: Any
) -> None:
    operator, arguments, method = LONG_CALLS[name]
    # An audit changes nothing, so it is asked for again until the deadline of the retries.
    fields = {**json.loads(simulator.connection_json()), "extra": {"retry_deadline": 0.5}}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(fields))
    if name == "push":
        simulator.create_webhook_workflow("one", path="one")  # without changes, nothing is pushed
    if name == "update":
        execute(operator, **{**arguments, "version": "0.9.0"})
    simulator.inject("latency", times=None, method=method, seconds=600)

    with pytest.raises(ServiceTimeoutError, match=rf"{method} .*within the timeout of 0\.3 s"):
        execute(operator, **arguments, timeout=given)


def test_no_other_operator_has_a_long_call() -> None:
    waiting = {"poll_interval", "older_than", "window"}  # tests/waits, test_executions.py and tests/health test these
    rest = {operator for operator in operators_with_durations() if not waiting & set(durations(operator))}
    assert rest == {operator for operator, _, _ in LONG_CALLS.values()}
