"""The table of ``docs/conformance.md``, made of what the latest runs of this suite recorded.

``python -m tests.conformance.table`` renews the columns that were recorded in this checkout and keeps the others. With
``--check COLUMN...`` it compares these columns (``simulator``, a server such as ``2.41``, ``contract``) with what was
recorded, writes the first results of new operations into them, and fails where the table says something else.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.client.contract import CONTRACT
from tests.live.servers import GENERATIONS, NEWEST

from .differences import DIFFERENCES
from .further import FURTHER
from .outcomes import RESULTS

DOCUMENT = RESULTS.parent / "docs" / "conformance.md"
COLUMNS = {
    "simulator": "simulator",
    **{name: f"server {generation.version}" for name, generation in GENERATIONS.items()},
    "contract": "published contract",
}
RECORDED_BY = {
    "simulator": "make test",
    **{name: f"make test-live SERVER={name}" for name in GENERATIONS},
    NEWEST: "make test-live",
    "contract": "make test-live",
}
WORDS = {"passed": "pass", "gated": "gated", "lacking": "lacking", "differs": "differs"}
NOT_TESTED_YET = "not tested yet"
_ROW = re.compile(r"\| (.*) \|")

#: Text of the cells by operation and column.
Cells = dict[str, dict[str, str]]

_VERSIONS = [generation.version for generation in GENERATIONS.values()]
_HEAD = f"""# Conformance

One suite, `tests/conformance`, is run against the simulator and against several generations of the real server,
{", ".join(_VERSIONS[:-1])} and {_VERSIONS[-1]}. What is sent, and what the simulator and the newest server
answer, is also judged by the OpenAPI document that this server publishes.

This file is written by `make conformance` from the results of `make test` and `make test-live`, with `SERVER=2.40`,
for example, for another server than the newest. Columns without new results stay as they are. Do not edit it.

- **pass**: success, refusals and quirks are as the suite expects them.
- **gated**: this edition of the server refuses the operation (`ServiceNotLicensedError`), and was seen doing so.
  What is sent is judged by the published contract, and so is what the licensed simulator answers.
- **lacking**: this generation does not offer the operation (`ServiceNotOfferedError`), and was seen saying so.
- **differs**: as the reason says, and only so.
- **{NOT_TESTED_YET}**: the column was not renewed since the operation was added.
"""


_FURTHER = """## Further operations

The server publishes more operations than have a method here. `hook.request` and `client.request` reach them, with their
ids in place of `{}`: `hook.request("GET", "/roles/{}", role)`. `make test-live` compares the list with the published
contract and calls those that only read. Most of them need a paid plan.
"""


def record(column: str) -> Path:
    """The file that the latest run wrote of a column."""
    return RESULTS / f"{column}.json"


def recorded(column: str) -> dict[str, Any]:
    """What the latest run recorded of a column.

    :raises SystemExit: there was none.
    """
    path = record(column)
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


def cells(columns: Iterable[str], judged: Iterable[str]) -> Cells:
    """The cells of these columns, as recorded.

    :param judged: columns in which every operation must have been tested; a record of another may be older than some.
    """
    found = {column: recorded(column) for column in columns}
    return {
        name: {column: cell(rows.get(name)) for column, rows in found.items() if name in rows or column in judged}
        for name in sorted(CONTRACT)
    }


def renewed(table: Cells, document: str) -> Cells:
    """All cells: those of ``table``, and for the columns that it lacks those of a rendered document."""
    kept = written(document)
    unknown = dict.fromkeys(COLUMNS, NOT_TESTED_YET)
    return {name: {**unknown, **kept.get(name, {}), **row} for name, row in table.items()}


def first_results(document: str, table: Cells) -> Cells:
    """The cells of ``table`` that show that all is well where a document shows nothing yet."""
    shown = written(document)
    return {
        name: {
            column: text
            for column, text in row.items()
            if shown.get(name, {}).get(column, NOT_TESTED_YET) == NOT_TESTED_YET and not text.startswith("**")
        }
        for name, row in table.items()
    }


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
        further_operations(),
    ]
    return "\n".join(parts)


def further_operations() -> str:
    """The section on operations without a method of their own, those of the newest server first."""
    parts = [_FURTHER]
    for since in sorted({one.since for one in FURTHER}, key=list(GENERATIONS).index):
        lines = [f"- `{one.method} {one.path}`" for one in FURTHER if one.since == since]
        parts += [f"Offered by {GENERATIONS[since].version} and newer:\n", "\n".join(lines) + "\n"]
    return "\n".join(parts)


def written(document: str) -> Cells:
    """The cells of a rendered document, of the columns that it still has."""
    head, *rows = [match[1].split(" | ") for match in map(_ROW.fullmatch, document.splitlines()) if match] or [[]]
    columns = {title: column for column, title in COLUMNS.items()}
    return {
        name.strip("`"): {columns[title]: text for title, text in zip(head[1:], texts, strict=True) if title in columns}
        for name, *texts in rows
    }


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
    columns = chosen or [column for column in COLUMNS if record(column).exists()]
    table = cells(columns, judged=chosen or ["simulator"])
    document = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
    new = first_results(document, table) if chosen else table
    if any(new.values()):
        print("Renewing", ", ".join(name for name, row in new.items() if row) if chosen else ", ".join(columns))
        document = render(renewed(new, document))
        DOCUMENT.write_text(document, encoding="utf-8")
    problems = stale(document, table)
    problems += [f"unexplained differences: {count}"] if (count := unexplained(table)) else []
    if problems:
        print(*problems, "Run `make conformance` when this is as it should be.", sep="\n", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
