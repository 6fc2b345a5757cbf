"""Build the documentation site into ``.site/html``; warnings and whatever scripts.site.check finds are errors."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from scripts.dag_runner import choose_home
from scripts.site.api import undescribed
from scripts.site.check import mistakes, wrong_searches
from scripts.site.sources import ROOT, navigation, write_sources

SITE = ROOT / ".site"


def main() -> int:
    """Build the site; the exit status is 0 only if nothing is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="airflow-home-") as home:
        choose_home(Path(home), ROOT / "example_dags")  # the API reference imports the package, and so Airflow
        write_sources(SITE / "source")
        from sphinx.cmd.build import build_main

        html, settings = SITE / "html", Path(__file__).parent
        shutil.rmtree(html, ignore_errors=True)  # pages of files that are gone
        arguments = ["-b", "html", "-E", "-W", "--keep-going", "-q", "-d", str(SITE / "doctrees"), "-c", str(settings)]
        status = build_main([*arguments, str(SITE / "source"), str(html)])
        found = [*mistakes(html), *undescribed(html / "api"), *wrong_searches(html, navigation()["searches"])]
    for mistake in found:
        print(mistake, file=sys.stderr)
    if status == 0 and not found:
        print(f"The site is in {html / 'index.html'}.")
    return status or bool(found)


if __name__ == "__main__":
    sys.exit(main())
