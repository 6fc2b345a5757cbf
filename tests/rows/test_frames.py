"""DataFrames and streams as rows: every kind of value, what is refused, and how much memory it takes."""

from __future__ import annotations

import sys
import tracemalloc
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service._core.rows.frames import arrow_table, pandas_frame, rows_in
from airflow_provider_service._core.rows.values import typed_row
from airflow_provider_service.client.errors import ServiceInputError

TYPES = {"text": "string", "n": "number", "b": "boolean", "d": "date"}
BERLIN = ZoneInfo("Europe/Berlin")
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            "n": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "b": st.none() | st.booleans(),
            "d": st.none()
            | st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)).map(
                lambda d: f"{d.isoformat('T', 'milliseconds')}Z"
            ),
        }
    ).map(lambda row: typed_row(row, TYPES, "row")),
    max_size=5,
)


def column(frame) -> list:
    return [row["x"] for row in rows_in(frame)]


@pytest.mark.slow
@given(ROWS)
def test_stored_rows_come_back_from_every_library(rows) -> None:
    table = arrow_table(TYPES, rows)
    for frame in (table, pandas_frame(TYPES, rows), pl.from_arrow(table), table.to_reader(), *table.to_batches()[:1]):
        assert [typed_row(row, TYPES, "row") for row in rows_in(frame)] == rows


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series([1.5, float("nan"), None]), [1.5, None, None]),
        (pd.Series([True, None], dtype="object"), [True, None]),
        (pd.array([True, None], dtype="boolean"), [True, None]),
        (pd.array([2**63 - 1, None], dtype="Int64"), [2**63 - 1, None]),
        (pd.Series([2**70, Decimal("1.50"), Decimal("NaN"), "t"], dtype="object"), [2**70, Decimal("1.50"), None, "t"]),
        (pd.Series([np.int64(3), np.bool_(True), np.float32(0.5)], dtype="object"), [3, True, 0.5]),
        (pd.Categorical(["x", "y", None]), ["x", "y", None]),
        (pd.array([1.5, None], dtype="double[pyarrow]"), [1.5, None]),
        (pd.array(["", None], dtype="string"), ["", None]),
        (
            pd.to_datetime(["2026-01-01 00:00:00.123456789", None]).tz_localize("Europe/Berlin"),
            [datetime(2026, 1, 1, 0, 0, 0, 123456, BERLIN), None],
        ),
        (pd.to_datetime(["2026-01-01"]), [datetime(2026, 1, 1)]),
    ],
)
def test_values_of_pandas(values, expected) -> None:
    found = column(pd.DataFrame({"x": values}))
    assert found == expected
    assert [type(one) for one in found] == [type(one) for one in expected]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pl.Series([1, None, 2**63 - 1]), [1, None, 2**63 - 1]),
        (pl.Series([2**64 - 1], dtype=pl.UInt64), [2**64 - 1]),
        (pl.Series(["a", None], dtype=pl.Categorical), ["a", None]),
        (pl.Series(["a", None], dtype=pl.Enum(["a"])), ["a", None]),
        (pl.Series(["1.5", None]).cast(pl.Decimal(10, 2)), [Decimal("1.50"), None]),
        (pl.Series([date(2026, 1, 2), None]), [date(2026, 1, 2), None]),
        (
            pl.Series([datetime(2026, 1, 1, 0, 0, 0, 123456), None]).dt.replace_time_zone("Europe/Berlin"),
            [datetime(2026, 1, 1, 0, 0, 0, 123456, BERLIN), None],
        ),
        (pl.Series([None, None]), [None, None]),
        (pl.Series([True, False, None]), [True, False, None]),
    ],
)
def test_values_of_polars(values, expected) -> None:
    assert column(pl.DataFrame({"x": values})) == expected


def test_nan_counts_as_missing_in_pandas_only() -> None:
    assert column(pd.DataFrame({"x": [float("nan")]})) == [None]
    [row] = rows_in(pl.DataFrame({"n": [float("nan")]}))
    with pytest.raises(ServiceInputError, match="row 1, column 'n': nan is not a value of type number"):
        typed_row(row, TYPES, "row 1")


@pytest.mark.parametrize("value", [time(1), timedelta(1), b"bytes", [1], {"a": 1}, pd.Period("2026-01", "M"), 1j])
def test_values_that_no_column_holds_are_refused_by_their_column(value) -> None:
    [row] = rows_in(pd.DataFrame({"text": pd.Series([value], dtype="object")}))
    with pytest.raises(ServiceInputError, match="row 1, column 'text': "):
        typed_row(row, TYPES, "row 1")


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_date_of_pandas_that_python_cannot_have_is_refused_by_its_column(zone) -> None:
    days = pd.Series([0, 253402300800], dtype="datetime64[s]").dt.tz_localize(zone)
    with pytest.raises(ServiceInputError, match=r"rows: column 'd' has a value that cannot be read: year 10000 is out"):
        list(rows_in(pd.DataFrame({"d": days})))


