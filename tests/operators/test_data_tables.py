"""Operator on data tables."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client import errors
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator

COLUMNS = {"sku": "string", "stock": "number", "sold_at": "date"}


def columns_of(client, table_id) -> dict[str, str]:
    return {column.name: column.type for column in client.data_table_columns.list(table_id)}


def test_creating_twice(execute, client, writes, link):
    first = execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)
    assert (first["outcome"], writes()) == ("created", ["POST /data-tables"])
    assert columns_of(client, first["data_table_id"]) == COLUMNS
    second = execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)
    assert second == {**first, "outcome": "unchanged"}
    assert writes() == []
    assert link() == f"/projects/{first['project_id']}/datatables/{first['data_table_id']}"


def test_an_existing_table_gets_what_it_lacks_and_keeps_the_rest(execute, client):
    table = client.data_tables.create("stock", [{"name": "note", "type": "string"}, {"name": "sku", "type": "string"}])
    client.data_table_rows.insert(table.id, [{"sku": "a"}])
    columns = [{"name": name, "type": kind} for name, kind in COLUMNS.items()]
    done = execute(ServiceCreateDataTableOperator, name="stock", columns=columns)
    assert (done["outcome"], done["added_columns"]) == ("extended", ["stock", "sold_at"])
    assert columns_of(client, table.id) == {"note": "string", **COLUMNS}
    assert next(client.data_table_rows.list(table.id))["sku"] == "a"


def test_a_column_of_another_type_fails_and_nothing_is_added(execute, client):
    table = client.data_tables.create("stock", [{"name": "stock", "type": "string"}])
    with pytest.raises(AirflowFailException, match="'stock' is string, not number; the service cannot change the ty"):
        execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)
    assert columns_of(client, table.id) == {"stock": "string"}


def test_an_existing_table_can_fail_the_task(execute, client):
    client.data_tables.create("stock", [])
    with pytest.raises(errors.ServiceConflictError, match="Data table with name 'stock' already exists"):
        execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS, if_exists="fail")


def test_names_that_differ_in_case_are_different_tables(execute, client):
    other = client.data_tables.create("Stock", [{"name": "sku", "type": "number"}])
    created = execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)
    assert created["outcome"] == "created"
    again = execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)
    assert again["data_table_id"] == created["data_table_id"] != other.id


def test_the_project_decides_which_table_it_is(execute, client):
    project = client.projects.create("Analytics")
    execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)
    created = execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS, project_id=project.id)
    assert (created["outcome"], created["project_id"]) == ("created", project.id)
    again = execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS, project_id=project.id)
    assert again["data_table_id"] == created["data_table_id"]
    own = execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)
    assert (own["outcome"], own["project_id"] != project.id) == ("unchanged", True)


def test_tables_of_several_projects_are_not_told_apart_without_the_right_to_list_them(execute, client, simulator):
    project = client.projects.create("Analytics")
    for project_id in (None, project.id):
        client.data_tables.create("stock", [], project_id=project_id)
    simulator.inject("status", status=403, path="/projects$", times=None)
    with pytest.raises(AirflowFailException, match=r"more than one data table named 'stock'.*; say which one by id"):
        execute(ServiceCreateDataTableOperator, name="stock", columns=COLUMNS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": {"a": "json"}}, "the type of column 'a' must be one of string, number, boolean, date, not 'json'"),
        ({"columns": [{"name": "a", "type": "string"}] * 2}, "each name once"),
        ({"columns": ["a"]}, "columns must map names to types"),
    ],
)
def test_bad_arguments_are_refused(execute, simulator, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        execute(ServiceCreateDataTableOperator, name="stock", **arguments)
    assert not simulator.requests
