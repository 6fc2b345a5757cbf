"""Data tables and their columns."""

from __future__ import annotations

import pytest

from airflow_provider_service.client.errors import (
    ServiceConflictError,
    ServiceInvalidRequestError,
    ServiceNotFoundError,
    ServiceServerError,
)

from .expecting import NO_ID, refused, unique
from .tables import COLUMNS, Tables
from .target import Target

FAULT = "Internal server error"
NANOID = 'must match format "nanoid"'
NO_TABLE = f"Could not find the data table: '{NO_ID}'"


def taken(name: str) -> str:
    return f"Data table with name '{name}' already exists in this project"


# ---------------------------------------------------------------- tables


@pytest.mark.covers("create_data_table", "get_data_table", "delete_data_table")
def test_a_table_is_made_read_and_deleted(service: Target, tables: Tables) -> None:
    table = tables.create()
    columns = sorted(table.columns or [], key=lambda column: column.index)

    assert [(column.name, column.type, column.index) for column in columns] == [
        (name, kind, index) for index, (name, kind) in enumerate(COLUMNS.items())
    ]
    assert set(columns[0].to_wire()) == {"id", "dataTableId", "name", "type", "index", "createdAt", "updatedAt"}
    read = service.client.data_tables.get(table.id)
    assert (read.id, read.name, read.created_at) == (table.id, table.name, table.created_at)

    service.client.data_tables.delete(table.id)

    with refused(ServiceNotFoundError, f"Could not find the data table: '{table.id}'"):
        service.client.data_tables.get(table.id)


@pytest.mark.covers("create_data_table")
def test_a_table_may_have_no_columns_and_blanks_around_its_name(tables: Tables) -> None:
    name = unique()
    table = tables.create({}, name=f"  {name} ")
    assert (table.name, table.columns) == (name, [])


@pytest.mark.covers("create_data_table", "update_data_table")
def test_names_are_unique_but_for_their_case(service: Target, tables: Tables) -> None:
    name = unique("t")
    table, other = tables.create(name=name), tables.create(name=name.upper())

    assert other.name == name.upper()
    with refused(ServiceConflictError, taken(name)):
        tables.create(name=name)
    for same in (name, other.name):
        with refused(ServiceConflictError, taken(same)):
            service.client.data_tables.update(table.id, same)


@pytest.mark.covers("update_data_table", needs=("create_data_table",))
def test_a_table_is_renamed(service: Target, tables: Tables) -> None:
    table, name = tables.create(), unique()

    renamed = service.client.data_tables.update(table.id, name)

    assert renamed.name == name
    assert renamed.updated_at is not None
    assert renamed.updated_at.microsecond == 0
    assert service.client.data_tables.get(table.id).name == name


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "x"}, "request/body must have required property 'columns'"),
        ({"name": "", "columns": []}, "request/body/name must NOT have fewer than 1 characters"),
        ({"name": "x" * 129, "columns": []}, "request/body/name must NOT have more than 128 characters"),
        ({"name": " ", "columns": []}, "String must contain at least 1 character(s)"),
        ({"name": "x", "columns": {}}, "request/body/columns must be array"),
        (
            {"name": "x", "columns": [{"name": "a", "type": "text"}]},
            "request/body/columns/0/type must be equal to one of the allowed values: "
            "string, number, boolean, date, json",
        ),
        (
            {"name": "x", "columns": [{"name": "a", "type": "json"}]},
            "Invalid enum value. Expected 'string' | 'number' | 'boolean' | 'date', received 'json'",
        ),
        (
            {"name": "x", "columns": [{"name": "createdAt", "type": "date"}]},
            'Column name "createdAt" is reserved as a system column name.',
        ),
        (
            {"name": "x", "columns": [{"name": "1a", "type": "string"}]},
            "Only alphabetical characters and non-leading numbers and underscores are allowed for column names, "
            "and the maximum length is 63 characters.",
        ),
    ],
    ids=str,
)
@pytest.mark.covers("create_data_table")
def test_an_invalid_table_is_refused(service: Target, body: dict[str, object], message: str) -> None:
    if message.endswith("reserved as a system column name.") and service.differs("faults of the database"):
        message = "SQLITE_ERROR: duplicate column name: createdAt"
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("POST", "/data-tables", body=body)


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A")])
@pytest.mark.covers("create_data_table")
def test_a_column_twice_is_a_fault_of_the_server(service: Target, names: tuple[str, str]) -> None:
    columns = [{"name": name, "type": "string"} for name in names]
    if service.differs("faults of the database"):
        with pytest.raises(ServiceInvalidRequestError, match="SQLITE_"):
            service.client.data_tables.create(unique(), columns)
        return
    with refused(ServiceServerError, FAULT, 500):
        service.client.data_tables.create(unique(), columns)


@pytest.mark.covers("create_data_table")
def test_an_unknown_project_is_a_bad_request(service: Target) -> None:
    with refused(ServiceInvalidRequestError, f'Project with ID "{NO_ID}" not found', 400):
        service.client.data_tables.create(unique(), [], project_id=NO_ID)


