"""The only way into the API: what an operation is, the order in which a request is checked, answers and their pages.

lenient family: key, scope, license, media type, path, query, body.
strict family: key, media type, path, query, body, license, scope.
"""

from __future__ import annotations

import base64
import binascii
import html
import inspect
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from airflow_provider_service.simulator._validation import ApiError, Body, Family, Param, check_path, offers, read_query

if TYPE_CHECKING:
    from airflow_provider_service.simulator._state import ApiKey, State


PAYLOAD_LIMIT = 16 * 1024 * 1024

_HTML = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Error</title>
</head>
<body>
<pre>{}</pre>
</body>
</html>
"""


@dataclass
class Call:
    state: State
    key: ApiKey
    path: dict[str, str]
    query: dict[str, Any]
    request: Request
    body: Any = None


@dataclass(frozen=True)
class Reply:
    """An answer other than JSON with the operation's status. A ``body`` of str or bytes is sent unchanged."""

    body: Any = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str | None = None


Handler = Callable[[Call], Any]


@dataclass(frozen=True)
class Operation:
    """``path`` is below ``/api/v1``. A ``scope`` "a,b" needs both, and None any valid key."""

    name: str
    method: str
    path: str
    scope: str | None
    family: Family
    feature: str | None
    status: int
    query: tuple[Param, ...]
    body: Body | None
    params: Mapping[str, str]
    handler: Handler

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(self.scope.split(",")) if self.scope else ()


OPERATIONS: dict[str, Operation] = {}


def operation(
    method: str,
    path: str,
    *,
    scope: str | None,
    family: Family,
    feature: str | None = None,
    status: int = 200,
    query: tuple[Param, ...] = (),
    body: Body | None = None,
    params: Mapping[str, str] | None = None,
) -> Callable[[Handler], Handler]:
    """Register a function as the handler of the operation that has its name."""

    def register(handler: Handler) -> Handler:
        name = handler.__name__
        if name in OPERATIONS:
            raise ValueError(f"operation {name} is registered twice")
        OPERATIONS[name] = Operation(
            name, method, path, scope, family, feature, status, query, body, params or {}, handler
        )
        return handler

    return register


# ---------------------------------------------------------------- answers


