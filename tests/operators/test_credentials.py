"""Operators on credentials, whose secrets are never shown."""

from __future__ import annotations

import json
import logging

import pytest
import requests_mock
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, redact

from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.credentials import (
    ServiceCreateCredentialOperator,
    ServiceUpdateCredentialOperator,
)

SECRET = "hunter2-hunter2"
HEADER = {"name": "tracker", "credential_type": "httpHeaderAuth"}
DATA = {"name": "X-Token", "value": SECRET}


@pytest.fixture
def data_of(simulator):
    """``data_of(id)`` is the secret data that the server holds."""
    return lambda credential_id: simulator.state.credentials.data(credential_id)


def test_creating_twice_keeps_the_first(execute, client, data_of, link):
    first = execute(ServiceCreateCredentialOperator, **HEADER, data=DATA)
    second = execute(ServiceCreateCredentialOperator, **HEADER, data={**DATA, "value": "other"})
    assert (first["outcome"], second["outcome"]) == ("created", "skipped")
    assert first["credential_id"] == second["credential_id"]
    assert [one.id for one in client.credentials.list()] == [first["credential_id"]]
    assert data_of(first["credential_id"]) == DATA
    assert link() == "/home/credentials"
    assert SECRET not in json.dumps([first, second])


def test_an_existing_one_can_be_updated_or_fail(execute, data_of):
    first = execute(ServiceCreateCredentialOperator, **HEADER, data=DATA)
    new = {**DATA, "value": "another secret"}
    updated = execute(ServiceCreateCredentialOperator, **HEADER, data=new, if_exists="update")
    assert (updated["outcome"], data_of(first["credential_id"])) == ("updated", new)
    with pytest.raises(AirflowFailException, match=f"credential 'tracker' exists with id {first['credential_id']}"):
        execute(ServiceCreateCredentialOperator, **HEADER, data=DATA, if_exists="fail")


def test_the_type_distinguishes_credentials_of_the_same_name(execute, client):
    execute(ServiceCreateCredentialOperator, **HEADER, data=DATA)
    basic = {"name": "tracker", "credential_type": "httpBasicAuth", "data": {"user": "tracker", "password": SECRET}}
    assert execute(ServiceCreateCredentialOperator, **basic)["outcome"] == "created"
    with pytest.raises(AirflowFailException, match="more than one credential named 'tracker'"):
        execute(ServiceUpdateCredentialOperator, name="tracker", data=DATA)


def test_a_project_has_its_own(execute, client):
    project = client.projects.create("Analytics").id
    execute(ServiceCreateCredentialOperator, **HEADER, data=DATA)
    created = [execute(ServiceCreateCredentialOperator, **HEADER, data=DATA, project_id=project) for _ in range(2)]
    assert [one["outcome"] for one in created] == ["created", "skipped"]


def test_a_credential_that_is_only_shared_with_a_project_is_not_overwritten(execute, client, data_of, simulator):
    ours, theirs = client.projects.create("Ours").id, client.projects.create("Theirs").id
    other = client.credentials.create("tracker", "httpHeaderAuth", DATA, project_id=theirs)
    listed = {"data": [one.to_wire() for one in client.credentials.list()], "nextCursor": None}
    [owner] = listed["data"][0]["shared"]
    listed["data"][0]["shared"] = [owner, {**owner, "id": ours, "name": "Ours", "role": "credential:user"}]
    with requests_mock.Mocker(real_http=True) as mocked:
        mocked.get(f"{simulator.base_url}/api/v1/credentials", json=listed)
        new = {**DATA, "value": "another secret"}
        done = execute(ServiceCreateCredentialOperator, **HEADER, data=new, project_id=ours, if_exists="update")
    assert (done["outcome"], data_of(done["credential_id"])) == ("created", new)
    assert data_of(other.id) == DATA


def test_data_comes_from_an_airflow_connection(execute, data_of, monkeypatch):
    connection = {"conn_type": "http", "login": "tracker", "password": SECRET, "extra": {"domains": "example.com"}}
    monkeypatch.setenv("AIRFLOW_CONN_TRACKER", json.dumps(connection))
    arguments = {"name": "tracker", "credential_type": "httpBasicAuth", "data_conn_id": "tracker"}
    fields = {"user": "login", "password": "password"}
    done = execute(ServiceCreateCredentialOperator, **arguments, data_conn_fields=fields)
    assert data_of(done["credential_id"]) == {"user": "tracker", "password": SECRET}
    for wrong, message in (
        ({"user": "extra.nope"}, "connection 'tracker' has no value for extra.nope"),
        ({}, "give data_conn_id and data_conn_fields together"),
    ):
        with pytest.raises(AirflowFailException, match=message):
            execute(ServiceCreateCredentialOperator, **arguments, data_conn_fields=wrong)
    extra = {"user": "extra.domains", "password": "password"}
    updated = execute(
        ServiceUpdateCredentialOperator,
        credential_id=done["credential_id"],
        data_conn_id="tracker",
        data_conn_fields=extra,
    )
    assert data_of(updated["credential_id"])["user"] == "example.com"


