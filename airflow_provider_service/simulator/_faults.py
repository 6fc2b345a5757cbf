"""Two ASGI layers: faults that tests inject (slow, failing, lost and cut-off answers), and the record of requests."""

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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_provider_service.simulator._gateway import html_response, json_response
from airflow_provider_service.simulator._state import State

FaultKind = Literal["latency", "status", "html", "drop", "truncate"]


@dataclass
class Fault:
    """One fault, for the next ``times`` matching requests (None: for all until faults are cleared)."""

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


@dataclass
class FaultBoard:
    disconnect: Callable[[Scope, bool], None]
    faults: list[Fault] = field(default_factory=list)

    def take(self, method: str, path: str, query: str, body: bytes) -> tuple[list[Fault], Fault | None]:
        """Consume the faults of one request: every latency, and the first of the other kinds."""
        matching = [fault for fault in self.faults if fault.matches(method, path, query, body)]
        applying = [fault for fault in matching if not fault.passes_over()]
        latencies = [fault for fault in applying if fault.kind == "latency"]
        final = next((fault for fault in applying if fault.kind != "latency"), None)
        for fault in (*latencies, final):
            if fault is not None and fault.times is not None:
                fault.times -= 1
        self.faults = [fault for fault in self.faults if fault.times != 0]
        return latencies, final

    def clear(self) -> None:
        self.faults = []


class FaultLayer:
    def __init__(self, app: ASGIApp, state: State, board: FaultBoard) -> None:
        self._app = app
        self._state = state
        self._board = board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._board.faults:
            await self._app(scope, receive, send)
            return
        # The whole request is read, so that it is processed even if its caller disconnects in the meantime.
        received = [await receive()]
        while received[-1].get("more_body"):
            received.append(await receive())
        body = b"".join(message.get("body", b"") for message in received)
        query = scope["query_string"].decode("latin-1")
        latencies, final = self._board.take(scope["method"], unquote(scope["path"]), query, body)

        async def replay() -> Message:
            return received.pop(0) if received else await receive()

        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        for fault in latencies:
            if not fault.after_processing:
                await self._state.pause(fault.seconds)
        if final is None or final.after_processing:
            await self._app(scope, replay, keep)
        for fault in latencies:
            if fault.after_processing:
                await self._state.pause(fault.seconds)
        await self._answer(final, answer, scope, replay, send)

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
            phrase = HTTPStatus(fault.status).phrase
            if fault.kind == "html":
                response = html_response(fault.status, phrase)
            else:
                response = json_response(fault.status, {"message": phrase})
            if fault.retry_after is not None:
                response.headers["retry-after"] = str(fault.retry_after)
            await response(scope, receive, send)

    async def _close(self, scope: Scope, receive: Receive, *, abort: bool) -> None:
        self._board.disconnect(scope, abort)
        while (await receive())["type"] != "http.disconnect":
            pass


async def _send_too_little(answer: list[Message], send: Send) -> None:
    body = b"".join(message.get("body", b"") for message in answer) or b'{"data":['
    start = next((message for message in answer if message["type"] == "http.response.start"), None)
    headers = [(name, value) for name, value in (start or {}).get("headers", []) if name.lower() != b"content-length"]
    if start is None:
        headers.append((b"content-type", b"application/json; charset=utf-8"))
    headers.append((b"content-length", str(len(body) + 1000).encode()))  # more than it sends
    status = start["status"] if start else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})


# ---------------------------------------------------------------- requests, without their keys


@dataclass
class RecordedRequest:
    """One request. ``status`` stays None if the connection is closed without an answer."""

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
    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests: deque[RecordedRequest] = deque(maxlen=10_000)
        #: Number of requests that the service has not finished with, and when it last changed, by the monotonic clock.
        self.unfinished, self.changed = 0, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record = RecordedRequest(scope["method"], unquote(scope["path"]), scope["query_string"].decode("latin-1"))
        self.requests.append(record)
        self._count(1)

        async def heard() -> Message:
            message = await receive()
            if len(record.content) < 256 * 1024:
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
