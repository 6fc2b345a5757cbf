"""A client that gives up at once, and a server whose answers each test defines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests_mock

from airflow_provider_service.client._clock import using
from tests.set_clock import SetClock

from .clients import Client
from .mcp_calls import MCP_KEY


@pytest.fixture(autouse=True)
def set_clock() -> Iterator[SetClock]:
    """The clock of the package: real time, which sockets need, but without the time of pauses."""
    with using(SetClock(flows=True)) as clock:
        yield clock


@pytest.fixture
def client() -> Client:
    return Client(retry_deadline=0)


@pytest.fixture
def mcp() -> Client:
    return Client(retry_deadline=0, mcp_api_key=MCP_KEY)


@pytest.fixture
def server() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        yield mocker
