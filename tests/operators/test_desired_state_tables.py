"""Data tables that are declared get their columns, and keep their rows."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client._lookup import get_data_table
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.desired_state import ServiceEnsureDataTablesOperator

from .conftest import counts


def test_tables_get_their_columns(execute, client, writes, link):
    table = client.data_tables.create("orders", [{"name": "sku", "type": "string"}, {"name": "own", "type": "date"}])
    client.data_table_rows.insert(table.id, [{"sku": "a"}])
    writes()
    desired = {"orders": {"sku": "string", "stock": "number"}, "stock": [{"name": "sku", "type": "string"}]}
    done = execute(ServiceEnsureDataTablesOperator, data_tables=desired)
    assert counts(done) == (1, 1, 0, 0)
    assert done["changes"] == [
        {"action": "update", "name": "orders", "added_columns": {"stock": "number"}},
        {"action": "create", "name": "stock", "columns": {"sku": "string"}},
    ]
    held = {one.name: one.type for one in client.data_table_columns.list(table.id)}
    assert held == {"sku": "string", "own": "date", "stock": "number"}
    assert [row["sku"] for row in client.data_table_rows.list(table.id)] == ["a"]
    writes()
    assert (counts(execute(ServiceEnsureDataTablesOperator, data_tables=desired)), writes()) == ((0, 0, 0, 2), [])
    assert link() == "/home/datatables"


def test_impossible_changes_are_all_named_before_anything_is_written(execute, client, writes):
    for name in ("one", "two"):
        client.data_tables.create(name, [{"name": "sku", "type": "string"}])
    writes()
    desired = {"new": {"a": "string"}, "one": {"sku": "number"}, "two": {"sku": "date"}}
    with pytest.raises(AirflowFailException, match=r"data table 'one' .*'sku' is string, not number.*data table 'two'"):
        execute(ServiceEnsureDataTablesOperator, data_tables=desired)
    assert writes() == []


def test_names_that_the_service_would_refuse_are_found_before_anything_is_written(execute, client, writes):
    client.data_tables.create("stock", [{"name": "SKU", "type": "string"}])
    writes()
    for second, message in (
        ({"stock": {"sku": "string"}}, "data table 'stock' .*: 'sku' differs only in case from 'SKU'"),
        ({"x" * 129: {}}, "the name of a data table has at most 128 characters: 'xxx"),
    ):
        with pytest.raises(AirflowFailException, match=message):
            execute(ServiceEnsureDataTablesOperator, data_tables={"new": {"a": "string"}, **second})
    with pytest.raises(AirflowFailException, match="'sku' differs only in case from 'SKU'"):
        execute(ServiceCreateDataTableOperator, name="stock", columns={"sku": "string"})
    assert writes() == []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sku": "text"}, "the type of column 'sku' must be one of string, number, boolean, date"),
        ({"createdAt": "date"}, "'createdAt' cannot be the name of a column"),
        ({"a": "string", "A": "string"}, "each name once, regardless of case"),
    ],
)
def test_invalid_columns_are_refused(execute, simulator, columns, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceEnsureDataTablesOperator, data_tables={"orders": columns})
    assert not simulator.requests


def test_tables_are_pruned_in_their_project(execute, client):
    project = client.projects.create("Sales")
    for project_id in (None, project.id):
        for name in ("old", "kept"):
            client.data_tables.create(name, [], project_id=project_id)
    done = execute(
        ServiceEnsureDataTablesOperator, data_tables={}, project_name="Sales", prune=True, prune_names=["old"]
    )
    assert counts(done) == (0, 0, 1, 0)
    assert sorted(one.name for one in client.data_tables.list()) == ["kept", "kept", "old"]
    assert get_data_table(client, "kept", project_id=project.id)
    with pytest.raises(AirflowFailException, match="there is more than one data table named 'kept'"):
        execute(ServiceEnsureDataTablesOperator, data_tables={"kept": {}})
