"""How ids, paths and queries are written."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
import requests_mock
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service.client import errors
from airflow_provider_service.client.http.encoding import encode_query, fill_path

from .clients import ROOT, Client


@given(st.text().filter(lambda text: text.strip() not in ("", ".", "..")))
def test_any_text_can_be_an_id(text: str) -> None:
    path = fill_path("/x/{}/y", [text])

    segment = path.removeprefix("/x/").removesuffix("/y")
    assert unquote(segment) == text
    assert not set(segment) & set(":/?#[]@!$&'()*+,;= \\\"<>^`{|}")
    assert segment.isascii()


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
def test_any_text_can_be_a_query_value(query: dict[str, str]) -> None:
    encoded = encode_query(query)

    assert dict(parse_qsl(encoded.removeprefix("?"), keep_blank_values=True)) == query
    assert not set(encoded.removeprefix("?").replace("&", "").replace("=", "")) & set(":/?#[]@!$'()*+,; \"{}")
    assert encoded.isascii()


@given(st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text.strip() not in ("", ".", "..")))
def test_what_is_encoded_reaches_the_wire_unchanged(text: str) -> None:
    with requests_mock.Mocker() as server:
        server.get(requests_mock.ANY, json={})
        Client().request("GET", "/x/{}", text, query={"q": text})

    raw = server.last_request.url.removeprefix(f"{ROOT}/x/")
    segment, _, query = raw.partition("?q=")
    assert (unquote(segment), unquote(query)) == (text, text)
    assert "+" not in raw


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        (5, "/tags", "5 is not an HTTP method; nothing was sent"),
        (None, "/tags", "None is not an HTTP method; nothing was sent"),
        ("GET", 5, "path must be text such as '/workflows', not 5; nothing was sent"),
        ("GET", ["/tags"], "path must be text such as '/workflows', not .*; nothing was sent"),
    ],
)
def test_a_method_or_a_path_of_another_type_is_refused(method: Any, path: Any, message: str) -> None:
    with pytest.raises(errors.ServiceInputError, match=f"^{message}$"):
        Client().request(method, path)


def test_query_values_of_other_types() -> None:
    assert encode_query({"a": True, "b": False, "c": 0, "d": None, "e": "", "f": 1.5}) == (
        "?a=true&b=false&c=0&e=&f=1.5"
    )
    assert encode_query({"a": None}) == encode_query({}) == encode_query(None) == ""
