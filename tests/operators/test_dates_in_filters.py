"""Filters compare dates to the millisecond, although the service only tells days apart."""

from __future__ import annotations

import operator
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jinja2 import Template

from airflow_provider_service._core.rows.matching import matching_rows
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceInputError, ServiceUnexpectedResponseError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import ServiceDeleteRowsOperator, ServiceUpdateRowsOperator
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.transfers.data_table_to_object_storage import ServiceDataTableToObjectStorageOperator

TIMES = [
    "2026-01-14T23:59:59.999Z",
    "2026-01-15T00:00:00.000Z",
    "2026-01-15T08:00:00.000Z",
    "2026-01-15T08:00:00.001Z",
    "2026-01-15T23:00:00.000Z",
    "2026-01-16T00:00:00.000Z",
    None,
]
ORDER = {
    "eq": operator.eq,
    "neq": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


@pytest.fixture
def table(client: ServiceClient) -> Any:
    made = client.data_tables.create("sales", [{"name": "n", "type": "number"}, {"name": "at", "type": "date"}])
    client.data_table_rows.insert(made.id, [{"n": n, "at": at} for n, at in enumerate(TIMES)])
    return made


def where(*conditions: tuple[str, str, Any], kind: str = "and") -> dict[str, Any]:
    names = ("columnName", "condition", "value")
    return {"type": kind, "filters": [dict(zip(names, one, strict=True)) for one in conditions]}


def expected(comparison: str, time: str) -> list[int]:
    compare, value = ORDER[comparison], pd.Timestamp(time)
    return [
        n for n, at in enumerate(TIMES) if (comparison == "neq" if at is None else compare(pd.Timestamp(at), value))
    ]


def found(client: ServiceClient, table: Any, filter: Any, **options: Any) -> list[int]:
    return [row["n"] for row in matching_rows(client, table, filter, ["n"], **options)]


@pytest.mark.parametrize("kind", ["and", "or"])
@pytest.mark.parametrize("comparison", ORDER)
def test_times_of_a_day_are_told_apart(client: ServiceClient, table: Any, comparison: str, kind: str) -> None:
    for time in ("2026-01-15T08:00:00.000Z", "2026-01-15T00:00:00.000Z", "2026-01-15T23:59:59.999Z", "2020-01-01"):
        wanted = expected(comparison, time if "T" in time else f"{time}T00:00:00.000Z")
        assert found(client, table, where(("at", comparison, time), kind=kind)) == wanted, time


@pytest.mark.parametrize(
    "time", ["2026-01-15T08:00:00Z", "2026-01-15T09:00:00+01:00", "2026-01-15 08:00", "2026-01-15T08:00:00.000"]
)
def test_a_time_without_a_zone_means_utc(client: ServiceClient, table: Any, time: str) -> None:
    assert found(client, table, where(("at", "eq", time))) == [2]


# To the time of a stored date, or so many nanoseconds from it.
NEAR = st.tuples(
    st.sampled_from([time for time in TIMES if time]),
    st.sampled_from([0, 1, -1, 1_000, -1_000, 999_999, -999_999, 1_000_000, 86_400_000_000_001]),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(near=NEAR, comparison=st.sampled_from(["gt", "gte", "lt", "lte"]), as_text=st.booleans())
def test_dates_finer_than_a_millisecond_are_compared_in_full(
    client: ServiceClient, table: Any, near: tuple[str, int], comparison: str, as_text: bool
) -> None:
    value = pd.Timestamp(near[0]) + pd.Timedelta(near[1], unit="ns")
    text = value.isoformat()
    assert found(client, table, where(("at", comparison, text if as_text else value))) == expected(comparison, text)


@pytest.mark.parametrize("comparison", ["eq", "neq"])
def test_no_date_equals_one_that_is_finer_than_a_millisecond(
    client: ServiceClient, table: Any, simulator: ServiceSimulator, comparison: str
) -> None:
    simulator.clear_requests()
    refusal = r"'at' with '2026-01-15T08:00:00.000001Z', which is finer than a millisecond.*nothing was sent"
    with pytest.raises(ServiceInputError, match=refusal):
        found(client, table, where(("at", comparison, "2026-01-15T08:00:00.000001Z")))
    with pytest.raises(ServiceInputError, match=refusal):
        found(client, table, {"filters": [{"columnName": "at", "value": "2026-01-15T08:00:00.000001Z"}]})
    assert simulator.requests == []
    assert found(client, table, where(("at", comparison, "2026-01-15T08:00:00.000000Z"))) == expected(
        comparison, "2026-01-15T08:00:00.000Z"
    )


def test_a_deletion_up_to_now_spares_what_is_stored_in_this_millisecond(
    execute: Any, client: ServiceClient, table: Any
) -> None:
    arguments = {"data_table_id": table.id, "filter": where(("at", "gte", datetime(2026, 1, 15, 8, 0, 0, 999)))}
    assert execute(ServiceDeleteRowsOperator, **arguments)["deleted"] == 3
    assert [row["n"] for row in client.data_table_rows.list(table.id)] == [0, 1, 2, 6]


def test_several_conditions(client: ServiceClient, table: Any) -> None:
    from_eight, before_eleven = ("at", "gte", "2026-01-15T08:00:00Z"), ("at", "lt", "2026-01-15T23:00:00Z")
    assert found(client, table, where(from_eight, before_eleven)) == [2, 3]
    assert found(client, table, where(from_eight, before_eleven, ("n", "gt", 2))) == [3]
    assert found(client, table, where(("at", "lt", TIMES[1]), ("at", "gt", TIMES[4]), kind="or")) == [0, 5]
    assert found(client, table, where(from_eight), sort_by="n:desc") == [5, 4, 3, 2]
    assert found(client, table, where(("at", "neq", None), ("n", "gt", 4))) == [5]


def test_the_columns_of_the_service(client: ServiceClient, table: Any, simulator: ServiceSimulator) -> None:
    first = next(iter(client.data_table_rows.list(table.id)))
    assert found(client, table, where(("createdAt", "lt", first["createdAt"]))) == []
    assert found(client, table, where(("createdAt", "gte", first["createdAt"]))) == [*range(len(TIMES))]
    simulator.clock.advance(10)
    client.data_table_rows.update(table.id, where(("n", "eq", 3)), {"n": 33})
    assert found(client, table, where(("updatedAt", "gt", first["updatedAt"]))) == [33]


def test_only_the_days_in_question_are_read(client: ServiceClient, table: Any, simulator: ServiceSimulator) -> None:
    client.data_table_rows.insert(table.id, [{"n": -1, "at": "2020-01-01T00:00:00Z"}] * 300)
    simulator.clear_requests()
    assert found(client, table, where(("at", "gt", "2026-01-15T23:00:00Z"))) == [5]
    assert len(simulator.requests) == 1


def test_an_or_of_dates_and_other_values_is_refused(client: ServiceClient, table: Any) -> None:
    with pytest.raises(ServiceInputError, match=r"'or' compares dates and other values.*nothing was sent"):
        found(client, table, where(("at", "lt", "2026-01-15"), ("n", "eq", 1), kind="or"))


@pytest.mark.parametrize("value", ["soon", 5, "0001-01-01T00:00:00Z", ["2026-01-15"]])
def test_what_is_no_date_is_refused(client: ServiceClient, table: Any, value: Any) -> None:
    with pytest.raises(ServiceInputError, match=r"the filter compares the dates of 'at' with .*not a date and time"):
        found(client, table, where(("at", "lt", value)))


def test_a_stored_value_that_is_no_date_is_reported(client: ServiceClient, table: Any, requests_mock: Any) -> None:
    requests_mock.get(
        f"{client.base_url}/api/v1/data-tables/{table.id}/rows",
        json={"data": [{"id": 1, "at": "soon"}], "nextCursor": None},
    )
    with pytest.raises(ServiceUnexpectedResponseError, match="'soon' in 'at', which is not a date"):
        found(client, table, where(("at", "lt", "2026-01-15")))


def test_a_deletion_spares_the_rest_of_the_day(execute: Any, client: ServiceClient, table: Any) -> None:
    arguments = {"data_table_id": table.id, "filter": where(("at", "lt", "2026-01-15T08:00:00Z"))}
    assert execute(ServiceDeleteRowsOperator, **arguments, preview=True)["deleted"] == 2
    assert [execute(ServiceDeleteRowsOperator, **arguments)["deleted"] for _ in range(2)] == [2, 0]
    assert [row["n"] for row in client.data_table_rows.list(table.id)] == [2, 3, 4, 5, 6]


def test_an_update_spares_the_rest_of_the_day(execute: Any, client: ServiceClient, table: Any) -> None:
    filter = where(("at", "gte", "2026-01-15T08:00:00.001Z"))
    arguments = {"data_table_id": table.id, "filter": filter, "data": {"n": 7}}
    assert execute(ServiceUpdateRowsOperator, **arguments, preview=True)["updated"] == 3
    assert execute(ServiceUpdateRowsOperator, **arguments)["updated"] == 3
    assert [row["n"] for row in client.data_table_rows.list(table.id)] == [0, 1, 2, 7, 7, 7, 6]


def test_reads_and_transfers(execute: Any, table: Any, tmp_path: Any) -> None:
    arguments = {"data_table_id": table.id, "filter": where(("at", "gt", "2026-01-15T08:00:00Z"))}
    assert [row["n"] for row in execute(ServiceReadRowsOperator, **arguments)["rows"]] == [3, 4, 5]
    path = tmp_path / "rows.jsonl"
    assert execute(ServiceDataTableToObjectStorageOperator, **arguments, path=str(path))["count"] == 3
    with ServiceHook() as hook:
        assert hook.data_tables.to_arrow(**arguments)["n"].to_pylist() == [3, 4, 5]


def test_the_operator_refuses_without_a_retry(execute: Any, table: Any) -> None:
    with pytest.raises(AirflowFailException, match="is not a date and time"):
        execute(ServiceDeleteRowsOperator, data_table_id=table.id, filter=where(("at", "lt", "soon")))


def test_the_interval_of_a_dag_run_is_a_date(client: ServiceClient, table: Any) -> None:
    rendered = Template("{{ data_interval_start }}").render(data_interval_start=datetime(2026, 1, 15, 8, tzinfo=UTC))
    assert found(client, table, where(("at", "gte", rendered))) == [2, 3, 4, 5]
