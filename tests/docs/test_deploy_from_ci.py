"""The examples of the page on deployments from CI, run as a CI runs them; and every command of the documentation."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_provider_service._cli.commands import parser
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator import ServiceSimulator
from tests.instances.workflows import child, parent

from .test_documentation import BLOCKS

OF_THE_PAGE = {kind: text for page, kind, text in BLOCKS if page.name == "deploy-from-ci.md"}
ACTIONS = yaml.safe_load(OF_THE_PAGE["yaml"])
COMMAND = re.compile(r"(?:airflow service|python -m airflow_provider_service) (.*)")
COMMANDS = [
    found[1]
    for _, kind, text in BLOCKS
    if kind == "sh"
    for line in text.splitlines()
    if (found := COMMAND.search(line))
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with workflows."""
    folder = tmp_path / "checkout" / "workflows"
    folder.mkdir(parents=True)
    for definition in (child(), parent()):
        (folder / f"{definition['name']}.json").write_text(json.dumps(definition))
    return folder.parent


class Ci:
    """A shell in a checkout, with the secrets of the CI and nothing of the user's."""

    def __init__(self, checkout: Path, simulator: ServiceSimulator) -> None:
        self.summary = checkout.parent / "summary.md"
        self._checkout = checkout
        self._env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(checkout.parent),
            "AIRFLOW_HOME": str(checkout.parent / "airflow"),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "SERVICE_URL": simulator.base_url,
            "SERVICE_API_KEY": simulator.api_key,
        }

    def run(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", *options, "-c", script],
            cwd=self._checkout,
            env=self._env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )

    def job(self, name: str) -> int:
        """Run a job of the workflow file, but for its downloads; the status of the step that failed."""
        steps = [step["run"] for step in ACTIONS["jobs"][name]["steps"] if "run" in step]
        own = [step for step in steps if not step.startswith("pip install ")]
        assert len(own) == len(steps) - 1
        return next((status for step in own if (status := self.run(step, "-e").returncode)), 0)


@pytest.fixture
def ci(checkout: Path, simulator: ServiceSimulator) -> Ci:
    return Ci(checkout, simulator)


def names(client: ServiceClient) -> list[str]:
    return sorted(one.name for one in client.workflows.list())


@pytest.mark.slow
def test_the_shell_script_deploys_once(
    ci: Ci, client: ServiceClient, checkout: Path, simulator: ServiceSimulator
) -> None:
    done = ci.run(OF_THE_PAGE["sh"])

    assert done.returncode == 0, done.stderr
    assert simulator.api_key not in done.stdout + done.stderr
    assert names(client) == ["child", "parent"]
    assert not list((checkout.parent / "airflow").glob("*.db"))
    report = checkout / "plan.md"
    assert "parent" in report.read_text()
    report.unlink()
    assert ci.run(OF_THE_PAGE["sh"]).returncode == 0
    assert not report.exists()


@pytest.mark.slow
def test_the_shell_script_fails_and_changes_nothing(ci: Ci, client: ServiceClient, checkout: Path) -> None:
    (checkout / "workflows" / "child.json").unlink()

    assert ci.run(OF_THE_PAGE["sh"]).returncode == 1
    assert names(client) == []


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-e",)], ids=["sh", "sh -e"])
def test_the_shell_script_ends_with_a_failed_deployment(
    ci: Ci, client: ServiceClient, simulator: ServiceSimulator, options: tuple[str, ...]
) -> None:
    simulator.inject("status", status=500, path="/activate", times=None)

    done = ci.run(OF_THE_PAGE["sh"], *options)

    assert done.returncode == 1
    assert done.stderr.rstrip().rpartition("\n")[2].startswith("Error: the deployment failed")
    assert names(client) == []


@pytest.mark.slow
def test_the_workflow_file_plans_and_deploys(ci: Ci, client: ServiceClient) -> None:
    assert ci.job("plan") == 0
    assert "create" in ci.summary.read_text()
    assert names(client) == []

    assert ci.job("deploy") == 0
    assert names(client) == ["child", "parent"]


def test_the_workflow_file_gives_the_variables_that_the_commands_read() -> None:
    triggers: dict[str, Any] = ACTIONS[True]  # YAML reads the key "on" as a truth

    assert {*triggers} == {"pull_request", "push"}
    assert {*ACTIONS["env"]} == {"SERVICE_URL", "SERVICE_API_KEY"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_documentation_is_understood(command: str) -> None:
    words = shlex.split(re.split(r" && | \|\| ", command)[0])
    assert parser().parse_args(words).place.partition(".")[2] in words[:2]
