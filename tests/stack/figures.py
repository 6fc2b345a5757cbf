"""What the tests have counted, printed at their end."""

from __future__ import annotations

from collections import Counter


class Figures:
    """Numbers by name, in the order in which they were first mentioned."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Count something, also when there is none of it."""
        self._counts[name] += count

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def lines(self) -> list[str]:
        """One line a number; none when nothing was counted."""
        width = max(map(len, self._counts), default=0)
        return [f"{name:<{width}}  {count}" for name, count in self._counts.items()]


FIGURES = Figures()
