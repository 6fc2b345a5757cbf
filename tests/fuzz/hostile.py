"""A layer around the simulator that puts hostile values in place of those that it answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: A value becomes another one, by the name of its field.
Change = Callable[[str, Any], Any]

MARKUP = "<script>alert(1)</script>"
IDS = ("../../../{}", "..", "/{}", "a/{}", "{}\x00", "={{{{ $env.X }}}}", "{}?x=1#y", "..\\{}", "", "{}" + "x" * 400)
NAMES = (
    *(
        "../../../{}",
        "\u6f22" * 70,
        "\N{GRINNING FACE}" * 55,
        "\ud800{}",
        "{{{{ 7*7 }}}}",
        MARKUP,
        "\u202e{}",
        "{}\n\r\x1b[31m",
    ),
    *("", " ", ".", "=1+1", "con", "x" * 5000, "{}.json", "\x00"),
)
NUMBERS = (10**310, -(10**310), 2**63, -1, 0, 1e308, 5e-324, 0.5, float("nan"), float("inf"))
MOMENTS = ("9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000Z", None)
DEEP = (100, 400, 900)
OTHERS: tuple[Any, ...] = (None, True, 0, -1, "", "x", [], {}, [None], {"x": []}, [[]])


#: What ids begin with that users have chosen; the layer finds objects by the rest.
CHOSEN = "../../../../dags/"


def _is_id(name: str) -> bool:
    return name == "id" or name.endswith(("Id", "_id"))


def hostile_ids(draw: random.Random) -> Change:
    """Ids that lead to nothing, because each is changed by itself; a few stay unchanged."""

    def change(name: str, value: Any) -> Any:
        is_changed = _is_id(name) and isinstance(value, str) and draw.random() < 0.7
        return draw.choice(IDS).format(value) if is_changed else value

    return change


def hostile_workflow_ids(draw: random.Random) -> Change:
    """Ids by which the service finds its objects, as when their users have chosen them."""
    return lambda name, value: f"{CHOSEN}{value}" if _is_id(name) and isinstance(value, str) else value


def hostile_names(draw: random.Random) -> Change:
    """Names and every other text that people write, but not those by which tasks find an object."""
    from .surfaces import KNOWN_NAMES

    def change(name: str, value: Any) -> Any:
        is_text = isinstance(value, str) and not _is_id(name) and not name.endswith(("At", "Till"))
        is_kept = name in ("type", "status", "nextCursor", "mode", "role")
        is_changed = is_text and not is_kept and value not in KNOWN_NAMES and draw.random() < 0.5
        return draw.choice(NAMES).format(value) if is_changed else value

    return change


def hostile_numbers(draw: random.Random) -> Change:
    """Numbers, dates and durations."""

    def change(name: str, value: Any) -> Any:
        if name.endswith(("At", "Till")) and isinstance(value, str):
            return draw.choice(MOMENTS)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return draw.choice(NUMBERS) if is_number and draw.random() < 0.7 else value

    return change


def other_forms(draw: random.Random) -> Change:
    """Here and there a value of another type."""
    return lambda name, value: draw.choice(OTHERS) if name != "nextCursor" and draw.random() < 0.06 else value


def deep_values(draw: random.Random) -> Change:
    """Here and there a value within many others, as deep as parsers of JSON still read."""

    def change(name: str, value: Any) -> Any:
        if name == "nextCursor" or draw.random() >= 0.03:
            return value
        for _ in range(draw.choice(DEEP)):
            value = draw.choice(({name: value}, [value]))
        return value

    return change


def hostile_keys(draw: random.Random) -> Change:
    """Names where a mapping has them as keys, as those of nodes and of outputs."""

    def change(name: str, value: Any) -> Any:
        if not isinstance(value, dict) or draw.random() >= 0.3:
            return value
        return {draw.choice(NAMES).format(key) if draw.random() < 0.2 else key: one for key, one in value.items()}

    return change


def changed(value: Any, change: Change, name: str = "") -> Any:
    """A copy of a JSON value with all values within it changed."""
    if isinstance(value, dict):
        value = {key: changed(one, change, key) for key, one in value.items()}
    elif isinstance(value, list):
        value = [changed(one, change, name) for one in value]
    return change(name, value) if name else value


class HostileLayer:
    """ASGI layer that changes the JSON of successful answers.

    - ``count``: how many values it has changed.
    """

    def __init__(self, change: Change) -> None:
        self._change = change
        self.count = 0

    def around(self, app: ASGIApp) -> ASGIApp:
        """The layer around an application."""
        self._app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = {**scope, "path": scope["path"].replace(CHOSEN, "")}
        scope["raw_path"] = scope["path"].encode()
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        await self._app(scope, receive, keep)
        start, body = answer[0], b"".join(one.get("body", b"") for one in answer)
        if start.get("type") == "http.response.start" and start["status"] < 300 and body[:1] in (b"{", b"["):
            body = json.dumps(changed(json.loads(body), self._counted)).encode()
        kept = [one for one in start.get("headers", []) if one[0].lower() != b"content-length"]
        await send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
        await send({"type": "http.response.body", "body": body})

    def _counted(self, name: str, value: Any) -> Any:
        other = self._change(name, value)
        self.count += other is not value
        return other


STATUSES = (200, 201, 204, 206, 304, 400, 401, 402, 403, 404, 405, 409, 413, 415, 422, 429, 500, 502, 503, 504, 599)
HEADERS = (
    *((b"content-type", b"text/html"), (b"content-type", b"\xff/\xff"), (b"content-encoding", b"gzip")),
    *((b"location", b"http://169.254.169.254/"), (b"date", b"Wed, 99 Foo 99999 99:99:99 GMT"), (b"x", b"\x80")),
    *((b"retry-after", one) for one in (b"nan", b"-1", b"1e400", b"9" * 400, b"Wed, 99 Foo")),
)
BODIES = (
    *(b"", b"null", b"[]", b"{", b"\xff\xfe", b"<!doctype html><pre>Error<br>at x</pre>", b"NaN", b"1" * 5000),
    *(b"[" * 100_000, b'{"message":' * 900 + b"1" + b"}" * 900, b'{"data": null}', b'{"data": [null]}'),
)


class FailingLayer:
    """ASGI layer that answers some requests itself, with failures of any status, format and header.

    Half of those requests reach the service first, so that their effect is in doubt.

    - ``count``: how many it has answered.
    """

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self.count = 0

    def around(self, app: ASGIApp) -> ASGIApp:
        """The layer around an application."""
        self._app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        draw = self._draw
        if draw.random() >= 0.25:
            await self._app(scope, receive, send)
            return
        self.count += 1

        async def drop(message: Message) -> None:
            pass

        if draw.random() < 0.5:
            await self._app(scope, receive, drop)
        text = {draw.choice(("message", "code", "hint", "error")): draw.choice((*NAMES, *OTHERS)) for _ in range(2)}
        body = draw.choice((*BODIES, *[json.dumps(text).encode()] * 6))
        headers = draw.sample(HEADERS, draw.choice((0, 0, 1, 2)))
        await send({"type": "http.response.start", "status": draw.choice(STATUSES), "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _changing(kind: Callable[[random.Random], Change]) -> Callable[[random.Random], HostileLayer]:
    return lambda draw: HostileLayer(kind(draw))


KINDS: dict[str, Callable[[random.Random], HostileLayer | FailingLayer]] = {
    "ids": _changing(hostile_ids),
    "chosen ids": _changing(hostile_workflow_ids),
    "names": _changing(hostile_names),
    "keys": _changing(hostile_keys),
    "numbers": _changing(hostile_numbers),
    "forms": _changing(other_forms),
    "depths": _changing(deep_values),
    "failures": FailingLayer,
}
