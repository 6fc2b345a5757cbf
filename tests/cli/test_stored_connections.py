"""Commands find a connection that is stored in Airflow's database, without any variable of the environment."""

from __future__ import annotations

import json
import os

import pytest

from airflow_provider_service._cli.commands import COMMANDS
from tests import airflow_features
from tests.cli.test_processes import ALONE, WITH_AIRFLOW, call
from tests.conftest import AIRFLOW_HOME
from tests.runs.workflows import put, puts_out, webhook

SECRET = "secret-of-the-hook"


@pytest.fixture(scope="module")
def stored_connections(database, running_simulator, running_second):
    """Two instances and the authentication of a webhook, which Airflow's own command has stored in its database."""
    from airflow.cli.cli_parser import get_parser

    def airflow(*words: str) -> None:
        arguments = get_parser().parse_args(["connections", *words])
        arguments.func(arguments)

    connections = {
        "n8n_default": running_simulator.connection_json(),
        "production": running_second.connection_json(),
        "orders": json.dumps({"conn_type": "http", "login": "X-Token", "password": SECRET}),
    }
    for name, fields in connections.items():
        airflow("add", name, "--conn-json", fields)
    yield
    for name in connections:
        airflow("delete", name)


@pytest.fixture
def stored(stored_connections, simulator, second, monkeypatch):
    """Those connections, and no others."""
    monkeypatch.delenv("AIRFLOW_CONN_SERVICE_DEFAULT")
    monkeypatch.delenv("AIRFLOW_CONN_PRODUCTION")


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [ALONE, pytest.param(WITH_AIRFLOW, marks=airflow_features.commands_of_providers)],
    ids=["alone", "airflow"],
)
def test_a_process_finds_a_stored_connection(simulator, stored, program):
    done = call(AIRFLOW_HOME, *program, "doctor")

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Instance: {simulator.base_url} (n8n_default)" in done.stderr
    assert "Latest runs from Airflow." in done.stdout


@pytest.fixture
def guarded(simulator):
    """A workflow whose webhook asks for authentication."""
    own = simulator.in_loop(
        lambda: simulator.state.credentials.create("hook", "httpHeaderAuth", {"name": "X-Token", "value": SECRET})
    )
    node = {**webhook(authentication="headerAuth"), "credentials": {"httpHeaderAuth": {"id": own["id"], "name": "h"}}}
    return put(simulator, node, puts_out("={{ {} }}"), name="Guarded")


@pytest.mark.parametrize("command", [f"{command.group} {command.name}".strip() for command in COMMANDS])
def test_each_command_finds_stored_connections(cli, simulator, stored, guarded, folder, tmp_path, command):
    simulator.create_webhook_workflow("Plain", path="plain")
    archive = tmp_path / "backup.zip"
    execution_id = simulator.start_execution(guarded, status="error")
    if command == "restore":
        assert cli("backup", archive).status == 0
    from_stored = ("--source-conn-id", "n8n_default", "--conn-id", "production")
    arguments = {
        "doctor": (),
        "plan": (folder,),
        "deploy": (folder, "--yes"),
        "export": (tmp_path / "exported",),
        "promote": ("--workflow-names", "Plain", *from_stored, "--yes"),
        "backup": (archive,),
        "restore": (archive, "--preview"),
        "audit": (),
        "run": ("Guarded", "--webhook-conn-id", "orders", "--poll-interval", "0.05"),
        "logs": (execution_id,),
        "workflows list": (),
        "executions list": (),
        "executions show": (execution_id,),
        "executions stop": (execution_id,),
        "executions retry": (execution_id, "--no-wait"),
    }

    ended = cli(*command.split(), *arguments[command])

    assert ended.status == 0, ended.out + ended.err
    assert f": {simulator.base_url} (n8n_default)" in ended.err


def test_what_a_command_sets_for_that_does_not_outlast_it(cli, stored):
    assert cli("doctor").status == 0

    assert "_AIRFLOW_PROCESS_CONTEXT" not in os.environ
    assert cli("plan", "/nowhere").status != 0
    assert "_AIRFLOW_PROCESS_CONTEXT" not in os.environ
