"""What runs and their waits report to Airflow's metrics."""

from __future__ import annotations

import threading

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.runs import searching
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.simulator import ServiceSimulator
from tests.reported_metrics import ReportedMetrics

from .conftest import MakeRun
from .cutting import cut_off, end_each
from .workflows import DONE, put, wait, webhook


def runs(metrics: ReportedMetrics) -> dict[str, int]:
    return {name: number for name, number in metrics.counters.items() if name.startswith("service.runs.")}


@pytest.mark.real_time  # by a clock that stands, a poll takes no time
def test_a_start_and_its_polls(make_run: MakeRun, simulator: ServiceSimulator, metrics: ReportedMetrics) -> None:
    run = make_run(workflow_id=put(simulator, webhook(), DONE))
    end_each(run, simulator, "success")
    run.whole_attempt(1)
    assert runs(metrics) == {"service.runs.started": 1}
    assert metrics.counters["service.polls.requests"] >= 1
    assert all(one.total_seconds() > 0 for one in metrics.durations["service.polls.duration"])
    assert len(metrics.durations["service.polls.duration"]) >= 1


@pytest.mark.real_time  # a thread of the test finishes the execution in real time
def test_waits_of_a_triggerer(task_run: MakeRun, simulator: ServiceSimulator, metrics: ReportedMetrics) -> None:
    run = task_run(workflow_id=put(simulator, webhook(), wait(30), DONE), deferrable=True)

    def finish_later(key: str, value: str) -> None:
        if key == "execution_id":
            threading.Timer(0.5, simulator.finish_execution, (value, "success")).start()

    run.on_push = finish_later
    run.whole_attempt(1)
    [name] = metrics.gauges
    assert name.startswith("service.waits.active.")
    assert set(metrics.gauges[name]) == {1, 0}
    assert metrics.gauges[name][-1] == 0


def test_a_run_that_is_resumed(make_run: MakeRun, simulator: ServiceSimulator, metrics: ReportedMetrics) -> None:
    run = make_run(workflow_id=put(simulator, webhook(), wait(30), DONE))
    cut_off(run)
    end_each(run, simulator, "success")
    run.whole_attempt(2)
    # The first attempt has reported its start before it died.
    assert runs(metrics) == {"service.runs.started": 1, "service.runs.resumed": 1}


def test_a_run_in_doubt(
    monkeypatch: pytest.MonkeyPatch, task_run: MakeRun, simulator: ServiceSimulator, metrics: ReportedMetrics
) -> None:
    # The call is answered before anybody looks for the execution, which is seen only while it runs.
    monkeypatch.setattr(searching, "ANSWER_PATIENCE_SECONDS", 120.0)
    run = task_run(workflow_id=put(simulator, webhook(mode="lastNode"), DONE, saveDataSuccessExecution="none"))
    with pytest.raises(AirflowFailException, match="it has ended without being saved"):
        run.attempt(1)
    assert runs(metrics) == {}  # it ran, and only its end cannot be seen
    with pytest.raises(AirflowFailException, match="may have run workflow"):
        run.attempt(2)
    assert runs(metrics) == {"service.runs.in_doubt": 1}


def test_the_hook_reports_too(simulator: ServiceSimulator, metrics: ReportedMetrics) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    with ServiceHook() as hook:
        hook.run_workflow(workflow_id=workflow_id, poll_interval=0.05)
    assert runs(metrics) == {"service.runs.started": 1}
