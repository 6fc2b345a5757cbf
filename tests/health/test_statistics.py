"""The statistics agree with what a simple count of all executions gives."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta
from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service._core.health.check import HealthCheck
from airflow_provider_service._core.health.statistics import ExecutionStatistics, Tally, breaches, span
from airflow_provider_service.client._constraints import ExecutionStatus

NOW = datetime(2026, 1, 31, tzinfo=UTC)

moments = st.datetimes(datetime(2026, 1, 30), datetime(2026, 1, 30, 23), timezones=st.just(UTC))
executions = st.tuples(
    st.sampled_from([*get_args(ExecutionStatus), "of a newer server"]),
    st.none() | moments,
    st.none() | st.timedeltas(timedelta(minutes=-1), timedelta(hours=1)),
)
limits = st.none() | st.floats(0, 1e5)


def check_of(*thresholds):
    return HealthCheck(*[None] * 6, True, 86_400.0, *thresholds)


def tally(history, seed=0):
    one = Tally(Random(seed))
    for status, started_at, duration in history:
        one.count(status, started_at, None if duration is None or started_at is None else started_at + duration)
    return one.statistics(NOW)


@given(st.lists(executions))
def test_they_are_those_of_all_executions(history):
    found = tally(history)
    good = [one for one in history if one[0] == "success"]
    bad = [one for one in history if one[0] in ("error", "crashed")]
    assert (found.succeeded, found.failed, found.runs) == (len(good), len(bad), len(good) + len(bad))
    assert found.canceled == sum(one[0] == "canceled" for one in history)
    assert found.failure_rate == (len(bad) / len(good + bad) if good + bad else None)
    ends = [started + duration for _, started, duration in good if None not in (started, duration)]
    assert found.success_age == ((NOW - max(ends)).total_seconds() if ends else None)
    assert found.last_success_at == max(ends, default=None)
    lengths = [max(one[2].total_seconds(), 0.0) for one in good + bad if None not in one[1:]]
    assert found.duration_median == (statistics.median(lengths) if lengths else None)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_at_most_a_twentieth_of_the_durations_is_above_the_95th_percentile(lengths):
    durations = [timedelta(seconds=length) for length in lengths]
    found = tally(("success", NOW - timedelta(days=20), duration) for duration in durations)
    seconds = [duration.total_seconds() for duration in durations]
    assert found.duration_p95 in seconds
    assert found.duration_median <= found.duration_p95
    assert sum(one > found.duration_p95 for one in seconds) <= len(seconds) / 20
    assert sum(one >= found.duration_p95 for one in seconds) > len(seconds) / 20


@given(st.lists(executions), st.randoms(use_true_random=False))
def test_their_order_does_not_matter(history, random):
    shuffled = random.sample(history, len(history))
    assert tally(history) == tally(shuffled)


@pytest.mark.parametrize("ascending", [True, False])
def test_many_durations_take_no_more_memory_and_stay_close(monkeypatch, ascending):
    monkeypatch.setattr("airflow_provider_service._core.health.statistics.MAX_DURATIONS", 1000)
    one = Tally(Random(0))
    for second in range(20_000):
        length = second if ascending else 20_000 - second
        one.count("success", NOW - timedelta(days=1), NOW - timedelta(days=1) + timedelta(seconds=length))
    found = one.statistics(NOW)
    assert found.runs == 20_000
    assert len(one._durations) == 1000
    assert abs(found.duration_median - 10_000) < 1_000
    assert abs(found.duration_p95 - 19_000) < 500


@given(st.lists(executions), limits, limits, st.none() | st.integers(1, 9), limits, limits)
def test_exactly_the_thresholds_that_do_not_hold_are_breached(history, rate, age, runs, median, p95):
    found = tally(history)
    check = check_of(rate, age, runs, median, p95)
    holds = {
        "max_failure_rate": rate is None or (found.failure_rate or 0) <= rate,
        "max_age_of_success": age is None or (found.success_age is not None and found.success_age <= age),
        "min_runs": runs is None or found.runs >= runs,
        "max_duration_median": median is None or (found.duration_median or 0) <= median,
        "max_duration_p95": p95 is None or (found.duration_p95 or 0) <= p95,
    }
    breached = breaches(check, found)
    assert sorted(one.threshold for one in breached) == sorted(name for name, is_held in holds.items() if not is_held)
    assert all(one.limit == getattr(check, one.threshold) and one.threshold in one.text for one in breached)
    assert check.judges == ((rate, age, runs, median, p95) != (None,) * 5)


def test_a_breach_says_value_and_limit():
    found = ExecutionStatistics(4, 1, 3, 0, 0.75, 90_000.0, 90.0, 7_300.0, NOW)
    texts = [one.text for one in breaches(check_of(0.5, 3_600, 5, 60, 3_600), found)]
    assert texts == [
        "failure rate 0.75, above max_failure_rate 0.5",
        "age of the last success 25 h, above max_age_of_success 60 min",
        "median duration 90 s, above max_duration_median 60 s",
        "95th percentile of the duration 2.028 h, above max_duration_p95 60 min",
        "4 runs, below min_runs 5",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "0.25 s"), (119, "119 s"), (600, "10 min"), (86_400, "24 h"), (604_800, "7 days")]
)
def test_lengths_of_time_in_words(seconds, text):
    assert span(seconds) == text
