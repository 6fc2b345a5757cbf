"""Which executions are in the window, and how servers of different versions are asked for them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.health import reading
from airflow_provider_service.client._models import parse_moment, wire_time

from .checking import check, lists, statistics
from .conftest import HOUR


def test_only_the_window_counts_by_the_clock_of_the_service(simulator, workflow):
    workflow("Sync", "error", ended=2 * HOUR)
    simulator.clock.shift(-5 * HOUR)
    workflow("Late", "success", ended=HOUR / 2)
    simulator.clock.shift(5 * HOUR)
    simulator.clock.shift(-5 * HOUR)  # from here on the service is five hours behind
    found = statistics(all_workflows=True, window=timedelta(hours=1))

    assert found["Late"]["runs"] == 1
    assert abs(found["Late"]["success_age"] - HOUR / 2) < 60


@pytest.mark.parametrize("version", ["2.20.12", "2.41.1"])
@pytest.mark.parametrize("form", [datetime.isoformat, lambda end: end, lambda end: end.replace(tzinfo=None)])
def test_a_window_that_ended_before_now(simulator, workflow, form, version):
    simulator.version = version
    workflow("Sync", "success", "success", ended=30 * HOUR)
    workflow("Today", "error", ended=HOUR)
    workflow("Last week", "error", ended=150 * HOUR)
    end = simulator.clock.now() - timedelta(hours=24)
    done = check(all_workflows=True, max_age_of_success=10 * HOUR, on_breach="report", window_end=form(end))

    found = {one["name"]: one for one in done["workflows"]}
    assert {name: one["runs"] for name, one in found.items()} == {"Sync": 2, "Today": 0, "Last week": 0}
    assert abs(found["Sync"]["success_age"] - 6 * HOUR) < 60
    assert (done["window_start"], done["window_end"]) == (wire_time(end - timedelta(hours=24)), wire_time(end))
    assert done["message"].startswith(f"2 of 3 workflows are unhealthy over the 24 h before {end:%Y-%m-%d %H:%M} UTC: ")


def test_a_window_has_its_length_also_when_clocks_change(workflow):
    workflow("Sync", "success")
    end = datetime(2025, 10, 27, tzinfo=ZoneInfo("Europe/Berlin"))  # the day before had 25 hours
    done = check(all_workflows=True, on_breach="report", window_end=end)

    assert (done["window_start"], done["window_end"]) == ("2025-10-25T23:00:00.000Z", "2025-10-26T23:00:00.000Z")


def test_a_window_ends_now_at_the_latest(simulator, workflow):
    workflow("Sync", "success", ended=HOUR)
    end = simulator.clock.now() + timedelta(hours=12)
    done = check(all_workflows=True, on_breach="report", window_end=end)

    assert parse_moment(done["window_end"]) < end - timedelta(hours=11)
    assert "over the last 24 h" in done["message"]


def test_an_end_of_the_window_that_is_no_time(workflow):
    workflow("Sync", "success")
    with pytest.raises(AirflowFailException, match="window_end must be a date and time such as 2026-01-31T00:00:00Z"):
        check(all_workflows=True, on_breach="report", window_end="yesterday")


@pytest.mark.parametrize("version", ["1.123.81", "2.20.12", "2.36.9"])
def test_a_server_that_does_not_select_by_start_gives_the_same_figures(simulator, workflow, version):
    workflow("Old", "error", "success", ended=25 * HOUR)
    workflow("Sync", "success", "error", ended=2 * HOUR)
    simulator.version = version
    simulator.clear_requests()

    found = statistics(all_workflows=True)

    assert {name: (one["runs"], one["failed"]) for name, one in found.items()} == {"Old": (0, 0), "Sync": (2, 1)}
    assert ["startedAfter" in query for query in lists(simulator)] == [True, False]


def test_such_a_server_is_read_until_all_executions_are_older(simulator, workflow, monkeypatch):
    connection = json.loads(simulator.connection_json())
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps({**connection, "extra": {"page_size": 2}}))
    monkeypatch.setattr(reading, "OLDER_IN_A_ROW", 3)
    simulator.version = "2.20.12"
    one = workflow("Sync", *["error"] * 6, ended=25 * HOUR)
    # Two that are newer by their ids have started earlier.
    for status, ended in (("success", 2 * HOUR), ("error", 26 * HOUR), ("error", 26 * HOUR)):
        simulator.start_execution(one, status=status, age=ended)
    simulator.clear_requests()

    assert statistics(all_workflows=True)["Sync"]["runs"] == 1
    assert len(lists(simulator)) == 1 + 3
