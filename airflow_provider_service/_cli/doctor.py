"""``doctor``: examine a connection."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from airflow_provider_service._cli.performing import DONE, FAILED, connected
from airflow_provider_service._cli.screen import given_once, progress_bar
from airflow_provider_service._core.reports.report import on_one_line, shown
from airflow_provider_service._core.text_table import text_table
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.errors import ServiceConfigError

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.pages.checkup import Finding
    from airflow_provider_service._core.reports.report import Table
    from airflow_provider_service.client import ServiceConfig

_STYLES = {"FAIL": "bold red", "ok": "green", "note": "dim"}


def perform_doctor(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.pages.checkup import Finding, verdict

    conn_id = given_once("the id of the connection", arguments.conn_id, arguments.connection)
    base_url = None
    try:
        with connected(screen, conn_id, arguments.uri, is_examined=True) as hook:
            base_url = hook.config.base_url
            findings = _examined(screen, hook.config)
    except ServiceConfigError as error:
        findings = [Finding("connection", "FAIL", error.reason)]
    summary = verdict(findings)
    screen.line(summary.text, _STYLES[summary.grade])
    for finding in findings:
        text = f": {one_line(finding.text)}" if finding.text else ""
        screen.line(f"{finding.grade:4}  {finding.subject}{text}", _STYLES[finding.grade])
    if base_url is not None and not screen.as_json:
        _print_what_airflow_knows(screen, base_url)
    is_healthy = summary.grade != "FAIL"
    screen.result({"healthy": is_healthy, "findings": [asdict(finding) for finding in findings]})
    return DONE if is_healthy else FAILED


def _examined(screen: Screen, config: ServiceConfig) -> list[Finding]:
    from airflow_provider_service._core.pages.checkup import SUBJECTS, examine, in_order

    findings = []
    with progress_bar(SUBJECTS, screen.console) as done:
        for finding in examine(config):
            findings.append(finding)
            done()
    return in_order(findings)


def _print_what_airflow_knows(screen: Screen, base_url: str) -> None:
    from sqlalchemy.exc import SQLAlchemyError

    from airflow_provider_service._core.pages.checkup import SHOWN_RUNS, runs_table, waits_table
    from airflow_provider_service.plugins import _airflow_tables

    no_waits: list[str] = []
    try:
        waits, executions = _airflow_tables.waits(no_waits), _airflow_tables.executions()
    except (SQLAlchemyError, RuntimeError) as error:  # no database here, or one that this process may not use
        screen.line(f"\nAirflow's database cannot be read here ({type(error).__name__}).")
        return
    if no_waits and executions.lacks:
        screen.line("\nAirflow's database cannot be read here.")
        return
    runs = _airflow_tables.latest_runs(executions.known, base_url)[:SHOWN_RUNS]
    for lacks, table in ((no_waits, waits_table(waits, clock().utcnow())), (executions.lacks, runs_table(runs))):
        for lack in lacks:
            screen.line(f"\n{lack}")
        if table.rows or not lacks:
            _print_table(screen, table)


def _print_table(screen: Screen, table: Table) -> None:
    rows = [[on_one_line(shown(cell)) for cell in row] for row in table.rows]
    note = f" {table.note}" if table.note else ""
    screen.line(f"\n{table.title}.{note}", "bold")
    for line in text_table(table.columns, rows) if rows else ():
        screen.line(line)
