"""Pages: how they end, how many are requested, and when."""

from __future__ import annotations

import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests_mock

from airflow_provider_service.client._http.paging import MAX_PAGES, PagingError, follow_cursor, follow_skip
from airflow_provider_service.client.errors import ServiceUnexpectedResponseError

from .clients import ROOT, Client

MANY = 20
TAGS = [{"id": f"t{number}", "name": str(number)} for number in range(7)]


@pytest.fixture
def server() -> Iterator[requests_mock.Mocker]:
    with requests_mock.Mocker() as mocker:
        yield mocker


class Pages:
    """A list of the given pages, whose cursors are the places of the next ones; it records what it is asked."""

    def __init__(self, *pages: list[int], last: dict[str, Any] | None = None) -> None:
        self.pages, self.last, self.asked = pages, {"nextCursor": None} if last is None else last, []  # type: ignore[var-annotated]

    def __call__(self, paging: dict[str, Any]) -> dict[str, Any]:
        assert len(self.asked) < MANY, "no end of pages"
        self.asked.append(paging)
        place = int(paging["cursor"] or 0)
        more = {"nextCursor": str(place + 1)} if place + 1 < len(self.pages) else self.last
        return {"data": [{"n": number} for number in self.pages[place]], **more}


def numbers(items: Iterator[dict[str, Any]]) -> list[int]:
    return [item["n"] for item in items]


@pytest.mark.parametrize("last", [{"nextCursor": None}, {}, {"nextCursor": ""}], ids=str)
def test_a_list_ends_on_a_null_absent_or_empty_cursor(last: dict[str, Any]) -> None:
    pages = Pages([0, 1], [2], last=last)

    assert numbers(follow_cursor(pages, page_size=2, limit=None)) == [0, 1, 2]
    assert [asked["cursor"] for asked in pages.asked] == [None, "1"]


class Endless:
    """A cursor list that always has a further page, under a cursor of its own."""

    def __init__(self, data: Callable[[int], list[Any]], cursor: Callable[[int], str] = str) -> None:
        self.data, self.cursor, self.asked = data, cursor, 0

    def __call__(self, _paging: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        assert self.asked <= MAX_PAGES + 1, "no end of pages"
        return {"data": self.data(self.asked), "nextCursor": self.cursor(self.asked)}


STUCK: list[tuple[Endless, str, int]] = [
    (Endless(lambda number: [{"n": number}], cursor=lambda _: "same"), "a cursor was repeated", 2),
    (Endless(lambda number: [{"n": number}], cursor=lambda number: str(number % 3)), "a cursor was repeated", 4),
    (Endless(lambda _: [{"id": "a"}, {"id": "b"}]), "a page was repeated", 2),
    (Endless(lambda number: [{"id": number % 2, "n": number}]), "a page was repeated", 3),
    (Endless(lambda _: [{"versionId": "a"}]), "a page was repeated", 2),
    (Endless(lambda _: [[], 7, None]), "a page was repeated", 2),
    (Endless(lambda _: []), "100 pages in a row were empty", 101),
    (Endless(lambda number: [{"n": 0}] if number == 50 else []), "100 pages in a row were empty", 151),
    (Endless(lambda number: [{"n": number}]), "after 250,000 pages there was still another one", MAX_PAGES + 1),
]


@pytest.mark.parametrize(("stuck", "says", "asked"), STUCK, ids=lambda value: value if isinstance(value, str) else "")
def test_pages_that_lead_nowhere_are_an_error(stuck: Endless, says: str, asked: int) -> None:
    with pytest.raises(PagingError, match=says):
        deque(follow_cursor(stuck, page_size=2, limit=None), maxlen=0)

    assert stuck.asked == asked


@pytest.mark.slow
def test_a_skip_list_without_an_end_is_an_error() -> None:
    endless = Endless(lambda number: [{"n": number}])
    with pytest.raises(PagingError, match="after 250,000 pages"):
        deque(follow_skip(endless, page_size=1, limit=None), maxlen=0)


@pytest.mark.slow
def test_a_long_list_takes_little_memory() -> None:
    pages = 20_000
    long = Endless(lambda number: [{"text": f"{number} {'x' * 2000}"}], cursor=lambda number: f"{number} {'y' * 2000}")
    tracemalloc.start()
    try:
        deque(follow_cursor(long, page_size=1, limit=pages), maxlen=0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 500 * pages  # bytes; the texts of a page alone are eight times as long


def test_a_limit_that_is_reached_first_is_not_an_error() -> None:
    stuck = Endless(lambda number: [{"n": number}], cursor=lambda _: "same")

    assert numbers(follow_cursor(stuck, page_size=2, limit=2)) == [1, 2]


def test_many_empty_pages_between_others_are_not_an_error() -> None:
    pages = [[number] if number % 3 == 0 else [] for number in range(19)]

    assert numbers(follow_cursor(Pages(*pages), page_size=1, limit=None)) == [0, 3, 6, 9, 12, 15, 18]


def test_a_list_that_ignores_skip_is_an_error() -> None:
    asked = []

    def fetch(paging: dict[str, Any]) -> dict[str, Any]:
        asked.append(paging["skip"])
        return {"data": [{"id": "a"}, {"id": "b"}], "count": 5}

    with pytest.raises(PagingError, match="a page was repeated"):
        [*follow_skip(fetch, page_size=2, limit=None)]
    assert asked == [0, 2]


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ({"data": TAGS, "nextCursor": "same"}, "the list does not advance: a page was repeated"),
        ({"data": [], "nextCursor": "same"}, "the list does not advance: a cursor was repeated"),
    ],
)
def test_the_client_says_which_list_does_not_advance(
    server: requests_mock.Mocker, page: dict[str, Any], says: str
) -> None:
    server.get(f"{ROOT}/tags", json=page)
    client = Client()

    with pytest.raises(ServiceUnexpectedResponseError, match=f"GET /tags: {says}"):
        [*client.tags.list()]

    assert (server.call_count, client.pauses) == (2, [])


