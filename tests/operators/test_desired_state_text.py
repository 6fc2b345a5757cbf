"""The desired state as YAML or JSON, in an argument or a file; text that is damaged or hostile is refused."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.client._lookup import get_data_table
from airflow_provider_service.operators.desired_state import (
    ServiceEnsureDataTablesOperator,
    ServiceEnsureTagsOperator,
    ServiceEnsureVariablesOperator,
)
from tests.frames import showing

SECRET = "secret-of-this-test"
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in pairwise("abcdefghi")
)
MERGED_LAUGHS = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n" for before, name in pairwise("abcdefghi")
)


@pytest.mark.parametrize("text", ["- a\n- b # more\n", '\t["a", "b"]', "[a, b]"])
def test_yaml_and_json_as_text_or_file(execute, client, tmp_path, text):
    assert execute(ServiceEnsureTagsOperator, tags=text)["created"] == 2
    for name in ("desired.yaml", "desired.json"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8-sig")
        for address in (str(path), f"file://{path}"):
            assert execute(ServiceEnsureTagsOperator, path=address)["unchanged"] == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff", "is not UTF-8 text"),
        (b"- [", "cannot be read as YAML or JSON"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(execute, tmp_path, content, message):
    path = tmp_path / "desired.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AirflowFailException, match=f"the file '{path}' {message}"):
        execute(ServiceEnsureTagsOperator, path=str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(LAUGHS, "line 1, column [0-9]+: its aliases repeat more than 100,000 values", id="aliases"),
        pytest.param(MERGED_LAUGHS, "its aliases repeat more than 100,000 values", id="merges"),
        pytest.param("&a [*a]", "line 1, column 1: nested more than 50 levels deep", id="alias of itself"),
        pytest.param("a: 1\nb: &b {<<: *b}", "line 2, column 4: nested more than 50", id="merge of itself"),
        pytest.param("&a {? *a : 1}", "line 1, column 1: a list or a mapping cannot be a key", id="key of itself"),
        pytest.param("a: 1\n? [b]\n: 1", "line 2, column 3: a list or a mapping cannot be a key", id="list as key"),
        pytest.param("a: 1\nb: " + "[" * 60 + "]" * 60, "line 2, column 53: nested more", id="deep"),
        pytest.param('{"a":\n' + "[" * 60 + "]" * 60 + "}", "line 2, column 50: nested more", id="JSON"),
        pytest.param("\n" + "[" * 1100 + "]" * 1100, "line 2, column [0-9]+: nested more", id="very deep"),
        pytest.param('{"a":\n\t' + "[" * 1100 + "]" * 1100 + "}", "line 2, column [0-9]+: nested", id="deep JSON"),
        pytest.param("a: 1\nb: " + "9" * 5000, "line 2, column 4: this value does not fit its type", id="long number"),
        pytest.param(f"a: 1\nb: !!int {SECRET}", "line 2, column 4: this value does not fit", id="no number"),
        pytest.param(f"a: 1\nb: !!float {SECRET}", "line 2, column 4: this value does not fit", id="no float"),
        pytest.param(f"a: 1\nb: !!bool {SECRET}", "line 2, column 4: this value does not fit", id="no truth value"),
        pytest.param("a: 1\nb: !!int ''", "line 2, column 4: this value does not fit", id="nothing as a number"),
        pytest.param(f"a: 1\nb: !!timestamp {SECRET}", "line 2, column 4: this value does not fit", id="no date"),
        pytest.param("a: 1\nb: 2024-02-31", "line 2, column 4: this value does not fit", id="no such date"),
        pytest.param(f"a: 1\nb: !{SECRET} c", "line 2, column 4: the syntax is wrong", id="unknown type"),
        pytest.param("a: 1\nb: !!set {c}", "line 2, column 4: the syntax is wrong", id="set"),
        pytest.param(f"a: *{SECRET}", "line 1, column 4: the syntax is wrong", id="unknown alias"),
    ],
)
def test_hostile_text_is_refused_with_its_line_and_without_its_values(execute, tmp_path, text, message):
    path = tmp_path / "desired.yaml"
    path.write_text(text)
    with pytest.raises(AirflowFailException, match=f"the file '{path}' cannot be read as YAML or JSON: ") as caught:
        execute(ServiceEnsureVariablesOperator, path=str(path))
    assert re.search(message, str(caught.value))
    assert SECRET not in str(caught.value)
    assert showing(caught.value, SECRET) == []


def test_anchors_and_merged_keys_are_usual(execute, client):
    text = "orders:\n  <<: &base {sku: string}\n  price: number\ncopy: &copy {<<: *base, day: date}\nlast: {<<: *copy}"
    execute(ServiceEnsureDataTablesOperator, data_tables=text)
    names = {name: {one.name for one in get_data_table(client, name).columns} for name in ("orders", "copy", "last")}
    assert names == {"orders": {"sku", "price"}, "copy": {"sku", "day"}, "last": {"sku", "day"}}
