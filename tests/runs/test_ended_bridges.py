"""Bridges whose execution ends before it shows what it has started."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from airflow_provider_service.client.errors import ServiceRunNotStartedError
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun
from .workflows import CALLED, DONE, bridge_of, bridged, held, put, put_bridge, statuses, wait


@pytest.mark.parametrize("had_started", [True, False], ids=["after", "before"])
def test_a_bridge_that_died(task_run: MakeRun, simulator: ServiceSimulator, had_started: bool) -> None:
    workflow_id = put(simulator, CALLED, wait(0.5), DONE)
    run = task_run(workflow_id=workflow_id)
    first = run.attempt(1, wait_for_completion=False)

    def die() -> None:
        [execution] = simulator.state.executions.of_workflow(bridge_of(simulator))
        del execution.run.run_data["Start"][0]["metadata"]
        execution.run.crash(simulator.clock.now())
        execution.status = "crashed"
        if not had_started:
            simulator.state.engine.remove_workflow(workflow_id)

    bridged(simulator)
    simulator.in_loop(die)
    second = run.attempt(2)
    assert (second["execution_id"] == first["execution_id"], second["status"]) == (had_started, "success")
    assert len(held(simulator, workflow_id)) == 1


def test_a_bridge_that_dies_before_it_starts_anything_refuses_nothing(
    task_run: MakeRun, simulator: ServiceSimulator, before_request: Callable[..., None]
) -> None:
    bridge_id = put_bridge(simulator)
    workflow_id = put(simulator, CALLED, DONE)

    def die() -> None:
        [execution] = simulator.state.executions.of_workflow(bridge_id)
        execution.run.run_data.pop("Start", None)
        execution.run.crash(simulator.clock.now())
        execution.status = "crashed"
        simulator.state.engine.remove_workflow(workflow_id)

    before_request("GET", "/executions/", lambda _: simulator.in_loop(die))
    run = task_run(workflow_id=workflow_id)
    with pytest.raises(ServiceRunNotStartedError, match=r"Workflow did not finish.*; nothing was started"):
        run.attempt(1)
    assert run.attempt(2)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 1
    assert statuses(simulator, bridge_id) == ["crashed", "success"]


def test_a_canceled_bridge_still_starts_the_workflow(
    task_run: MakeRun, simulator: ServiceSimulator, before_request: Callable[..., None]
) -> None:
    bridge_id = put_bridge(simulator)
    workflow_id = put(simulator, CALLED, DONE)

    def cancel() -> None:
        [parent] = simulator.state.executions.of_workflow(bridge_id)
        [child] = simulator.state.executions.of_workflow(workflow_id)
        parent.run.run_data.pop("Start", None)
        parent.status, child.parent = "canceled", None
        later = simulator.clock.now() + timedelta(seconds=2)
        simulator.state.engine._schedule.at(later, lambda _: setattr(child, "parent", parent))

    before_request("GET", "/executions/", lambda _: simulator.in_loop(cancel))
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 1
    assert statuses(simulator, bridge_id) == ["canceled"]
