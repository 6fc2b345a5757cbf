"""The strict family takes query values only when nothing in them is raw; the client sends them so."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from .expecting import unique
from .target import Target

# Square brackets are reserved too, but HTTP libraries encode them by themselves.
RESERVED = ":/@!$'()*+,;"
ALL = "a []&#%ü?=" + RESERVED


def not_encoded(name: str) -> str:
    return f"Parameter '{name}' must be url encoded. Its value may not contain reserved characters."


@pytest.fixture
def rows(service: Target) -> Iterator[str]:
    """The path of the rows of a table with two rows."""
    client = service.client
    table = client.data_tables.create(unique("t"), [{"name": "text", "type": "string"}])
    client.data_table_rows.insert(table.id, [{"text": ALL}, {"text": "other"}])
    yield f"/data-tables/{table.id}/rows"
    client.data_tables.delete(table.id)


@pytest.mark.covers("list_data_table_rows")
@pytest.mark.parametrize("character", RESERVED)
def test_a_raw_reserved_character_is_refused(service: Target, rows: str, character: str) -> None:
    answer = service.raw("GET", f"{rows}?search=a{character}b")
    assert (answer.status_code, answer.json()) == (400, {"message": not_encoded("search")})
    assert service.raw("GET", f"{rows}?search=a{quote(character, safe='')}b").status_code == 200


@pytest.mark.covers("list_data_table_rows")
def test_reserved_characters_that_the_server_overlooks(service: Target, rows: str) -> None:
    for value in ("a=b", "a=:", "a?b"):
        assert service.raw("GET", f"{rows}?search={value}").status_code == 200
    for value in ("a??b", ":=a", "a?b:"):
        assert service.raw("GET", f"{rows}?search={value}").status_code == 400


@pytest.mark.covers("list_data_table_rows", "delete_data_table_rows")
def test_each_parameter_must_be_encoded(service: Target, rows: str) -> None:
    for method, path, name, value in (
        ("GET", rows, "sortBy", "text:asc"),
        ("GET", rows, "filter", '{"filters":[]}'),
        ("DELETE", f"{rows}/delete", "filter", '{"filters":[]}'),
    ):
        answer = service.raw(method, f"{path}?{name}={value}")
        assert (answer.status_code, answer.json()) == (400, {"message": not_encoded(name)})


@pytest.mark.covers("list_data_tables", "get_insights_summary")
def test_other_resources_of_the_family(service: Target) -> None:
    answer = service.raw("GET", "/data-tables?sortBy=name:asc")
    assert (answer.status_code, answer.json()) == (400, {"message": not_encoded("sortBy")})
    assert service.raw("GET", "/data-tables?sortBy=name%3Aasc").status_code == 200
    answer = service.raw("GET", "/insights/summary?projectId=a:b")
    if service.differs("family of insights"):
        assert (answer.status_code, answer.json()) == (400, {"message": not_encoded("projectId")})
    else:
        assert answer.status_code == 200


@pytest.mark.covers("list_data_table_rows")
def test_the_client_encodes_everything(service: Target, rows: str) -> None:
    table_id = rows.split("/")[2]
    condition = {"columnName": "text", "condition": "eq", "value": ALL}
    found = list(service.client.data_table_rows.list(table_id, filter={"type": "and", "filters": [condition]}))
    assert [row["text"] for row in found] == [ALL]
    assert [row["text"] for row in service.client.data_table_rows.list(table_id, search="(")] == [ALL]
    down = service.client.data_table_rows.list(table_id, sort_by="text:desc")
    assert [row["text"] for row in down] == ["other", ALL]


@pytest.mark.covers("list_executions", needs=["list_executions?startedAfter"])
def test_the_lenient_family_takes_either_form(service: Target) -> None:
    for moment in ("2026-01-01T00:00:00Z", "2026-01-01T00%3A00%3A00Z"):
        assert service.raw("GET", f"/executions?startedAfter={moment}").status_code == 200


@pytest.mark.covers("list_data_table_rows", "get_user")
def test_booleans_are_lower_case_words(service: Target) -> None:
    for text in ("1", "yes", "True", "TRUE"):
        assert service.raw("GET", f"/users?includeRole={text}").status_code == 400
        assert service.raw("GET", f"/workflows?active={text}").status_code == 400
    assert service.raw("GET", "/users?includeRole=true").status_code == 200
