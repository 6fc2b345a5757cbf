"""The table of ``docs/versions.md``, made of what the latest runs of the features recorded.

``python -m tests.conformance.features.table`` renews the columns that were recorded in this checkout and keeps the
others. With ``--check GENERATION...`` it fails if the table differs from these runs.
"""

from __future__ import annotations

import argparse
import sys

from tests.client.contract import CONTRACT
from tests.conformance import table
from tests.conformance.refusals import version_of
from tests.live.servers import GENERATIONS

from . import data_tables, objects, runs  # noqa: F401 - each adds its features
from .kit import FEATURES, GROUPS, Feature

DOCUMENT = table.DOCUMENT.with_name("versions.md")
#: By generation, the oldest first.
COLUMNS = {name: one.version for name, one in reversed(GENERATIONS.items())}
WORDS = {"passed": "works", "lacking": "not offered", "gated": "not licensed", "differs": "refused"}

_HEAD = f"""# Versions of n8n

Each feature of this provider is tested in its simplest form on each of these servers:
{", ".join(COLUMNS.values())}. They run the free edition. `make conformance` generates this page
from the results of `make test-live SERVER=2.20`, and so on; do not edit it.

- **works**: the task, page or trigger did its job.
- **not offered**: the server lacks what the feature needs. The task failed with `ServiceNotOfferedError`, and nothing
  was changed.
- **not licensed**: the plan of this server does not include it, so the task failed with `ServiceNotLicensedError`. With
  the license, the feature is tested on the simulator only.
- **refused**: the tests saw only the server's refusal, because they cannot reach the host that lists the packages that
  may be installed.
- **{table.NOT_TESTED_YET}**: the column has not been renewed since the feature was added.

"Since" is the first version whose published contract includes the operations of the feature. Without such a contract,
it is the oldest of these servers on which the feature works. For differences between single operations, see
[Conformance](conformance.md).
"""


def column_of(target: str) -> str:
    """The record of what a target showed of the features."""
    return f"{target}-features"


def cells(generation: str) -> dict[str, str]:
    """The column of a generation, as it was recorded."""
    rows = table.recorded(column_of(generation), f"make test-live SERVER={generation}")
    return {
        one.key: WORDS.get(rows[one.key]["outcome"], "**failed**") if one.key in rows else "**not tested**"
        for one in FEATURES
    }


def since(feature: Feature, row: dict[str, str]) -> str:
    """The version that is the first to have a feature."""
    versions = [version_of(one) for one in feature.needs if one in CONTRACT]
    known = [version for version in versions if version]
    if known:
        return max(known, key=lambda version: [int(number) for number in version.split(".")])
    return next((COLUMNS[name] for name in COLUMNS if row[name] in ("works", "not licensed", "refused")), "")


def render(found: table.Cells) -> str:
    """The whole page."""
    head = [f"| feature | since | {' | '.join(COLUMNS.values())} |", f"|---|---{'|---' * len(COLUMNS)}|"]
    sections = [_HEAD]
    for group in dict.fromkeys(GROUPS):
        rows = [(one, found[one.key]) for one in FEATURES if one.group == group]
        lines = [
            f"| {one.name} | {since(one, row)} | {' | '.join(row[name] for name in COLUMNS)} |" for one, row in rows
        ]
        sections.append("\n".join([f"## {group}", "", *head, *lines, ""]))
    return "\n".join(sections)


def main() -> int:
    """Write or check the page; 1 if it is stale, or a feature neither works nor is explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", nargs="+", choices=COLUMNS, metavar="GENERATION", help="compare these columns only")
    chosen = parser.parse_args().check
    columns = chosen or [name for name in COLUMNS if table.record(column_of(name)).exists()]
    found = {name: cells(name) for name in columns}
    rows = {one.key: {name: found[name][one.key] for name in columns} for one in FEATURES}
    document = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
    if not chosen:
        document = render(table.renewed(rows, document, COLUMNS))
        DOCUMENT.write_text(document, encoding="utf-8")
    problems = table.stale(document, rows, COLUMNS)
    problems += [f"unexplained: {count}"] if (count := table.unexplained(rows)) else []
    if problems:
        print(*problems, "Run `make conformance` when this is as it should be.", sep="\n", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
