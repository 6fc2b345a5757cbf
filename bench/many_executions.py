"""A service in another process that holds nothing but tens of thousands of executions, and answers at once.

The simulator would spend far more time on its lists than whoever reads them.
"""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import random
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

#: Statuses of active executions, in percent.
_MIX = {"running": 80, "waiting": 15, "new": 5}
# Executions older than this many mean durations have all but ended.
_OLDEST = 8
_MOMENT = "2026-11-22T10:00:00.000Z"


class Turn(NamedTuple):
    """What happened on the service in some time."""

    ended: list[str]
    started: list[str]


class ManyExecutions:
    """Executions of random durations, as many ending as beginning; use it as a context manager.

    :param active: executions that are active at any time.
    :param seed: of the random choices.
    """

    def __init__(self, active: int, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end, active, seed), daemon=True)

    def __enter__(self) -> ManyExecutions:
        self._process.start()
        port: int
        port, self.active = self._pipe.recv()
        self.connection = json.dumps({"conn_type": "service", "host": f"http://127.0.0.1:{port}", "password": "key"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send(None)
        self._process.join(10)

    def turn(self, count: int) -> Turn:
        """End some of the active executions, and begin as many."""
        self._pipe.send(count)
        ended, started = self._pipe.recv()
        return Turn(ended, started)

    def requests(self) -> Counter[str]:
        """The number of requests since the last call, by the status of a list, or "id"."""
        self._pipe.send("requests")
        counted: Counter[str] = self._pipe.recv()
        return counted


class _Executions:
    """The executions by status, as ids in rising order."""

    def __init__(self, active: int, seed: int) -> None:
        self._random = random.Random(seed)
        self.ids: dict[str, list[int]] = {status: [] for status in (*_MIX, "success")}
        self.requests: Counter[str] = Counter()
        newest = active * _OLDEST
        for id_ in range(1, newest + 1):
            lives = self._random.random() < math.exp((id_ - newest) / active)
            self.ids[self._any_status() if lives else "success"].append(id_)
        self._newest = newest

    @property
    def active(self) -> list[str]:
        return [str(id_) for status in _MIX for id_ in self.ids[status]]

    def turn(self, count: int) -> tuple[list[str], list[str]]:
        ended = []
        for status in self._random.choices(list(_MIX), [len(self.ids[one]) for one in _MIX], k=count):
            there = self.ids[status]
            id_ = there.pop(self._random.randrange(len(there)))
            insort(self.ids["success"], id_)
            ended.append(str(id_))
        started = [str(self._newest + 1 + place) for place in range(count)]
        for id_ in started:
            self.ids[self._any_status()].append(int(id_))
        self._newest += count
        return ended, started

    def answer(self, target: str) -> bytes:
        parts = urlsplit(target)
        last = parts.path.rpartition("/")[2]
        if last != "executions":
            self.requests["id"] += 1
            return _rendered(int(last), self._status_of(int(last))).encode()
        query = dict(parse_qsl(parts.query))
        status = query["status"]
        self.requests[status] += 1
        there = self.ids[status]
        end = bisect_left(there, int(query["cursor"])) if "cursor" in query else len(there)
        begin = max(0, end - int(query["limit"]))
        cursor = f'"{there[begin]}"' if begin else "null"
        items = ",".join(_rendered(id_, status) for id_ in reversed(there[begin:end]))
        return f'{{"data":[{items}],"nextCursor":{cursor}}}'.encode()

    def _any_status(self) -> str:
        return self._random.choices(list(_MIX), list(_MIX.values()))[0]

    def _status_of(self, id_: int) -> str:
        return next(status for status, there in self.ids.items() if _holds(there, id_))


def _holds(ids: Sequence[int], id_: int) -> bool:
    place = bisect_left(ids, id_)
    return place < len(ids) and ids[place] == id_


def _rendered(id_: int, status: str) -> str:
    stopped = f'"{_MOMENT}"' if status == "success" else "null"
    finished = "true" if status == "success" else "false"
    return (
        f'{{"id":"{id_}","finished":{finished},"mode":"webhook","retryOf":null,"retrySuccessId":null,'
        f'"status":"{status}","createdAt":"{_MOMENT}","startedAt":"{_MOMENT}","stoppedAt":{stopped},'
        f'"deletedAt":null,"workflowId":"Bd2lYsVfW1xQnJk8","waitTill":null,"storedAt":"db"}}'
    )


def _serve(pipe: Connection, active: int, seed: int) -> None:
    asyncio.run(_answer_all(pipe, _Executions(active, seed)))


async def _answer_all(pipe: Connection, executions: _Executions) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = executions.answer(head.split(b" ", 2)[1].decode())
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    ended = asyncio.Event()

    def obey() -> None:
        question: Any = pipe.recv()
        if question is None:
            ended.set()
        elif question == "requests":
            pipe.send(executions.requests)
            executions.requests = Counter()
        else:
            pipe.send(executions.turn(question))

    asyncio.get_running_loop().add_reader(pipe.fileno(), obey)
    pipe.send((server.sockets[0].getsockname()[1], executions.active))
    await ended.wait()
    asyncio.get_running_loop().remove_reader(pipe.fileno())
    server.close()
