"""The workflow files of a public host of continuous integration call the targets of the Makefile, and nothing else."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxfile import CONSTRAINTS
from tests.live.servers import GENERATIONS

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
SYSTEM = "apt-get update"


def jobs() -> dict[str, dict[str, Any]]:
    return {name: job for file in FILES for name, job in yaml.safe_load(file.read_text())["jobs"].items()}


def commands(job: dict[str, Any]) -> list[str]:
    """What the steps of a job run, once for each target of its matrix."""
    runs = [step["run"] for step in job["steps"] if "run" in step]
    targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
    return [run.replace("${{ matrix.target }}", target) for run in runs for target in targets]


@pytest.mark.parametrize("name", jobs())
def test_a_job_calls_targets(name: str) -> None:
    called = [shlex.split(command) for command in commands(jobs()[name]) if command != SYSTEM]

    assert called
    assert {words[0] for words in called} == {"make"}
    assert {words[1] for words in called} <= TARGETS


def test_every_supported_version_is_tested() -> None:
    versions = {name: job["strategy"]["matrix"] for name, job in jobs().items() if "strategy" in job}

    assert versions["airflow"]["airflow"] == [*CONSTRAINTS]
    assert sorted(versions["server"]["server"]) == sorted(GENERATIONS)
