"""What a task shows of the nodes of its execution: in its log, and in short in its result."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_provider_service._core.runs import output
from airflow_provider_service._core.runs.output import MAX_LISTED_NODES, NodeLog, node_table, nodes_in_short
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._clock import using
from airflow_provider_service.client._execution_data import NodeRun
from airflow_provider_service.operators.executions import ServiceRetryExecutionOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.set_clock import SetClock

from .conftest import MakeRun
from .workflows import DONE, FAIL, WITH_ID, put, puts_out, wait, webhook


@pytest.fixture(autouse=True)
def shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")


def table(caplog: pytest.LogCaptureFixture) -> list[list[str]]:
    """The rows of the tables in the log."""
    lines = [line for line in caplog.messages if re.match(r"(node +status|(Webhook|Output|Fail|Wait|Done) +\w)", line)]
    return [line.split(maxsplit=4) for line in lines]


def test_a_run_shows_its_nodes(make_run: MakeRun, simulator: ServiceSimulator, caplog: Any) -> None:
    workflow_id = put(simulator, webhook(), wait(0.2), puts_out('={{ {"sum": 3} }}'))
    done = make_run(workflow_id=workflow_id).whole_attempt(1)

    assert [(one["node"], one["status"], one["items"]) for one in done["nodes"]] == [
        ("Webhook", "success", 1),
        ("Wait", "success", 1),
        ("Output", "success", 1),
    ]
    assert done["node_count"] == 3
    assert done["nodes"][1]["seconds"] >= 0.2
    head, *rows = table(caplog)
    assert head == ["node", "status", "seconds", "items", "message"]
    assert [row[:2] + row[3:] for row in rows] == [[name, "success", "1"] for name in ("Webhook", "Wait", "Output")]


def test_a_run_that_fails_shows_the_failing_node(make_run: MakeRun, simulator: ServiceSimulator, caplog: Any) -> None:
    workflow_id = put(simulator, webhook(), FAIL)
    with pytest.raises(Exception, match="at node 'Fail': It failed"):
        make_run(workflow_id=workflow_id).whole_attempt(1)

    [_, webhook_row, failed] = table(caplog)
    assert webhook_row[1] == "success"
    assert (failed[1], failed[3:]) == ("error", ["0", "It failed"])


def test_a_run_that_does_not_end_in_time_shows_how_far_it_came(
    task_run: MakeRun, simulator: ServiceSimulator, caplog: Any
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), wait(100), DONE)
    with pytest.raises(Exception, match="it was stopped"):
        task_run(workflow_id=workflow_id, timeout=60).attempt(1)
    assert "Webhook" in [row[0] for row in table(caplog)]


def test_a_retry_shows_its_nodes(make_run: MakeRun, simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    failed = simulator.start_execution(workflow_id, status="error")
    done = make_run(ServiceRetryExecutionOperator, execution_id=failed).whole_attempt(1)
    assert done["retry_of"] == failed
    assert [one["node"] for one in done["nodes"]][-1] == "Done"


@pytest.mark.parametrize("fault", ["too large", "refused", "broken"])
@pytest.mark.usefixtures("answers_come_first")
def test_nodes_that_cannot_be_read_do_not_fail_a_run(
    task_run: MakeRun, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch, caplog: Any, fault: str
) -> None:
    workflow_id = put(simulator, webhook(options={"responseData": WITH_ID}), DONE)
    monkeypatch.setattr(output, "MAX_SHOWN_MIB", 1)
    if fault != "too large":
        answer_data_with(simulator, 403 if fault == "refused" else 200)
    payload = {"x": "x" * 2**20} if fault == "too large" else {}
    done = task_run(workflow_id=workflow_id, payload=payload).attempt(1)
    assert (done["status"], done["nodes"], done["node_count"]) == ("success", None, None)
    assert "cannot be shown" in caplog.text or "are not shown" in caplog.text


def answer_data_with(simulator: ServiceSimulator, status: int) -> None:
    """Answer everything that asks for the data of executions with text that is not JSON."""

    def layer(inner: Any) -> Any:
        async def answer(scope: Any, receive: Any, send: Any) -> None:
            if b"includeData" in scope["query_string"]:
                await send({"type": "http.response.start", "status": status, "headers": []})
                await send({"type": "http.response.body", "body": b"nothing"})
            else:
                await inner(scope, receive, send)

        return answer

    simulator.wrap(layer)


def nodes(count: int) -> list[NodeRun]:
    return [NodeRun(f"Node {number}", "success", 0.5, 2, None) for number in range(count)]


def test_many_nodes_are_cut_and_counted() -> None:
    short = nodes_in_short(nodes(MAX_LISTED_NODES + 7))
    assert (len(short["nodes"]), short["node_count"]) == (MAX_LISTED_NODES, MAX_LISTED_NODES + 7)
    lines = list(node_table(nodes(MAX_LISTED_NODES + 7)))
    assert (len(lines), lines[-1]) == (1 + MAX_LISTED_NODES + 1, "and 7 more nodes")


def test_a_table_is_aligned_on_one_line_for_each_node() -> None:
    long = NodeRun("A\nname", "error", 12.3456, 1000, "It\nfailed " + "x" * 500)
    head, first, second = node_table([long, NodeRun("B", None, 0.0, 0, None)])
    assert first.startswith("A name  error    12.346   1000  It failed xxx")
    assert len(first) < 250
    assert second == "B       -         0.000      0"
    assert head == "node    status  seconds  items  message"


class Polls:
    """A worker's log of the nodes of an execution, and how often it reads them."""

    def __init__(self, simulator: ServiceSimulator, client: ServiceClient, execution_id: str) -> None:
        self._simulator, self._time = simulator, SetClock()
        with using(self._time):
            self._log = NodeLog(client.transport.config, execution_id)

    def during(self, seconds: int) -> int:
        """Look every second; the number of reads."""
        before = len(self._simulator.requests)
        with using(self._time):
            for _ in range(seconds):
                self._time.advance(1)
                self._log.poll()
        return len(self._simulator.requests) - before


@pytest.fixture
def asleep(simulator: ServiceSimulator, client: ServiceClient) -> Polls:
    """The log of an execution that sleeps."""
    workflow_id = put(simulator, webhook(), wait(1e5), DONE)
    client.webhooks.call(client.webhooks.find(client.workflows.get(workflow_id)), {})
    simulator.clock.advance(1)
    assert client.executions.get("1").status == "waiting"
    return Polls(simulator, client, "1")


def test_a_worker_shows_the_nodes_only_when_they_have_changed(
    asleep: Polls, simulator: ServiceSimulator, caplog: Any
) -> None:
    assert asleep.during(29) == 0
    assert asleep.during(2) == 1
    assert [row[0] for row in table(caplog)][:2] == ["node", "Webhook"]
    caplog.clear()
    assert 8 <= asleep.during(3600) <= 15
    assert not table(caplog)
    simulator.finish_execution("1")
    asleep.during(300)
    assert next(row[0] for row in table(caplog)) == "node"


def test_a_worker_leaves_large_executions_alone(asleep: Polls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_service._core.runs.output.MAX_WATCHED_MIB", 0.0001)
    assert asleep.during(3600) == 1


def test_a_worker_does_not_mind_nodes_that_cannot_be_read(asleep: Polls, simulator: ServiceSimulator) -> None:
    simulator.inject("status", times=None, path="/executions/1$")
    assert 8 <= asleep.during(3600) <= 15
