"""A proxy between callers and the service that disturbs calls as networks and proxies do."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CONNECTION = re.compile(rb"\r\nconnection:[^\r\n]*", re.IGNORECASE)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

MAX_DELAY_SECONDS = 0.3
DRIP_PARTS = 40
DRIP_PAUSE_SECONDS = 0.1
HANG_SECONDS = 10.0
MAX_WAIT_SECONDS = 120.0


class Fault(Enum):
    """A disturbance of a call. All but the first two let the service process it."""

    RESET_BEFORE = "reset before it was passed on"
    DELAY_BEFORE = "passed on late"
    DELAY_AFTER = "answered late"
    RESET_AFTER = "reset instead of the answer"
    CLOSE_AFTER = "closed instead of the answer"
    HANG_AFTER = "never answered"
    BAD_GATEWAY = "answered 502"
    GATEWAY_TIMEOUT = "answered 504"
    TRUNCATED = "the answer is cut off"
    DRIPPED = "the answer comes byte by byte"
    NONSENSE = "the answer is nonsense"


_NONSENSE = (
    b"[" * 3000,
    b'{"data": null, "nextCursor": 7}',
    b"<html><body>Welcome to the hotel's network</body></html>",
    b"\xff\xfe\x00",
    b'{"executionId": "999999999", "status": "success", "id": ["x"]}',
    b'"\\ud800"',
)


class Lane:
    """The path of one task's calls to the service; the same seed reproduces the same faults.

    - ``base_url``: where it listens.

    :param seed: determines the fault of each call.
    :param rate: share of the calls that are disturbed.
    :param faults: counts how often each fault occurred.
    :param ended: set when no caller is waiting for an answer any more.
    """

    def __init__(self, server_url: str, seed: str, rate: float, faults: Counter[Fault], ended: asyncio.Event) -> None:
        address = urlsplit(server_url)
        self._server = (str(address.hostname), int(address.port or 80))
        self._dice = random.Random(seed)
        self._rate = rate
        self._faults = faults
        self._ended = ended
        self._calls: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self.base_url = ""

    async def open(self) -> None:
        """Start to listen."""
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    def calm(self) -> None:
        """Cause no more faults."""
        self._rate = 0.0

    async def close(self) -> None:
        """Stop listening, and complete the calls that have arrived."""
        if self._listener is not None:
            self._listener.close()
        await asyncio.gather(*self._calls)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        call = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                request = await _read_request(reader)
                fault = self._dice.choice(list(Fault)) if self._dice.random() < self._rate else None
                if fault is not None:
                    self._faults[fault] += 1
                await self._handle(request, fault, writer)
        finally:
            await _close(writer)

    async def _handle(self, request: bytes, fault: Fault | None, writer: asyncio.StreamWriter) -> None:
        delay = self._dice.uniform(0, MAX_DELAY_SECONDS)
        if fault is Fault.RESET_BEFORE:
            _reset(writer)
            return
        if fault is Fault.DELAY_BEFORE:
            await asyncio.sleep(delay)
        answer = await self._passed_on(request)
        if fault is Fault.DELAY_AFTER:
            await asyncio.sleep(delay)
        elif fault is Fault.RESET_AFTER:
            _reset(writer)
            return
        elif fault is Fault.CLOSE_AFTER:
            return
        elif fault is Fault.HANG_AFTER:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), HANG_SECONDS)
            return
        elif fault is Fault.BAD_GATEWAY:
            answer = _answer(b"502 Bad Gateway", b"text/html", b"<html>Bad gateway</html>")
        elif fault is Fault.GATEWAY_TIMEOUT:
            answer = _answer(b"504 Gateway Timeout", b"text/html", b"<html>Gateway timeout</html>")
        elif fault is Fault.TRUNCATED:
            answer = answer[: self._dice.randrange(len(answer))]
        elif fault is Fault.NONSENSE:
            answer = _answer(b"200 OK", b"application/json", self._dice.choice(_NONSENSE))
        elif fault is Fault.DRIPPED:
            await _drip(writer, answer)
            return
        writer.write(answer)
        await writer.drain()

    async def _passed_on(self, request: bytes) -> bytes:
        """Pass a call on, even if its caller has disconnected, and return the whole answer."""
        reader, writer = await asyncio.open_connection(*self._server)
        try:
            writer.write(request)
            return await reader.read(-1)
        finally:
            await _close(writer)


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return _CONNECTION.sub(b"", head[:-4]) + b"\r\nConnection: close\r\n\r\n" + body


def _answer(status: bytes, content_type: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, content_type, len(body)) + body


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _drip(writer: asyncio.StreamWriter, answer: bytes) -> None:
    size = max(1, len(answer) // DRIP_PARTS)
    for start in range(0, len(answer), size):
        writer.write(answer[start : start + size])
        await writer.drain()
        await asyncio.sleep(DRIP_PAUSE_SECONDS)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()


class ChaosProxy:
    """A separate event loop that serves lanes. Use it as a context manager.

    - ``faults``: how often each fault occurred.
    """

    def __init__(self, seed: int, rate: float) -> None:
        self._seed, self._rate = seed, rate
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaos-proxy", daemon=True)
        self._ended = asyncio.Event()
        self._lanes: list[Lane] = []
        self.faults: Counter[Fault] = Counter()

    def __enter__(self) -> ChaosProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def end() -> None:
            self._ended.set()
            await asyncio.gather(*(lane.close() for lane in self._lanes))

        self._in_loop(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lane(self, name: str, server_url: str) -> Lane:
        """Open a lane to a server; the same seed and name reproduce the same faults."""
        lane = Lane(server_url, f"{self._seed}:{name}", self._rate, self.faults, self._ended)
        self._in_loop(lane.open())
        self._lanes.append(lane)
        return lane

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(MAX_WAIT_SECONDS)
