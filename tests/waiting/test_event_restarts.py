"""A watcher that goes on where it was, after the triggerer has ended in any moment."""

from __future__ import annotations

import asyncio

import pytest

from airflow_provider_service.simulator import ServiceSimulator

from .driving import Triggerer, in_event_loop, until
from .watching import AssetState, StateOfManyAssets, ids, looked, watcher


@in_event_loop
async def test_a_restart_misses_nothing_and_repeats_nothing(simulator: ServiceSimulator, workflow_id: str) -> None:
    state = AssetState()
    running, waiting = (simulator.start_execution(workflow_id, status=status) for status in ("running", "waiting"))
    told: list[str] = []
    expected: list[str] = []
    for life in range(3):
        triggerer = Triggerer()
        number = triggerer.start(watcher(workflow_id, state))
        await looked(simulator)
        expected.append(simulator.start_execution(workflow_id, status="success"))
        await looked(simulator)
        await triggerer.shut_down()
        told += ids(triggerer.events(number))
        # Meanwhile nobody looks.
        expected.append(simulator.start_execution(workflow_id, status="error"))
        if life == 1:
            simulator.finish_execution(waiting)
            expected.insert(3, waiting)
    triggerer = Triggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await until(lambda: len(told) + len(triggerer.events(number)) == 7)
    simulator.finish_execution(running)
    expected.append(running)
    await looked(simulator, 3)
    told += ids(triggerer.events(number))
    await triggerer.shut_down()

    assert told == expected


@in_event_loop
async def test_a_watcher_that_joins_a_shared_poll_goes_on_where_it_was(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    state = AssetState()
    triggerer = Triggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await looked(simulator)
    await triggerer.kill(number)
    missed = simulator.start_execution(workflow_id, status="success")
    other = triggerer.start(watcher("another"))
    await looked(simulator)

    number = triggerer.start(watcher(workflow_id, state))
    await looked(simulator, 3)

    assert ids(triggerer.events(number)) == [missed]
    assert triggerer.events(other) == []
    await triggerer.shut_down()


@pytest.mark.parametrize("noted", [0, 1, 2])
@in_event_loop
async def test_only_the_event_that_was_not_noted_is_told_again(
    simulator: ServiceSimulator, workflow_id: str, noted: int
) -> None:
    state = AssetState()
    stream = watcher(workflow_id, state).run()
    first = asyncio.ensure_future(anext(stream))
    await looked(simulator)
    started = [simulator.start_execution(workflow_id, status="success") for _ in range(3)]
    told = [await first, *[await anext(stream) for _ in range(noted)]]
    assert ids([event.payload for event in told]) == started[: noted + 1]
    await stream.aclose()  # the triggerer dies between an event and its note

    stream = watcher(workflow_id, state).run()
    again = [(await anext(stream)).payload for _ in started[noted:]]
    await stream.aclose()

    assert ids(again) == started[noted:]


@in_event_loop
async def test_the_cursor_is_written_only_when_it_has_moved(simulator: ServiceSimulator, workflow_id: str) -> None:
    state = AssetState()
    triggerer = Triggerer()
    triggerer.start(watcher(workflow_id, state))
    await looked(simulator, 3)
    writes = state.writes
    await looked(simulator, 5)

    assert state.writes == writes >= 1
    await triggerer.shut_down()


@in_event_loop
async def test_watchers_of_one_asset_keep_their_cursors_apart(simulator: ServiceSimulator, workflow_id: str) -> None:
    state = AssetState()
    triggerer = Triggerer()
    for statuses in (["error"], ["success"], ["success", "error"]):
        triggerer.start(watcher(workflow_id, state, statuses=statuses))
    await looked(simulator)

    assert len(state.kept) == 3
    await triggerer.shut_down()


@in_event_loop
async def test_a_watcher_of_several_assets_works_without_a_state(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    triggerer = Triggerer()
    number = triggerer.start(watcher(workflow_id, StateOfManyAssets()))
    await looked(simulator)
    one = simulator.start_execution(workflow_id, status="success")
    await looked(simulator, 3)

    assert ids(triggerer.events(number)) == [one]
    assert "a restart begins anew" in caplog.text
    assert triggerer.broken() == []
    await triggerer.shut_down()


@pytest.mark.parametrize("kept", ["[]", '{"floor": "x"}', "7", '{"floor": 1}'])
@in_event_loop
async def test_a_kept_value_that_is_no_cursor_begins_anew(
    simulator: ServiceSimulator, workflow_id: str, kept: str
) -> None:
    simulator.start_execution(workflow_id, status="success")
    state = AssetState()
    trigger = watcher(workflow_id, state)
    state.kept[trigger._cursor_key] = kept
    triggerer = Triggerer()
    number = triggerer.start(trigger)
    await looked(simulator)
    one = simulator.start_execution(workflow_id, status="success")
    await looked(simulator, 3)

    assert ids(triggerer.events(number)) == [one]
    await triggerer.shut_down()
