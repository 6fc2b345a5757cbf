"""Bridges whose execution ends before it shows what it has started."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs.start_methods.bridge import Children, Started
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceRunNotStartedError
from airflow_provider_service.simulator import ServiceSimulator

from .conftest import MakeRun, connect
from .workflows import CALLED, DONE, bridge_of, bridged, held, put, put_bridge, statuses, wait


@pytest.mark.parametrize("had_started", [True, False], ids=["after", "before"])
def test_a_bridge_that_died(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, had_started: bool
) -> None:
    connect(monkeypatch, simulator, extra={"retry_deadline": 30})  # the webhook of the bridge goes live a little late
    workflow_id = put(simulator, CALLED, wait(0.5), DONE)
    run = task_run(workflow_id=workflow_id, timeout=600)
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
    run = task_run(workflow_id=workflow_id, timeout=600)
    with pytest.raises(ServiceRunNotStartedError, match=r"Workflow did not finish.*; nothing was started"):
        run.attempt(1)
    assert run.attempt(2)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 1
    assert statuses(simulator, bridge_id) == ["crashed", "success"]


class Canceled:
    """A bridge whose execution is canceled and only later starts the workflow, which then names it as its parent.

    :param ends: seconds after which the execution shows its end.
    :param starts: seconds after which it starts the workflow.
    """

    def __init__(
        self, simulator: ServiceSimulator, workflow_id: str, *, ends: float = 0.0, starts: float | None = None
    ) -> None:
        self._simulator, self._workflow_id = simulator, workflow_id
        self._ends, self._starts = ends, starts
        self.bridge_id = put_bridge(simulator)

    def cancel(self, *_: object) -> None:
        """Cancel the only execution of the bridge."""
        self._simulator.in_loop(self._cancel)

    def _cancel(self) -> None:
        state, now = self._simulator.state, self._simulator.clock.now()
        [parent] = state.executions.of_workflow(self.bridge_id)
        [child] = state.executions.of_workflow(self._workflow_id)
        parent.run.run_data.pop("Start", None)
        parent.status, child.parent = "running", None

        def end(_: object) -> None:
            parent.status, parent.stopped_at = "canceled", self._simulator.clock.now()

        state.engine._schedule.at(now + timedelta(seconds=self._ends), end)
        if self._starts is not None:
            begin = now + timedelta(seconds=self._starts)
            state.engine._schedule.at(begin, lambda _: setattr(child, "parent", parent))


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(("ends", "starts"), [(0, 2), (0, 25), (28, 45)], ids=["soon", "late", "canceled late"])
def test_a_canceled_bridge_still_starts_the_workflow(
    task_run: MakeRun, simulator: ServiceSimulator, before_request: Callable[..., None], ends: float, starts: float
) -> None:
    workflow_id = put(simulator, CALLED, DONE)
    bridge = Canceled(simulator, workflow_id, ends=ends, starts=starts)
    before_request("GET", "/executions/", bridge.cancel)
    assert task_run(workflow_id=workflow_id).attempt(1)["status"] == "success"
    assert len(held(simulator, workflow_id)) == 1
    assert statuses(simulator, bridge.bridge_id) == ["canceled"]


def test_a_search_proves_nothing_if_it_began_soon_after_the_end(
    task_run: MakeRun, simulator: ServiceSimulator, client: ServiceClient, before_request: Callable[..., None]
) -> None:
    workflow_id = put(simulator, CALLED, DONE)
    bridge = Canceled(simulator, workflow_id)
    task_run(workflow_id=workflow_id).attempt(1)
    bridge.cancel()
    [parent] = bridged(simulator)
    children = Children(workflow_id, threading.Event(), are_kept=True)

    def look_after(seconds: float) -> Started | None:
        clock().sleep(seconds)
        return children.started_by(client, str(parent.id))

    assert look_after(1) is None
    before_request("GET", "/executions$", lambda _: clock().sleep(5))
    assert look_after(29) is None
    started = look_after(0)
    assert started is not None
    assert started.execution_id is None


def test_a_canceled_bridge_whose_workflow_keeps_no_executions_is_in_doubt(
    task_run: MakeRun, simulator: ServiceSimulator, before_request: Callable[..., None]
) -> None:
    workflow_id = put(simulator, CALLED, wait(600), DONE, saveDataSuccessExecution="none")
    bridge = Canceled(simulator, workflow_id)
    before_request("GET", "/executions/", bridge.cancel)
    with pytest.raises(AirflowFailException, match="does not show what it started"):
        task_run(workflow_id=workflow_id).attempt(1)


@pytest.mark.slow
@pytest.mark.parametrize("days", [0, 1], ids=["just", "long ago"])
def test_only_a_bridge_that_has_just_ended_is_waited_for(
    task_run: MakeRun, simulator: ServiceSimulator, before_request: Callable[..., None], days: int
) -> None:
    workflow_id = put(simulator, CALLED, DONE)
    bridge = Canceled(simulator, workflow_id)
    before_request("GET", "/executions/", bridge.cancel)
    run = task_run(workflow_id=workflow_id, timeout=600)
    with pytest.raises(ServiceRunNotStartedError, match="its execution is canceled; nothing was started"):
        run.attempt(1)
    clock().sleep(days * 86400)
    began = clock().monotonic()
    run.attempt(2)
    assert (clock().monotonic() - began > 30) == (days == 0)