def json_response(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """JSON as the service writes it: compact, UTF-8."""
    content = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return Response(content, status, headers, media_type="application/json; charset=utf-8")


def html_response(status: int, text: str) -> Response:
    """The HTML page of an error that never reached the API."""
    return Response(_HTML.format(html.escape(text)), status, media_type="text/html; charset=utf-8")


def error_response(error: ApiError) -> Response:
    return json_response(error.status, {"message": error.message, **error.extra})


def render(result: Any, status: int) -> Response:
    reply = result if isinstance(result, Reply) else Reply(result)
    code = reply.status or status
    if reply.body is None:
        return Response(None, code, reply.headers)
    if isinstance(reply.body, (str, bytes)) and (reply.media_type or isinstance(reply.body, bytes)):
        return Response(reply.body, code, reply.headers, media_type=reply.media_type or "application/octet-stream")
    return json_response(code, reply.body, reply.headers)


# ---------------------------------------------------------------- handling a request


def parse_json(content: bytes) -> Any:
    """Read JSON as the service does: NaN and Infinity are not valid."""

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    return json.loads(content, parse_constant=refuse)


async def read_body(request: Request, limit: int = PAYLOAD_LIMIT) -> bytes | Response:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            chunks.append(chunk)
    # Read to the end before refusing: closing early would reset the connection and hide the answer.
    return html_response(413, "Payload Too Large") if size > limit else b"".join(chunks)


async def handle(request: Request, op: Operation, state: State) -> Response:
    content = await read_body(request)
    if isinstance(content, Response):
        return content
    body: Any = {}
    if content and media_type(request) == "application/json":
        try:
            body = parse_json(content)
        except ValueError:
            return html_response(500, "Internal Server Error")
    try:
        call = _admit(request, op, state, body, is_empty=not content)
        state.settle()
        result = op.handler(call)
        if inspect.isawaitable(result):
            result = await result
    except ApiError as error:
        return error_response(error)
    return _with_etag(request, render(result, op.status))


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _admit(request: Request, op: Operation, state: State, body: Any, *, is_empty: bool) -> Call:
    if not offers(state.version, op.name):
        raise ApiError(404, "not found")
    offered = tuple(param for param in op.query if offers(state.version, op.name, param.name))
    if offered != op.query:
        op = replace(op, query=offered, family="strict")  # older versions refuse what they do not know
    key = _authenticate(request, op.family, state)
    if op.family == "lenient":
        _check_scope(op, key)
        _check_license(op, state)
    is_body_expected = op.body is not None and (op.body.required_body or not is_empty)
    if is_body_expected and media_type(request) != "application/json":
        raise ApiError(415, f"unsupported media type {request.headers.get('content-type', 'undefined')}")
    path = {name: unquote(value) for name, value in request.path_params.items()}
    check_path(path, op.params)
    query = read_query(request.scope["query_string"].decode("latin-1"), op.query, op.family)
    if op.body is not None:
        op.body.check_body(body, op.family)
    if op.family == "strict":
        _check_license(op, state)
        _check_scope(op, key)
    return Call(state, key, path, query, request, body)


async def hold_open(request: Request, state: State, reached: Callable[[], bool]) -> None:
    if not await state.hold(reached, request.is_disconnected):
        raise ApiError(503, "Service Unavailable")


def _authenticate(request: Request, family: Family, state: State) -> ApiKey:
    secret = request.headers.get("x-service-api-key") or request.headers.get("x-n8n-api-key")
    if not secret:
        raise ApiError(401, "'X-N8N-API-KEY' header required" if family == "strict" else "Unauthorized")
    key = state.keys.get(secret)
    if key is None:
        raise ApiError(401, "unauthorized" if family == "strict" else "Unauthorized")
    return key


def _check_scope(op: Operation, key: ApiKey) -> None:
    if not all(map(key.allows, op.scopes)):
        raise ApiError(403, "Forbidden")


def _check_license(op: Operation, state: State) -> None:
    if op.feature is not None and not state.licensed:
        raise ApiError(
            403,
            f"Your license does not allow for {op.feature}. To enable {op.feature}, "
            "please upgrade to a license that supports this feature.",
        )


def _with_etag(request: Request, response: Response) -> Response:
    if request.method != "GET" or response.status_code != 200:
        return response
    etag = f'W/"{len(response.body):x}-{zlib.crc32(response.body):08x}"'
    if request.headers.get("if-none-match") == etag:
        return Response(None, 304, {"etag": etag})
    response.headers["etag"] = etag
    return response


# ---------------------------------------------------------------- pages

Item = TypeVar("Item")

DEFAULT_LIMIT, MAX_LIMIT = 100, 250


def encode_cursor(**position: Any) -> str:
    return base64.b64encode(json.dumps(position, separators=(",", ":")).encode()).decode()


def decode_cursor(text: str) -> dict[str, Any]:
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
    """An offset list. A limit of 0 returns everything and a cursor that points to itself; a cursor's own limit is
    honoured, even above the maximum. The service does both.
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
    """A newest-first list whose cursor is the last id seen. A cursor of another kind is silently ignored, a cursor's
    limit is clamped, and a limit of 0 returns everything.
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


def skip_take(call: Call, items: Sequence[Item], *, shape: Callable[[Item], Any]) -> dict[str, Any]:
    """Answer one slice of a list: ``{"count": all of them, "data": [...]}``, by the query's ``skip`` and ``take``."""
    skip: int = call.query.get("skip", 0)
    take: int = call.query.get("take", 10)
    return {"count": len(items), "data": [shape(item) for item in items[skip : skip + take]]}
