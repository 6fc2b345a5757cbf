"""How ids, paths and queries are written."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
import requests_mock
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_service.client import errors
from airflow_provider_service.client._constraints import plain_id
from airflow_provider_service.client._http.encoding import encode_query, fill_path, json_body

from .clients import ROOT, Client

PLAIN = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", fullmatch=True)


@given(PLAIN | st.uuids().map(str) | st.integers(min_value=0).map(str))
def test_what_the_service_generates_can_be_an_id(text: str) -> None:
    assert fill_path("/x/{}/y", [text]) == f"/x/{text}/y"
    assert plain_id(text) == text


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("o'neil+a@example.com", "o%27neil%2Ba%40example.com"),
        ("jörg@bücher.example", "j%C3%B6rg%40b%C3%BCcher.example"),
        ("@scope/n8n-nodes-x", "%40scope%2Fn8n-nodes-x"),
        ("global:admin", "global%3Aadmin"),
    ],
)
def test_names_that_stand_in_place_of_ids_are_encoded(name: str, encoded: str) -> None:
    assert fill_path("/x/{}", [name]) == f"/x/{encoded}"


HOSTILE = [
    *("", " ", ".", "..", "../x", "..%2Fx", "a/b", "/etc", "a\\b", "%2e%2e", "a%2Fb", "a?b", "a#b", "a;b", "a b"),
    *("a\n", "\x00", "a@b\x00c", "a@bc\x7f", ".hidden", "={{ $env }}", "{{ ti }}", "<b>", "\u202e", "ä", "\ud800"),
    *("a@../b", "../a@b", "@../x", "@a/..", "@a/b/c", "a" * 301, "@a/" + "b" * 300),
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_an_id_that_could_lead_elsewhere_is_refused(hostile: str) -> None:
    for call in (plain_id, lambda text: fill_path("/x/{}", [text])):
        with pytest.raises(errors.ServiceInputError, match="cannot be used as an id") as refused:
            call(hostile)
        str(refused.value).encode()


@given(st.text(st.characters(min_codepoint=1), max_size=30))
def test_no_id_leaves_its_segment_even_if_it_is_decoded(text: str) -> None:
    try:
        path = fill_path("/x/{}/y", [text])
    except errors.ServiceInputError:
        return
    decoded = unquote(unquote(path))
    assert posixpath.normpath(decoded) == decoded
    assert decoded.startswith("/x/")
    assert not set(decoded) & set("\\?#;\n")


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
def test_any_text_can_be_a_query_value(query: dict[str, str]) -> None:
    encoded = encode_query(query)

    assert dict(parse_qsl(encoded.removeprefix("?"), keep_blank_values=True)) == query
    assert not set(encoded.removeprefix("?").replace("&", "").replace("=", "")) & set(":/?#[]@!$'()*+,; \"{}")
    assert encoded.isascii()


@given(PLAIN, st.text(st.characters(codec="utf-8"), min_size=1))
def test_what_is_encoded_reaches_the_wire_unchanged(plain: str, text: str) -> None:
    with requests_mock.Mocker() as server:
        server.get(requests_mock.ANY, json={})
        Client().request("GET", "/x/{}", plain, query={"q": text})

    raw = server.last_request.url.removeprefix(f"{ROOT}/x/")
    segment, _, query = raw.partition("?q=")
    assert (segment, unquote(query)) == (plain, text)
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


@pytest.mark.parametrize("items", [(one for one in "abc"), map(str, [1]), {"rows": [iter([1])]}])
def test_what_can_be_read_only_once_is_refused_because_a_repeated_call_would_lack_it(items: Any) -> None:
    with pytest.raises(errors.ServiceInputError, match="can be read only once; make a list of it; nothing was sent"):
        json_body(items)
    assert json_body({"rows": {1}}) == b'{"rows":[1]}'
