"""The operations that servers publish and that have no method of their own: those that ``hook.request`` reaches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.client.contract import CONTRACT

from .target import blank

METHODS = frozenset({"get", "put", "post", "patch", "delete"})


class Further(NamedTuple):
    """One operation; its path has ``{}`` for each id.

    :param since: the oldest generation here that offers it.
    :param until: the newest one that does; None if the newest of all does.
    """

    method: str
    path: str
    since: str
    until: str | None = None


FURTHER = tuple(
    Further(**one) for one in json.loads(Path(__file__).with_name("further_operations.json").read_text("utf-8"))
)


def published_further(document: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Method and path of all that a published contract has beyond the methods of the client."""
    published = {
        (method.upper(), blank(path))
        for path, item in document["paths"].items()
        for method in item
        if method in METHODS
    }
    return published - {(fact["method"], blank(fact["path"])) for fact in CONTRACT.values()}


def offered_by(generation: str) -> set[tuple[str, str]]:
    """The operations that the list has for a generation: method and path."""
    return {
        (one.method, one.path)
        for one in FURTHER
        if _number(one.since) <= _number(generation) <= _number(one.until or generation)
    }


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
