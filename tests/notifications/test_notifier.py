"""A workflow as the alert channel: what it receives, and what is never shown."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
from airflow.providers.common.compat.sdk import DAG, mask_secret

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._execution_data import starting_items
from airflow_provider_service.client.errors import (
    ServiceInputError,
    ServiceLookupError,
    ServiceNotFoundError,
    ServiceTimeoutError,
    ServiceWebhookRefusedError,
)
from airflow_provider_service.notifications.workflow import ServiceNotifier
from airflow_provider_service.simulator import ServiceSimulator
from tests import airflow_features

Notify = Callable[..., None]
TOKEN = "alert-token-of-the-webhook"
TASK = SimpleNamespace(
    dag_id="nightly",
    run_id="manual__1",
    task_id="load",
    map_index=3,
    try_number=2,
    state="failed",
    log_url="https://airflow.example.com/dags/nightly",
)


@pytest.fixture(params=["sync", pytest.param("async", marks=airflow_features.async_notifiers)])
def call(request: pytest.FixtureRequest, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> Notify:
    """``call(notifier, context)`` sends a notice as Airflow does, in both ways that it knows."""
    monkeypatch.setattr(ServiceNotifier, "log", logging.getLogger("airflow_provider_service.task"))

    async def awaited(notifier: ServiceNotifier, context: dict[str, Any]) -> None:
        notifier.context = context  # type: ignore[assignment]
        await notifier

    def send(notifier: ServiceNotifier, context: dict[str, Any]) -> None:
        context = {"dag": DAG("nightly", schedule=None), **context}
        if request.param == "sync":
            notifier(context)
        else:
            asyncio.run(awaited(notifier, context))

    return send


@pytest.fixture
def notify(call: Notify) -> Notify:
    """``notify(context, **arguments)`` sends a notice with a new notifier."""
    return lambda context, **arguments: call(ServiceNotifier(**arguments), context)


@pytest.fixture
def alert(simulator: ServiceSimulator) -> str:
    """A workflow that takes notices."""
    return str(simulator.create_webhook_workflow(path="alert")["id"])


def received(simulator: ServiceSimulator, workflow_id: str) -> list[dict[str, Any]]:
    """What started the workflow's executions, oldest first: headers, query and body."""
    with service(simulator) as client:
        simulator.clock.advance(1)
        executions = list(client.executions.list(workflow_id=workflow_id, include_data=True))
    return [next(starting_items(one)) for one in reversed(executions)]


def test_the_workflow_gets_the_notice(notify: Notify, simulator: ServiceSimulator, alert: str) -> None:
    notify(
        {"ti": TASK, "exception": ValueError("no such file")},
        workflow_id=alert,
        message="{{ ti.task_id }} of {{ ti.dag_id }} has failed",
        details={"team": "data", "attempts": ["{{ ti.try_number }}"]},
    )

    [item] = received(simulator, alert)
    assert item["body"] == {
        "message": "load of nightly has failed",
        "dag_id": "nightly",
        "run_id": "manual__1",
        "task_id": "load",
        "map_index": 3,
        "try_number": 2,
        "state": "failed",
        "log_url": "https://airflow.example.com/dags/nightly",
        "exception": "no such file",
        "details": {"team": "data", "attempts": ["2"]},
    }


def test_one_notifier_renders_each_notice_anew(call: Notify, simulator: ServiceSimulator, alert: str) -> None:
    notifier = ServiceNotifier(workflow_id=alert, message="{{ exception }}", details={"run": "{{ run_id }}"})
    for run_id, reason in (("first", "row 17 is {{ run_id }}"), ("second", "no such file")):
        call(notifier, {"run_id": run_id, "exception": ValueError(reason)})

    told = [(item["body"]["message"], item["body"]["details"]) for item in received(simulator, alert)]
    assert told == [("row 17 is {{ run_id }}", {"run": "first"}), ("no such file", {"run": "second"})]


def test_a_task_that_is_not_mapped_has_no_map_index(notify: Notify, simulator: ServiceSimulator, alert: str) -> None:
    notify({"ti": SimpleNamespace(**{**vars(TASK), "map_index": -1})}, workflow_id=alert, message="failed")

    [item] = received(simulator, alert)
    assert item["body"]["map_index"] is None


