"""Programs that Debian packages, installed when they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.live.servers import LiveServerError
from tests.live.servers.install import Progress

INSTALL_SECONDS = 10 * 60


def program(name: str, package: str, *, folders: str | None = None, progress: Progress = lambda line: None) -> Path:
    """Return the path of a program, installing its package with apt-get first when it is missing.

    :param folders: pattern below ``/`` of folders outside the PATH that it may be in; the last match counts.
    :param progress: called with a text on what is being installed.
    :raises LiveServerError: it is missing and cannot be installed.
    """
    found = _find(name, folders)
    if found is None:
        _install(package, progress)
        found = _find(name, folders)
    if found is None:
        raise LiveServerError(f"The package {package} has been installed, but there is still no {name}.")
    return found


def _find(name: str, folders: str | None) -> Path | None:
    outside = sorted(Path("/").glob(f"{folders}/{name}")) if folders else []
    on_path = shutil.which(name)
    return outside[-1] if outside else Path(on_path) if on_path else None


def _install(package: str, progress: Progress) -> None:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise LiveServerError(f"The tests need {package}. Install it first: apt-get install {package}")
    progress(f"installing {package} with apt-get")
    # The run level keeps the package from starting a service of its own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", package]):
        done = subprocess.run(
            [apt, "-qq", *command], env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
        if done.returncode:
            raise LiveServerError(f"apt-get {' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
