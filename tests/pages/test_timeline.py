"""The timeline: it reaches until now, shows every failed run, and its axis has round times."""

from __future__ import annotations

import pytest

from airflow_provider_service._core.pages.execution_view import MAX_BARS, ExecutionView, Frame, view_of
from airflow_provider_service._core.pages.rendering import duration
from airflow_provider_service.client._clock import using
from airflow_provider_service.client.models import Execution
from tests.set_clock import SetClock

from . import workflows
from .workflows import BEGAN_MS, execution, node, run


def view(data: dict, seconds: float = 100.0) -> ExecutionView:
    """What is shown so many seconds after the execution began."""
    clock = SetClock()
    clock.advance(BEGAN_MS / 1000 + seconds - clock.now())
    with using(clock):
        return view_of(Execution.model_validate(data))


@pytest.mark.parametrize("failing", [0, 250, 498])
def test_the_failed_run_of_a_loop_of_500_is_visible(failing):
    loop = view(workflows.loop(500, failing)).node("Send order")

    assert (loop.state, loop.runs, loop.failed_runs) == ("failed in part", 500, 1)
    assert loop.bars[-1].state == "failed"  # above the others
    assert loop.bars[-1].begin == pytest.approx(failing / 500, abs=0.01)
    assert loop.message == "The shop is closed"
    assert len(loop.bars) <= MAX_BARS


def test_the_bars_of_a_loop_reach_as_far_as_its_runs():
    loop = view(workflows.loop(500, None)).node("Send order")

    assert loop.state == "succeeded"
    assert loop.bars[-1].begin + loop.bars[-1].length == pytest.approx(1, abs=0.01)
    assert sum(bar.length for bar in loop.bars) == pytest.approx(0.75, abs=0.25)


def test_the_frame_of_a_waiting_execution_reaches_until_now():
    early, late = (view(workflows.waiting(), seconds) for seconds in (60, 6_000))

    for one, seconds in ((early, 60), (late, 6_000)):
        assert seconds * 0.98 - 1 <= one.frame.length / 1000 <= seconds
        [bar] = one.node("Step 3: prepare orders").bars
        assert (bar.state, bar.begin + bar.length) == ("waiting", pytest.approx(1))
    assert [len(one.frame.ticks) for one in (early, late)] == [3, 4]


def test_a_long_wait_changes_the_page_seldom():
    assert view(workflows.waiting(), 6_000) == view(workflows.waiting(), 6_010)


def test_the_node_that_runs_now_has_a_bar_that_grows_although_the_service_does_not_report_it():
    shown = view(workflows.running(13, 7), 60)

    current = shown.node("Step 8: prepare orders")
    assert (current.state, current.runs, shown.opens_at) == ("running", 0, current)
    assert current.began == pytest.approx(0.69)
    [bar] = current.bars
    assert (bar.state, bar.begin + bar.length) == ("running", pytest.approx(1))
    assert shown.node("Step 9: prepare orders").state == "unreported"


def test_a_clock_that_is_behind_the_service_does_no_harm():
    assert view(workflows.waiting(), -3_600).frame.length == pytest.approx(205)


def test_an_execution_that_has_ended_does_not_grow():
    ended = execution([node("A")], {}, {"A": [run(0, 500)]}, seconds=2)

    assert view(ended, 10).frame == view(ended, 10_000).frame
    assert view(ended).frame.length == 2_000


@pytest.mark.parametrize(
    ("seconds", "marks"),
    [
        (0.001, ["0 s", "1 ms"]),
        (0.35, ["0 s", "100 ms", "200 ms", "300 ms"]),
        (20.042, ["0 s", "10 s", "20 s"]),
        (100, ["0 s", "50 s", "1 min 40 s"]),
        (300, ["0 s", "2 min", "4 min"]),
        (4_000, ["0 s", "30 min", "1 h"]),
        (20 * 86_400, ["0 s", "5 d", "10 d", "15 d", "20 d"]),
    ],
)
def test_the_axis_has_round_times(seconds, marks):
    ticks = Frame(0.0, seconds * 1000, 0.0, is_open=False).ticks

    assert [duration(tick.seconds) for tick in ticks] == marks
    assert all(tick.at == pytest.approx(tick.seconds / seconds) for tick in ticks)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0123, "12 ms"),
        (0.9999, "1 s"),
        (1.26, "1.3 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min"),
        (125, "2 min 5 s"),
        (7_260, "2 h 1 min"),
        (86_400 * 1_200 + 7_200, "1,200 d 2 h"),
    ],
)
def test_durations_have_one_format(seconds, text):
    assert duration(seconds) == text
