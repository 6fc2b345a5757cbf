"""The terminal command that examines a connection."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.pages.checkup import Finding

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
    from airflow.providers.common.compat.sdk import AirflowException

    from airflow_provider_service.client.errors import ServiceError
    from airflow_provider_service.pages.checkup import Finding, examine, is_healthy

    try:
        config = _config(service_conn_id)
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything, with a secret in its text
        told = str(error) if isinstance(error, (ServiceError, AirflowException)) else type(error).__name__
        _print(Finding("connection", "FAIL", f"'{service_conn_id}' cannot be used: {told}"))
        return 1
    findings = []
    for finding in examine(config):
        _print(finding)
        findings.append(finding)
    return 0 if is_healthy(findings) else 1


def _config(service_conn_id: str) -> ServiceConfig:
    from airflow_provider_service.hooks.service import ServiceHook

    return ServiceHook(service_conn_id).config


def _print(finding: Finding) -> None:
    from airflow_provider_service.client.errors import one_line

    print(f"{finding.grade:4}  {finding.subject}: {one_line(finding.text)}", flush=True)  # noqa: T201
