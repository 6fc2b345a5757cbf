"""What a watcher watches: workflows by id or name, those of a tag or a project, or all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing._service import revived
from airflow_provider_service.triggers.events import ServiceExecutionEventTrigger
from tests import airflow_features
from tests.waits.driving import in_event_loop, until

from .persisting import PersistingTriggerer
from .watching import INTERVAL, AssetState, ids, polled

pytestmark = airflow_features.asset_watchers

Workflow = Callable[..., str]


@pytest.fixture
def workflow(simulator: ServiceSimulator, client: ServiceClient) -> Workflow:
    """``workflow(name, tag=None, project_id=None)`` creates a workflow and returns its id."""
    number = 0

    def create(name: str, *, tag: str | None = None, project_id: str | None = None) -> str:
        nonlocal number
        number += 1
        workflow_id = str(simulator.create_webhook_workflow(name, path=f"path{number}")["id"])
        if project_id is not None:
            client.workflows.transfer(workflow_id, project_id)
        if tag is not None:
            tags = {one.name: one.id for one in client.tags.list()}
            client.workflows.update_tags(workflow_id, [tags.get(tag) or client.tags.create(tag).id])
        return workflow_id

    return create


def watcher_of(state: AssetState | None = None, **selection: Any) -> ServiceExecutionEventTrigger:
    trigger = revived(ServiceExecutionEventTrigger(**selection, poll_interval=INTERVAL))
    assert isinstance(trigger, ServiceExecutionEventTrigger)
    trigger.asset_state_store = state  # type: ignore[assignment]
    return trigger


async def reported(triggerer: PersistingTriggerer, number: int, executions: set[str]) -> None:
    """Wait until a watcher has reported the ends of executions."""
    await until(lambda: executions <= set(ids(triggerer.events(number))))


@pytest.mark.slow
@in_event_loop
async def test_each_selection_reports_the_ends_of_its_workflows(
    simulator: ServiceSimulator, client: ServiceClient, workflow: Workflow
) -> None:
    sales = client.projects.create("Sales").id
    plain, tagged = workflow("Nightly"), workflow("Hourly", tag="prod")
    theirs, both = workflow("Nightly", project_id=sales), workflow("Weekly", tag="prod", project_id=sales)
    tag_id = next(one.id for one in client.tags.list())
    expected: dict[str, tuple[dict[str, Any], set[str]]] = {
        "ids": ({"workflow_id": [plain, both]}, {plain, both}),
        "names": ({"workflow_name": ["Hourly", "Weekly"]}, {tagged, both}),
        "name in project": ({"workflow_name": "Nightly", "project_name": "Sales"}, {theirs}),
        "tag": ({"tag_name": "prod"}, {tagged, both}),
        "tag by id": ({"tag_id": tag_id}, {tagged, both}),
        "tag in project": ({"tag_name": "prod", "project_id": sales}, {both}),
        "project": ({"project_id": sales}, {theirs, both}),
        "project by name": ({"project_name": "Sales"}, {theirs, both}),
        "all": ({"all_workflows": True}, {plain, tagged, theirs, both}),
    }
    triggerer = PersistingTriggerer()
    numbers = {name: triggerer.start(watcher_of(**selection)) for name, (selection, _) in expected.items()}

    def end_one_of_each() -> dict[str, str]:
        return {one: simulator.start_execution(one, status="success") for one in (plain, tagged, theirs, both)}

    # Only what ends after the first poll of a watcher is new to it, and nothing but an event shows that it has looked.
    earlier: list[dict[str, str]] = []
    while not all(triggerer.events(number) for number in numbers.values()):
        earlier.append(end_one_of_each())
        await polled(simulator, len(expected))
    last = end_one_of_each()
    for name, (_, workflows) in expected.items():
        await reported(triggerer, numbers[name], {last[one] for one in workflows})
    await polled(simulator, 3)

    for name, (_, workflows) in expected.items():
        ended = {one[workflow_id] for one in [*earlier, last] for workflow_id in workflows}
        assert set(ids(triggerer.events(numbers[name]))) <= ended, name
    await triggerer.shut_down()


@pytest.mark.slow
@in_event_loop
async def test_workflows_join_and_leave_a_tag_while_it_is_watched(
    simulator: ServiceSimulator, client: ServiceClient, workflow: Workflow
) -> None:
    old = workflow("Hourly", tag="prod")
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher_of(tag_name="prod"))
    await polled(simulator)

    new = workflow("Nightly", tag="prod")
    first = simulator.start_execution(new, status="success")
    await until(lambda: ids(triggerer.events(number)) == [first])

    client.workflows.update_tags(old, [])
    await polled(simulator, 12)
    simulator.start_execution(old, status="success")
    last = simulator.start_execution(new, status="error")
    await until(lambda: len(triggerer.events(number)) > 1)
    await polled(simulator, 3)
    assert ids(triggerer.events(number)) == [first, last]
    await triggerer.shut_down()


@pytest.mark.slow
@airflow_features.shared_polls
@in_event_loop
async def test_watchers_of_a_tag_read_its_workflows_together_and_seldom(
    simulator: ServiceSimulator, workflow: Workflow
) -> None:
    tagged = workflow("Hourly", tag="prod")
    triggerer = PersistingTriggerer()
    for _ in range(3):
        triggerer.start(watcher_of(tag_name="prod"))
    await polled(simulator)
    simulator.start_execution(tagged, status="success")
    simulator.clear_requests()
    await polled(simulator, 30)

    lists = [one for one in simulator.requests if one.path.endswith("/workflows")]
    assert 1 <= len(lists) <= 5
    await triggerer.shut_down()


@in_event_loop
async def test_a_name_that_cannot_be_found_is_logged_and_looked_up_again(
    simulator: ServiceSimulator, workflow: Workflow, caplog: pytest.LogCaptureFixture
) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher_of(workflow_name="Nightly"))
    await until(lambda: "there is no workflow named 'Nightly'" in caplog.text)
    assert "Reading executions for the watch of workflow_name Nightly fails; trying again until it works" in caplog.text

    found = workflow("Nightly")
    await polled(simulator, 3)
    one = simulator.start_execution(found, status="success")
    await until(lambda: ids(triggerer.events(number)) == [one])
    await triggerer.shut_down()


@in_event_loop
async def test_a_tag_that_cannot_be_read_again_keeps_its_workflows(
    simulator: ServiceSimulator, workflow: Workflow, caplog: pytest.LogCaptureFixture
) -> None:
    tagged = workflow("Hourly", tag="prod")
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher_of(tag_name="prod"))
    await polled(simulator)
    simulator.inject("status", times=None, path="/workflows$", status=500)
    await until(lambda: "Reading the workflows of tag_name prod fails; trying again until it works: " in caplog.text)

    one = simulator.start_execution(tagged, status="success")
    await until(lambda: ids(triggerer.events(number)) == [one])
    await triggerer.shut_down()


@airflow_features.kept_cursors
@pytest.mark.parametrize("count", [2, 25])
@in_event_loop
async def test_no_end_of_several_workflows_is_missed_over_a_restart(
    simulator: ServiceSimulator, workflow: Workflow, count: int
) -> None:
    other, *watched = (workflow(f"Job {number}") for number in range(count + 1))
    state = AssetState()
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher_of(state, workflow_id=watched))
    await polled(simulator)
    told = simulator.start_execution(watched[0], status="success")
    await until(lambda: ids(triggerer.events(number)) == [told])
    await polled(simulator, 3)
    await triggerer.shut_down()

    missed = [simulator.start_execution(one, status="success") for one in (*watched, watched[0])]
    for _ in range(5):
        simulator.start_execution(other, status="success")
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher_of(state, workflow_id=watched))
    await until(lambda: len(triggerer.events(number)) >= len(missed))
    await polled(simulator, 3)
    assert ids(triggerer.events(number)) == missed
    await triggerer.shut_down()


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({}, "give one of workflow_id, workflow_name, tag_id, tag_name, project_id, project_name and all_workflows"),
        ({"workflow_id": "w", "workflow_name": "n"}, "give one of"),
        ({"workflow_id": "w", "all_workflows": True}, "give one of"),
        ({"tag_id": "t", "tag_name": "n"}, "give one of"),
        ({"workflow_name": "n", "tag_name": "t"}, "give one of"),
        ({"project_id": "p", "project_name": "n"}, "give either project_id or project_name"),
        ({"workflow_id": "w", "project_id": "p"}, "a project can only narrow workflow_name, tag_id and tag_name"),
        ({"all_workflows": True, "project_id": "p"}, "a project can only narrow"),
        ({"workflow_id": []}, "workflow_id must not be empty"),
        ({"workflow_name": ["n", ""]}, "each of workflow_name must be text that is not empty, not ''"),
        ({"workflow_id": 7}, "workflow_id must be a list, not int"),
        ({"tag_name": ""}, "each of tag_name must be text that is not empty"),
        ({"all_workflows": "yes"}, "all_workflows must be True or False, not 'yes'"),
    ],
)
def test_arguments_that_select_nothing_or_cannot_be_combined_are_refused(
    selection: dict[str, Any], message: str
) -> None:
    with pytest.raises(ServiceInputError, match=f"^{message}"):
        ServiceExecutionEventTrigger(**selection)
