"""Build what is released into ``dist``, and check it: ``make release``.

What is committed is built, not what lies in the work tree. A version that the changelog calls unreleased is rehearsed:
its files are in ``dist/rehearsal``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.release.contents import mistakes_in
from scripts.release.metadata import missing_addresses
from scripts.release.versions import read_version

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.executable).parent


def main(versions_of_airflow: Sequence[str]) -> int:
    """Build and check a release; the exit status is 0 only if everything is as it must be."""
    if missing := missing_addresses(os.environ):
        return _refuse(f"Set {' and '.join(missing)} to the https addresses where the release will be found.")
    try:
        version = read_version(ROOT)
    except ValueError as error:
        return _refuse(str(error))
    dist = ROOT / "dist" if version.is_dated else ROOT / "dist" / "rehearsal"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        first, second = (_build(Path(folder, name)) for name in ("first", "second"))
        if _hashes(first) != _hashes(second):
            return _refuse(f"Two builds differ: {_hashes(first)} and {_hashes(second)}.")
        shutil.copytree(first, dist)
    wheel, sdist = next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))
    _run(BIN / "twine", "check", "--strict", wheel, sdist)
    _run(BIN / "check-wheel-contents", wheel)
    if found := mistakes_in(wheel, sdist, version.number):
        return _refuse("\n".join(found))
    for airflow in versions_of_airflow:
        _run(BIN / "nox", "--sessions", f"wheel({airflow})", "--", dist, version.number)
    bill = dist / f"{wheel.name.split('-py3')[0]}.cdx.json"
    python = ROOT / ".nox" / f"wheel-{versions_of_airflow[-1].replace('.', '-')}" / "bin" / "python"
    _run(
        BIN / "cyclonedx-py",
        "environment",
        python,
        "--pyproject",
        ROOT / "pyproject.toml",
        "--mc-type",
        "library",
        "--output-reproducible",
        "--output-file",
        bill,
    )
    if "file://" in bill.read_text():
        return _refuse(f"{bill} names folders of this machine.")
    sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(_hashes(dist).items()))
    (dist / "SHA256SUMS").write_text(sums)
    print(sums, end="")
    print(
        f"{version.number} is in {dist}."
        if version.is_dated
        else f"This was a rehearsal: CHANGELOG.md gives {version.number} no date. The files are in {dist}."
    )
    return 0


def _build(folder: Path) -> Path:
    """Build the commit in a folder of its own; returns the folder of the files."""
    folder.mkdir()
    archive = folder / "source.tar"
    _run("git", "archive", "--output", archive, "HEAD", quiet=True)
    shutil.unpack_archive(archive, folder / "source", filter="data")
    moment = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    _run(
        BIN / "uv",
        "build",
        "--quiet",
        "--build-constraints",
        ROOT / "constraints.txt",
        "--out-dir",
        folder / "dist",
        folder / "source",
        SOURCE_DATE_EPOCH=moment.stdout.strip(),
    )
    for other in (folder / "dist").glob(".gitignore"):
        other.unlink()
    return folder / "dist"


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def _run(*command: str | Path, quiet: bool = False, **environ: str) -> None:
    arguments = [str(one) for one in command]
    if not quiet:
        print("+", *arguments, flush=True)
    subprocess.run(arguments, cwd=ROOT, check=True, env={**os.environ, **environ})


def _refuse(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except subprocess.CalledProcessError as error:
        sys.exit(_refuse(f"Failed with status {error.returncode}: {' '.join(error.cmd)}"))
