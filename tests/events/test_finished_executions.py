"""Whatever happens between the requests of the polls, each end is reported once."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_service._core.events.finished_executions import Cursor, ExecutionPoll, Snapshot, listed, read
from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.client._client import Resources
from airflow_provider_service.client._http.transport import Transport
from airflow_provider_service.simulator import ServiceSimulator

ACTIVE = ("new", "running", "waiting")
ENDED = ("success", "error", "canceled", "crashed")


class InterruptedTransport(Transport):
    """Lets something happen before each request."""

    between: Callable[[], None] = staticmethod(lambda: None)

    def call(self, *arguments: Any, **options: Any) -> Any:
        self.between()
        return super().call(*arguments, **options)


class InterruptedClient(Resources):
    """A client whose lists have few items a page, so that a poll takes many requests."""

    def __init__(self, simulator: ServiceSimulator) -> None:
        self._config = ServiceConfig(base_url=simulator.base_url, api_key=simulator.api_key, page_size=3)
        self._transport = InterruptedTransport(self._config)

    @property
    def transport(self) -> InterruptedTransport:
        return self._transport

    @property
    def base_url(self) -> str:
        return self._config.base_url


class Story:
    """Executions of two workflows that start, progress, end and vanish, and the ends that must be reported."""

    def __init__(self, simulator: ServiceSimulator, data: st.DataObject) -> None:
        self.simulator, self.data = simulator, data
        self.workflows = [simulator.create_webhook_workflow(path=path)["id"] for path in ("a", "b")]
        self.active: set[str] = set()
        self.moved: set[str] = set()
        self.ends: list[str] = []

    def anything(self) -> None:
        """Let up to two things happen."""
        for _ in range(self.data.draw(st.integers(0, 2))):
            kinds = ["start", "start ended", *(["move", "end", "end", "vanish"] if self.active else [])]
            getattr(self, self.data.draw(st.sampled_from(kinds)).replace(" ", "_"))()

    def start(self) -> None:
        workflow = self.data.draw(st.sampled_from(self.workflows))
        status = self.data.draw(st.sampled_from(ACTIVE))
        self.active.add(self.simulator.start_execution(workflow, status=status))

    def start_ended(self) -> None:
        status = self.data.draw(st.sampled_from(ENDED))
        workflow = self.data.draw(st.sampled_from(self.workflows))
        self.ends.append(self.simulator.start_execution(workflow, status=status))

    def move(self) -> None:
        """From the queue or from sleep to running, or to sleep; a sleep is longer than a poll."""
        execution = self.simulator.state.executions.get(int(self.one()))
        assert execution is not None
        if str(execution.id) not in self.moved:
            move(self.simulator, str(execution.id), "waiting" if execution.status == "running" else "running")
            self.moved.add(str(execution.id))

    def end(self) -> None:
        one = self.one()
        self.simulator.finish_execution(one, self.data.draw(st.sampled_from(ENDED)))
        self.ends.append(one)
        self.active.remove(one)

    def vanish(self) -> None:
        one = self.one()
        self.simulator.forget_execution(one)
        self.active.remove(one)

    def one(self) -> str:
        return self.data.draw(st.sampled_from(sorted(self.active)))


class Listener:
    """Follows the snapshots of one workflow from the first one on, and records which ends are and must be reported."""

    def __init__(self, first: Snapshot, story: Story, workflow_id: str, ends_before: int) -> None:
        self._workflow_id = workflow_id
        self.cursor = Cursor.beginning(first.of(frozenset({workflow_id})))
        self.reported: list[str] = []
        self._may_tell = set(story.ends[ends_before:])
        self._must_tell_from = len(story.ends)
        self._is_caught_up = True

    def hear(self, snapshot: Snapshot, client: InterruptedClient) -> None:
        own = snapshot.of(frozenset({self._workflow_id}))
        if not self._is_caught_up:
            own = own.with_more(listed(client, self.cursor.floor, self._workflow_id))  # type: ignore[arg-type]
        self._is_caught_up = True
        own = own.with_read(read(client, self.cursor.unseen(own)), frozenset({self._workflow_id}))  # type: ignore[arg-type]
        for execution in self.cursor.unreported(own):
            self.reported.append(execution.id)
            self.cursor.reported.add(execution.number)
        self.cursor.advance(own)

    def restart(self) -> None:
        kept = Cursor.from_json(json.loads(json.dumps(self.cursor.to_json())))
        assert kept == self.cursor
        self.cursor, self._is_caught_up = kept, False

    def check(self, ends: list[str], simulator: ServiceSimulator) -> None:
        executions = {one: simulator.state.executions.get(int(one)) for one in ends[self._must_tell_from :]}
        must = {
            one for one, execution in executions.items() if execution and execution.workflow_id == self._workflow_id
        }
        assert len(self.reported) == len(set(self.reported)), "told twice"
        assert must <= set(self.reported), "missed"
        assert set(self.reported) <= must | self._may_tell, "had ended before the beginning"


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_end_is_reported_once(simulator: ServiceSimulator, data: st.DataObject) -> None:
    simulator.reset()
    story = Story(simulator, data)
    client = InterruptedClient(simulator)
    poll, listeners = ExecutionPoll(), list[Listener]()

    def poll_again() -> None:
        nonlocal poll
        if data.draw(st.integers(0, 3)) == 0:  # another triggerer continues
            poll = ExecutionPoll()
            for listener in listeners:
                listener.restart()
        story.moved.clear()
        ends_before = len(story.ends)
        snapshot = poll.snapshot(client)  # type: ignore[arg-type]
        for listener in listeners:
            if data.draw(st.booleans()):
                listener.restart()
            listener.hear(snapshot, client)
        if not listeners or data.draw(st.booleans()):
            listeners.append(Listener(snapshot, story, data.draw(st.sampled_from(story.workflows)), ends_before))

    client.transport.between = story.anything
    for _ in range(data.draw(st.integers(2, 5))):
        poll_again()
    client.transport.between = lambda: None
    for _ in range(2):
        poll_again()
    client.transport.close()

    for listener in listeners:
        listener.check(story.ends, simulator)


class Watch:
    """One poll and the cursor of one workflow."""

    def __init__(self, client: InterruptedClient, workflow_id: str) -> None:
        self._client, self._workflow_id, self._poll = client, workflow_id, ExecutionPoll()
        self._cursor = Cursor.beginning(self._poll_once())

    def in_another_triggerer(self) -> None:
        self._poll = ExecutionPoll()

    def _poll_once(self) -> Snapshot:
        return self._poll.snapshot(self._client).of(frozenset({self._workflow_id}))  # type: ignore[arg-type]

    def advance(self) -> list[str]:
        """Poll once, and return the reported ends."""
        snapshot = self._poll_once()
        found = read(self._client, self._cursor.unseen(snapshot))  # type: ignore[arg-type]
        snapshot = snapshot.with_read(found, frozenset({self._workflow_id}))
        told = self._cursor.unreported(snapshot)
        for execution in told:
            self._cursor.reported.add(execution.number)
        self._cursor.advance(snapshot)
        return [execution.id for execution in told]


MOVES = [("running", "waiting"), ("waiting", "running"), ("new", "running")]


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("moment", range(1, 8))
@pytest.mark.parametrize(("before", "after"), MOVES)
def test_an_execution_that_moves_on_during_a_poll_is_not_lost(
    simulator: ServiceSimulator, workflow_id: str, before: str, after: str, moment: int
) -> None:
    one = simulator.start_execution(workflow_id, status=before)
    client = InterruptedClient(simulator)
    watch = Watch(client, workflow_id)
    for _ in range(3):  # until it is older than what every poll reads again
        simulator.start_execution(workflow_id, status="success")
        watch.advance()

    client.transport.between = at_request(moment, lambda: move(simulator, one, after))
    told = watch.advance()
    client.transport.between = lambda: None
    simulator.finish_execution(one)
    told += watch.advance()
    client.transport.close()

    assert told == [one]


@pytest.mark.parametrize("moment", range(1, 7))
@pytest.mark.parametrize(("before", "after"), MOVES)
def test_an_execution_that_moves_on_during_the_first_poll_is_not_lost(
    simulator: ServiceSimulator, workflow_id: str, before: str, after: str, moment: int
) -> None:
    one = simulator.start_execution(workflow_id, status=before)
    simulator.start_execution(workflow_id, status="success")
    client = InterruptedClient(simulator)
    client.transport.between = at_request(moment, lambda: move(simulator, one, after))
    watch = Watch(client, workflow_id)
    client.transport.between = lambda: None
    simulator.finish_execution(one)
    told = watch.advance()
    client.transport.close()

    assert told == [one]


@pytest.mark.parametrize("moment", range(1, 5))
def test_an_execution_that_starts_during_a_poll_is_not_overtaken(
    simulator: ServiceSimulator, workflow_id: str, moment: int
) -> None:
    client = InterruptedClient(simulator)
    watch = Watch(client, workflow_id)
    started: list[str] = []

    def start() -> None:
        started.extend(simulator.start_execution(workflow_id, status=status) for status in ("running", "success"))

    client.transport.between = at_request(moment, start)
    told = watch.advance()
    simulator.finish_execution(started[0])
    told += watch.advance()
    client.transport.close()

    assert sorted(told) == started


def test_an_end_that_was_read_because_no_list_showed_it_is_not_late_afterwards(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    one = simulator.start_execution(workflow_id, status="running")
    simulator.start_execution(workflow_id, status="success")
    client = InterruptedClient(simulator)
    watch = Watch(client, workflow_id)
    watch.in_another_triggerer()

    client.transport.between = at_request(2, lambda: simulator.finish_execution(one))
    told = [*watch.advance(), *watch.advance()]
    client.transport.close()

    assert told == [one]


def test_an_end_that_another_triggerer_lists_late_was_reported_before(
    simulator: ServiceSimulator, workflow_id: str
) -> None:
    client = InterruptedClient(simulator)  # with three items a page
    watch = Watch(client, workflow_id)
    one, second, _, asleep, _ = (
        simulator.start_execution(workflow_id, status=status)
        for status in ("success", "success", "success", "waiting", "success")
    )
    told = [*watch.advance(), *watch.advance()]
    watch.in_another_triggerer()

    told += watch.advance()
    move(simulator, asleep, "running")  # what runs is not on the page, so that an older one takes its place
    told += watch.advance()
    client.transport.close()

    assert sorted(told) == sorted(set(told))
    assert {one, second} <= set(told)


def move(simulator: ServiceSimulator, execution_id: str, status: str) -> None:
    execution = simulator.state.executions.get(int(execution_id))
    assert execution is not None
    simulator.state.executions.move(execution, status)


def at_request(moment: int, act: Callable[[], None]) -> Callable[[], None]:
    """Do something right before the n-th request from now on, counted from 1."""
    requests = count(1)
    return lambda: act() if next(requests) == moment else None


@pytest.mark.parametrize(
    "kept", [None, [], {}, 7, {"base_url": "u", "floor": 1, "ceiling": 2, "reported": 3, "open": []}]
)
def test_invalid_cursors(kept: Any) -> None:
    assert Cursor.from_json(kept) is None
