"""Runs beyond the concurrency limit: their callers, which run starts when one leaves, and restarts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.polling import wait_until

from .api_client import Api


def full(build: Any, *, queued: int = 0) -> Api:
    """A service with room for one run, which the first one takes for 60 s; others queue behind it."""
    api: Api = build(concurrency_limit=1)
    api.simulator.create_webhook_workflow(path="x", behaviour="long", seconds=60, respond_with_id=True)
    assert api.hook("x", {}).json() == {"executionId": "1"}
    for number in range(2, queued + 2):
        with api.unanswered("/webhook/x", {}):
            wait_until(lambda: api.get(f"/executions/{number}").ok, what="the queued run")  # noqa: B023
    return api


def statuses(api: Api, count: int) -> list[str]:
    """Those of the first executions."""
    return [api.get(f"/executions/{number}").json()["status"] for number in range(1, count + 1)]


def test_immediate_answer_waits_for_a_free_slot(build: Any) -> None:
    api = full(build, queued=1)
    assert api.get("/executions/2").json()["status"] == "new"
    assert [found["id"] for found in api.get("/executions").json()["data"]] == ["2"]
    api.simulator.clock.advance(61)
    assert statuses(api, 2) == ["success", "running"]


def test_held_call_answers_once_its_run_starts(build: Any) -> None:
    api = build(concurrency_limit=1)
    api.simulator.create_webhook_workflow(path="x", behaviour="long", seconds=0.3, respond_with_id=True)
    api.hook("x", {})
    assert api.hook("x", {}).json() == {"executionId": "2"}
    assert statuses(api, 1) == ["success"]


@pytest.mark.parametrize("removal", ["stop", "delete"])
def test_caller_of_a_removed_queued_run_gets_no_answer(build: Any, removal: str) -> None:
    api = full(build)
    with api.unanswered("/webhook/x", {}):
        wait_until(lambda: api.get("/executions/2").status_code == 200)
        answer = api.post("/executions/2/stop") if removal == "stop" else api.delete("/executions/2")
        assert answer.status_code == 200
    assert api.get("/executions/2").status_code == (200 if removal == "stop" else 404)


def test_a_run_that_leaves_a_full_service_lets_another_in(build: Any) -> None:
    api = full(build, queued=4)
    assert statuses(api, 5) == ["running", "new", "new", "new", "new"]
    api.post("/executions/3/stop")
    assert statuses(api, 5) == ["running", "running", "canceled", "new", "new"]
    api.post("/executions/1/stop")
    assert statuses(api, 5) == ["canceled", "running", "canceled", "running", "new"]
    # A retry has no place in the queue, so its end lets nobody in.
    api.post("/executions/1/retry")
    wait_until(lambda: api.get("/executions/6").json()["status"] == "success")
    assert statuses(api, 5) == ["canceled", "running", "canceled", "running", "new"]
    api.simulator.clock.advance(61)
    assert statuses(api, 5) == ["canceled", "success", "canceled", "success", "running"]


def test_a_second_restart_while_it_boots_keeps_to_the_limit(build: Any) -> None:
    api = full(build, queued=2)
    api.simulator.restart(boot_seconds=10)
    api.simulator.restart(boot_seconds=10)
    api.simulator.clock.advance(11)
    assert statuses(api, 3) == ["crashed", "running", "new"]
