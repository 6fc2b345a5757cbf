"""Pages: offset cursors, the executions' keyset cursors, and skip/take; with the service's quirks."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_provider_service.simulator._validation import ApiError

if TYPE_CHECKING:
    from airflow_provider_service.simulator._gateway import Call

Item = TypeVar("Item")

DEFAULT_LIMIT, MAX_LIMIT = 100, 250
DEFAULT_TAKE = 10


def encode_cursor(**position: Any) -> str:
    """Write a cursor: base64 of compact JSON."""
    return base64.b64encode(json.dumps(position, separators=(",", ":")).encode()).decode()


def decode_cursor(text: str) -> dict[str, Any]:
    """Read a cursor.

    :raises ApiError: 400 when it is not base64 of a JSON object
    """
    try:
        position = json.loads(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ApiError(400, "An invalid cursor was provided") from error
    if not isinstance(position, dict):
        raise ApiError(400, "An invalid cursor was provided")
    return position


def page(
    call: Call,
    items: Sequence[Item],
    *,
    over: Literal["clamp", "refuse"] = "clamp",
    shape: Callable[[Item], Any] | None = None,
) -> dict[str, Any]:
    """Answer one page of an offset list: ``{"data": [...], "nextCursor": str | None}``.

    A limit of 0 returns everything and a cursor that points to itself; a cursor's own limit is honoured, even above
    the maximum. The service does both.

    :param items: the whole filtered and sorted list
    :param over: what happens to a query's limit above the maximum
    :param shape: turns each item of this page into JSON-able data
    :raises ApiError: 400 for a limit or cursor that is refused, 500 for a cursor with an offset that is not a number
    """
    offset, limit = _offset_and_limit(call.query, over)
    chosen = items[offset : offset + limit] if limit else items[offset:]
    more = len(items) > offset + limit
    return {
        "data": [shape(item) for item in chosen] if shape else list(chosen),
        "nextCursor": encode_cursor(limit=limit, offset=offset + limit) if more else None,
    }


def _offset_and_limit(query: Mapping[str, Any], over: str) -> tuple[int, int]:
    limit: int = query.get("limit", DEFAULT_LIMIT)
    if limit > MAX_LIMIT:
        if over == "refuse":
            raise ApiError(400, f"request/query/limit must be <= {MAX_LIMIT}")
        limit = MAX_LIMIT
    if not query.get("cursor"):
        return query.get("offset", 0), limit
    position = decode_cursor(query["cursor"])
    if "offset" not in position or "limit" not in position:
        raise ApiError(400, "An invalid cursor was provided")
    offset, limit = position["offset"], position["limit"]
    if not all(isinstance(number, int) and number >= 0 for number in (offset, limit)):
        raise ApiError(500, "Internal server error")
    return offset, limit


def keyset_page(
    call: Call,
    select: Callable[[int | None], Iterable[Item]],
    *,
    id_of: Callable[[Item], int],
    shape: Callable[[Item], Any],
) -> dict[str, Any]:
    """Answer one page of a newest-first list whose cursor is the last id seen.

    A cursor of another kind is silently ignored, a cursor's limit is clamped, and a limit of 0 returns everything.

    :param select: yields matching items with ids below its argument (None: all), newest first
    """
    limit: int = min(call.query.get("limit", DEFAULT_LIMIT), MAX_LIMIT)
    last_id: int | None = None
    if call.query.get("cursor"):
        position = decode_cursor(call.query["cursor"])
        if str(position.get("lastId", "")).isdigit():
            last_id = int(position["lastId"])
            if isinstance(position.get("limit"), int):
                limit = min(max(position["limit"], 1), MAX_LIMIT)
    matching = iter(select(last_id))
    chosen = list(islice(matching, limit)) if limit else list(matching)
    more = bool(chosen) and next(matching, None) is not None
    return {
        "data": [shape(item) for item in chosen],
        "nextCursor": encode_cursor(lastId=str(id_of(chosen[-1])), limit=limit) if more else None,
    }


def skip_take(
    call: Call,
    items: Sequence[Item],
    *,
    shape: Callable[[Item], Any] | None = None,
) -> dict[str, Any]:
    """Answer one slice of a list: ``{"count": all of them, "data": [...]}``, by the query's ``skip`` and ``take``."""
    skip: int = call.query.get("skip", 0)
    take: int = call.query.get("take", DEFAULT_TAKE)
    chosen = items[skip : skip + take]
    return {"count": len(items), "data": [shape(item) for item in chosen] if shape else list(chosen)}
