"""``plan``: show the changes that a deployment of workflow files would make."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._airflow.references import PARENT_FOLDER, PROJECT
from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.deploying import check_arguments, deploy, read_mapping, read_record, workflows_page

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Make the plan for a folder, and show it."""
    return deploy_files(screen, arguments, preview=True)


def deploy_files(screen: Screen, arguments: argparse.Namespace, *, preview: bool) -> int:
    """Make the plan for files and, unless this is a preview, carry it out."""
    from airflow_provider_service._core.instances.plan import DeploymentTarget
    from airflow_provider_service._core.instances.source import read_source

    check_arguments(arguments, PROJECT, PARENT_FOLDER)
    mapping, record = read_mapping(arguments), read_record(arguments)
    with connected(screen, arguments.conn_id, arguments.uri) as hook:
        project_id, folder_id = PROJECT.id_in(arguments, hook), PARENT_FOLDER.id_in(arguments, hook)
        target = DeploymentTarget(hook, project_id, folder_id, **record, mapping=mapping)
        sources = lambda: read_source(arguments.source, allow_empty=arguments.allow_empty)  # noqa: E731
        return deploy(screen, arguments, target, sources, workflows_page(hook), preview=preview)
