"""A watcher that continues where it was, after the triggerer has ended at any time."""

from __future__ import annotations

import json

import pytest

from airflow_provider_service.client._clock import clock
from airflow_provider_service.simulator import ServiceSimulator
from tests import airflow_features
from tests.waits.driving import in_event_loop, until

from . import persisting
from .persisting import PersistingTriggerer
from .watching import AssetState, StateOfManyAssets, ids, polled, polls, watcher

pytestmark = airflow_features.asset_watchers


@pytest.mark.slow
@airflow_features.kept_cursors
@in_event_loop
async def test_a_restart_misses_nothing_and_repeats_nothing(simulator: ServiceSimulator, workflow_id: str) -> None:
    state = AssetState()
    running, waiting = (simulator.start_execution(workflow_id, status=status) for status in ("running", "waiting"))
    told: list[str] = []
    expected: list[str] = []
    for life in range(3):
        triggerer = PersistingTriggerer()
        number = triggerer.start(watcher(workflow_id, state))
        await polled(simulator)
        expected.append(simulator.start_execution(workflow_id, status="success"))
        await polled(simulator)
        await triggerer.shut_down()
        told += ids(triggerer.events(number))
        # No watcher looks in the meantime.
        expected.append(simulator.start_execution(workflow_id, status="error"))
        if life == 1:
            simulator.finish_execution(waiting)
            expected.insert(3, waiting)
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await until(lambda: len(told) + len(triggerer.events(number)) == 7)
    simulator.finish_execution(running)
    expected.append(running)
    await polled(simulator, 3)
    told += ids(triggerer.events(number))
    await triggerer.shut_down()

    assert told == expected


@airflow_features.kept_cursors
@in_event_loop
async def test_a_watcher_that_joins_a_shared_poll_continues_where_it_was(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    state = AssetState()
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await polled(simulator)
    await triggerer.kill(number)
    missed = simulator.start_execution(workflow_id, status="success")
    other = triggerer.start(watcher("another"))
    await polled(simulator)

    number = triggerer.start(watcher(workflow_id, state))
    await polled(simulator, 3)

    assert ids(triggerer.events(number)) == [missed]
    assert triggerer.events(other) == []
    await triggerer.shut_down()


@pytest.mark.slow(one_in=3)
@airflow_features.kept_cursors
@pytest.mark.parametrize(
    ("death", "stored", "again"),
    [
        pytest.param({"syncs": False}, 0, 3, id="before the events leave the runner"),
        pytest.param({"stores": False}, 0, 3, id="before the supervisor stores them"),
        pytest.param({"confirms": False}, 3, 3, id="before the runner hears that they are stored"),
        pytest.param({}, 3, 0, id="after that"),
    ],
)
@in_event_loop
async def test_no_event_is_lost_when_the_triggerer_dies(
    simulator: ServiceSimulator, workflow_id: str, death: dict[str, bool], stored: int, again: int
) -> None:
    state = AssetState()
    first = PersistingTriggerer()
    first.start(watcher(workflow_id, state))
    await polled(simulator)
    await first.shut_down()
    dying = PersistingTriggerer(**death)
    number = dying.start(watcher(workflow_id, state))
    await polled(simulator)
    started = [simulator.start_execution(workflow_id, status="success") for _ in range(3)]
    await until(lambda: len(dying.fired(number)) + len(dying.events(number)) == 3 or "stores" in death)
    await polled(simulator, 5)
    state = await dying.die(state)
    assert ids(dying.events(number)) == started[:stored]

    second = PersistingTriggerer()
    number = second.start(watcher(workflow_id, state))
    await polled(simulator, 4)
    assert ids(second.events(number)) == started[:again]
    await second.shut_down()


@pytest.mark.slow
@airflow_features.kept_cursors
@in_event_loop
async def test_an_event_is_recorded_as_soon_as_it_is_stored(simulator: ServiceSimulator, workflow_id: str) -> None:
    state = AssetState()
    triggerer = PersistingTriggerer()
    unhurried = watcher(workflow_id, state)
    unhurried.poll_interval = 1.0
    number = triggerer.start(unhurried)
    await until(lambda: state.writes == 1)
    one = simulator.start_execution(workflow_id, status="success")

    await until(lambda: ids(triggerer.events(number)) == [one])
    seen = polls(simulator)
    await until(lambda: state.writes == 2)

    assert polls(simulator) == seen, "not only at the next poll"
    [cursor] = state.kept.values()
    assert json.loads(cursor)["reported"] == [int(one)]
    await triggerer.shut_down()


@pytest.mark.real_time  # Airflow's own time limit goes by the clock of the event loop
@airflow_features.kept_cursors
@in_event_loop
async def test_an_event_that_airflow_drops_is_not_recorded(
    simulator: ServiceSimulator, workflow_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__TRIGGERER__SHARED_STREAM_ACK_TIMEOUT", "0.3")
    other = simulator.create_webhook_workflow(path="other")["id"]
    state, others_state = AssetState(), AssetState()
    triggerer = PersistingTriggerer(stores=False)
    triggerer.start(watcher(workflow_id, state))
    triggerer.start(watcher(other, others_state, statuses=["crashed"]))
    await polled(simulator)
    one = simulator.start_execution(workflow_id, status="success")
    await until(lambda: len(triggerer.broken()) == 1)
    assert type(triggerer.broken()[0]).__name__ == "AckTimeout"
    theirs = simulator.start_execution(other, status="success")
    await polled(simulator, 3)
    assert json.loads(*others_state.kept.values())["ceiling"] == int(theirs), "others go on"
    await triggerer.shut_down()

    # Airflow starts a watcher again that has failed.
    monkeypatch.setenv("AIRFLOW__TRIGGERER__SHARED_STREAM_ACK_TIMEOUT", "60")
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, state))
    await polled(simulator, 3)
    assert ids(triggerer.events(number)) == [one]
    await triggerer.shut_down()


