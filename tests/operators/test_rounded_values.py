"""Values that the service stores less exactly than they were given."""

from __future__ import annotations

import time
from datetime import datetime
from decimal import Decimal

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException


@pytest.mark.parametrize(
    ("given", "held_as"),
    [
        ({"stock": 2**60}, 1152921504606847000),
        ({"stock": 2**53 + 1}, 2**53),
        ({"stock": "12345678901234567890"}, 12345678901234567000),
        ({"stock": "1e-99999999999999999999"}, 0),
        ({"stock": Decimal("0.12345678901234567891")}, 0.12345678901234568),
        ({"sold_at": "2026-01-02T03:04:05.123456Z"}, "2026-01-02T03:04:05.123Z"),
        ({"sold_at": "2026-01-02T03:04:05.000000001Z"}, "2026-01-02T03:04:05.000Z"),
        ({"sold_at": datetime(2026, 1, 2, 3, 4, 5, 999999)}, "2026-01-02T03:04:05.999Z"),
    ],
    ids=str,
)
def test_it_is_written_once_and_reported_in_one_line(upsert, held, writes, caplog, given, held_as):
    rows = [{"sku": "a", **given}, {"sku": "b", **given}]
    assert upsert(rows) == (2, 0, 0)
    [name] = given
    assert held(name) == [(held_as,)] * 2
    [line] = [one.getMessage() for one in caplog.records if "less exactly" in one.getMessage()]
    assert f"2 values less exactly than they were given, the first in row 1, column {name!r}: " in line
    assert f"becomes {held_as}. " in line
    writes()
    assert upsert(rows) == (0, 0, 2)
    assert writes() == []


@pytest.mark.parametrize(
    "given",
    [
        {"stock": 2**53},
        {"stock": 10**20},
        {"stock": 1e300},
        {"stock": 0.1},
        {"stock": 2.0**60},
        {"stock": Decimal("0.1000")},
        {"stock": "1e21"},
        {"stock": "-0"},
        {"stock": True},
        {"stock": None},
        {"sold_at": "2026-01-02T03:04:05.123000Z"},
        {"sold_at": datetime(2026, 1, 2, 3, 4, 5, 123000)},
        {"sold_at": "0100-01-01"},
        {"sold_at": "9999-12-31T23:59:59.999Z"},
        {"sold_at": None},
        # make test-mutation could not name it: pytest finds no test by an id with such characters.
        pytest.param({"shop": "a\x01b\x85\u2028\ufeff\r"}, id="control characters"),
    ],
    ids=str,
)
def test_what_the_service_holds_exactly_is_not_reported(upsert, caplog, given):
    assert upsert([{"sku": "a", **given}]) == (1, 0, 0)
    assert upsert([{"sku": "a", **given}]) == (0, 0, 1)
    assert "less exactly" not in caplog.text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("12345678901234567890"), "12345678901234567890"),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-7"), "0.0000001"),
    ],
)
def test_a_column_of_text_keeps_every_digit_of_a_decimal(upsert, held, caplog, value, text):
    assert upsert([{"sku": "a", "shop": value}]) == (1, 0, 0)
    assert held("shop") == [(text,)]
    assert upsert([{"sku": "a", "shop": value}]) == (0, 0, 1)
    assert "less exactly" not in caplog.text


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1E+999999999"), 1.5], ids=str)
def test_a_column_of_text_takes_no_other_numbers_with_a_fraction(upsert, value):
    with pytest.raises(AirflowFailException, match=r"row 1, column 'shop': .* is not a value of type string"):
        upsert([{"sku": "a", "shop": value}])


@pytest.mark.parametrize(
    "value", ["0001-01-01", "0099-12-31T23:59:59Z", datetime(1, 1, 1), "0100-01-01T00:30:00+01:00"]
)
def test_years_that_the_service_misreads_are_refused(upsert, held, value):
    with pytest.raises(AirflowFailException, match=r"row 1, column 'sold_at': .* is not a value of type date; nothing"):
        upsert([{"sku": "a", "sold_at": value}])
    assert held("sku") == []


