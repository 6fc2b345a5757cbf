"""What each type of column accepts and how it answers it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_service.client.errors import ServiceInvalidRequestError

from .expecting import refused, unique
from .tables import Tables, where
from .target import Target
from .workbench import Workbench, stop_and_error, webhook

# Column type, value sent, value answered.
ACCEPTED = [
    ("string", "a", "a"),
    ("string", "", ""),
    ("string", " é 漢 \n'\"% ", " é 漢 \n'\"% "),
    ("string", 5, "5"),
    ("string", 5.5, "5.5"),
    ("string", True, "1"),
    ("string", False, "0"),
    ("string", None, None),
    ("number", 1, 1),
    ("number", -1.5, -1.5),
    ("number", 0, 0),
    ("number", "12", 12),
    ("number", " 1.50 ", 1.5),
    ("number", "1e3", 1000),
    ("number", "", 0),
    ("number", True, 1),
    ("number", False, 0),
    ("number", 2**53, 2**53),
    ("number", 2**53 + 1, 2**53),
    ("number", 2**60, 1152921504606847000),
    ("number", 12345678901234567890, 12345678901234567000),
    ("number", None, None),
    ("boolean", True, True),
    ("boolean", False, False),
    ("boolean", "true", True),
    ("boolean", "False", False),
    ("boolean", 1, True),
    ("boolean", 0, False),
    ("boolean", "1", True),
    ("boolean", "0", False),
    ("boolean", None, None),
    ("date", "2026-01-02", "2026-01-02T00:00:00.000Z"),
    ("date", "2026-01-02 03:04:05", "2026-01-02T03:04:05.000Z"),
    ("date", "2026-01-02T03:04:05", "2026-01-02T03:04:05.000Z"),
    ("date", "2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
    ("date", "2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000Z"),
    ("date", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"),
    ("date", "2026-01-02T03:04:05.678999Z", "2026-01-02T03:04:05.678Z"),
    ("date", "0100-01-01T00:00:00.000Z", "0100-01-01T00:00:00.000Z"),
    ("date", None, None),
]

# Column type, value sent, the value as the message writes it.
REFUSED = [
    ("number", "abc", "abc"),
    ("number", "1,5", "1,5"),
    ("boolean", "yes", "yes"),
    ("boolean", 2, "2"),
    ("boolean", "", ""),
    ("date", "yesterday", "yesterday"),
    ("date", "2026-13-01", "2026-13-01"),
    ("date", 1767323045006, "1767323045006"),
    ("date", True, "true"),
]
_EXPECTS = {"number": "number", "boolean": "boolean", "date": "dateTime"}


def expectation(kind: str, text: str) -> str:
    """The message of the refusal, but for the advice that follows it for a date."""
    return (
        f"Validation error with data table request: value '{text}' does not match column type '{kind}': "
        f"'c' expects a {_EXPECTS[kind]} but we got '{text}'"
    )


def exactly(value: Any) -> tuple[type, Any]:
    """A form in which 1 and True differ, while 1 and 1.0 are the same number of JSON."""
    return (bool if isinstance(value, bool) else float if isinstance(value, (int, float)) else type(value)), value


@pytest.mark.parametrize(("kind", "sent", "answered"), ACCEPTED)
@pytest.mark.covers("insert_data_table_rows", "list_data_table_rows", needs=("create_data_table",))
def test_a_value_is_stored_as_its_column_s_type(
    service: Target, tables: Tables, kind: str, sent: Any, answered: Any
) -> None:
    table_id = tables.create({"c": kind}).id

    (inserted,) = service.client.data_table_rows.insert(table_id, [{"c": sent}], return_type="all")

    (listed,) = tables.rows(table_id)
    assert exactly(inserted["c"]) == exactly(listed["c"]) == exactly(answered)


@pytest.mark.parametrize(("kind", "sent", "answered"), ACCEPTED)
@pytest.mark.covers("update_data_table_rows", "upsert_data_table_rows", needs=("create_data_table",))
def test_an_update_stores_a_value_the_same_way(
    service: Target, tables: Tables, kind: str, sent: Any, answered: Any
) -> None:
    table_id = tables.filled([{"key": 1}], {"key": "number", "c": kind})
    rows = service.client.data_table_rows

    rows.update(table_id, where(("key", "eq", 1)), {"c": sent})
    rows.upsert(table_id, where(("key", "eq", 2)), {"key": 2, "c": sent})

    assert [exactly(row["c"]) for row in tables.rows(table_id)] == [exactly(answered)] * 2


@pytest.mark.covers("insert_data_table_rows", needs=("create_data_table", "create_workflow"))
def test_the_meaning_of_a_date_and_time_without_an_offset(service: Target, tables: Tables, bench: Workbench) -> None:
    """Say the offset: what is meant without one changes with the workflows that run meanwhile."""
    table_id = tables.create({"c": "date"}).id

    def read_after_a_run_in(timezone: str) -> str:
        workflow = bench.publish(webhook(unique()), stop_and_error("={{ 1 + 1 }}"), timezone=timezone)
        bench.finished(bench.start(workflow))
        (row,) = service.client.data_table_rows.insert(table_id, [{"c": "2026-01-02T12:00:00"}], return_type="all")
        return str(row["c"])

    in_tokyo, in_utc = read_after_a_run_in("Asia/Tokyo"), read_after_a_run_in("UTC")

    assert in_utc == "2026-01-02T12:00:00.000Z"
    assert in_tokyo == ("2026-01-02T03:00:00.000Z" if service.differs("moments without offset") else in_utc)


@pytest.mark.parametrize(("kind", "sent", "text"), REFUSED)
@pytest.mark.covers("insert_data_table_rows", "update_data_table_rows", needs=("create_data_table",))
def test_a_value_of_another_type_is_refused(service: Target, tables: Tables, kind: str, sent: Any, text: str) -> None:
    table_id = tables.create({"c": kind}).id
    rows = service.client.data_table_rows
    calls = (
        lambda: rows.insert(table_id, [{"c": sent}]),
        lambda: rows.update(table_id, where(("id", "eq", 1)), {"c": sent}),
        lambda: rows.upsert(table_id, where(("id", "eq", 1)), {"c": sent}),
        lambda: list(rows.list(table_id, filter=where(("c", "eq", sent)))),
    )
    for call in calls:
        with pytest.raises(ServiceInvalidRequestError) as caught:
            call()
        assert str(caught.value.server_message).partition(" <br/>")[0] == expectation(kind, text)


@pytest.mark.parametrize("value", [[], ["a"], {}, {"a": 1}], ids=str)
@pytest.mark.parametrize("kind", ["string", "number", "boolean", "date"])
@pytest.mark.covers("insert_data_table_rows", "update_data_table_rows", needs=("create_data_table",))
def test_no_column_takes_lists_or_objects(service: Target, tables: Tables, kind: str, value: Any) -> None:
    table_id = tables.create({"c": kind}).id
    with refused(ServiceInvalidRequestError, "Invalid input", 400):
        service.client.data_table_rows.insert(table_id, [{"c": value}])
    with refused(ServiceInvalidRequestError, "Invalid input", 400):
        service.client.data_table_rows.update(table_id, where(("id", "eq", 1)), {"c": value})


@pytest.mark.covers("insert_data_table_rows", needs=("create_data_table",))
def test_a_number_beyond_doubles_keeps_its_size(service: Target, tables: Tables) -> None:
    table_id = tables.create({"c": "number"}).id

    service.client.data_table_rows.insert(table_id, [{"c": 1e300}, {"c": "-1e-7"}])

    assert [row["c"] for row in tables.rows(table_id)] == [1e300, -1e-7]


@pytest.mark.parametrize("number", [2**53 + 2, 123456789012345680, 2**60, 2**62 + 2**20])
@pytest.mark.covers("list_data_table_rows", needs=("create_data_table",))
def test_some_whole_numbers_beyond_doubles_are_not_found(service: Target, tables: Tables, number: int) -> None:
    """A filter's number is compared digit by digit with the exact value of the stored double."""
    table_id = tables.filled([{"c": number}], {"c": "number"})

    found = tables.rows(table_id, filter=where(("c", "eq", number)))

    assert bool(found) == (int(Decimal(repr(float(number)))) == int(float(number)))


@pytest.mark.covers("delete_data_table_rows", needs=("create_data_table", "list_data_table_rows"))
def test_a_range_of_ids_is_deleted(service: Target, tables: Tables) -> None:
    table_id = tables.filled([{"c": number} for number in range(1, 301)], {"c": "number"})

    service.client.data_table_rows.delete(table_id, where(("id", "gte", 11), ("id", "lte", 290)))

    assert [row["c"] for row in tables.rows(table_id)] == [*range(1, 11), *range(291, 301)]
