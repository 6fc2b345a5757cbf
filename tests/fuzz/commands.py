"""Every command of the command line, with a connection of n8n, on a service that has been filled."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from airflow_provider_service._cli.commands import COMMANDS, main
from airflow_provider_service.client.errors import ServiceError

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
_RAW = "(--verbose shows more)"


class CommandFailedError(ServiceError):
    """A command has ended with a message and a status other than 0."""


def command(name: str, *arguments: str) -> Callable[[Any], Any]:
    """A command, for machines and for people.

    :param arguments: those that hold ``FOLDER`` or ``EXECUTION`` get the folder or the id of an execution there.
    """

    def run(place: Any) -> str:
        uri = {"conn_type": "n8n", "host": place.config.base_url, "password": place.simulator.api_key}
        known = {"FOLDER": str(place.folder), "EXECUTION": place.execution_id}
        given = [known.get(one) or one.replace("FOLDER", str(place.folder)) for one in arguments]
        return "".join(
            _run(place, [*name.split(), *given, "--uri", json.dumps(uri), *more]) for more in ([], ["--json"])
        )

    return run


def _run(place: Any, arguments: list[str]) -> str:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, sys.stdin = sys.stdin, io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            status = main(arguments)
    finally:
        sys.stdin = before
    texts = [one.buffer.getvalue().decode() for one in (out, err)]
    for text in texts:
        assert not _CONTROLS.search(text), text
        assert place.simulator.api_key not in text
        assert _RAW not in text, text
    if "--json" in arguments:
        json.loads(texts[0])
    if status:
        raise CommandFailedError(texts[1])
    return texts[0]


_OPTIONS: dict[str, tuple[str, ...]] = {
    "doctor": (),
    "plan": ("FOLDER/files", "--report-path", "FOLDER/plan.html"),
    "deploy": ("FOLDER/files", "--yes"),
    "export": ("FOLDER/exported", "--code-files", "--pinned-data", "--yes"),
    "promote": ("--source-conn-id", "service_default", "--tag-name", "all", "--yes"),
    "backup": ("FOLDER/backup.zip", "--report-path", "FOLDER/backup.md", "--yes"),
    "restore": ("FOLDER/backup.zip", "--on-conflict", "update", "--yes"),
    "audit": ("--report-path", "FOLDER/audit.html"),
    "run": ("Nightly sync", "--output", "-", "--output-path", "FOLDER/output.json", "--timeout", "5"),
    "executions list": ("--status", "success"),
    "executions show": ("EXECUTION",),
    "executions stop": ("EXECUTION",),
    "executions retry": ("EXECUTION", "--no-wait"),
    "workflows list": ("--name", "sync"),
    "logs": ("EXECUTION",),
}


def _restore(place: Any) -> Any:
    command("backup", *_OPTIONS["backup"])(place)
    return command("restore", *_OPTIONS["restore"])(place)


def _follow(place: Any) -> Any:
    execution_id = place.simulator.start_execution(place.workflow_id, status="success", age=100)
    return command("logs", execution_id, "--follow")(place)


COMMAND_SURFACES: dict[str, Callable[[Any], Any]] = {
    **{
        f"command {name}": command(name, *_OPTIONS[name])
        for name in (f"{one.group} {one.name}".strip() for one in COMMANDS)
    },
    "command restore": _restore,
    "command logs, followed": _follow,
}