@pytest.mark.parametrize("value", ["\ud800", "a\udc00b"])
def test_text_with_half_a_pair_of_surrogates_is_refused(upsert, held, value):
    with pytest.raises(AirflowFailException, match=r"row 2, column 'shop': .* is not a value of type string"):
        upsert([{"sku": "a", "shop": "x"}, {"sku": "b", "shop": value}])
    assert held("sku") == []


def test_a_number_of_thousands_of_digits_is_refused_in_few_words(upsert):
    with pytest.raises(AirflowFailException, match=r"row 1, column 'stock': .{0,120} is not a value of type number"):
        upsert([{"sku": "a", "stock": 10**5000}])


def test_a_text_of_many_digits_that_is_no_number_is_refused_at_once(upsert):
    began = time.process_time()
    with pytest.raises(AirflowFailException, match=r"row 1, column 'stock': .{0,120} is not a value of type number"):
        upsert([{"sku": "a", "stock": "1" * 20_000 + "x"}])
    assert time.process_time() - began < 2


def test_a_rounded_key_that_is_given_twice_is_a_duplicate_like_any_other(repair, held):
    moment = "2026-01-02T00:00:00.0001Z"
    assert repair([{"sku": "a", "sold_at": moment}, {"sku": "b", "sold_at": moment}], "sold_at") == (1, 0, 0, 0)
    assert held("sku") == [("b",)]


@pytest.mark.parametrize(
    ("key", "values"),
    [("stock", [2**60, 2**60 + 1]), ("sold_at", ["2026-01-02T00:00:00.0001Z", "2026-01-02T00:00:00.0002Z"])],
)
def test_keys_that_the_service_cannot_distinguish_are_refused(upsert, held, key, values):
    with pytest.raises(
        AirflowFailException, match="row 2 has a key that the service cannot distinguish from the key of"
    ):
        upsert([{key: value, "shop": str(value)} for value in values], key)
    assert held("sku") == []


@pytest.mark.parametrize("key", [2**54 + 8, 2**60, 2**62 + 2**20, 2**53 + 2, 1152921504606847000, -(2**60)])
def test_keys_of_many_digits_find_their_rows(upsert, held, key):
    """The service does not find some of them by equality."""
    assert upsert([{"stock": key, "shop": "x"}], "stock") == (1, 0, 0)
    assert upsert([{"stock": key, "shop": "y"}], "stock") == (0, 1, 0)
    assert held("shop") == [("y",)]


@pytest.mark.parametrize("key", [2**53, -(2**53), 2**53 - 1])
def test_for_keys_of_fewer_digits_the_table_is_not_read(upsert, simulator, key):
    upsert([{"stock": key, "shop": "x"}], "stock")
    simulator.clear_requests()
    assert upsert([{"stock": key, "shop": "y"}], "stock") == (0, 1, 0)
    [read] = [request for request in simulator.requests if request.method == "GET" and request.path.endswith("/rows")]
    assert f"%3A{key}" in read.query


def test_for_keys_of_more_digits_the_table_is_read(upsert, simulator):
    upsert([{"stock": 2**53 + 2, "shop": "x"}], "stock")
    simulator.clear_requests()
    assert upsert([{"stock": 2**53 + 2, "shop": "y"}], "stock") == (0, 1, 0)
    [read] = [request for request in simulator.requests if request.method == "GET" and request.path.endswith("/rows")]
    assert "filter=" not in read.query


def test_a_key_too_long_for_an_address_finds_its_row(upsert, simulator):
    simulator.clear_requests()
    assert upsert([{"sku": "x" * 20_000, "stock": 1}]) == (1, 0, 0)
    assert upsert([{"sku": "x" * 20_000, "stock": 1}]) == (0, 0, 1)
    assert max(len(request.query) for request in simulator.requests) < 8000
