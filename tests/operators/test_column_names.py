"""Names of columns that the service would refuse without explanation, or fail on."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import (
    ServiceInsertRowsOperator,
    ServiceUpdateRowsOperator,
    ServiceUpsertRowsOperator,
)

EVERYTHING = {"filters": [{"columnName": "id", "condition": "gt", "value": 0}]}


@pytest.mark.parametrize("name", ["id", "createdAt", "updatedAt"])
@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (ServiceInsertRowsOperator, lambda row: {"rows": [{"sku": "a"}, row]}),
        (ServiceUpsertRowsOperator, lambda row: {"rows": [{"sku": "a"}, row], "key_columns": "sku"}),
        (ServiceUpdateRowsOperator, lambda row: {"filter": EVERYTHING, "data": row}),
    ],
)
def test_columns_that_only_the_service_writes(execute, table, writes, operator, arguments, name):
    with pytest.raises(AirflowFailException, match=f"has a value for '{name}', which only the service writes"):
        execute(operator, data_table_id=table.id, **arguments({"sku": "a", name: 1}))
    assert writes() == []


def test_the_hook_refuses_them_too(client, table, writes):
    rows = client.data_table_rows
    for call in (
        lambda: rows.insert(table.id, [{"id": 1}]),
        lambda: rows.update(table.id, EVERYTHING, {"id": 1}),
        lambda: rows.upsert(table.id, EVERYTHING, {"id": 1}),
    ):
        with pytest.raises(errors.ServiceInputError, match="has a value for 'id', which only the service writes"):
            call()
    assert writes() == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([{"sku": "a"}, 5], "row 2 is int, not a mapping"),
        (["id"], "row 1 is str, not a mapping"),
        ([None], "row 1 is NoneType, not a mapping"),
        ([], "data must be a list"),
        (None, "data must be a list"),
        ({"sku": "a"}, "data must be a list"),
    ],
)
def test_the_hook_refuses_what_is_not_a_list_of_rows(client, table, writes, data, problem):
    with pytest.raises(errors.ServiceInputError, match=problem):
        client.data_table_rows.insert(table.id, data)
    assert writes() == []


@pytest.mark.parametrize("names", [["nope"], ["nope", "x"], [7]])
def test_inserting_refuses_unknown_columns_before_the_first_batch(execute, table, writes, names):
    rows = [{"sku": "a"}, {"sku": "b", **dict.fromkeys(names, 1)}]
    with pytest.raises(AirflowFailException, match=r"row 2 has unknown columns .*; the table has shop, sku, stock"):
        execute(ServiceInsertRowsOperator, data_table_id=table.id, rows=rows, batch_rows=1)
    assert writes() == []


@pytest.mark.parametrize("name", ["id", "ID", "createdAt", "updatedat", "dryRunState"])
def test_new_columns_of_reserved_names(execute, writes, name):
    with pytest.raises(AirflowFailException, match=f"'{name}' cannot be the name of a column: the service reserves"):
        execute(ServiceCreateDataTableOperator, name="t", columns={"sku": "string", name: "number"})
    assert writes() == []


@pytest.mark.parametrize("name", ["", "1st", "a b", "a-b", "ä", "a" * 64])
def test_malformed_names_of_new_columns(execute, writes, name):
    with pytest.raises(AirflowFailException, match="cannot be the name of a column: a letter must come first"):
        execute(ServiceCreateDataTableOperator, name="t", columns={"sku": "string", name: "number"})
    assert writes() == []


@pytest.mark.parametrize(
    ("sort_by", "message"),
    [
        (
            "nope:asc",
            "sort_by names the column 'nope', which the table lacks; it has shop, sku, .*, updatedAt",
        ),
        ("SKU:asc", "sort_by names the column 'SKU'"),
        ("sku", "sort_by must be a column, then ':asc' or ':desc', such as 'id:desc', not 'sku'"),
        ("sku:down", "sort_by must be a column"),
    ],
)
def test_reading_refuses_a_sort_order_on_which_the_service_fails(execute, simulator, table, sort_by, message):
    simulator.clear_requests()
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceReadRowsOperator, data_table_id=table.id, sort_by=sort_by)
    assert not [request for request in simulator.requests if request.path.endswith("/rows")]


@pytest.mark.parametrize("sort_by", ["sku:asc", "id:DESC", " updatedAt : asc"])
def test_sort_orders_that_the_service_accepts(execute, table, sort_by):
    assert execute(ServiceReadRowsOperator, data_table_id=table.id, sort_by=sort_by)["count"] == 0


def test_the_hook_says_why_the_service_fails(client, table):
    with pytest.raises(errors.ServiceServerError, match=r"500.*lacks the column of sort_by, here 'nope:asc'"):
        list(client.data_table_rows.list(table.id, sort_by="nope:asc"))


def test_an_explained_failure_still_says_when_to_try_again(client, simulator, table):
    simulator.inject("status", status=500, retry_after=7, path="/rows$")
    with pytest.raises(errors.ServiceServerError, match="sort_by, here 'sku:asc'") as caught:
        list(client.data_table_rows.list(table.id, sort_by="sku:asc"))
    assert caught.value.retry_after == 7


def test_a_filter_that_the_service_refuses_is_explained(execute, table):
    wrong = {"filters": [{"columnName": "sku", "condition": ">", "value": "a"}]}

    with pytest.raises(AirflowFailException, match=r"400.*Invalid filter fields.*condition: eq, neq, like, ilike, gt"):
        execute(ServiceReadRowsOperator, data_table_id=table.id, filter=wrong)
