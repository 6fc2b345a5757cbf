"""The simulated clock as callers see it: in the date of every answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest
import requests

from .api_client import Api


def error_of(answer: requests.Response, expected: timedelta) -> timedelta:
    return abs(parsedate_to_datetime(answer.headers["Date"]) - datetime.now(UTC) - expected)


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_every_answer_is_dated_by_the_clock(api: Api, hours: int) -> None:
    api.simulator.clock.shift(hours * 3600)
    api.simulator.inject("html", path="/users", status=502)
    base = api.simulator.base_url
    answers = [api.get("/tags"), api.get("/no-such"), api.get("/users")]
    answers += [requests.get(f"{base}{path}", timeout=60) for path in ("/healthz/readiness", "/webhook/x", "/nowhere")]

    assert [answer.status_code for answer in answers] == [200, 404, 502, 200, 404, 404]
    for answer in answers:
        assert error_of(answer, timedelta(hours=hours)) < timedelta(seconds=30)


def test_a_clock_that_is_set_back_stamps_what_happens_and_delays_what_is_planned(api: Api) -> None:
    created = api.post("/tags", {"name": "before"}).json()["createdAt"]
    execution = api.simulator.start_execution(
        api.simulator.create_webhook_workflow("w", path="w")["id"], status="running", seconds=10
    )

    api.simulator.clock.shift(-7200)

    assert api.post("/tags", {"name": "after"}).json()["createdAt"] < created
    api.simulator.clock.advance(7200)
    assert api.get(f"/executions/{execution}").json()["status"] == "running"
    api.simulator.clock.advance(11)
    assert api.get(f"/executions/{execution}").json()["status"] == "success"
