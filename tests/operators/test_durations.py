"""Durations of every operator are timedeltas or numbers of seconds, also in the call that they limit."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_service.client.errors import ServiceTimeoutError
from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.community_packages import ServiceInstallCommunityPackageOperator
from airflow_provider_service.operators.source_control import (
    ServicePullSourceControlOperator,
    ServicePushSourceControlOperator,
)
from airflow_provider_service.simulator import ServiceSimulator

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
    return [one.name for one in parameters if str(one.annotation).startswith("Duration")]


def operators_with_durations() -> list[Any]:
    return [operator for operator in OPERATORS if durations(operator)]


@pytest.mark.parametrize("operator", operators_with_durations(), ids=lambda operator: operator.__name__)
@pytest.mark.parametrize("given", [timedelta(minutes=5), 300, 300.0, "300"], ids=str)
def test_each_duration_may_be_a_timedelta_or_a_number(operator: type[Any], given: Any) -> None:
    fields = dict.fromkeys(operator.template_fields, "{{ value }}")
    for name in durations(operator):
        task = operator(task_id="task", **{**fields, name: given})
        assert getattr(task, name) == given


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
