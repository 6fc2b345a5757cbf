"""Airflow reads its settings when it is imported, so each test process gets its own home before that."""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client._clock import using
from airflow_provider_service.simulator import ServiceSimulator
from scripts.dag_runner import choose_home, migrate

from .airflow_features import AIRFLOW, skip_what_airflow_lacks
from .conformance.outcomes import Outcomes
from .live.servers import GENERATIONS
from .set_clock import SetClock
from .slow import CHOICES, deselect

if TYPE_CHECKING:
    from s3fs import S3FileSystem

    from airflow_provider_service.testing._passing_time import PassingTime
    from tests.reported_metrics import ReportedMetrics
    from tests.s3 import Bucket

gc.disable()  # until pytest_runtestloop
EXAMPLE_DAGS = Path(__file__).resolve().parent.parent / "example_dags"
AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="airflow-home-"))

choose_home(AIRFLOW_HOME, EXAMPLE_DAGS)
os.environ["AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY"] = "1"  # nobody waits 5 minutes to see a test fail
with suppress(ImportError):  # the deployment of make test-stack has none
    import hypothesis

    hypothesis.settings.register_profile("any machine", deadline=None)
    hypothesis.settings.load_profile("any machine")
atexit.register(shutil.rmtree, AIRFLOW_HOME, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    # Defined here, not next to the tests that need it, because pytest always reads options from the outermost conftest.
    parser.addoption(
        "--target",
        choices=("simulator", *GENERATIONS),
        default="simulator",
        help="what tests/conformance runs against: the simulator or a generation of the real server",
    )
    parser.addoption(
        "--deployment",
        choices=("single", "queue"),
        default="single",
        help="how the real server is deployed: one process with SQLite, or queue mode with PostgreSQL and a worker",
    )
    parser.addoption("--slow", choices=CHOICES, default="with", help="with, without, or only slow tests")


def pytest_configure(config: pytest.Config) -> None:
    # Here for the same reason: with several processes, the one that collects their reports reads no other conftest.
    if not hasattr(config, "workerinput"):
        # Without pytest's cache, as in make test-mutation, there is no such option.
        repeats = config.getoption("--last-failed", False)
        outcomes = Outcomes(config.getoption("--target"), config.getoption("--deployment"), repeats=repeats)
        config.pluginmanager.register(outcomes, "conformance-outcomes")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadfile":
        return None
    from .distribution import ByFileOrNeed

    return ByFileOrNeed(config, log)


def pytest_collection(session: pytest.Session) -> None:
    """Let each process of several begin to import with files of its own."""
    if (worker := getattr(session.config, "workerinput", None)) is not None:
        from .distribution import import_own_share

        import_own_share(session.config.args, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out, or the others, and keep all processors busy to the end.

    On a real server, the files that need it stay together instead.
    """
    deselect(config, items)
    if hasattr(config, "workerinput") and config.getoption("--target") == "simulator":
        from .distribution import spread_folders

        spread_folders(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Exempt the million objects of Airflow and the tests from garbage collection, since they stay to the end anyway.

    Before this, the collector does not run at all: otherwise it takes a third of the time of importing. Afterwards it
    runs less often than by default, which would take a twentieth of the time of the tests.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    skip_what_airflow_lacks(item)


@pytest.fixture(autouse=True)
def nothing_short_stays_hidden() -> Iterator[None]:
    """Stop Airflow 2 from masking short texts: it would mask even single letters in the texts of later tests."""
    yield
    if not AIRFLOW.startswith("2."):
        return
    from airflow.utils.log.secrets_masker import _secrets_masker

    masker: Any = _secrets_masker()
    if any(len(hidden) < 5 for hidden in masker.patterns):
        masker.patterns, masker.replacer = set(), None


@pytest.fixture(scope="session")
def progress(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints a line at once, although pytest captures the output of tests."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def report(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"[live server] {line}", file=sys.stderr, flush=True)

    return report


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Airflow's metadata database, in the home of this process: a copy of the one that a run migrates once."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder below that of the run
        folder = folder.parent
    own, of_the_run = AIRFLOW_HOME / "airflow.db", folder / "airflow.db"
    # A test that has asked Airflow for something without this fixture has left an empty one.
    own.unlink(missing_ok=True)
    if (engine := getattr(sys.modules.get("airflow.settings"), "engine", None)) is not None:
        engine.dispose()
    with (folder / "airflow.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not of_the_run.exists():
            migrate(AIRFLOW_HOME)
            shutil.copy(own, of_the_run)
            return
    shutil.copy(of_the_run, own)


@pytest.fixture
def database_without_runs(database: None) -> None:
    """The database without the triggers and XComs that the DAGs of other tests in this process have left."""
    from airflow.utils.session import create_session

    from airflow_provider_service.plugins._airflow_tables import Trigger
    from tests.airflow_tables import xcoms

    with create_session() as session:
        for table in (Trigger.__table__, xcoms()):
            session.execute(table.delete())


@pytest.fixture(scope="session")
def running_simulator() -> Iterator[ServiceSimulator]:
    """The only server of this process; tests use ``simulator``."""
    with ServiceSimulator() as simulator:
        yield simulator


@pytest.fixture
def simulator(running_simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch) -> ServiceSimulator:
    """An empty, licensed service behind the default connection."""
    running_simulator.reset()
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", running_simulator.connection_json())
    return running_simulator


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest) -> Iterator[PassingTime | None]:
    """One clock for the test, the package and the simulator: it stands still, and jumps while everybody waits.

    A test with the marker ``real_time`` runs in real time, and so does one without a simulator.
    """
    from airflow_provider_service.testing._passing_time import time_passes_at

    if request.node.get_closest_marker("real_time") or "simulator" not in request.fixturenames:
        yield None
        return
    with time_passes_at(request.getfixturevalue("simulator"), stands=True) as passing:
        yield passing


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReportedMetrics]:
    """What is reported to Airflow's metrics."""
    from .reported_metrics import reported

    with reported(monkeypatch) as metrics:
        yield metrics


@pytest.fixture
def client(simulator: ServiceSimulator) -> Iterator[ServiceClient]:
    """A client for checking the service's contents."""
    with ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key)) as one:
        yield one


