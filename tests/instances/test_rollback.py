"""A deployment that fails: everything is as it was before, and the task says why."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import contextmanager

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowTaskTimeout

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._lookup import get_workflow
from airflow_provider_service.client.errors import ServiceDeploymentError
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator
from tests.polling import wait_until
from tests.runs.task_run import let_this_thread_execute

from .workflows import child, node, parent, webhook, workflow

REFUSED = workflow("z", node("Nothing", "noOp"), active=True, tags=["new"])


def state_of(client):
    """Everything that counts of every workflow, drafts included."""

    def of(one):
        live = one.active_version
        tags = sorted(tag.name for tag in one.tags)
        running = (live.nodes, live.connections) if live else None
        return (
            one.id,
            one.active,
            running,
            one.nodes,
            one.connections,
            one.settings,
            one.description or None,
            one.pin_data or None,
            tags,
        )

    found = [client.workflows.get(one.id) for one in client.workflows.list()]
    return {one.name: of(one) for one in found}, sorted(tag.name for tag in client.tags.list())


@pytest.fixture
def before(client, deploy):
    """Workflows of every state: active, idle, active with another draft."""
    deploy([child(), parent(tags=["old"]), workflow("idle", webhook("idle"), description="why")])
    deploy([workflow("edited", webhook("edited"), active=True, settings={"timezone": "UTC"})])
    [edited] = client.workflows.list(name="edited")
    client.workflows.update(edited.id, "edited", [webhook("draft")], {}, {}, publish_if_active=False)
    return state_of(client)


def changed():
    """The same workflows, each in another way."""
    return [
        child(settings={"timezone": "Europe/Berlin"}, description="new"),
        parent("elsewhere", tags=["new"]),
        workflow("idle", webhook("other"), active=True),
        workflow("edited", webhook("other-edited"), active=False, pinData={"Webhook": [{"json": {}}]}),
        workflow("fresh", webhook("fresh"), active=True),
    ]


def test_all_changes_are_rolled_back(client, deploy, before):
    with pytest.raises(ServiceDeploymentError) as caught:
        deploy([*changed(), REFUSED])
    assert state_of(client) == before
    assert caught.value.final
    text = str(caught.value)
    assert "while activating 'z': the request was refused" in text
    assert "no trigger node" in text
    assert "Everything that it had changed was rolled back: " in text
    assert {
        name
        for name in ("'child'", "'parent'", "'idle'", "'edited'", "'fresh'", "'z'")
        if name in text.partition("rolled back")[2]
    }


def test_what_runs_again_is_the_very_version_that_ran(client, deploy, before):
    versions = {one.name: one.active_version_id for one in client.workflows.list()}
    with pytest.raises(ServiceDeploymentError):
        deploy([*changed(), REFUSED])
    assert {one.name: one.active_version_id for one in client.workflows.list()} == versions


def test_the_task_fails_however_often_it_is_tried(execute, client, before, tmp_path):
    report = tmp_path / "plan.md"
    for _ in range(3):
        with pytest.raises(AirflowFailException, match=r"no trigger node.*was rolled back"):
            execute(ServiceDeployWorkflowsOperator, source=[*changed(), REFUSED], report_path=str(report))
    assert state_of(client) == before
    assert "it does not say whether the plan was carried out" in report.read_text()


WRITES = [
    ("POST", "/tags$"),
    ("POST", "/edited/deactivate$"),
    ("POST", "/workflows$"),
    *[("PUT", f"/{name}$") for name in ("child", "parent", "idle", "edited")],
    ("PUT", "/parent/tags$"),
    *[("POST", f"/{name}/activate$") for name in ("child", "parent", "idle")],
]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("is_done", [False, True], ids=["refused", "refused but done"])
@pytest.mark.parametrize(("method", "path"), WRITES)
def test_a_failure_of_any_write_is_rolled_back(client, simulator, deploy, before, method, path, is_done):
    for one in client.workflows.list():
        path = path.replace(f"/{one.name}", f"/{one.id}")
    simulator.inject("status", status=400, method=method, path=path, after_processing=is_done)
    with pytest.raises(ServiceDeploymentError, match="HTTP 400"):
        deploy(changed())
    if (method, path, is_done) == ("POST", "/tags$", True):
        client.tags.delete(next(tag.id for tag in client.tags.list() if tag.name == "new"))
    if (method, path, is_done) == ("POST", "/workflows$", True):
        client.workflows.delete(get_workflow(client, "fresh").id)
    assert state_of(client) == before


def test_a_lost_answer_to_a_creation_leaves_nothing(client, simulator, deploy, before):
    simulator.inject("drop", method="POST", path="/workflows$", after_processing=True)
    with pytest.raises(ServiceDeploymentError, match="while creating 'fresh'") as caught:
        deploy(changed())
    assert state_of(client) == before
    assert not caught.value.final


@pytest.mark.parametrize("fault", ["status", "drop"], ids=["refused", "lost"])
def test_a_workflow_that_somebody_else_creates_meanwhile_is_never_deleted(
    client, simulator, deploy, before_request, fault
):
    def create(other):
        made = other.workflows.create("fresh", [webhook("theirs")], {}, {})
        other.workflows.activate(made.id)

    before_request("POST", "/tags$", create)
    simulator.inject(fault, status=403, method="POST", path="/workflows$", skip=1)
    with pytest.raises(ServiceDeploymentError, match="while creating 'fresh'"):
        deploy([workflow("fresh", webhook("fresh"), tags=["new"])])
    assert [(one.name, one.active) for one in client.workflows.list()] == [("fresh", True)]


def test_a_refused_record_leaves_that_of_another_key(client, simulator, deploy):
    deploy([workflow("one", webhook("one"))], deployment_name="shop")
    config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.in_loop(simulator.state.add_key).secret)
    simulator.inject("status", status=403, method="POST", path="/workflows$")
    with ServiceClient(config) as other, pytest.raises(ServiceDeploymentError, match="writing 'Airflow: deployment of"):
        deploy([workflow("one", webhook("one"))], to=other, deployment_name="shop")
    assert {one.name for one in client.workflows.list()} == {"one", "Airflow: deployment of shop"}


def test_what_cannot_be_rolled_back_is_named_and_not_retried(execute, client, simulator, before):
    [held] = client.workflows.list(name="parent")
    source = [child(settings={"timezone": "UTC"}), parent("elsewhere"), REFUSED]
    simulator.inject(
        "status", status=403, method="POST", path=f"/{held.id}/activate$", body=held.active_version_id, times=None
    )
    with pytest.raises(AirflowFailException) as caught:
        execute(ServiceDeployWorkflowsOperator, source=source)
    text = str(caught.value)
    assert "while activating 'z': the request was refused (HTTP 400)" in text
    assert "Not everything could be rolled back: workflow 'parent': POST" in text
    simulator.clear_faults()
    [child_now] = client.workflows.list(name="child")
    assert child_now.settings == {}


def test_a_version_that_cannot_be_published_again_is_named(client, simulator, deploy, before):
    [held] = client.workflows.list(name="parent")
    simulator.inject(
        "status", status=404, method="POST", path=f"/{held.id}/activate$", body=held.active_version_id, times=None
    )
    with pytest.raises(ServiceDeploymentError, match="could be rolled back: workflow 'parent': POST") as caught:
        deploy([child(), parent("elsewhere"), REFUSED])
    assert caught.value.final


def test_a_tag_that_somebody_deletes_meanwhile_is_named_and_the_others_are_set_again(client, deploy, before_request):
    deploy([workflow("one", webhook("one"), tags=["keep", "old"])])
    old = next(tag.id for tag in client.tags.list() if tag.name == "old")
    before_request("POST", "/activate$", lambda other: other.tags.delete(old))
    with pytest.raises(ServiceDeploymentError, match=r"workflow 'one': tags that it had no longer exist: 'old'$"):
        deploy([workflow("one", webhook("one"), tags=["new"]), REFUSED])
    [held] = client.workflows.list(name="one")
    assert [tag.name for tag in held.tags] == ["keep"]


def test_a_new_tag_that_somebody_else_uses_meanwhile_stays(client, deploy, before_request):
    deploy([workflow("one", webhook("one"))])
    tagged = [workflow("one", webhook("one"), tags=["new"])]
    before_request("POST", "/activate$", lambda other: deploy(tagged, to=other))
    with pytest.raises(ServiceDeploymentError, match="Everything that it had changed was rolled back: 'z'"):
        deploy([REFUSED])
    [held] = client.workflows.list()
    assert (held.name, [tag.name for tag in held.tags]) == ("one", ["new"])


def test_the_workflows_are_listed_once_for_all_new_tags(client, deploy, simulator):
    tags = [f"new{number}" for number in range(5)]
    with pytest.raises(ServiceDeploymentError, match="Everything that it had changed was rolled back: 'z'"):
        deploy([{**REFUSED, "tags": tags}])
    sent = [(one.method, one.path) for one in simulator.requests]
    rollback = sent[next(place for place, (_, path) in enumerate(sent) if path.endswith("/activate")) :]
    assert len([method for method, path in rollback if path == "/api/v1/workflows" and method == "GET"]) == 1
    assert list(client.tags.list()) == []


def test_a_workflow_that_somebody_deletes_meanwhile_needs_no_rollback(client, deploy, before_request):
    deploy([workflow("one", webhook("one"))])
    [held] = client.workflows.list()
    before_request("POST", "/activate$", lambda other: other.workflows.delete(held.id))
    with pytest.raises(ServiceDeploymentError, match="Everything that it had changed was rolled back"):
        deploy([workflow("one", webhook("two")), REFUSED])
    assert [*client.workflows.list()] == []


def test_a_setting_that_the_service_cannot_remove_is_named(client, deploy, caplog):
    deploy([workflow("one", webhook("one"))])
    groups = [{"id": "g", "name": "G", "nodes": ["Webhook"]}]
    settings = {"redactionPolicy": "all", "timezone": "UTC"}
    changed = [workflow("one", webhook("one"), nodeGroups=groups, settings=settings)]
    with pytest.raises(ServiceDeploymentError, match=r"'one': the service cannot remove .*: redactionPolicy$"):
        deploy([*changed, REFUSED])
    caplog.clear()
    assert deploy([workflow("one", webhook("one"))]) == {"unchanged": ["one"]}
    assert "'one' has settings that its definition lacks" in caplog.text
    assert "they stay: redactionPolicy" in caplog.text


def edits(one, other):
    other.workflows.update(one.id, one.name, [webhook("mine")], {}, {}, publish_if_active=False)


def publishes(one, other):
    other.workflows.update(one.id, one.name, [webhook("mine")], {}, {}, publish_if_active=True)
    other.workflows.update(one.id, one.name, one.nodes, one.connections, {}, publish_if_active=False)


def deactivates(one, other):
    other.workflows.deactivate(one.id)


@pytest.mark.parametrize("act", [edits, publishes, deactivates])
def test_what_somebody_else_changes_meanwhile_is_not_reported_as_put_back(client, simulator, deploy, before, act):
    [held] = client.workflows.list(name="parent")
    path, writes = f"/api/v1/workflows/{held.id}", []

    def acts_before_the_answer(app):
        async def layer(scope, receive, send):
            answer = []

            async def keep(message):
                answer.append(message)

            await app(scope, receive, keep)
            if (scope["method"], scope["path"]) == ("PUT", path):
                writes.append(path)
                if len(writes) == 2:  # the deployment's own, and the one that puts back
                    await asyncio.to_thread(act, held, somebody_else)
            for message in answer:
                await send(message)

        return layer

    with ServiceClient(client.transport.config) as somebody_else:
        simulator.wrap(acts_before_the_answer)
        with pytest.raises(
            ServiceDeploymentError, match="could be rolled back: workflow 'parent': it differs from what it was"
        ):
            deploy([child(), parent("elsewhere"), REFUSED])


@pytest.mark.parametrize("act", [edits, publishes, deactivates])
@pytest.mark.parametrize("source", [[child(), parent("elsewhere", tags=["new"])], [parent(tags=["new"])]])
def test_what_somebody_changes_after_the_plan_is_neither_overwritten_nor_rolled_back(
    client, deploy, before, before_request, act, source
):
    [held], found = client.workflows.list(name="parent"), []

    def acts(other):
        act(held, other)
        found.append(state_of(other))

    before_request("POST", "/tags$", acts)
    with pytest.raises(ServiceDeploymentError, match=r"'parent': somebody has changed .*Nothing had been") as caught:
        deploy(source)
    assert state_of(client) == found[0]
    assert not caught.value.final


def test_only_workflows_that_are_changed_are_read_again_after_the_plan(client, simulator):
    many = [workflow(f"w{number}", webhook(f"w{number}")) for number in range(4)]
    target = DeploymentTarget(client)
    apply_plan(make_plan(read_source(many), target), target)
    plan = make_plan(read_source([workflow("w0", webhook("other"), active=True), *many[1:]]), target)
    simulator.clear_requests()
    apply_plan(plan, target)
    assert [one.method for one in simulator.requests] == ["GET", "PUT", "POST"]


def test_a_tag_that_somebody_deletes_after_the_plan_is_created_again(client, deploy):
    deploy([workflow("one", webhook("one"), tags=["used"])])
    target = DeploymentTarget(client)
    plan = make_plan(read_source([workflow("two", webhook("two"), tags=["used"])]), target)
    client.tags.delete(next(client.tags.list()).id)
    apply_plan(plan, target)
    [held] = client.workflows.list(name="two")
    assert [tag.name for tag in held.tags] == ["used"]


class KilledError(BaseException):
    """As Airflow raises when a task takes too long."""


def test_a_task_that_is_stopped_rolls_back_too(client, simulator, deploy, before, interrupted):
    def stop(*_):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a time limit comes once
        raise KilledError

    with interrupted(stop), pytest.raises(KilledError):
        deploy(changed())
    assert state_of(client) == before


def test_a_change_that_takes_effect_after_the_task_was_stopped(client, simulator, deploy, before, before_request):
    def stop(*_):
        raise KilledError

    [held] = client.workflows.list(name="parent")
    handler = signal.signal(signal.SIGALRM, stop)
    # The service has received the whole request, and does not notice that nobody waits for its answer.
    soon = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGALRM))
    simulator.inject("latency", seconds=0.5, method="PUT", path="/workflows/")
    before_request("PUT", "/workflows/", lambda _: soon.start())
    try:
        with pytest.raises(KilledError):
            deploy([parent("elsewhere")])
    finally:
        signal.signal(signal.SIGALRM, handler)
    wait_until(lambda: client.workflows.get(held.id).version_id != held.version_id)
    assert state_of(client) == before


# A signal may come while a connection is made, which then nobody knows who could close it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_task_that_is_killed_by_many_signals_rolls_back_too(client, before, task_instance, interrupted):
    """On Airflow 3, they only call ``on_kill``."""
    task = ServiceDeployWorkflowsOperator(task_id="task", source=changed())
    let_this_thread_execute()
    said = "while .*: the task was killed. Everything that it had changed was rolled back"
    with interrupted(lambda *_: task.on_kill()), pytest.raises(ServiceDeploymentError, match=said):
        task.execute({"ti": task_instance, "task": task})
    assert state_of(client) == before
    task.hook.close()


def test_a_task_that_has_rolled_back_after_its_time_limit_still_says_so():
    try:
        raise AirflowTaskTimeout
    except AirflowTaskTimeout:
        ServiceDeployWorkflowsOperator(task_id="task", source=[]).on_kill()  # as Airflow does


@pytest.fixture
def interrupted(simulator):
    """``with interrupted(handle)`` interrupts the main thread, from the first change of what runs on until the end."""

    @contextmanager
    def handling(handle):
        simulator.inject("latency", seconds=5, method="POST", path="/activate$", after_processing=True)
        published, has_ended = _published(simulator), threading.Event()

        def interrupt():
            wait_until(lambda: _published(simulator) != published)
            while not has_ended.is_set():
                os.kill(os.getpid(), signal.SIGALRM)
                has_ended.wait(0.02)

        handler = signal.signal(signal.SIGALRM, handle)
        watcher = threading.Thread(target=interrupt)
        watcher.start()
        try:
            yield
        finally:
            has_ended.set()
            watcher.join()
            signal.signal(signal.SIGALRM, handler)

    return handling


def _published(simulator):
    """Which version of each workflow runs."""
    active = [one for one in simulator.in_loop(simulator.state.workflows.all) if one.active_version]
    return {one.id: one.active_version.version_id for one in active}


def test_a_webhook_that_is_never_released_ends_the_deployment(client, deploy, simulator, virtual_time):
    names = ("first", "late", "never")
    deploy([workflow(name, webhook(name)) for name in names])
    _, late, never = (get_workflow(client, name).id for name in names)
    # After as many pauses as there can be, the other one is published, and this one is still refused.
    simulator.inject("status", status=409, path=f"/{late}/activate", times=22)
    simulator.inject("status", status=409, path=f"/{never}/activate", times=None)
    begin = virtual_time.now()
    with pytest.raises(ServiceDeploymentError, match=r"activating '(late|never)'.*Everything that it had changed"):
        deploy([workflow(name, webhook(name), active=True) for name in names])
    assert virtual_time.now() - begin == pytest.approx(20 * 0.25, abs=0.01)
    assert not any(one.active for one in client.workflows.list())


def test_a_rollback_of_many_workflows_names_some_of_them(deploy, client, simulator):
    simulator.inject("status", status=500, method="PUT", skip=24, times=None)
    with pytest.raises(ServiceDeploymentError) as caught:
        deploy([workflow(f"w{number:02}", node("A", "noOp")) for number in range(25)])
    assert str(caught.value).endswith(
        "rolled back: " + ", ".join(f"'w{number:02}'" for number in range(20)) + " and 5 more"
    )
    assert list(client.workflows.list()) == []
