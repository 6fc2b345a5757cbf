"""A client that gives up at once, and a server whose answers each test defines."""

from __future__ import annotations

import gc
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests_mock
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from airflow_provider_service.client._clock import using
from tests.set_clock import SetClock

from .clients import Client
from .mcp_calls import MCP_KEY

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def set_clock() -> Iterator[SetClock]:
    """The clock of the package: real time, which sockets need, but without the time of pauses."""
    with using(SetClock(flows=True)) as clock:
        yield clock


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go to the servers of the tests, whatever the environment says."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which connections are refused."""
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


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


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of this host, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    path = tmp_path / "server.pem"
    path.write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(encoding)
    )
    return path


@pytest.fixture
def no_finalizer_runs_deep_down() -> Iterator[None]:
    """Collect no garbage of other tests while a value has exhausted the stack: finalizers would fail."""
    gc.disable()
    yield
    gc.enable()
