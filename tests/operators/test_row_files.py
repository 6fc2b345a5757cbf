"""Rows in files: any text is read back unchanged, formulas do no harm, and permissions are kept."""

from __future__ import annotations

import csv
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service._core.rows.files import write_rows
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator

# Python reads NUL in a CSV file from 3.11 on.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="" if sys.version_info >= (3, 11) else "\0")
)
AWKWARD = st.lists(
    st.sampled_from(["\r", "\n", '"', ",", "'", "=", "+", "-", "@", "\t", " ", "\x85", "\u2028", ";", "a"])
)
CELLS = st.one_of(TEXTS, AWKWARD.map("".join))
ONE, TWO = {"a": "string"}, {"a": "string", "b": "string"}
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1", "=cmd|' /C calc'!A0")


def read_csv(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows") / "rows.csv"


@given(cells=st.lists(CELLS, min_size=1, max_size=5))
def test_any_text_comes_back_from_a_csv_file(path, cells):
    rows = [{"a": cell, "b": cell} for cell in cells]
    assert write_rows(str(path), TWO, rows, neutralize_formulas=False) == len(rows)
    assert read_csv(path) == [["a", "b"], *([cell, cell] for cell in cells)]


@given(cells=st.lists(CELLS, min_size=1, max_size=5))
def test_any_text_comes_back_but_for_an_apostrophe_before_formulas(path, cells):
    write_rows(str(path), TWO, [{"a": cell, "b": "x"} for cell in cells])
    for cell, (read, rest) in zip(cells, read_csv(path)[1:], strict=True):
        assert rest == "x"
        assert read == (f"'{cell}" if cell[:1] in set("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20") - {""} else cell)
        assert not read.startswith(("=", "+", "-", "@", "\t", "\r"))


@given(cells=st.lists(CELLS, min_size=1, max_size=5))
def test_any_text_comes_back_from_lines_of_json(path, cells):
    lines = path.with_suffix(".jsonl")
    write_rows(str(lines), ONE, [{"a": cell} for cell in cells])
    with lines.open(encoding="utf-8", newline="\n") as file:
        assert [json.loads(line) for line in file] == [{"a": cell} for cell in cells]


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_are_neutralized_unless_that_is_turned_off(execute, client, table, tmp_path, formula):
    client.data_table_rows.insert(table.id, [{"sku": formula, "stock": -1}])
    arguments = {"data_table_id": table.id, "path": str(tmp_path / "stock.csv")}
    for switch, written in (({}, f"'{formula}"), ({"neutralize_formulas": False}, formula)):
        execute(ServiceReadRowsOperator, **arguments, **switch)
        [_, row] = read_csv(tmp_path / "stock.csv")
        assert row[2:4] == [written, "-1"], "numbers stay"


def test_empty_text_is_quoted_and_null_is_not(path):
    write_rows(str(path), dict.fromkeys("abcd", "string"), [{"a": "", "b": None, "c": 1.5, "d": True}, {"a": "x"}])
    assert path.read_text() == 'a,b,c,d\n"",,1.5,true\n"x",,,\n'


def test_a_value_that_no_column_has_is_written_as_json(path):
    write_rows(str(path), TWO, [{"a": {"x": [1, None]}, "b": True}])
    assert path.read_text() == 'a,b\n"{""x"": [1, null]}",true\n'


def test_the_ending_must_be_known(tmp_path):
    with pytest.raises(ServiceInputError, match=r"^path must end in \.csv, .* or \.parquet, not '.*rows\.txt'$"):
        write_rows(str(tmp_path / "rows.txt"), ONE, [])


def test_half_a_pair_of_surrogates_becomes_its_escape(path):
    write_rows(str(path), ONE, [{"a": "x\ud800"}])
    assert read_csv(path) == [["a"], ["x\\ud800"]]
    lines = path.with_suffix(".jsonl")
    write_rows(str(lines), ONE, [{"a": "x\ud800"}])
    assert json.loads(lines.read_text()) == {"a": "x\ud800"}


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_a_file_keeps_the_permissions_of_the_one_it_replaces(execute, client, table, tmp_path, ending, mode):
    client.data_table_rows.insert(table.id, [{"sku": "a"}])
    path = tmp_path / f"stock.{ending}"
    path.write_text("earlier")
    path.chmod(mode)
    execute(ServiceReadRowsOperator, data_table_id=table.id, path=str(path))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() != "earlier"


def test_a_new_file_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_rows(str(tmp_path / "new.csv"), ONE, [])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o640


def test_a_private_file_is_private_before_it_has_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.touch(0o600)
    modes = []

    def rows():
        modes.extend(stat.S_IMODE(one.stat().st_mode) for one in tmp_path.glob(".*.part"))
        yield {"a": "secret"}

    write_rows(str(path), ONE, rows())
    assert modes == [0o600]


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "data").mkdir()
    real, link = tmp_path / "data" / "real.csv", tmp_path / "link.csv"
    real.write_text("earlier")
    real.chmod(0o600)
    link.symlink_to(real)
    write_rows(str(link), ONE, [{"a": "x"}])
    assert link.is_symlink()
    assert (real.read_text(), stat.S_IMODE(real.stat().st_mode)) == ('a\n"x"\n', 0o600)
    assert [one.name for one in (tmp_path / "data").iterdir()] == ["real.csv"]


def test_what_is_not_a_file_is_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    for name, reason in (("folder.csv", "is a directory"), ("pipe.csv", "exists and is not a file")):
        with pytest.raises(ServiceInputError, match=f"{name}' {reason}"):
            write_rows(str(tmp_path / name), ONE, [])
    with pytest.raises(ServiceInputError, match=r"loop\.csv' "):
        write_rows(str(tmp_path / "loop.csv"), ONE, [])
    with pytest.raises(ServiceInputError, match=r"cannot be used: .*embedded null"):
        write_rows("/tmp/a\0.csv", ONE, [])
