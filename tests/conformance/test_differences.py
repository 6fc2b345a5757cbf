"""The table of differences holds what the tests ask for, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from tests.client.contract import CONTRACT

from .differences import DIFFERENCES, GATED

ASKED = re.compile(r"""\.differs\(\s*"([^"]+)"\s*\)""")


def test_every_difference_is_asked_for_and_known() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("*.py")]
    asked = {topic for text in texts for topic in ASKED.findall(text)}
    topics = {difference.topic for difference in DIFFERENCES}
    assert asked - set(CONTRACT) == topics - set(CONTRACT)  # tests of many operations ask for each by its name


def test_each_is_named_once_and_names_an_operation() -> None:
    rows = [(difference.topic, difference.target) for difference in DIFFERENCES]
    assert len(rows) == len(set(rows))
    assert {difference.operation for difference in DIFFERENCES} - {None} <= set(CONTRACT)
    assert set(CONTRACT) >= GATED
