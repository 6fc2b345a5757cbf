"""Encode requests: JSON, paths and queries. Values that would change the meaning of a request are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any
from urllib.parse import quote

from pydantic_core import to_jsonable_python

from airflow_provider_service.client._http.redaction import HiddenBytes, HiddenText
from airflow_provider_service.client._ids import MAX_ID_CHARS, NOT_PLAIN, is_addressable
from airflow_provider_service.client._texts import one_line, shown
from airflow_provider_service.client.errors import ServiceInputError

Query = Mapping[str, Any]

# The caller writes a path with {} for each id; everything else in it is sent unchanged.
_PATH = re.compile(r"(/([A-Za-z0-9._~%-]+|\{\}))+")


def to_json(value: Any) -> str:
    """Write a value as compact JSON.

    :raises ServiceInputError: the value cannot be represented in JSON.
    """
    try:
        text = HiddenText(_ENCODER.encode(value))
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = one_line(str(error))
    else:
        return text
    # Raised outside the handler, so that the error's context keeps no frames that hold the value.
    raise ServiceInputError(f"an argument cannot be written as JSON: {reason}; nothing was sent")


def json_body(value: Any) -> HiddenBytes:
    """Write a value as the body of a request.

    :raises ServiceInputError: the value cannot be represented in JSON.
    """
    return HiddenBytes(to_json(value).encode())


def _plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        # The service would assume its own current time zone.
        raise ValueError(f"{value.isoformat()} has no time zone")
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return list(value)  # such as Airflow's own for the results of mapped tasks
    if isinstance(value, Iterator):
        # A call that is lost is made again, and would then be sent without the items.
        raise ValueError(f"a {type(value).__name__} can be read only once; make a list of it")
    return to_jsonable_python(value)


# One for all calls, because to make one takes longer than to encode a row.
_ENCODER = json.JSONEncoder(default=_plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def fill_path(path: str, ids: Sequence[str | int]) -> str:
    """Put percent-encoded ids into a path.

    :raises ServiceInputError: the path is not below the API root, the number of ids does not match its placeholders, or
        an id is of another type or could lead elsewhere.
    """
    if not isinstance(path, str):
        raise ServiceInputError(f"path must be text such as '/workflows', not {shown(path)}; nothing was sent")
    parts = _parts_of(path)
    if len(parts) != len(ids) + 1:
        raise ServiceInputError(f"{path!r} has {len(parts) - 1} placeholders for ids, not {len(ids)}; nothing was sent")
    return "".join(chain.from_iterable(zip(parts, (*map(_id_segment, ids), ""), strict=True)))


@lru_cache(maxsize=512)
def _parts_of(path: str) -> list[str]:
    segments = path.split("/")
    if not _PATH.fullmatch(path) or {".", ".."} & set(segments):
        raise ServiceInputError(
            f"{path[:MAX_ID_CHARS]!r} is not a path below the API root, such as '/workflows/{{}}'; nothing was sent"
        )
    return path.split("{}")


def segment(text: str) -> str:
    """Percent-encode a segment of a webhook's path.

    :raises ServiceInputError: it is empty, too long, or would change the path.
    """
    if text.strip() in ("", ".", "..") or len(text) > MAX_ID_CHARS:
        raise ServiceInputError(f"{shown(text)} cannot be a segment of a path; nothing was sent")
    return _quote(text)


def _id_segment(value: str | int) -> str:
    """Percent-encode an id, or a name in its place, as one segment of a path.

    Encoding alone does not suffice: proxies and servers decode what they pass on, and then see another path.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ServiceInputError(f"an id must be text or a whole number, not {type(value).__name__}; nothing was sent")
    is_short = isinstance(value, str) or abs(value) < 10**MAX_ID_CHARS
    if not is_short or not is_addressable(str(value)):
        raise ServiceInputError(f"{shown(value)} {NOT_PLAIN}; nothing was sent")
    return _quote(str(value))


def encode_query(query: Query | None) -> str:
    """Percent-encode query parameters completely, as the server requires; booleans become lower case.

    :raises ServiceInputError: a value consists of several.
    """
    given = {name: value for name, value in (query or {}).items() if value is not None}
    for name, value in given.items():
        if isinstance(value, Collection) and not isinstance(value, str):
            raise ServiceInputError(f"{one_line(name)} must be a single value, not {shown(value)}; nothing was sent")
    pairs = [f"{_quote(name)}={_quote(text_of(value))}" for name, value in given.items()]
    return f"?{'&'.join(pairs)}" if pairs else ""


def text_of(value: Any) -> str:
    """Write a plain value as the text of a query parameter or a form's field; booleans in lower case.

    :raises ServiceInputError: it is a number with too many digits.
    """
    try:
        return str(value).lower() if isinstance(value, bool) else str(value)
    except ValueError:  # Python refuses to convert numbers of thousands of digits
        raise ServiceInputError("a query parameter is a number with too many digits; nothing was sent") from None


def _quote(text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise ServiceInputError(f"{text!r} is not valid Unicode text; nothing was sent") from None
