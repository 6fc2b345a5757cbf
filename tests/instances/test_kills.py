"""A worker is killed outright in the middle of a deployment: the next attempt produces the expected state.

It does so whatever the last request was that the service received, and after a real kill at a random time.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import pytest

from airflow_provider_service.client.errors import ServiceError

from .conftest import moments
from .workflows import child, parent, webhook, workflow

SCRIPT = """
import json, sys
from airflow_provider_service.client import ServiceClient, ServiceConfig
from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.plan import DeploymentTarget, make_plan
from airflow_provider_service._core.instances.source import read_source

with ServiceClient(ServiceConfig(base_url=sys.argv[1], api_key=sys.argv[2])) as client:
    target = DeploymentTarget(client)
    apply_plan(make_plan(read_source(json.load(sys.stdin)), target), target)
"""
WRITES = 14


def source(version: str):
    return [
        child(description=version, tags=[version]),
        parent(f"parent-{version}"),
        workflow("a", webhook(f"a-{version}"), active=True, tags=["kept", version]),
        workflow("b", webhook(f"b-{version}")),
    ]


def without_new_ids(files):
    """Workflows by file, without the ids that the service has generated for their nodes."""
    held = {name: json.loads(text) for name, text in files.items()}
    for one in (one for definition in held.values() for one in (definition, *definition["nodes"])):
        one.pop("id")
        one.pop("webhookId", None)
    return held


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "changed"])
def test_the_next_attempt_finishes_whatever_the_last_request_was(simulator, deploy, files, is_new):
    def begin():
        simulator.reset()
        if not is_new:
            deploy(source("one"))
        simulator.clear_requests()

    begin()
    deploy(source("two"))
    after = moments(simulator)
    expected = without_new_ids(files())
    assert len(after) > 8
    for last in after:
        begin()
        simulator.inject("status", status=403, times=None, skip=last)
        with pytest.raises(ServiceError):
            deploy(source("two"))
        simulator.clear_faults()
        deploy(source("two"))
        assert without_new_ids(files(folder=str(last))) == expected, last
        assert deploy(source("two")) == {"unchanged": ["a", "b", "child", "parent"]}


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "changed"])
@pytest.mark.parametrize("seed", range(2))
def test_the_next_attempt_finishes_what_was_killed(simulator, client, deploy, files, tmp_path, seed, is_new):
    if not is_new:
        deploy(source("one"))
    folder = tmp_path / "source"
    folder.mkdir()
    for one in source("two"):
        (folder / f"{one['name']}.json").write_text(json.dumps(one))
    simulator.clear_requests()
    simulator.inject("latency", seconds=0.02, times=None)
    before = random.Random(seed).randrange(WRITES)
    command = [sys.executable, "-c", SCRIPT, simulator.base_url, simulator.api_key]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    with process.stdin as given:
        json.dump(source("two"), given)
    while process.poll() is None and sum(one.method != "GET" for one in simulator.requests) < before:
        time.sleep(0.005)
    process.kill()
    process.wait()
    time.sleep(0.5)  # Airflow starts the next attempt later, when nothing is on its way any more
    simulator.clear_faults()
    deploy(str(folder))
    assert [one.name for one in sorted(client.workflows.list(), key=lambda one: one.name)] == [
        "a",
        "b",
        "child",
        "parent",
    ]
    assert deploy(str(folder)) == {"unchanged": ["a", "b", "child", "parent"]}
    held = {name: json.loads(text) for name, text in files().items()}
    assert {name: one["active"] for name, one in held.items()} == {
        "a.json": True,
        "b.json": False,
        "child.json": True,
        "parent.json": True,
    }
    assert held["a.json"]["tags"] == ["kept", "two"]
    assert held["b.json"]["nodes"][0]["parameters"]["path"] == "b-two"
