"""The sensor on rows waits until a data table holds enough that match, in the same way in every mode."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    TaskDeferred,
)

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.sensors.rows import ServiceRowSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task
from airflow_provider_service.testing._service import as_stored, first_event, revived
from airflow_provider_service.triggers.rows import ServiceRowTrigger
from tests.airflow_features import AIRFLOW

from .driving import SENSOR_MODES, Ending, Mode, TaskInstance, Triggerer, in_event_loop, run_to_end, until
from .polls import CONNECTION

every_mode = pytest.mark.parametrize("mode", SENSOR_MODES, ids=[mode.name for mode in SENSOR_MODES])

READY = {"filters": [{"columnName": "state", "condition": "eq", "value": "ready"}]}
COLUMNS = [{"name": "number", "type": "number"}, {"name": "state", "type": "string"}, {"name": "at", "type": "date"}]


@pytest.fixture
def table_id(client: ServiceClient) -> str:
    """A table of orders, of which one is new and none is ready."""
    table = client.data_tables.create("orders", COLUMNS)
    client.data_table_rows.insert(table.id, [{"number": 0, "state": "new", "at": "2026-01-15T08:00:00.000Z"}])
    return table.id


def put(client: ServiceClient, table_id: str, count: int) -> None:
    client.data_table_rows.insert(table_id, [{"number": number, "state": "ready"} for number in range(1, count + 1)])


def wait(mode: Mode, ti: TaskInstance | None = None, **options: Any) -> Ending:
    named = {} if "data_table_id" in options else {"data_table_name": "orders"}
    arguments = {"filter": READY, "poke_interval": 0.05, "timeout": 60, **named, **mode.arguments, **options}
    return run_to_end(lambda: ServiceRowSensor(task_id="wait", **arguments), ti)


def polls(simulator: ServiceSimulator) -> int:
    return sum(one.method == "GET" and one.path.endswith("/rows") for one in simulator.requests)


def wait_while(simulator: ServiceSimulator, act: Callable[[], object], mode: Mode, **options: Any) -> Ending:
    """Wait, and do something to the table after the second poll, which a deferred task makes in the triggerer."""
    over, first = Event(), polls(simulator)

    def act_later() -> None:
        while polls(simulator) < first + 2 and not clock().wait(over, 0.01):
            pass
        if not over.is_set():
            act()

    thread = Thread(target=act_later)
    thread.start()
    try:
        return wait(mode, **options)
    finally:
        over.set()
        thread.join()


@every_mode
@pytest.mark.parametrize(("there", "min_rows"), [(1, 1), (3, 1), (3, 3), (300, 260)])
def test_it_counts_the_rows_that_are_there(
    mode: Mode, there: int, min_rows: int, client: ServiceClient, table_id: str
) -> None:
    put(client, table_id, there)
    ti = TaskInstance()

    ending = wait(mode, ti, min_rows=min_rows)

    assert ending.kind == "returned", ending
    url = ending.value.pop("url")
    assert ending.value == {"data_table_id": table_id, "count": there}
    assert url.endswith(f"/datatables/{table_id}")
    assert ending.pushed["_link_ServiceDataTableLink"] == url
    assert not ti.pauses


@every_mode
def test_it_returns_the_rows_that_come_while_it_waits(
    mode: Mode, simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    ti = TaskInstance()

    ending = wait_while(simulator, lambda: put(client, table_id, 2), mode, ti=ti, min_rows=2, return_rows=True)

    assert ending.kind == "returned", ending
    assert (ending.value["count"], [row["number"] for row in ending.value["rows"]]) == (2, [1, 2])
    assert {row["state"] for row in ending.value["rows"]} == {"ready"}
    assert bool(ti.pauses) == (mode.pause is not None)


@every_mode
def test_without_a_filter_every_row_counts(mode: Mode, client: ServiceClient, table_id: str) -> None:
    put(client, table_id, 2)
    assert wait(mode, filter=None, data_table_id=table_id).value["count"] == 3


@every_mode
@pytest.mark.parametrize("soft_fail", [False, True])
def test_the_end_of_its_time_says_what_there_was(
    mode: Mode, soft_fail: bool, client: ServiceClient, table_id: str
) -> None:
    put(client, table_id, 1)

    ending = wait(mode, min_rows=2, timeout=0.3, soft_fail=soft_fail)

    assert ending.kind == ("AirflowSkipException" if soft_fail else "AirflowSensorTimeout")
    assert (
        "data table 'orders' held fewer than min_rows=2 matching rows within 0.3 s: 1 matching rows" in ending.message
    )
    assert ending.pushed["_link_ServiceDataTableLink"].endswith(f"/datatables/{table_id}")


@every_mode
@pytest.mark.parametrize("value", ["2026-01-15T08:00:00.001Z", datetime(2026, 1, 15, 8, microsecond=1000)])
@pytest.mark.parametrize("is_utc", [True, False])
def test_dates_are_compared_exactly(mode: Mode, value: Any, is_utc: bool, table_id: str) -> None:
    if isinstance(value, datetime):
        value = value.replace(tzinfo=UTC if is_utc else None)
    for comparison, kind in (("lt", "returned"), ("gte", "AirflowSensorTimeout")):
        at = {"filters": [{"columnName": "at", "condition": comparison, "value": value}]}
        assert wait(mode, filter=at, timeout=0.2).kind == kind, comparison


@every_mode
def test_more_rows_than_may_be_returned_fail_the_task(mode: Mode, client: ServiceClient, table_id: str) -> None:
    put(client, table_id, 4)

    assert wait(mode, return_rows=True, max_rows=4).value["count"] == 4
    ending = wait(mode, return_rows=True, max_rows=3, soft_fail=True)

    assert ending.kind == "AirflowFailException"
    assert "there are more than max_rows=3 rows in data table 'orders'; narrow the filter" in ending.message


@every_mode
@pytest.mark.parametrize("by", ["id", "name"])
def test_a_table_that_is_missing_or_goes_while_it_waits_fails_the_task_for_good(
    mode: Mode, by: str, simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    table = {"data_table_id": table_id} if by == "id" else {"data_table_name": "orders"}
    words = {"id": f"data table '{table_id}' does not exist", "name": "there is no data table named 'orders'"}[by]

    ending = wait_while(simulator, lambda: client.data_tables.delete(table_id), mode, **table)
    again = wait(mode, soft_fail=True, **table)

    for one in (ending, again):
        assert (one.kind, words in one.message) == ("AirflowFailException", True), one


@every_mode
@pytest.mark.parametrize("by", ["id", "name"])
def test_a_table_that_is_renamed_while_it_waits_is_followed_by_its_id_only(
    mode: Mode, by: str, simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    def rename() -> None:
        client.data_tables.update(table_id, "old orders")
        put(client, table_id, 1)

    ending = wait_while(simulator, rename, mode, **({"data_table_id": table_id} if by == "id" else {}))

    assert ending.kind == ("returned" if by == "id" else "AirflowFailException"), ending


@every_mode
def test_a_column_that_the_table_lacks_fails_the_task_for_good(mode: Mode, table_id: str) -> None:
    ending = wait(mode, filter={"filters": [{"columnName": "stat", "condition": "eq", "value": "ready"}]})
    assert (ending.kind, "HTTP 400" in ending.message) == ("AirflowFailException", True), ending


@every_mode
def test_a_service_that_is_away_for_a_while_is_waited_for(
    mode: Mode, simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    put(client, table_id, 1)
    simulator.inject("status", times=4, status=503)

    assert wait(mode, fault_tolerance=300).kind == "returned"
    simulator.inject("status", times=None, path="/data-tables", status=503)
    ending = wait(mode, fault_tolerance=1, timeout=600, soft_fail=True)

    assert ending.kind == "ServiceWaitError", ending
    assert "the rows of data table 'orders' could not be read" in ending.message


@every_mode
@pytest.mark.usefixtures("table_id")
def test_a_key_without_the_scope_fails_the_task_for_good(
    mode: Mode, simulator: ServiceSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = simulator.create_key(["dataTable:list", "dataTable:read"])
    monkeypatch.setenv(CONNECTION, json.dumps({**json.loads(simulator.connection_json()), "password": key}))

    ending = wait(mode)

    assert (ending.kind, "dataTableRow:read" in ending.message) == ("AirflowFailException", True), ending


def test_rows_that_others_delete_before_the_task_continues_are_waited_for_again(
    simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    make = lambda: ServiceRowSensor(  # noqa: E731
        task_id="wait", data_table_name="orders", filter=READY, timeout=100, deferrable=True, return_rows=True
    )
    ti = TaskInstance()
    context: Any = {"ti": ti, "task": make()}
    with pytest.raises(TaskDeferred) as first:
        context["task"].execute(context)
    deadline = first.value.trigger.serialize()[1]["deadline"]
    clock().sleep(30)
    met = {"verdict": "met", "message": "", "result": {"url": "", "count": 1, "data_table_id": ""}, "final": False}

    with pytest.raises(TaskDeferred) as second:
        make().resume_execution("execute_complete", {"event": met, **(first.value.kwargs or {})}, context)

    assert second.value.trigger.serialize()[1]["deadline"] == deadline
    put(client, table_id, 1)
    resumed = make().resume_execution("execute_complete", {"event": met, **(second.value.kwargs or {})}, context)
    assert [row["number"] for row in resumed["rows"]] == [1]


def test_the_trigger_stores_the_question_and_fires_without_a_row(
    simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    moment = datetime(2026, 1, 1)
    later = {"filters": ({"columnName": "at", "condition": "gt", "value": moment},)}
    task = ServiceRowSensor(
        task_id="wait", data_table_id=table_id, filter=later, min_rows=3, deferrable=True, return_rows=True
    )
    with pytest.raises(TaskDeferred) as deferred:
        task.execute({"ti": TaskInstance(), "task": task})  # type: ignore[typeddict-item]
    path, stored = as_stored(deferred.value.trigger)
    assert path.endswith(".ServiceRowTrigger")
    assert simulator.api_key not in str(stored)
    arguments = deferred.value.trigger.serialize()[1]
    assert json.loads(json.dumps(arguments)) == arguments
    assert (arguments["data_table_id"], arguments["min_rows"]) == (table_id, 3)
    assert arguments["filter"]["filters"][0]["value"] == "2026-01-01T00:00:00"

    client.data_table_rows.insert(table_id, [{"at": "2026-02-01T00:00:00.000Z", "state": "secret"}] * 9)
    event = asyncio.run(first_event(revived(deferred.value.trigger)))

    assert event["verdict"] == "met"
    assert (event["result"].keys(), event["result"]["count"]) == ({"data_table_id", "count", "url"}, 3)


def row_trigger(**changes: Any) -> Any:
    arguments = {"data_table_name": "orders", "filter": READY, "poll_interval": 30, "timeout": 600, **changes}
    arguments.setdefault("deadline", clock().now() + arguments["timeout"])
    return revived(ServiceRowTrigger(service_conn_id="service_default", **arguments))


@pytest.mark.real_time  # a clock that jumps leaves out the polls that see nothing new
@in_event_loop
async def test_waits_for_the_same_rows_share_their_requests(
    simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    async def begun_later(seconds: float) -> Any:
        await asyncio.sleep(seconds)
        return await first_event(row_trigger(poll_interval=0.5))

    waits, began = [asyncio.create_task(begun_later(number / 80)) for number in range(40)], clock().monotonic()
    await until(lambda: polls(simulator) >= 8)

    assert clock().monotonic() - began > 2  # as those of one wait; by themselves, forty make as many within 0.1 s
    other = asyncio.create_task(first_event(row_trigger(poll_interval=0.5, min_rows=2)))
    put(client, table_id, 1)
    assert {event["verdict"] for event in await asyncio.gather(*waits)} == {"met"}
    assert not other.done()
    put(client, table_id, 1)
    assert (await other)["verdict"] == "met"


@in_event_loop
async def test_a_wait_that_is_killed_ends_no_other_that_asks_the_same(
    simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    put(client, table_id, 1)
    simulator.inject("latency", times=1, seconds=20)
    first, second = (asyncio.create_task(first_event(row_trigger())) for _ in range(2))
    await until(lambda: bool(simulator.requests) and simulator.requests[-1].method == "GET", every=1)
    first.cancel()

    assert (await second)["verdict"] == "met"
    assert polls(simulator) == 1


@in_event_loop
async def test_a_wait_whose_question_is_answered_too_slowly_for_another_goes_on(
    simulator: ServiceSimulator, client: ServiceClient, table_id: str
) -> None:
    put(client, table_id, 1)
    simulator.inject("latency", times=2, seconds=200)
    hasty = asyncio.create_task(first_event(row_trigger(deadline=clock().now() - 1)))
    await until(lambda: len(simulator.requests) > 2, every=1)
    patient = asyncio.create_task(first_event(row_trigger(poll_interval=0.05)))

    assert (await hasty)["verdict"] == "unreadable"
    assert (await patient)["verdict"] == "met"
    await clock().async_sleep(300)  # until nothing is held any longer


@in_event_loop
async def test_a_triggerer_that_starts_again_keeps_the_deadline(simulator: ServiceSimulator, table_id: str) -> None:
    trigger = row_trigger(timeout=100)
    began, killed = clock().now(), Triggerer()
    killed.start(trigger)
    await until(lambda: polls(simulator) > 0, every=1)
    await killed.shut_down()
    await clock().async_sleep(20)

    event = await first_event(revived(trigger))

    assert (event["verdict"], 100 <= clock().now() - began < 102) == ("timed_out", True), event


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"min_rows": 0}, "min_rows must be a whole number from 1"),
        ({"return_rows": "yes"}, "return_rows must be True or False"),
        ({"max_rows": -1}, "max_rows must be a whole number from 0"),
        ({"min_rows": 11, "return_rows": True, "max_rows": 10}, "min_rows=11 is above max_rows=10"),
        ({"data_table_id": "1", "data_table_name": "orders"}, "give either data_table_id or data_table_name"),
        ({"data_table_name": None}, "give either data_table_id or data_table_name"),
        ({"project_id": "1", "project_name": "Sales"}, "give either project_id or project_name"),
    ],
)
def test_what_cannot_be_waited_for_is_refused_when_the_dag_file_is_read(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ServiceInputError, match=words):
        ServiceRowSensor(task_id="wait", **{"data_table_name": "orders", **wrong})


@every_mode
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"filter": "{{ params.rows }}"}, "filter must be a mapping"),
        ({"filter": "{{ params.nothing }}"}, "filter is None"),
        ({"filter": {"filters": []}}, "filter must contain at least one condition"),
        ({"filter": {"filters": [{"columnName": "at", "value": object()}]}}, "filter cannot be written as JSON"),
        ({"data_table_name": "{{ params.blank }}"}, "data_table_name must be text that is not empty"),
    ],
)
def test_what_a_template_gives_is_checked_before_anything_is_sent(
    mode: Mode, wrong: dict[str, Any], words: str, simulator: ServiceSimulator
) -> None:
    params = {"rows": "all", "nothing": None, "blank": " "}
    dag = DAG("rows", schedule=None, render_template_as_native_obj=True)
    arguments: dict[str, Any] = {"data_table_name": "orders", "filter": READY, **mode.arguments, **wrong}
    task = ServiceRowSensor(task_id="wait", dag=dag, **arguments)
    context: Any = {"ti": TaskInstance(), "task": task, "params": params}
    task.render_template_fields(context)

    with pytest.raises(AirflowFailException, match=words):
        task.execute(context)

    assert not simulator.requests


@every_mode
@pytest.mark.parametrize("is_native", [False, True])
def test_the_end_of_its_time_may_be_a_template(mode: Mode, is_native: bool, table_id: str) -> None:
    dag = DAG("rows", schedule=None, render_template_as_native_obj=is_native, params={"limit": 40, "pause": "PT4S"})
    limits = {"timeout": "{{ params.limit }}", "poke_interval": "{{ params.pause }}"}
    arguments: dict[str, Any] = {"data_table_name": "orders", "filter": READY, **mode.arguments}
    given = ServiceRowSensor(task_id="given", dag=dag, **limits, **arguments)
    default = ServiceRowSensor(
        task_id="default", dag=dag, default_args={"timeout": limits["timeout"]}, poke_interval="4", **arguments
    )

    for task in (given, default):
        began = clock().now()
        with pytest.raises(AirflowSensorTimeout, match=r"matching rows within 40 s: 0 matching rows found"):
            run_task(task)
        assert 30 <= clock().now() - began < 120, task.task_id
        with pytest.raises(AirflowFailException, match=r"timeout must be a timedelta or a number of seconds .*'soon'"):
            run_task(task, params={"limit": "soon"})


@pytest.mark.parametrize("name", ["timeout", "poke_interval"])
@pytest.mark.parametrize("wrong", ["soon", "-1", -1, [1]])
def test_limits_that_are_no_duration_are_refused_when_the_dag_file_is_read(name: str, wrong: Any) -> None:
    refused_by_airflow = wrong == -1 and AIRFLOW.startswith(("2.", "3.0.", "3.1."))  # before we look
    with pytest.raises(AirflowException if refused_by_airflow else ValueError, match=name):
        ServiceRowSensor(task_id="wait", data_table_name="orders", **{name: wrong})
    with pytest.raises(ServiceInputError, match=f"^{name} must be a timedelta or a number of seconds from 0"):
        ServiceRowSensor.partial(task_id="wait", **{name: wrong})
