"""Rows in files: every value is read back as it was written, in each format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service._core.rows.files import CsvFormat, format_of, read_rows, write_rows
from airflow_provider_service._core.rows.values import typed_row, types_of_stored_rows
from airflow_provider_service.client.errors import ServiceInputError
from tests.s3 import Bucket

TYPES = {"text": "string", "n": "number", "b": "boolean", "d": "date"}
ENDINGS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
AWKWARD = st.lists(st.sampled_from(["\r", "\n", '"', ",", "=", "\0", "\x85", "\u2028", "\ufeff", "a"])).map("".join)
NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
DATES = st.datetimes(datetime(100, 1, 1), datetime(9999, 12, 31)).map(
    lambda d: f"{d.isoformat(timespec='milliseconds')}Z"
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | TEXTS | AWKWARD,
            "n": st.none() | NUMBERS,
            "b": st.none() | st.booleans(),
            "d": st.none() | DATES,
        }
    ).map(lambda row: typed_row(row, TYPES, "row")),
    max_size=5,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@given(rows=ROWS)
def test_rows_of_all_types_come_back(folder: Path, ending: str, rows) -> None:
    path = folder / f"rows{ending}"
    assert write_rows(path, TYPES, rows, neutralize_formulas=False) == len(rows)
    assert [typed_row(row, TYPES, "row") for row in read_rows(path)] == rows


@given(cells=st.lists(st.one_of(st.none(), TEXTS, AWKWARD), max_size=5))
def test_a_single_column_of_csv_keeps_null_and_empty_text_apart(cells) -> None:
    file = io.BytesIO()
    one = CsvFormat(neutralize_formulas=False)
    one.write(file, {"a": "string"}, [{"a": cell} for cell in cells])
    assert [row["a"] for row in one.read(io.BytesIO(file.getvalue()))] == cells


@given(
    rows=st.lists(st.tuples(AWKWARD, AWKWARD, TEXTS), min_size=1, max_size=4), style=st.sampled_from(["excel", "unix"])
)
@pytest.mark.skipif(sys.version_info < (3, 11), reason="its csv module writes no NUL")
def test_what_the_csv_module_writes_is_read(rows, style) -> None:
    # It leaves some line breaks unquoted, which nobody can read.
    rows = [[cell.replace("\r", "") for cell in row] for row in rows]
    text = io.StringIO(newline="")
    csv.writer(text, style).writerows([["a", "b", "c"], *rows])
    read = CsvFormat().read(io.BytesIO(text.getvalue().encode()))
    assert [[cell or "" for cell in row.values()] for row in read] == rows


def test_a_cell_may_cross_the_chunks_in_which_a_file_is_read() -> None:
    for size in range(256 * 1024 - 8, 256 * 1024 + 1):
        rows = [{"a": "x" * size, "b": '"'}, {"a": '"\r\n', "b": None}]
        file = io.BytesIO()
        CsvFormat().write(file, {"a": "string", "b": "string"}, rows)
        assert list(CsvFormat(neutralize_formulas=False).read(io.BytesIO(file.getvalue()))) == rows
    plain = f'a,b\n{"x" * 300_000},2\r\n,\r\n\r\n3,""'
    assert [list(row.values()) for row in CsvFormat().read(io.BytesIO(plain.encode()))] == [
        ["x" * 300_000, "2"],
        [None, None],
        ["3", ""],
    ]


@pytest.mark.parametrize("size", [1, 256 * 1024 - 4], ids=["within a chunk", "across two chunks"])
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_a_line_break_of_two_characters_is_one_row_of_a_single_column(line_break: str, size: int) -> None:
    # An empty line would be a row with null.
    cells = ["x" * size, "", "y"]
    text = "".join(f"{line}{line_break}" for line in ("a", cells[0], '""', cells[2]))
    read = list(CsvFormat().read(io.BytesIO(text.encode())))
    assert [row["a"] for row in read] == cells


def test_a_byte_order_mark_is_skipped() -> None:
    assert list(CsvFormat().read(io.BytesIO("\ufeffä,b\n1,\ufeff\n".encode()))) == [{"ä": "1", "b": "\ufeff"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"a,b\n1\n", "row 1 has 1 cells, and the header has 2"),
        ("x.csv", b"a,b\n1,2\n\n1,2,3\n", "row 2 has 3 cells, and the header has 2"),
        ("x.csv", b"a,a\n", "the header must name each column once"),
        ("x.csv", b"a,\n", "the header must name each column once"),
        ("x.csv", b'a\n"\n\n1', "a quote that opens in line 2 is not closed"),
        ("x.csv", b'a\n"x\n\n"y,2', "line 4, cell 1: after a closing quote comes 'y'"),
        ("x.csv", b"a\n\xff\n", "the file is not text in UTF-8"),
        ("x.jsonl", b'{"a": 1}\n\n{"a"\n', "line 3 is not JSON"),
        ("x.jsonl", b"[1]\n", "line 1 is not a JSON object"),
        ("x.jsonl", b"[" * 100_000, "line 1 is not JSON"),
        ("x.parquet", b"PAR1 and nothing else", "the file is not Parquet"),
    ],
)
def test_what_does_not_have_the_format_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ServiceInputError, match=f"^'.*{name}': {message}"):
        list(read_rows(tmp_path / name))


@pytest.mark.parametrize("name", ["x.txt", "x", "x.parquet.gz", "x.gz", "x.csv.zip"])
def test_other_suffixes_are_refused(name: str) -> None:
    with pytest.raises(ServiceInputError, match=r"^path must end in \.csv, .* or \.parquet, not "):
        format_of("path", name)


def test_parquet_has_the_types_of_the_table(folder: Path) -> None:
    moment = "2026-01-02T03:04:05.678Z"
    row = {"id": 7, "text": "x\ud800", "n": 2**60, "b": True, "d": moment, "createdAt": moment, "updatedAt": None}
    write_rows(folder / "types.parquet", types_of_stored_rows(TYPES), [row])
    held = pq.read_table(folder / "types.parquet")
    assert dict(zip(held.schema.names, map(str, held.schema.types), strict=True)) == {
        "id": "int64",
        "text": "string",
        "n": "double",
        "b": "bool",
        "d": "timestamp[ms, tz=UTC]",
        "createdAt": "timestamp[ms, tz=UTC]",
        "updatedAt": "timestamp[ms, tz=UTC]",
    }
    [found] = held.to_pylist()
    assert (found["id"], found["text"], found["n"]) == (7, "x\\ud800", float(2**60))
    assert pq.ParquetFile(folder / "types.parquet").num_row_groups == 1
    assert found["createdAt"] == datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)


def test_parquet_of_others_is_read_as_values_of_python(folder: Path) -> None:
    path = folder / "others.parquet"
    values = {
        "decimal": pa.array([Decimal("1.10")], pa.decimal128(10, 2)),
        "nanoseconds": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "Europe/Berlin")),
        "day": pa.array([1], pa.date32()),
        "word": pa.array(["x"]).dictionary_encode(),
        "big": pa.array([2**63], pa.uint64()),
    }
    pq.write_table(pa.table(values), path)
    [row] = read_rows(path)
    assert row["nanoseconds"].astimezone(UTC) == datetime(2023, 11, 14, 22, 13, 20, 123_456, UTC)
    assert row["nanoseconds"].utcoffset() == timedelta(hours=1)
    assert (row["decimal"], str(row["day"]), row["word"], row["big"]) == (Decimal("1.10"), "1970-01-02", "x", 2**63)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_memory_does_not_grow_with_the_number_of_rows(folder: Path, ending: str) -> None:
    path = folder / f"many{ending}"
    few, many, length = (25_000, 50_000, 10) if ending == ".parquet" else (3_000, 8_000, 100)  # with full buffers
    row = {"b": True, "d": "2026-01-02T03:04:05.678Z"}
    peaks: list[int] = []

    def counted(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        tracemalloc.reset_peak()
        for count, one in enumerate(rows):
            if count == few:
                peaks.append(tracemalloc.get_traced_memory()[1])
            yield one
        peaks.append(tracemalloc.get_traced_memory()[1])

    write_rows(path, TYPES, [row])  # imports
    tracemalloc.start()
    try:
        write_rows(path, TYPES, counted({"text": f"{n}" * length, "n": n, **row} for n in range(many)))
        assert sum(1 for _ in counted(read_rows(path))) == many
    finally:
        tracemalloc.stop()
    written_few, written, read_few, read = peaks
    assert written < 1.2 * written_few
    assert read < 1.2 * read_few


def test_files_of_object_storage(bucket: Bucket) -> None:
    rows = [{"text": "ä\n", "n": 1, "b": None, "d": None}]
    for ending in ENDINGS:
        write_rows(bucket.address(f"rows{ending}"), TYPES, rows)
        for source in (bucket.address(f"rows{ending}"), bucket.path(f"rows{ending}")):
            assert [typed_row(row, TYPES, "row") for row in read_rows(source)] == rows
    assert json.loads(bucket.read("rows.jsonl")) == rows[0]


def test_a_tiny_parquet_file_of_long_texts_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "tiny.parquet"
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), pa.array(["x" * 20_000]))
    pq.write_table(pa.table({"text": texts}), path, compression="zstd", store_schema=False)
    tracemalloc.start()
    assert sum(len(row["text"]) for row in read_rows(path)) == 10_000 * 20_000
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (path.stat().st_size < 1_000, highest < 60 * 1024**2) == (True, True)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ServiceInputError, match=r"pip install 'airflow-provider-service\[parquet\]'$"):
        write_rows(tmp_path / "x.parquet", TYPES, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "begin", "more", "message"),
    [
        (".csv", b"sku\na\n", b"x", "the row in line 3 has more than 67,108,864 characters"),
        (".csv", b"", b"x", "the row in line 1 has more than 67,108,864 characters"),
        (".csv", b'sku\n"', b"\nx", "the row in line 2 has more than 67,108,864 characters"),
        (".csv", b"sku\n", b",", "the row in line 2 has more than 100,000 cells"),
        (".jsonl", b'{"sku": "a"}\n{"sku": "', b"x", "line 2 has more than 67,108,864 characters"),
    ],
)
def test_a_row_without_end_is_not_held_in_memory(tmp_path, ending, begin, more, message):
    path = tmp_path / f"in{ending}.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(200):
            file.write(more * (1024**2 // len(more)))
    tracemalloc.start()
    try:
        with pytest.raises(ServiceInputError, match=message):
            list(read_rows(path))
        assert tracemalloc.get_traced_memory()[1] < 220 * 1024**2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("line", ['{"a": 1, "b": 2, "a": 3}', '{"a": 1, "a": 1}', '{"c": {"a": 1, "a": 2}}'])
def test_a_key_that_is_there_twice_is_refused(tmp_path, line):
    path = tmp_path / "in.jsonl"
    path.write_text('{"a": 1}\n' + line)
    with pytest.raises(
        ServiceInputError, match=r"'.*in\.jsonl': line 2: the object has several columns named 'a'; nothing was"
    ):
        list(read_rows(path))


def test_parquet_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"]), path)
    with pytest.raises(ServiceInputError, match="the file has several columns named 'a'; nothing was written"):
        list(read_rows(path))


def test_a_month_in_parquet_is_not_taken_for_its_number(tmp_path):
    path = tmp_path / "in.parquet"
    months = pa.Table.from_pandas(pd.DataFrame({"month": pd.period_range("2026-01", periods=1, freq="M")}))
    unknown = pa.schema([pa.field("month", pa.int64(), metadata={"ARROW:extension:name": "calendar.month"})])
    for table, kind in ((months, "pandas.period"), (pa.table({"month": [672]}, schema=unknown), "calendar.month")):
        pq.write_table(table, path)
        with pytest.raises(ServiceInputError, match=f"the file: column 'month' has the type {kind}.*; nothing was"):
            list(read_rows(path))


def test_the_types_that_arrow_adds_are_read_as_their_values(tmp_path):
    path = tmp_path / "in.parquet"
    columns = {
        "j": pa.array(['{"a": 1}'], pa.json_()),
        "b": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], "int8")),
    }
    pq.write_table(pa.table(columns), path)
    assert list(read_rows(path)) == [{"j": '{"a": 1}', "b": True}]


@pytest.mark.parametrize("values", [pa.array([1, 10**7], pa.date32()), pa.array([1, 10**12], pa.timestamp("s"))])
def test_a_date_that_python_cannot_have_is_refused_by_its_column(tmp_path, values):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"day": values}), path)
    with pytest.raises(ServiceInputError, match=r"column 'day' has a value that cannot be read: .*; nothing was"):
        list(read_rows(path))


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_dates_as_spark_writes_them_keep_their_century(tmp_path, unit):
    path, years = tmp_path / "in.parquet", (1678, 1969, 2026) + (() if unit == "ns" else (1600, 2263, 9999))
    days = [datetime(year, 12, 31, 23, 59, 59, 999_999) for year in years]
    table = pa.table({"day": pa.array(days, pa.timestamp(unit))})
    for store_schema in (True, False):
        pq.write_table(table, path, use_deprecated_int96_timestamps=True, store_schema=store_schema)
        assert [row["day"] for row in read_rows(path)] == days


def test_damage_inside_a_parquet_file_is_found(tmp_path):
    path = tmp_path / "in.parquet"
    rows = [{**dict.fromkeys(types_of_stored_rows(TYPES)), "text": f"{number:0100}"} for number in range(2_000)]
    write_rows(path, types_of_stored_rows(TYPES), rows)
    whole = path.read_bytes()
    assert len(list(read_rows(path))) == 2_000
    for place in range(100, len(whole) - 3_000, len(whole) // 20):
        path.write_bytes(whole[:place] + bytes(one ^ 0x55 for one in whole[place : place + 8]) + whole[place + 8 :])
        with pytest.raises(ServiceInputError, match="the file is not Parquet, or is damaged"):
            list(read_rows(path))
