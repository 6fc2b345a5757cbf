"""The version of a release, which stands in three places, and the changelog's section about it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

UNRELEASED = "unreleased"
_HEADING = re.compile(r"^## (?P<version>\S+) - (?P<date>.+)$", re.M)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class Version(NamedTuple):
    """What is released.

    :param number: version of the package.
    :param is_dated: whether the changelog gives the date of the release.
    """

    number: str
    is_dated: bool


def read_version(root: Path) -> Version:
    """Read the version of a checkout.

    :raises ValueError: the three places disagree, or the newest section of the changelog is empty or has no date.
    """
    number = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    package = (root / "airflow_provider_service" / "__init__.py").read_text()
    if f'__version__ = "{number}"' not in package:
        raise ValueError(f"pyproject.toml says {number}, and airflow_provider_service/__init__.py something else")
    changelog = (root / "CHANGELOG.md").read_text()
    newest = _HEADING.search(changelog)
    if newest is None or newest["version"] != number:
        raise ValueError(f"the newest section of CHANGELOG.md is not about {number}")
    if "\n- " not in changelog[newest.end() :].partition("\n## ")[0]:
        raise ValueError(f"CHANGELOG.md lists nothing for {number}")
    if newest["date"] != UNRELEASED and not _DATE.fullmatch(newest["date"]):
        raise ValueError(f"CHANGELOG.md gives {newest['date']!r} as the date of {number}")
    return Version(number, newest["date"] != UNRELEASED)
