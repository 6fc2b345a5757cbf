"""The list of commands, in Airflow and alone."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from typing import get_args

import pytest

from airflow_provider_service import __version__
from airflow_provider_service._cli.commands import _EXECUTION_STATUSES, COMMANDS, GROUPS, get_commands, parser
from airflow_provider_service._core.arguments import STARTS
from airflow_provider_service.client._constraints import ExecutionStatus
from airflow_provider_service.hooks.service import ServiceHook
from tests import airflow_features
from tests.docs.test_metrics_page import DOCS

EACH = pytest.mark.parametrize("command", COMMANDS, ids=lambda one: f"{one.group} {one.name}".strip())
WITH_OPERATOR = [command for command in COMMANDS if command.operator]
#: Options that only a command has; docs/command-line.md lists those of them that stand for an argument.
OWN = {
    *("conn_id", "uri", "json", "verbose", "yes", "detailed_exitcode", "source_uri", "no_wait", "output", "name"),
    *("workflow", "status", "limit", "follow", "connection", "version"),
}


def operator_of(command):
    module, name = command.operator.split(".")
    return getattr(import_module(f"airflow_provider_service.operators.{module}"), name)


def words_of(command):
    return [*command.group.split(), command.name]


@EACH
def test_every_command_has_a_module_and_a_help(cli, command):
    module, name = command.place.split(".")
    assert callable(getattr(import_module(f"airflow_provider_service._cli.{module}"), f"perform_{name}"))

    ended = cli(*words_of(command), "-h")

    assert ended.status == 0
    for flags, _ in command.options:
        assert not flags[0].startswith("-") or flags[0] in ended.out
    assert "exit status: 0 done, 1 failed, 2 wrong usage" in ended.out
    assert "%(" not in ended.out


@EACH
def test_each_help_has_two_examples_that_can_be_called(cli, command):
    program = " ".join(["python -m airflow_provider_service", *words_of(command)])
    shown = [line.strip() for line in cli(*words_of(command), "--help").out.splitlines() if line.startswith("  python")]

    assert len(shown) == 2
    for line in shown:
        assert line.startswith(program)
        call, _, _ = line.removeprefix("python -m airflow_provider_service").partition(" > ")
        arguments = parser().parse_args(shlex.split(call))
        assert arguments.place == command.place


@pytest.mark.parametrize("command", WITH_OPERATOR, ids=lambda one: one.name)
def test_options_are_arguments_of_the_operator_with_its_defaults_and_its_words(command):
    theirs = inspect.signature(operator_of(command).__init__).parameters
    of_hook = inspect.signature(ServiceHook.run_workflow).parameters
    for flags, settings in command.options:
        name = next(reversed(flags)).lstrip("-").replace("-", "_")
        assert name in OWN or name in theirs or (command.place.startswith("run.") and name in of_hook), name
        if name in theirs and name != "poll_interval" and settings.get("action") != "store_true":
            default = theirs[name].default
            expected = None if default is inspect.Parameter.empty else list(default) if default == () else default
            assert settings.get("default") == expected, name
    texts = {flags[0]: settings["help"] for flags, settings in command.arguments}
    assert all(texts.values())
    for text in texts.values():
        assert not re.search(r"``|\(the default\)\.|by default$|timedelta|^True to", text), text


def test_the_words_of_an_operator_name_options():
    [deploy] = [command for command in COMMANDS if command.name == "deploy"]

    texts = {flags[0]: " ".join(settings["help"].split()) for flags, settings in deploy.arguments}

    assert texts["--project-name"] == "exact name of that project, instead of its id"
    assert texts["--archive-missing"] == "archive recorded workflows that no longer have a definition"
    assert "with which --archive-missing archives all" in texts["--allow-empty"]


def test_options_that_are_no_arguments_are_in_the_documentation():
    page = (DOCS / "command-line.md").read_text()

    for name in ("no_wait", "output", "poll_interval"):
        assert f"`--{name.replace('_', '-')}" in page.partition("They are named like")[2].partition("```")[0]


@pytest.mark.parametrize(
    "arguments", [(), ("nope",), ("plan",), ("plan", "x", "--nope"), ("executions",), ("logs", "abc")]
)
def test_wrong_usage(cli, arguments):
    ended = cli(*arguments)

    assert (ended.status, ended.out) == (2, "")
    assert "usage: python -m airflow_provider_service" in ended.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("executions", "view", "7"), "executions show"),
        (("cancel", "7"), "executions stop"),
        (("rerun", "7"), "executions retry"),
        (("runs",), "executions"),
        (("workflows", "search"), "workflows list"),
        (("deploy", "workflows", "--dry-run"), "--preview"),
        (("diff", "workflows"), "plan"),
        (("deplyo", "workflows"), "deploy"),
        (("run", "Count", "--workflow-nme", "x"), "--workflow-name"),
        (("executions", "list", "--status", "failed"), "error"),
        (("executions", "list", "--status", "sucess"), "success"),
    ],
)
def test_what_was_probably_meant(cli, words, meant):
    ended = cli(*words)

    assert ended.status == 2
    assert ended.err.endswith(f"; did you mean {meant}?\n")


def test_a_name_without_quotes_is_no_option(cli):
    assert "unrecognized arguments: workflow; see " in cli("run", "My", "workflow").err


@pytest.mark.parametrize("words", [(), ("executions",)])
def test_without_a_command_there_is_help(cli, words):
    ended = cli(*words)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == cli(*words, "--help").out


def test_an_option_that_is_unknown_shows_the_usage_of_its_command(cli):
    ended = cli("executions", "stop", "7", "--xyz")

    assert "usage: python -m airflow_provider_service executions stop ID [options]\n" in ended.err
    assert ended.err.endswith("--xyz; see python -m airflow_provider_service executions stop --help\n")


@pytest.mark.parametrize("option", ["--keep", "--max-unpacked-bytes"])
@pytest.mark.parametrize("value", ["abc", "0", "-1", "1.5"])
def test_numbers_that_are_none(cli, option, value):
    command = "backup" if option == "--keep" else "restore"

    assert f"'{value}' is not a whole number above 0" in cli(command, "a.zip", f"{option}={value}").err


def test_the_version(cli):
    assert cli("--version")[:2] == (0, f"airflow-provider-service {__version__}\n")


def test_every_status_of_an_execution_can_be_chosen():
    assert set(_EXECUTION_STATUSES) == set(get_args(ExecutionStatus))


@airflow_features.commands_of_providers
def test_airflow_takes_the_same_options(cli, folder, capsys):
    from airflow.cli.cli_parser import get_parser

    arguments = get_parser().parse_args(["service", "plan", str(folder), "--detailed-exitcode", "--json"])
    with pytest.raises(SystemExit) as ended:
        arguments.func(arguments)

    assert ended.value.code == 3
    assert '"outcome": "planned"' in capsys.readouterr().out
    [service] = get_commands()
    found = [(one.name, [two.name for two in getattr(one, "subcommands", [])]) for one in service.subcommands]
    assert found == [
        *((command.name, []) for command in COMMANDS if not command.group),
        *((group, [command.name for command in COMMANDS if command.group == group]) for group in GROUPS),
    ]


@airflow_features.commands_of_providers
def test_airflow_shows_the_same_help(capsys):
    from airflow.cli.cli_parser import get_parser

    with pytest.raises(SystemExit):
        get_parser().parse_args(["service", "executions", "list", "-h"])

    shown = capsys.readouterr().out
    assert "airflow service executions list --status running waiting\n" in shown
    assert "only those of this workflow, by its exact name or its" in shown
    assert max(map(len, shown.splitlines())) <= 100


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
