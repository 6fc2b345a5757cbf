"""Delays the simulator's answers at random, as a slow network and a busy server do: ``make test-delays``.

A test that counts on an answer within a tenth of a second, or on the order of two answers, fails sooner or later. With
this plugin it fails soon. The delays of a test depend only on the seed, its name and the order of its requests, so that
it meets the same ones whether it runs alone or beside others.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from airflow_provider_service.simulator import ServiceSimulator

#: Of requests, and of answers, the share that is delayed, and for how many seconds.
SHARE, SECONDS = 0.25, (0.05, 0.4)
#: Of requests, the share at which the server does nothing else for some time, and for how many seconds.
BLOCKING_SHARE, BLOCKING_SECONDS = 0.05, (0.02, 0.08)


class DelayLayer:
    """ASGI layer that delays requests before and after they are processed.

    :param app: the service.
    :param chance: what happens to the requests of the current test.
    """

    def __init__(self, app: ASGIApp, chance: random.Random) -> None:
        self._app, self._chance = app, chance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # All is drawn when the request comes, so that it depends on nothing but the order in which they come.
        before, after = self._delay(), self._delay()
        if self._chance.random() < BLOCKING_SHARE:
            time.sleep(self._chance.uniform(*BLOCKING_SECONDS))

        async def late(message: Message) -> None:
            if message["type"] == "http.response.start":
                await asyncio.sleep(after)
            await send(message)

        await asyncio.sleep(before)
        await self._app(scope, receive, late)

    def _delay(self) -> float:
        return self._chance.uniform(*SECONDS) if self._chance.random() < SHARE else 0.0


class Delays:
    """Puts the layer around every simulator of this process, and says how to repeat a run."""

    def __init__(self, seed: int) -> None:
        self._seed, self.chance = seed, random.Random()
        plain = ServiceSimulator._application
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(ServiceSimulator, "_application", lambda one: DelayLayer(plain(one), self.chance))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["delays_seed"] = self._seed

    def pytest_unconfigure(self) -> None:
        self._patch.undo()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.chance.seed(f"{self._seed} {item.nodeid}")

    def pytest_report_header(self) -> str:
        return f"answers are delayed at random, SEED={self._seed}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        failed = terminalreporter.getreports("failed") + terminalreporter.getreports("error")
        for test in dict.fromkeys(report.nodeid.partition("[")[0] for report in failed):
            terminalreporter.write_line(f"to repeat it: make test-delays SEED={self._seed} ONLY={test}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--delays-seed", type=int, metavar="SEED", help="chooses the delays; by default a random one")


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--delays-seed")
    if seed is None:
        # Of several processes, all have the seed that the first one has chosen.
        seed = getattr(config, "workerinput", {}).get("delays_seed", secrets.randbelow(10**6))
    config.pluginmanager.register(Delays(seed), "delayed-answers")
