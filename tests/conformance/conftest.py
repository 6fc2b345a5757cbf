"""One suite for the simulator and for the real server: what they must have in common, operation by operation.

``pytest tests/conformance [--target simulator|2.41|2.40|1.123]``. A test says with
``@pytest.mark.covers("create_tag", ...)`` which operations it is about, and with ``needs=(...)`` which others it
needs. If the target's generation lacks one of them, or its edition refuses it, the suite checks that refusal instead of
calling the test. Nothing else skips a test.
Fixtures that call such operations must have function scope: those of a wider scope are set up before that check.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceNotLicensedError, ServiceNotOfferedError
from airflow_provider_service.simulator import ServiceSimulator
from tests.live.deployments import DEPLOYMENTS
from tests.live.servers import NEWEST

from .expecting import unique
from .mcp_workflows import MakeAvailable, mcp_client
from .recording import Showing, nothing_lost
from .refusals import check_refusal
from .tables import Tables
from .target import LiveTarget, Progress, SimulatorTarget, Target
from .workbench import Sleeper, Workbench, fall_asleep


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "covers(*operations, needs=()): the operations that a test is about")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The published contract is that of the generation that the simulator is modelled on."""
    is_judge = collection_path.name == "test_published_contract.py"
    chosen = config.getoption("--target"), config.getoption("--deployment")
    return True if is_judge and chosen != (NEWEST, "single") else None


@pytest.fixture(scope="session")
def shared_target(request: pytest.FixtureRequest, progress: Progress) -> Iterator[Target]:
    """The running target; tests take ``service``."""
    name = request.config.getoption("--target")
    if name == "simulator":
        with ServiceSimulator() as simulator:
            target: Target = SimulatorTarget(simulator)
            yield target
            target.close()
        return
    with DEPLOYMENTS[request.config.getoption("--deployment")](name, progress=progress) as server:
        target = LiveTarget(server, progress)
        yield target
        target.close()
        target.kill()  # asked to stop, it would wait for what still runs


@pytest.fixture(autouse=True)
def models_lose_nothing() -> Iterator[None]:
    """No model loses anything of an answer in this suite."""
    with nothing_lost():
        yield


@pytest.fixture(autouse=True)
def showing(request: pytest.FixtureRequest, shared_target: Target) -> Iterator[Showing]:
    """What the test is about. If the target lacks that, check the refusal and end the test."""
    showing = Showing(request.node)
    wanted = (*showing.operations, *showing.needs)
    refused = (
        ("lacking", ServiceNotOfferedError, [name for name in wanted if not shared_target.offers(name)]),
        ("gated", ServiceNotLicensedError, [name for name in wanted if shared_target.is_gated(name)]),
    )
    for outcome, error, operations in refused:
        for operation in operations:
            if "?" not in operation:  # a parameter has refusals of its own, in test_versions.py
                check_refusal(shared_target, operation, error)
        if operations:
            reason = f"{error.__name__} was seen"
            showing.instead(outcome, operations, reason)
            # The refusal is checked above; a pass would claim that the target does what the test is named for.
            pytest.skip(f"{outcome}: {', '.join(operations)}: {reason}")
    shared_target.showing = showing
    yield showing
    shared_target.showing = None


@pytest.fixture
def service(shared_target: Target, showing: Showing) -> Target:
    """The service under test."""
    return shared_target


@pytest.fixture
def bench(service: Target) -> Iterator[Workbench]:
    """Creates workflows and runs, and deletes them after the test."""
    bench = Workbench(service)
    yield bench
    bench.clean()


@pytest.fixture(scope="session", autouse=True)
def sleeper(shared_target: Target) -> Iterator[Sleeper]:
    """A run that sleeps through the other tests, so that nobody has to wait for it."""
    bench = Workbench(shared_target)
    yield fall_asleep(bench)
    bench.clean()


@pytest.fixture
def other_project(service: Target) -> Iterator[str]:
    """The id of a project that is not the key owner's: the personal one of an invited user."""
    email = f"{unique()}@example.com"
    (invitation,) = service.client.users.create([{"email": email}])
    yield service.personal_project(email)
    service.client.users.delete(str(invitation.user.id), delete_workflows=True)


@pytest.fixture
def tables(service: Target) -> Iterator[Tables]:
    """Data tables that are gone after the test."""
    tables = Tables(service)
    yield tables
    tables.clean()


@pytest.fixture
def mcp(service: Target) -> Iterator[ServiceClient]:
    """A client with the key of the endpoint, which is switched on."""
    with mcp_client(service) as client:
        yield client


@pytest.fixture
def make(bench: Workbench, service: Target) -> MakeAvailable:
    """Creates workflows that are available in MCP, and deletes them after the test."""
    return MakeAvailable(bench, service)
