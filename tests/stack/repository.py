"""A repository of DAG files, from which Airflow takes a bundle whose versions it knows."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

#: The DAGs folder.
LOCAL_BUNDLE = {
    "name": "dags-folder",
    "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
    "kwargs": {},
}
# No settings of whoever runs the tests.
_GIT = ("git", "-c", "user.name=Stack", "-c", "user.email=stack@localhost", "-c", "commit.gpgsign=false")


class Repository:
    """A new repository with one branch.

    :param folder: where it is created; what was there before is deleted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")
        self.commit({"README.md": "DAG files of the tests"})

    def bundle(self) -> dict[str, Any]:
        """The bundle, as Airflow is configured with it."""
        return {
            "name": "repository",
            "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
            "kwargs": {"repo_url": str(self.folder), "tracking_ref": "main"},
        }

    def commit(self, files: dict[str, str]) -> None:
        """Write files, by name, and commit them."""
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", ", ".join(files))

    def _git(self, *arguments: str) -> None:
        subprocess.run([*_GIT, *arguments], cwd=self.folder, check=True, timeout=60)
