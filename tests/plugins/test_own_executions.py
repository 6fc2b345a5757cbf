"""The tab shows what its task has provably started or waits for, whatever the XCom says by which it finds that."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_service._core.runs.attempt import key_of
from airflow_provider_service._core.runs.searching import RUN_KEY_HEADER
from scripts.dag_runner import run_dag
from tests import airflow_features
from tests.pages.conftest import start as start
from tests.runs.workflows import CALLED, DONE, FAIL, FORM, SCHEDULE, put, put_bridge, webhook

from .conftest import BEGAN, DAG, RUN

pytestmark = airflow_features.pages
DAGS = Path(__file__).parent / "dags"
CONNECTION = {"service_conn_id": "service_default"}


@pytest.fixture
def reader(browser_of):
    return browser_of("VIEWER")


def header_of(task_id: str, start_date: Any = BEGAN) -> dict[str, str]:
    """The header that a worker sends for a task of the DAG run, as it knows that run."""
    ti = SimpleNamespace(dag_id=DAG, run_id=RUN, task_id=task_id, map_index=-1, try_number=1)
    run = SimpleNamespace(run_after=BEGAN, start_date=start_date, clear_number=0)
    return {RUN_KEY_HEADER: key_of(ti, run).header}


@pytest.fixture
def link(simulator):
    def to(workflow_id: str, execution_id: str) -> dict[str, str]:
        return {"_link_ServiceExecutionLink": f"{simulator.base_url}/workflow/{workflow_id}/executions/{execution_id}"}

    return to


def is_hidden(text: str, *, because: str) -> bool:
    assert "Read orders" not in text
    assert "Open the " not in text
    assert "Execution not shown" in text
    return because in text


def test_an_xcom_that_a_user_wrote_shows_nothing(reader, put_task, start, link):
    path = put_task("running", links=link(*start("waits")), fields=CONNECTION)

    for address in (path, f"{path}?part=view"):
        assert is_hidden(reader.get(address).text, because="does not carry the run key")


@pytest.mark.parametrize("host", ["https://service.example.com", None])
def test_an_xcom_that_names_an_execution_that_cannot_be_read_leads_nowhere(reader, put_task, simulator, host):
    link = f"{host or simulator.base_url}/workflow/1/executions/2"
    path = put_task("success", links={"_link_ServiceExecutionLink": link}, fields=CONNECTION)

    text = reader.get(path).text

    assert "The service does not have execution 2" in text or "It is not read from there" in text
    assert "Open the " not in text
    assert "/workflow/1" not in text


def test_what_carries_the_key_of_the_task_run_is_shown(reader, put_task, start, link):
    task_id = f"task_{uuid.uuid4().hex}"
    own = start("succeeds", headers=header_of(task_id))

    text = reader.get(put_task("success", links=link(*own), fields=CONNECTION, task_id=task_id)).text

    assert "Read orders" in text
    assert f'href="{link(*own)["_link_ServiceExecutionLink"]}"' in text


@pytest.mark.parametrize("other", ["another_task", None])
def test_what_carries_the_key_of_another_task_run_is_not(reader, put_task, start, link, other):
    task_id = f"task_{uuid.uuid4().hex}"
    headers = header_of(other or task_id, BEGAN if other else BEGAN.replace(year=2025))
    execution = start("succeeds", headers=headers)
    fields = {**CONNECTION, "workflow_id": execution[0]}

    text = reader.get(put_task(links=link(*execution), fields=fields, task_id=task_id)).text

    assert is_hidden(text, because="another task run has started it")


@pytest.fixture
def was_cleared(dag_run):
    """The DAG run has been cleared since it began for the first time."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    def note(times: int) -> None:
        with create_session() as session:
            session.execute(DagRun.__table__.update().where(DagRun.id == dag_run).values(clear_number=times))

    note(1)
    yield
    note(0)


@pytest.mark.usefixtures("was_cleared")
@pytest.mark.parametrize("deployment", [None, "another"])
def test_what_was_started_before_the_dag_run_was_cleared_stays_its_own(
    reader, put_task, start, link, monkeypatch, deployment
):
    task_id = f"task_{uuid.uuid4().hex}"
    with monkeypatch.context() as settings:
        if deployment is not None:
            settings.setenv("AIRFLOW__SERVICE__DEPLOYMENT", deployment)
        headers = header_of(task_id, BEGAN.replace(year=2025))
    execution = start("succeeds", headers=headers)

    text = reader.get(put_task(links=link(*execution), fields=CONNECTION, task_id=task_id)).text

    if deployment is None:
        assert "Read orders" in text
    else:
        assert is_hidden(text, because="another task run has started it")


def test_a_link_to_another_workflow_shows_nothing(reader, put_task, start, link):
    task_id = f"task_{uuid.uuid4().hex}"
    _, execution_id = start("succeeds", headers=header_of(task_id))
    fields = {**CONNECTION, "execution_id": execution_id}

    text = reader.get(put_task(links=link("another", execution_id), fields=fields, task_id=task_id)).text

    assert is_hidden(text, because="another workflow")


