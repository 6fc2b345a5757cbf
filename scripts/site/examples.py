"""Find the shortest tested example of an operator, a sensor or the like."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scripts.site.links import EXAMPLES

ROOT = Path(__file__).resolve().parent.parent.parent
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.FunctionDef)


class Example(NamedTuple):
    """A statement of a tested file.

    :param file: path of the file from the root of the repository.
    :param code: its lines, with the comment above them.
    """

    file: str
    code: str


def example_of(name: str) -> Example | None:
    """The shortest statement that makes one of a class, or uses a decorator, by its name: of an example DAG if there is
    one, otherwise of another tested file."""
    for files in tested_files():
        found = [Example(file, code) for file in files for code in _uses(file, name)]
        if found:
            return min(found, key=lambda one: len(one.code))
    return None


def tested_files() -> tuple[list[str], list[str]]:
    """The example DAGs, and the other files with examples that tests run."""
    paths = sorted((ROOT / EXAMPLES).glob("*.py")), sorted((ROOT / "tests" / "docs").rglob("*.py"))
    dags, others = ([str(path.relative_to(ROOT)) for path in group] for group in paths)
    return dags, others


def _uses(file: str, name: str) -> Iterator[str]:
    source, tree = _parsed(file)
    lines = source.splitlines()
    for statement in ast.walk(tree):
        if isinstance(statement, _STATEMENTS) and any(_makes(node, name) for node in _own_nodes(statement)):
            first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))]) - 1
            while first and lines[first - 1].lstrip().startswith("# "):
                first -= 1
            yield textwrap.dedent("\n".join(lines[first : statement.end_lineno]))


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement; of a function only its decorators."""
    for part in statement.decorator_list if isinstance(statement, ast.FunctionDef) else [statement]:
        yield from ast.walk(part)


def _makes(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr == "partial":
        called = called.value
    return (isinstance(called, ast.Name) and called.id == name) or (
        isinstance(called, ast.Attribute) and called.attr == name
    )


@cache
def _parsed(file: str) -> tuple[str, ast.Module]:
    source = (ROOT / file).read_text()
    return source, ast.parse(source)
