"""Follow the pages of a list. Nothing else in the package does."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from itertools import groupby, islice
from typing import Any

from airflow_provider_service.client._http.encoding import to_json
from airflow_provider_service.client._values import shown
from airflow_provider_service.client.errors import ServiceAnswerTooLargeError, ServiceInputError

Fetch = Callable[[dict[str, Any]], Any]

#: A filter of the server can empty a page, or several in a row, but not an endless number of them.
MAX_EMPTY_PAGES = 100
#: Far beyond any real list: 62 million items in pages of the default size.
MAX_PAGES = 250_000


class PagingError(Exception):
    """Paging does not advance, so the content of the list cannot be determined."""


def follow_cursor(
    fetch: Fetch, *, page_size: int, limit: int | None, offset: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the items of a list page by page, until the cursor is null, absent or empty."""

    def pages(size: int) -> Iterator[dict[str, Any]]:
        cursors: set[int] = set()
        advance = _Advance()
        cursor = None
        while True:
            page = fetch({"limit": size, "cursor": cursor, "offset": None if cursor else offset})
            advance.check(page["data"])
            yield from page["data"]
            cursor = page.get("nextCursor")
            if not cursor:
                return
            if hash(cursor) in cursors:
                raise PagingError("a cursor was repeated")
            cursors.add(hash(cursor))

    return _first(pages, page_size, limit)


def follow_skip(fetch: Fetch, *, page_size: int, limit: int | None) -> Iterator[dict[str, Any]]:
    def pages(size: int) -> Iterator[dict[str, Any]]:
        advance = _Advance()
        skip = 0
        while True:
            page = fetch({"skip": skip, "take": size})
            advance.check(page["data"])
            yield from page["data"]
            skip += len(page["data"])
            if not page["data"] or skip >= page.get("count", math.inf):
                return

    return _first(pages, page_size, limit)


def follow_ids(fetch: Fetch, *, page_size: int, limit: int | None, filter: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a data table by id, with one page in memory at a time; each page begins after the last id.

    A cursor holds a number of rows to pass over. With it, rows would be missed if earlier ones were deleted meanwhile.
    If a filter of the type ``"or"`` finds more than a page, its conditions are read side by side, because no condition
    can be added to all of them; a page of each is in memory.
    """

    return _first(lambda size: _rows_after(0, fetch, size, filter), page_size, limit)


def _rows_after(after: int, fetch: Fetch, size: int, filter: Any) -> Iterator[dict[str, Any]]:
    conditions = conditions_of(filter)
    is_either = is_any_of_several(filter)
    advance = _Advance()
    while True:
        if after and not is_either:
            beyond = {"columnName": "id", "condition": "gt", "value": after}
            filter = {"type": "and", "filters": [*conditions, beyond]}
        chosen = {} if filter is None else {"filter": to_json(filter)}
        try:
            page = fetch({"limit": size, "sortBy": "id:asc", **chosen})
        except ServiceAnswerTooLargeError:
            if size == 1:
                raise
            size //= 2
            continue
        advance.check(page["data"])
        yield from (row for row in page["data"] if not is_either or _row_id(row) > after)
        # The service counts the rows after it has read the page: if some are deleted in between, the cursor is missing.
        if not page["data"] or (len(page["data"]) < size and not page.get("nextCursor")):
            return
        after = max(after, _row_id(page["data"][-1]))
        if is_either:
            break
    half = len(conditions) // 2
    parts = [{**filter, "filters": part} for part in (conditions[:half], conditions[half:])]
    rows = merge(*(_rows_after(after, fetch, size, part) for part in parts), key=_row_id)
    yield from (next(same) for _, same in groupby(rows, key=_row_id))


def conditions_of(filter: Any) -> list[Any]:
    """The conditions of a filter of rows; none if it is malformed, which the service refuses."""
    conditions = filter.get("filters") if isinstance(filter, Mapping) else None
    return list(conditions) if isinstance(conditions, (list, tuple)) else []


def is_any_of_several(filter: Any) -> bool:
    return len(conditions_of(filter)) > 1 and filter.get("type") == "or"


def _row_id(row: Any) -> int:
    row_id = row.get("id") if isinstance(row, dict) else None
    if isinstance(row_id, int):
        return row_id
    raise PagingError("a row has no id")


class _Advance:
    """Ensures that each page brings something new, judging by its length and its first and last item.

    If just a page of items is inserted in a skip list meanwhile, the list fails instead of yielding items twice.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()  # hashes, because items can be long
        self._empty = self._pages = 0

    def check(self, items: list[Any]) -> None:
        self._pages += 1
        if self._pages > MAX_PAGES:
            raise PagingError(f"after {MAX_PAGES:,} pages there was still another one")
        self._empty = 0 if items else self._empty + 1
        if self._empty > MAX_EMPTY_PAGES:
            raise PagingError(f"{MAX_EMPTY_PAGES} pages in a row were empty, and each led to another one")
        if not items:
            return
        page = hash((len(items), _identity(items[0]), _identity(items[-1])))
        if page in self._seen:
            raise PagingError("a page was repeated")
        self._seen.add(page)


def _identity(item: Any) -> str:
    item_id = item.get("id") if isinstance(item, dict) else None
    return repr(item_id if isinstance(item_id, (str, int)) else item)


def _first(
    pages: Callable[[int], Iterator[dict[str, Any]]], page_size: int, limit: int | None
) -> Iterator[dict[str, Any]]:
    if limit is None:
        return pages(page_size)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= sys.maxsize:
        raise ServiceInputError(f"limit must be a whole number from 0, not {shown(limit)}; nothing was sent")
    return islice(pages(min(page_size, limit)), limit)
