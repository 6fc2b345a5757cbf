"""Test the provider on every Airflow version that it supports, each in an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"
nox.options.sessions = ["first_steps", "airflow"]

CONSTRAINTS = {
    "2.11": "constraints-airflow-2.11.txt",
    "3.0": "constraints-airflow-3.0.txt",
    "3.1": "constraints-airflow-3.1.txt",
    "3.2": "constraints-airflow-3.2.txt",
    "3.3": "constraints.txt",
}
# Versions of Airflow that are not released: the pinned pre-release of each is tried when somebody asks for it.
PRE_RELEASES = {"3.4": "constraints-airflow-3.4.txt"}
# What an Airflow needs although it does not say so.
KNOWN_GOOD = {
    "3.0": ("universal-pathlib<0.3", "fastapi<0.118", "cadwyn<6", "pyjwt<2.11"),
    "3.2": ("fastapi<0.137", "svcs<26"),
}
# The versions of Python that an Airflow takes, of those that the provider takes.
PYTHONS = {
    "2.11": ("3.11", "3.12"),
    "3.0": ("3.11", "3.12"),
    "3.1": ("3.11", "3.12", "3.13"),
    "3.2": ("3.11", "3.12", "3.13", "3.14"),
    "3.3": ("3.11", "3.12", "3.13", "3.14"),
    "3.4": ("3.11", "3.12", "3.13", "3.14"),
}
if pyenv := shutil.which("pyenv"):  # it offers only the chosen version, so that nox would skip the others
    questions = ("version-name",), ("versions", "--bare")
    known = [name for ask in questions for name in subprocess.check_output([pyenv, *ask], text=True).split()]
    os.environ["PYENV_VERSION"] = ":".join(dict.fromkeys(known))
# All but the simulator's own and those of the whole. Tests of what an older Airflow lacks are marked so.
FOLDERS = (
    "cli",
    "client",
    "decorators",
    "events",
    "health",
    "hooks",
    "instances",
    "lineage",
    "notifications",
    "operators",
    "package",
    "pages",
    "plugins",
    "reports",
    "rows",
    "runs",
    "testing",
    "transfers",
    "waits",
)
TESTS = tuple(f"tests/{folder}" for folder in FOLDERS)


@nox.session
@nox.parametrize(
    ("python", "version"),
    [
        nox.param(python, version, id=f"Airflow {version}, Python {python}", tags=[version])
        for version, pythons in PYTHONS.items()
        for python in pythons
    ],
)
def first_steps(session: nox.Session, version: str) -> None:
    """Follow docs/start.md with a wheel and without our constraints, and use ``airflow standalone``."""
    wheels = Path(session.create_tmp(), "wheels").resolve()
    shutil.rmtree(wheels, ignore_errors=True)
    session.run("uv", "build", "--quiet", "--wheel", "--out-dir", str(wheels), external=True)
    wanted = [f"apache-airflow=={version}.*"]
    if version in PRE_RELEASES:  # which installers take only if they are named
        wanted = re.findall(r"^apache-airflow.*==.*\d[abr].*$", Path(PRE_RELEASES[version]).read_text(), re.MULTILINE)
    session.install("pip", *wanted, *KNOWN_GOOD.get(version, ()))
    session.run("pip", "uninstall", "--quiet", "--yes", "airflow-provider-service")
    steps = ("-m", "scripts.first_steps", session.bin, str(wheels), ".nox/first-steps.md")
    session.run(sys.executable, *steps, external=True)


@nox.session
@nox.parametrize("version", [nox.param(version, id=version, tags=[version]) for version in CONSTRAINTS | PRE_RELEASES])
def airflow(session: nox.Session, version: str) -> None:
    """Run the tests on one version; what follows ``--`` goes to pytest."""
    constraints = (CONSTRAINTS | PRE_RELEASES)[version]
    session.install("--constraint", constraints, "--editable", ".[parquet,simulator]", "--group", "test")
    run_tests(session, TESTS)


@nox.session
@nox.parametrize("version", [*CONSTRAINTS], ids=[*CONSTRAINTS])
def wheel(session: nox.Session, version: str) -> None:
    """Use a built wheel beside one version of Airflow; takes the wheel's folder and its version."""
    folder, number = session.posargs
    wanted = f"airflow-provider-service[parquet,simulator]=={number}"
    # From the folder rather than by its path, which the environment would keep.
    session.install(
        "--reinstall-package",
        "airflow-provider-service",
        "--refresh-package",
        "airflow-provider-service",
        "--find-links",
        folder,
        "--constraint",
        CONSTRAINTS[version],
        wanted,
    )
    home = Path(session.create_tmp(), "airflow").resolve()
    session.run("python", "-P", "scripts/release/smoke.py", number, env={"AIRFLOW_HOME": str(home)})


@nox.session
def floors(session: nox.Session) -> None:
    """Test the client with the lowest versions of all direct dependencies."""
    lowest = Path(session.create_tmp(), "lowest.txt")
    session.run(
        *("uv", "pip", "compile", "pyproject.toml", "--all-extras", "--resolution", "lowest-direct"),
        *("--python-version", "3.11", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet"),
        *("--output-file", str(lowest)),
        external=True,
    )
    session.install("--constraint", str(lowest), "--editable", ".[parquet,simulator]", "--group", "test")
    run_tests(session, ("tests/client",))


def run_tests(session: nox.Session, tests: Sequence[str]) -> None:
    """Run these tests, or what was given after ``--``, and those that fail once more, alone."""
    in_parallel = ("--numprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder")
    session.run("python", "-m", "scripts.retest", *(session.posargs or tests), "--first", *in_parallel)


@nox.session(venv_backend="none")
def pins(session: nox.Session) -> None:
    """Pin the newest patch of each older version, and the newest of what it needs."""
    for version, constraints in (CONSTRAINTS | PRE_RELEASES).items():
        if constraints == "constraints.txt":  # of development as a whole
            continue
        wanted = Path(session.create_tmp(), "airflow.txt")
        wanted.write_text("\n".join([f"apache-airflow=={version}.*", *KNOWN_GOOD.get(version, ())]))
        session.run(
            *("uv", "pip", "compile", "pyproject.toml", "--all-extras", "--group", "test"),
            *("--constraint", str(wanted), "--upgrade", "--python-version", "3.11"),
            *("--quiet", "--no-emit-index-url", "--no-header", "--no-annotate", "--output-file", constraints),
            external=True,
        )
