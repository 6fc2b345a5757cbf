"""The part of the metadata that depends on where a release is published. Needs only the standard library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from scripts.site.links import page_of, with_links, with_pictures

DOCUMENTATION = "DOCUMENTATION_URL"
REPOSITORY = "REPOSITORY_URL"


def missing_addresses(environ: Mapping[str, str]) -> list[str]:
    """The variables that a release needs and that are not set to an address."""
    return [name for name in (DOCUMENTATION, REPOSITORY) if not environ.get(name, "").startswith("https://")]


def project_urls(environ: Mapping[str, str]) -> dict[str, str]:
    """The links that a package index shows; none unless both addresses are set."""
    if missing_addresses(environ):
        return {}
    documentation, repository = environ[DOCUMENTATION].rstrip("/"), environ[REPOSITORY].rstrip("/")
    return {
        "Documentation": f"{documentation}/",
        "Changelog": f"{documentation}/changelog.html",
        "Repository": repository,
        "Issues": f"{repository}/issues",
    }


def readme(text: str, environ: Mapping[str, str]) -> str:
    """The README, with links to pages of the documentation instead of files of the repository, and pictures for light
    pages; as it is without both addresses."""
    if missing_addresses(environ):
        return text
    documentation = environ[DOCUMENTATION].rstrip("/")

    def page(file: str, anchor: str) -> str:
        if file.startswith("docs/images/"):
            return f"{documentation}/_images/{PurePosixPath(file).name}"
        return f"{documentation}/{page_of(file)}.html" + (f"#{anchor}" if anchor else "")

    return with_links(with_pictures(text, r"![\g<alt>](\g<light>)"), "README.md", page)
