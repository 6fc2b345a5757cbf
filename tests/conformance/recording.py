"""Record what a test shows about its operations, and check that no model loses anything of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import TypeAdapter

from airflow_provider_service.client.resources import _audit, _base

from .outcomes import PROPERTY


class Showing:
    """What one test is about, and what it showed so far."""

    def __init__(self, item: pytest.Item) -> None:
        marker = item.get_closest_marker("covers")
        self.operations: tuple[str, ...] = marker.args if marker else ()
        self.needs: tuple[str, ...] = marker.kwargs.get("needs", ()) if marker else ()
        self._record: dict[str, Any] = {"operations": self.operations, "differs": {}, "instead": None}
        item.user_properties.append((PROPERTY, self._record))

    def differs(self, operation: str | None, reason: str) -> None:
        """An operation did what a known difference says."""
        for name in [operation] if operation in self.operations else []:
            self._record["differs"].setdefault(name, []).append(reason)

    def instead(self, outcome: str, operations: Iterable[str], reason: str) -> None:
        """These operations were seen refused, so that the test was not called."""
        self._record["operations"] = tuple(name for name in operations if name in self.operations)
        self._record["instead"] = (outcome, reason)


@contextmanager
def nothing_lost() -> Iterator[None]:
    """Fail if a model that has read an answer does not write exactly what the server sent."""
    original = _base.read

    def read(kind: Any, answer: Any, method: str, path: str) -> Any:
        value = original(kind, answer, method, path)
        if kind is bytes:
            return value
        wire = TypeAdapter(kind).dump_python(value, mode="json", by_alias=True, exclude_unset=True)
        assert _exactly(wire) == _exactly(answer), f"{method} {path}: the model {kind} lost or changed a part"
        return value

    with pytest.MonkeyPatch.context() as patch:
        for module in (_base, _audit):
            patch.setattr(module, "read", read)
        yield


def _exactly(value: Any) -> Any:
    """A representation in which 1, 1.0 and True differ."""
    return json.dumps(value, sort_keys=True)