@pytest.mark.covers("get_data_table", "update_data_table", "delete_data_table")
def test_an_unknown_table_is_not_found(service: Target) -> None:
    client = service.client.data_tables
    for call in (client.get, lambda table_id: client.update(table_id, unique()), client.delete):
        with refused(ServiceNotFoundError, NO_TABLE):
            call(NO_ID)
        with refused(ServiceInvalidRequestError, f"request/params/dataTableId {NANOID}", 400):
            call("short")


@pytest.mark.covers("list_data_tables", needs=("create_data_table",))
def test_tables_are_found_by_id_and_by_name_in_any_case(service: Target, tables: Tables) -> None:
    table, other = tables.create(name=unique("Orders")), tables.create()
    assert table.name

    def found(**filter: object) -> set[str]:
        return {one.id for one in service.client.data_tables.list(filter=filter)}

    assert found(id=table.id) == {table.id}
    assert found(id=[table.id, other.id]) == {table.id, other.id}
    assert found(name=table.name.upper()) == found(name=table.name[2:]) == {table.id}
    assert found(projectId=NO_ID) == set()
    assert {table.id, other.id} <= found(projectId=table.project_id)


@pytest.mark.covers("list_data_tables", needs=("create_data_table",))
def test_columns_of_listed_tables_do_not_name_their_table(service: Target, tables: Tables) -> None:
    table = tables.create()
    (listed,) = service.client.data_tables.list(filter={"id": table.id})
    for column in listed.to_wire()["columns"]:
        assert set(column) == {"id", "name", "type", "index", "createdAt", "updatedAt"}


@pytest.mark.covers("list_data_tables", needs=("create_data_table", "insert_data_table_rows"))
def test_tables_are_sorted(service: Target, tables: Tables) -> None:
    word = unique()
    ids = [tables.create({}, name=name + word).id for name in ("b", "A", "c")]

    def order(sort_by: str) -> list[int]:
        found = service.client.data_tables.list(filter={"name": word}, sort_by=sort_by)
        return [ids.index(table.id) for table in found]

    assert order("name:asc") == [1, 0, 2]
    assert order("name:desc") == [2, 0, 1]
    for place in (2, 0, 1):
        service.pass_time(1)
        service.client.data_table_rows.insert(ids[place], [{}])
    assert order("updatedAt:asc") == [2, 0, 1]
    assert order("updatedAt:desc") == [1, 0, 2]
    assert sorted(order("createdAt:asc")) == sorted(order("size:desc")) == [0, 1, 2]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("filter=%7B%22x%22%3A1%7D", "Invalid filter fields"),
        ("filter=x", 'request/query/filter must match format "jsonString"'),
        (
            "filter=%7B%22name%22:1%7D",
            "Parameter 'filter' must be url encoded. Its value may not contain reserved characters.",
        ),
        ("foo=1", "Unknown query parameter 'foo'"),
        (
            "sortBy=id%3Aasc",
            "sortBy must be one of: name:asc, name:desc, createdAt:asc, createdAt:desc, "
            "updatedAt:asc, updatedAt:desc, size:asc, size:desc",
        ),
        ("limit=251", "request/query/limit must be <= 250"),
        ("cursor=x", "An invalid cursor was provided"),
    ],
)
@pytest.mark.covers("list_data_tables")
def test_a_bad_query_is_refused(service: Target, query: str, message: str) -> None:
    answer = service.raw("GET", f"/data-tables?{query}")
    assert (answer.status_code, answer.json()) == (400, {"message": message})


# ---------------------------------------------------------------- columns


@pytest.mark.covers("list_data_table_columns", needs=("create_data_table",))
def test_columns_are_listed_by_index(service: Target, tables: Tables) -> None:
    table = tables.create()

    columns = service.client.data_table_columns.list(table.id)

    assert [column.name for column in columns] == list(COLUMNS)
    assert [column.index for column in columns] == [0, 1, 2, 3]


@pytest.mark.covers("create_data_table_column", needs=("create_data_table", "insert_data_table_rows"))
def test_a_new_column_is_null_in_the_rows_that_are_there(service: Target, tables: Tables) -> None:
    table_id = tables.filled([{"a": "x"}], {"a": "string"})
    columns = service.client.data_table_columns

    last = columns.create(table_id, "last", "number")
    first = columns.create(table_id, "first", "date", index=0)

    assert (last.index, last.type, last.to_wire()["dataTableId"]) == (1, "number", table_id)
    assert first.index == 0
    assert [column.name for column in columns.list(table_id)] == ["first", "a", "last"]
    assert tables.rows(table_id) == [{"first": None, "a": "x", "last": None}]