@pytest.mark.slow
@airflow_features.kept_cursors
@in_event_loop
async def test_ends_that_take_long_to_read_hold_up_no_others(
    simulator: ServiceSimulator,
    workflow_id: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(persisting, "SYNC_SECONDS", 1.0)
    other, state = simulator.create_webhook_workflow(path="other")["id"], AssetState()
    long = [simulator.start_execution(workflow_id) for _ in range(4)]
    triggerer = PersistingTriggerer()
    unhurried = watcher(workflow_id, state)
    unhurried.poll_interval = 10.0
    number = triggerer.start(unhurried)
    for _ in range(3):  # so that they are older than what every poll reads again
        await clock().async_sleep(11)
        simulator.start_execution(other, status="success")
    await clock().async_sleep(11)
    simulator.inject("latency", times=None, path=r"/executions/\d+$", seconds=12)

    for one in long:
        simulator.finish_execution(one)
    await until(lambda: len(triggerer.events(number)) > 0, every=1)
    assert len(triggerer.events(number)) == 3, "those that could be read in half a minute"
    assert "whether 1 executions have ended is read later" in caplog.text

    simulator.clear_faults()
    await until(lambda: len(triggerer.events(number)) == 4, every=1)
    assert sorted(ids(triggerer.events(number))) == long
    await triggerer.shut_down()


@pytest.mark.slow
@airflow_features.kept_cursors
@in_event_loop
async def test_the_cursor_is_written_only_when_it_has_moved(simulator: ServiceSimulator, workflow_id: str) -> None:
    state = AssetState()
    triggerer = PersistingTriggerer()
    triggerer.start(watcher(workflow_id, state))
    await polled(simulator, 3)
    writes = state.writes
    await polled(simulator, 5)

    assert state.writes == writes >= 1
    await triggerer.shut_down()


@airflow_features.kept_cursors
@in_event_loop
async def test_watchers_of_one_asset_keep_their_cursors_apart(simulator: ServiceSimulator, workflow_id: str) -> None:
    state = AssetState()
    triggerer = PersistingTriggerer()
    for statuses in (["error"], ["success"], ["success", "error"]):
        triggerer.start(watcher(workflow_id, state, statuses=statuses))
    await polled(simulator)

    assert len(state.kept) == 3
    await triggerer.shut_down()


@in_event_loop
async def test_a_watcher_of_several_assets_works_without_a_state(
    simulator: ServiceSimulator, workflow_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    triggerer = PersistingTriggerer()
    number = triggerer.start(watcher(workflow_id, StateOfManyAssets()))
    await polled(simulator)
    one = simulator.start_execution(workflow_id, status="success")
    await polled(simulator, 3)

    assert ids(triggerer.events(number)) == [one]
    assert "after a restart it starts from scratch" in caplog.text
    assert triggerer.broken() == []
    await triggerer.shut_down()


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["[]", '{"floor": "x"}', "7", '{"floor": 1}'])
@in_event_loop
async def test_a_kept_value_that_is_not_a_cursor_is_replaced(
    simulator: ServiceSimulator, workflow_id: str, kept: str
) -> None:
    simulator.start_execution(workflow_id, status="success")
    state = AssetState()
    trigger = watcher(workflow_id, state)
    state.kept[trigger._cursor_key] = kept
    triggerer = PersistingTriggerer()
    number = triggerer.start(trigger)
    await polled(simulator)
    one = simulator.start_execution(workflow_id, status="success")
    await polled(simulator, 3)

    assert ids(triggerer.events(number)) == [one]
    await triggerer.shut_down()


@pytest.mark.slow
@in_event_loop
async def test_a_watcher_that_airflow_takes_away_reports_nothing_more(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    triggerer, state = PersistingTriggerer(), AssetState()
    taken, stays = triggerer.start(watcher(workflow_id, state)), triggerer.start(watcher(workflow_id))
    await polled(simulator)
    await triggerer.kill(taken)
    kept = dict(state.kept)
    simulator.start_execution(workflow_id, status="success")
    await until(lambda: len(triggerer.events(stays)) == 1)
    await polled(simulator)

    assert (triggerer.fired(taken), state.kept) == ([], kept)
    await triggerer.shut_down()