def test_a_run_without_logical_date_is_reported_too(
    notify: Notify, simulator: ServiceSimulator, alert: str, caplog: pytest.LogCaptureFixture
) -> None:
    details = {
        "date": "{{ ds }}",
        "filtered": "{{ logical_date | ds }}",
        "called": "{{ logical_date.isoformat() }}",
        "none": "{{ dag_run.logical_date.isoformat() }}",
        "sum": "{{ data_interval_end + macros.timedelta(days=1) }}",
        "there": "{{ ti.task_id }}",
    }
    run = SimpleNamespace(logical_date=None)
    message = "{{ ti.task_id }} of {{ ds }} has failed"
    notify({"ti": TASK, "dag_run": run}, workflow_id=alert, message=message, details=details)

    [item] = received(simulator, alert)
    absent = dict.fromkeys(("date", "filtered", "called", "none", "sum"), "")
    assert (item["body"]["message"], item["body"]["details"]) == ("load of  has failed", {**absent, "there": "load"})
    assert "'ds' is undefined" in caplog.text


def test_a_text_that_cannot_be_rendered_is_sent_as_it_is(
    notify: Notify, simulator: ServiceSimulator, alert: str, caplog: pytest.LogCaptureFixture
) -> None:
    message = "took {{ (data_interval_end - data_interval_start).total_seconds() | int }} s"
    details = {"rounded": "{{ logical_date | round }}", "invalid": "{{ ti.", "there": "{{ ti.task_id }}"}
    notify({"ti": TASK}, workflow_id=alert, message=message, details=details)

    [item] = received(simulator, alert)
    assert (item["body"]["message"], item["body"]["details"]) == (message, {**details, "there": "load"})
    assert "cannot be rendered, and is sent as it is: 'data_interval_end' is undefined" in caplog.text


def test_values_that_the_context_lacks_are_empty_in_native_objects_too(
    notify: Notify, simulator: ServiceSimulator, alert: str
) -> None:
    native = DAG("native", schedule=None, render_template_as_native_obj=True)
    details = {"day": "{{ ds }}", "days": "{{ [ds, {'day': ds}, ti.try_number] }}"}
    notify({"ti": TASK, "dag": native}, workflow_id=alert, message="{{ ds }}", details=details)

    [item] = received(simulator, alert)
    assert item["body"]["message"] == ""
    assert item["body"]["details"] == {"day": "", "days": ["", {"day": ""}, 2]}


def test_of_a_dag_run(notify: Notify, simulator: ServiceSimulator, alert: str) -> None:
    run = SimpleNamespace(dag_id="nightly", run_id="scheduled__1", state="success")
    notify({"dag_run": run}, workflow_id=alert, message="done")

    [item] = received(simulator, alert)
    told = {name: value for name, value in item["body"].items() if value is not None}
    assert told == {"message": "done", "dag_id": "nightly", "run_id": "scheduled__1", "state": "success"}


def test_of_a_dag_run_of_which_airflow_passes_only_the_id(
    notify: Notify, simulator: ServiceSimulator, alert: str
) -> None:
    context: dict[str, Any] = {"run_id": "manual__1", "reason": "task_failure"}
    notify(context, workflow_id=alert, message="failed")

    [item] = received(simulator, alert)
    told = {name: value for name, value in item["body"].items() if value is not None}
    assert told == {"message": "failed", "dag_id": "nightly", "run_id": "manual__1"}


def test_a_webhook_without_body_gets_a_query(notify: Notify, simulator: ServiceSimulator, alert: str) -> None:
    set_parameters(simulator, alert, httpMethod="GET")
    notify({"ti": TASK}, workflow_id=alert, message="a & b", details={"n": [1]})

    [call] = [one for one in simulator.requests if one.path == "/webhook/alert"]
    query = parse_qs(call.query)
    assert (query["message"], query["map_index"], query["details"]) == (["a & b"], ["3"], ['{"n":[1]}'])
    assert "exception" not in query


def test_the_workflow_is_given_by_name(notify: Notify, simulator: ServiceSimulator) -> None:
    with service(simulator) as client:
        project = client.projects.create("Operations").id
        ids = [str(simulator.create_webhook_workflow("Alert", path=path)["id"]) for path in ("here", "there")]
        client.workflows.transfer(ids[1], project)
    notify({"ti": TASK}, workflow_name="Alert", project_name="{{ 'Operations' }}", message="by name")

    assert [item["body"]["message"] for item in received(simulator, ids[1])] == ["by name"]
    assert received(simulator, ids[0]) == []


