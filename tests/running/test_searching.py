"""Which executions of a workflow a search reads, and what it makes of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import requests_mock

from airflow_provider_service.client import ServiceClient, ServiceConfig, starting
from airflow_provider_service.client.models.executions import Execution
from airflow_provider_service.client.retries import find_retries
from airflow_provider_service.client.runs import EarlierRuns, RunKey, find_earlier_runs

ROOT = "https://service.example"
LIST = f"{ROOT}/api/v1/executions"
KEY = RunKey("k", 3)
NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)


@pytest.fixture
def server() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        yield mocker


@pytest.fixture
def client() -> Iterator[ServiceClient]:
    with ServiceClient(ServiceConfig.parse("test", {"base_url": ROOT, "api_key": "key"})) as one:
        yield one


def execution(number: int, header: str | None = None, *, minutes: float = 0, **fields: Any) -> dict[str, Any]:
    """An execution that a webhook started some minutes after NOW, with a run key in its headers or another header."""
    headers = {"x-airflow-run-key": header} if header else {"host": "h"}
    item = {"json": {"headers": headers, "body": {}}}
    return {
        "id": str(number),
        "status": "success",
        "mode": "webhook",
        "workflowId": "w",
        "startedAt": (NOW + timedelta(minutes=minutes)).isoformat(),
        "data": {"resultData": {"runData": {"Webhook": [{"data": {"main": [[item]]}}]}}},
        **fields,
    }


def answer(server: requests_mock.Mocker, *finished: Any, running: Any = (), rest: Any = ()) -> None:
    """Answer the list of all, on two pages if there is a rest, and the one of those that run."""
    following = "next" if rest else None
    server.get(LIST, json={"data": list(finished), "nextCursor": following})
    server.get(f"{LIST}?cursor=next", json={"data": list(rest), "nextCursor": None})
    server.get(f"{LIST}?status=running", json={"data": list(running), "nextCursor": None})


def search(client: ServiceClient, since: datetime | None = NOW, stopped: threading.Event | None = None) -> EarlierRuns:
    return find_earlier_runs(client, "w", KEY, since, stopped or threading.Event())


def test_runs_of_all_attempts_in_both_lists_newest_first(client: ServiceClient, server: requests_mock.Mocker) -> None:
    others = [execution(8, "other.2"), execution(7), execution(6, "k.x"), execution(5, "k")]
    answer(server, *others, rest=[execution(2, "k.1")], running=[execution(9, "k.2", status="running")])
    runs = search(client)
    assert [(run.execution.id, run.attempt) for run in runs.found] == [("9", 2), ("2", 1)]
    assert runs.unreadable == []
    assert (runs.has_attempt(2), runs.has_attempt(3)) == (True, False)


def test_a_search_ends_at_what_began_earlier(client: ServiceClient, server: requests_mock.Mocker) -> None:
    queued = execution(4, "k.1", startedAt=None, status="new")
    answer(server, queued, execution(3, "k.2", minutes=-1), rest=[execution(2, "k.1")])
    assert [run.execution.id for run in search(client).found] == ["4"]
    assert "cursor" not in str([request.url for request in server.request_history])
    assert [run.execution.id for run in search(client, None).found] == ["4", "3", "2"]


def test_a_run_that_moves_between_the_lists_is_found(client: ServiceClient, server: requests_mock.Mocker) -> None:
    nothing: dict[str, Any] = {"data": [], "nextCursor": None}
    mine = {"data": [execution(1, "k.2")], "nextCursor": None}
    server.get(LIST, [{"json": nothing}, {"json": mine}])
    server.get(f"{LIST}?status=running", json=nothing)
    assert [run.execution.id for run in search(client).found] == ["1"]


def test_what_is_too_large_for_a_list_is_read_by_id(client: ServiceClient, server: requests_mock.Mocker) -> None:
    answer(server, {**execution(5), "data": None, "dataTooLargeToDisplay": True})
    server.get(f"{LIST}/5?includeData=true&ignoreDataSizeLimit=true", json=execution(5, "k.2"))
    assert [run.execution.id for run in search(client).found] == ["5"]


def test_what_hides_its_data_may_be_ours(client: ServiceClient, server: requests_mock.Mocker) -> None:
    hidden: dict[str, Any] = {"data": {"resultData": {"runData": {}}}}
    not_ours = [execution(2, mode="trigger", **hidden), execution(3, mode="retry", **hidden)]
    failed = [execution(4, status="error", **hidden), execution(5, status="crashed", data=None)]
    answer(server, *failed, *not_ours, execution(6, **hidden), running=[execution(7, data=None)])
    assert search(client) == EarlierRuns([], ["7", "6"])


@pytest.mark.parametrize(
    ("statuses", "attempt", "adopted"),
    [
        (["error", "running"], 3, "2"),
        (["canceled", "crashed"], 3, None),
        (["new", "success"], 3, "2"),
        (["something new"], 3, "1"),
        (["error", "error", "error"], 3, "3"),
        ([], 3, None),
    ],
)
def test_what_an_attempt_goes_on_with(
    client: ServiceClient, server: requests_mock.Mocker, statuses: list[str], attempt: int, adopted: str | None
) -> None:
    listed = [execution(number, f"k.{number}", status=status) for number, status in enumerate(statuses, 1)]
    answer(server, *reversed(listed))
    run = search(client).adoptable(RunKey("k", attempt))
    assert (run and run.execution.id) == adopted


def test_a_killed_search_does_not_go_on(
    monkeypatch: pytest.MonkeyPatch, client: ServiceClient, server: requests_mock.Mocker
) -> None:
    monkeypatch.setattr(starting, "SETTLING_SECONDS", 30)
    answer(server)
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(InterruptedError, match="looked for executions of earlier attempts"):
        search(client, stopped=stopped)


def test_retries_are_younger_than_what_they_retry(client: ServiceClient, server: requests_mock.Mocker) -> None:
    original = Execution.model_validate(execution(4, status="error"))
    first, second = execution(6, mode="retry", retryOf="4"), execution(9, mode="retry", retryOf="4")
    other = execution(7, mode="retry", retryOf="5")
    answer(server, other, first, execution(4), running=[second], rest=[execution(1, retryOf="4")])
    assert [one.id for one in find_retries(client, original)] == ["9", "6"]
    assert "cursor" not in str([request.url for request in server.request_history])
    assert "includeData" not in str([request.url for request in server.request_history])
