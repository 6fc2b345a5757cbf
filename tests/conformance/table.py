"""The table of ``docs/conformance.md``, made of what the latest runs of this suite recorded.

``python -m tests.conformance.table`` writes it. With ``--check COLUMN...`` it only compares these columns
(``simulator``, ``2``, ``1``, ``contract``) with what was recorded, and fails where the table says something else.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from typing import Any

from tests.live.servers import GENERATIONS
from tests.unit.contract import CONTRACT

from .differences import DIFFERENCES
from .outcomes import RESULTS

DOCUMENT = RESULTS.parent / "docs" / "conformance.md"
COLUMNS = {
    "simulator": "simulator",
    "2": f"server {GENERATIONS['2'].version}",
    "1": f"server {GENERATIONS['1'].version}",
    "contract": "published contract",
}
RECORDED_BY = {
    "simulator": "make test",
    "2": "make test-live",
    "1": "make test-live SERVER=1",
    "contract": "make test-live",
}
WORDS = {"passed": "pass", "gated": "gated", "lacking": "lacking", "differs": "differs"}
_ROW = re.compile(r"\| `(\w+)` \| (.*) \|")

#: Text of the cells by operation and column.
Cells = dict[str, dict[str, str]]

_HEAD = f"""# Conformance

One suite, `tests/conformance`, is run against the simulator and against the real server of two generations,
{GENERATIONS["2"].version} and {GENERATIONS["1"].version}. What is sent, and what the simulator and the newer server
answer, is also judged by the OpenAPI document which that server publishes.

This file is written by `make conformance` from the results of `make test`, `make test-live` and
`make test-live SERVER=1`. Do not edit it.

- **pass**: success, refusals and quirks are as the suite expects them.
- **gated**: this edition of the server refuses the operation (`ServiceNotLicensedError`), and was seen doing so.
  What is sent is judged by the published contract, and so is what the licensed simulator answers.
- **lacking**: this generation does not offer the operation (`ServiceNotOfferedError`), and was seen saying so.
- **differs**: as the reason says, and only so.
"""


def recorded(column: str) -> dict[str, Any]:
    """What the latest run recorded of a column.

    :raises SystemExit: there was none.
    """
    path = RESULTS / f"{column}.json"
    if not path.exists():
        raise SystemExit(f"Nothing is recorded of the column '{column}': run `{RECORDED_BY[column]}` first.")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def cell(row: dict[str, Any] | None) -> str:
    """The text of one cell."""
    if row is None:
        return "**not tested**"
    if row["outcome"] not in WORDS:
        return "**failed**"
    reasons = f": {' '.join(row['reasons'])}" if row["outcome"] == "differs" else ""
    return WORDS[row["outcome"]] + reasons


def cells(columns: list[str]) -> Cells:
    """The cells of these columns, as recorded."""
    found = {column: recorded(column) for column in columns}
    return {name: {column: cell(rows.get(name)) for column, rows in found.items()} for name in sorted(CONTRACT)}


def unexplained(table: Cells) -> int:
    """How many cells show neither that all is well nor why it is not."""
    return sum(text.startswith("**") for row in table.values() for text in row.values())


def render(table: Cells) -> str:
    """The whole document."""
    lines = [
        f"| operation | {' | '.join(COLUMNS.values())} |",
        f"|---{'|---' * len(COLUMNS)}|",
        *(f"| `{name}` | {' | '.join(row[column] for column in COLUMNS)} |" for name, row in table.items()),
    ]
    general = [f"- {COLUMNS[one.target]}, {one.topic}: {one.reason}" for one in DIFFERENCES if one.operation is None]
    parts = [
        _HEAD,
        f"Operations: {len(table)}. Unexplained differences: {unexplained(table)}.\n",
        "\n".join(lines) + "\n",
        "## Differences that no one operation has\n",
        "\n".join(general) + "\n",
    ]
    return "\n".join(parts)


def written(document: str) -> Cells:
    """The cells of a rendered document."""
    rows = (match.groups() for match in map(_ROW.fullmatch, document.splitlines()) if match)
    return {name: dict(zip(COLUMNS, texts.split(" | "), strict=True)) for name, texts in rows}


def stale(document: str, table: Cells) -> list[str]:
    """Where a document says something else than these cells."""
    shown = written(document)
    return [
        f"{name}, {COLUMNS[column]}: the table says {shown.get(name, {}).get(column)!r}, the run {text!r}"
        for name, row in table.items()
        for column, text in row.items()
        if shown.get(name, {}).get(column) != text
    ]


def main() -> int:
    """Write or check the document; 1 when it is stale or something is unexplained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", nargs="+", choices=COLUMNS, metavar="COLUMN", help="compare these columns only")
    chosen = parser.parse_args().check
    table = cells(chosen or list(COLUMNS))
    if not chosen:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(render(table), encoding="utf-8")
    problems = stale(DOCUMENT.read_text(encoding="utf-8"), table) if DOCUMENT.exists() else [f"{DOCUMENT} is missing"]
    problems += [f"unexplained differences: {count}"] if (count := unexplained(table)) else []
    if problems:
        print(*problems, "Run `make conformance` when this is as it should be.", sep="\n", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
