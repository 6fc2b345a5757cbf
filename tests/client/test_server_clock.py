"""The offset of the server's clock: what dates say about it, and what they must not do."""

from __future__ import annotations

import email.utils
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests_mock
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service.client import ServiceClient, ServiceConfig, errors
from airflow_provider_service.client._http.transport import ServerClock
from airflow_provider_service.simulator import ServiceSimulator

from .clients import ROOT, Client

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
HOURS = 3600.0


def date(moment: float) -> str:
    return email.utils.formatdate(int(moment), usegmt=True)


def seconds(clock: ServerClock) -> float:
    assert clock.offset is not None
    return clock.offset.total_seconds()


@pytest.mark.parametrize("off", [0, -2 * HOURS, 2 * HOURS, 0.4, -0.7, 400 * 24 * HOURS])
def test_one_answer_gives_the_offset_to_a_second(off: float) -> None:
    clock = ServerClock()

    clock.learn(date(NOON + 0.3 + off), NOON + 0.2, NOON + 0.4)

    assert abs(seconds(clock) - off) <= 0.6


@given(
    st.floats(-5000, 5000),
    st.lists(st.tuples(st.floats(0, 40), st.floats(0, 1)), min_size=1, max_size=12),
)
def test_many_answers_give_it_as_precisely_as_the_best_of_them(off: float, calls: list[tuple[float, float]]) -> None:
    clock = ServerClock()
    sent = NOON
    for took, part in calls:
        clock.learn(date(sent + took * part + off), sent, sent + took)
        sent += took + 0.37

    assert abs(seconds(clock) - off) <= (min(took for took, _ in calls) + 1) / 2 + 0.01


def test_a_clock_that_is_set_is_followed_at_once() -> None:
    clock = ServerClock()
    for number in range(20):
        clock.learn(date(NOON + number * 1.1), NOON + number * 1.1, NOON + number * 1.1 + 0.01)

    clock.learn(date(NOON + 30 - 2 * HOURS), NOON + 30, NOON + 30.1)

    assert abs(seconds(clock) + 2 * HOURS) <= 0.6


@pytest.mark.parametrize(("ahead", "certain"), [(0, 0), (-2, 0), (-6, 0), (3, 3), (-9, -3)])
def test_a_slow_answer_proves_only_what_exceeds_its_time(ahead: float, certain: float) -> None:
    clock = ServerClock()
    assert clock.certain_offset is None

    clock.learn(date(NOON + ahead), NOON - 5, NOON)

    assert clock.certain_offset == timedelta(seconds=certain)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "now",
        "0",
        "Sun",
        "Sun, 22 Nov 2026",
        "Mon, 99 Jan 2026 00:00:00 GMT",
        "Mon, 01 Jan 99999 00:00:00 GMT",
        "Mon, 01 Jan 0900 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "\x00" * 99,
        "9" * 5000,
        ",,,:::",
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_invalid_date_is_ignored(value: str | None) -> None:
    clock = ServerClock()
    clock.learn(value, NOON, NOON)
    assert clock.offset is None

    clock.learn(date(NOON), NOON, NOON)
    clock.learn(value, NOON, NOON)
    assert clock.offset is not None


@given(st.text(max_size=60) | st.from_regex(r"\w{3}, \d+ \w{3} \d+ \d+:\d+:\d+ (GMT|[+-]\d+)", fullmatch=True))
def test_no_date_causes_an_error_and_any_offset_can_be_added_to_a_time(value: str) -> None:
    clock = ServerClock()

    clock.learn(value, NOON, NOON)

    if clock.offset is not None:
        datetime.fromtimestamp(NOON, UTC) + clock.offset - timedelta(days=1)


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_the_client_knows_the_offset_after_its_first_answer(simulator: ServiceSimulator, hours: int) -> None:
    simulator.clock.shift(hours * HOURS)
    client = ServiceClient(ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key))
    assert client.transport.server_clock.offset is None

    [*client.tags.list()]

    assert client.transport.server_clock.offset is not None
    assert abs(client.transport.server_clock.offset - timedelta(hours=hours)) < timedelta(seconds=30)
    client.close()


def test_an_error_answer_gives_the_offset_too(server: requests_mock.Mocker, client: Any) -> None:
    server.get(f"{ROOT}/x", status_code=404, headers={"Date": date(NOON), "Content-Type": "application/json"})

    with pytest.raises(errors.ServiceNotFoundError):
        client.request("GET", "/x")

    assert client.transport.server_clock.offset is not None


def test_a_webhook_is_ignored_because_its_workflow_writes_the_headers(server: requests_mock.Mocker) -> None:
    client = Client()
    server.post(requests_mock.ANY, json={}, headers={"Date": date(NOON)})

    client.transport.call_webhook("POST", "x", headers={}, payload={}, timeout=5)

    assert client.transport.server_clock.offset is None
