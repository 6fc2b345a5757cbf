"""Runs a command, and ends it when the process that started this script is gone, however that one ended.

Usage: ``guard.py GRACE_SECONDS SCRATCH_FOLDER COMMAND...``, with a pipe as standard input.
Prints the id of the command's process group, and exits with the command's code. When the pipe closes, the command gets
TERM, its whole group KILL once it is over or the grace time is, and the scratch folder is removed.
It is run as a script and alone: it imports nothing of the tests.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading


def signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS answers EPERM for a group of zombies
        os.killpg(group, number)


def end_when_abandoned(child: subprocess.Popen[bytes], grace: float, abandoned: threading.Event) -> None:
    # os.read: a thread blocked in sys.stdin would hold its lock while the interpreter shuts down.
    while os.read(0, 1024):
        pass
    abandoned.set()
    child.terminate()
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        signal_group(child.pid, signal.SIGKILL)


def main(grace: str, scratch: str, *command: str) -> int:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    print(child.pid, flush=True)
    abandoned = threading.Event()
    threading.Thread(target=end_when_abandoned, args=(child, float(grace), abandoned), daemon=True).start()
    code = child.wait()
    signal_group(child.pid, signal.SIGKILL)
    if abandoned.is_set():
        shutil.rmtree(scratch, ignore_errors=True)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
