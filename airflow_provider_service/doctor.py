"""The terminal command that examines a connection."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client.clock import clock

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.pages.checkup import Finding
    from airflow_provider_service.reports.report import Table

_CONNECTION = "service_default"
_HELP = (
    "examine a connection: reachable, clock, plan, MCP, bridge, and what the key may do; exit status 1 if a check fails"
)


def get_commands() -> list[Any]:
    """The commands that Airflow adds to its own (3.2 and newer)."""
    from airflow.cli.cli_config import ActionCommand, Arg, GroupCommand, lazy_load_command

    connection = Arg(("conn_id",), help=f"id of the connection ({_CONNECTION})", nargs="?", default=_CONNECTION)
    doctor = ActionCommand(name="doctor", help=_HELP, func=lazy_load_command(f"{__name__}.command"), args=(connection,))
    return [GroupCommand(name="service", help="Look after connections to the service", subcommands=(doctor,))]


def command(arguments: argparse.Namespace) -> None:
    """Run ``airflow service doctor``."""
    sys.exit(doctor(arguments.conn_id))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m airflow_provider_service doctor``."""
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_service")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("doctor", help=_HELP, description=_HELP)
    one.add_argument("conn_id", nargs="?", default=_CONNECTION, help="id of the connection (default: %(default)s)")
    return doctor(parser.parse_args(arguments).conn_id)


def doctor(service_conn_id: str) -> int:
    """Examine a connection, and print each finding as soon as it is known.

    :returns: the exit status: 0 if nobody has to act.
    """
    from airflow_provider_service.client.errors import ServiceConfigError
    from airflow_provider_service.pages.checkup import SUBJECTS, Finding, examine, is_healthy
    from airflow_provider_service.pages.reading import told
    from airflow_provider_service.progress_bar import progress_bar

    try:
        config = _config(service_conn_id)
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything, with a secret in its text
        reason = error.reason if isinstance(error, ServiceConfigError) else told(error)
        _print(Finding("connection", "FAIL", f"'{service_conn_id}' cannot be used: {reason}"))
        return 1
    findings = []
    with progress_bar(SUBJECTS) as done:
        for finding in examine(config):
            _print(finding)
            findings.append(finding)
            done()
    _print_what_airflow_knows(config.base_url)
    return 0 if is_healthy(findings) else 1


def _print_what_airflow_knows(base_url: str) -> None:

    from sqlalchemy.exc import SQLAlchemyError

    from airflow_provider_service import airflow_database
    from airflow_provider_service.pages.connection_view import SHOWN_RUNS, runs_table, waits_table

    try:
        tables = [
            waits_table(airflow_database.waits(), clock().utcnow()),
            runs_table(airflow_database.latest_runs(base_url)[:SHOWN_RUNS]),
        ]
    except (SQLAlchemyError, RuntimeError) as error:  # no database here, or one that this process may not use
        print(f"\nAirflow's database cannot be read here ({type(error).__name__}).")  # noqa: T201
        return
    for table in tables:
        _print_table(table)


def _print_table(table: Table) -> None:
    from airflow_provider_service.reports.report import shown
    from airflow_provider_service.reports.text import on_one_line
    from airflow_provider_service.text_table import text_table

    rows = [[on_one_line(shown(cell)) for cell in row] for row in table.rows]
    note = f" {table.note}" if table.note else ""
    print(f"\n{table.title}.{note}", *(text_table(table.columns, rows) if rows else ()), sep="\n", flush=True)  # noqa: T201


def _config(service_conn_id: str) -> ServiceConfig:
    from airflow_provider_service.hooks.service import ServiceHook

    return ServiceHook(service_conn_id).config


def _print(finding: Finding) -> None:
    from airflow_provider_service.client.errors import one_line

    print(f"{finding.grade:4}  {finding.subject}: {one_line(finding.text)}", flush=True)  # noqa: T201
