"""Rows of a table that others change while a task reads it."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import ServiceUpdateRowsOperator
from airflow_provider_service.transfers.object_storage_to_data_table import ObjectStorageToServiceDataTableOperator

ROWS = 600
DELETED = 100
KEYS = [{"shop": str(number // 25), "sku": f"s{number % 25}"} for number in range(ROWS)]


def where(*conditions, type="and"):
    names = ("columnName", "condition", "value")
    return {"type": type, "filters": [dict(zip(names, one, strict=True)) for one in conditions]}


@pytest.fixture
def busy_table(client, table, meanwhile):
    """A table of 600 rows, from which somebody deletes the first 100 once a page of it has been read."""
    rows = [{**key, "stock": number, "sold_at": "2026-01-05"} for number, key in enumerate(KEYS)]
    client.data_table_rows.insert(table.id, rows)
    first = where(("stock", "lt", DELETED))
    meanwhile(f"/data-tables/{table.id}/rows", lambda other: other.data_table_rows.delete(table.id, first))
    return table


def test_no_row_is_missed_because_earlier_ones_are_deleted(simulator, execute, busy_table):
    done = execute(ServiceReadRowsOperator, data_table_id=busy_table.id)
    assert [row["stock"] for row in done["rows"]] == [*range(ROWS)]
    assert len([one for one in simulator.requests if one.path.endswith("/rows") and one.method == "GET"]) == 3


@pytest.fixture
def renamed_column(client, table, meanwhile):
    """A table of 600 rows, whose column ``stock`` somebody renames once a page of it has been read."""
    client.data_table_rows.insert(table.id, [{**key, "stock": 1} for key in KEYS])
    [column] = [one for one in client.data_table_columns.list(table.id) if one.name == "stock"]

    def rename(other):
        other.data_table_columns.update(table.id, column.id, name="amount")

    meanwhile(f"/data-tables/{table.id}/rows", rename)
    return table


@pytest.mark.parametrize("options", [{}, {"columns": ["sku", "stock"]}, {"path": "out.csv"}, {"path": "out.parquet"}])
def test_a_column_that_is_renamed_fails_the_task_that_reads_it(execute, renamed_column, tmp_path, options):
    if "path" in options:
        options = {"path": str(tmp_path / options["path"])}
    with pytest.raises(ServiceError, match=r"no longer has the column 'stock'.*run the task again"):
        execute(ServiceReadRowsOperator, data_table_id=renamed_column.id, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_is_renamed_fails_a_frame_only_if_it_is_read(renamed_column):
    with ServiceHook() as service:
        with pytest.raises(ServiceError, match="no longer has the column 'stock'"):
            service.data_tables.to_arrow(data_table_id=renamed_column.id)
        assert len(service.data_tables.to_arrow(data_table_id=renamed_column.id, columns=["sku"])) == ROWS


@pytest.mark.parametrize("kind", ["and", "or"])
def test_an_update_misses_no_row_because_earlier_ones_are_deleted(execute, busy_table, held, kind):
    dates = where(("sold_at", "gt", "2026-01-01"), ("sold_at", "lt", "2026-02-01"), type=kind)
    execute(ServiceUpdateRowsOperator, data_table_id=busy_table.id, filter=dates, data={"active": True})
    assert held("active") == [(True,)] * (ROWS - DELETED)


@pytest.mark.slow
def test_an_upsert_inserts_no_key_twice_because_earlier_rows_are_deleted(repair, busy_table, held):
    assert repair([{**key, "active": True} for key in KEYS], ["shop", "sku"]) == (0, ROWS, 0, 0)
    assert held("shop", "sku") == [(key["shop"], key["sku"]) for key in KEYS[DELETED:]]


@pytest.mark.parametrize(
    ("second", "options", "expected"),
    [
        ("new", {"delete_missing": True}, [(1, "a"), (2, "new")]),
        ("b", {"change_strategy": "replace"}, [(2, "a"), (3, "b")]),
    ],
)
def test_no_inserted_row_is_deleted_because_it_has_the_id_of_another(
    execute, client, table, meanwhile, held, tmp_path, second, options, expected
):
    client.data_table_rows.insert(table.id, [{"sku": "a"}, {"sku": "b"}])
    last = where(("id", "eq", 2))
    meanwhile(f"/data-tables/{table.id}/rows", lambda other: other.data_table_rows.delete(table.id, last))
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"sku": "{sku}", "stock": 2}}\n' for sku in ("a", second)))
    arguments = {"path": str(path), "data_table_id": table.id, "key_columns": "sku", **options}
    execute(ObjectStorageToServiceDataTableOperator, **arguments)
    assert held("id", "sku") == expected


def test_rows_that_meet_one_of_several_conditions_are_read_once_and_by_id(client, busy_table):
    few = [("stock", "gte", 10), ("sku", "like", "s1"), ("stock", "eq", 5)]
    rows = client.data_table_rows.list(busy_table.id, filter=where(*few, type="or"))
    assert [row["stock"] for row in rows] == [1, 5, *range(10, ROWS)]


def test_a_limit_of_rows_that_meet_one_of_several_conditions_takes_one_call(simulator, client, busy_table):
    simulator.clear_requests()
    either = where(("stock", "gte", 10), ("stock", "eq", 5), type="or")
    rows = client.data_table_rows.list(busy_table.id, filter=either, limit=3)
    assert [row["stock"] for row in rows] == [5, 10, 11]
    assert len(simulator.requests) == 2  # and the deletion
