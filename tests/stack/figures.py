"""Figures counted by the tests, printed at the end."""

from __future__ import annotations

from collections import Counter


class Figures:
    """Numbers by name, in the order in which they were first mentioned."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Count something; the figure also appears if its value is 0."""
        self._counts[name] += count

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def lines(self) -> list[str]:
        """One line per figure; no line if nothing was counted."""
        width = max(map(len, self._counts), default=0)
        return [f"{name:<{width}}  {count}" for name, count in self._counts.items()]


FIGURES = Figures()