def test_a_sensor_shows_only_what_it_waits_for(reader, put_task, start, link):
    one, other = start("waits"), start("succeeds")
    fields = {**CONNECTION, "execution_id": int(one[1])}

    assert "Read orders" in reader.get(put_task(links=link(*one), fields=fields)).text
    assert is_hidden(reader.get(put_task(links=link(*other), fields=fields)).text, because="run key")


@airflow_features.state_of_tasks
def test_the_state_of_a_task_proves_what_can_carry_no_key_and_nothing_else(reader, put_task, simulator, start, link):
    nightly, executions = put(simulator, SCHEDULE, DONE, name="Nightly"), {}
    other = put(simulator, SCHEDULE, DONE, name="Other")
    for workflow_id in (nightly, other):
        executions[workflow_id] = simulator.start_execution(workflow_id, status="success", mode="trigger")
    called = start("succeeds")

    def page(*ids: str, **fields: Any) -> str:
        saved = {"workflow_id": ids[0], "execution_id": ids[1]}
        path = put_task(links=link(*ids), fields={**CONNECTION, **fields}, saved=saved)
        return str(reader.get(path).text)

    assert "<h1>Nightly</h1>" in page(nightly, executions[nightly], workflow_id=nightly)
    assert "<h1>Nightly</h1>" in page(nightly, executions[nightly], workflow_name="Nightly")
    for fields in ({}, {"workflow_id": nightly}, {"workflow_name": "Nightly"}):
        assert is_hidden(page(other, executions[other], **fields), because="keep of this task does not name it")
    assert is_hidden(page(*called, workflow_id=called[0]), because="does not carry the run key")


@airflow_features.state_of_tasks
@pytest.mark.parametrize("saved", ["text", [1], {"execution_id": 7}, None])
def test_a_state_of_any_shape_proves_nothing(reader, put_task, simulator, link, saved):
    workflow_id = put(simulator, SCHEDULE, DONE, name="Nightly")
    execution_id = simulator.start_execution(workflow_id, status="success", mode="trigger")
    fields = {**CONNECTION, "workflow_id": workflow_id}

    text = reader.get(put_task(links=link(workflow_id, execution_id), fields=fields, saved=saved)).text

    assert is_hidden(text, because="keep of this task does not name it")


def test_a_link_of_any_length_or_shape_shows_nothing(reader, put_task, simulator):
    for address in ("x" * 10, f"{simulator.base_url}/workflow/w/executions/{'7' * 5_000}", ["7"], {"a": 1}):
        path = put_task("failed", links={"_link_ServiceExecutionLink": address}, fields=CONNECTION)
        assert "failed before it started an execution" in reader.get(path).text


@pytest.mark.slow
@pytest.mark.skipif(
    airflow_features.AIRFLOW.startswith("3.2."),
    reason="Airflow 3.2 serves a task that runs in the process of an API server before it has started to",
)
def test_a_task_shows_what_it_has_really_run(airflow_app, browser_of, simulator, monkeypatch):
    from airflow_provider_service.plugins._app import make_app

    extra = {"mcp_api_key": simulator.mcp_api_key, "retry_deadline": 30}
    fields = {**json.loads(simulator.connection_json()), "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(fields))
    put_bridge(simulator)
    failing = put(simulator, webhook("fails"), FAIL)
    conf = {
        "webhook": put(simulator, webhook("works"), DONE, name="Webhook"),
        "called": put(simulator, CALLED, DONE, name="Called"),
        "failed": simulator.start_execution(failing, status="error"),
    }
    put(simulator, FORM, DONE, name="Form", availableInMCP=True)
    put(simulator, SCHEDULE, DONE, name="Schedule", availableInMCP=True)

    _, runs = run_dag(DAGS / "own_executions.py", conf)

    ended = {one.task_id: one.state for one in runs}
    assert {name for name, state in ended.items() if state == "success"} == {"webhook", "form", "schedule", "bridge"}

    def shown() -> dict[str, bool]:
        reader = browser_of("VIEWER", app=make_app())
        return {name: "Open the execution" in reader.get(page_of(name)).text for name in ended}

    assert shown() == dict.fromkeys(ended, True) | {"schedule": airflow_features.keeps_state_of_tasks}
    forget_states()  # as before Airflow 3.3, when nothing is left of a run that can carry no key
    assert shown() == dict.fromkeys(ended, True) | {"schedule": False}


def forget_states() -> None:
    """Remove what Airflow 3.3 keeps for tasks."""
    from airflow.utils.session import create_session

    with suppress(ImportError), create_session() as session:
        from airflow.models.task_state_store import TaskStateStoreModel

        session.execute(TaskStateStoreModel.__table__.delete())


def page_of(task_id: str, dag_id: str = "own_executions") -> str:
    """The page of a task of the latest run of a DAG."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        run_id = session.scalar(
            select(DagRun.run_id).where(DagRun.dag_id == dag_id).order_by(DagRun.id.desc()).limit(1)
        )
    return f"/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/{{MAP_INDEX}}"
