"""One deployment for all tests of this folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator._samples import WITH_ID, webhook

from . import pages, waiting, workflows
from .airflow_api import AirflowApi
from .browser import Browser
from .deployment import Deployment
from .figures import FIGURES
from .kills import SEED
from .recorder import Recorder
from .repository import LOCAL_BUNDLE, Repository
from .simulated import SimulatedService

ROOT = Path(__file__).resolve().parents[2]
STACK_FOLDER = ROOT / ".stack"
WATCHED = "Watched"
IMPORTS = "Imports"
IS_SHORT = bool(os.environ.get("SHORT"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counted figures, and the seed of the kills."""
    terminalreporter.write_line(f"STACK_SEED={SEED}")
    for line in FIGURES.lines():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def service() -> Iterator[SimulatedService]:
    """The service behind Airflow."""
    with SimulatedService() as running:
        yield running


@pytest.fixture(scope="session")
def repository() -> Repository | None:
    """DAG files under version control, beside those of the DAGs folder; None on a machine without Git."""
    return Repository(STACK_FOLDER / "repository") if shutil.which("git") else None


@pytest.fixture(scope="session")
def deployment(
    service: SimulatedService, repository: Repository | None, progress: Callable[[str], None]
) -> Iterator[Deployment]:
    """Airflow, with a connection to the service in its database."""
    service.create_workflow(IMPORTS, workflows.endless())
    bundles = [LOCAL_BUNDLE, *([repository.bundle()] if repository else [])]
    deployment = Deployment(
        STACK_FOLDER / "deployment",
        [ROOT / "example_dags", Path(__file__).parent / "dags"],
        extra={
            # Some tasks name the second one.
            "AIRFLOW_EXAMPLE_WORKFLOW_NAME": IMPORTS,
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
            "STACK_WATCHED_WORKFLOW_ID": service.create_workflow(WATCHED, workflows.endless()),
        },
        concurrency=6,
        progress=progress,
    )
    with deployment:
        deployment.api.set_connection(service.connection())
        yield deployment


@pytest.fixture
def api(deployment: Deployment) -> AirflowApi:
    """Airflow's REST API."""
    return deployment.api


@pytest.fixture
def client(service: SimulatedService) -> Iterator[ServiceClient]:
    """A client for checking the service's contents."""
    with service.client() as one:
        yield one


@pytest.fixture
def begin(api: AirflowApi, service: SimulatedService, client: ServiceClient) -> waiting.Begin:
    """``begin(dag_id, ...)`` starts runs side by side, and returns when all tasks of each wait."""
    return partial(waiting.begin, api, service, client)


@pytest.fixture(scope="session")
def nightly_sync(service: SimulatedService) -> str:
    """The workflow that the README's first DAG runs."""
    return service.create_workflow("Nightly sync", [webhook(workflows.path(), options={"responseData": WITH_ID})])


@pytest.fixture(scope="module")
def started(deployment: Deployment, service: SimulatedService) -> Iterator[pages.Started]:
    """Executions in every state."""
    with service.client() as client, pages.executions_in_every_state(deployment.api, client) as started:
        yield started


@pytest.fixture(scope="session")
def recording(deployment: Deployment, progress: Callable[[str], None]) -> Iterator[tuple[Browser, Recorder]]:
    """A browser, and what it receives."""
    folder = STACK_FOLDER / "screenshots-of-pages"
    shutil.rmtree(folder, ignore_errors=True)
    with (
        Recorder() as recorder,
        Browser(deployment.settings.base_url, folder, proxy=recorder.address, progress=progress) as browser,
    ):
        yield browser, recorder


@pytest.fixture
def recorder(recording: tuple[Browser, Recorder]) -> Recorder:
    """What the browser has received since the test began."""
    recording[1].received.clear()
    return recording[1]


@pytest.fixture
def browser_of(recording: tuple[Browser, Recorder], deployment: Deployment) -> Callable[..., Browser]:
    """``browser_of("viewer")`` is a browser in which this user is logged in; of None, nobody."""

    def browser(user: str | None) -> Browser:
        settings = deployment.settings
        recording[0].errors()  # those of the pages that other tests have seen
        recording[0].have_session(user and AirflowApi(settings.base_url, user, settings.password).log_in())
        return recording[0]

    return browser
