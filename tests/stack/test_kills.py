"""Exactly one successful execution per task, whichever process is killed, and whenever."""

from __future__ import annotations

import time
from collections import Counter

from airflow_provider_service.client import ServiceClient
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .conftest import IS_SHORT
from .deployment import Deployment
from .figures import FIGURES
from .kills import Killer
from .simulated import SimulatedService
from .waiting import finish_active

RUNS, KILLS = (24, 5) if IS_SHORT else (150, 30)
RUN_SECONDS = 8
END_SECONDS = 900 if IS_SHORT else 3600
FROZEN_RUNS = 8 if IS_SHORT else 20
# Airflow reassigns the triggers of a triggerer without a heartbeat for 30 s.
FROZEN_SECONDS = 48


def test_many_runs_while_processes_are_killed(
    deployment: Deployment, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    ids = [
        service.create_workflow(f"Killed, answers {name}", nodes)
        for name, nodes in workflows.every_way_to_answer(RUN_SECONDS).items()
    ]
    api.unpause("stack_many")
    run_id = api.trigger("stack_many", {"workflows": ids, "runs": RUNS})
    wait_until(service.calls, seconds=120, what="the first call")
    killer = Killer(deployment, service)

    def is_over() -> bool:
        return len({call.run_key.partition(".")[0] for call in service.calls()}) >= RUNS and no_task_waits()

    def no_task_waits() -> bool:
        return not [one for one in api.tasks("stack_many", run_id) if one.state not in ("success", "deferred")]

    while killer.kills < KILLS and not is_over():
        killer.kill_next(is_over)

    state = api.wait_for_run("stack_many", run_id, seconds=END_SECONDS)
    assert_exactly_one_each(client, ids, RUNS)
    assert state == "success"
    assert killer.kills >= KILLS, f"the tasks were over after {killer.kills} kills"


def test_a_triggerer_that_stalls_stops_nothing(
    deployment: Deployment, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    workflow_id = service.create_workflow("Stalled", workflows.endless())
    api.unpause("stack_many")
    run_id = api.trigger("stack_many", {"workflows": [workflow_id], "runs": FROZEN_RUNS})
    wait_until(
        lambda: api.task_states("stack_many", run_id).get("run") == {"deferred"},
        seconds=300,
        what="all tasks to be deferred",
        interval=1,
    )
    wait_until(lambda: not unassigned(deployment), seconds=60, what="all triggers to run", interval=1)

    calls_before = calls_of_on_kill(deployment)
    moved = stall_one_that_has_triggers(deployment)
    wait_until(
        lambda: calls_of_on_kill(deployment) > calls_before,
        seconds=300,
        what="the woken triggerer to call on_kill",
        interval=5,
    )
    time.sleep(15)  # for those of its other triggers, and for what they do

    finish_active(service, client, workflow_id)
    state = api.wait_for_run("stack_many", run_id, seconds=END_SECONDS)
    assert_exactly_one_each(client, [workflow_id], FROZEN_RUNS)
    assert state == "success"
    FIGURES.add(f"triggers taken from a triggerer that stalled for {FROZEN_SECONDS} s", moved)
    FIGURES.add("their calls of on_kill", calls_of_on_kill(deployment) - calls_before)


def stall_one_that_has_triggers(deployment: Deployment) -> int:
    """Stop a triggerer for a while, until Airflow has given its triggers to the other one; returns their number."""
    for name in ("triggerer-1", "triggerer-2"):
        before = triggerers(deployment)
        deployment[name].freeze()
        time.sleep(FROZEN_SECONDS)
        after = triggerers(deployment)
        moved = [trigger for trigger, owner in before.items() if after.get(trigger, owner) != owner]
        deployment[name].thaw()
        if moved:
            return len(moved)
    raise AssertionError("no trigger was taken from a triggerer that stalled")


def triggerers(deployment: Deployment) -> dict[str, str]:
    """Which triggerer has which trigger of a deferred task."""
    rows = deployment.query(
        "SELECT t.id, t.triggerer_id FROM trigger t JOIN task_instance ti ON ti.trigger_id = t.id"
        " WHERE t.triggerer_id IS NOT NULL"
    )
    return {str(trigger): owner for trigger, owner in rows}


def calls_of_on_kill(deployment: Deployment) -> int:
    """How often a triggerer says that it calls ``on_kill``, in the logs of tasks and in its own."""
    files = (file for name in ("logs", "output") for file in (deployment.folder / name).rglob("*"))
    return sum(file.read_bytes().count(b"invoking on_kill") for file in files if file.is_file())


def unassigned(deployment: Deployment) -> list[list[str]]:
    """Triggers of deferred tasks that no triggerer has taken."""
    return deployment.query(
        "SELECT t.id FROM trigger t JOIN task_instance ti ON ti.trigger_id = t.id WHERE t.triggerer_id IS NULL"
    )


def assert_exactly_one_each(client: ServiceClient, workflow_ids: list[str], runs: int) -> None:
    found = [one for workflow_id in workflow_ids for one in workflows.executions(client, workflow_id)]
    by_part = Counter(workflows.payload(one)["part"] for one in found if one.status == "success")
    left = [one.id for one in found if one.status in workflows.ACTIVE]
    stopped = [one.id for one in found if one.status == "canceled"]
    FIGURES.add("task runs among kills and stalls", runs)
    FIGURES.add("their executions", len(found))
    FIGURES.add("their doubled executions", sum(by_part.values()) - len(by_part))
    FIGURES.add("their executions stopped by us", len(stopped))
    FIGURES.add("their executions left running", len(left))
    assert stopped == []
    assert left == []
    assert by_part == Counter(range(runs))
    assert len(found) == runs
