"""The list of commands, in Airflow and alone."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import pytest

from airflow_provider_service._cli.commands import COMMANDS, get_commands, parser
from airflow_provider_service._core.arguments import STARTS
from tests import airflow_features


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_command_has_a_module_and_a_help(cli, command):
    module = import_module(f"airflow_provider_service._cli.{command.module}")
    assert callable(getattr(module, f"perform_{command.name}"))

    ended = cli(command.name, "--help")

    assert ended.status == 0
    for flags, _ in command.options:
        assert not flags[0].startswith("-") or flags[0] in ended.out
    assert "exit status: 0 done, 1 failed, 2 wrong usage" in ended.out


@pytest.mark.parametrize("arguments", [(), ("nope",), ("plan",), ("plan", "x", "--nope")])
def test_wrong_usage(cli, arguments):
    ended = cli(*arguments)

    assert (ended.status, ended.out) == (2, "")
    assert "usage: python -m airflow_provider_service" in ended.err


@airflow_features.commands_of_providers
def test_airflow_takes_the_same_options(cli, folder, capsys):
    from airflow.cli.cli_parser import get_parser

    arguments = get_parser().parse_args(["service", "plan", str(folder), "--detailed-exitcode", "--json"])
    with pytest.raises(SystemExit) as ended:
        arguments.func(arguments)

    assert ended.value.code == 3
    assert '"outcome": "planned"' in capsys.readouterr().out
    assert [one.name for one in get_commands()[0].subcommands] == [one.name for one in COMMANDS]


@pytest.mark.parametrize("start", STARTS)
def test_every_start_method_can_be_chosen(start):
    assert parser().parse_args(["run", "Nightly sync", "--start", start]).start == start


def test_listing_the_commands_loads_hardly_anything():
    program = (
        "import sys; before = set(sys.modules); import airflow_provider_service._cli.commands;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)

    own = [one for one in done.stdout.split() if one.startswith("airflow")]
    assert own == [
        "airflow_provider_service",
        "airflow_provider_service._cli",
        "airflow_provider_service._cli.commands",
    ]
    assert not {"rich", "requests", "pydantic", "logging"} & set(done.stdout.split())
