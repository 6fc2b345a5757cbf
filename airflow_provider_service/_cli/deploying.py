"""``plan``, ``deploy`` and ``promote``: show the plan, ask, carry it out, and show the result; and ``export``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_service._cli.performing import CHANGES, DONE, connected
from airflow_provider_service._cli.screen import UsageError, require_text
from airflow_provider_service._core.references import OPTIONAL_DESTINATION_PROJECT, OPTIONAL_TAG, PARENT_FOLDER, PROJECT
from airflow_provider_service._core.reports.report import require_report_place, write_report
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client.errors import ServiceInputError
from airflow_provider_service.links.service import WORKFLOWS_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service._core.instances.mapping import InstanceMapping
    from airflow_provider_service._core.instances.plan import DeploymentTarget
    from airflow_provider_service._core.instances.source import Source
    from airflow_provider_service._core.references import Reference
    from airflow_provider_service.hooks.service import ServiceHook


_STYLES = {"+": "green", "-": "red"}


def perform_plan(screen: Screen, arguments: argparse.Namespace) -> int:
    return _deploy_files(screen, arguments, preview=True)


def perform_deploy(screen: Screen, arguments: argparse.Namespace) -> int:
    if not arguments.preview:
        screen.require_answer(yes=arguments.yes)
    return _deploy_files(screen, arguments, preview=arguments.preview)


def _deploy_files(screen: Screen, arguments: argparse.Namespace, *, preview: bool) -> int:
    from airflow_provider_service._core.instances.plan import DeploymentTarget
    from airflow_provider_service._core.instances.source import read_source

    check_arguments(arguments, PROJECT, PARENT_FOLDER)
    mapping, record = read_mapping(arguments), read_record(arguments)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        project_id, folder_id = PROJECT.id_in(arguments, hook), PARENT_FOLDER.id_in(arguments, hook)
        target = DeploymentTarget(hook, project_id, folder_id, **record, mapping=mapping)
        options = {"allow_empty": arguments.allow_empty, "from_file_names": arguments.from_file_names}
        sources = lambda: read_source(arguments.source, **options)  # noqa: E731
        return _deploy(screen, arguments, target, sources, workflows_page(hook), preview=preview)


def perform_promote(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.instances.export import destination_project_id, require_selection, to_promote
    from airflow_provider_service._core.instances.plan import DeploymentTarget

    if not arguments.preview:
        screen.require_answer(yes=arguments.yes)
    check_arguments(arguments, OPTIONAL_TAG, PROJECT, OPTIONAL_DESTINATION_PROJECT)
    with checking():
        require_selection(arguments)
    mapping, record = read_mapping(arguments), read_record(arguments)
    with (
        connected(screen, arguments.source_conn_id, arguments.source_uri, option="source-") as source,
        connected(screen, arguments.conn_id, arguments.uri) as hook,
    ):
        project_id = destination_project_id(arguments, source, hook, mapping.projects)
        target = DeploymentTarget(hook, project_id, **record, mapping=mapping)
        sources = lambda: to_promote(arguments, source)  # noqa: E731
        return _deploy(screen, arguments, target, sources, workflows_page(hook), preview=arguments.preview)


def _deploy(
    screen: Screen,
    arguments: argparse.Namespace,
    target: DeploymentTarget,
    read_sources: Callable[[], list[Source]],
    url: str,
    *,
    preview: bool,
) -> int:
    from airflow_provider_service._core.instances.apply import deployed, plan_report
    from airflow_provider_service._core.instances.plan import make_plan

    made_at = clock().utcnow()
    with screen.busy("Comparing with the instance"):
        plan = make_plan(read_sources(), target, activate=arguments.activate)
    show_lines(screen, plan.lines())
    write_report(arguments.report_path, lambda: plan_report(plan, made_at=made_at, url=url))
    if plan.writes and not preview:
        screen.confirm(f"Carry out this plan at {url}?", yes=arguments.yes)
    with screen.busy("Finishing the plan" if preview else "Deploying"):
        result = deployed(plan, target, preview=preview)
    changes = [{"name": change.name, "actions": change.actions, "diff": change.diff} for change in plan.changed]
    screen.result({**result, "changes": changes, "new_tags": plan.new_tags})
    if not preview:
        screen.line(f"{result['outcome'].capitalize()}: {url}", "bold green")
    return plan_status(arguments, has_changes=plan.writes, preview=preview)


def perform_export(screen: Screen, arguments: argparse.Namespace) -> int:
    from airflow_provider_service._core.instances.export import export_folder
    from airflow_provider_service._core.object_storage import StoredFolder

    check_arguments(arguments, OPTIONAL_TAG, PROJECT)
    if StoredFolder("path", arguments.path).holds(".json"):
        also = ", and remove stale ones" if arguments.remove_stale else ""
        screen.confirm(f"Replace the files of the workflows in {arguments.path}{also}?", yes=arguments.yes)
    with connected(screen, arguments.conn_id, arguments.uri) as hook, screen.busy("Exporting"):
        done = export_folder(arguments, hook)
    for file in done["files"].values():
        screen.line(file)
    for path in done["removed"]:
        screen.line(f"removed {path}")
    screen.line(f"Workflows written to {arguments.path}: {done['workflows']}", "bold green")
    screen.result(done)
    return DONE


def plan_status(arguments: argparse.Namespace, *, has_changes: bool, preview: bool) -> int:
    """Return the exit status of a command that makes a plan and may stop after it."""
    return CHANGES if preview and has_changes and arguments.detailed_exitcode else DONE


def show_lines(screen: Screen, lines: Iterable[str]) -> None:
    for line in lines:
        screen.line(line, _STYLES.get(line.strip()[:1]))


def workflows_page(hook: ServiceHook) -> str:
    return page_url(hook.config.base_url, WORKFLOWS_PAGE)


def check_arguments(arguments: argparse.Namespace, *references: Reference) -> None:
    with checking():
        for reference in references:
            reference.check(arguments, are_rendered=True)
            for name in reference.fields:
                require_text(name, getattr(arguments, name))
        require_report_place(getattr(arguments, "report_path", None))


def read_mapping(arguments: argparse.Namespace) -> InstanceMapping:
    from airflow_provider_service._core.instances.mapping import InstanceMapping

    with checking():
        return InstanceMapping.read(None, arguments.mapping)


def read_record(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the name of a deployment's record, and whether to archive missing workflows, as arguments of a target."""
    from airflow_provider_service._core.instances.deployment_record import require_deployment_name

    name, archive_missing = arguments.deployment_name, arguments.archive_missing
    with checking():
        name = require_deployment_name(name, archive_missing=archive_missing)
    return {"deployment_name": name, "archive_missing": archive_missing}


@contextmanager
def checking() -> Iterator[None]:
    """Turn errors about arguments into usage errors."""
    try:
        yield
    except ServiceInputError as error:
        raise UsageError(str(error)) from error
