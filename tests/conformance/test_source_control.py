"""The connected repository; the free edition refuses it."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import ServiceConflictError, ServiceInvalidRequestError

from .expecting import NO_ID, refused
from .target import SimulatorTarget, Target
from .workbench import Workbench

NOT_CONNECTED = "Source Control is not connected to a repository"
#: Not the name of the tag in the simulator's own repository, which another test may have pulled: names are unique.
TAG = "from the repository"


@pytest.fixture
def connected(service: Target) -> SimulatorTarget:
    """A service of its own kind with a fresh repository; only the simulator has the license for one."""
    assert isinstance(service, SimulatorTarget)
    service.simulator.state.source_control.connect(
        [{"id": NO_ID, "name": "tags", "type": "tags", "content": [{"id": NO_ID, "name": TAG}]}]
    )
    return service


@pytest.mark.covers("get_source_control_status", "pull_source_control", needs=("get_tag",))
def test_what_waits_is_shown_and_pulled(connected: SimulatorTarget) -> None:
    source_control = connected.client.source_control

    (waiting,) = source_control.get_status("pull")
    pulled = source_control.pull(force=True)

    assert (waiting.id, waiting.type, waiting.status, waiting.location) == (NO_ID, "tags", "new", "remote")
    assert [file.id for file in pulled] == [NO_ID]
    assert source_control.get_status("pull") == []
    assert connected.client.tags.get(NO_ID).name == TAG
    connected.client.tags.delete(NO_ID)


@pytest.mark.covers("get_source_control_status", "push_source_control")
def test_a_changed_workflow_is_shown_and_pushed(connected: SimulatorTarget, bench: Workbench) -> None:
    source_control = connected.client.source_control
    workflow = bench.create()

    (pending,) = [file for file in source_control.get_status("push") if file.id == workflow.id]
    (pushed,) = source_control.push("Release", [{"id": workflow.id, "type": "workflow"}])

    assert (pending.name, pending.status, pending.location) == (workflow.name, "created", "local")
    assert pushed.to_wire()["pushed"] is True
    assert workflow.id not in [file.id for file in source_control.get_status("push")]


@pytest.mark.covers("push_source_control", "pull_source_control")
def test_changes_on_both_sides_are_a_conflict(connected: SimulatorTarget, bench: Workbench) -> None:
    workflow = bench.create()
    content = {"name": "Remote", "nodes": workflow.nodes, "connections": {}, "settings": {}}
    waiting = {"id": workflow.id, "name": "Remote", "type": "workflow", "status": "modified", "content": content}
    connected.simulator.state.source_control.connect([waiting])

    with pytest.raises(ServiceConflictError):
        connected.client.source_control.pull()
    with pytest.raises(ServiceConflictError):
        connected.client.source_control.push("Mine", [{"id": workflow.id, "type": "workflow"}])
    assert connected.raw("POST", "/source-control/pull", json={}).json()[0]["conflict"] is True

    connected.client.source_control.pull(force=True)

    assert connected.client.workflows.get(workflow.id).name == "Remote"


@pytest.mark.covers("push_source_control")
def test_a_push_of_nothing_new_is_refused(connected: SimulatorTarget) -> None:
    with refused(ServiceInvalidRequestError, f"No pending changes found for: workflow {NO_ID}", 400):
        connected.client.source_control.push("Nothing", [{"id": NO_ID, "type": "workflow"}])


@pytest.mark.covers("get_source_control_status", "push_source_control", "pull_source_control")
def test_without_a_repository_nothing_works(connected: SimulatorTarget) -> None:
    source_control = connected.client.source_control
    connected.simulator.state.source_control.disconnect()
    calls = (
        lambda: source_control.get_status("pull"),
        lambda: source_control.push("x", [{"id": NO_ID, "type": "workflow"}]),
        source_control.pull,
    )
    for call in calls:
        with refused(ServiceInvalidRequestError, NOT_CONNECTED, 400):
            call()


@pytest.mark.covers("get_source_control_status", "push_source_control")
def test_requests_that_do_not_fit_are_refused(connected: SimulatorTarget) -> None:
    request = connected.client.request
    for call in (
        lambda: request("GET", "/source-control/status"),
        lambda: request("GET", "/source-control/status", query={"direction": "both"}),
        lambda: request("POST", "/source-control/push", body={"commitMessage": "", "fileNames": []}),
    ):
        with pytest.raises(ServiceInvalidRequestError, match="request/"):
            call()


@pytest.mark.covers("pull_source_control")
def test_a_pull_that_does_not_fit_is_refused(connected: SimulatorTarget) -> None:
    with pytest.raises(ServiceInvalidRequestError, match="request/body/autoPublish"):
        connected.client.request("POST", "/source-control/pull", body={"autoPublish": "some"})
    assert connected.raw("POST", "/source-control/pull").status_code == 415
