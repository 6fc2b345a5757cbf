"""Follow the pages of a list. Nothing else in the package does."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from airflow_provider_service.client._texts import shown
from airflow_provider_service.client.errors import ServiceInputError

Fetch = Callable[[dict[str, Any]], Any]


# A filter of the server can empty a page, or several in a row, but not an endless number of them.
MAX_EMPTY_PAGES = 100
# Far beyond any real list: 62 million items in pages of the default size.
MAX_PAGES = 250_000


class PagingError(Exception):
    """Paging does not advance, so the content of the list cannot be determined."""


def follow_cursor(
    fetch: Fetch, *, page_size: int, limit: int | None, offset: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the items of a cursor list page by page, with one page in memory at a time.

    Ends on a null, absent or empty cursor.

    :param fetch: gets one page for the paging parameters; it adds the filters to each request.
    :param page_size: items to request per page.
    :param limit: maximum number of items; None for all.
    :param offset: number of items to skip, on lists that support it; a cursor contains its own offset.
    :raises PagingError: while iterating: a cursor or a page was repeated, too many pages in a row were empty, or the
        pages do not end.
    """

    def pages() -> Iterator[dict[str, Any]]:
        size = page_size if limit is None else min(page_size, limit)
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

    return _first(pages(), limit)


def follow_skip(fetch: Fetch, *, page_size: int, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the items of a skip/take list page by page, until their count is reached.

    The parameters are those of :func:`follow_cursor`.

    :raises PagingError: while iterating: a page was repeated, or the pages do not end.
    """

    def pages() -> Iterator[dict[str, Any]]:
        size = page_size if limit is None else min(page_size, limit)
        advance = _Advance()
        skip = 0
        while True:
            page = fetch({"skip": skip, "take": size})
            advance.check(page["data"])
            yield from page["data"]
            skip += len(page["data"])
            if not page["data"] or skip >= page.get("count", math.inf):
                return

    return _first(pages(), limit)


class _Advance:
    """Ensures that each page brings something new, judging by its length and its first and last item.

    A page of a skip list is also repeated if exactly one page of items is inserted before it between two requests. The
    list then fails instead of yielding items twice, and can be read again.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()  # hashes, because items can be long
        self._empty = self._pages = 0

    def check(self, items: list[Any]) -> None:
        """Record a page.

        :raises PagingError: it was seen before, too many pages in a row were empty, or the pages do not end.
        """
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
    known = item.get("id") if isinstance(item, dict) else None
    return repr(known) if isinstance(known, (str, int)) else repr(item)


def _first(items: Iterator[dict[str, Any]], limit: int | None) -> Iterator[dict[str, Any]]:
    if limit is None:
        return items
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= sys.maxsize:
        raise ServiceInputError(f"limit must be a whole number from 0, not {shown(limit)}; nothing was sent")
    return islice(items, limit)
