"""Read an event stream (``text/event-stream``) while it arrives."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterable, Iterator
from itertools import chain, islice

EVENT_STREAM = "text/event-stream"
#: The service answers a call with one event; others announce progress, often for as long as an execution takes.
MAX_EVENTS = 100_000


def event_data(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each event as soon as the event is complete, for the first 100,000 events.

    :param parts: the stream in pieces of any size.
    """
    return islice(_events(_lines(parts)), MAX_EVENTS)


def _events(lines: Iterable[str]) -> Iterator[bytes]:
    data: list[str] = []
    for line in chain(lines, [""]):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:"))
        elif not line and data:
            yield "\n".join(data).encode()
            data = []


def _lines(parts: Iterable[bytes]) -> Iterator[str]:
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True)
    begun: list[str] = []
    for part in parts:
        first, *others = decoder.decode(part).split("\n")
        begun.append(first)
        for line in others:
            yield "".join(begun)
            begun = [line]
    yield "".join([*begun, decoder.decode(b"", final=True).rstrip("\n")])
