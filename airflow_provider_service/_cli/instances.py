"""``audit``, ``backup``, ``restore`` and ``workflows list``: the commands for a whole instance."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._cli.deploying import (
    check_arguments,
    checking,
    plan_status,
    read_mapping,
    show_lines,
    workflows_page,
)
from airflow_provider_service._cli.performing import DONE, FAILED, connected
from airflow_provider_service._cli.screen import require_text
from airflow_provider_service._core.object_storage import exists, require_place
from airflow_provider_service._core.reports.report import write_report
from airflow_provider_service._core.text_table import text_table
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._values import one_line
from airflow_provider_service.links.service import WORKFLOW_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.instances.restore_reading import StoredBackup
    from airflow_provider_service.hooks.service import ServiceHook


def perform_list(screen: Screen, arguments: argparse.Namespace) -> int:
    require_text("name", arguments.name)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        found = [
            {
                "workflow_id": workflow.id,
                "workflow_name": workflow.name,
                "state": "archived" if workflow.is_archived else "active" if workflow.active else "inactive",
                "url": page_url(hook.config.base_url, WORKFLOW_PAGE, workflow.id),
            }
            for workflow in hook.workflows.list(name=arguments.name, exclude_pinned_data=True)
        ]
    found.sort(key=lambda facts: (facts["workflow_name"].casefold(), facts["workflow_id"]))
    rows = [[facts["workflow_id"], facts["state"], one_line(facts["workflow_name"])] for facts in found]
    for line in text_table(("id", "state", "workflow"), rows):
        screen.line(line)
    screen.result(found)
    return DONE


def perform_audit(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.instances.audit import audit

    check_arguments(arguments)
    with connected(screen, arguments.conn_id, arguments.uri) as hook, screen.busy("Auditing"), checking():
        audited = audit(
            hook,
            categories=arguments.categories,
            days_abandoned_workflow=arguments.days_abandoned_workflow,
            fail_on=arguments.fail_on,
            report_path=arguments.report_path,
            timeout=arguments.timeout,
        )
        base_url, url = hook.config.base_url, workflows_page(hook)
    for line in audited.lines():
        screen.line(line, None if line.startswith(" ") else "bold")
    written = audited.write_report(arguments.report_path, made_at=clock().utcnow(), base_url=base_url)
    result = audited.to_result(report_path=written, url=url)
    screen.result({**result, "failure": audited.failure})
    if audited.failure:
        screen.note(f"Failed: {audited.failure}", "bold red")
        return FAILED
    screen.line(f"Findings: {result['findings']}", "bold")
    return DONE


def perform_backup(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.instances.backup import write_backup
    from airflow_provider_service._core.instances.backup_archive import require_archive
    from airflow_provider_service._core.instances.restore import backup_report

    check_arguments(arguments)
    with checking():
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


def perform_restore(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.instances.backup_archive import require_archive
    from airflow_provider_service._core.instances.restore_reading import RestoreScope, opened_backup

    if not arguments.preview:
        screen.require_answer(yes=arguments.yes)
    check_arguments(arguments)
    with checking():
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
