"""Time jumps while everybody waits, to what is due next, and only then."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from airflow_provider_service.client import ServiceClient, ServiceConfig, errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import _passing_time
from airflow_provider_service.testing._passing_time import PassingTime, time_passes_at
from tests.polling import wait_until

HOUR = 3600.0


@pytest.fixture
def passing(simulator: ServiceSimulator) -> Iterator[PassingTime]:
    with time_passes_at(simulator, stands=True) as passing:
        yield passing


def delayed(app: ASGIApp, until: threading.Event | None = None) -> ASGIApp:
    """A layer that pauses in real time."""

    async def layer(scope: Scope, receive: Receive, send: Send) -> None:
        await (asyncio.sleep(0.3) if until is None else asyncio.to_thread(until.wait, 60))
        await app(scope, receive, send)

    return layer


def client_with(simulator: ServiceSimulator, timeout: float) -> ServiceClient:
    return ServiceClient(
        ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key, timeout=timeout, retry_deadline=0)
    )


def test_threads_and_event_loops_wake_in_the_order_of_their_times(passing: PassingTime) -> None:
    woken: list[tuple[str, float]] = []
    begin = passing.now()

    def wake(name: str) -> None:
        woken.append((name, round(passing.now() - begin)))

    def sleep(name: str, seconds: float) -> None:
        clock().sleep(seconds)
        wake(name)

    async def main() -> None:
        clock().call_later(5 * HOUR, lambda: wake("timer"))
        clock().call_later(4 * HOUR, lambda: wake("never")).cancel()
        await clock().async_sleep(2 * HOUR)
        wake("coroutine")
        with pytest.raises(asyncio.TimeoutError):
            await clock().wait_for(asyncio.Event().wait(), 2 * HOUR)
        wake("limit")
        await clock().async_sleep(2 * HOUR)

    threads = [threading.Thread(target=sleep, args=each) for each in (("late", 3 * HOUR), ("soon", HOUR))]
    for thread in threads:
        thread.start()
    asyncio.run(main())
    for thread in threads:
        thread.join()

    assert woken == [
        ("soon", HOUR),
        ("coroutine", 2 * HOUR),
        ("late", 3 * HOUR),
        ("limit", 4 * HOUR),
        ("timer", 5 * HOUR),
    ]


def test_time_does_not_pass_while_anybody_works(passing: PassingTime) -> None:
    """Work shorter than the interval at which Python's threads take turns is seen, too."""
    seen: list[float] = []
    begin, stop = passing.now(), threading.Event()

    def work() -> None:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            sum(range(1000))
        seen.append(passing.now() - begin)
        stop.set()

    threading.Thread(target=work).start()

    assert clock().wait(stop, HOUR)
    assert seen == [0.0]


def test_whoever_is_woken_gets_its_turn_before_time_passes_again(passing: PassingTime) -> None:
    """On a busy machine, a thread that has been woken may look idle before it runs, as this event loop does."""
    begin = passing.now()

    async def main() -> float:
        sleeping = asyncio.ensure_future(clock().async_sleep(HOUR))
        await asyncio.sleep(0)
        later.start()
        time.sleep(0.3)
        await sleeping
        return passing.now() - begin

    later = threading.Thread(target=lambda: clock().sleep(2 * HOUR))
    assert asyncio.run(main()) == pytest.approx(HOUR, abs=0.01)
    later.join()


def test_a_thread_that_stops_again_at_once_has_run() -> None:
    """Such as one that gets its turn while another holds Python's lock, so that it waits once more."""
    go, gone = threading.Event(), threading.Event()
    threading.Thread(target=lambda: (go.wait(), gone.wait()), daemon=True).start()
    before = _passing_time._others()
    go.set()
    wait_until(lambda: {state[:1] for state in _passing_time._others().values()} == {b"S"}, what="the thread to wait")

    assert _passing_time._others() != before
    gone.set()


def test_a_handler_of_a_signal_sleeps_in_a_thread_whose_sleep_is_over(passing: PassingTime) -> None:
    begin = passing.now()

    def handle(number: int, frame: object) -> None:
        clock().sleep(3 * HOUR)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        threading.Thread(target=lambda: (clock().sleep(HOUR), os.kill(os.getpid(), signal.SIGUSR1))).start()
        clock().sleep(2 * HOUR)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert passing.now() - begin == pytest.approx(4 * HOUR, abs=0.01)


def test_time_does_not_pass_while_a_service_works(simulator: ServiceSimulator, passing: PassingTime) -> None:
    """Nothing runs while the network delays a request, which is not held open."""
    begin, answered = passing.now(), threading.Event()
    simulator.wrap(delayed)

    def ask() -> None:
        with client_with(simulator, timeout=10 * HOUR) as client:
            assert list(client.tags.list()) == []
        answered.set()

    threading.Thread(target=ask).start()

    assert clock().wait(answered, HOUR)
    assert passing.now() == begin


