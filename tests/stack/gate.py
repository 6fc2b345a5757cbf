"""Holds requests on their way through the service, so that a kill happens at the intended point."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qs, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Where a request is held. ``before`` the call: the worker has asked for the workflow. ``arriving``: the webhook's call
#: is there and not yet processed. ``answering``: it is processed and not yet answered. ``after``: it is answered, and
#: the worker looks at the execution whose id it has not stored yet. ``waiting``: a triggerer looks at executions.
Window = Literal["before", "arriving", "answering", "after", "waiting"]
WINDOWS: tuple[Window, ...] = ("before", "arriving", "answering", "after")
RUN_KEY_HEADER = b"x-airflow-run-key"
# Even if the test fails, no request is held for longer.
MOST_SECONDS = 60.0


class Call(NamedTuple):
    """A call of a webhook.

    :param run_key: of the task run and its attempt.
    :param seconds: when it came in, since the epoch.
    """

    run_key: str
    path: str
    seconds: float


@dataclass
class Gate:
    """ASGI layer that records webhook calls, and holds requests while it is armed."""

    app: ASGIApp
    calls: list[Call] = field(default_factory=list)
    requests: int = 0
    _armed: Window | None = None
    _held: int = 0
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, at once or when it is released."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.requests += 1
        method, path = scope["method"], unquote(scope["path"])
        key = dict(scope["headers"]).get(RUN_KEY_HEADER)
        if key is not None and "/webhook/" in path:
            self.calls.append(Call(key.decode("latin-1"), path, time.time()))
        window = _window(method, path, scope["query_string"].decode("latin-1"), key is not None)
        if window is None:
            await self.app(scope, receive, send)
            return
        message = await receive()
        body = [message]
        while message.get("more_body"):
            message = await receive()
            body.append(message)

        async def replay() -> Message:
            return body.pop(0) if body else await receive()

        if window != "call":
            await self._hold(window)
            await self.app(scope, replay, send)
            return
        await self._hold("arriving")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._hold("answering")
            await send(message)

        await self.app(scope, replay, answer)

    def arm(self, window: Window | None) -> None:
        """Hold requests of one window from now on, and release those that are held; None: hold none."""
        self._released.set()
        self._released = asyncio.Event()
        self._armed, self._held = window, 0

    @property
    def held(self) -> int:
        """How many requests are held now."""
        return self._held

    async def _hold(self, window: Window) -> None:
        if self._armed != window:
            return
        released = self._released
        self._held += 1
        try:
            await asyncio.wait_for(released.wait(), MOST_SECONDS)
        except TimeoutError:
            self._held -= released is self._released


def _window(method: str, path: str, query: str, has_key: bool) -> Literal["call", "before", "after", "waiting"] | None:
    if "/webhook/" in path:
        return "call" if has_key else None
    if method != "GET":
        return None
    if re.fullmatch(r"/api/v1/workflows/[^/]+", path):
        return "before"
    if re.fullmatch(r"/api/v1/executions(/[^/]+)?", path):
        asked: dict[str, Any] = parse_qs(query)
        # What started an execution stands in its data, which a triggerer has no use for.
        return "after" if asked.get("includeData") == ["true"] else "waiting"
    return None
