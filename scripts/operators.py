"""Write the tables of ``docs/operators.md``: what each operator, sensor, notifier and event trigger does.

``python -m scripts.operators`` prints them, and ``--write`` renews the page. They show the first sentence of each
docstring, and what its sentence "Safe to repeat ..." says.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from scripts.dag_runner import choose_home
from scripts.site.api import PACKAGE, api_pages, public_names
from scripts.site.sources import ROOT

PAGE = ROOT / "docs" / "operators.md"
#: The groups of the API reference that are sections of the page.
SECTIONS = ("Operators", "Transfers", "Sensors", "Triggers", "Notifier", "Task decorator")
#: The classes of these groups that DAG files use.
_USED = re.compile(r"(?<!Decorated)(Operator|Sensor|EventTrigger|Notifier)$")
_DECORATOR = "service_workflow"
_HEAD = "| name and module | what it does, and whether it is safe to repeat |\n|---|---|\n"
_END_OF_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z`])")
_REPEAT = re.compile(r"(Safe|Not safe) to repeat")


def rows(section: str) -> Iterator[str]:
    """The rows of a section, a class each.

    :raises ValueError: a docstring does not say whether the class is safe to repeat.
    """
    for page in sorted(api_pages()[section]):
        for module in page.modules:
            for name in public_names(module):
                if _USED.search(name):
                    yield _row(f"`{name}`<br>`{module.removeprefix(f'{PACKAGE}.')}`", module, name)
                elif name == _DECORATOR:
                    yield _row(f"`@task.{name}`", module, f"{name}_task")


def _row(cell: str, module: str, name: str) -> str:
    text = inspect.getdoc(getattr(import_module(module), name)) or ""
    first, *others = _END_OF_SENTENCE.split(text.partition("\n\n:param")[0])
    repeated = next((sentence for sentence in others if _REPEAT.match(sentence)), None)
    if repeated is None:
        raise ValueError(f'The docstring of {module}.{name} has no sentence that begins with "Safe to repeat"')
    repeated = _REPEAT.sub(r"**\1**", repeated)
    shown = re.sub(r":\w+:`(\w+)`", r"`\1`", f"{first}<br>{repeated}").replace("``", "`")
    return f"| {cell} | {' '.join(shown.split())} |"


def tables() -> str:
    """The tables in Markdown, a section each."""
    return "\n\n".join(f"## {section}\n\n{_HEAD}" + "\n".join(rows(section)) for section in SECTIONS)


def main() -> int:
    """Print the tables, or write them into the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="renew docs/operators.md")
    is_written = arguments.parse_args().write
    with tempfile.TemporaryDirectory() as home:
        choose_home(Path(home), Path(home))  # the tables are made of what the package imports, and so of Airflow
        if not is_written:
            print(tables())
            return 0
        introduction = PAGE.read_text().partition("\n## ")[0]
        PAGE.write_text(f"{introduction.rstrip()}\n\n{tables()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