@pytest.fixture
def meanwhile(simulator: ServiceSimulator, client: ServiceClient) -> Iterator[Callable[..., None]]:
    """``meanwhile(path, act)`` lets somebody act when that path has been read, before the first answer is sent."""
    with ServiceClient(client.transport.config) as somebody_else:

        def put(path: str, act: Callable[[ServiceClient], Any]) -> None:
            done: list[str] = []

            def layer(app: Any) -> Any:
                async def acts_before_the_answer(scope: Any, receive: Any, send: Any) -> None:
                    async def acting(message: Any) -> None:
                        if (scope["method"], scope["path"]) == ("GET", f"/api/v1{path}") and not done:
                            done.append(path)
                            await asyncio.to_thread(act, somebody_else)
                        await send(message)

                    await app(scope, receive, acting)

                return acts_before_the_answer

            simulator.wrap(layer)

        yield put


@pytest.fixture
def before_request(
    simulator: ServiceSimulator, client: ServiceClient
) -> Callable[[str, str, Callable[[ServiceClient], object]], None]:
    """``before_request(method, path, act)``: somebody acts just before the first request to that path is served."""

    def prepare(method: str, path: str, act: Callable[[ServiceClient], object]) -> None:
        waiting = [act]

        def acts() -> None:
            with ServiceClient(client.transport.config) as somebody_else:
                waiting.pop()(somebody_else)

        def layer(app: Any) -> Any:
            async def around(scope: Any, receive: Any, send: Any) -> None:
                if waiting and scope["method"] == method and re.search(path, scope["path"]):
                    await asyncio.to_thread(acts)
                await app(scope, receive, send)

            return around

        simulator.wrap(layer)

    return prepare


@pytest.fixture
def set_clock() -> Iterator[SetClock]:
    """The clock of the package, which stands still unless somebody pauses or the test lets time pass."""
    with using(SetClock()) as clock:
        yield clock


@pytest.fixture(scope="session")
def running_s3() -> Iterator[S3FileSystem]:
    """The only S3 storage of this process; tests use ``bucket``."""
    from tests.s3 import s3_server

    with s3_server() as files:
        yield files


@pytest.fixture
def bucket(running_s3: S3FileSystem) -> Bucket:
    """An empty bucket of an S3 storage, behind an Airflow connection of its own."""
    from tests.s3 import Bucket

    return Bucket.create(running_s3)


@pytest.fixture
def task_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes tasks log with Python's own logger, because no fixture can capture the output of Airflow's."""
    from airflow_provider_service.operators._base import ServiceBaseOperator
    from airflow_provider_service.sensors._base import ServiceBaseSensor

    for kind in (ServiceBaseOperator, ServiceBaseSensor):
        monkeypatch.setattr(kind, "log", logging.getLogger("airflow_provider_service.task"))
