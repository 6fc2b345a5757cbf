"""Each test belongs to a target: to ``make test``, to ``make test-slow``, or to one that needs more than they do."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
from tests.slow import CHOICES, deselect

def pytest_addoption(parser):
    parser.addoption("--slow", choices=CHOICES, default="with")

def pytest_configure(config):
    config.addinivalue_line("markers", "slow(one_in)")

def pytest_collection_modifyitems(config, items):
    deselect(config, items)
"""
TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("case", range(8))
def test_cases(case): pass

@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("case", range(2))
def test_others(case): pass
"""
WITHOUT = ["test_quick", *(f"test_cases[{case}]" for case in (0, 3, 6)), "test_others[0]"]
ONLY = ["test_slow", *(f"test_cases[{case}]" for case in (1, 2, 4, 5, 7)), "test_others[1]"]


def chosen(folder: Path, *options: str) -> list[str]:
    """The tests that pytest would run."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *options]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return [line.removeprefix("test_some.py::") for line in ended.stdout.splitlines() if "::" in line]


def test_every_folder_of_tests_is_run_by_a_target() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    by_default = configuration["tool"]["pytest"]["ini_options"]["testpaths"]
    recipes = [line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if line.startswith("\t")]
    named = {word for line in recipes for word in line.split()}

    folders = {"/".join(file.relative_to(ROOT).parts[:2]) for file in ROOT.glob("tests/*/**/test_*.py")}

    assert len(folders) > 20
    assert folders - {*by_default} - named == set()
    assert {*by_default} <= folders


def test_every_slow_test_is_left_to_the_other_target(tmp_path: Path) -> None:
    assert chosen(tmp_path, "--slow=without") == WITHOUT
    assert chosen(tmp_path, "--slow=only") == ONLY


def test_without_the_option_all_run(tmp_path: Path) -> None:
    assert sorted(chosen(tmp_path)) == sorted([*WITHOUT, *ONLY])