@airflow_features.errors_of_notifiers
def test_an_ambiguous_name_lists_the_workflows(notify: Notify, simulator: ServiceSimulator) -> None:
    ids = [str(simulator.create_webhook_workflow("Alert", path=path)["id"]) for path in ("here", "there")]
    with pytest.raises(ServiceLookupError, match="there is more than one workflow named 'Alert'") as caught:
        notify({"ti": TASK}, workflow_name="Alert")
    assert all(one in str(caught.value) for one in ids)


@pytest.mark.parametrize("given", [{}, {"workflow_id": "w", "workflow_name": "Alert"}])
def test_the_workflow_is_given_in_one_way(given: dict[str, str]) -> None:
    with pytest.raises(ServiceInputError, match=r"^give either workflow_id or workflow_name"):
        ServiceNotifier(**given)


@pytest.fixture
def guarded_alert(simulator: ServiceSimulator, alert: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, with a header that it asks for, and the connection ``alert`` that holds it."""
    with service(simulator) as client:
        data = {"name": "X-Alert-Token", "value": TOKEN}
        credential = client.credentials.create("alert", "httpHeaderAuth", data)
    reference = {"httpHeaderAuth": {"id": credential.id, "name": "alert"}}
    set_parameters(simulator, alert, credentials=reference, authentication="headerAuth")
    connection = {"conn_type": "http", "login": "X-Alert-Token", "password": TOKEN}
    monkeypatch.setenv("AIRFLOW_CONN_ALERT", json.dumps(connection))
    return alert


@airflow_features.errors_of_notifiers
def test_a_webhook_with_authentication(notify: Notify, simulator: ServiceSimulator, guarded_alert: str) -> None:
    with pytest.raises(ServiceWebhookRefusedError):
        notify({"ti": TASK}, workflow_id=guarded_alert)
    notify({"ti": TASK}, workflow_id=guarded_alert, webhook_conn_id="alert")

    [item] = received(simulator, guarded_alert)
    assert item["headers"]["x-alert-token"] == TOKEN


@airflow_features.errors_of_notifiers
def test_a_secret_that_cannot_be_sent_is_not_shown(
    notify: Notify, simulator: ServiceSimulator, guarded_alert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {"conn_type": "http", "login": "X-Alert-Token", "password": f"{TOKEN}\n"}
    monkeypatch.setenv("AIRFLOW_CONN_ALERT", json.dumps(connection))
    with pytest.raises(ServiceInputError, match="without line breaks") as refused:
        notify({"ti": TASK}, workflow_id=guarded_alert, webhook_conn_id="alert")

    assert TOKEN not in f"{refused.value!r} {refused.value.__cause__!r}"


@airflow_features.errors_of_notifiers
def test_nobody_sees_a_secret(
    notify: Notify,
    simulator: ServiceSimulator,
    guarded_alert: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    mask_secret("password-of-the-database")
    context = {"ti": TASK, "exception": RuntimeError("login with password-of-the-database refused")}
    notify(context, workflow_id=guarded_alert, webhook_conn_id="alert")
    connection = {"conn_type": "http", "login": "X-Alert-Token", "password": f"wrong-{TOKEN}"}
    monkeypatch.setenv("AIRFLOW_CONN_ALERT", json.dumps(connection))
    with pytest.raises(ServiceWebhookRefusedError):
        notify(context, workflow_id=guarded_alert, webhook_conn_id="alert")

    [item] = received(simulator, guarded_alert)
    assert item["body"]["exception"] == "login with *** refused"
    # The key of the API does not go to a webhook, and nothing secret to a log.
    assert simulator.api_key not in json.dumps(item)
    shown = caplog.text + "".join(capsys.readouterr())
    assert "was notified, and answered 200" in shown
    for secret in (simulator.api_key, TOKEN, "password-of-the-database"):
        assert secret not in shown


def test_a_long_exception_is_truncated(notify: Notify, simulator: ServiceSimulator, alert: str) -> None:
    notify({"ti": TASK, "exception": RuntimeError("long " * 1000)}, workflow_id=alert)

    [item] = received(simulator, alert)
    assert item["body"]["exception"] == "long " * 200


def test_a_workflow_that_answers_late_is_not_waited_for(
    notify: Notify, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    slow = simulator.create_webhook_workflow(path="slow", behaviour="long", seconds=30, response_mode="lastNode")["id"]
    connection = {**json.loads(simulator.connection_json()), "extra": {"timeout": 0.3}}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))

    notify({"ti": TASK}, workflow_id=slow)

    [warned] = [one for one in caplog.records if "has not answered within 0.3 s; it may still run" in one.getMessage()]
    assert (warned.levelname, f"Workflow {slow} " in warned.getMessage()) == ("WARNING", True)
    assert sum(one.path == "/webhook/slow" for one in simulator.requests) == 1


@airflow_features.errors_of_notifiers
def test_a_webhook_that_should_answer_at_once_and_does_not_is_an_error(
    notify: Notify, simulator: ServiceSimulator, alert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        extra = {"timeout": 0.3, "webhook_base_url": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        connection = {**json.loads(simulator.connection_json()), "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))

        with pytest.raises(ServiceTimeoutError):
            notify({"ti": TASK}, workflow_id=alert)

    assert received(simulator, alert) == []


def test_a_workflow_that_fails_was_still_notified(
    notify: Notify, simulator: ServiceSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    failing = simulator.create_webhook_workflow(path="f", behaviour="failing", response_mode="lastNode")["id"]
    notify({"ti": TASK}, workflow_id=failing)

    assert f"Workflow {failing} was notified, and answered 500" in caplog.text
    assert len(received(simulator, failing)) == 1


@airflow_features.errors_of_notifiers
def test_a_notice_that_cannot_be_sent_is_an_error(
    notify: Notify, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = {**json.loads(simulator.connection_json()), "extra": {"retry_deadline": 0}}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(connection))
    inactive = simulator.create_webhook_workflow(path="inactive", active=False)["id"]

    with pytest.raises(ServiceInputError, match="is not active; nothing was started"):
        notify({"ti": TASK}, workflow_id=inactive, activate=False)
    with pytest.raises(ServiceNotFoundError):
        notify({"ti": TASK}, workflow_id="none")
    with pytest.raises(ServiceInputError, match="no webhook node 'Other'"):
        notify({"ti": TASK}, workflow_id=inactive, trigger_node="Other")
    with service(simulator) as client:
        assert not client.workflows.get(inactive).active
        client.workflows.archive(inactive)
    with pytest.raises(ServiceInputError, match="is archived; nothing was started"):
        notify({"ti": TASK}, workflow_id=inactive)


def test_a_workflow_that_is_not_active_is_activated(notify: Notify, simulator: ServiceSimulator) -> None:
    inactive = simulator.create_webhook_workflow(path="inactive", active=False)["id"]
    notify({"ti": TASK}, workflow_id=inactive, message="first")
    notify({"ti": TASK}, workflow_id=inactive, message="second")

    assert [item["body"]["message"] for item in received(simulator, inactive)] == ["first", "second"]
    with service(simulator) as client:
        assert client.workflows.get(inactive).active


def test_activation_is_a_choice_of_two() -> None:
    with pytest.raises(ServiceInputError, match="activate must be True or False, not 'no'"):
        ServiceNotifier(workflow_id="w", activate="no")  # type: ignore[arg-type]


def test_any_json_may_be_details(notify: Notify, simulator: ServiceSimulator, alert: str) -> None:
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    notify({"ti": TASK}, workflow_id=alert, details=[1, None, {"at": moment}])

    [item] = received(simulator, alert)
    assert item["body"]["details"] == [1, None, {"at": "2026-01-31T00:00:00Z"}]


def service(simulator: ServiceSimulator) -> ServiceClient:
    return ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key))


def set_parameters(
    simulator: ServiceSimulator, workflow_id: str, *, credentials: dict[str, Any] | None = None, **parameters: Any
) -> None:
    """Change the webhook node of a workflow and publish it."""
    with service(simulator) as client:
        workflow = client.workflows.get(workflow_id)
        first, *rest = workflow.nodes or []
        changed = {**first, "parameters": {**first["parameters"], **parameters}, "credentials": credentials or {}}
        client.workflows.update(
            workflow_id,
            name=str(workflow.name),
            nodes=[changed, *rest],
            connections=workflow.connections or {},
            settings={},
        )
        client.workflows.publish(workflow_id)
    simulator.clock.advance(1)
