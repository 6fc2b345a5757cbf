"""Which tests are slow, and belong to ``make test-slow`` instead of ``make test``.

A test is slow if it takes a second of a processor or more, without fixtures that others share. ``slow(one_in=5)`` marks
one whose many cases take seconds together: every fifth of them belongs to ``make test``.
"""

from __future__ import annotations

from collections import Counter

import pytest

CHOICES = ("with", "without", "only")


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the items that belong to the run, and report the others to pytest."""
    choice = config.getoption("--slow")
    if choice == "with":
        return
    seen = Counter[str]()
    slow, others = [], []
    for item in items:
        (slow if _is_slow(item, seen) else others).append(item)
    items[:], deselected = (slow, others) if choice == "only" else (others, slow)
    config.hook.pytest_deselected(items=deselected)


def _is_slow(item: pytest.Item, seen: Counter[str]) -> bool:
    mark = item.get_closest_marker("slow")
    if mark is None:
        return False
    function = item.nodeid.partition("[")[0]
    seen[function] += 1
    return _stays_slow(seen[function], *mark.args, **mark.kwargs)


def _stays_slow(number: int, *, one_in: int | None = None) -> bool:
    """Whether the case of this number, from 1 on, is slow; a mark with other arguments is an error."""
    return one_in is None or number % one_in != 1
