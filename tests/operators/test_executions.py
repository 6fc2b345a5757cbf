"""Operators on executions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowException, AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.execution_selections import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionsOperator,
)
from airflow_provider_service.operators.executions import ServiceStopExecutionOperator


@pytest.fixture
def workflow_id(simulator) -> str:
    return simulator.create_webhook_workflow("orders", path="orders")["id"]


@pytest.fixture
def other_workflow_id(simulator) -> str:
    return simulator.create_webhook_workflow("bills", path="bills")["id"]


def held(client, **selection) -> set[str]:
    running = {one.id for one in client.executions.list(status="running", **selection)}
    return running | {one.id for one in client.executions.list(**selection)}


# ---------------------------------------------------------------- stop


@pytest.mark.parametrize("status", ["new", "running", "waiting"])
def test_stopping_twice(execute, client, simulator, link, workflow_id, status):
    execution = simulator.start_execution(workflow_id, status=status)
    first = execute(ServiceStopExecutionOperator, execution_id=execution)
    assert (first["status"], first["stopped"]) == ("canceled", True)
    second = execute(ServiceStopExecutionOperator, execution_id=int(execution))
    assert (second["status"], second["stopped"]) == ("canceled", False)
    assert client.executions.get(execution).status == "canceled"
    assert link() == f"/workflow/{workflow_id}/executions/{execution}"


def test_stopping_one_that_succeeded_says_so(execute, simulator, workflow_id):
    execution = simulator.start_execution(workflow_id, status="success")
    assert execute(ServiceStopExecutionOperator, execution_id=execution)["status"] == "success"


def test_one_that_the_service_cannot_read_by_its_id_is_stopped(execute, client, simulator, workflow_id):
    execution = simulator.start_execution(workflow_id)
    simulator.inject("status", times=None, method="GET", path=f"/executions/{execution}$", status=500)
    done = execute(ServiceStopExecutionOperator, execution_id=execution)
    assert (done["status"], done["stopped"]) == ("canceled", True)


def test_a_server_that_fails_to_stop_what_has_ended(execute, simulator, workflow_id):
    ended, running = (simulator.start_execution(workflow_id, status=one) for one in ("success", "running"))
    simulator.inject("status", path=f"/executions/{ended}/stop", status=500, times=None)
    simulator.inject("status", path=f"/executions/{running}/stop", status=500, times=None)

    done = execute(ServiceStopExecutionOperator, execution_id=ended)
    assert (done["status"], done["stopped"]) == ("success", False)
    with pytest.raises(errors.ServiceServerError):
        execute(ServiceStopExecutionOperator, execution_id=running)


@pytest.mark.parametrize("if_missing", ["fail", "ignore"])
def test_stopping_one_whose_workflow_the_user_of_the_key_may_not_execute(execute, simulator, workflow_id, if_missing):
    ended, running = (simulator.start_execution(workflow_id, status=one) for one in ("success", "running"))
    simulator.inject("status", path="/stop$", status=404, times=None)

    done = execute(ServiceStopExecutionOperator, execution_id=ended, if_missing=if_missing)
    assert (done["status"], done["stopped"]) == ("success", False)
    with pytest.raises(AirflowFailException, match=f"execution {running} has not ended: the service does not stop"):
        execute(ServiceStopExecutionOperator, execution_id=running, if_missing=if_missing)


def test_stopping_one_that_does_not_exist(execute, workflow_id):
    with pytest.raises(errors.ServiceNotFoundError, match="GET /executions/99: not found"):
        execute(ServiceStopExecutionOperator, execution_id=99)
    ignored = execute(ServiceStopExecutionOperator, execution_id=99, if_missing="ignore")
    assert ignored == {"execution_id": "99", "status": None, "stopped": False, "url": None}
    with pytest.raises(errors.ServiceInputError, match="if_missing must be one of fail, ignore, not 'maybe'"):
        execute(ServiceStopExecutionOperator, execution_id=99, if_missing="maybe")


def test_stopping_many_of_a_workflow(execute, client, simulator, link, workflow_id, other_workflow_id):
    mine = [simulator.start_execution(workflow_id, status=status) for status in ("new", "running", "waiting")]
    other = simulator.start_execution(other_workflow_id)
    done = execute(ServiceStopExecutionsOperator, workflow_id=workflow_id)
    assert done["stopped"] == 3
    assert {client.executions.get(one).status for one in mine} == {"canceled"}
    assert client.executions.get(other).status == "running"
    assert execute(ServiceStopExecutionsOperator, workflow_id=workflow_id)["stopped"] == 0
    assert link() == f"/workflow/{workflow_id}/executions"


def test_stopping_many_by_status_and_age(execute, client, simulator, link, workflow_id):
    old = simulator.start_execution(workflow_id)
    waiting = simulator.start_execution(workflow_id, status="waiting")
    simulator.clock.advance(7200)
    young = simulator.start_execution(workflow_id)
    before = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    done = execute(ServiceStopExecutionsOperator, all_workflows=True, status="running", started_before=before)
    assert done["stopped"] == 1
    statuses = [client.executions.get(one).status for one in (old, waiting, young)]
    assert statuses == ["canceled", "waiting", "running"]
    assert link() == "/home/executions"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "all_workflows=True for the executions of every workflow"),
        ({"workflow_id": ""}, "workflow_id is empty"),
        ({"workflow_id": "w", "all_workflows": True}, "give either workflow_id or workflow_name, or all_workflows"),
        ({"workflow_id": "w", "started_before": "soon"}, "started_before must be a date and time such as"),
        ({"workflow_id": "w", "started_before": "2026-01-01", "older_than": timedelta(1)}, "give either started_befo"),
    ],
)
def test_stopping_many_refuses(execute, simulator, arguments, message):
    with pytest.raises((AirflowFailException, ServiceInputError), match=message):
        execute(ServiceStopExecutionsOperator, **arguments)
    assert not simulator.requests


@pytest.mark.parametrize(
    ("operator", "status", "message"),
    [
        (ServiceStopExecutionsOperator, "new", "status must be one of queued, running, waiting, not 'new'"),
        (ServiceStopExecutionsOperator, [], "status must not be empty"),
        (
            ServiceDeleteExecutionsOperator,
            ["error", "succeeded"],
            "status must be one of success, error, canceled, crashed, new, waiting, unknown, not 'succeeded'",
        ),
        (ServiceDeleteExecutionsOperator, ("running",), "status must be one of success, error, .*, not 'running'"),
    ],
)
def test_a_wrong_status_fails_the_import_of_the_dag_file(operator, status, message):
    with pytest.raises(errors.ServiceInputError, match=message):
        operator(task_id="task", workflow_id="w", status=status)
    with pytest.raises(errors.ServiceInputError, match=message):
        operator.partial(task_id="task", status=status)


@pytest.mark.parametrize("operator", [ServiceStopExecutionsOperator, ServiceDeleteExecutionsOperator])
def test_a_template_for_the_status_is_checked_once_it_is_rendered(execute, simulator, operator):
    with DAG("dag", schedule=None):
        output = ServiceStopExecutionOperator(task_id="before", execution_id=1).output
        assert operator(task_id="task", workflow_id="w", status=output).status is output
    for status in ("{{ 'gone' }}", ["waiting", "{{ 'gone' }}"]):
        with pytest.raises(AirflowFailException, match=r"status must be one of .*, not 'gone'"):
            execute(operator, workflow_id="w", status=status)
    assert not simulator.requests


@pytest.mark.parametrize("time", [{"older_than": 0}, {"started_before": "2026-01-31"}])
def test_what_is_queued_cannot_be_selected_by_time(execute, simulator, workflow_id, time):
    simulator.start_execution(workflow_id, status="new")
    message = "status 'queued' cannot be combined with started_before or older_than"
    for status in ("queued", ["running", "queued"]):
        with pytest.raises(errors.ServiceInputError, match=message):
            ServiceStopExecutionsOperator(task_id="task", all_workflows=True, status=status, **time)
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceStopExecutionsOperator, all_workflows=True, status="{{ 'queued' }}", **time)
    assert not simulator.requests
    assert execute(ServiceStopExecutionsOperator, all_workflows=True, **time)["stopped"] == 0
    assert execute(ServiceStopExecutionsOperator, all_workflows=True, status="queued")["stopped"] == 1


def test_the_word_that_means_every_workflow_is_no_id(execute, client, simulator, workflow_id):
    running = simulator.start_execution(workflow_id)
    with pytest.raises(AirflowFailException, match="workflow_id must be the id of a workflow, not 'all'"):
        execute(ServiceStopExecutionsOperator, workflow_id="{{ 'all' }}")
    assert client.executions.get(running).status == "running"


@pytest.mark.parametrize("operator", [ServiceStopExecutionsOperator, ServiceDeleteExecutionsOperator])
@pytest.mark.parametrize("project", ["project_id", "project_name"])
def test_a_project_with_all_workflows_is_refused(execute, simulator, operator, project):
    message = "a project can only narrow workflow_name"
    with pytest.raises(errors.ServiceInputError, match=message):
        operator(task_id="task", all_workflows=True, **{project: "Sales"})
    with pytest.raises(AirflowFailException, match=message):
        execute(operator, all_workflows=True, **{project: "{{ 'Sales' }}"})
    assert not simulator.requests


# ---------------------------------------------------------------- delete


def test_deleting_by_id_twice(execute, client, simulator, workflow_id):
    gone = [simulator.start_execution(workflow_id, status="success") for _ in range(3)]
    kept = simulator.start_execution(workflow_id, status="success")
    first = execute(ServiceDeleteExecutionsOperator, execution_ids=gone)
    assert (first["deleted"], first["missing"], first["execution_ids"]) == (3, 0, gone)
    second = execute(ServiceDeleteExecutionsOperator, execution_ids=gone)
    assert (second["deleted"], second["missing"]) == (0, 3)
    assert held(client) == {kept}
    with pytest.raises(errors.ServiceNotFoundError):
        execute(ServiceDeleteExecutionsOperator, execution_ids=gone, if_missing="fail")


def test_one_that_is_missing_fails_the_task_once_the_others_are_deleted(execute, client, simulator, workflow_id):
    first, second = (simulator.start_execution(workflow_id, status="error") for _ in range(2))
    simulator.inject("status", status=500, method="DELETE", path=f"/executions/{second}$")
    ids = {"execution_ids": [first, second], "if_missing": "fail"}
    with pytest.raises(errors.ServiceServerError):
        execute(ServiceDeleteExecutionsOperator, **ids)
    with pytest.raises(errors.ServiceNotFoundError, match=f"/executions/{first}"):
        execute(ServiceDeleteExecutionsOperator, **ids)
    assert held(client) == set()


def test_an_id_that_is_given_twice_is_deleted_once(execute, simulator, workflow_id):
    one = simulator.start_execution(workflow_id, status="error")
    done = execute(ServiceDeleteExecutionsOperator, execution_ids=[one, int(one)], if_missing="fail")
    assert (done["selected"], done["deleted"], done["missing"], done["execution_ids"]) == (1, 1, 0, [one])


@pytest.mark.parametrize("version", ["2.20.12", "2.41.1"])
def test_deleting_old_executions_leaves_active_ones(
    execute, client, simulator, link, workflow_id, other_workflow_id, version
):
    simulator.version = version
    ended = [simulator.start_execution(workflow_id, status=one) for one in ("success", "error", "canceled", "crashed")]
    going_on = [simulator.start_execution(workflow_id, status=one) for one in ("running", "waiting", "new")]
    other = simulator.start_execution(other_workflow_id, status="success")
    simulator.clock.advance(7200)
    young = simulator.start_execution(workflow_id, status="success")
    selection = {
        "workflow_id": workflow_id,
        "started_before": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
    }
    preview = execute(ServiceDeleteExecutionsOperator, **selection, preview=True)
    assert (preview["selected"], preview["deleted"], preview["preview"]) == (4, 0, True)
    assert set(preview["execution_ids"]) == set(ended)
    assert len(held(client)) == 9
    done = execute(ServiceDeleteExecutionsOperator, **selection)
    assert (done["selected"], done["deleted"], done["more"]) == (4, 4, False)
    assert held(client) == {*going_on, other, young}
    assert execute(ServiceDeleteExecutionsOperator, **selection)["deleted"] == 0
    assert link() == f"/workflow/{workflow_id}/executions"


def test_the_log_counts_executions_that_are_deleted_or_would_be(execute, simulator, workflow_id, caplog):
    caplog.set_level("INFO")
    one = simulator.start_execution(workflow_id, status="success")
    for preview in (True, False):
        execute(ServiceDeleteExecutionsOperator, execution_ids=[one], preview=preview)
    execute(ServiceDeleteExecutionsOperator, execution_ids=[one])
    for line in ("that would be deleted: 1; see", "deleted: 1; see", "deleted: 0, that did not exist: 1; see"):
        assert f"Executions {line} http" in caplog.text


def test_older_than_counts_from_now(execute, simulator, workflow_id):
    simulator.start_execution(workflow_id, status="success")
    arguments = {"workflow_id": workflow_id, "preview": True}
    ids = [
        execute(ServiceDeleteExecutionsOperator, **arguments, older_than=age)["execution_ids"]
        for age in (timedelta(hours=1), 3600, 0)
    ]
    assert [len(one) for one in ids] == [0, 0, 1]


def test_deletions_are_limited_and_the_rest_is_for_the_next_run(execute, client, simulator, workflow_id):
    ids = [simulator.start_execution(workflow_id, status="error") for _ in range(5)]
    selection = {"all_workflows": True, "status": ["error", "crashed"], "max_deletions": "3"}
    first = execute(ServiceDeleteExecutionsOperator, **selection)
    assert (first["deleted"], first["more"], len(held(client))) == (3, True, 2)
    second = execute(ServiceDeleteExecutionsOperator, **selection)
    assert (second["deleted"], second["more"], held(client)) == (2, False, set())
    assert {*first["execution_ids"], *second["execution_ids"]} == set(ids)


@pytest.mark.slow
def test_a_selection_of_several_pages_is_deleted_in_whole(execute, client, simulator, workflow_id):
    for _ in range(270):
        simulator.start_execution(workflow_id, status="success")
    done = execute(ServiceDeleteExecutionsOperator, workflow_id=workflow_id)
    assert (done["deleted"], len(done["execution_ids"]), held(client)) == (270, 100, set())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either workflow_id or workflow_name, or all_workflows=True for the executions of every workflow"),
        (
            {"status": "error", "older_than": timedelta(days=30)},
            "give either workflow_id or workflow_name, or all_workflows=True",
        ),
        (
            {"workflow_id": "w", "all_workflows": True},
            "give either workflow_id or workflow_name, or all_workflows=True",
        ),
        ({"execution_ids": [1], "all_workflows": True}, "give either execution_ids, or a selection"),
        (
            {"execution_ids": [1, None]},
            "each of execution_ids must be a whole number from 1 to 9007199254740992, not No",
        ),
        (
            {"execution_ids": [10**5000]},
            "each of execution_ids must be a whole number .*, not a number with too many dig",
        ),
        ({"execution_ids": [1], "status": "error"}, "give either execution_ids, or a selection"),
        ({"execution_ids": "12"}, "execution_ids must be a list, not str"),
    ],
)
def test_deleting_refuses(execute, simulator, arguments, message):
    with pytest.raises((AirflowFailException, ServiceInputError), match=message):
        execute(ServiceDeleteExecutionsOperator, **arguments)
    assert not simulator.requests


def test_a_running_execution_is_refused_by_the_service_until_it_has_ended(execute, simulator, workflow_id):
    running = simulator.start_execution(workflow_id)
    with pytest.raises(AirflowException, match="Cannot delete a running execution") as caught:
        execute(ServiceDeleteExecutionsOperator, execution_ids=[running])
    assert not isinstance(caught.value, AirflowFailException)  # a retry may help
