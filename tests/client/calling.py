"""The rows of the table of calls, and the values that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_provider_service.client import errors

from . import samples

Refusal = tuple[int, str, type[errors.ServiceApiError]]


@dataclass(frozen=True)
class Call:
    """``client.<calls>(*args, **options)`` sends ``<sends>`` with ``body`` and is answered with ``answer``.

    ``refusal`` is a documented error of the operation: status, message, and the resulting exception.
    """

    operation: str
    calls: str
    args: tuple[Any, ...]
    sends: str
    answer: Any
    refusal: Refusal
    options: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None


class Pages:
    """The answers of a list endpoint that has two pages of one item each."""

    def __init__(self, item: Mapping[str, Any], *, counted: bool = False) -> None:
        name = "id" if "id" in item else "versionId"
        other = item[name] + ("2" if isinstance(item[name], str) else 1)
        self.items, self.counted = [dict(item), {**item, name: other}], counted

    def answers(self) -> list[dict[str, Any]]:
        first, second = self.items
        if self.counted:
            return [{"count": 2, "data": [first]}, {"count": 2, "data": [second]}]
        return [samples.page(first, cursor="next=="), samples.page(second)]


def not_found(message: str = "Not Found") -> Refusal:
    return 404, message, errors.ServiceNotFoundError


def conflict(message: str) -> Refusal:
    return 409, message, errors.ServiceConflictError


def invalid(message: str) -> Refusal:
    return 400, message, errors.ServiceInvalidRequestError


def unlicensed(feature: str) -> Refusal:
    text = f"Your license does not allow for {feature}. To enable {feature}, please upgrade to a license that supports"
    return 403, f"{text} this feature.", errors.ServiceNotLicensedError


# Ids that differ, so that a test notices if an operation mixes them up.
W, W_ = "w-1", "w-1"
C, C_ = "5b7d6f0e-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "5b7d6f0e-1c2d-4e3f-8a9b-0c1d2e3f4a5b"
T, T_ = "t_1", "t_1"
P, P_ = "P.1", "P.1"
U, U_ = "u:1", "u%3A1"
V, V_ = "-v1", "-v1"
PACKAGE, PACKAGE_ = "@scope/n8n-nodes-x", "%40scope%2Fn8n-nodes-x"

WHEN, WHEN_ = datetime(2026, 1, 2, 4, 4, 5, 6789, tzinfo=timezone(timedelta(hours=1))), "2026-01-02T03:04:05.006Z"
WHEN_ENCODED = "2026-01-02T03%3A04%3A05.006Z"
TEXT_WHEN, TEXT_WHEN_ENCODED = "2026-02-01T00:00:00Z", "2026-02-01T00%3A00%3A00Z"