def test_updating_replaces_or_merges(execute, client, data_of):
    credential_id = execute(ServiceCreateCredentialOperator, **HEADER, data=DATA)["credential_id"]
    execute(ServiceUpdateCredentialOperator, name="tracker", data={"value": "second"}, merge_data=True)
    assert data_of(credential_id) == {"name": "X-Token", "value": "second"}
    execute(ServiceUpdateCredentialOperator, name="tracker", data={"name": "X-Key", "value": "third"})
    assert data_of(credential_id) == {"name": "X-Key", "value": "third"}
    renamed = execute(ServiceUpdateCredentialOperator, credential_id=credential_id, name="new name")
    assert (renamed["name"], client.credentials.get(credential_id).name) == ("new name", "new name")
    assert data_of(credential_id) == {"name": "X-Key", "value": "third"}


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (ServiceCreateCredentialOperator, {**HEADER}, "give data, or data_conn_id with data_conn_fields"),
        (ServiceCreateCredentialOperator, {**HEADER, "data": "secret"}, "data must be a mapping, not str"),
        (ServiceUpdateCredentialOperator, {"data": DATA}, "credential_id or credential_name is required"),
        (ServiceUpdateCredentialOperator, {"name": "x"}, "nothing to change"),
    ],
)
def test_bad_arguments_are_refused(execute, simulator, operator, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(operator, **arguments)
    assert not simulator.requests


def test_an_unknown_name_and_type_say_so(execute):
    with pytest.raises(AirflowFailException, match="there is no credential named 'nope'"):
        execute(ServiceUpdateCredentialOperator, name="nope", data=DATA)
    with pytest.raises(AirflowFailException, match="not a known type"):
        execute(ServiceCreateCredentialOperator, name="x", credential_type="nope", data={})


# ---------------------------------------------------------------- secrets


def shown(task) -> str:
    """What Airflow stores of a task's rendered fields, for the UI."""
    try:
        from airflow.sdk.execution_time.task_runner import _serialize_rendered_fields
    except ImportError:  # Airflow 2.11
        from airflow.serialization.helpers import serialize_template_field

        return json.dumps({name: serialize_template_field(getattr(task, name), name) for name in task.template_fields})
    return json.dumps(_serialize_rendered_fields(task))


def test_data_is_a_template_that_is_never_shown(execute, monkeypatch):
    monkeypatch.setenv("TRACKER_SECRET", SECRET)
    task = ServiceCreateCredentialOperator(
        task_id="task", **HEADER, data={"name": "X-Token", "value": "{{ secret }}", "nested": [{"n": "{{ secret }}"}]}
    )
    task.render_template_fields({"task": task, "secret": SECRET})
    assert SECRET not in shown(task)
    assert json.loads(shown(task))["data"] == "***"
    assert task.data.reveal() == {"name": "X-Token", "value": SECRET, "nested": [{"n": SECRET}]}
    assert SECRET not in repr(task.data)


def test_data_of_a_mapped_task_is_never_shown():
    with DAG("dag", schedule=None):
        mapped = ServiceCreateCredentialOperator.partial(task_id="task", **HEADER).expand(
            data=[{"name": "X-Token", "value": "short"}]
        )
    task = mapped.unmap({"data": {"name": "X-Token", "value": "{{ secret }}"}})
    task._do_render_template_fields(task, task.template_fields, {"secret": SECRET}, task.get_template_env(), set())
    assert json.loads(shown(task))["data"] == "***"
    assert task.data.reveal()["value"] == SECRET


def nested(depth):
    value = SECRET
    for _ in range(depth):
        value = {"inner": value}
    return value


@pytest.mark.parametrize("give", [ServiceCreateCredentialOperator, ServiceCreateCredentialOperator.partial])
def test_data_that_is_nested_too_deeply_is_refused_in_the_dag_file(give):
    with pytest.raises(ServiceInputError, match="data must not be nested more than 200 levels deep") as refused:
        give(task_id="task", **HEADER, data=nested(400))
    assert SECRET not in str(refused.value)


def test_a_number_that_cannot_be_written_is_refused_before_anything_is_sent(execute, client):
    with pytest.raises(AirflowFailException, match=r"cannot be written as JSON: .*nothing was sent"):
        execute(ServiceCreateCredentialOperator, **HEADER, data={"name": 10**5000})
    assert list(client.credentials.list()) == []


def test_secrets_are_masked_in_logs_once_rendered():
    task = ServiceCreateCredentialOperator(task_id="task", **HEADER, data={"value": "{{ secret }}"})
    task.render_template_fields({"task": task, "secret": "only-here-0451"})
    assert redact("it is only-here-0451") == "it is ***"


def test_nothing_that_is_logged_or_pushed_holds_a_secret(execute, task_instance, caplog):
    with caplog.at_level(logging.DEBUG):
        execute(ServiceCreateCredentialOperator, **HEADER, data=DATA)
    assert "Credential" in caplog.text
    assert SECRET not in caplog.text
    assert SECRET not in json.dumps(task_instance.pushed)
