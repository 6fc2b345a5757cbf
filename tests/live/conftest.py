"""Fixtures for tests against a real server. It is installed at first use; when it cannot be had the tests fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .servers import GENERATIONS, Generation, LiveServer
from .servers.install import Progress


@pytest.fixture(scope="session")
def live_generation(request: pytest.FixtureRequest) -> Generation:
    """The generation chosen by ``--target``; the newest when that names none."""
    return GENERATIONS.get(request.config.getoption("--target"), GENERATIONS["2"])


@pytest.fixture(scope="package")
def live_server(live_generation: Generation, progress: Progress) -> Iterator[LiveServer]:
    """One running server, shared by the tests of this folder."""
    with LiveServer(live_generation, progress=progress) as server:
        yield server
