"""Which page of the site shows which file of the repository. Needs only the standard library."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

EXAMPLES = "example_dags"
_OF_THE_ROOT = {"README": "index", "SECURITY": "security-policy"}  # docs/security.md is another page
_CODE = r"^```.*?^```$|^~~~.*?^~~~$|^    \S[^\n]*$|`[^`\n]+`"
# What is in code is matched first, so that it is left as it is.
_LINK = re.compile(rf"(?P<code>{_CODE})|\]\((?P<target>[^)\s]+)\)", re.M | re.S)

#: A picture with another version for dark pages, as GitHub takes it.
_PICTURE = re.compile(
    r'^<picture>\n *<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>\S+)">\n'
    r' *<img alt="(?P<alt>[^"]*)" src="(?P<light>\S+)">\n</picture>$',
    re.M,
)


def page_of(file: str) -> str:
    """The page that shows a file, without its suffix.

    :param file: path from the root of the repository.
    :raises ValueError: the site shows no such file.
    """
    path = PurePosixPath(file)
    if file == EXAMPLES:
        return "examples/index"
    if path.suffix == ".py":
        return f"examples/{path.stem}"
    if path.suffix == ".md":
        path = path.with_suffix("")
        if path.parts[0] == "docs":
            path = PurePosixPath(*path.parts[1:])
            return str(path.with_name("index") if path.name == "README" else path)
        if len(path.parts) == 1:
            return _OF_THE_ROOT.get(path.name) or path.name.lower().replace("_", "-")
    raise ValueError(f"no page of the site shows {file}")


def with_links(text: str, file: str, replace: Callable[[str, str], str]) -> str:
    """Replace the addresses of links to other files of the repository.

    :param text: Markdown.
    :param file: path of the file that holds it, from the root of the repository.
    :param replace: takes the file and the anchor of a target, and returns the new address.
    """
    folder = PurePosixPath(file).parent

    def replaced(match: re.Match[str]) -> str:
        target = match["target"]
        if target is None or target.startswith("#") or "://" in target:
            return match[0]
        name, _, anchor = target.partition("#")
        return f"]({replace(_joined(folder, name), anchor)})"

    return _LINK.sub(replaced, text)


def with_pictures(text: str, template: str) -> str:
    """Replace the pictures that have another version for dark pages.

    :param text: Markdown.
    :param template: takes its place; may use the groups ``alt``, ``light`` and ``dark``.
    """
    return _PICTURE.sub(template, text)


def _joined(folder: PurePosixPath, name: str) -> str:
    parts: list[str] = []
    for part in (folder / name).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
