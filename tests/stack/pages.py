"""What the tests of the pages share: executions in every state, and the pages about them in a browser."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator._samples import chain
from tests.pages.conftest import PAYLOAD, nodes_of_kind, step
from tests.polling import wait_until

from .airflow_api import AirflowApi
from .browser import Browser
from .recorder import Recorder
from .workflows import ACTIVE

DAG = "stack_pages"
#: The task's state in Airflow and the status of its execution, by how the workflow goes on.
ENDINGS = {
    "runs": ("running", "running"),
    "waits": ("deferred", "waiting"),
    "fails": ("failed", "error"),
    "succeeds": ("success", "success"),
}
FRAME = "//iframe[contains(@src, '/service-pages/')]"


class Started(NamedTuple):
    """A run of the DAG, whose tasks are in the states that :data:`ENDINGS` says.

    :param executions: their ids, by task.
    :param workflows: the ids of the workflows, by task.
    """

    run_id: str
    executions: dict[str, str]
    workflows: dict[str, str]

    def page(self, task_id: str) -> str:
        """The page of a task instance."""
        return f"/dags/{DAG}/runs/{quote(self.run_id, safe='')}/tasks/{task_id}"

    def own_page(self, task_id: str) -> str:
        """What the tab shows, without Airflow around it."""
        return f"/service-pages{self.page(task_id)}/{{MAP_INDEX}}"


@contextmanager
def executions_in_every_state(api: AirflowApi, client: ServiceClient) -> Iterator[Started]:
    """Let Airflow run a workflow for each state; in the end, stop what has not ended."""
    workflows = {ending: _create_workflow(client, ending) for ending in ENDINGS}
    api.unpause(DAG)
    run_id = api.trigger(DAG, {"workflows": workflows})
    executions = {}
    for task_id, (state, status) in ENDINGS.items():
        api.wait_for_task(DAG, run_id, task_id, [state])
        one = str(api.wait_for_xcom(DAG, run_id, task_id, "execution_id"))
        wait_until(
            lambda one=one, status=status: client.executions.get(one).status == status,
            seconds=60,
            what=f"execution {one} to be {status}",
            interval=0.3,
        )
        executions[task_id] = one
    assert PAYLOAD in str(client.executions.get(executions["succeeds"], include_data=True).data)
    yield Started(run_id, executions, workflows)
    for one in executions.values():
        if client.executions.get(one).status in ACTIVE:
            client.executions.stop(one)


def _create_workflow(client: ServiceClient, ending: str) -> str:
    nodes = nodes_of_kind(ending)
    if ending == "runs":  # a single longer pause would not run, but wait
        pauses = [step(f"Work {at}", "wait", at, amount=60, unit="seconds") for at in range(4, 9)]
        nodes += [{**pause, "typeVersion": 1.1} for pause in pauses]
    path = uuid.uuid4().hex
    nodes[0] = {**nodes[0], "webhookId": path, "parameters": {**nodes[0]["parameters"], "path": path}}
    body = chain(f"Orders: {ending}", nodes)
    body["nodes"].reverse()  # nothing but their places says in which order they are read
    workflow_id = client.workflows.create(body["name"], body["nodes"], body["connections"], {}).id
    client.workflows.activate(workflow_id)
    return workflow_id


@contextmanager
def tab(browser: Browser, started: Started, task_id: str) -> Iterator[None]:
    """Within the tab of a task."""
    browser.open(f"{started.page(task_id)}/plugin/service_execution")
    with browser.inside(FRAME):
        browser.find("//h1")
        yield


def check_tab(browser: Browser, started: Started, task_id: str) -> None:
    """Check what the tab of a task tells of its execution, and that everybody can use it."""
    status = ENDINGS[task_id][1]
    with tab(browser, started, task_id):
        assert browser.find("//h1").text == f"Orders: {task_id}"
        facts = browser.find("//p[@class='facts']").text
        assert status in facts
        assert f"Execution {started.executions[task_id]}" in facts
        state = "unreported" if task_id == "runs" else "succeeded"
        browser.find(f"//*[starts-with(@aria-label, 'Read orders') and contains(@aria-label, '{state}')]")
        assert bool(browser.run("return document.querySelector('[data-follow]')")) is (task_id in {"runs", "waits"})
        assert_usable(browser)


def assert_usable(browser: Browser) -> None:
    """Check that nothing keeps anybody from using a page."""
    found = browser.violations()
    assert not found, found


def of_connection(connection_id: str) -> str:
    """What the page of a connection shows, without Airflow around it."""
    return f"/service-pages/connections/{connection_id}"


def check_connection(browser: Browser, connection_id: str) -> None:
    """Check what the page of a connection that works tells, and that everybody can use it."""
    browser.open("/plugin/service_connections")
    with browser.inside(FRAME):
        assert_usable(browser)
        browser.click(f"//a[normalize-space()='{connection_id}']")
        # A connection of the type "service" has no product.
        names = " or ".join(f"normalize-space()='{kind} {connection_id}'" for kind in ("Connection", "n8n connection"))
        browser.find(f"//h1[{names}]")
        text = browser.text()
        assert "Ready for" in text, text
        assert "run a workflow and wait for it" in text
        assert_usable(browser)


def assert_told_nothing(recorder: Recorder, *keys: str) -> None:
    """Check that no response of the browser holds a key, or what passed through a workflow."""
    assert recorder.received
    for secret in (*keys, PAYLOAD):
        told = recorder.holding(secret)
        assert not told, told
