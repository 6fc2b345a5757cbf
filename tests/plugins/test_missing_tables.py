"""A version of Airflow that keeps something in another place: the pages show the rest, and say what they lack."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from tests import airflow_features
from tests.airflow_tables import ATTEMPTS_ARE_INSTANCES
from tests.pages.conftest import start as start

from .conftest import DAG, RUN

pytestmark = [airflow_features.pages, pytest.mark.usefixtures("database_without_runs")]
XCOMS, FIELDS = ("xcom_v2", "rtif_v2") if ATTEMPTS_ARE_INSTANCES else ("xcom", "rendered_task_instance_fields")
CONNECTION = "/connections/service_default"


@pytest.fixture
def without(airflow_app: Any) -> Callable[[str], AbstractContextManager[None]]:
    """``with without(table):`` takes a table away from the database."""
    from airflow.utils.session import create_session
    from sqlalchemy import text

    def rename(old: str, new: str) -> None:
        with create_session() as session:
            session.execute(text("PRAGMA legacy_alter_table=ON"))  # other tables keep referring to it by its old name
            session.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))

    @contextmanager
    def taken(table: str) -> Iterator[None]:
        rename(table, "elsewhere")
        try:
            yield
        finally:
            rename("elsewhere", table)

    return taken


@pytest.fixture
def reader(browser_of: Callable[..., Any]) -> Any:
    """A browser for pages that remember nothing of other tests."""
    from airflow_provider_service.plugins._app import make_app

    return browser_of("ADMIN", app=make_app())


@pytest.fixture
def task(waiting_task: Callable[..., str], start: Callable[..., Any], simulator: Any) -> str:
    """The page of a task in its second attempt, which waits for an execution."""
    return waiting_task(simulator.base_url, *start("waits"), attempts=2).removeprefix("/service-pages")


@pytest.mark.skipif(ATTEMPTS_ARE_INSTANCES, reason="they are in the table of task instances")
def test_without_earlier_attempts_the_page_of_a_task_shows_the_latest(reader, task, without):
    with without("task_instance_history"):
        answer = reader.get(task)

    assert answer.status_code == 200
    assert "Read orders" in answer.text
    assert "Earlier attempts are not shown: this version of Airflow" in answer.text


@pytest.mark.parametrize(
    ("table", "lacking", "shown"),
    [
        (XCOMS, "The XComs of the task are not shown", "The task has not started an execution yet"),
        (FIELDS, "The rendered arguments of the task are not known", "Attempts of the task"),
        ("task_instance", "The task and its attempts are not shown", "No execution"),
    ],
)
def test_the_page_of_a_task_says_what_it_lacks(reader, task, without, table, lacking, shown):
    with without(table):
        answer = reader.get(task)

    assert answer.status_code == 200
    assert f"{lacking}: this version of Airflow ({airflow_features.AIRFLOW}) keeps them in another place" in answer.text
    assert shown in answer.text
    assert "does not run a workflow" not in answer.text


@airflow_features.state_of_tasks
def test_without_the_state_of_tasks_the_page_of_a_task_shows_its_execution(reader, task, without):
    with without("task_state_store"):
        text = reader.get(task).text

    assert "Read orders" in text
    assert "Executions of earlier attempts are not shown: this version of Airflow" in text


@pytest.mark.parametrize(
    ("table", "path", "lacking", "shown"),
    [
        (XCOMS, "/executions", "Executions are not shown", "n8n executions"),
        (FIELDS, "/executions", "Some names of workflows are not shown", "1 execution"),
        ("trigger", CONNECTION, "Waits in triggerers are not shown", "/executions/"),
        (XCOMS, CONNECTION, "Executions are not shown", "Ready for"),
        ("connection", "/connections", "Connections are not shown", "n8n connections"),
    ],
)
def test_a_list_says_what_it_lacks(reader, task, without, table, path, lacking, shown):
    from airflow.utils.session import create_session

    from tests.airflow_tables import xcoms

    with create_session() as session:
        session.execute(xcoms().update().values(timestamp=datetime.now(UTC)))
    with without(table):
        answer = reader.get(path)

    assert answer.status_code == 200
    assert f"{lacking}: this version of Airflow" in answer.text
    assert shown in answer.text
    assert "No task that you may read" not in answer.text
    assert "There are none" not in answer.text
    assert "holds no connection" not in answer.text


@pytest.mark.slow
def test_a_module_that_is_gone_is_no_reason_to_fail(task):
    script = """
        import json, sys
        sys.modules["airflow.models.taskinstancehistory"] = None
        from airflow_provider_service.plugins import _airflow_tables as tables
        del sys.modules["airflow.models.taskinstancehistory"]  # this version of Airflow needs it
        dag_id, run_id, task_id = sys.argv[1:]
        found = tables.find(dag_id, run_id, task_id, -1).task
        print(json.dumps([found.execution_id, len(found.attempts), found.lacks]))
    """
    lines = "\n".join(line.strip() for line in script.splitlines())

    done = subprocess.run(
        [sys.executable, "-c", lines, DAG, RUN, task.split("/")[-2]], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    execution_id, attempts, lacks = json.loads(done.stdout.splitlines()[-1])
    assert execution_id == "1"
    if ATTEMPTS_ARE_INSTANCES:
        assert (attempts, lacks) == (2, [])
    else:
        # Modules of Airflow that need that one are missing, too.
        assert lacks[0].startswith("Earlier attempts are not shown: this version of Airflow")
        assert attempts == 1
