"""Write the table of ``docs/limits.md``: every pause and limit of starting, waiting, retrying and stopping.

``python -m scripts.limits`` prints the tables, and ``--write`` renews the page. They list the constants of the files
below whose value is a number or a timedelta, and what the comment ``#:`` above each says; no pause may lack one.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "airflow_provider_service"
PAGE = ROOT / "docs" / "limits.md"
#: The files of each section; a file belongs to the first section that names it or its folder.
SECTIONS = {
    "Stopping": ("_core/waits/stop.py",),
    "Starting": ("_core/runs", "hooks/_running.py"),
    "Waiting": ("_core/waits", "_core/events", "triggers", "sensors", "operators/_waiting.py"),
    "Defaults of arguments": ("_core/arguments.py",),
    "Requests and their retries": ("client/_http", "client/_config.py"),
}
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]+")
_MUST_SAY = re.compile(r"SECONDS$|MAX|LEAST|LIFETIME")
_UNITS = {"SECONDS": "s", "BYTES": "bytes", "MIB": "MiB"}


def constants(path: Path) -> Iterator[tuple[str, float | timedelta, str]]:
    """The name, the value and the meaning of each limit of a file.

    :raises ValueError: a limit has no meaning.
    """
    source = path.read_text()
    lines, module = source.splitlines(), import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        value = getattr(module, name)
        # What depends on the version of Airflow is no constant of the page.
        if (
            not _CONSTANT.fullmatch(name)
            or isinstance(node.value, ast.IfExp)
            or isinstance(value, bool)
            or not isinstance(value, (int, float, timedelta))
        ):
            continue
        above: list[str] = []
        for line in reversed(lines[: node.lineno - 1]):
            if not line.startswith("#:"):
                break
            above.insert(0, line.removeprefix("#:").strip())
        if above:
            yield name, value, " ".join(above).replace("``", "`")
        elif _MUST_SAY.search(name):
            raise ValueError(
                f"{path.relative_to(ROOT)}:{node.lineno}: {name} has no comment #: that says what it means"
            )


def shown(name: str, value: float | timedelta) -> str:
    """A value with its unit, which the end of its name tells."""
    if isinstance(value, timedelta):
        return shown("SECONDS", value.total_seconds())
    unit = next((unit for word, unit in _UNITS.items() if word in name.split("_")), "")
    return f"{value:,} {unit}".replace(".0 ", " ").strip()


def tables() -> str:
    """The tables in Markdown, a section each."""
    rows: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        section = next(
            (name for name, parts in SECTIONS.items() if any(place.is_relative_to(one) for one in parts)), ""
        )
        if section:
            rows[section] += [
                f"| {shown(name, value)} | `{name}` in `{place}` | {meaning} |"
                for name, value, meaning in constants(path)
            ]
    head = "| value | name | meaning |\n|---|---|---|\n"
    return "\n\n".join(f"## {section}\n\n{head}" + "\n".join(rows[section]) for section in sorted(SECTIONS))


def main() -> int:
    """Print the tables, or write them into the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="renew docs/limits.md")
    if not arguments.parse_args().write:
        print(tables())
        return 0
    introduction = PAGE.read_text().partition("\n## ")[0]
    PAGE.write_text(f"{introduction.rstrip()}\n\n{tables()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
