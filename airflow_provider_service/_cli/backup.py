"""``backup``: write the contents of an instance to one archive."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.deploying import check_arguments, checking, workflows_page
from airflow_provider_service._cli.performing import DONE
from airflow_provider_service._core.object_storage import require_place
from airflow_provider_service._core.reports.report import write_report
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Write the archive; existing files are replaced or deleted only after a confirmation."""
    from airflow_provider_service._core.instances.backup import write_backup
    from airflow_provider_service._core.instances.backup_archive import require_archive
    from airflow_provider_service._core.instances.restore import backup_report
    from airflow_provider_service._core.object_storage import exists

    check_arguments(arguments)
    with checking(arguments):
        require_archive(arguments.path)
        require_place("path", arguments.path)
    if exists("path", arguments.path):
        screen.confirm(f"Replace {arguments.path}?", yes=arguments.yes)
    if arguments.keep is not None:
        screen.confirm(f"Then delete all but the newest {arguments.keep} backups of the instance?", yes=arguments.yes)
    made_at = clock().utcnow()
    with connected(screen, arguments.conn_id, arguments.uri) as hook, screen.busy("Backing up"):
        options = {"service": hook.config.base_url, "keep": arguments.keep, "allow_empty": arguments.allow_empty}
        backup = write_backup(hook, arguments.path, made_at=made_at, **options)
        url = workflows_page(hook)
    write_report(arguments.report_path, lambda: backup_report(backup, made_at=made_at, url=url))
    for kind, count in backup.counts.items():
        screen.line(f"{count:>8}  {kind.replace('_', ' ')}")
    for gap in backup.gaps:
        screen.line(f"Not in the backup: {gap.what}: {gap.why}", "yellow")
    screen.line(f"{backup.size} bytes were written to {backup.path}", "bold green")
    if arguments.keep is not None:
        screen.line(f"Older backups deleted: {backup.deleted}")
    screen.result(backup.to_result())
    return DONE
