"""Faults that tests inject: slow, failing, lost and cut-off answers.

Records the incoming requests, but never the key.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import unquote

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_provider_service.simulator._gateway import html_response, json_response
from airflow_provider_service.simulator._state import State

FaultKind = Literal["latency", "status", "html", "drop", "truncate"]
# The number of bytes by which a truncated answer falls short of its announced length.
_MISSING_BYTES = 1000


@dataclass
class Fault:
    """One fault, for the next ``times`` matching requests (None: for all until faults are cleared).

    :param method: only requests with this method
    :param path: regular expression, searched in the decoded path
    :param query: regular expression, searched in the query as it was sent
    :param body: regular expression, searched in the body
    :param status: status of the answers of kind "status" and "html"
    :param retry_after: value of their Retry-After header, in seconds or as a date
    :param seconds: latency in seconds
    :param after_processing: the request takes effect first; only its answer is affected
    :param skip: number of matching requests that pass first
    """

    kind: FaultKind
    times: int | None = 1
    method: str | None = None
    path: str | None = None
    status: int = 503
    retry_after: int | str | None = None
    seconds: float = 0.0
    after_processing: bool = False
    body: str | None = None
    skip: int = 0
    query: str | None = None

    def matches(self, method: str, path: str, query: str, body: bytes) -> bool:
        return (
            self.times != 0
            and (self.method is None or self.method.upper() == method)
            and (self.path is None or re.search(self.path, path) is not None)
            and (self.query is None or re.search(self.query, query) is not None)
            and (self.body is None or re.search(self.body.encode(), body) is not None)
        )

    def passes_over(self) -> bool:
        """Count a matching request; True if it is one of those to skip."""
        self.skip -= 1
        return self.skip >= 0

    def use_up(self) -> None:
        if self.times is not None:
            self.times -= 1


@dataclass
class FaultBoard:
    """The injected faults, and how to close a request's connection."""

    disconnect: Callable[[Scope, bool], None]
    faults: list[Fault] = field(default_factory=list)

    def take(self, method: str, path: str, query: str, body: bytes) -> tuple[list[Fault], Fault | None]:
        """Consume the faults of one request: every latency, and the first of the other kinds."""
        found = [fault for fault in self.faults if fault.matches(method, path, query, body)]
        matching = [fault for fault in found if not fault.passes_over()]
        latencies = [fault for fault in matching if fault.kind == "latency"]
        final = next((fault for fault in matching if fault.kind != "latency"), None)
        for fault in (*latencies, final):
            if fault is not None:
                fault.use_up()
        self.faults = [fault for fault in self.faults if fault.times != 0]
        return latencies, final

    def clear(self) -> None:
        """Remove all faults."""
        self.faults = []


class FaultLayer:
    """ASGI layer that applies faults to requests."""

    def __init__(self, app: ASGIApp, state: State, board: FaultBoard) -> None:
        self._app = app
        self._state = state
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on unless a fault applies to it."""
        if not self._board.faults:
            await self._app(scope, receive, send)
            return
        came = await _whole(receive)
        body = b"".join(message.get("body", b"") for message in came)
        query = scope["query_string"].decode("latin-1")
        latencies, final = self._board.take(scope["method"], unquote(scope["path"]), query, body)
        receive = _replaying(came, receive)
        for fault in latencies:
            if not fault.after_processing:
                await self._state.pause(fault.seconds)
        answer: list[Message] = []
        if final is None or final.after_processing:
            answer = await self._process(scope, receive)
        for fault in latencies:
            if fault.after_processing:
                await self._state.pause(fault.seconds)
        await self._answer(final, answer, scope, receive, send)

    async def _process(self, scope: Scope, receive: Receive) -> list[Message]:
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        await self._app(scope, receive, keep)
        return answer

    async def _answer(
        self, fault: Fault | None, answer: list[Message], scope: Scope, receive: Receive, send: Send
    ) -> None:
        if fault is None:
            for message in answer:
                await send(message)
        elif fault.kind == "drop":
            await self._close(scope, receive, abort=True)
        elif fault.kind == "truncate":
            await _send_too_little(answer, send)
            await self._close(scope, receive, abort=False)
        else:
            await _replacement(fault)(scope, receive, send)

    async def _close(self, scope: Scope, receive: Receive, *, abort: bool) -> None:
        self._board.disconnect(scope, abort)
        while (await receive())["type"] != "http.disconnect":
            pass


def _replacement(fault: Fault) -> Response:
    phrase = HTTPStatus(fault.status).phrase
    made = (
        html_response(fault.status, phrase)
        if fault.kind == "html"
        else json_response(fault.status, {"message": phrase})
    )
    if fault.retry_after is not None:
        made.headers["retry-after"] = str(fault.retry_after)
    return made


async def _whole(receive: Receive) -> list[Message]:
    """Read a request to its end, so that it is processed even if its caller disconnects in the meantime."""
    came = [await receive()]
    while came[-1].get("more_body"):
        came.append(await receive())
    return came


def _replaying(came: list[Message], receive: Receive) -> Receive:
    async def replay() -> Message:
        return came.pop(0) if came else await receive()

    return replay


async def _send_too_little(answer: list[Message], send: Send) -> None:
    body = b"".join(message.get("body", b"") for message in answer) or b'{"data":['
    start = next((message for message in answer if message["type"] == "http.response.start"), None)
    headers = [(name, value) for name, value in (start or {}).get("headers", []) if name.lower() != b"content-length"]
    if start is None:
        headers.append((b"content-type", b"application/json; charset=utf-8"))
    headers.append((b"content-length", str(len(body) + _MISSING_BYTES).encode()))
    status = start["status"] if start else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})


_MOST_REQUESTS = 10_000
_LONGEST_BODY = 256 * 1024


@dataclass
class RecordedRequest:
    """One request: decoded path, raw query string, and the status of its answer.

    ``status`` is None until the request is answered, and stays None if the connection is closed without an answer.
    ``is_over`` is True once the service has finished with the request, whether it was answered or not.
    """

    method: str
    path: str
    query: str
    status: int | None = None
    is_over: bool = False
    content: bytearray = field(default_factory=bytearray, repr=False)

    @property
    def body(self) -> Any:
        """The JSON body; None without a body, or if it exceeds 256 KiB."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None


class RecordingLayer:
    """ASGI layer around everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests: deque[RecordedRequest] = deque(maxlen=_MOST_REQUESTS)
        #: Number of requests that the service has not finished with, and when it last changed, by the monotonic clock.
        self.unfinished, self.changed = 0, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Record the request when it arrives, and its status when its answer begins."""
        record = RecordedRequest(scope["method"], unquote(scope["path"]), scope["query_string"].decode("latin-1"))
        self.requests.append(record)
        self._count(1)

        async def heard() -> Message:
            message = await receive()
            if len(record.content) < _LONGEST_BODY:
                record.content += message.get("body", b"")
            return message

        async def said(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
            await send(message)

        with suppress(ClientDisconnect):  # the caller left while it sent the body
            try:
                await self.app(scope, heard, said)
            finally:
                record.is_over = True
                self._count(-1)

    def _count(self, change: int) -> None:
        self.unfinished, self.changed = self.unfinished + change, time.monotonic()
