from __future__ import annotations

import pytest

from airflow_provider_service.simulator.stores.test_runs import Outcome

from .api_client import Api


@pytest.fixture
def runs(api: Api) -> str:
    return f"/workflows/{api.simulator.create_webhook_workflow(path='p')['id']}/test-runs"


def test_a_run_completes_by_the_clock(api: Api, runs: str) -> None:
    started = api.post(runs)
    assert started.status_code == 201
    assert (set(started.json()), started.json()["status"]) == ({"id", "status", "createdAt"}, "new")
    path = f"{runs}/{started.json()['id']}"
    running = api.get(path).json()
    assert (running["status"], running["completedAt"], running["finalResult"]) == ("running", None, None)
    assert {case["status"] for case in api.get(f"{path}/test-cases").json()["data"]} == {"running"}
    api.simulator.clock.advance(2)
    done = api.get(path).json()
    assert (done["status"], done["finalResult"], done["testCaseCount"]) == ("completed", "success", 2)
    assert done["completedAt"] > done["runAt"]
    assert {case["status"] for case in api.get(f"{path}/test-cases").json()["data"]} == {"success"}
    assert api.get(runs).json()["data"] == [done]
    assert api.get(f"{runs}?status=running").json()["data"] == []


def test_a_run_can_be_made_to_fail(api: Api, runs: str) -> None:
    api.simulator.state.test_runs.outcome = Outcome(seconds=0, error_code="EVALUATION_TRIGGER_NOT_FOUND")
    run = api.get(f"{runs}/{api.post(runs).json()['id']}").json()
    assert (run["status"], run["finalResult"], run["errorCode"]) == ("error", "error", "EVALUATION_TRIGGER_NOT_FOUND")


def test_an_unknown_workflow_has_no_runs(api: Api) -> None:
    assert api.get("/workflows/nope/test-runs").json() == {"data": [], "nextCursor": None}
    assert api.post("/workflows/nope/test-runs").status_code == 404


def test_starting_and_cancelling_need_a_license(api: Api, runs: str) -> None:
    run_id = api.post(runs).json()["id"]
    api.simulator.state.licensed = False
    for answer in (api.post(runs), api.post(f"{runs}/{run_id}/cancel")):
        assert (answer.status_code, answer.json()) == (403, {"message": "Evaluations are not available on your plan"})
    assert api.get(f"{runs}/{run_id}").status_code == 200
