"""Publishing and unpublishing: what runs, when it takes effect, and what is refused."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceForbiddenError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
)
from airflow_provider_service.client.models import Workflow
from tests.polling import wait_until

from .expecting import NO_ID, NO_UUID, refused, unique
from .target import Target
from .workbench import Workbench, done, path_of, stop_and_error, webhook

NO_TRIGGER = (
    "Workflow cannot be activated because it has no trigger node. "
    "At least one trigger, webhook, or polling node is required."
)


def may_not(verb: str) -> str:
    return f"You do not have permission to {verb} this workflow. Ask the owner to share it with you."


def update(service: Target, workflow: Workflow, *nodes: dict[str, object], publish: bool | None = None) -> Workflow:
    return service.client.workflows.update(workflow.id, workflow.name, nodes, {}, {}, publish_if_active=publish)


@pytest.mark.covers("publish_workflow", "unpublish_workflow")
def test_publish_and_unpublish(bench: Workbench, service: Target) -> None:
    workflows = service.client.workflows
    made = bench.create()
    published = workflows.publish(made.id, name="one", description="first")
    assert (published.active, published.active_version_id) == (True, made.version_id)
    assert published.active_version is not None
    assert (published.active_version.name, published.active_version.description) == ("one", "first")
    assert workflows.publish(made.id).active
    unpublished = workflows.unpublish(made.id)
    assert (unpublished.active, unpublished.active_version_id) == (False, None)
    assert not workflows.unpublish(made.id).active


@pytest.mark.covers("activate_workflow", "deactivate_workflow")
def test_activate_and_deactivate_are_their_older_names(bench: Workbench, service: Target) -> None:
    workflows = service.client.workflows
    made = bench.create()
    assert workflows.activate(made.id).active
    assert workflows.get(made.id).active
    assert not workflows.deactivate(made.id).active
    assert not workflows.deactivate(made.id).active
    answer = service.raw("POST", f"/workflows/{made.id}/activate")
    assert ("Deprecation" in answer.headers) is not service.differs("deprecations")


@pytest.mark.covers("activate_workflow", "deactivate_workflow")
def test_it_takes_effect_a_moment_after_the_answer(bench: Workbench, service: Target) -> None:
    made = bench.create()
    service.client.workflows.activate(made.id)
    wait_until(lambda: bench.is_live(made), what="the webhook to go live")
    assert bench.call(made).status_code == 200
    service.client.workflows.deactivate(made.id)
    wait_until(lambda: not bench.is_live(made), what="the webhook to go")
    assert bench.call(made).status_code == 404


@pytest.mark.covers("publish_workflow", "unpublish_workflow")
def test_an_unknown_workflow_or_version_is_not_found(bench: Workbench, service: Target) -> None:
    workflows = service.client.workflows
    with refused(ServiceNotFoundError, may_not("activate"), 404):
        workflows.publish(NO_ID)
    with refused(ServiceNotFoundError, may_not("deactivate"), 404):
        workflows.unpublish(NO_ID)
    with refused(ServiceNotFoundError, may_not("update"), 404):
        workflows.update(NO_ID, "x", [], {}, {})
    with refused(ServiceNotFoundError, "Version not found", 404):
        workflows.publish(bench.create().id, version_id=NO_UUID)


@pytest.mark.covers("activate_workflow", "deactivate_workflow")
def test_unknown_workflows_by_the_older_names(service: Target) -> None:
    for call in (service.client.workflows.activate, service.client.workflows.deactivate):
        with pytest.raises(ServiceNotFoundError):
            call(NO_ID)


@pytest.mark.covers("activate_workflow", "publish_workflow")
def test_without_a_trigger_nothing_is_published(bench: Workbench, service: Target) -> None:
    made = bench.create(done())
    for call in (service.client.workflows.activate, service.client.workflows.publish):
        with refused(ServiceInvalidRequestError, NO_TRIGGER, 400):
            call(made.id)


@pytest.mark.covers("publish_workflow")
def test_what_is_called_must_be_published_first(bench: Workbench, service: Target) -> None:
    called, callers = bench.create(name=unique("called")), {}
    call = {"name": "Call", "type": "n8n-nodes-base.executeWorkflow", "typeVersion": 1.2, "position": [200, 0]}
    for kind, workflow_id in (("one", called.id), ("none", NO_ID), ("expression", "={{ $json.id }}")):
        address = {"__rl": True, "mode": "id", "value": workflow_id}
        callers[kind] = bench.create(
            webhook(unique("caller")), {**call, "parameters": {"workflowId": address, "options": {}}}
        )
    publish = service.client.workflows.activate
    assert publish(callers["expression"].id).active
    if service.differs("order of publishing"):
        assert publish(callers["one"].id).active
        return
    start, end = "Cannot publish workflow: Node", "Please publish all referenced sub-workflows first."
    named = f'"Call" references workflow {called.id} ("{called.name}") which is not published.'
    with refused(ServiceInvalidRequestError, f"{start} {named} {end}", 400):
        publish(callers["one"].id)
    with refused(
        ServiceInvalidRequestError, f'{start} "Call" references workflow {NO_ID} which is not published. {end}', 400
    ):
        publish(callers["none"].id)
    publish(called.id)
    assert publish(callers["one"].id).active


@pytest.mark.covers("publish_workflow")
def test_a_webhook_can_be_held_once(bench: Workbench, service: Target) -> None:
    holder = bench.publish()
    rival = bench.create(webhook(path_of(holder)))
    with refused(ServiceConflictError, "There is a conflict with one of the webhooks.", 409):
        service.client.workflows.publish(rival.id)
    bench.deactivate(holder)
    assert service.client.workflows.publish(rival.id).active


@pytest.mark.covers("delete_workflow")
def test_a_published_workflow_is_not_deleted(bench: Workbench, service: Target) -> None:
    made = bench.publish()
    if service.differs("deletion of an active workflow"):
        assert service.client.workflows.delete(made.id).id == made.id
        return
    with refused(ServiceConflictError, "Cannot delete a published workflow. Unpublish it before deleting.", 409):
        service.client.workflows.delete(made.id)
    assert service.client.workflows.get(made.id).active


@pytest.mark.covers("delete_workflow", "unpublish_workflow")
def test_a_workflow_that_is_being_unpublished_is_not_deleted(bench: Workbench, service: Target) -> None:
    def refusal() -> tuple[str, ServiceConflictError] | None:
        made = bench.publish()
        service.client.workflows.unpublish(made.id)
        try:
            service.client.workflows.delete(made.id)
        except ServiceConflictError as error:
            return made.id, error
        return None  # on a busy machine, the service may be done with it before

    if service.differs("deletion of an active workflow"):
        assert refusal() is None
        return
    workflow_id, error = wait_until(refusal, what="a refusal")
    assert error.status == 409
    assert error.server_message == "Workflow is still being unpublished. Please try again in a few moments."

    def deleted() -> bool:
        return service.raw("DELETE", f"/workflows/{workflow_id}").status_code == 200

    wait_until(deleted, what="the deletion")


@pytest.mark.covers("update_workflow", "publish_workflow")
def test_an_update_of_an_active_workflow_goes_live_unless_that_is_turned_off(bench: Workbench, service: Target) -> None:
    made = bench.publish()
    hook = (made.nodes or [])[0]

    draft = update(service, made, hook, stop_and_error(), publish=False)
    assert draft.active
    assert draft.active_version_id == made.version_id != draft.version_id
    assert draft.active_version is not None
    assert [node["name"] for node in draft.active_version.nodes or []] == ["Webhook"]

    live = update(service, made, hook, done())
    assert live.active_version_id == live.version_id
    assert live.active_version is not None
    assert [node["name"] for node in live.active_version.nodes or []] == ["Webhook", "Done"]


@pytest.mark.covers("update_workflow", "publish_workflow")
def test_without_the_scope_to_activate_an_update_is_saved_and_not_published(bench: Workbench, service: Target) -> None:
    made = bench.publish()
    client = service.client_for(service.create_key({"workflow:update"}))
    with pytest.raises(ServiceForbiddenError, match="Your change was saved as a draft") as caught:
        client.workflows.update(made.id, made.name, [*(made.nodes or []), done()], {}, {})
    assert caught.value.status == 403
    read = service.client.workflows.get(made.id)
    assert len(read.nodes or []) == 2
    assert read.active_version_id == made.version_id != read.version_id


@pytest.mark.covers("publish_workflow")
def test_an_older_version_can_be_published(bench: Workbench, service: Target) -> None:
    made = bench.publish()
    update(service, made, (made.nodes or [])[0], done())
    older = service.client.workflows.publish(made.id, version_id=made.version_id)
    assert older.active_version_id == made.version_id


@pytest.mark.covers("publish_workflow")
def test_no_body_is_needed_and_another_type_is_refused(bench: Workbench, service: Target) -> None:
    made = bench.create()
    assert service.raw("POST", f"/workflows/{made.id}/publish").status_code == 200
    answer = service.raw("POST", f"/workflows/{made.id}/publish", data=unique(), headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()) == (415, {"message": "unsupported media type text/plain"})


@pytest.mark.covers("update_workflow", "publish_workflow")
def test_an_update_that_cannot_be_published_is_refused_and_stored_as_the_draft(
    bench: Workbench, service: Target
) -> None:
    made = bench.publish()
    with refused(ServiceInvalidRequestError, NO_TRIGGER, 400):
        update(service, made, done())
    read = service.client.workflows.get(made.id)
    assert [node["name"] for node in read.nodes or []] == ["Done"]
    assert (read.active, read.active_version_id) == (True, made.version_id)
    assert read.active_version is not None
    assert [node["name"] for node in read.active_version.nodes or []] == ["Webhook"]
    assert bench.call(made).status_code == 200
    with refused(ServiceInvalidRequestError, NO_TRIGGER, 400):
        update(service, made, done())


@pytest.mark.covers("update_workflow", "publish_workflow")
def test_an_update_without_a_change_publishes_the_draft_that_waits(bench: Workbench, service: Target) -> None:
    made = bench.publish()
    hook = (made.nodes or [])[0]
    draft = update(service, made, hook, done(), publish=False)
    assert draft.active_version_id == made.version_id != draft.version_id
    again = update(service, made, *(draft.nodes or []))
    assert again.active_version_id == again.version_id == draft.version_id
