"""The commands and their options. Airflow imports this module to list its commands, so it loads hardly anything."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

_DEFAULT_CONNECTION = "service_default"
_STATUSES = "exit status: 0 done, 1 failed, 2 wrong usage"
_STATUSES_OF_PLANS = f"{_STATUSES}; with --detailed-exitcode, 3 if there are changes"


#: The flags of an option or an argument, and the other arguments of ``ArgumentParser.add_argument``.
Option = tuple[tuple[str, ...], dict[str, Any]]


class Command(NamedTuple):
    """A command, which a function ``perform_`` and its name in a module of this package performs."""

    name: str
    module: str
    help: str
    options: tuple[Option, ...]
    statuses: str = _STATUSES


def _option(*flags: str, **settings: Any) -> Option:
    return flags, settings


def _flag(name: str, text: str) -> Option:
    return _option(name, action="store_true", help=text)


def _named(what: str, prefix: str = "", text: str = "") -> tuple[Option, Option]:
    return (
        _option(f"--{prefix}{what}-id", metavar="ID", help=f"id of the {text or what}"),
        _option(f"--{prefix}{what}-name", metavar="NAME", help=f"exact name of the {text or what}, instead of its id"),
    )


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text == "yes"


def _seconds(text: str) -> float:
    if not 0 < (value := float(text)) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _count(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


_SHARED = (
    _option("--conn-id", metavar="ID", help=f"id of the Airflow connection ({_DEFAULT_CONNECTION})"),
    _option("--uri", help="the connection itself, as an Airflow connection URI or as its JSON"),
    _flag("--json", "print the result as JSON; everything else goes to the standard error"),
    _flag("--verbose", "print all log lines, and the traceback of an error"),
)
_YES = _flag("--yes", "skip all confirmations; required without a terminal")
_REPORT = _option("--report-path", metavar="PATH", help="file for a report: .md, .html or .json")
_ACTIVATE = _option(
    "--activate",
    type=_yes_or_no,
    metavar="yes|no",
    help="activate or deactivate all workflows; default: as in the source",
)
_ARCHIVE = _option("path", help="the archive: a path, or an address of object storage, that ends in .zip")
_POLLS = _option("--poll-interval", type=_seconds, default=2.0, help="seconds between two polls (default: %(default)g)")
_CATEGORIES = ("credentials", "database", "nodes", "filesystem", "instance")
_KINDS = ("tags", "projects", "variables", "credentials", "data_tables", "workflows")
_PREVIEW = _flag("--preview", "stop after the plan")
_DETAILED = _flag("--detailed-exitcode", "exit with status 3 instead of 0 if the plan has changes")
_MAPPING = _option(
    "--mapping", metavar="FILE", help="YAML or JSON file with the names and values that differ in the instance"
)
_RECORD = (
    _option("--deployment-name", metavar="NAME", help="name under which the instance records the deployed workflows"),
    _flag("--archive-missing", "archive workflows that this name deployed before and that are missing now"),
    _flag("--allow-empty", "accept a source without workflows, with which --archive-missing archives all of them"),
)
_SOURCE = (
    _option("source", nargs="+", help="folders, .json files, or addresses of object storage"),
    _flag("--from-file-names", "give a workflow without a name the name of its file"),
)
_TARGET = (*_named("project"), *_named("folder", "parent-", "folder in which new workflows are created"))
_SELECTION = (
    _option("--workflow-names", nargs="+", metavar="NAME", help="exact names of the workflows"),
    *_named("tag", text="tag that the workflows have"),
    *_named("project", text="project of the workflows"),
)

COMMANDS = (
    Command(
        "doctor",
        "doctor",
        "examine a connection: reachable, clock, plan, MCP, bridge, and permissions of the key",
        (_option("connection", nargs="?", metavar="CONN_ID", help="the same as --conn-id"),),
    ),
    Command(
        "plan",
        "deploying",
        "show the changes that a deployment of workflow files would make",
        (*_SOURCE, *_TARGET, *_RECORD, _MAPPING, _ACTIVATE, _REPORT, _DETAILED),
        _STATUSES_OF_PLANS,
    ),
    Command(
        "deploy",
        "deploying",
        "deploy workflow files: all of them, or none",
        (*_SOURCE, *_TARGET, *_RECORD, _MAPPING, _ACTIVATE, _REPORT, _YES),
    ),
    Command(
        "export",
        "deploying",
        "write all workflows, or those that are selected, to a separate file each",
        (
            _option("path", help="folder, or address of object storage"),
            *_SELECTION,
            _flag("--code-files", "write code of several lines to separate files"),
            _flag("--pinned-data", "include the pinned data of nodes, which is often real data"),
            _flag("--remove-stale", "remove files of workflows that were renamed, or are not exported any more"),
            _flag("--allow-empty", "remove them even if the service returns no workflow to export"),
            _YES,
        ),
    ),
    Command(
        "promote",
        "deploying",
        "deploy the selected workflows of one instance to another: all of them, or none",
        (
            _option("--source-conn-id", metavar="ID", help="id of the Airflow connection of the instance to read from"),
            _option("--source-uri", metavar="URI", help="that connection itself"),
            *_SELECTION,
            *_named("project", "destination-", "project to deploy to"),
            *_RECORD,
            _MAPPING,
            _ACTIVATE,
            _REPORT,
            _PREVIEW,
            _DETAILED,
            _YES,
        ),
        _STATUSES_OF_PLANS,
    ),
    Command(
        "backup",
        "instances",
        "write the contents of an instance to one archive",
        (
            _ARCHIVE,
            _option("--keep", type=_count, metavar="N", help="delete all but the newest N backups in the folder"),
            _flag("--allow-empty", "replace or delete older backups even if the new one lacks what they hold"),
            _REPORT,
            _YES,
        ),
    ),
    Command(
        "restore",
        "instances",
        "bring an instance in line with a backup",
        (
            _ARCHIVE,
            _option(
                "--on-conflict",
                choices=("fail", "skip", "update"),
                default="fail",
                help="how to treat existing objects that differ (default: %(default)s)",
            ),
            _option("--kinds", nargs="+", choices=_KINDS, help="kinds of objects to restore; default: all"),
            _option("--names", nargs="+", metavar="NAME", help="exact names of the objects to restore; default: all"),
            _MAPPING,
            _ACTIVATE,
            _flag("--allow-empty", "update tables of which the archive has no rows, which deletes all of theirs"),
            _option(
                "--max-unpacked-bytes",
                type=_count,
                default=10 * 1024**3,
                metavar="BYTES",
                help="size that the archive may have when it is unpacked (default: 10 GiB)",
            ),
            _REPORT,
            _PREVIEW,
            _DETAILED,
            _YES,
        ),
        _STATUSES_OF_PLANS,
    ),
    Command(
        "audit",
        "instances",
        "audit an instance; exit status 1 if it has findings in a category of --fail-on",
        (
            _option("--categories", nargs="+", choices=_CATEGORIES, help="categories to audit (default: all)"),
            _option(
                "--days-abandoned-workflow",
                type=_count,
                metavar="DAYS",
                help="days without an execution after which a workflow counts as abandoned",
            ),
            _option("--fail-on", nargs="+", choices=_CATEGORIES, default=(), help="fail on findings in these"),
            _option("--timeout", type=_seconds, default=300.0, help="seconds to wait (default: %(default)g)"),
            _REPORT,
        ),
    ),
    Command(
        "run",
        "run",
        "start a workflow, wait for it, and show its nodes as they end",
        (
            _option("workflow_name", nargs="?", metavar="NAME", help="exact name of the workflow"),
            _option("--workflow-id", metavar="ID", help="id of the workflow, instead of its name"),
            *_named("project", text="project in which the name is looked up"),
            _option("--payload", help="input of the trigger: JSON, or @FILE, or - for the standard input"),
            _option("--trigger-node", metavar="NODE", help="name of the trigger, if several could start the workflow"),
            _option("--webhook-conn-id", metavar="ID", help="Airflow connection with the webhook's own authentication"),
            _flag("--activate", "activate the workflow if it is not active, which publishes its draft"),
            _option("--start", choices=("auto", "webhook", "mcp", "bridge"), default="auto", help="how to start it"),
            _option("--mode", choices=("production", "manual"), default="production", help="what MCP runs"),
            _flag("--enable-mcp", "make the workflow available in MCP if it is not"),
            _option("--run-key", metavar="KEY", help="within a day, another run with this key resumes the execution"),
            _flag("--no-wait", "only start it"),
            _option("--timeout", type=_seconds, default=86_400.0, help="seconds until it is stopped (default: a day)"),
            _POLLS,
            _option("--output", metavar="NODE", help="print the output of this node; - for the last one"),
            _option("--output-path", metavar="PATH", help="file for output that has more than 48 kB"),
        ),
    ),
    Command(
        "logs",
        "run",
        "show the nodes of an execution",
        (
            _option("execution_id", help="id of the execution"),
            _flag("--follow", "wait for the end, and show the nodes as they end; exit status 1 if the execution fails"),
            _POLLS,
        ),
    ),
)


def get_commands() -> list[Any]:
    """Return the commands that Airflow 3.2 and newer adds to its own."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

    subcommands = [
        ActionCommand(
            name=command.name,
            help=command.help,
            epilog=command.statuses,
            func=partial(_end, command.module, command.name),
            args=[Arg(flags, **settings) for flags, settings in (*command.options, *_SHARED)],
        )
        for command in COMMANDS
    ]
    return [GroupCommand(name="service", help="Manage an instance of the service", subcommands=subcommands)]


def parser() -> argparse.ArgumentParser:
    of_all = argparse.ArgumentParser(prog="python -m airflow_provider_service")
    subparsers = of_all.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = subparsers.add_parser(command.name, help=command.help, description=command.help, epilog=command.statuses)
        own.set_defaults(module=command.module, command=command.name)
        for flags, settings in (*command.options, *_SHARED):
            own.add_argument(*flags, **settings)
    return of_all


def main(arguments: Sequence[str] | None = None) -> int:
    from airflow_provider_service._cli.performing import perform

    parsed = parser().parse_args(arguments)
    return perform(parsed.module, parsed.command, parsed)


def _end(module: str, name: str, arguments: argparse.Namespace) -> None:
    from airflow_provider_service._cli.performing import perform

    sys.exit(perform(module, name, arguments))
