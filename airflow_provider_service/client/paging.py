"""The one place that follows pages."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from airflow_provider_service.client.errors import ServiceInputError, shown

Fetch = Callable[[dict[str, Any]], Any]


def follow_cursor(
    fetch: Fetch, *, page_size: int, limit: int | None, offset: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the items of a cursor list, page after page, holding one page at a time.

    Ends on a null, absent or repeated cursor.

    :param fetch: gets one page for the paging parameters; it repeats the filters by itself.
    :param page_size: items to ask for in a page.
    :param limit: number of items in total, None for all.
    :param offset: number of items to skip, on lists that know it; a cursor holds its own.
    """

    def pages() -> Iterator[dict[str, Any]]:
        size = page_size if limit is None else min(page_size, limit)
        seen: set[str] = set()
        cursor = None
        while True:
            page = fetch({"limit": size, "cursor": cursor, "offset": None if cursor else offset})
            yield from page["data"]
            cursor = page.get("nextCursor")
            if not cursor or cursor in seen:
                return
            seen.add(cursor)

    return _first(pages(), limit)


def follow_skip(fetch: Fetch, *, page_size: int, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the items of a skip/take list, page after page, until their count is reached.

    Parameters as for :func:`follow_cursor`.
    """

    def pages() -> Iterator[dict[str, Any]]:
        size = page_size if limit is None else min(page_size, limit)
        skip = 0
        while True:
            page = fetch({"skip": skip, "take": size})
            yield from page["data"]
            skip += len(page["data"])
            if not page["data"] or skip >= page.get("count", math.inf):
                return

    return _first(pages(), limit)


def _first(items: Iterator[dict[str, Any]], limit: int | None) -> Iterator[dict[str, Any]]:
    if limit is None:
        return items
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= sys.maxsize:
        raise ServiceInputError(f"limit must be a whole number from 0, not {shown(limit)}; nothing was sent")
    return islice(items, limit)
