"""A hundred mapped runs at a time."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import first_event, revived

from .conftest import MakeRun
from .workflows import DONE, WITH_ID, held, put, started_with, statuses, wait, webhook

RUNS = 100


@pytest.mark.slow
@pytest.mark.parametrize("answers", [{"responseData": WITH_ID}, {}], ids=["with the id", "without"])
@pytest.mark.usefixtures("answers_come_first")
def test_a_hundred_deferred_runs(task_run: MakeRun, simulator: ServiceSimulator, answers: dict[str, Any]) -> None:
    workflow_id = put(simulator, webhook(options=answers), wait(8), DONE)
    runs = [
        task_run(workflow_id=workflow_id, map_index=index, payload={"n": index}, deferrable=True, poll_interval=1.0)
        for index in range(RUNS)
    ]
    deferred = []
    for run in runs:
        with pytest.raises(TaskDeferred) as caught:
            run.attempt(1)
        deferred.append(caught.value)
        run.close()
    asked = Counter(re.sub(r"\d+|\w{16}", "*", request.path.removeprefix("/api/v1")) for request in simulator.requests)
    assert asked["/webhook/w"] == RUNS
    # The workflow, the call, the execution with its data and without; a list or two where the call does not name it.
    assert asked.total() <= RUNS * (6 if not answers else 5)
    simulator.clear_requests()

    async def triggerer() -> list[Any]:
        return await asyncio.gather(*(first_event(revived(one.trigger)) for one in deferred))

    events = asyncio.run(triggerer())
    assert len(simulator.requests) < RUNS
    ended = [run.resume(1, one, event) for run, one, event in zip(runs, deferred, events, strict=True)]
    numbers = {str(one.id): started_with(one)["body"]["n"] for one in held(simulator, workflow_id)}
    assert [numbers[one["execution_id"]] for one in ended] == list(range(RUNS))
    assert statuses(simulator, workflow_id) == ["success"] * RUNS
