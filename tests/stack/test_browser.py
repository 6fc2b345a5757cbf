"""The user interface: the connection's form and test button, and the buttons of tasks. Screenshots are kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from . import workflows
from .airflow_api import AirflowApi
from .browser import Browser
from .conftest import STACK_FOLDER
from .deployment import Deployment
from .figures import FIGURES
from .simulated import SimulatedService

SCREENSHOTS = STACK_FOLDER / "screenshots"
FIRST = "example_service_first"


@pytest.fixture(scope="module")
def browser(deployment: Deployment, progress: Callable[[str], None]) -> Iterator[Browser]:
    """A browser in which a user is logged in."""
    shutil.rmtree(SCREENSHOTS, ignore_errors=True)
    with Browser(deployment.settings.base_url, SCREENSHOTS, progress=progress) as browser:
        browser.log_in(deployment.settings.user, deployment.settings.password)
        yield browser


@pytest.fixture
def no_connection(api: AirflowApi, service: SimulatedService) -> Iterator[None]:
    """Airflow without the connection, which other tests have again."""
    api.delete_connection("service_default")
    yield
    api.set_connection(service.connection())


@pytest.mark.smoke
@pytest.mark.usefixtures("no_connection", "nightly_sync")
def test_a_connection_that_is_only_filled_in_is_green_and_runs_the_first_dag(
    browser: Browser, api: AirflowApi, service: SimulatedService
) -> None:
    fill_connection_form(browser, service)
    assert colour_after_test(browser, "service_default") == "green"

    api.unpause(FIRST)
    run_id = api.trigger(FIRST)
    assert api.wait_for_run(FIRST, run_id, seconds=180) == "success"

    open_details(browser, FIRST, run_id, "run")
    browser.find("//a[normalize-space()='Execution']")
    browser.photograph("first-dag")
    FIGURES.add("connections made in a browser that work")


@pytest.mark.parametrize("task", ["running", "deferred", "failed"])
def test_the_buttons_of_a_task_lead_to_the_service(
    browser: Browser, api: AirflowApi, service: SimulatedService, task: str
) -> None:
    workflow_id = service.create_workflow(f"For a {task} task", workflows.endless())
    api.unpause("stack_marks")
    run_id = api.trigger("stack_marks", {"workflow_id": workflow_id})
    task_id = "deferred" if task == "deferred" else "in_worker"
    api.wait_for_task("stack_marks", run_id, task_id, ["running", "deferred"])
    execution_id = api.wait_for_xcom("stack_marks", run_id, task_id, "execution_id")
    if task == "failed":
        service.finish(execution_id, "error")
    api.wait_for_task("stack_marks", run_id, task_id, [task])

    open_details(browser, "stack_marks", run_id, task_id)
    browser.find(f"//*[normalize-space()='{task.capitalize()}']")
    browser.find("//a[normalize-space()='Execution']")
    browser.photograph(f"{task}-task")
    address, text = browser.click_to_new_tab("//a[normalize-space()='Execution']")
    assert address == f"{service.base_url}/workflow/{workflow_id}/executions/{execution_id}"
    assert text.splitlines() == [f"Execution {execution_id}", "error" if task == "failed" else "waiting"]
    address, text = browser.click_to_new_tab("//a[normalize-space()='Workflow']")
    assert address == f"{service.base_url}/workflow/{workflow_id}"
    assert text.splitlines() == [f"Workflow For a {task} task", "active"]
    FIGURES.add("buttons clicked", 2)

    for one in ("deferred", "in_worker"):
        if task != "failed" or one != task_id:
            api.mark("stack_marks", run_id, one, "success")


def fill_connection_form(browser: Browser, service: SimulatedService) -> None:
    """Make the connection as a new user does: the address, the port, the key, and nothing else."""
    host, _, port = service.base_url.rpartition(":")
    browser.open("/connections")
    browser.click("//button[contains(., 'Add Connection')]")
    browser.fill("connection_id", "service_default")
    browser.choose("//*[@role='dialog']//input[@role='combobox']", "n8n")
    browser.fill("host", host)
    browser.fill("port", port)
    browser.fill("password", service.api_key)
    browser.photograph("connection-form")
    browser.click("//*[@role='dialog']//button[contains(., 'Extra Fields') and not(contains(., 'JSON'))]")
    assert browser.value("element_verify") == "true"
    browser.photograph("connection-form-extra-fields")
    browser.click("//*[@role='dialog']//button[normalize-space()='Save']")


def colour_after_test(browser: Browser, connection_id: str) -> str:
    """Click the test button of a connection; the colour of what it becomes."""
    button = f"//tr[.//*[normalize-space()='{connection_id}']]//button[@aria-label='Test Connection']"
    browser.click(button)
    icon = browser.find(f"{button}//*[local-name()='svg'][@color]")
    browser.photograph("connection-tested")
    return str(icon.get_attribute("color"))


def open_details(browser: Browser, dag_id: str, run_id: str, task_id: str) -> None:
    """Go to the tab of a task's page where its buttons are."""
    browser.open(f"/dags/{dag_id}/runs/{quote(run_id, safe='')}/tasks/{task_id}")
    browser.click("//a[normalize-space()='Details']")
