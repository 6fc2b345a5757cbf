"""``restore``: bring an instance in line with a backup."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.deploying import (
    check_arguments,
    checking,
    plan_status,
    read_mapping,
    show_lines,
    workflows_page,
)
from airflow_provider_service._core.reports.report import write_report
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.instances.restore_reading import StoredBackup
    from airflow_provider_service.hooks.service import ServiceHook


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Check the archive, show the plan, and carry it out after a confirmation."""
    from airflow_provider_service._core.instances.backup_archive import require_archive
    from airflow_provider_service._core.instances.restore_reading import RestoreScope, opened_backup

    if not arguments.preview:
        screen.require_answer(yes=arguments.yes)
    check_arguments(arguments)
    with checking(arguments):
        require_archive(arguments.path)
        scope = RestoreScope.read(arguments.kinds, arguments.names, read_mapping(arguments))
    with (
        opened_backup(arguments.path, max_bytes=arguments.max_unpacked_bytes) as backup,
        connected(screen, arguments.conn_id, arguments.uri) as hook,
    ):
        return _restore(screen, arguments, scope.of(backup), hook)


def _restore(screen: Screen, arguments: argparse.Namespace, backup: StoredBackup, hook: ServiceHook) -> int:
    from airflow_provider_service._core.instances.restore import Restore, restore_report

    manifest, made_at, url = backup.archive.manifest, clock().utcnow(), workflows_page(hook)
    screen.line(f"The backup of {manifest.get('made_at')} is intact.")
    restore = Restore(hook, backup, arguments.on_conflict, arguments.activate, arguments.allow_empty)
    with screen.busy("Comparing with the instance"):
        plan = restore.plan()
    show_lines(screen, plan.lines())
    for gap in plan.gaps:
        screen.line(f"Not restored: {gap.what}: {gap.why}", "yellow")
    write_report(arguments.report_path, lambda: restore_report(plan, manifest, made_at=made_at, url=url))
    if not arguments.preview:
        if not plan.is_empty:
            screen.confirm(f"Carry out this plan at {url}?", yes=arguments.yes)
        with screen.busy("Restoring"):
            restore.carry_out(plan)
    result = plan.to_result(preview=arguments.preview)
    if not arguments.preview:
        screen.line(f"{result['outcome'].capitalize()}: {url}", "bold green")
    screen.result(result)
    return plan_status(arguments, has_changes=not plan.is_empty, preview=arguments.preview)