@pytest.mark.parametrize(
    ("row", "says"), [({"id": 1}, "a page was repeated"), ({"id": "x"}, "a row has no id")], ids=str
)
def test_rows_whose_pages_lead_nowhere_are_an_error(server: requests_mock.Mocker, row: Any, says: str) -> None:
    server.get(f"{ROOT}/data-tables/t/rows", json={"data": [row], "nextCursor": "more"})
    conditions = [{"columnName": "id", "value": number} for number in range(5)]

    with pytest.raises(ServiceUnexpectedResponseError, match=says):
        [*Client().data_table_rows.list("t", filter={"type": "or", "filters": conditions})]


@pytest.mark.parametrize("count", ["3", None, 1.5, [3]], ids=str)
def test_a_count_that_is_not_a_number_is_reported(server: requests_mock.Mocker, count: Any) -> None:
    server.get(f"{ROOT}/projects/p/folders", json={"data": [], "count": count})

    with pytest.raises(ServiceUnexpectedResponseError, match="'count' is not a whole number"):
        [*Client().folders.list("p")]


@pytest.mark.parametrize(
    ("limit", "sizes", "found"),
    [
        (None, [3, 3, 3], [0, 1, 2, 3, 4, 5, 6]),
        (0, [], []),
        (1, [1], [0]),
        (3, [3], [0, 1, 2]),
        (4, [3, 3], [0, 1, 2, 3]),
        (7, [3, 3, 3], [0, 1, 2, 3, 4, 5, 6]),
        (100, [3, 3, 3], [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_limit_counts_items_in_total(limit: int | None, sizes: list[int], found: list[int]) -> None:
    pages = Pages([0, 1, 2], [3, 4, 5], [6])

    assert numbers(follow_cursor(pages, page_size=3, limit=limit)) == found
    assert [asked["limit"] for asked in pages.asked] == sizes


def test_empty_pages_do_not_end_a_list() -> None:
    assert numbers(follow_cursor(Pages([], [1], [], [2]), page_size=5, limit=None)) == [1, 2]


def test_an_offset_is_sent_for_the_first_page_only() -> None:
    pages = Pages([0], [1])

    numbers(follow_cursor(pages, page_size=1, limit=None, offset=5))

    assert [asked["offset"] for asked in pages.asked] == [5, None]


@pytest.mark.parametrize("limit", [None, 4])
def test_pages_are_requested_when_they_are_needed(limit: int | None) -> None:
    pages = Pages([0, 1], [2, 3])

    items = follow_cursor(pages, page_size=2, limit=limit)
    assert pages.asked == []
    next(items)
    next(items)
    assert len(pages.asked) == 1
    next(items)
    assert len(pages.asked) == 2


class Counted:
    """A skip/take list of a number of items, which may lie about their count."""

    def __init__(self, total: int, **page: Any) -> None:
        self.total, self.page, self.asked = total, page, []  # type: ignore[var-annotated]

    def __call__(self, paging: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((paging["skip"], paging["take"]))
        stop = min(self.total, paging["skip"] + paging["take"])
        return {"data": [{"n": number} for number in range(paging["skip"], stop)], **self.page}


@pytest.mark.parametrize(
    ("counted", "limit", "asked"),
    [
        (Counted(5, count=5), None, [(0, 2), (2, 2), (4, 2)]),
        (Counted(4, count=4), None, [(0, 2), (2, 2)]),
        (Counted(0, count=0), None, [(0, 2)]),
        (Counted(3), None, [(0, 2), (2, 2), (3, 2)]),
        (Counted(3, count=99), None, [(0, 2), (2, 2), (3, 2)]),
        (Counted(5, count=5), 1, [(0, 1)]),
        (Counted(5, count=5), 3, [(0, 2), (2, 2)]),
        (Counted(5, count=5), 0, []),
    ],
)
def test_a_counted_list_ends_at_its_count_or_on_an_empty_page(
    counted: Counted, limit: int | None, asked: list[tuple[int, int]]
) -> None:
    expected = range(counted.total if limit is None else min(limit, counted.total))

    assert numbers(follow_skip(counted, page_size=2, limit=limit)) == [*expected]
    assert counted.asked == asked


def asked(server: requests_mock.Mocker) -> list[dict[str, str]]:
    return [dict(parse_qsl(urlsplit(request.url).query)) for request in server.request_history]


def test_a_list_of_the_client_is_lazy_and_asks_for_the_page_size_of_the_connection(
    server: requests_mock.Mocker,
) -> None:
    client = Client(page_size=3)
    server.get(
        f"{ROOT}/tags",
        [{"json": {"data": TAGS[:3], "nextCursor": "c=1"}}, {"json": {"data": TAGS[3:5], "nextCursor": None}}],
    )

    tags = client.tags.list()
    assert server.request_history == []
    assert [next(tags).id for _ in range(3)] == ["t0", "t1", "t2"]
    assert asked(server) == [{"limit": "3"}]
    assert [tag.id for tag in tags] == ["t3", "t4"]
    assert asked(server) == [{"limit": "3"}, {"limit": "3", "cursor": "c=1"}]
    assert server.last_request.url.endswith("cursor=c%3D1")


def test_a_limit_below_a_page_asks_for_no_more_than_it(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/tags", json={"data": TAGS[:2], "nextCursor": "more"})

    assert len([*Client().tags.list(limit=2)]) == 2
    assert asked(server) == [{"limit": "2"}]


@pytest.mark.parametrize("cursor", [7, ["x"], {"a": 1}, False], ids=str)
def test_a_cursor_that_is_not_text_is_reported(server: requests_mock.Mocker, cursor: Any) -> None:
    server.get(f"{ROOT}/tags", json={"data": TAGS, "nextCursor": cursor})

    with pytest.raises(ServiceUnexpectedResponseError, match=r"GET /tags: .*'nextCursor' is not text"):
        next(Client().tags.list())


def test_an_item_of_another_shape_is_named_with_its_field(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/tags", json={"data": [TAGS[0], {"id": 5, "name": "x"}], "nextCursor": None})
    tags = Client().tags.list()

    assert next(tags).name == "0"
    with pytest.raises(ServiceUnexpectedResponseError, match=r"GET /tags: .*documented shape: id: "):
        next(tags)


def test_a_full_page_of_rows_is_followed_by_another_although_it_has_no_cursor(server: requests_mock.Mocker) -> None:
    pages = [{"data": [{"id": 1}, {"id": 2}]}, {"data": [{"id": 3}]}]
    server.get(f"{ROOT}/data-tables/t/rows", [{"json": {**page, "nextCursor": None}} for page in pages])

    assert [row["id"] for row in Client(page_size=2).data_table_rows.list("t")] == [1, 2, 3]
    assert len(asked(server)) == 2


def test_executions_with_data_come_in_small_pages(server: requests_mock.Mocker) -> None:
    server.get(f"{ROOT}/executions", json={"data": [], "nextCursor": None})
    client = Client()

    [*client.executions.list()]
    [*client.executions.list(include_data=True)]
    [*client.executions.list(include_data=True, limit=2)]

    assert [page["limit"] for page in asked(server)] == ["250", "10", "2"]


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(1.5, "1.5"), (10**30, "1000+"), (10**5000, "a number with too many digits")],
    ids=["fraction", "large", "huge"],
)
def test_both_ways_refuse_a_limit_that_is_not_a_number(limit: Any, shown: str) -> None:
    for follow in (follow_cursor, follow_skip, partial(follow_cursor, offset=1)):
        with pytest.raises(ValueError, match=f"limit must be a whole number from 0, not {shown}; nothing was sent"):
            follow(Pages([0]), page_size=1, limit=limit)
