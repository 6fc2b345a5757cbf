"""``deploy``: bring the workflows of an instance in line with files, all of them or none."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from airflow_provider_service._cli.plan import deploy_files

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen


def perform(screen: Screen, arguments: argparse.Namespace) -> int:
    """Deploy a folder, after its plan has been confirmed."""
    screen.require_answer(yes=arguments.yes)
    return deploy_files(screen, arguments, preview=False)
