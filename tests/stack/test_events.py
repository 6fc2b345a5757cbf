"""Ends of executions become events: none is missed, whatever is killed."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from datetime import datetime
from typing import Any

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._lookup import find_workflow
from tests.polling import wait_until

from .airflow_api import AirflowApi
from .conftest import IS_SHORT, WATCHED
from .deployment import Deployment
from .figures import FIGURES
from .simulated import SimulatedService

EVENTS, KILL_EVERY = (12, 4) if IS_SHORT else (50, 7)
# The documentation grants an event that happened so long before its triggerer died to be repeated; besides that,
# Airflow's database and the kill have clocks of their own.
REPEATED_WITHIN_SECONDS = 2 + 2


def test_every_end_is_reported_although_triggerers_are_killed(
    deployment: Deployment, api: AirflowApi, service: SimulatedService, client: ServiceClient
) -> None:
    workflow = find_workflow(client, WATCHED)
    assert workflow is not None
    api.unpause("stack_events")
    # The watch begins with its first look: what ended before is not reported.
    wait_until(lambda: is_reported(api, service, workflow.id), seconds=180, what="the watch to begin", interval=3)
    triggerers = itertools.cycle([deployment["triggerer-1"], deployment["triggerer-2"]])
    ended, kills = [], []
    for number in range(EVENTS):
        ended.append(service.start_execution(workflow.id, "success" if number % 2 else "error"))
        time.sleep(1)
        if number % KILL_EVERY == KILL_EVERY - 1:
            victim = next(triggerers)
            victim.kill()
            kills.append(time.time())  # afterwards, because what is reported in between is reported before the kill
            victim.start()

    wait_until(lambda: set(ended) <= reported(api).keys(), seconds=300, what="all events", interval=2)

    time.sleep(10)  # a repeat, if there is one, comes late
    events = {one: found for one, found in reported(api).items() if one in set(ended)}
    repeated = {one: found for one, found in events.items() if len(found) > 1}
    FIGURES.add("events", len(events))
    FIGURES.add("kills of a triggerer that watches", len(kills))
    FIGURES.add("events repeated after a kill", len(repeated))
    for found in repeated.values():
        first = min(found)
        assert any(0 <= kill - first <= REPEATED_WITHIN_SECONDS for kill in kills), (found, kills)
    assert Counter(ended) == Counter(events.keys())


def is_reported(api: AirflowApi, service: SimulatedService, workflow_id: str) -> bool:
    """Whether an execution that ends now soon becomes an event."""
    one = service.start_execution(workflow_id, "success")
    try:
        return bool(wait_until(lambda: one in reported(api), seconds=8, what="an event", interval=1))
    except TimeoutError:
        return False


def reported(api: AirflowApi) -> dict[str, list[float]]:
    """The times at which each execution was reported, in seconds since the epoch, by its id."""
    found: dict[str, list[float]] = {}
    for event in api.asset_events():
        if event["name"] == "stack_ends":
            payload: dict[str, Any] = event["extra"]["payload"]
            moment = datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00")).timestamp()
            found.setdefault(payload["execution_id"], []).append(moment)
    return found
