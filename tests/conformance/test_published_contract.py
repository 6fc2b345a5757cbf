"""Requests and answers are also checked against the contract that the server publishes.

Collected for the newest server alone, because the document is that server's. The answers of the simulator and of the
server are both judged, so that the server itself needs every exception in ``differences.py``. Both must answer in the
same shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest
import requests
import requests_mock

from airflow_provider_service.simulator import ServiceSimulator
from tests.client.calling import Call
from tests.client.clients import Client
from tests.client.contract import CONTRACT
from tests.client.operation_calls import CALLS
from tests.client.test_operations import run, serve

from .differences import CONTRACT_DIFFERENCES, GATED, REFUSING_ONLY
from .outcomes import note
from .published import PublishedContract
from .stories import FREE, SIMULATED, Story
from .target import KEY_HEADER, LiveTarget, SimulatorTarget, Target, blank

COLUMN = "contract"
_OPERATIONS = {f"{fact['method']} {blank(fact['path'])}": name for name, fact in CONTRACT.items()}

# What of an answer follows from the workflow, the instance or the ids in it, and not from the operation.
_OPEN = {
    "discover": ("$.data.resources.", "$.data.filters."),
    "generate_audit": ("$.Instance Risk Report.sections.",),
    "get_execution": ("$.data.", "$.workflowData.nodes."),
    "list_executions": ("$.data.[].data.", "$.data.[].workflowData.nodes."),
    "list_workflows": (
        "$.data.[].tags.",
        "$.data.[].settings.",
        *(
            f"$.data.[].{part}{graph}"
            for part in ("activeVersion.", "")
            for graph in ("connections.", "nodes.[].credentials", "nodes.[].parameters.")
        ),
    ),
    "retry_execution": ("$.data.", "$.workflowData.nodes."),
}

#: Complaints by operation.
Judged = dict[str, set[str]]
#: Kinds of value by place.
Shape = dict[str, set[str]]


class Judge:
    """Judges every exchange of a target that it listens to."""

    def __init__(self, published: PublishedContract) -> None:
        self._published = published
        self.sent: Judged = defaultdict(set)
        self.answered: Judged = defaultdict(set)
        self.shapes: dict[str, Shape] = defaultdict(lambda: defaultdict(set))

    def hear(self, response: requests.Response) -> None:
        """Judge a request, and its answer when it was a success: the document describes no body of an error."""
        operation = _OPERATIONS[self._published.route(response.request)]
        self.sent[operation].update(self._published.complaints_about_request(response.request))
        if response.ok:
            self.answered[operation].update(self._published.complaints_about_answer(response))
            if "json" in response.headers.get("Content-Type", ""):
                add_shape(self.shapes[operation], response.json(), "$")


def add_shape(shape: Shape, value: Any, place: str) -> None:
    """Add the places of a JSON value and the kinds of what is there; all items of a list have one place."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else [("[]", item) for item in value]
        if isinstance(value, list)
        else ()
    )
    shape[place].add("null" if value is None else "number" if type(value) in (int, float) else type(value).__name__)
    for name, item in inner:
        add_shape(shape, item, f"{place}.{name}")


def play(target: Target, stories: Iterable[Story], published: PublishedContract) -> Judge:
    """Play stories on a target, and judge the exchanges."""
    judge = Judge(published)
    target.listeners.append(judge.hear)
    for story in stories:
        story(target)
    target.listeners.remove(judge.hear)
    return judge


@pytest.fixture(scope="session")
def published(shared_target: Target) -> PublishedContract:
    assert isinstance(shared_target, LiveTarget)
    return PublishedContract(shared_target.server.openapi())


@pytest.fixture(scope="session")
def simulated(published: PublishedContract) -> Judge:
    """The exchanges of the simulator that are possible with the server, too."""
    return _simulated(FREE, published)


@pytest.fixture(scope="session")
def licensed(published: PublishedContract) -> Judge:
    """The other exchanges of the simulator."""
    return _simulated(SIMULATED, published)


def _simulated(stories: Iterable[Story], published: PublishedContract) -> Judge:
    with ServiceSimulator() as simulator:
        target = SimulatorTarget(simulator)
        judge = play(target, stories, published)
        target.close()
    return judge


@pytest.fixture(scope="session")
def served(shared_target: Target, published: PublishedContract) -> Judge:
    """The exchanges of the server."""
    return play(shared_target, FREE, published)


def explained(operation: str, part: str) -> dict[str, str]:
    """Reasons by complaint."""
    found = (one for one in CONTRACT_DIFFERENCES if (one.operation, one.part) == (operation, part))
    return {one.complaint: one.reason for one in found}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.operation)
def test_what_is_sent_with_every_argument_is_published(
    request: pytest.FixtureRequest, published: PublishedContract, call: Call
) -> None:
    known = explained(call.operation, "sent")
    note(request.node, COLUMN, call.operation, list(known.values()))
    client = Client(retry_deadline=0, key_header=KEY_HEADER)
    heard: list[requests.PreparedRequest] = []
    client.transport._session.hooks["response"].append(lambda response, **_: heard.append(response.request.copy()))
    with requests_mock.Mocker() as mocker:
        serve(mocker, call)
        run(client, call)

    fact = CONTRACT[call.operation]
    assert {published.route(sent) for sent in heard} == {f"{fact['method']} {blank(fact['path'])}"}
    assert {text for sent in heard for text in published.complaints_about_request(sent)} == set(known)


@pytest.mark.parametrize("operation", sorted(CONTRACT))
def test_what_the_simulator_answers_is_published(
    request: pytest.FixtureRequest, simulated: Judge, licensed: Judge, operation: str
) -> None:
    known = explained(operation, "answered")
    note(request.node, COLUMN, operation, list(known.values()))
    assert operation in {**simulated.answered, **licensed.answered}, "no story calls it"
    assert simulated.sent[operation] | licensed.sent[operation] <= set(explained(operation, "sent"))
    assert simulated.answered[operation] | licensed.answered[operation] == set(known)


def test_what_the_server_answers_needs_the_same_exceptions(served: Judge, simulated: Judge) -> None:
    assert served.answered == {name: simulated.answered[name] for name in served.answered}
    assert set(CONTRACT) - set(served.answered) == GATED | set(REFUSING_ONLY)


@pytest.mark.parametrize("operation", sorted(set(CONTRACT) - GATED - set(REFUSING_ONLY)))
def test_the_simulator_answers_in_the_server_s_shape(served: Judge, simulated: Judge, operation: str) -> None:
    real, copied = (
        {
            place: kinds
            for place, kinds in judge.shapes[operation].items()
            if not place.startswith(_OPEN.get(operation, ()))
        }
        for judge in (served, simulated)
    )
    assert sorted(copied) == sorted(real)
    # Whether something is null can depend on the moment.
    for place, kinds in real.items():
        assert kinds == copied[place] or "null" in kinds | copied[place], place


def test_every_explained_difference_is_of_an_operation_of_the_contract() -> None:
    keys = [(one.operation, one.part, one.complaint) for one in CONTRACT_DIFFERENCES]
    assert len(set(keys)) == len(keys)
    assert {one.operation for one in CONTRACT_DIFFERENCES} <= set(CONTRACT)
