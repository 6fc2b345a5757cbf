"""Wheels of older commits, in folders that processes prefer to what is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
SECONDS = 300


def installed(commit: str, folder: Path) -> Path:
    """Build the wheel of a commit and install it into a folder below this one, for ``PYTHONPATH``; skip without it."""
    folder = folder / commit
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "source").mkdir(parents=True)
    if not _has(commit):
        _run("git", "fetch", "--quiet", "--unshallow", check=False)
    if not _has(commit):
        pytest.skip(f"this clone is shallow, cannot be completed, and lacks commit {commit} for the older wheel")
    _run("git", "archive", "--output", str(folder / "source.tar"), commit)
    with tarfile.open(folder / "source.tar") as archive:
        archive.extractall(folder / "source", filter="data")
    _run(str(UV), "build", "--quiet", "--wheel", "--out-dir", str(folder / "wheel"), str(folder / "source"))
    [wheel] = (folder / "wheel").glob("*.whl")
    python = ("--python", sys.executable)
    _run(str(UV), "pip", "install", "--quiet", *python, "--no-deps", "--target", str(folder / "site"), str(wheel))
    return folder / "site"


def _has(commit: str) -> bool:
    return _run("git", "cat-file", "-e", f"{commit}^{{commit}}", check=False) == 0


def _run(*command: str, check: bool = True) -> int:
    return subprocess.run(command, cwd=ROOT, check=check, timeout=SECONDS).returncode
