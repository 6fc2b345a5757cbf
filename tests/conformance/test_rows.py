"""Writing rows: insert, update, upsert, delete and clear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_service.client.errors import (
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServicePayloadTooLargeError,
)

from .expecting import NO_ID, refused
from .tables import Tables, user_columns, where
from .target import Target

KEYED = {"key": "number", "text": "string"}
#: Three rows, two of them with the key 1.
ROWS = [{"key": 1, "text": "a"}, {"key": 1, "text": "b"}, {"key": 2, "text": "c"}]
ONES = where(("key", "eq", 1))
NONE = where(("key", "eq", 9))
SYSTEM = {"id", "createdAt", "updatedAt"}


@pytest.fixture
def table_id(tables: Tables) -> str:
    return tables.filled(ROWS, KEYED)


def fault(text: str) -> str:
    return f"Validation error with data table request: {text}"


# ---------------------------------------------------------------- insert


@pytest.mark.covers("insert_data_table_rows", needs=("create_data_table",))
def test_an_insert_answers_the_count_the_ids_or_the_rows(service: Target, tables: Tables) -> None:
    table_id = tables.create(KEYED).id
    rows = service.client.data_table_rows

    assert rows.insert(table_id, [{"key": 1}, {}]).to_wire() == {"success": True, "insertedRows": 2}
    assert rows.insert(table_id, [{"key": 2}, {"key": 3}], return_type="id") == [{"id": 3}, {"id": 4}]
    (whole,) = rows.insert(table_id, [{"text": "x"}], return_type="all")
    assert (whole["id"], whole["key"], whole["text"]) == (5, None, "x")
    assert set(whole) == SYSTEM | set(KEYED)
    assert tables.rows(table_id)[1] == {"key": None, "text": None}


@pytest.mark.covers("insert_data_table_rows", needs=("create_data_table", "list_data_table_rows"))
def test_one_bad_row_rejects_all(service: Target, tables: Tables) -> None:
    table_id = tables.create(KEYED).id
    for bad, text in (
        ({"Text": "x"}, "unknown column name 'Text'"),
        ({"Id": 1}, "unknown column name 'Id'"),
        ({"key": "x"}, "value 'x' does not match column type 'number': 'key' expects a number but we got 'x'"),
    ):
        with refused(ServiceInvalidRequestError, fault(text), 400):
            service.client.data_table_rows.insert(table_id, [{"key": 1}, bad])
    assert tables.rows(table_id) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request/body must have required property 'data'"),
        ({"data": {}}, "request/body/data must be array"),
        ({"data": []}, "request/body/data must NOT have fewer than 1 items"),
        ({"data": [1]}, "request/body/data/0 must be object"),
        (
            {"data": [{}], "returnType": "x"},
            "request/body/returnType must be equal to one of the allowed values: count, id, all",
        ),
    ],
    ids=str,
)
@pytest.mark.covers("insert_data_table_rows")
def test_an_insert_that_does_not_fit_is_refused(service: Target, body: dict[str, Any], message: str) -> None:
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("POST", "/data-tables/{}/rows", NO_ID, body=body)


@pytest.mark.covers("insert_data_table_rows", "list_data_table_rows", needs=("create_data_table",))
def test_thousands_of_rows_go_in_at_once_and_come_out_in_order(service: Target, tables: Tables) -> None:
    table_id = tables.create(KEYED).id

    service.client.data_table_rows.insert(table_id, [{"key": number} for number in range(1001)])

    assert [row["key"] for row in tables.rows(table_id)] == [*range(1001)]
    assert len(tables.rows(table_id, limit=251)) == 251


@pytest.mark.covers("insert_data_table_rows", needs=("create_data_table",))
def test_a_body_beyond_16_mebibytes_is_too_large(service: Target, tables: Tables) -> None:
    table_id = tables.create(KEYED).id
    with pytest.raises(ServicePayloadTooLargeError):
        service.client.data_table_rows.insert(table_id, [{"text": "x" * (16 * 2**20)}])


@pytest.mark.covers("list_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_pages_of_rows(service: Target, table_id: str) -> None:
    first = service.raw("GET", f"/data-tables/{table_id}/rows?limit=2").json()
    second = service.raw("GET", f"/data-tables/{table_id}/rows?cursor={first['nextCursor'].replace('=', '%3D')}").json()
    too_many = service.raw("GET", f"/data-tables/{table_id}/rows?limit=251")

    assert [row["id"] for row in first["data"]] == [1, 2]
    assert ([row["id"] for row in second["data"]], second["nextCursor"]) == ([3], None)
    assert (too_many.status_code, too_many.json()) == (400, {"message": "request/query/limit must be <= 250"})


# ---------------------------------------------------------------- update


@pytest.mark.covers("update_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_an_update_changes_every_match(service: Target, tables: Tables, table_id: str) -> None:
    rows = service.client.data_table_rows

    assert rows.update(table_id, ONES, {"text": "z"}) is True
    changed = rows.update(table_id, ONES, {"text": "y"}, return_data=True)

    assert isinstance(changed, list)
    assert [(row["id"], row["text"]) for row in changed] == [(1, "y"), (2, "y")]
    assert set(changed[0]) == SYSTEM | set(KEYED)
    assert [row["text"] for row in tables.rows(table_id)] == ["y", "y", "c"]


@pytest.mark.covers("update_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_an_update_without_a_match(service: Target, table_id: str) -> None:
    rows = service.client.data_table_rows
    assert rows.update(table_id, NONE, {"text": "z"}) is True
    assert rows.update(table_id, NONE, {"text": "z"}, return_data=True) == []
    assert rows.update(table_id, NONE, {"text": "z"}, dry_run=True) == []


@pytest.mark.parametrize("return_data", [None, True, False])
@pytest.mark.covers("update_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_dry_update_shows_before_and_after(
    service: Target, tables: Tables, table_id: str, return_data: bool | None
) -> None:
    shown = service.client.data_table_rows.update(table_id, ONES, {"text": "z"}, dry_run=True, return_data=return_data)

    assert isinstance(shown, list)
    assert [(row["id"], row["dryRunState"], row["text"]) for row in shown] == [
        (1, "before", "a"),
        (1, "after", "z"),
        (2, "before", "b"),
        (2, "after", "z"),
    ]
    assert tables.rows(table_id) == ROWS


# ---------------------------------------------------------------- upsert


@pytest.mark.covers("upsert_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_an_upsert_updates_all_matches(service: Target, tables: Tables, table_id: str) -> None:
    rows = service.client.data_table_rows

    assert rows.upsert(table_id, ONES, {"text": "z"}) is True
    changed = rows.upsert(table_id, ONES, {"text": "y"}, return_data=True)

    assert isinstance(changed, list)
    assert [(row["id"], row["text"]) for row in changed] == [(1, "y"), (2, "y")]
    assert [row["text"] for row in tables.rows(table_id)] == ["y", "y", "c"]


@pytest.mark.covers("upsert_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_an_upsert_without_a_match_inserts_the_data_and_not_the_filter_s_values(
    service: Target, tables: Tables, table_id: str
) -> None:
    rows = service.client.data_table_rows

    assert rows.upsert(table_id, NONE, {"text": "d"}) is True
    inserted = rows.upsert(table_id, NONE, {"key": 9, "text": "e"}, return_data=True)

    assert isinstance(inserted, list)
    assert [(row["id"], row["key"], row["text"]) for row in inserted] == [(5, 9, "e")]
    assert tables.rows(table_id)[3:] == [{"key": None, "text": "d"}, {"key": 9, "text": "e"}]


@pytest.mark.covers("upsert_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_dry_upsert_shows_before_and_after(service: Target, tables: Tables, table_id: str) -> None:
    rows = service.client.data_table_rows

    update = rows.upsert(table_id, ONES, {"text": "z"}, dry_run=True)
    insert = rows.upsert(table_id, NONE, {"text": "z"}, dry_run=True)

    assert isinstance(update, list)
    assert [(row["id"], row["dryRunState"], row["text"]) for row in update] == [
        (1, "before", "a"),
        (1, "after", "z"),
        (2, "before", "b"),
        (2, "after", "z"),
    ]
    assert isinstance(insert, list)
    assert [(row["id"], row["dryRunState"], row["text"]) for row in insert] == [
        (None, "before", None),
        (0, "after", "z"),
    ]
    assert tables.rows(table_id) == ROWS


# ---------------------------------------------------------------- what update, upsert and delete refuse


def change_calls(service: Target, table_id: str, filter: Any, data: Any) -> list[Callable[[], Any]]:
    body = {"filter": filter, "data": data}
    return [
        lambda: service.client.request("PATCH", "/data-tables/{}/rows/update", table_id, body=body),
        lambda: service.client.request("POST", "/data-tables/{}/rows/upsert", table_id, body=body),
    ]


@pytest.mark.parametrize(
    ("filter", "data", "message"),
    [
        (ONES, {}, "data must not be empty"),
        (ONES, {"Text": "x"}, fault("unknown column name 'Text'")),
        (ONES, {"Id": 1}, fault("unknown column name 'Id'")),
        (ONES, [{"text": "x"}], "request/body/data must be object"),
        (where(), {"text": "x"}, "request/body/filter/filters must NOT have fewer than 1 items"),
        ({}, {"text": "x"}, "request/body/filter must have required property 'filters'"),
        (where(("Key", "eq", 1)), {"text": "x"}, fault("unknown column name 'Key'")),
        (
            where(("key", "isEmpty", None)),
            {"text": "x"},
            "request/body/filter/filters/0/condition must be equal to one of the allowed values: "
            "eq, neq, like, ilike, gt, gte, lt, lte",
        ),
        (
            {"filters": [{"columnName": "key", "value": 1}]},
            {"text": "x"},
            "request/body/filter/filters/0 must have required property 'condition'",
        ),
        (
            {"filters": [{"columnName": "key", "condition": "eq"}]},
            {"text": "x"},
            "request/body/filter/filters/0 must have required property 'value'",
        ),
        (
            {"type": "xor", "filters": ONES["filters"]},
            {"text": "x"},
            "request/body/filter/type must be equal to one of the allowed values: and, or",
        ),
    ],
    ids=str,
)
@pytest.mark.covers(
    "update_data_table_rows", "upsert_data_table_rows", needs=("create_data_table", "insert_data_table_rows")
)
def test_a_change_that_does_not_fit_is_refused(
    service: Target, tables: Tables, table_id: str, filter: Any, data: Any, message: str
) -> None:
    for call in change_calls(service, table_id, filter, data):
        with refused(ServiceInvalidRequestError, message, 400):
            call()
    assert tables.rows(table_id) == ROWS


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "request/query must have required property 'filter'"),
        ("filter=%7B%7D", "At least one filter condition is required for delete operations"),
        ("filter=%7B%22filters%22%3A%5B%5D%7D", "At least one filter condition is required for delete operations"),
        ("filter=x", 'request/query/filter must match format "jsonString"'),
        ("filter=%7B%7D&returnData=yes", "request/query/returnData must be boolean"),
        ("filter=%7B%7D&dryRun=True", "request/query/dryRun must be boolean"),
        ("filter=%7B%7D&force=true", "Unknown query parameter 'force'"),
    ],
)
@pytest.mark.covers("delete_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_delete_that_does_not_fit_is_refused(
    service: Target, tables: Tables, table_id: str, query: str, message: str
) -> None:
    answer = service.raw("DELETE", f"/data-tables/{table_id}/rows/delete?{query}")

    assert (answer.status_code, answer.json()) == (400, {"message": message})
    assert tables.rows(table_id) == ROWS


# ---------------------------------------------------------------- delete and clear


@pytest.mark.covers("delete_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_delete_takes_every_match(service: Target, tables: Tables, table_id: str) -> None:
    rows = service.client.data_table_rows

    assert rows.delete(table_id, NONE) is True
    assert rows.delete(table_id, NONE, return_data=True) == []
    deleted = rows.delete(table_id, ONES, return_data=True)

    assert isinstance(deleted, list)
    assert [user_columns(row) for row in deleted] == ROWS[:2]
    assert set(deleted[0]) == SYSTEM | set(KEYED)
    assert tables.rows(table_id) == ROWS[2:]
    assert rows.delete(table_id, where(("key", "eq", 2))) is True
    assert tables.rows(table_id) == []


@pytest.mark.covers("delete_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_dry_delete_shows_what_would_go(service: Target, tables: Tables, table_id: str) -> None:
    shown = service.client.data_table_rows.delete(table_id, ONES, dry_run=True, return_data=True)

    assert isinstance(shown, list)
    assert [(row["id"], row["dryRunState"], row["text"]) for row in shown] == [
        (1, "before", "a"),
        (None, "after", None),
        (2, "before", "b"),
        (None, "after", None),
    ]
    assert tables.rows(table_id) == ROWS


@pytest.mark.covers("delete_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_the_highest_id_is_given_again_after_its_row_is_deleted(service: Target, table_id: str) -> None:
    rows = service.client.data_table_rows

    rows.delete(table_id, where(("id", "eq", 3)))

    assert rows.insert(table_id, [{}], return_type="id") == [{"id": 3}]


@pytest.mark.covers("clear_data_table_rows", needs=("create_data_table", "insert_data_table_rows"))
def test_a_cleared_table_starts_again(service: Target, tables: Tables, table_id: str) -> None:
    rows = service.client.data_table_rows

    assert rows.clear(table_id).to_wire() == {"deletedCount": 3}
    assert rows.clear(table_id).to_wire() == {"deletedCount": 0}
    assert tables.rows(table_id) == []
    assert rows.insert(table_id, [{}], return_type="id") == [{"id": 1}]


@pytest.mark.covers(
    "list_data_table_rows",
    "insert_data_table_rows",
    "update_data_table_rows",
    "upsert_data_table_rows",
    "delete_data_table_rows",
    "clear_data_table_rows",
)
def test_rows_of_an_unknown_table_are_not_found(service: Target) -> None:
    rows = service.client.data_table_rows
    calls = (
        lambda table_id: list(rows.list(table_id)),
        lambda table_id: rows.insert(table_id, [{}]),
        lambda table_id: rows.update(table_id, ONES, {"text": "x"}),
        lambda table_id: rows.upsert(table_id, ONES, {"text": "x"}),
        lambda table_id: rows.delete(table_id, ONES),
        rows.clear,
    )
    for call in calls:
        with refused(ServiceNotFoundError, f"Could not find the data table: '{NO_ID}'"):
            call(NO_ID)
        with refused(ServiceInvalidRequestError, 'request/params/dataTableId must match format "nanoid"', 400):
            call("short")
