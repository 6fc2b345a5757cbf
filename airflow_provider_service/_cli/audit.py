"""``audit``: audit an instance, and fail on the findings that matter."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.deploying import check_arguments, checking, workflows_page
from airflow_provider_service._cli.performing import DONE, FAILED
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Show the findings of an audit."""
    from airflow_provider_service._core.instances.audit import audit

    check_arguments(arguments)
    with connected(screen, arguments.conn_id, arguments.uri) as hook, screen.busy("Auditing"), checking(arguments):
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
