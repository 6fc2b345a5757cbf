"""``promote``: deploy workflows of one instance to another, all of them or none."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._airflow.references import OPTIONAL_DESTINATION_PROJECT, OPTIONAL_TAG, PROJECT
from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.deploying import (
    check_arguments,
    checking,
    deploy,
    read_mapping,
    read_record,
    workflows_page,
)

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Promote workflows, after the plan has been confirmed."""
    from airflow_provider_service._core.instances.export import destination_project_id, require_selection, to_promote
    from airflow_provider_service._core.instances.plan import DeploymentTarget

    if not arguments.preview:
        screen.require_answer(yes=arguments.yes)
    check_arguments(arguments, OPTIONAL_TAG, PROJECT, OPTIONAL_DESTINATION_PROJECT)
    with checking(arguments):
        require_selection(arguments)
    mapping, record = read_mapping(arguments), read_record(arguments)
    with (
        connected(screen, arguments.source_conn_id, arguments.source_uri, option="source-") as source,
        connected(screen, arguments.conn_id, arguments.uri) as hook,
    ):
        project_id = destination_project_id(arguments, source, hook, mapping.projects)
        target = DeploymentTarget(hook, project_id, **record, mapping=mapping)
        sources = lambda: to_promote(arguments, source)  # noqa: E731
        return deploy(screen, arguments, target, sources, workflows_page(hook), preview=arguments.preview)
