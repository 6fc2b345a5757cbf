"""What a release must fulfil; ``make release`` builds one."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.release.contents import mistakes_in
from scripts.release.metadata import missing_addresses, project_urls, readme
from scripts.release.smoke import modules
from scripts.release.versions import read_version

ROOT = Path(__file__).resolve().parent.parent.parent
ADDRESSES = {
    "DOCUMENTATION_URL": "https://docs.example.com/provider/",
    "REPOSITORY_URL": "https://code.example.com/provider",
}
README = (
    "See [Names](docs/names.md#the-rule), [DAGs](example_dags), [Airflow](https://airflow.apache.org).\n"
    '<picture>\n<source media="(prefers-color-scheme: dark)" srcset="docs/images/a-dark.png">\n'
    '<img alt="A tab" src="docs/images/a.png">\n</picture>\n' + "x" * 1000
)


@pytest.mark.parametrize("lacking", ADDRESSES)
@pytest.mark.parametrize("value", [None, "", "http://docs.example.com"])
def test_both_addresses_are_needed(lacking: str, value: str | None) -> None:
    environ = {name: address for name, address in ADDRESSES.items() if name != lacking}
    environ.update({lacking: value} if value is not None else {})

    assert missing_addresses(environ) == [lacking]
    assert project_urls(environ) == {}
    assert readme(README, environ) == README


def test_the_addresses_become_links() -> None:
    assert project_urls(ADDRESSES) == {
        "Documentation": "https://docs.example.com/provider/",
        "Changelog": "https://docs.example.com/provider/changelog.html",
        "Repository": "https://code.example.com/provider",
        "Issues": "https://code.example.com/provider/issues",
    }
    assert readme(README, ADDRESSES).startswith(
        "See [Names](https://docs.example.com/provider/names.html#the-rule), "
        "[DAGs](https://docs.example.com/provider/examples/index.html), [Airflow](https://airflow.apache.org).\n"
        "![A tab](https://docs.example.com/provider/_images/a.png)\n"
    )


def test_the_readme_of_this_repository_has_no_relative_link_in_a_release(tmp_path: Path) -> None:
    text = readme((ROOT / "README.md").read_text(), ADDRESSES)

    assert mistakes_in(*built(tmp_path, text), "1.2.3") == []


def checkout(folder: Path, *, package: str = "1.2.3", changelog: str = "## 1.2.3 - 2026-02-01\n\n- News.\n") -> Path:
    (folder / "airflow_provider_service").mkdir()
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (folder / "airflow_provider_service" / "__init__.py").write_text(f'__version__ = "{package}"\n')
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}\n## 1.2.2 - 2026-01-01\n\n- Old.\n")
    return folder


@pytest.mark.parametrize(("date", "is_dated"), [("2026-02-01", True), ("unreleased", False)])
def test_a_version_is_dated_or_only_rehearsed(tmp_path: Path, date: str, is_dated: bool) -> None:
    assert read_version(checkout(tmp_path, changelog=f"## 1.2.3 - {date}\n\n- News.\n")) == ("1.2.3", is_dated)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"package": "1.2.4"}, r"__init__\.py something else"),
        ({"changelog": ""}, "newest section of CHANGELOG.md is not about 1.2.3"),
        ({"changelog": "## 1.2.3 - soon\n\n- News.\n"}, "gives 'soon' as the date"),
        ({"changelog": "## 1.2.3 - 2026-02-01\n"}, "lists nothing for 1.2.3"),
    ],
)
def test_what_disagrees_about_the_version_is_named(tmp_path: Path, wrong: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_version(checkout(tmp_path, **wrong))


def test_this_checkout_has_a_version() -> None:
    read_version(ROOT)


def built(folder: Path, text: str, *, version: str = "1.2.3", urls: bool = True) -> tuple[Path, Path]:
    """A wheel and an sdist with a README."""
    links = "".join(f"Project-URL: {name}, {url}\n" for name, url in project_urls(ADDRESSES).items()) if urls else ""
    metadata = f"Metadata-Version: 2.4\nName: provider\nVersion: {version}\n{links}\n{text}"
    wheel, sdist = folder / "provider.whl", folder / "provider.tar.gz"
    with zipfile.ZipFile(wheel, "w") as files:
        for name in ("airflow_provider_service/py.typed", "airflow_provider_service/_core/reports/page.html.jinja"):
            files.writestr(name, "")
        files.writestr("provider.dist-info/METADATA", metadata)
    inside = ("README.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt", "tests/conftest.py")
    with tarfile.open(sdist, "w:gz") as archive:
        for name, content in [("PKG-INFO", metadata), *((name, "") for name in inside)]:
            member = tarfile.TarInfo(f"provider-1.2.3/{name}")
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return wheel, sdist


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"text": README}, "the README of provider.whl has the relative link docs/names.md#the-rule"),
        ({"text": README}, "the README of provider.whl has the relative link docs/images/a-dark.png"),
        ({"text": "Short."}, "provider.whl has no README"),
        ({"version": "1.2.4"}, "provider.whl is version 1.2.4, not 1.2.3"),
        ({"urls": False}, "provider.whl has the addresses [], not"),
    ],
)
def test_what_is_wrong_with_a_build_is_named(tmp_path: Path, wrong: dict[str, object], says: str) -> None:
    arguments = {"text": readme(README, ADDRESSES), **wrong}

    found = mistakes_in(*built(tmp_path, **arguments), "1.2.3")  # type: ignore[arg-type]

    assert says in "\n".join(found)
    assert says.replace(".whl", ".tar.gz") in "\n".join(found)


def test_the_check_of_an_installation_imports_all_that_airflow_lists() -> None:
    assert {
        "airflow_provider_service.hooks.service",
        "airflow_provider_service.operators.run_workflow",
        "airflow_provider_service.transfers.sql_to_data_table",
        "airflow_provider_service.decorators.run_workflow",
    } <= {*modules()}
