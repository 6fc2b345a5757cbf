"""What tasks and watchers of an older wheel wait for is taken over by the current one, whatever their trigger."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Iterator
from importlib import import_module

import pytest

from airflow_provider_service import triggers
from tests.polling import wait_until

from . import older_wheels, workflows
from .airflow_api import AirflowApi
from .conftest import STACK_FOLDER
from .deployment import Deployment
from .figures import FIGURES
from .simulated import SimulatedService
from .test_events import is_reported, reported
from .waiting import finish_active, statuses

#: The commit of which a review had a wheel, and the first one with a sensor of rows. Both give way to released wheels.
FIRST, WITH_ROWS = "888069a", "700c4605"
DAG_ID, ROWS = "stack_upgrade", "stack_upgrade_rows"
IN_TRIGGERER = {"deferred", "execution", "health", "source_control"}


@pytest.fixture
def other() -> Iterator[SimulatedService]:
    """A service of its own, with changes to pull."""
    with SimulatedService() as running:
        yield running


def test_waits_of_older_wheels_go_on(
    deployment: Deployment, api: AirflowApi, service: SimulatedService, other: SimulatedService
) -> None:
    api.set_connection({**other.connection(), "connection_id": DAG_ID})
    watched = deployment.settings.extra["STACK_WATCHED_WORKFLOW_ID"]
    conf = {
        "workflow_id": other.create_workflow("Runs", workflows.endless()),
        "execution_id": other.start_execution(other.create_workflow("Awaited", workflows.endless()), "running"),
    }
    try:
        first = use(deployment, FIRST)
        api.unpause("stack_events")
        run_id = begin(api, DAG_ID, first, conf)
        wait_for_triggers(api, DAG_ID, run_id, IN_TRIGGERER)
        api.wait_for_xcom(DAG_ID, run_id, "in_worker", "execution_id")
        wait_until(lambda: is_reported(api, service, watched), seconds=180, what="the watch to begin", interval=3)

        with_rows = use(deployment, WITH_ROWS, killed="worker")
        with other.client() as there:
            table = there.data_tables.create("Upgrade", [{"name": "sku", "type": "string"}])
        rows_run_id = begin(api, ROWS, with_rows, {})
        wait_for_triggers(api, ROWS, rows_run_id, {"rows"})
        assert {path for [path] in deployment.query("SELECT DISTINCT classpath FROM trigger")} >= trigger_classes()
        ends = [service.start_execution(watched, "success")]
        wait_until(lambda: {*ends} <= reported(api).keys(), seconds=120, what="an event", interval=1)
        time.sleep(5)  # an end that is only just reported may be reported again
    finally:
        deployment.restart({"PYTHONPATH": ""}, killed="worker")

    ends.append(service.start_execution(watched, "success"))
    api.wait_for_later_attempt(DAG_ID, run_id, "in_worker", "running")
    other.finish(conf["execution_id"])
    with other.client() as there:
        there.source_control.pull()
        there.data_table_rows.insert(table.id, [{"sku": "a"}])
        finish_active(other, there, conf["workflow_id"])
        for dag_id, run in ((DAG_ID, run_id), (ROWS, rows_run_id)):
            assert api.wait_for_run(dag_id, run, seconds=300) == "success"
        assert statuses(there, conf["workflow_id"]) == {"deferred": ["success"], "in_worker": ["success"]}
    wait_until(lambda: {*ends} <= reported(api).keys(), seconds=120, what="the latest event", interval=1)
    assert [len(reported(api)[one]) for one in ends] == [1, 1]
    FIGURES.add("triggers of older wheels that the current one continued", len(trigger_classes()))
    FIGURES.add("their tasks and watchers", len(IN_TRIGGERER | {"in_worker", "rows", "watcher"}))


def use(deployment: Deployment, commit: str, *, killed: str | None = None) -> str:
    """Restart everything with the wheel of a commit; returns the folder in which it lies."""
    folder = older_wheels.installed(commit, STACK_FOLDER / "older")
    deployment.restart({"PYTHONPATH": str(folder)}, killed=killed)
    return str(folder)


def begin(api: AirflowApi, dag_id: str, folder: str, conf: dict[str, str]) -> str:
    """Start a run of a DAG whose file was read with the wheel in a folder, and whose worker uses it."""
    wait_until(lambda: dag_id in api.dag_ids(), seconds=180, what=dag_id, interval=1)
    api.unpause(dag_id)
    run_id = api.trigger(dag_id, conf)
    assert api.wait_for_xcom(dag_id, run_id, "installed", "return_value", seconds=180).startswith(folder)
    return run_id


def wait_for_triggers(api: AirflowApi, dag_id: str, run_id: str, tasks: set[str]) -> None:
    for task in tasks:
        api.wait_for_trigger(dag_id, run_id, task)


def trigger_classes() -> set[str]:
    """The paths of all classes of triggers."""
    names = (name for _, name, _ in pkgutil.iter_modules(triggers.__path__) if not name.startswith("_"))
    modules = [import_module(f"{triggers.__name__}.{name}") for name in names]
    return {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
