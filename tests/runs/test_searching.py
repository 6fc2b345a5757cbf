"""Which executions of a workflow a search reads, and what it makes of them."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import requests_mock

from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.attempt import RunKey
from airflow_provider_service._core.runs.searching import (
    EarlierRuns,
    RunSearch,
    StartingCall,
    find_earlier_runs,
    starting_call,
)
from airflow_provider_service._core.runs.service_retry import RetrySearch
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service.client.errors import ServiceTaskKilledError
from airflow_provider_service.client.models import Execution
from tests.set_clock import SetClock

pytestmark = pytest.mark.usefixtures("set_clock")

ROOT = "https://service.example"
LIST = f"{ROOT}/api/v1/executions"
KEY = RunKey("k", 3)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        # Ids that no list shows are asked for too: they could wait for a worker.
        missing = {"json": {"message": "Not Found"}, "headers": {"Content-Type": "application/json"}}
        mocker.get(re.compile(f"{LIST}/[0-9]+$"), status_code=404, **missing)
        yield mocker


@pytest.fixture
def client() -> Iterator[ServiceClient]:
    with ServiceClient(ServiceConfig.parse("test", {"base_url": ROOT, "api_key": "key"})) as one:
        yield one


def execution(number: int, made_by: str | None = None, *, minutes: float = 0, **fields: Any) -> dict[str, Any]:
    """An execution that a webhook started some minutes after NOW, with a run key in its headers or another header."""
    headers = {"x-airflow-run-key": made_by} if made_by else {"host": "h"}
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


def answer(
    server: requests_mock.Mocker,
    *finished: Any,
    running: Any = (),
    rest: Any = (),
    headers: dict[str, str] | None = None,
    **others: Any,
) -> None:
    """Answer the list of all, on two pages if there is a rest, those of one status, and each by id, with its data."""

    def listed(executions: Any, cursor: str | None = None) -> dict[str, Any]:
        items = [{name: value for name, value in one.items() if name != "data"} for one in executions]
        return {"json": {"data": items, "nextCursor": cursor}, "headers": headers or {}}

    server.get(LIST, **listed(finished, "next" if rest else None))
    server.get(f"{LIST}?cursor=next", **listed(rest))
    by_status = {"waiting": (), "new": (), **others, "running": running}
    for status, executions in by_status.items():
        server.get(f"{LIST}?status={status}", **listed(executions))
    for one in (*finished, *rest, *(one for executions in by_status.values() for one in executions)):
        server.get(f"{LIST}/{one['id']}?includeData=true", json=one)


def read_with_data(server: requests_mock.Mocker) -> list[str]:
    """The executions that were read with their data, in that order."""
    return [request.path.rpartition("/")[2] for request in server.request_history if "includedata" in request.query]


def search(client: ServiceClient, since: datetime | None = NOW, stopped: threading.Event | None = None) -> EarlierRuns:
    return find_earlier_runs(client, RunSearch("w", since), KEY, stopped or threading.Event())


def test_runs_of_all_attempts_in_both_lists_newest_first(client: ServiceClient, server: requests_mock.Mocker) -> None:
    others = [execution(8, "other...2"), execution(7), execution(6, "k...x"), execution(5, "k")]
    key = RunKey("k", 4)
    answer(server, *others, rest=[execution(2, "k...1")], running=[execution(9, "k...2", status="running")])
    runs = find_earlier_runs(client, RunSearch("w", NOW), key, threading.Event())
    assert [(run.execution.id, run.attempt) for run in runs.found] == [("9", 2), ("2", 1)]
    assert runs.unreadable == []
    assert (runs.is_complete(key._replace(attempt=3)), runs.is_complete(key)) == (True, False)
    # The second look reads no data again.
    assert read_with_data(server) == ["9", "8", "7", "6", "5", "2"]


def test_an_execution_that_moves_between_the_lists_while_they_are_read(
    client: ServiceClient, server: requests_mock.Mocker
) -> None:
    moving = execution(5, "k...1", status="running")
    answer(server, running=[moving])
    pages = [{"json": {"data": some, "nextCursor": None}} for some in ([moving], [], [moving])]
    server.get(f"{LIST}?workflowId=w&status=running", pages)
    assert [run.execution.id for run in search(client).found] == ["5"]


def test_a_search_reads_no_further_than_the_attempt_before(client: ServiceClient, server: requests_mock.Mocker) -> None:
    answer(server, execution(8), execution(6, "k...2"), execution(5, "k...1"), running=[execution(7, status="running")])
    assert [run.execution.id for run in search(client).found] == ["6"]
    assert read_with_data(server) == ["8", "7", "6"]


def test_an_execution_that_no_webhook_started_is_not_read(client: ServiceClient, server: requests_mock.Mocker) -> None:
    modes = ("trigger", "manual", "error", "integrated", "cli", "internal", "evaluation", "chat", "agent")
    answer(server, *(execution(9, "k...2", mode=mode) for mode in modes), execution(2, "k...2", mode="retry"))
    assert [run.execution.id for run in search(client).found] == ["2"]
    assert read_with_data(server) == ["2"]


def test_data_that_is_gone_by_the_time_it_is_read(client: ServiceClient, server: requests_mock.Mocker) -> None:
    answer(server, execution(4, "k...2"), execution(3, "k...2"))
    gone = {"json": {"message": "Not Found"}, "headers": {"Content-Type": "application/json"}}
    server.get(f"{LIST}/4?includeData=true", status_code=404, **gone)
    assert [run.execution.id for run in search(client).found] == ["3"]


def test_a_search_ends_at_what_began_earlier(client: ServiceClient, server: requests_mock.Mocker) -> None:
    queued = execution(4, "k...1", startedAt=None, status="new")
    answer(server, queued, execution(3, "k...1", minutes=-1), rest=[execution(2, "k...1")])
    assert [run.execution.id for run in search(client).found] == ["4"]
    of_the_workflow = [request.url for request in server.request_history if "workflowId" in request.url]
    assert "cursor" not in str(of_the_workflow)
    assert [run.execution.id for run in search(client, None).found] == ["4", "3", "2"]


@pytest.mark.parametrize("hours", [-2, 2])
def test_the_servers_clock_is_allowed_for(client: ServiceClient, server: requests_mock.Mocker, hours: int) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=hours), usegmt=True)
    theirs = {"minutes": hours * 60 + 1}, {"minutes": hours * 60 - 1}
    answer(server, *(execution(3 - n, "k...1", **one) for n, one in enumerate(theirs)), headers={"Date": date})
    assert [run.execution.id for run in search(client).found] == ["3"]


def test_the_clock_of_a_service_that_writes_no_time_zone(client: ServiceClient, server: requests_mock.Mocker) -> None:
    started = "2026-06-01T00:00:01", "0001-01-01T00:00:00"
    answer(server, *(execution(3 - n, "k...1", startedAt=one) for n, one in enumerate(started)))
    assert [run.execution.id for run in search(client).found] == ["3"]


OLD = RunKey("k", 2, first=2, start="1", deployment="d")
CLEARED = OLD._replace(start="2", was_cleared=True)


@pytest.mark.parametrize("status", ["running", "waiting", "new"])
def test_a_cleared_dag_run_finds_what_is_active_since_before(
    client: ServiceClient, server: requests_mock.Mocker, caplog: pytest.LogCaptureFixture, status: str
) -> None:
    mine = execution(3, OLD._replace(attempt=1).header, minutes=-9999, status=status)
    foreign = execution(4, OLD._replace(deployment="e").header, minutes=-9999, status=status)
    answer(server, execution(5, minutes=-1), **{status: [foreign, mine]})
    runs = find_earlier_runs(client, RunSearch("w", NOW), CLEARED, threading.Event())
    assert [(run.execution.id, run.attempt) for run in runs.found] == [("3", 0)]
    assert runs.resumable(CLEARED) == runs.found[0]
    assert "Execution 4 has not ended and belongs to a task of the same DAG, run and task ids" in caplog.text
    assert search(client).found == []


def test_what_ended_before_the_dag_run_was_cleared_is_not_resumed(
    client: ServiceClient, server: requests_mock.Mocker
) -> None:
    # A retry of the DAG's author lowered the retries since, so that the attempts before count too.
    key = CLEARED._replace(first=1)
    answer(server, execution(3, OLD.header, minutes=1))
    runs = find_earlier_runs(client, RunSearch("w", NOW), key, threading.Event())
    assert (runs.resumable(key), runs.failed(key), runs.is_complete(key)) == (None, None, False)


def test_what_was_configured_meanwhile_does_not_matter_to_a_dag_run_that_was_not_cleared(
    client: ServiceClient, server: requests_mock.Mocker
) -> None:
    answer(server, execution(3, OLD._replace(attempt=1).header))
    for key in (OLD._replace(deployment="e"), CLEARED._replace(start="1", deployment="e")):
        runs = find_earlier_runs(client, RunSearch("w", NOW), key, threading.Event())
        assert [(run.execution.id, run.attempt) for run in runs.found] == [("3", 1)]


@pytest.mark.parametrize("key", [OLD._replace(start="2"), CLEARED._replace(deployment="e"), CLEARED._replace(task="l")])
def test_runs_of_other_tasks_are_ignored(client: ServiceClient, server: requests_mock.Mocker, key: RunKey) -> None:
    answer(server, running=[execution(3, OLD.header, status="running")])
    assert find_earlier_runs(client, RunSearch("w", NOW), key, threading.Event()).found == []


def test_a_run_that_moves_between_the_lists_is_found(client: ServiceClient, server: requests_mock.Mocker) -> None:
    nothing: dict[str, Any] = {"data": [], "nextCursor": None}
    mine = {"data": [execution(1, "k...2")], "nextCursor": None}
    server.get(LIST, [{"json": nothing}, {"json": mine}])
    server.get(f"{LIST}/1?includeData=true", json=execution(1, "k...2"))
    server.get(f"{LIST}?status=running", json=nothing)
    assert [run.execution.id for run in search(client).found] == ["1"]


def test_data_too_large_to_be_shown_by_default_is_read(client: ServiceClient, server: requests_mock.Mocker) -> None:
    answer(server, {**execution(5), "data": None, "dataTooLargeToDisplay": True})
    server.get(f"{LIST}/5?includeData=true&ignoreDataSizeLimit=true", json=execution(5, "k...2"))
    assert [run.execution.id for run in search(client).found] == ["5"]


def test_an_execution_with_hidden_data_may_be_ours(client: ServiceClient, server: requests_mock.Mocker) -> None:
    hidden: dict[str, Any] = {"data": {"resultData": {"runData": {}}}}
    not_ours = [execution(2, mode="trigger", **hidden), execution(3, mode="retry", **hidden)]
    failed = [execution(4, status="error", **hidden), execution(5, status="crashed", data=None)]
    answer(server, *failed, *not_ours, execution(6, **hidden), running=[execution(7, data=None, status="running")])
    runs = search(client)
    assert (runs.found, [one.id for one in runs.unreadable]) == ([], ["7", "6"])
    # What runs may show it later; what has ended does not change.
    assert Counter(read_with_data(server)) == {"7": 2, **dict.fromkeys("6345", 1)}


@pytest.mark.parametrize(
    "data",
    [
        {"json": {"id": "4", "status": "success", "data": [["no object"]]}},
        {"text": '{"data": ' + "[" * 3000},
        {"content": b"\xff{"},
        {"text": " " * (1024 * 1024 + 1)},
    ],
    ids=["shape", "depth", "bytes", "size"],
)
def test_data_that_cannot_be_read_does_not_stop_a_search(server: requests_mock.Mocker, data: dict[str, Any]) -> None:
    answer(server, execution(4), execution(3, "k...1"), execution(2, "k...2"))
    server.get(f"{LIST}/4?includeData=true", headers={"Content-Type": "application/json"}, **data)
    settings = {"base_url": ROOT, "api_key": "key", "max_answer_mib": 1, "retry_deadline": 0}
    with ServiceClient(ServiceConfig.parse("test", settings)) as client:
        runs = search(client)
    assert [run.execution.id for run in runs.found] == ["3", "2"]
    assert [one.id for one in runs.unreadable] == ["4"]


def test_a_search_ends_when_the_call_is_answered(client: ServiceClient, server: requests_mock.Mocker) -> None:
    answer(server, *map(execution, (9, 8, 7)), execution(6, KEY.header))
    found = RunSearch("w", NOW).made_by(client, KEY, lambda: len(read_with_data(server)) == 2)
    assert (found, read_with_data(server)) == (None, ["9", "8"])


def test_a_search_that_was_cut_short_proves_nothing() -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(ServiceTaskKilledError):
        searching.search_for(lambda: None, 10, stopped)


@pytest.mark.parametrize(
    "text", ['{"id": "4", "da', "<html>Welcome to the network</html>", '{"id": 4}', "[" * 3000], ids=len
)
def test_an_answer_that_was_spoilt_on_its_way_is_read_again(
    client: ServiceClient, server: requests_mock.Mocker, text: str
) -> None:
    own = execution(4, KEY.header)
    answer(server, own)
    spoilt = {"text": text, "headers": {"Content-Type": "application/json"}}
    server.get(f"{LIST}/4?includeData=true", [spoilt, spoilt, {"json": own}])
    assert RunSearch("w", NOW).made_by(client, KEY) == "4"


@pytest.mark.parametrize("item", [5, {"headers": 5}, {"headers": None}, {"headers": ["x-airflow-run-key"]}])
def test_an_item_of_another_shape_shows_no_origin(item: Any) -> None:
    data = {"resultData": {"runData": {"Webhook": [{"data": {"main": [[{"json": item}]]}}]}}}
    assert starting_call(Execution.model_validate(execution(1, data=data))) == StartingCall(None, is_shown=False)


@pytest.mark.parametrize("header", [5, None, "k", "k...", "k...x", f"k...{'9' * 5000}", "k...٣", "k...1\n", ["k...1"]])
def test_headers_that_no_task_has_sent(header: Any) -> None:
    assert RunKey.read(header) is None


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
def test_which_execution_an_attempt_resumes(
    client: ServiceClient, server: requests_mock.Mocker, statuses: list[str], attempt: int, adopted: str | None
) -> None:
    listed = [execution(number, f"k...{number}", status=status) for number, status in enumerate(statuses, 1)]
    answer(server, *reversed(listed))
    run = search(client).resumable(RunKey("k", attempt))
    assert (run and run.execution.id) == adopted


def test_a_killed_search_ends(client: ServiceClient, server: requests_mock.Mocker) -> None:
    answer(server)
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(ServiceTaskKilledError, match=r"^the task was killed while it searched for executions"):
        search(client, stopped=stopped)


@pytest.mark.parametrize("last", [1, 2])
def test_a_search_looks_again_unless_the_attempt_before_has_an_execution(
    client: ServiceClient, server: requests_mock.Mocker, last: int
) -> None:
    answer(server, execution(4, f"k...{last}"))
    stopped = threading.Event()
    stopped.set()  # it gives up where it would look again
    if last == KEY.attempt - 1:
        assert [run.execution.id for run in search(client, stopped=stopped).found] == ["4"]
    else:
        with pytest.raises(ServiceTaskKilledError):
            search(client, stopped=stopped)


def test_what_failed_since_another_run_was_asked_for(client: ServiceClient, server: requests_mock.Mocker) -> None:
    answer(server, execution(5, "k...2", status="error"), execution(4, "k...1", status="error"))
    runs = search(client)
    assert [runs.failed(KEY._replace(first=first)) for first in (1, 2, 3)] == ["5", "5", None]


def test_when_an_execution_that_was_not_found_is_possible() -> None:
    base_url = "https://service.example"
    unreadable = [Execution.model_validate(execution(number)) for number in range(9, 3, -1)]
    assert EarlierRuns([], []).doubt(base_url, all_are_kept=True) is None
    assert EarlierRuns([], []).doubt(base_url, all_are_kept=False) == "the workflow does not keep all its executions"
    doubt = EarlierRuns([], unreadable).doubt(base_url, all_are_kept=True)
    assert doubt is not None
    assert doubt.startswith("executions 9, 8, 7, 6, 5 do not show what started them, and one of them may be its own: ")
    assert doubt.endswith(f" {base_url}/workflow/w/executions/5")


def test_retries_are_younger_than_what_they_retry(client: ServiceClient, server: requests_mock.Mocker) -> None:
    original = Execution.model_validate(execution(4, status="error"))
    first, second = execution(6, mode="retry", retryOf="4"), execution(9, mode="retry", retryOf="4")
    other = execution(7, mode="retry", retryOf="5")
    answer(server, other, first, execution(4), running=[second], rest=[execution(1, retryOf="4")])
    assert [one.id for one in RetrySearch(original).read(client)] == ["9", "6"]
    of_the_workflow = [request.url for request in server.request_history if "workflowId" in request.url]
    assert "cursor" not in str(of_the_workflow)
    assert "includeData" not in str([request.url for request in server.request_history])


def test_a_search_asks_with_growing_pauses(set_clock: SetClock) -> None:
    assert searching.search_for(lambda: None, 30, threading.Event()) is None

    assert [round(pause, 1) for pause in set_clock.pauses] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5, 3.7]
