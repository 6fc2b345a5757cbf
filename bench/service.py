"""The simulated service in a separate process, so that its work does not count as the client's."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from airflow_provider_service.simulator import ServiceSimulator

# The statuses of a busy service's active executions, in percent.
_MIX = {"running": 80, "waiting": 15, "new": 5}


class Service:
    """A service with slow answers in another process, whose executions are controlled from here.

    :param latency: seconds by which each answer is delayed.
    """

    def __init__(self, latency: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end, latency), daemon=True)

    def __enter__(self) -> Service:
        self._process.start()
        self.connection: str = self._pipe.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pipe.send(("stop",))
        self._process.join(10)

    def start_executions(self, count: int) -> list[str]:
        """Set up active executions and return their ids."""
        ids: list[str] = self._ask("start_executions", count)
        return ids

    def count_requests(self) -> int:
        """The number of requests since the last call."""
        return int(self._ask("count_requests"))

    def end_executions(self, ids: Sequence[str], seconds: float) -> dict[str, float]:
        """End executions at random times within some seconds, and return the time of each."""
        ended: dict[str, float] = self._ask("end_executions", list(ids), seconds)
        return ended

    def _ask(self, *question: Any) -> Any:
        self._pipe.send(question)
        return self._pipe.recv()


def _serve(pipe: Connection, latency: float) -> None:
    with ServiceSimulator() as simulator:
        workflow = simulator.create_webhook_workflow(path="bench")
        simulator.inject("latency", times=None, seconds=latency)
        extra = {"mcp_api_key": simulator.mcp_api_key}
        pipe.send(json.dumps({**json.loads(simulator.connection_json()), "extra": extra}))

        def start_executions(count: int) -> list[str]:
            statuses = random.choices(list(_MIX), list(_MIX.values()), k=count)
            return [simulator.start_execution(workflow["id"], status=status) for status in statuses]

        def count_requests() -> int:
            count = len(simulator.requests)
            simulator.clear_requests()
            return count

        def end_executions(ids: list[str], seconds: float) -> dict[str, float]:
            begin = time.time()
            ended = {}
            for execution_id, offset in zip(ids, sorted(random.random() * seconds for _ in ids), strict=True):
                time.sleep(max(0.0, begin + offset - time.time()))
                simulator.finish_execution(execution_id)
                ended[execution_id] = time.time()
            return ended

        answers = {answer.__name__: answer for answer in (start_executions, count_requests, end_executions)}
        while (question := pipe.recv())[0] != "stop":
            pipe.send(answers[question[0]](*question[1:]))
