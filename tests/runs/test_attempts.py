"""The attempts of one task run: which execution they resume, and when they start a new one."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred

from airflow_provider_service._airflow.attempts import ATTEMPTS_KEY
from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.attempt import STATE_KEY, Attempt
from airflow_provider_service._core.runs.searching import RUN_KEY_HEADER
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import (
    ServiceExecutionFailedError,
    ServiceWaitError,
    ServiceWebhookNotLiveError,
    ServiceWebhookRefusedError,
)
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun, connect
from .cutting import cut_off, end_each
from .task_run import StateStore
from .workflows import (
    DONE,
    FAIL,
    WITH_ID,
    calls,
    held,
    put,
    set_live,
    statuses,
    wait,
    webhook,
    with_credential,
)

SIGNING = "a secret that is long enough for every algorithm " * 2


@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
@pytest.mark.parametrize("seconds", [0, 1.5])
def test_an_attempt_resumes_what_a_dead_one_started(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, mode: str, seconds: float
) -> None:
    workflow_id = put(simulator, webhook(mode=mode), wait(seconds), DONE)
    run = make_run(workflow_id=workflow_id, store=store)
    cut_off(run)
    assert run.whole_attempt(2)["execution_id"] == str(held(simulator, workflow_id)[0].id)
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 1)


def test_an_attempt_that_died_before_its_call_started_nothing(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    assert make_run(workflow_id=workflow_id, store=store).whole_attempt(2)["status"] == "success"
    assert calls(simulator) == 1


def test_a_call_that_was_still_on_its_way_is_waited_for(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run = task_run(workflow_id=workflow_id)
    context = run.prepare(2)
    first = Attempt.of_task(context).key._replace(attempt=1).header

    def arrive() -> None:
        clock().sleep(searching.SETTLING_SECONDS / 2)
        requests.post(f"{simulator.base_url}/webhook/w", json={}, headers={RUN_KEY_HEADER: first}, timeout=60).close()

    late = threading.Thread(target=arrive)
    late.start()
    assert run.task.execute(context)["execution_id"] == "1"
    late.join()
    assert calls(simulator) == 1


def test_the_store_saves_the_search(task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path) -> None:
    store = StateStore(tmp_path / "state.json")
    put(simulator, webhook(), wait(3), DONE, name="Nightly sync")
    run = task_run(workflow_name="Nightly sync", store=store, deferrable=True)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    assert store.get("service_execution")["execution_id"] == "1"
    simulator.clear_requests()
    assert run.whole_attempt(2)["execution_id"] == "1"
    assert run.pushed["service_execution"]["workflow_name"] == "Nightly sync"
    assert not [request for request in simulator.requests if request.path.endswith("/executions")]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("status", ["error", "canceled", "crashed"])
def test_a_run_that_failed_is_followed_by_a_new_one(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None, status: str
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = make_run(workflow_id=workflow_id, store=store)
    end_each(run, simulator, status)
    for number in (1, 2):
        with pytest.raises(ServiceExecutionFailedError):
            run.whole_attempt(number)
    end_each(run, simulator, "success")
    assert run.whole_attempt(3)["execution_id"] == "3"
    assert statuses(simulator, workflow_id) == [status, status, "success"]


def test_a_run_that_was_not_observed_is_resumed(
    make_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), wait(0.6), DONE)
    run = make_run(workflow_id=workflow_id, store=store)
    simulator.inject("status", status=401, path="/executions/1$", times=3)
    with pytest.raises(Exception, match="401"):
        run.whole_attempt(1)
    simulator.clear_faults()
    assert run.whole_attempt(2)["execution_id"] == "1"
    assert calls(simulator) == 1


def test_the_run_of_a_deferred_wait_that_was_not_observed_is_resumed(
    task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(), wait(3), DONE)
    run = task_run(workflow_id=workflow_id, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        run.attempt(1)
    with pytest.raises(ServiceWaitError):
        run.resume(1, deferred.value, {"of": "another shape"})
    assert run.whole_attempt(2)["execution_id"] == "1"
    assert calls(simulator) == 1


def test_a_timed_out_run_that_could_not_be_stopped_is_resumed(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = task_run(workflow_id=workflow_id)
    simulator.inject("status", status=500, path="/stop$")
    with pytest.raises(ServiceExecutionFailedError, match="could NOT be stopped and may still be running"):
        run.attempt(1, timeout=20, poll_interval=5)
    end_each(run, simulator, "success")
    assert run.attempt(2)["execution_id"] == "1"


def test_a_vanished_run_is_not_repeated(task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"), deferrable=True)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    simulator.forget_execution("1")
    with pytest.raises(AirflowFailException, match="execution 1 cannot be found"):
        run.attempt(2)
    assert calls(simulator) == 1


def test_the_note_and_the_id_are_plain_json(task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    task_run(workflow_id=put(simulator, webhook(), DONE), store=StateStore(path)).attempt(1)
    state = json.loads(path.read_text())
    kept = state.pop(STATE_KEY)
    assert kept.keys() == {"key", "attempt", "execution_id", "workflow_id", "after", "retried", "first", "order"}
    assert (kept["attempt"], kept["execution_id"]) == (1, "1")
    page = f"{simulator.base_url}/workflow/{kept['workflow_id']}/executions/1"
    assert state == {ATTEMPTS_KEY: {"1": {"execution": page}}}


# ---------------------------------------------------------------- task runs are distinguished


@pytest.mark.parametrize("store", ["task_state_store"], indirect=True)
def test_a_cleared_task_starts_a_new_run(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    for kept in (None, store):
        simulator.reset()
        workflow_id = put(simulator, webhook(), DONE)
        run = task_run(workflow_id=workflow_id, store=kept)
        ids = [run.attempt(1)["execution_id"], run.attempt(2)["execution_id"]]
        # Cleared after two tries: as many retries again as at the first time.
        run.max_tries = 2 + run.retries
        ids += [run.attempt(3)["execution_id"], run.attempt(4)["execution_id"]]
        assert ids == ["1", "1", "2", "2"]


def test_a_task_cleared_while_it_ran_resumes_its_run(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run = task_run(workflow_id=workflow_id)
    run.retries = run.max_tries = 0
    assert [run.attempt(number)["execution_id"] for number in (1, 2)] == ["1", "1"]


def test_a_cleared_task_resumes_what_still_runs(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, store=store)
    cut_off(run)
    run.max_tries = 1 + run.retries
    end_each(run, simulator, "success")
    assert run.whole_attempt(2)["execution_id"] == "1"
    assert calls(simulator) == 1


def test_a_refused_call_leaves_no_doubt(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 0.2})
    workflow_id = put(simulator, webhook(), DONE, saveDataErrorExecution="none")
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"))
    set_live(simulator, workflow_id, False)
    with pytest.raises(ServiceWebhookNotLiveError):
        run.attempt(1)
    set_live(simulator, workflow_id, True)
    assert run.attempt(2)["status"] == "success"


AUTHENTICATIONS: dict[str, tuple[str, str, dict[str, str], str, str]] = {
    "user and password": ("basicAuth", "httpBasicAuth", {"user": "me", "password": "right one"}, "me", "wrong one"),
    "no password": ("basicAuth", "httpBasicAuth", {"user": "me", "password": "right one"}, "me", ""),
    "header": ("headerAuth", "httpHeaderAuth", {"name": "X-Own", "value": "right one"}, "X-Own", "wrong one"),
    "no header": ("headerAuth", "httpHeaderAuth", {"name": "X-Own", "value": "right one"}, "X-Other", "right one"),
    "token": ("jwtAuth", "jwtAuth", {"secret": SIGNING, "algorithm": "HS256"}, "", SIGNING[1:]),
    "no token": ("jwtAuth", "jwtAuth", {"secret": SIGNING, "algorithm": "HS256"}, "Authorization", "Bearer"),
    "malformed token": ("jwtAuth", "jwtAuth", {"secret": SIGNING, "algorithm": "HS256"}, "Authorization", "Bearer x"),
}


@pytest.mark.parametrize("name", AUTHENTICATIONS)
def test_a_refused_authentication_leaves_no_doubt(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path, name: str
) -> None:
    def own(login: str, password: str) -> None:
        fields = {"conn_type": "generic", "login": login, "password": password}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(fields))

    kind, credential_type, data, login, wrong = AUTHENTICATIONS[name]
    workflow_id = with_credential(simulator, kind, credential_type, data, saveDataErrorExecution="none")
    run = task_run(workflow_id=workflow_id, webhook_conn_id="hook", store=StateStore(tmp_path / "state.json"))
    own(login, wrong)
    with pytest.raises(ServiceWebhookRefusedError):
        run.attempt(1)
    assert (calls(simulator), held(simulator, workflow_id)) == (1, [])
    own(data.get("user") or data.get("name") or "", data.get("password") or data.get("value") or SIGNING)
    assert run.attempt(2)["status"] == "success"
    assert (statuses(simulator, workflow_id), calls(simulator)) == (["success"], 2)


def test_a_call_that_cannot_be_sent_leaves_no_doubt(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    # The webhook has a separate address, whose proxy cannot be used.
    connect(monkeypatch, simulator, extra={"webhook_base_url": simulator.base_url.replace("127.0.0.1", "localhost")})
    monkeypatch.setenv("http_proxy", "http://[::1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    workflow_id = put(simulator, webhook(), DONE, saveDataErrorExecution="none")
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"))
    with pytest.raises(AirflowFailException, match=r"the proxy .* cannot be used"):
        run.attempt(1)
    connect(monkeypatch, simulator)
    assert run.attempt(2)["status"] == "success"


def test_mapped_tasks_and_deployments_have_separate_runs(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    began = datetime.now(UTC)
    runs = [task_run(workflow_id=workflow_id, map_index=index, began=began) for index in (-1, 0, 1)]
    runs.append(task_run(workflow_id=workflow_id, began=began - timedelta(seconds=1)))
    first = [run.attempt(1)["execution_id"] for run in runs]
    assert first == ["1", "2", "3", "4"]
    assert [run.attempt(2)["execution_id"] for run in runs] == first


def test_a_context_without_a_dag_run(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    run = task_run(workflow_id=workflow_id)
    for number in (1, 2):
        context = run.prepare(number)
        del context["dag_run"]
        assert run.task.execute(context)["execution_id"] == "1"


# ---------------------------------------------------------------- executions that cannot be searched for


UNKEPT: dict[str, Any] = {"saveDataSuccessExecution": "none"}


@pytest.mark.usefixtures("answers_come_first")
def test_without_executions_to_search_an_attempt_refuses_to_double(
    task_run: MakeRun, simulator: ServiceSimulator, store: StateStore | None
) -> None:
    workflow_id = put(simulator, webhook(mode="lastNode"), DONE, **UNKEPT)
    run = task_run(workflow_id=workflow_id, store=store)
    with pytest.raises(AirflowFailException, match="it has ended without being saved"):
        run.attempt(1)
    with pytest.raises(AirflowFailException, match=r"may have run workflow .*does not keep all.*clear the task"):
        run.attempt(2)
    assert calls(simulator) == 1


def test_a_gap_between_the_attempts_is_doubt_too(task_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), FAIL, **UNKEPT)
    run = task_run(workflow_id=workflow_id)
    with pytest.raises(ServiceExecutionFailedError):
        run.attempt(1)
    with pytest.raises(ServiceExecutionFailedError):
        run.attempt(2)
    # The third may have succeeded without being kept.
    with pytest.raises(AirflowFailException, match="does not keep all its executions"):
        run.attempt(4)
    assert statuses(simulator, workflow_id) == ["error", "error"]


def test_with_a_store_it_is_known_that_nothing_was_called(
    task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), wait(0.3), DONE, **UNKEPT)
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "state.json"), on_vanished="succeed")
    assert run.attempt(2)["execution_id"] == "1"


@pytest.fixture
def redacting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that shows no data of executions."""
    from airflow_provider_service.simulator._routes import executions

    monkeypatch.setattr(executions, "execution_data", lambda execution: {"resultData": {"runData": {}}})


def test_with_hidden_data_an_attempt_refuses_to_double(
    redacting: None, task_run: MakeRun, simulator: ServiceSimulator
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), DONE)
    run = task_run(workflow_id=workflow_id)
    assert run.attempt(1)["status"] == "success"
    with pytest.raises(AirflowFailException, match="executions 1 do not show what started them"):
        run.attempt(2)
    assert calls(simulator) == 1


@pytest.mark.parametrize("on_retry", ["new", "retry_execution"])
def test_with_hidden_data_the_store_knows(
    redacting: None, task_run: MakeRun, simulator: ServiceSimulator, tmp_path: Path, on_retry: str
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), wait(30), DONE)
    run = task_run(workflow_id=workflow_id, store=StateStore(tmp_path / "s.json"), deferrable=True, on_retry=on_retry)
    with pytest.raises(TaskDeferred):
        run.attempt(1)
    simulator.finish_execution("1", "error")
    end_each(run, simulator, "success")
    run.whole_attempt(2)
    [first, second] = held(simulator, workflow_id)
    assert (first.status, second.status) == ("error", "success")
    assert second.retry_of == (1 if on_retry == "retry_execution" else None)