@pytest.mark.covers("create_data_table_column", "update_data_table_column", needs=("create_data_table",))
def test_names_of_columns_that_are_taken_or_reserved(service: Target, tables: Tables) -> None:
    table = tables.create({"a": "string", "b": "string"})
    columns = service.client.data_table_columns
    second = columns.list(table.id)[1].id
    doubled = f"Data table column with name 'a' already exists in data table '{table.name}'"
    reserved = 'Column name "id" is reserved as a system column name.'

    for name, message in (("a", doubled), ("id", reserved)):
        with refused(ServiceConflictError, message):
            columns.create(table.id, name, "string")
        with refused(ServiceConflictError, message):
            columns.update(table.id, second, name=name)
    with refused(ServiceServerError, FAULT, 500):
        columns.create(table.id, "A", "string")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"type": "string"}, "request/body must have required property 'name'"),
        ({"name": "1a", "type": "string"}, 'request/body/name must match pattern "^[a-zA-Z][a-zA-Z0-9_]*$"'),
        ({"name": "a" * 64, "type": "string"}, "request/body/name must NOT have more than 63 characters"),
        (
            {"name": "a", "type": "json"},
            "request/body/type must be equal to one of the allowed values: string, number, boolean, date",
        ),
        ({"name": "a", "type": "string", "index": -1}, "request/body/index must be >= 0"),
    ],
    ids=str,
)
@pytest.mark.covers("create_data_table_column")
def test_an_invalid_column_is_refused(service: Target, tables: Tables, body: dict[str, object], message: str) -> None:
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("POST", "/data-tables/{}/columns", tables.create({}).id, body=body)


@pytest.mark.covers("update_data_table_column", needs=("create_data_table", "insert_data_table_rows"))
def test_a_column_is_renamed_and_moved_with_its_values(service: Target, tables: Tables) -> None:
    table_id = tables.filled([{"a": "x", "b": 1}], {"a": "string", "b": "number"})
    columns = service.client.data_table_columns
    first = columns.list(table_id)[0]

    renamed = columns.update(table_id, first.id, name="z")
    moved = columns.update(table_id, first.id, index=1)

    assert (renamed.name, renamed.type) == ("z", "string")
    assert (moved.index, moved.to_wire()["updatedAt"][-5:]) == (1, ".000Z")
    assert [column.name for column in columns.list(table_id)] == ["b", "z"]
    assert tables.rows(table_id) == [{"b": 1, "z": "x"}]


@pytest.mark.covers("update_data_table_column", needs=("create_data_table",))
def test_a_column_does_not_move_beyond_the_others(service: Target, tables: Tables) -> None:
    table = tables.create({"a": "string"})
    columns = service.client.data_table_columns
    message = "Validation error with data table request: tried to move column to an index larger than column count"
    with refused(ServiceInvalidRequestError, message, 400):
        columns.update(table.id, columns.list(table.id)[0].id, index=1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {},
            "request/body must have required property 'name', request/body must have required property 'index', "
            "request/body must match a schema in anyOf",
        ),
        ({"name": "a", "type": "number"}, "request/body must NOT have additional properties"),
    ],
    ids=str,
)
@pytest.mark.covers("update_data_table_column")
def test_an_empty_change_is_refused(service: Target, body: dict[str, object], message: str) -> None:
    with refused(ServiceInvalidRequestError, message, 400):
        service.client.request("PATCH", "/data-tables/{}/columns/{}", NO_ID, NO_ID, body=body)


@pytest.mark.covers("delete_data_table_column", needs=("create_data_table", "insert_data_table_rows"))
def test_a_column_is_deleted_with_its_values(service: Target, tables: Tables) -> None:
    table_id = tables.filled([{"a": "x", "b": 1}], {"a": "string", "b": "number"})
    columns = service.client.data_table_columns

    columns.delete(table_id, columns.list(table_id)[0].id)

    assert [(column.name, column.index) for column in columns.list(table_id)] == [("b", 0)]
    assert tables.rows(table_id) == [{"b": 1}]


@pytest.mark.covers("update_data_table_column", "delete_data_table_column", needs=("create_data_table",))
def test_an_unknown_column_is_not_found(service: Target, tables: Tables) -> None:
    table_id = tables.create().id
    columns = service.client.data_table_columns
    for call in (lambda: columns.update(table_id, NO_ID, name="z"), lambda: columns.delete(table_id, NO_ID)):
        with refused(ServiceNotFoundError, f"Could not find the column '{NO_ID}' in the data table: {table_id}"):
            call()
    with refused(ServiceInvalidRequestError, f"request/params/columnId {NANOID}", 400):
        columns.delete(table_id, "short")


@pytest.mark.covers(
    "list_data_table_columns", "create_data_table_column", "update_data_table_column", "delete_data_table_column"
)
def test_columns_of_an_unknown_table_are_not_found(service: Target) -> None:
    columns = service.client.data_table_columns
    calls = (
        lambda: columns.list(NO_ID),
        lambda: columns.create(NO_ID, "a", "string"),
        lambda: columns.update(NO_ID, NO_ID, name="a"),
        lambda: columns.delete(NO_ID, NO_ID),
    )
    for call in calls:
        with refused(ServiceNotFoundError, NO_TABLE):
            call()
