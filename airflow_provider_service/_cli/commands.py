"""The commands and their options. Airflow imports this module to list its commands, so it loads hardly anything."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from airflow_provider_service import __version__

_STATUSES = "exit status: 0 done, 1 failed, 2 wrong usage"

#: The flags of an option or an argument, and the other arguments of ``ArgumentParser.add_argument``.
Option = tuple[tuple[str, ...], dict[str, Any]]


class Command(NamedTuple):
    #: A module of this package and the name of the command, which a function ``perform_`` and that name performs.
    place: str
    help: str
    options: tuple[Option, ...]
    #: What follows the name of the command.
    examples: tuple[str, str]
    #: The operator that does the same, which documents the options without a help of their own.
    operator: str = ""
    group: str = ""
    is_hidden: bool = False

    @property
    def name(self) -> str:
        return self.place.rpartition(".")[2]

    @property
    def arguments(self) -> Iterator[Option]:
        texts = _documented(*self.operator.split(".")) if self.operator else {}
        for flags, settings in (*self.options, *_SHARED):
            text = settings.get("help") or texts[flags[0].lstrip("-").replace("-", "_")]
            default = settings.get("default")
            shown = f" (default: {default:g})" if isinstance(default, float) else ""
            # The parser of Airflow breaks no lines.
            yield flags, {**settings, "help": textwrap.fill(f"{text}{shown}".replace("%", "%%"), 55)}

    @property
    def epilog(self) -> str:
        statuses = f"{_STATUSES}{', 3 there are changes' if _DETAILED in self.options else ''}"
        return "\n".join(["examples:", *(f"  %(prog)s {words}".rstrip() for words in self.examples), "", statuses])


def _documented(module: str, operator: str) -> dict[str, str]:
    """What an operator says about its arguments, from its source: to import it would load much of Airflow."""
    source = (Path(__file__).parents[1] / "operators" / f"{module}.py").read_text(encoding="utf-8")
    docstring = source.partition(f"\nclass {operator}(")[2].partition("\n    :returns:")[0]
    texts = dict(re.findall(r":param (\w+): (.+?)(?=\n    :|\Z)", docstring, re.DOTALL))
    names = re.compile(rf"\b({'|'.join(name for name in texts if '_' in name)})\b")
    return {
        name: names.sub(lambda other: f"--{other[0].replace('_', '-')}", _in_short(text))
        for name, text in texts.items()
    }


def _in_short(text: str) -> str:
    """The first sentence, without markup, and without what holds for Python only."""
    text = re.split(r"\.(?= [A-Z`]|$)", " ".join(text.split()))[0]
    text = re.sub(r"[;,] (None \(the default\)|(with )?False,? .*default|[^;,]* by default$).*", "", text)
    text = re.sub(r"``(.*?)``", lambda code: code[1].replace('="', " ").strip('"'), text.removeprefix("True to "))
    text = text.replace("{{ ds }}", "monday")
    return text.replace("seconds, or a timedelta,", "seconds").replace("if None,", "without it,")


def _option(*flags: str, **settings: Any) -> Option:
    return flags, settings


def _flag(name: str, text: str | None = None) -> Option:
    return _option(name, action="store_true", help=text)


def _valued(*names: str) -> tuple[Option, ...]:
    """Options whose value is what the last word of their name says."""
    return tuple(_option(name, metavar=name.rpartition("-")[2].upper()) for name in names)


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text == "yes"


def _above_zero(read: Callable[[str], float], what: str, largest: int, text: str) -> float:
    with suppress(ValueError):
        if 0 < (value := read(text)) <= largest:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a {what} above 0, up to {largest}")


# As for the arguments of operators; what they would refuse must be refused before anything starts.
_seconds = partial(_above_zero, float, "number of seconds", 10**9)
_count = partial(_above_zero, int, "whole number", 2**63 - 1)

_SHARED = (
    _option("--conn-id", "--service-conn-id", metavar="ID", help="id of the Airflow connection (service_default)"),
    _option(
        "--uri",
        help="the connection itself: a URI, such as n8n://:KEY@n8n.example.com, or JSON; "
        "or set SERVICE_URL and SERVICE_API_KEY",
    ),
    _flag("--json", "print the result as JSON; everything else goes to the standard error"),
    _flag("--verbose", "print all log lines, and the traceback of an error"),
)
_YES = _flag("--yes", "skip all confirmations; required without a terminal")
_REPORT = _valued("--report-path")
_ACTIVATE = _option("--activate", type=_yes_or_no, metavar="yes|no", help="for all workflows; default: as in source")
_CATEGORIES = ("credentials", "database", "nodes", "filesystem", "instance")
_EXECUTION_STATUSES = ("canceled", "crashed", "error", "new", "running", "success", "unknown", "waiting")
_KINDS = ("tags", "projects", "variables", "credentials", "data_tables", "workflows")
_PREVIEW = _flag("--preview")
_DETAILED = _flag("--detailed-exitcode", "exit with status 3 instead of 0 if the plan has changes")
_MAPPING = _option("--mapping", "--mapping-path", metavar="FILE", help="YAML or JSON file of names that differ")
_RECORD = (*_valued("--deployment-name"), _flag("--archive-missing"), _flag("--allow-empty"))
_PROJECT = _valued("--project-id", "--project-name")
_DEPLOYMENT = (
    _option("source", nargs="+", help="folders, .json files, or addresses of object storage"),
    _flag("--from-file-names"),
    *_PROJECT,
    *_valued("--parent-folder-id", "--parent-folder-name"),
    *_RECORD,
    _MAPPING,
    _ACTIVATE,
    *_REPORT,
)
_SELECTION = (
    _option("--workflow-names", action="extend", nargs="+", metavar="NAME"),
    *_valued("--tag-id", "--tag-name"),
    *_PROJECT,
)
_EXECUTION = _option("execution_id", type=_count, metavar="ID", help="id of the execution")
_POLLS = _option("--poll-interval", type=_seconds, default=2.0, metavar="SECONDS", help="seconds between two polls")
_OUTPUT = _option("--output", metavar="NODE", help="print only the output of this node; - for the last one")
_WAIT = (
    _flag("--no-wait", "only start it"),
    _option("--timeout", type=_seconds, default=86_400.0, metavar="SECONDS"),
    *(_POLLS, _OUTPUT),
    _option("--output-path", metavar="PATH", help="file for output that has more than 48 kB"),
)

_HELP = "Run and deploy workflows of n8n, and manage its instance"
#: The groups of commands, with their help.
GROUPS = {"executions": "list, show, stop and retry executions", "workflows": "list workflows"}

_SHOW = Command(
    "run.show",
    "show an execution: its status, its nodes, and why it failed",
    (
        _EXECUTION,
        _flag("--follow", "wait for the end, and show the nodes as they end; exit status 1 if the execution fails"),
        _POLLS,
        _OUTPUT,
    ),
    ("1234", "1234 --follow"),
    group="executions",
)
COMMANDS = (
    Command(
        "doctor.doctor",
        "examine a connection: reachable, clock, plan, MCP, bridge, and permissions of the key",
        (_option("connection", nargs="?", metavar="CONN_ID", help="the same as --conn-id"),),
        ("", "n8n_production"),
    ),
    Command(
        "deploying.plan",
        "show the changes that a deployment of workflow files would make",
        (*_DEPLOYMENT, _DETAILED),
        ("workflows", "workflows --project-name Sales --detailed-exitcode"),
        "instances.ServiceDeployWorkflowsOperator",
    ),
    Command(
        "deploying.deploy",
        "deploy workflow files: all of them, or none",
        (*_DEPLOYMENT, _PREVIEW, _DETAILED, _YES),
        ("workflows --report-path plan.html", "workflows --deployment-name shop --archive-missing --yes"),
        "instances.ServiceDeployWorkflowsOperator",
    ),
    Command(
        "deploying.export",
        "write all workflows, or those that are selected, to a separate file each",
        (
            _option("path"),
            *_SELECTION,
            *map(_flag, ("--code-files", "--pinned-data", "--remove-stale", "--allow-empty")),
            _YES,
        ),
        ("workflows", "workflows --tag-name release --code-files --yes"),
        "instances.ServiceExportWorkflowsOperator",
    ),
    Command(
        "deploying.promote",
        "deploy the selected workflows of one instance to another: all of them, or none",
        (
            *_valued("--source-conn-id"),
            _option("--source-uri", metavar="URI", help="that connection itself"),
            *_SELECTION,
            *_valued("--destination-project-id", "--destination-project-name"),
            *_RECORD,
            _MAPPING,
            _ACTIVATE,
            *_REPORT,
            _PREVIEW,
            _DETAILED,
            _YES,
        ),
        (
            "--source-conn-id staging --conn-id production --tag-name release",
            "--source-conn-id staging --workflow-names 'Nightly sync' --preview",
        ),
        "instances.ServicePromoteWorkflowsOperator",
    ),
    Command(
        "instances.backup",
        "write the contents of an instance to one archive",
        (_option("path"), _option("--keep", type=_count, metavar="N"), _flag("--allow-empty"), *_REPORT, _YES),
        ("backups/monday.zip", "backups/monday.zip --keep 8 --yes"),
        "backups.ServiceBackupOperator",
    ),
    Command(
        "instances.restore",
        "bring an instance in line with a backup",
        (
            _option("path"),
            _option("--on-conflict", choices=("fail", "skip", "update"), default="fail"),
            _option("--kinds", action="extend", nargs="+", choices=_KINDS, metavar="KIND"),
            _option("--names", action="extend", nargs="+", metavar="NAME"),
            _MAPPING,
            _ACTIVATE,
            _flag("--allow-empty"),
            _option("--max-unpacked-bytes", type=_count, default=10 * 1024**3, metavar="BYTES"),
            *_REPORT,
            _PREVIEW,
            _DETAILED,
            _YES,
        ),
        ("backups/monday.zip --preview", "backups/monday.zip --names 'Nightly sync' --on-conflict update"),
        "backups.ServiceRestoreOperator",
    ),
    Command(
        "instances.audit",
        "audit an instance; exit status 1 if it has findings in a category of --fail-on",
        (
            _option("--categories", action="extend", nargs="+", choices=_CATEGORIES, metavar="CATEGORY"),
            _option("--days-abandoned-workflow", type=_count, metavar="DAYS"),
            _option("--fail-on", action="extend", nargs="+", choices=_CATEGORIES, default=[], metavar="CATEGORY"),
            _option("--timeout", type=_seconds, default=300.0, metavar="SECONDS"),
            *_REPORT,
        ),
        ("", "--fail-on credentials database --report-path audit.html"),
        "audit.ServiceGenerateAuditOperator",
    ),
    Command(
        "run.run",
        "start a workflow, wait for it, and show its nodes as they end",
        (
            _option("name", nargs="?", metavar="NAME", help="exact name of the workflow, or its id"),
            *_valued("--workflow-id", "--workflow-name"),
            *_PROJECT,
            _option("--payload", help="input of the trigger: JSON, or @FILE, or - for the standard input"),
            *_valued("--trigger-node", "--webhook-conn-id"),
            _flag("--activate"),
            _option("--start", choices=("auto", "webhook", "mcp", "bridge"), default="auto"),
            _option("--mode", choices=("production", "manual"), default="production"),
            _flag("--enable-mcp"),
            _option("--run-key", metavar="KEY", help="within a day, another run with this key resumes the execution"),
            *_WAIT,
        ),
        ("'Nightly sync'", "'Nightly sync' --payload @day.json --output - > rows.json"),
        "run_workflow.ServiceRunWorkflowOperator",
    ),
    Command(
        "run.list",
        "list executions, newest first",
        (
            _option("--workflow", metavar="NAME", help="only those of this workflow, by its exact name or its id"),
            _option(
                "--status",
                action="extend",
                nargs="+",
                choices=_EXECUTION_STATUSES,
                metavar="STATUS",
                help=f"only those with one of these: {', '.join(_EXECUTION_STATUSES)}",
            ),
            _option(
                "--since", metavar="TIME", help="only those that began since a date and time, or 30m, 12h or 7d ago"
            ),
            _option("--limit", type=_count, default=20, metavar="N", help="how many at most (default: 20)"),
        ),
        ("--status running waiting", "--workflow 'Nightly sync' --status error crashed --since 12h"),
        group="executions",
    ),
    _SHOW,
    Command(
        "run.stop", "stop an execution that has not ended", (_EXECUTION,), ("1234", "1234 --json"), group="executions"
    ),
    Command(
        "run.retry",
        "run an execution that failed again, wait for the new one, and show its nodes as they end",
        (_EXECUTION, _flag("--load-workflow"), *_WAIT),
        ("1234", "1234 --load-workflow --no-wait"),
        "executions.ServiceRetryExecutionOperator",
        group="executions",
    ),
    Command(
        "instances.list",
        "list workflows by name: their ids, and which of them are active",
        (_option("--name", metavar="TEXT", help="only those whose name contains this text, in upper or lower case"),),
        ("", "--name sync --json"),
        group="workflows",
    ),
    _SHOW._replace(place="run.logs", group="", is_hidden=True),
)

# What other tools call these.
_OTHER_WORDS = {
    "executions list": "ls history list-runs",
    "executions show": "view get get-run describe log",
    "executions show --follow": "watch tail follow",
    "executions stop": "cancel cancel-run kill abort",
    "executions retry": "rerun repair-run restart",
    "run": "trigger run-now start execute",
    "doctor": "check test status",
    "plan": "diff",
    "--preview": "--dry-run",
    "deploy": "apply push import",
    "export": "pull download",
    "executions": "runs jobs",
    "workflows list": "flows search",
    "error": "failed failure",
}


def get_commands() -> list[Any]:
    """Return the commands that Airflow 3.2 and newer adds to its own."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand

    def in_group(group: str) -> list[Any]:
        return [
            ActionCommand(
                name=command.name,
                help=command.help,
                epilog=command.epilog,
                func=partial(_end, command.place),
                args=[Arg(flags, **settings) for flags, settings in command.arguments],
                hide=command.is_hidden,
            )
            for command in COMMANDS
            if command.group == group
        ]

    groups = [GroupCommand(name=name, help=text, subcommands=in_group(name)) for name, text in GROUPS.items()]
    return [GroupCommand(name="service", help=_HELP, subcommands=[*in_group(""), *groups])]


