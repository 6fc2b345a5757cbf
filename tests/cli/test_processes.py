"""The command line as users call it: as a process, where Airflow has no database."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests import airflow_features
from tests.instances.workflows import child, parent
from tests.polling import wait_until

ALONE = (sys.executable, "-m", "airflow_provider_service")
WITH_AIRFLOW = (sys.executable, "-m", "airflow", "service")


def call(home: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Perform a command in a home of Airflow that has never been used."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "SERVICE_"))}
    env = {**kept, "AIRFLOW_HOME": str(home), **variables}
    return subprocess.run(
        [str(one) for one in words], capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=300
    )


@pytest.mark.slow
@airflow_features.commands_of_providers
def test_files_are_deployed_without_a_database(simulator, client, folder, tmp_path):
    """As a command of Airflow; tests/docs/test_deploy_from_ci.py does the same without Airflow's command."""
    variables = {"SERVICE_URL": simulator.base_url, "SERVICE_API_KEY": simulator.api_key}

    done = call(tmp_path / "home", *WITH_AIRFLOW, "deploy", folder, "--yes", "--json", **variables)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["created"] == ["child", "parent"]
    assert sorted(one.name for one in client.workflows.list()) == ["child", "parent"]
    assert not list((tmp_path / "home").glob("*.db"))
    assert simulator.api_key not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_process_that_is_told_to_end_says_what_keeps_running(simulator, client, tmp_path):
    simulator.create_webhook_workflow("Slow", path="slow", behaviour="long", seconds=60)
    home = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW_CONN_SERVICE_DEFAULT": simulator.connection_json()}
    process = subprocess.Popen(
        [*ALONE, "run", "Slow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **home}
    )
    assert process.stderr is not None
    assert any("Execution 1 was started" in line for line in process.stderr)

    process.terminate()
    _, errors = process.communicate(timeout=300)

    assert process.returncode == 130
    assert "The execution keeps running" in errors
    assert client.executions.get("1").status == "running"


@pytest.fixture
def half_deployed(simulator, cli, folder, tmp_path):
    """``half_deployed(stderr=...)`` begins to change two workflows, and returns its process when both have new drafts.

    The service answers slowly from then on.
    """
    assert cli("deploy", folder, "--yes").status == 0
    (folder / "child.json").write_text(json.dumps(child(settings={"timezone": "Asia/Tokyo"})))
    (folder / "parent.json").write_text(json.dumps(parent("other")))
    simulator.clear_requests()
    simulator.inject("latency", method="PUT", seconds=1, times=None, after_processing=True)
    home = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW_CONN_SERVICE_DEFAULT": simulator.connection_json(), "TERM": "dumb"}
    begun = []

    def begin(**options: object) -> subprocess.Popen[str]:
        command = [*ALONE, "deploy", str(folder), "--yes"]
        begun.append(subprocess.Popen(command, text=True, env={**os.environ, **home}, **options))
        wait_until(lambda: sum(one.method == "PUT" for one in simulator.requests) == 2, what="both drafts")
        return begun[0]

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def has_both_as_before(client):
    before = {"child": (None, None), "parent": (None, "parent")}
    return before == {
        one.name: (one.settings.get("timezone"), one.nodes[0]["parameters"].get("path"))
        for one in map(client.workflows.get, [one.id for one in client.workflows.list()])
    }


def test_a_second_signal_does_not_end_the_rollback_of_a_deployment(client, half_deployed):
    process = half_deployed(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    process.send_signal(signal.SIGINT)
    while "rolling back" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=300)

    assert has_both_as_before(client)
    assert process.returncode == 130
    assert "Rolling back; please wait" in errors
    assert errors.endswith("Error: interrupted\n")


def begin_session() -> None:
    """Take the terminal, and do not ignore its end even if these tests do, as under nohup."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.slow
def test_a_deployment_whose_terminal_is_gone_is_rolled_back(client, half_deployed):
    terminal, its_end = os.openpty()
    process = half_deployed(
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        start_new_session=True,
        preexec_fn=begin_session,
    )
    os.close(its_end)

    os.close(terminal)

    assert process.wait(timeout=300) == 130
    assert has_both_as_before(client)


@pytest.mark.slow
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["lines", "json"])
def test_a_reader_that_leaves_does_not_end_a_deployment(simulator, client, folder, tmp_path, form):
    home = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW_CONN_SERVICE_DEFAULT": simulator.connection_json()}
    process = subprocess.Popen(
        [*ALONE, "deploy", str(folder), "--yes", *form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **home},
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=300)

    assert process.returncode == 0, errors
    assert "Error" not in errors
    assert "Traceback" not in errors
    assert sorted(one.name for one in client.workflows.list()) == ["child", "parent"]


@pytest.mark.slow
def test_the_status_of_a_process(simulator, folder, tmp_path):
    variable = {"AIRFLOW_CONN_SERVICE_DEFAULT": simulator.connection_json()}

    plan = call(tmp_path / "home", *ALONE, "plan", folder, "--detailed-exitcode", **variable)
    assert (plan.returncode, plan.stdout.splitlines()[0]) == (3, "Plan: create 2, activate 2")
    absent = call(tmp_path / "home", *ALONE, "plan", folder)
    assert absent.returncode == 1
    error = absent.stderr.splitlines()[-1]
    assert error.startswith("Error: connection: 'service_default' cannot be used: Airflow has no such connection")
    assert error.endswith("; or set SERVICE_URL and SERVICE_API_KEY, or give --conn-id")


def test_output_of_libraries_does_not_damage_the_json(simulator, folder, tmp_path):
    # Airflow prints a warning on standard output if a key is too short to be masked.
    variables = {"SERVICE_URL": simulator.base_url, "SERVICE_API_KEY": "abc"}

    done = call(tmp_path / "home", *ALONE, "plan", folder, "--json", **variables)

    assert done.returncode == 1
    assert "key was refused" in json.loads(done.stdout)["error"]
