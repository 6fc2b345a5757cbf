"""``export``: write each workflow to a separate file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._airflow.references import OPTIONAL_TAG, PROJECT
from airflow_provider_service._cli.connecting import connected
from airflow_provider_service._cli.deploying import check_arguments
from airflow_provider_service._cli.performing import DONE

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Write the files; existing ones are replaced only after a confirmation."""
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