class _Parser(argparse.ArgumentParser):
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, left = super().parse_known_args(args, namespace)
        if left:  # the outermost parser would refuse these, which knows no option of a command
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        """Say what was probably meant."""
        wrong = re.search(r"(?:invalid choice: '|unrecognized arguments: )([\w-]+)", message)
        if message.endswith("required: COMMAND"):
            self.exit(2, self.format_help())
        word, (_, _, known) = wrong[1] if wrong else "", message.partition("choose from")
        if word.startswith("-"):
            known = " ".join(re.findall(r"--[\w-]+", self.format_help()))
        ours = [name for name, others in _OTHER_WORDS.items() if word in others.split()]
        meant = [*ours, *difflib.get_close_matches(word, re.findall(r"[\w-]+", known), cutoff=0.65)]
        super().error(message + (f"; did you mean {meant[0]}?" if meant else f"; see {self.prog} --help"))


def parser() -> argparse.ArgumentParser:
    of_all = _Parser(prog="python -m airflow_provider_service", description=_HELP)
    of_all.add_argument("--version", action="version", version=f"airflow-provider-service {__version__}")
    groups: dict[str, Any] = {"": of_all.add_subparsers(required=True, metavar="COMMAND")}
    for name, text in GROUPS.items():
        group = groups[""].add_parser(name, help=text, description=text)
        groups[name] = group.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        places = [
            f"[{name}]" if settings.get("nargs") == "?" else name
            for flags, settings in command.options
            if (name := settings.get("metavar", flags[0].upper())) and flags[0][0] != "-"
        ]
        own = groups[command.group].add_parser(
            command.name,
            **({} if command.is_hidden else {"help": command.help}),
            usage=" ".join(["%(prog)s", *places, "[options]"]),
            description=command.help,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        own.set_defaults(place=command.place)
        for flags, settings in command.arguments:
            own.add_argument(*flags, **settings)
    return of_all


def main(arguments: Sequence[str] | None = None) -> int:
    from airflow_provider_service._cli.performing import perform

    parsed = parser().parse_args(arguments)
    return perform(parsed.place, parsed)


def _end(place: str, arguments: argparse.Namespace) -> None:
    from airflow_provider_service._cli.performing import perform

    sys.exit(perform(place, arguments))
