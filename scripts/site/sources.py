"""Lay out what the documentation site is built of: the repository's Markdown, the example DAGs, a page per module."""

from __future__ import annotations

import ast
import json
import re
import shutil
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

from scripts.site.api import api_texts
from scripts.site.links import EXAMPLES, page_of, with_links, with_pictures

ROOT = Path(__file__).resolve().parent.parent.parent
OF_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
_TREE = """
```{{toctree}}
:hidden:
:caption: {title}

{pages}
```
"""
# Furo shows one of them, also if the reader chooses between light and dark.
_PICTURES = r"![\g<alt>](\g<light>){.only-light}\n![\g<alt>](\g<dark>){.only-dark}"
_MERMAID = re.compile(r"^```mermaid\n", re.M)


def navigation() -> dict[str, Any]:
    """The groups of ``guides`` and of ``reference`` with their pages, and what ``searches`` must find."""
    return tomllib.loads((ROOT / "docs" / "navigation.toml").read_text())


def pages_of(kind: str) -> list[str]:
    """The pages of all groups of guides, or of reference."""
    return [page for group in navigation()[kind] for page in group["pages"]]


def write_sources(folder: Path) -> None:
    """Fill a folder with the sources of the site; what it held before is removed.

    :param folder: where Sphinx will read them.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.md", "*.toml"))
    code: set[str] = set()
    for file in [*OF_THE_ROOT, *_markdown()]:
        _write(folder, page_of(file), _page(file, code))
    # Its index takes the place of docs/api/README.md, which says in the repository how to build it.
    for name, text in api_texts():
        _write(folder, f"api/{name}", text)
    examples = sorted(str(path.relative_to(ROOT)) for path in (ROOT / EXAMPLES).glob("*.py"))
    for file in sorted({*examples, *code}):
        _write(folder, page_of(file), _example(file))
    _write(folder, "examples/index", _examples(examples, sorted(code - {*examples})))
    groups = [*navigation()["guides"], *navigation()["reference"]]
    trees = [_TREE.format(title=group["title"], pages="\n".join(group["pages"])) for group in groups]
    with (folder / "index.md").open("a") as index:
        index.writelines(trees)
    ranked = [(200, pages_of("guides")), (100, pages_of("reference"))]
    ranks = {page: rank - place / 100 for rank, pages in ranked for place, page in enumerate(pages)}
    scorer = Path(__file__).with_name("scorer.js").read_text()
    (folder / "scorer.js").write_text(f"const RANKS = {json.dumps(ranks)};\n{scorer}")


def _markdown() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def _write(folder: Path, page: str, text: str) -> None:
    path = folder / f"{page}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _page(file: str, code: set[str]) -> str:
    """A file of the repository as a page; the files of code that it links to are collected."""
    here = PurePosixPath(page_of(file)).parent

    def replaced(target: str, anchor: str) -> str:
        if not (ROOT / target).exists():
            raise ValueError(f"{file} links to {target}, which does not exist")
        if target.endswith(".py"):
            code.add(target)
        up = "../" * len(here.parts)
        if target.startswith("docs/") and not target.endswith(".md"):
            return up + target.removeprefix("docs/")
        return f"{up}{page_of(target)}.md" + (f"#{anchor}" if anchor else "")

    text = with_links(with_pictures((ROOT / file).read_text(), _PICTURES), file, replaced)
    text = _MERMAID.sub("```{mermaid}\n", text)
    if page_of(file) == "decisions/index":
        pages = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("*.md") if path.stem != "README")
        text += _TREE.format(title="Decisions", pages="\n".join(pages))
    return text


def _example(file: str) -> str:
    """A page that shows a file of code."""
    source = (ROOT / file).read_text()
    return f"# {PurePosixPath(file).name}\n\n{_summary(source)}\n\n```python\n{source}```\n"


def _examples(files: list[str], tests: list[str]) -> str:
    """The page that lists the examples."""
    rows = [
        f"- [{PurePosixPath(file).name}]({PurePosixPath(file).stem}.md): {_summary((ROOT / file).read_text())}"
        for file in [*files, *tests]
    ]
    stems = "\n".join(PurePosixPath(file).stem for file in [*files, *tests])
    text = "# Example DAGs\n\nEach of them is run by the tests, on the simulator and on real servers.\n\n"
    return text + "\n".join(rows) + "\n" + _TREE.format(title="Example DAGs", pages=stems)


def _summary(source: str) -> str:
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0].replace("\n", " ")