def test_a_service_that_waits_for_the_test_does_not_stop_time(
    simulator: ServiceSimulator, passing: PassingTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_passing_time, "_PATIENCE_SECONDS", 0.2)
    begin, slept = passing.now(), threading.Event()
    simulator.wrap(partial(delayed, until=slept))

    def ask() -> None:
        with client_with(simulator, timeout=10 * HOUR) as client:
            assert list(client.tags.list()) == []

    asking = threading.Thread(target=ask)
    asking.start()
    clock().sleep(HOUR)
    slept.set()
    asking.join()

    assert passing.now() - begin == pytest.approx(HOUR, abs=0.01)


def test_a_pause_ends_with_its_event(passing: PassingTime) -> None:
    begin, stopped = passing.now(), threading.Event()

    def stop() -> None:
        clock().sleep(HOUR)
        stopped.set()

    threading.Thread(target=stop).start()

    assert clock().wait(stopped, 10 * HOUR)
    assert passing.now() - begin == pytest.approx(HOUR, abs=0.01)
    assert clock().wait(stopped, HOUR)
    assert not clock().wait(threading.Event(), 0)
    assert passing.now() - begin == pytest.approx(HOUR, abs=0.01)


def test_a_call_that_is_held_open_is_answered_at_its_time(simulator: ServiceSimulator, passing: PassingTime) -> None:
    begin = passing.now()
    simulator.inject("latency", seconds=HOUR)

    with client_with(simulator, timeout=2 * HOUR) as client:
        assert list(client.tags.list()) == []

    assert passing.now() - begin == pytest.approx(HOUR, abs=0.01)


def test_a_call_that_takes_too_long_has_no_answer(simulator: ServiceSimulator, passing: PassingTime) -> None:
    simulator.inject("latency", seconds=HOUR)

    with client_with(simulator, timeout=HOUR / 2) as client, pytest.raises(errors.ServiceTimeoutError):
        list(client.tags.list())


def test_polls_that_see_nothing_are_skipped_but_no_deadline(simulator: ServiceSimulator, passing: PassingTime) -> None:
    begin = passing.now()
    simulator.in_loop(lambda: simulator.state.schedule.at(simulator.clock.now(), lambda _: None))
    workflow = simulator.create_webhook_workflow(path="w")
    simulator.start_execution(workflow["id"], seconds=2.5 * HOUR)

    clock().sleep(HOUR, begin + 10 * HOUR)
    assert passing.now() - begin == pytest.approx(3 * HOUR, abs=0.01)
    clock().sleep(HOUR, begin + 10.5 * HOUR)
    assert passing.now() - begin == pytest.approx(10.5 * HOUR, abs=0.01)


def test_real_time_passes_unless_the_clock_stands(simulator: ServiceSimulator) -> None:
    with time_passes_at(simulator):
        begin = clock().now()
        clock().sleep(HOUR)
        time.sleep(0.05)
        assert HOUR + 0.05 <= clock().now() - begin < HOUR + 60


def test_the_clock_of_the_service_goes_on_where_it_was(simulator: ServiceSimulator) -> None:
    begin = simulator.clock.now()
    with time_passes_at(simulator, stands=True):
        clock().sleep(HOUR)
    assert HOUR <= (simulator.clock.now() - begin).total_seconds() < HOUR + 60
    simulator.reset()


def test_when_time_cannot_jump_every_wait_fails(
    simulator: ServiceSimulator, passing: PassingTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[str] = []

    def sleep() -> None:
        with pytest.raises(RuntimeError) as error:
            clock().sleep(HOUR)
        errors.append(str(error.value))

    async def sleep_in_a_loop() -> None:
        await clock().async_sleep(HOUR)

    monkeypatch.setattr(simulator.state.schedule, "next_due", lambda: 1 / 0)
    threads = [threading.Thread(target=sleep) for _ in range(2)]
    for thread in threads:
        thread.start()
    with pytest.raises(RuntimeError, match="time cannot pass"):
        asyncio.run(sleep_in_a_loop())
    for thread in threads:
        thread.join()

    assert errors == ["time cannot pass, so nobody can wait: ZeroDivisionError('division by zero')"] * 2
    with pytest.raises(RuntimeError, match="time cannot pass"):
        clock().sleep(HOUR)


@pytest.mark.parametrize(
    ("waiting", "expected"), [("00000000", False), ("00000002", True)], ids=["nothing", "two packets"]
)
def test_packets_that_wait_in_the_kernel_are_seen(monkeypatch, tmp_path, waiting, expected):
    idle, other = ("002c90d2 " + "00000000 " * 10 + number + " 00000000" * 3 for number in ("00000000", waiting))
    (tmp_path / "softnet_stat").write_text(f"{idle}\n{other}\n")
    monkeypatch.setattr(_passing_time, "_NETWORK", tmp_path / "softnet_stat")

    assert _passing_time._is_anything_on_its_way() is expected


def test_a_system_that_does_not_show_packets_has_none(monkeypatch, tmp_path):
    monkeypatch.setattr(_passing_time, "_NETWORK", tmp_path / "absent")
    assert not _passing_time._is_anything_on_its_way()
    (tmp_path / "absent").write_text("002c90d2 00000000\n")
    assert not _passing_time._is_anything_on_its_way()
