"""The plugin of ``make test-delays``: it delays every simulator, and says how to repeat a failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# More requests than a seed leaves alone, and less time than the shortest delay.
IN_A_HURRY = """
import time
import pytest
import requests
from airflow_provider_service.simulator import ServiceSimulator

@pytest.mark.parametrize("path", ["/healthz"])
def test_in_a_hurry(path, pytestconfig):
    with ServiceSimulator() as simulator, requests.Session() as session:
        simulator.reset()
        took = []
        for _ in range(20):
            began = time.monotonic()
            session.get(simulator.base_url + path)
            took.append(time.monotonic() - began)
    print("next chance:", pytestconfig.pluginmanager.get_plugin("delayed-answers").chance.random())
    assert max(took) < 0.05

def test_that_asks_nothing():
    pass
"""


def run_with_delays(test: Path, *options: str) -> tuple[str, str]:
    """Run a test that fails; return the seed, and what the next request would have been given."""
    # Names of tests begin below the root, which pytest would look for above this checkout and the test.
    command = [sys.executable, "-m", "pytest", "-p", "tests.delays", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(test.parent), *options, str(test)]
    # Some of the plugins that are installed beside these take a second to import.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    shown = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
    ).stdout
    assert "1 failed, 1 passed" in shown
    [seed] = re.findall(r"delayed at random, SEED=([0-9]+)$", shown, re.MULTILINE)
    [repeat] = re.findall(r"^to repeat it: (.*)$", shown, re.MULTILINE)
    assert re.fullmatch(rf"make test-delays SEED={seed} ONLY=test_hurry\.py::test_in_a_hurry", repeat)
    [chance] = re.findall(r"^next chance: (.*)$", shown, re.MULTILINE)
    return seed, chance


@pytest.mark.slow
def test_a_failure_names_the_seed_that_repeats_it(tmp_path: Path) -> None:
    test = tmp_path / "test_hurry.py"
    test.write_text(IN_A_HURRY)

    seed, chance = run_with_delays(test, "-n", "2")

    assert run_with_delays(test, "--delays-seed", seed) == (seed, chance)
    assert run_with_delays(test, "--delays-seed", "3")[1] != chance
