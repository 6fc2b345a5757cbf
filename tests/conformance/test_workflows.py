"""Workflows: drafts, versions, tags, the archive, transfer and deletion."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import ServiceInvalidRequestError, ServiceNotFoundError
from airflow_provider_service.client.models import Workflow
from airflow_provider_service.client.resources._workflows import writable
from airflow_provider_service.simulator._samples import node

from .expecting import NO_ID, NO_UUID, refused, unique
from .target import Target
from .workbench import Workbench, done, stop_and_error, webhook

EMPTY = {"nodes": [], "connections": {}, "settings": {}}


def save(bench: Workbench, workflow: Workflow, **changes: object) -> Workflow:
    """Write a workflow back with some keys changed."""
    body = {**writable(workflow), **changes}
    return bench.service.client.workflows.update(
        workflow.id, body["name"], body["nodes"], body["connections"], body["settings"]
    )


@pytest.mark.covers("create_workflow", "get_workflow")
def test_a_new_workflow_is_an_inactive_draft(bench: Workbench, service: Target) -> None:
    name = unique("flow")
    made = bench.create(webhook(unique("hook")), done(), name=name, executionTimeout=30)

    assert (made.name, made.active, made.is_archived, made.active_version_id) == (name, False, False, None)
    assert made.settings is not None
    assert made.settings["executionTimeout"] == 30
    assert [node["name"] for node in made.nodes or []] == ["Webhook", "Done"]
    assert all(node["id"] for node in made.nodes or [])
    read = service.client.workflows.get(made.id)
    assert (read.id, read.name, read.version_id, read.nodes) == (made.id, name, made.version_id, made.nodes)
    assert read.tags == []


@pytest.mark.covers("create_workflow")
def test_names_are_not_unique_and_nodes_may_be_none(bench: Workbench, service: Target) -> None:
    name = unique("flow")
    bench.create(name=name)
    answer = service.raw("POST", "/workflows", json={"name": name, **EMPTY})
    assert answer.status_code == 200
    assert answer.json()["nodes"] == []
    bench.remove(answer.json()["id"])


@pytest.mark.covers("create_workflow")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": None}, "request/body must have required property 'name'"),
        ({"nodes": None}, "request/body must have required property 'nodes'"),
        ({"settings": None}, "request/body must have required property 'settings'"),
        ({"active": True}, "request/body/active is read-only"),
        ({"id": "x"}, "request/body/id is read-only"),
    ],
    ids=["no name", "no nodes", "no settings", "active", "id"],
)
def test_create_refuses(service: Target, change: dict[str, object], text: str) -> None:
    body = {key: value for key, value in {"name": "x", **EMPTY, **change}.items() if value is not None}
    answer = service.raw("POST", "/workflows", json=body)
    assert (answer.status_code, answer.json()) == (400, {"message": text})


def _only_the_newest(service: Target) -> None:
    if service.name not in ("simulator", "2.41"):
        pytest.skip("what other generations make of it has not been measured")


@pytest.mark.covers("create_workflow", "update_workflow")
@pytest.mark.parametrize("given", [{}, {"id": "", "webhookId": ""}], ids=["missing", "empty"])
def test_ids_that_nodes_lack_are_new_at_each_write(bench: Workbench, service: Target, given: dict[str, str]) -> None:
    _only_the_newest(service)
    kinds = ("webhook", "formTrigger", "githubTrigger", "telegramTrigger", "wait", "telegram")
    without = ("scheduleTrigger", "noOp", "thereIsNone")
    nodes = [{**node(kind, kind, 1, {}, 0), "id": kind, "webhookId": kind} for kind in (*kinds, *without)]
    versions = [{**node(f"slack {number}", "slack", number, {}, 0), **given} for number in (1, 2)]
    lacking = [{**{key: value for key, value in one.items() if "id" not in key.lower()}, **given} for one in nodes]
    made = bench.create(*lacking, *versions)
    written = [made, *(save(bench, made, nodes=[*lacking, *versions], connections={}) for _ in range(2))]
    found = [[(one["id"], one.get("webhookId")) for one in held.nodes or []] for held in written]
    for first, second, third in zip(*found, strict=True):
        assert len({first[0], second[0], third[0]}) == 3
    filled = [[bool(one) for _, one in held] for held in found]
    assert filled == [[True] * len(kinds) + [False] * len(without) + [False, True]] * 3
    assert len({held[0][1] for held in found}) == 3
    kept = save(bench, made, nodes=nodes, connections={})
    assert [(one["id"], one["webhookId"]) for one in kept.nodes or []] == [(one["id"],) * 2 for one in nodes]


@pytest.mark.covers("create_workflow", "update_workflow")
def test_settings_that_are_accepted_but_not_stored(bench: Workbench, service: Target) -> None:
    _only_the_newest(service)
    dropped = {"binaryMode": "separate", "credentialResolverId": "x"}
    dropped |= {"redactionPolicy": "none"} if service.free_edition else {}
    made = bench.create(**dropped, executionOrder="v1")
    assert made.settings == {"executionOrder": "v1"}
    assert save(bench, made, settings={**dropped, "timezone": "UTC"}).settings == {
        "executionOrder": "v1",
        "timezone": "UTC",
    }


@pytest.mark.covers("create_workflow", "update_workflow")
def test_credentials_of_nodes_by_name(bench: Workbench, service: Target) -> None:
    _only_the_newest(service)
    kind, name, twice = "httpBasicAuth", unique("known"), unique("twice")
    data = {"user": "u", "password": "p"}
    client = service.client.credentials
    made = [client.create(one, kind, data) for one in (name, twice, twice)]
    known = {"id": made[0].id, "name": name}

    def stored(*references: object, **more: object) -> list[object]:
        nodes = [
            {**node(f"N{number}", "httpRequest", 1, {"url": "http://127.0.0.1:9"}, 0), "credentials": {kind: one}}
            for number, one in enumerate(references)
        ]
        workflow = bench.create(*({**one, **more} for one in nodes))
        found = [one["credentials"][kind] for one in workflow.nodes or []]
        again = save(bench, workflow, nodes=[{**one, **more} for one in nodes])
        assert [one["credentials"][kind] for one in again.nodes or []] == found
        return found

    try:
        assert stored(name, name, {"id": None, "name": name}) == [known] * 3
        assert stored({"id": made[0].id, "name": "outdated"}, {"id": NO_ID, "name": name}) == [known] * 2
        assert stored("none", "none") == ["none", {"id": None, "name": "none"}]
        assert stored(twice, {"id": NO_ID, "name": "none"}) == [twice, {"id": NO_ID, "name": "none"}]
        assert stored({"id": None, "name": ""}, None, "") == [{"id": None, "name": ""}, None, {"id": None, "name": ""}]
        assert stored(name, disabled=True) == [name]
        # Without the key, the service takes one of the type, whatever its name: never send that.
        [taken] = stored({"name": "none"})
        assert isinstance(taken, dict)
        assert taken["id"] in {str(one.id) for one in client.list() if one.type == kind}
    finally:
        for one in made:
            client.delete(one.id)


@pytest.mark.covers("publish_workflow")
@pytest.mark.parametrize("reference", ["none", {"id": None, "name": "none"}], ids=["text", "no id"])
def test_a_credential_that_was_not_found_keeps_a_workflow_from_being_published(
    bench: Workbench, service: Target, reference: object
) -> None:
    _only_the_newest(service)
    credentials = {"httpBasicAuth": reference}
    guarded = {**webhook(unique("hook"), authentication="basicAuth"), "credentials": credentials}
    parameters = {"url": "http://127.0.0.1:9", "authentication": "basicAuth"}
    request = {**node("Request", "httpRequest", 1, parameters, 1), "credentials": credentials}
    for nodes in ([guarded], [webhook(unique("hook")), request]):
        made = bench.create(*nodes)
        with pytest.raises(ServiceInvalidRequestError, match="Credential not configured: httpBasicAuth"):
            service.client.workflows.publish(made.id)


@pytest.mark.covers("create_workflow", "update_workflow")
@pytest.mark.parametrize("where", ["workflow", "settings", "node"])
def test_unknown_keys_are_refused(service: Target, bench: Workbench, where: str) -> None:
    made = bench.create()
    node = {**webhook("x"), **({"foo": 1} if where == "node" else {})}
    body = {"name": "x", "nodes": [node], "connections": {}, "settings": {"foo": 1} if where == "settings" else {}}
    body.update({"foo": 1} if where == "workflow" else {})
    for method, path in (("POST", "/workflows"), ("PUT", f"/workflows/{made.id}")):
        answer = service.raw(method, path, json=body)
        assert answer.status_code == 400
        assert "foo" in answer.json()["message"] or "additional properties" in answer.json()["message"]


@pytest.mark.covers("create_workflow")
def test_an_invalid_structure_is_refused(bench: Workbench, service: Target) -> None:
    nodes = [{"name": "A", "parameters": {}}]
    if service.differs("structure of a workflow"):
        bench.remove(service.client.workflows.create("x", nodes, {}, {}).id)
        return
    with refused(
        ServiceInvalidRequestError,
        "Workflow structure is invalid. nodes[0].type (invalid_type): Required; "
        "nodes[0].position (invalid_type): Required",
    ):
        service.client.workflows.create("x", nodes, {}, {})


@pytest.mark.covers("create_workflow", needs=["archive_workflow"])
def test_a_connection_that_leads_nowhere_is_refused(bench: Workbench, service: Target) -> None:
    connections = {"Webhook": {"main": [[{"node": "Nobody", "type": "main", "index": 0}]]}}
    if service.differs("structure of a workflow"):
        bench.remove(service.client.workflows.create("x", [webhook("x")], connections, {}).id)
        return
    with pytest.raises(ServiceInvalidRequestError, match="Nobody"):
        service.client.workflows.create("x", [webhook("x")], connections, {})


@pytest.mark.covers("get_workflow", "delete_workflow", "list_workflow_tags", "update_workflow_tags")
def test_an_unknown_workflow_is_not_found(service: Target) -> None:
    workflows = service.client.workflows
    for call in (
        lambda: workflows.get(NO_ID),
        lambda: workflows.delete(NO_ID),
        lambda: workflows.list_tags(NO_ID),
        lambda: workflows.update_tags(NO_ID, []),
    ):
        with refused(ServiceNotFoundError, "Not Found", 404):
            call()


@pytest.mark.covers("update_workflow")
def test_an_update_takes_settings_back(bench: Workbench, service: Target) -> None:
    made = bench.create(executionTimeout=30, timezone="Europe/Berlin")
    service.client.workflows.update(made.id, made.name, made.nodes or [], {}, {"errorWorkflow": made.id})
    defaults = {"executionTimeout": -1, "timezone": "DEFAULT", "errorWorkflow": "DEFAULT"}
    changed = service.client.workflows.update(made.id, made.name, made.nodes or [], {}, defaults)
    kept = {"errorWorkflow"} if service.differs("an error workflow that is taken back") else set()
    assert set(defaults) & set(changed.settings or ()) == kept


@pytest.mark.covers("update_workflow")
def test_an_update_replaces_nodes_and_merges_settings(bench: Workbench, service: Target) -> None:
    made = bench.create(executionTimeout=30, timezone="Europe/Berlin")
    changed = save(bench, made, nodes=[stop_and_error()], connections={}, settings={"executionTimeout": 40})

    assert [node["name"] for node in changed.nodes or []] == ["Stop"]
    assert changed.settings is not None
    assert changed.settings["executionTimeout"] == 40
    assert changed.version_id != made.version_id
    assert changed.settings["timezone"] == "Europe/Berlin"


@pytest.mark.covers("update_workflow")
def test_what_was_read_can_be_written_back_and_makes_no_version(bench: Workbench, service: Target) -> None:
    made = bench.create(webhook(unique("hook")), done())
    read = service.client.workflows.get(made.id)
    renamed = save(bench, read, name=unique("renamed"))
    assert renamed.name != read.name
    assert (renamed.nodes, renamed.connections) == (read.nodes, read.connections)
    assert (renamed.version_id != read.version_id) is service.differs("versions of a workflow")


@pytest.mark.covers("update_workflow")
def test_an_answer_as_it_was_read_is_refused(bench: Workbench, service: Target) -> None:
    made = bench.create()
    answer = service.raw("PUT", f"/workflows/{made.id}", json=made.to_wire())
    assert answer.status_code == 400
    assert "read-only" in answer.json()["message"] or "additional properties" in answer.json()["message"]


@pytest.mark.covers("update_workflow", "archive_workflow", "unarchive_workflow", "delete_workflow")
def test_the_archive(bench: Workbench, service: Target) -> None:
    workflows = service.client.workflows
    made = bench.publish()

    differs = service.differs("archive_workflow")
    archived = workflows.archive(made.id)
    assert (archived.is_archived, archived.active) == (True, False)
    assert workflows.archive(made.id).is_archived
    assert made.id in {one.id for one in workflows.list()}
    with refused(ServiceInvalidRequestError, "Cannot update an archived workflow.", 400):
        save(bench, made)
    with refused(ServiceInvalidRequestError, "Cannot activate an archived workflow.", 400):
        (workflows.publish if service.offers("publish_workflow") else workflows.activate)(made.id)

    back = workflows.unarchive(made.id)
    assert (back.is_archived, back.active) == (False, False)
    with refused(ServiceInvalidRequestError, "Workflow is not archived.", 400):
        workflows.unarchive(made.id)
    with refused(ServiceNotFoundError, "Workflow Not Found" if differs else "Workflow not found", 404):
        workflows.archive(NO_ID)


@pytest.mark.covers("delete_workflow")
def test_a_deleted_workflow_is_gone_with_its_executions(bench: Workbench, service: Target) -> None:
    made = bench.publish()
    execution = bench.finished(bench.start(made))
    bench.remove(made.id)
    with refused(ServiceNotFoundError, "Not Found", 404):
        service.client.workflows.get(made.id)
    with refused(ServiceNotFoundError, "Not Found", 404):
        service.client.executions.get(execution.id)


@pytest.mark.covers("delete_workflow")
def test_deletion_answers_what_was_deleted(bench: Workbench, service: Target) -> None:
    made = bench.create()
    deleted = service.client.workflows.delete(made.id)
    assert (deleted.id, deleted.name) == (made.id, made.name)


@pytest.mark.covers("list_workflows")
def test_lists_by_name_state_and_tag(bench: Workbench, service: Target) -> None:
    workflows, tags = service.client.workflows, service.client.tags
    word = unique("Needle")
    draft, live = bench.create(name=f"a {word} b"), bench.publish(name=word)
    tag, other = tags.create(unique("t")), tags.create(unique("t"))
    workflows.update_tags(draft.id, [tag.id, other.id])
    workflows.update_tags(live.id, [tag.id])

    def listed(**filters: object) -> set[str]:
        return {one.id for one in workflows.list(**filters)}  # type: ignore[arg-type]

    assert listed(active=True) & {draft.id, live.id} == {live.id}
    assert listed(active=False) & {draft.id, live.id} == {draft.id}
    assert listed(tags=[tag.name]) == {draft.id, live.id}
    assert listed(tags=[tag.name, other.name]) == {draft.id}
    assert listed(tags=unique("none")) == set()
    assert listed(name=word) == {draft.id, live.id}
    assert listed(name=word.lower()) == {draft.id, live.id}
    assert listed(name=word, active=True) == {live.id}
    assert listed(project_id=NO_ID) == set()
    project_id = (workflows.get(draft.id).shared or [{}])[0]["projectId"]
    of_both = {draft.id, live.id} if service.differs("tags with a project") else {draft.id}
    assert listed(tags=[other.name], project_id=project_id) & {draft.id, live.id} == of_both
    for one in (tag, other):
        tags.delete(one.id)


@pytest.mark.covers("list_workflows")
def test_an_unknown_state_is_refused(service: Target) -> None:
    answer = service.raw("GET", "/workflows?active=yes")
    assert answer.status_code == 400
    if not service.differs("families of endpoints"):
        text = "request/query/active Invalid enum value. Expected 'true' | 'false', received 'yes'"
        assert answer.json() == {"message": text}


@pytest.mark.covers("get_workflow", "update_workflow")
def test_pinned_data_can_be_left_out(bench: Workbench, service: Target) -> None:
    made = bench.create(done())
    pinned = {"Done": [{"json": {"a": 1}}]}
    body = {"name": made.name, "nodes": made.nodes, "connections": {}, "settings": {}, "pinData": pinned}
    answer = service.raw("PUT", f"/workflows/{made.id}", json=body)
    if service.differs("pinned data"):
        assert answer.status_code == 400
        return
    assert answer.status_code == 200
    assert service.client.workflows.get(made.id).pin_data == pinned
    assert not service.client.workflows.get(made.id, exclude_pinned_data=True).pin_data


@pytest.mark.covers("list_workflow_tags", "update_workflow_tags")
def test_tags_of_a_workflow_are_replaced(bench: Workbench, service: Target) -> None:
    workflows, tags = service.client.workflows, service.client.tags
    made, first, second = bench.create(), tags.create(unique("t")), tags.create(unique("t"))
    assert workflows.list_tags(made.id) == []
    assert {tag.id for tag in workflows.update_tags(made.id, [first.id, second.id])} == {first.id, second.id}
    assert [tag.name for tag in workflows.update_tags(made.id, [second.id])] == [second.name]
    assert [tag.id for tag in workflows.list_tags(made.id)] == [second.id]
    with refused(ServiceNotFoundError, "Some tags not found", 404):
        workflows.update_tags(made.id, [NO_ID])
    assert workflows.update_tags(made.id, []) == []
    for one in (first, second):
        tags.delete(one.id)


@pytest.mark.covers("list_workflow_history", "get_workflow_version", "get_workflow_version_deprecated")
def test_history_is_newest_first_and_versions_can_be_read(bench: Workbench, service: Target) -> None:
    workflows = service.client.workflows
    made = bench.create()
    changed = save(bench, made, nodes=[stop_and_error()], connections={})

    history = list(workflows.list_history(made.id))
    assert [one.version_id for one in history] == [changed.version_id, made.version_id]
    assert history[0].nodes is None
    version = workflows.get_version(made.id, made.version_id or "")
    assert [node["name"] for node in version.nodes or []] == ["Webhook"]
    old = workflows.get_version_deprecated(made.id, made.version_id or "")
    assert (old.version_id, old.nodes) == (version.version_id, version.nodes)
    with refused(ServiceNotFoundError, "Version not found", 404):
        workflows.get_version(made.id, NO_UUID)
    with refused(ServiceNotFoundError, "Not Found", 404):
        list(workflows.list_history(NO_ID))


@pytest.mark.covers("get_workflow_version_deprecated")
def test_the_older_address_of_a_version(bench: Workbench, service: Target) -> None:
    made = bench.create()
    version = service.client.workflows.get_version_deprecated(made.id, made.version_id or "")
    assert (version.version_id, version.workflow_id) == (made.version_id, made.id)
    with refused(ServiceNotFoundError, "Version not found", 404):
        service.client.workflows.get_version_deprecated(made.id, NO_UUID)
    answer = service.raw("GET", f"/workflows/{made.id}/{made.version_id}")
    assert ("Deprecation" in answer.headers) is not service.differs("deprecations")


@pytest.mark.covers("transfer_workflow")
def test_a_transfer_to_where_it_is_or_to_nowhere_is_refused(bench: Workbench, service: Target) -> None:
    made = bench.create()
    read = service.client.workflows.get(made.id)
    project_id = (read.shared or [{}])[0]["projectId"]
    text = "You can't transfer a workflow into the same destination it already belongs to."
    differs = service.differs("transfer_workflow")
    if differs:
        text = "You can't transfer a workflow into the project that's already owning it."
    with refused(ServiceInvalidRequestError, text, 400):
        service.client.workflows.transfer(made.id, project_id)
    error = ServiceInvalidRequestError if differs else ServiceNotFoundError
    with pytest.raises(error, match=f'Could not find project with the id "{NO_ID}"'):
        service.client.workflows.transfer(made.id, NO_ID)


@pytest.mark.covers("list_workflows", "create_workflow")
def test_a_workflow_belongs_to_the_project_it_was_made_in(bench: Workbench, service: Target) -> None:
    made = bench.create()
    project_id = (service.client.workflows.get(made.id).shared or [{}])[0]["projectId"]
    assert made.id in {one.id for one in service.client.workflows.list(project_id=project_id)}
