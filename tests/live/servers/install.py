"""Installs a generation of the server in a cache folder outside the checkout, once for each pin."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.polling import wait_until

from .errors import LiveServerError, tail
from .generation import Generation
from .guarded import GuardedProcess
from .node import node_command, npm_command, npm_environment

Progress = Callable[[str], None]

INSTALL_SECONDS = 30 * 60
BUILD_SECONDS = 15 * 60
REPORT_EVERY_SECONDS = 15


def server_script(folder: Path) -> Path:
    """The script that starts the server of an installed tree."""
    return folder / "node_modules" / "n8n" / "bin" / "n8n"


def published_document(folder: Path) -> Path:
    """The OpenAPI document of an installed tree."""
    return folder / "node_modules" / "n8n" / "dist" / "public-api" / "v1" / "openapi.yml"


def cache_folder() -> Path:
    """Where installed servers are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "airflow-provider-service" / "servers"


def install(generation: Generation, progress: Progress) -> Path:
    """Return the folder of the installed server, installing it first when this pin is not there yet.

    Safe to call from several processes at once: one installs, the others wait. A tree appears under its final name only
    when it is complete.

    :param progress: takes one line of text now and then, while something long goes on.
    :raises LiveServerError: it could not be installed; contains the end of the log.
    """
    folder = cache_folder() / generation.fingerprint
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock(folder.with_suffix(".lock"), progress):
        if not folder.is_dir():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed
            try:
                _install_into(partial, generation, progress)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


@contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    with path.open("w") as file:
        if not _acquired(file.fileno()):
            progress("another run is installing the same server: waiting for it")
            wait_until(
                lambda: _acquired(file.fileno()),
                seconds=INSTALL_SECONDS + BUILD_SECONDS,
                what=f"the other run that holds {path}",
                interval=0.5,
            )
        yield


def _acquired(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _install_into(partial: Path, generation: Generation, progress: Progress) -> None:
    partial.mkdir()
    shutil.copy(generation.manifest, partial)
    progress(f"installing server {generation.version} under {partial.parent}: about 4 minutes, once, 2 GB")
    # Peer dependencies conflict, so the manifest names those without which a node fails. Install scripts would download
    # binaries: the ones needed are compiled below.
    _run(
        "npm install",
        npm_command("install", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"),
        partial,
        INSTALL_SECONDS,
        progress,
    )
    _run("compiling native code", npm_command("run", "build-native"), partial, BUILD_SECONDS, progress)
    _run("checking that it starts", node_command(str(server_script(partial)), "--version"), partial, 120, progress)
    version = tail(partial / "install.log", 1).strip()
    if version != generation.version:
        raise LiveServerError(f"Installed server {generation.version}, but it calls itself {version!r}.")


def _run(step: str, command: list[str], folder: Path, seconds: float, progress: Progress) -> None:
    log = folder / "install.log"
    started = reported = time.monotonic()
    progress(f"{step} ...")
    process = GuardedProcess(command, folder=folder, environment=npm_environment(), log=log, scratch=folder)

    def finished() -> bool:
        nonlocal reported
        if time.monotonic() - reported >= REPORT_EVERY_SECONDS:
            reported = time.monotonic()
            progress(f"{step}: {reported - started:.0f} s")
        return process.exit_code is not None

    try:
        wait_until(finished, seconds=seconds, what=step, interval=0.5)
    except BaseException:
        process.end()
        raise
    process.close()
    if process.exit_code != 0:
        raise LiveServerError(f"{step} failed with code {process.exit_code}. End of its log:\n{tail(log)}")
    progress(f"{step}: done after {time.monotonic() - started:.0f} s")
