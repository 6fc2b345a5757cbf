"""Log the progress of a job with many rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TypeVar

from airflow_provider_service.client._clock import clock

log = logging.getLogger(__name__)

#: Seconds between two lines.
LINE_SECONDS = 10.0

Item = TypeVar("Item")


class Progress:
    """Logs the number of rows, the rate per second, and the percentage if the total is known.

    :param action: what happens to the rows, such as ``"Inserted"``.
    :param total: number of all rows; None if it is unknown.
    """

    def __init__(self, action: str, total: int | None = None) -> None:
        self._action, self._total = action, total
        self._began = self._logged = clock().monotonic()
        self._said: int | None = None
        self.count = 0

    def reach(self, count: int) -> None:
        """Update the number of finished rows, and log a line if one is due."""
        self.count = count
        if clock().monotonic() - self._logged >= LINE_SECONDS:
            self.report()

    def report(self) -> None:
        """Log a line now, unless the last one said the same."""
        if self.count == self._said:
            return
        self._logged, self._said = clock().monotonic(), self.count
        rate = self.count / max(self._logged - self._began, 0.001)
        of = "" if self._total is None else f" of {self._total:,}"
        share = f" ({100 * self.count // self._total}%)" if self._total else ""
        log.info("%s %s%s rows%s, %s rows a second", self._action, f"{self.count:,}", of, share, f"{rate:,.0f}")

    def counting(self, rows: Iterable[Item]) -> Iterator[Item]:
        """Pass rows on and count them."""
        for row in rows:
            yield row
            self.reach(self.count + 1)
