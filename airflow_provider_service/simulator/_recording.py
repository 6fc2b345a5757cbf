"""Records the incoming requests, but never the key."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
