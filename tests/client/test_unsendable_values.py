"""Values that no request can carry: each is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests_mock

from airflow_provider_service.client import errors

from .clients import Client

pytestmark = pytest.mark.usefixtures("no_finalizer_runs_deep_down")


def deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.request("POST", "/x", body=deep(100_000)),
        lambda client: client.request("POST", "/x", body={"a": "\ud800"}),
        lambda client: client.request("POST", "/x", body={"\ud800": 1}),
        lambda client: client.request("POST", "/x", body=10**5000),
        lambda client: client.request("POST", "/x", body=float("nan")),
        lambda client: client.request("GET", "/x", query={"a": 10**5000}),
        lambda client: client.request("GET", "/x", query={"\ud800": 1}),
        lambda client: client.request("GET", "/x/{}", 10**5000),
        lambda client: client.request("GET", "/x/{}", "\udfff"),
        lambda client: client.request("G\nET", "/x"),
        lambda client: client.request("G\ud800", "/x"),
        lambda client: client.transport.call("POST", "/x", files={"\ud800": ("\ud800", b"")}),
        lambda client: client.transport.call_webhook("POST", "\ud800", headers={}, payload={}, timeout=1),
        lambda client: client.transport.call_webhook("POST", "x", headers={"X": "a\nb"}, payload={}, timeout=1),
        lambda client: client.transport.call_webhook("POST", "x", headers={"X": "\ud800"}, payload={}, timeout=1),
        lambda client: client.transport.call_webhook("POST", "x", headers={"X\r": "a"}, payload={}, timeout=1),
        lambda client: client.transport.call_webhook("POST", "x", headers={"X": 5}, payload={}, timeout=1),
        lambda client: client.transport.call_webhook("GET", "x", headers={}, payload={"a": 10**5000}, timeout=1),
    ],
)
def test_unsendable_values_are_refused_before_anything_is_sent(call: Callable[[Client], Any]) -> None:
    with requests_mock.Mocker() as server, pytest.raises(errors.ServiceInputError, match=r"nothing was (sent|started)"):
        call(Client())

    assert not server.request_history