@pytest.mark.parametrize("name", list(TYPES))
def test_a_missing_date_of_pandas_in_plain_rows_is_no_value(name) -> None:
    [row] = rows_in([{name: pd.NaT}])
    with pytest.raises(ServiceInputError, match=f"row 1, column '{name}': NaT is not a value of type {TYPES[name]}"):
        typed_row(row, TYPES, "row 1")


def test_a_month_of_arrow_is_not_taken_for_its_number() -> None:
    table = pa.Table.from_pandas(pd.DataFrame({"x": pd.period_range("2026-01", periods=2, freq="M")}))
    with pytest.raises(ServiceInputError, match="column 'x' has the type"):
        list(rows_in(table))


def test_an_index_with_a_name_is_a_column_and_one_without_is_left_out() -> None:
    frame = pd.DataFrame({"sku": ["a", "b", "c"], "stock": [1, 2, 3]})
    assert list(rows_in(frame[frame["stock"] > 1])) == [{"sku": "b", "stock": 2}, {"sku": "c", "stock": 3}]
    assert list(rows_in(frame.set_index("sku"))) == list(rows_in(frame))


class OnlyInterchange:
    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __dataframe__(self, **options):
        return self._frame.__dataframe__(**options)


@pytest.mark.filterwarnings("ignore:The Dataframe Interchange Protocol is deprecated")
def test_the_interchange_protocol() -> None:
    frame = OnlyInterchange(pd.DataFrame({"x": [1.5, 2.0], "y": ["a", "b"]}))
    assert list(rows_in(frame)) == [{"x": 1.5, "y": "a"}, {"x": 2.0, "y": "b"}]


def test_a_stream_may_give_rows_and_frames() -> None:
    frames = (frame for frame in (pd.DataFrame({"x": [1]}), {"x": 2}, pl.DataFrame({"x": [3]})))
    assert column(frames) == [1, 2, 3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "rows must be a DataFrame, or mappings of columns to values in a list or a generator, not str"),
        ({"x": 1}, "rows must be .* not dict"),
        (None, "rows must be .* not NoneType"),
        (pl.DataFrame({"x": [1]}).lazy(), r"rows must be .* not LazyFrame: collect\(\) it first"),
        (pl.Series([1]), "rows: the Series cannot be read as rows"),
        (pd.DataFrame([[1]]), "rows: the names of columns must be text, not 0"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "rows has several columns named 'x'"),
        (pd.DataFrame({"x": [1]}, index=pd.Index([1], name="x")), "rows has several columns named 'x'"),
        (pa.table([[1], [2]], names=["x", "x"]), "rows has several columns named 'x'"),
        (pa.table({"x": pa.array([2**62], pa.timestamp("s"))}), "rows: column 'x' has a value that cannot be read"),
    ],
)
def test_what_is_refused(given, message) -> None:
    with pytest.raises(ServiceInputError, match=message):
        list(rows_in(given))


@pytest.mark.slow
def test_a_stream_of_any_length_takes_the_same_memory() -> None:
    batch = pa.record_batch({"x": pa.array(range(5_000)), "y": pa.array(["some text"] * 5_000)})

    def peak(batches: int) -> int:
        stream = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(batches)))
        tracemalloc.start()
        assert sum(1 for _ in rows_in(stream)) == 5_000 * batches
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    assert peak(20) < 1.5 * peak(2)


def test_dates_of_stored_rows_are_moments_in_utc() -> None:
    rows = [{"id": 7, "d": "2026-01-02T03:04:05.678Z", "n": 2, "b": None}]
    types = {"id": "id", "d": "date", "n": "number", "b": "boolean"}
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    assert arrow_table(types, rows).to_pylist() == [{"id": 7, "d": moment, "n": 2.0, "b": None}]
    frame = pandas_frame(types, rows)
    assert [str(kind) for kind in frame.dtypes] == ["int64", "datetime64[ms, UTC]", "float64", "boolean"]
    assert frame["d"][0] == moment


@pytest.mark.parametrize(
    ("missing", "make", "message"),
    [
        ("pyarrow", lambda: rows_in(pl.DataFrame({"x": [1]})), r"a DataFrame as rows needs pyarrow.*\[arrow\]'$"),
        ("pyarrow", lambda: [arrow_table(TYPES, [])], r"an Arrow table needs pyarrow: .*\[arrow\]'$"),
        ("pyarrow", lambda: [pandas_frame(TYPES, [])], r"a DataFrame of pandas needs pyarrow: .*\[pandas\]'$"),
        ("pandas", lambda: [pandas_frame(TYPES, [])], r"a DataFrame of pandas needs pandas: .*\[pandas\]'$"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, missing, make, message) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ServiceInputError, match=message):
        list(make())


def test_pandas_needs_no_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert column(pd.DataFrame({"x": [1, 2]})) == [1, 2]
