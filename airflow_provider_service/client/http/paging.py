"""The one place that follows pages."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from airflow_provider_service.client.errors import ServiceInputError, shown

Fetch = Callable[[dict[str, Any]], Any]


# A filter of the server can empty a page, and the next one too, but not page after page for ever.
MAX_EMPTY_PAGES = 100


class PagingError(Exception):
    """Pages that lead nowhere: there is no telling what the list holds."""


def follow_cursor(
    fetch: Fetch, *, page_size: int, limit: int | None, offset: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the items of a cursor list, page after page, holding one page at a time.

    Ends on a null, absent or empty cursor.

    :param fetch: gets one page for the paging parameters; it repeats the filters by itself.
    :param page_size: items to ask for in a page.
    :param limit: number of items in total, None for all.
    :param offset: number of items to skip, on lists that know it; a cursor holds its own.
    :raises PagingError: while iterating: a cursor or a page came again, or page after page was empty.
    """

    def pages() -> Iterator[dict[str, Any]]:
        size = page_size if limit is None else min(page_size, limit)
        cursors: set[str] = set()
        advance = _Advance()
        cursor = None
        while True:
            page = fetch({"limit": size, "cursor": cursor, "offset": None if cursor else offset})
            advance.check(page["data"])
            yield from page["data"]
            cursor = page.get("nextCursor")
            if not cursor:
                return
            if cursor in cursors:
                raise PagingError("a cursor came again")
            cursors.add(cursor)

    return _first(pages(), limit)


def follow_skip(fetch: Fetch, *, page_size: int, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the items of a skip/take list, page after page, until their count is reached.

    Parameters as for :func:`follow_cursor`.

    :raises PagingError: while iterating: a page came again.
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
    """Sees to it that each page brings something new, by its length and its outer items.

    A page also comes again when, between two requests of a skip list, somebody inserts exactly one page of items before
    it: then the list fails rather than yield them twice, and can be read again.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[int, str, str]] = set()
        self._empty = 0

    def check(self, items: list[Any]) -> None:
        """Take note of a page.

        :raises PagingError: it came before, or is one of too many empty ones.
        """
        self._empty = 0 if items else self._empty + 1
        if self._empty > MAX_EMPTY_PAGES:
            raise PagingError(f"{MAX_EMPTY_PAGES} pages in a row were empty, and each led to a further one")
        if not items:
            return
        page = (len(items), _identity(items[0]), _identity(items[-1]))
        if page in self._seen:
            raise PagingError("a page came again")
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
