"""Which tests are slow, and belong to ``make test-slow`` instead of ``make test``.

A test is slow if it takes a second of a processor or more. ``slow(one_in=5)`` marks one whose many cases take seconds
together: every fifth of them belongs to ``make test``.
"""

from __future__ import annotations

from collections import Counter

import pytest

#: Of a run, by the value of ``--slow``, whether a slow test belongs to it, and whether any other does.
BELONG = {"with": (True, True), "without": (False, True), "only": (True, False)}


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the items that belong to the run, and report the others to pytest."""
    belong = dict(zip((True, False), BELONG[config.getoption("--slow")], strict=True))
    seen = Counter[str]()
    is_slow = {item: _is_slow(item, seen) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not belong[is_slow[item]]])
    items[:] = [item for item in items if belong[is_slow[item]]]


def _is_slow(item: pytest.Item, seen: Counter[str]) -> bool:
    mark = item.get_closest_marker("slow")
    if mark is None:
        return False
    function = item.nodeid.partition("[")[0]
    seen[function] += 1
    return (seen[function] - 1) % mark.kwargs["one_in"] > 0 if "one_in" in mark.kwargs else True
