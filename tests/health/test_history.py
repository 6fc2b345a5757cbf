"""Every run counts once, in the slice of time in which it started."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service._core.arguments import MAX_SECONDS
from airflow_provider_service._core.health.statistics import MAX_SLICES, History
from airflow_provider_service.client._constraints import ExecutionStatus

NOW = datetime(2026, 1, 31, 18, 21, 20, tzinfo=UTC)
DAY = timedelta(days=1)

statuses = st.sampled_from([*get_args(ExecutionStatus), "of a newer server"])
windows = st.floats(0.001, MAX_SECONDS).map(lambda seconds: timedelta(seconds=seconds))
parts = st.floats(0, 1)


@given(windows, st.lists(st.tuples(statuses, parts)))
def test_the_slices_add_up_to_all_runs(window, executions):
    history = History(NOW - window, NOW)
    starts = [(status, NOW - window * part) for status, part in executions]
    for status, started_at in starts:
        history.count(status, started_at)

    for begin, (succeeded, failed) in history.slices():
        within = [status for status, started_at in starts if begin <= started_at < begin + history.length]
        assert succeeded == within.count("success")
        assert failed == within.count("error") + within.count("crashed")
    counted = [counts for _, counts in history.slices()]
    assert sum(map(sum, counted)) == sum(status in ("success", "error", "crashed") for status, _ in starts)


@given(windows)
def test_a_few_slices_of_round_length_cover_the_window_without_gaps(window):
    history = History(NOW - window, NOW)
    begins = [begin for begin, _ in history.slices()]

    assert begins[0] <= NOW - window < begins[0] + history.length
    assert begins[-1] <= NOW < begins[-1] + history.length
    assert {later - sooner for sooner, later in pairwise(begins)} <= {history.length}
    assert len(begins) <= MAX_SLICES + 1
    assert not DAY % history.length or not history.length % DAY
    if history.length >= DAY:
        assert {begin.time() for begin in begins} == {datetime.min.time()}
    if history.length >= 7 * DAY:
        assert {begin.weekday() for begin in begins} == {0}


@pytest.mark.parametrize(
    ("window", "length", "first"),
    [
        (timedelta(seconds=1), timedelta(minutes=1), "2026-01-31T18:21"),
        (timedelta(hours=1), timedelta(minutes=2), "2026-01-31T17:20"),
        (DAY, timedelta(hours=1), "2026-01-30T18:00"),
        (7 * DAY, timedelta(hours=6), "2026-01-24T18:00"),
        (30 * DAY, DAY, "2026-01-01T00:00"),
        (365 * DAY, 14 * DAY, "2025-01-20T00:00"),
    ],
)
def test_the_length_fits_the_window(window, length, first):
    history = History(NOW - window, NOW)
    begin, _ = next(history.slices())
    assert (history.length, begin) == (length, datetime.fromisoformat(first).replace(tzinfo=UTC))


def test_a_run_on_a_boundary_counts_once_in_the_slice_that_begins_there():
    history = History(NOW - DAY, NOW)
    boundary = NOW.replace(hour=12, minute=0, second=0)
    history.count("success", boundary)
    history.count("error", boundary - timedelta(microseconds=1))
    found = {begin: counts for begin, counts in history.slices() if any(counts)}
    assert found == {boundary: [1, 0], boundary - timedelta(hours=1): [0, 1]}


@pytest.mark.parametrize(("started_at", "place"), [(datetime.min, 0), (NOW + DAY, -1), (datetime.max, -1)])
def test_a_run_outside_the_window_counts_at_its_nearest_end(started_at, place):
    history = History(NOW - DAY, NOW)
    history.count("crashed", started_at.replace(tzinfo=UTC))
    counts = [counts for _, counts in history.slices()]
    assert counts[place] == [0, 1]
    assert sum(map(sum, counts)) == 1
