"""Pages: their size, what a cursor is and holds, and what is clamped, refused or never ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from .expecting import unique
from .target import Target
from .workbench import Workbench, webhook

MANY = 260
CLAMPING = {
    "list_workflows": "/workflows",
    "list_tags": "/tags",
    "list_executions": "/executions",
    "list_credentials": "/credentials",
}
REFUSING = {"list_users": "/users", "list_data_tables": "/data-tables"}
TOO_MANY = "request/query/limit must be <= 250"


def each(paths: dict[str, str]) -> pytest.MarkDecorator:
    """One case for each list, about its operation."""
    cases = [pytest.param(path, marks=pytest.mark.covers(name), id=name) for name, path in paths.items()]
    return pytest.mark.parametrize("path", cases)


def forged(**position: Any) -> str:
    """A cursor made here, for a query."""
    return quote(base64.b64encode(json.dumps(position).encode()).decode(), safe="")


def position(cursor: str) -> dict[str, Any]:
    """What a cursor holds."""
    return dict(json.loads(base64.b64decode(cursor)))


def page(service: Target, path: str) -> tuple[list[dict[str, Any]], str | None]:
    """Items and cursor of a page."""
    answer = service.raw("GET", path)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"data", "nextCursor"}
    return body["data"], body["nextCursor"]


@pytest.fixture(scope="module")
def many_tags(shared_target: Target) -> Iterator[set[str]]:
    """More tags than a page holds: their ids."""
    word = unique()
    made = {shared_target.raw("POST", "/tags", json={"name": f"{word}{number}"}).json()["id"] for number in range(MANY)}
    yield made
    for tag_id in made:
        shared_target.raw("DELETE", f"/tags/{tag_id}")


@pytest.mark.covers("list_tags")
def test_the_client_reads_all_pages(service: Target, many_tags: set[str]) -> None:
    listed = [tag.id for tag in service.client.tags.list()]
    assert len(listed) == len(set(listed))
    assert many_tags <= set(listed)
    assert len(list(service.client.tags.list(limit=251))) == 251
    assert len(list(service.client.tags.list(limit=3))) == 3


@pytest.mark.covers("list_tags")
def test_a_page_has_100_items_and_the_last_one_a_null_cursor(service: Target, many_tags: set[str]) -> None:
    items, cursor = page(service, "/tags")
    assert len(items) == 100
    assert cursor is not None
    assert position(cursor) == {"limit": 100, "offset": 100}
    sizes = []
    while cursor:
        items, cursor = page(service, f"/tags?cursor={quote(cursor, safe='')}")
        sizes.append(len(items))
    assert sizes[0] == 100
    assert cursor is None


@each(CLAMPING)
def test_a_limit_above_250_is_clamped(service: Target, path: str) -> None:
    answer = service.raw("GET", f"{path}?limit=1000")
    if service.differs("limits above 250"):
        assert (answer.status_code, answer.json()) == (400, {"message": TOO_MANY})
    else:
        assert answer.status_code == 200


@each(REFUSING)
def test_a_limit_above_250_is_refused(service: Target, path: str) -> None:
    assert service.raw("GET", f"{path}?limit=250").status_code == 200
    answer = service.raw("GET", f"{path}?limit=251")
    assert (answer.status_code, answer.json()) == (400, {"message": TOO_MANY})


@pytest.mark.covers("list_tags")
def test_a_clamped_page_has_250_items(service: Target, many_tags: set[str]) -> None:
    items, cursor = page(service, "/tags?limit=250" if service.differs("limits above 250") else "/tags?limit=1000")
    assert len(items) == 250
    assert cursor is not None
    assert position(cursor) == {"limit": 250, "offset": 250}


@pytest.mark.covers("list_tags")
def test_a_limit_of_0_gives_all_and_a_cursor_that_leads_to_itself(service: Target, many_tags: set[str]) -> None:
    items, cursor = page(service, "/tags?limit=0")
    assert many_tags <= {item["id"] for item in items}
    assert cursor is not None
    assert position(cursor) == {"limit": 0, "offset": 0}
    assert page(service, f"/tags?cursor={quote(cursor, safe='')}")[1] == cursor
    assert list(service.client.tags.list(limit=0)) == []


@each({"list_users": "/users"})
def test_users_have_the_same_quirk(service: Target, path: str) -> None:
    cursor = page(service, f"{path}?limit=0")[1]
    assert cursor is not None
    assert position(cursor) == {"limit": 0, "offset": 0}


@pytest.mark.covers("list_tags")
def test_the_limit_of_a_cursor_wins(service: Target, many_tags: set[str]) -> None:
    _, cursor = page(service, "/tags?limit=5")
    assert cursor is not None
    assert len(page(service, f"/tags?limit=100&cursor={quote(cursor, safe='')}")[0]) == 5
    assert len(page(service, f"/tags?cursor={forged(limit=1000, offset=0)}")[0]) >= MANY


@each({**CLAMPING, **REFUSING})
def test_an_invalid_cursor_is_refused(service: Target, path: str) -> None:
    answer = service.raw("GET", f"{path}?cursor=garbage")
    assert (answer.status_code, answer.json()) == (400, {"message": "An invalid cursor was provided"})


@pytest.mark.covers("list_tags")
def test_cursors_of_another_kind(service: Target) -> None:
    answer = service.raw("GET", f"/tags?cursor={forged(lastId='3', limit=1)}")
    wrong = service.raw("GET", f"/tags?cursor={forged(limit=1, offset='x')}")
    if service.differs("forged cursors"):
        assert answer.status_code == 200
        assert wrong.status_code in (400, 500)
    else:
        assert (answer.status_code, answer.json()) == (400, {"message": "An invalid cursor was provided"})
        assert (wrong.status_code, wrong.json()) == (500, {"message": "Internal server error"})


@pytest.mark.covers("list_tags", "list_workflows")
@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("limit=-1", "request/query/limit Param `limit` must be a non-negative integer"),
        ("limit=abc", "request/query/limit Param `limit` must be a valid integer"),
        ("limit=1.5", None),
        ("limit=", None),
        ("cursor=", None),
    ],
)
def test_how_a_limit_is_read(service: Target, query: str, refusal: str | None) -> None:
    if service.differs("form of limits"):
        return
    for path in ("/workflows", "/tags"):
        answer = service.raw("GET", f"{path}?{query}")
        if refusal is None:
            assert answer.status_code == 200
        else:
            assert (answer.status_code, answer.json()) == (400, {"message": refusal})


@pytest.mark.covers("list_workflows")
def test_filters_are_not_part_of_a_cursor(bench: Workbench, service: Target) -> None:
    tag = service.client.tags.create(unique("t"))
    word = unique()
    tagged = {bench.create(webhook(unique()), name=f"{word} {number}").id for number in range(3)}
    others = {bench.create(webhook(unique())).id for _ in range(2)}
    for workflow_id in tagged:
        service.client.workflows.update_tags(workflow_id, [tag.id])
    first, cursor = page(service, f"/workflows?limit=1&tags={tag.name}")
    assert cursor is not None
    rest = f"/workflows?cursor={quote(cursor, safe='')}"
    second, _ = page(service, f"{rest}&tags={tag.name}")
    assert {first[0]["id"], second[0]["id"]} <= tagged
    assert first[0]["id"] != second[0]["id"]

    unfiltered = [one["id"] for one in page(service, f"/workflows?cursor={forged(limit=100, offset=0)}")[0]]
    assert tagged | others <= set(unfiltered)

    with service.client_of(page_size=1) as client:
        assert {one.id for one in client.workflows.list(tags=[tag.name])} == tagged
    service.client.tags.delete(tag.id)


@pytest.mark.covers("list_executions")
def test_executions_have_a_cursor_of_another_kind(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    third, second, first = sorted((bench.finished(bench.start(flow)).id for _ in range(3)), key=int)
    of_flow = f"/executions?workflowId={flow.id}"

    items, cursor = page(service, f"{of_flow}&limit=1")
    assert [one["id"] for one in items] == [first]
    assert cursor is not None
    assert position(cursor) == {"lastId": first, "limit": 1}
    items, cursor = page(service, f"{of_flow}&limit=100&cursor={quote(cursor, safe='')}")
    assert [one["id"] for one in items] == [second]
    assert cursor is not None
    items, cursor = page(service, f"{of_flow}&cursor={quote(cursor, safe='')}")
    assert [one["id"] for one in items] == [third]
    assert cursor is None

    assert page(service, f"{of_flow}&cursor={forged(limit=1, offset=1)}")[0][0]["id"] == first
    assert len(page(service, f"{of_flow}&cursor={forged(lastId=first, limit=1000)}")[0]) == 2
    if not service.differs("form of limits"):
        items, cursor = page(service, f"{of_flow}&limit=0")
        assert [one["id"] for one in items] == [first, second, third]
        assert cursor is None


@pytest.mark.covers("list_data_table_rows", needs=["create_data_table", "insert_data_table_rows"])
def test_rows_beyond_250(service: Target) -> None:
    client = service.client
    table = client.data_tables.create(unique("t"), [{"name": "n", "type": "number"}])
    client.data_table_rows.insert(table.id, [{"n": number} for number in range(MANY)])
    path = f"/data-tables/{table.id}/rows"

    assert [row["n"] for row in client.data_table_rows.list(table.id)] == list(range(MANY))
    answer = service.raw("GET", f"{path}?limit=251")
    assert (answer.status_code, answer.json()) == (400, {"message": TOO_MANY})
    items, cursor = page(service, f"{path}?limit=250")
    assert len(items) == 250
    assert cursor is not None
    assert position(cursor) == {"limit": 250, "offset": 250}
    assert len(page(service, f"{path}?limit=0")[0]) == MANY

    down = "sortBy=n%3Adesc"
    _, cursor = page(service, f"{path}?limit=2&{down}")
    assert cursor is not None
    rest = f"{path}?cursor={quote(cursor, safe='')}"
    assert [row["n"] for row in page(service, f"{rest}&{down}")[0]] == [MANY - 3, MANY - 4]
    assert [row["n"] for row in page(service, rest)[0]] == [2, 3]
    client.data_tables.delete(table.id)


@pytest.mark.covers("list_workflow_history")
def test_the_history_has_pages(bench: Workbench, service: Target) -> None:
    made = bench.create()
    path = f"/workflows/{made.id}/history"
    assert page(service, f"{path}?limit=1000")[1] is None
    for _ in range(2):
        nodes = [webhook(unique())]
        service.client.workflows.update(made.id, made.name, nodes, {}, {})
    versions = list(service.client.workflows.list_history(made.id))
    items, cursor = page(service, f"{path}?limit=2")
    assert [one["versionId"] for one in items] == [one.version_id for one in versions[:2]]
    assert cursor is not None
    items, cursor = page(service, f"{path}?cursor={quote(cursor, safe='')}")
    assert [one["versionId"] for one in items] == [one.version_id for one in versions[2:]]
    assert cursor is None
