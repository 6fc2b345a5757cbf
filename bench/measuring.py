"""Work that is measured in a process of its own: how long it takes, and by how much its memory grows."""

from __future__ import annotations

import gc
import multiprocessing
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest import mock

import requests
from requests.adapters import HTTPAdapter

#: Makes the largest memory of this process so far the present one.
_RESET_PEAK = "5"


class Measured(NamedTuple):
    """Seconds that some work took, and the most memory that it needed beyond what its process had before, in MiB."""

    seconds: float
    mebibytes: float


def measured(work: Callable[[], object], warm_up: Callable[[], object] | None = None) -> Measured:
    """Do some work in a fork of this process.

    :param warm_up: done before, unmeasured, so that modules are imported and connections exist.
    :raises RuntimeError: it failed; its error was printed.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_do, args=(there, work, warm_up))
    process.start()
    there.close()
    try:
        result: Measured = here.recv()
    except EOFError:
        raise RuntimeError("the work failed") from None
    finally:
        process.join()
    return result


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """The median with the smallest and the largest value."""
    if len(values) == 1:
        return format(values[0], form)
    return f"{median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


class Exchanges:
    """Counts the requests of all clients of this process that were answered."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def counted() -> Iterator[Exchanges]:
    """Count the requests meanwhile."""
    send, exchanges, lock = HTTPAdapter.send, Exchanges(), threading.Lock()

    def counting(*arguments: Any, **options: Any) -> requests.Response:
        answer = send(*arguments, **options)
        with lock:
            exchanges.count += 1
        return answer

    with mock.patch.object(HTTPAdapter, "send", counting):
        yield exchanges


def _do(pipe: Connection, work: Callable[[], object], warm_up: Callable[[], object] | None) -> None:
    if warm_up is not None:
        warm_up()
    gc.collect()
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    before = _memory("VmRSS")
    begin = time.perf_counter()
    work()
    seconds = time.perf_counter() - begin
    pipe.send(Measured(seconds, max(0, _memory("VmHWM") - before) / 1024))


def _memory(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError("this system does not tell how much memory a process has")
    return int(found[1])
