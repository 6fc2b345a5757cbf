"""Read the built pages: every address leads to a page and an anchor, the search finds all pages and shows first what it
should, and nothing is loaded from another host."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

#: Attributes from which a browser loads something by itself.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src"), ("video", "src")}
#: Relations of a ``link`` that only name an address.
_NAMED_ONLY = {"canonical", "next", "prev", "search", "index", "genindex"}
#: Pages that only list others.
_LISTS = {"search.html", "genindex.html", "py-modindex.html"}
_SITE = "http://site/"


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.followed: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        for name, value in values.items():
            if (tag, name) == ("a", "href"):
                self.followed.append(value)
            elif (tag, name) in _LOADED and not (_NAMED_ONLY & set(values.get("rel", "").split())):
                self.loaded.append(value)


def mistakes(folder: Path) -> list[str]:
    """What is wrong with the pages of a folder, each as a sentence."""
    pages = {str(path.relative_to(folder)): _Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    found = []
    for name, page in pages.items():
        for address in page.loaded:
            if urlsplit(address).netloc:
                found.append(f"{name} loads {address} from another host")
            elif not address.startswith("data:") and not (folder / _target(name, address)[0]).is_file():
                found.append(f"{name} loads {address}, which does not exist")
        for address in page.followed:
            if urlsplit(address).scheme or urlsplit(address).netloc:
                continue
            target, anchor = _target(name, address)
            if not (folder / target).is_file():
                found.append(f"{name} links to {address}, which does not exist")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{name} links to {address}, and {target} has no such anchor")
    for path in sorted(folder.rglob("*.css")):
        if "@import" in path.read_text() or "url(http" in path.read_text() or "url(//" in path.read_text():
            found.append(f"{path.relative_to(folder)} loads from another place")
    if "search.html" in pages:
        found += _mistakes_of_the_search(folder / "searchindex.js", set(pages) - _LISTS)
    return found


def _mistakes_of_the_search(index: Path, pages: set[str]) -> Iterator[str]:
    content = json.loads(index.read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    known = {f"{name}.html" for name in content["docnames"]}
    yield from (f"the search does not know {name}" for name in sorted(pages - known))
    yield from (f"the search leads to {name}, which does not exist" for name in sorted(known - pages))


def wrong_searches(folder: Path, expected: dict[str, str]) -> Iterator[str]:
    """The searches that show another page first than they should, by the site's own search."""
    command = [Path(sys.prefix, "bin", "node"), Path(__file__).with_name("searches.js"), folder, *expected]
    found = json.loads(subprocess.check_output(command, text=True))
    for (search, page), first in zip(expected.items(), found, strict=True):
        if first != page:
            yield f'the search for "{search}" shows {first} first, and not {page}'


def _target(page: str, address: str) -> tuple[str, str]:
    """The file and the anchor that an address on a page means."""
    parts = urlsplit(urljoin(_SITE + page, address))
    path = unquote(parts.path.lstrip("/"))
    return (path + "index.html" if path.endswith("/") or not path else path), unquote(parts.fragment)
