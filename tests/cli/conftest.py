"""The command line in this process, and an instance with files to deploy to it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from airflow_provider_service._cli.commands import main
from tests.instances.conftest import running_second, second, second_client
from tests.instances.workflows import child, parent

__all__ = ["running_second", "second", "second_client"]


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def result(self) -> Any:
        """The result that it printed as JSON, and nothing else."""
        return json.loads(self.out)


Cli = Callable[..., Ended]


class Terminal(io.StringIO):
    """A terminal, to read from or to write to."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def cli(simulator: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """``cli("plan", folder)`` runs a command; with ``answer``, on a terminal where somebody types that."""

    def run(*arguments: object, answer: str | None = None) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.StringIO() if answer is None else Terminal(f"{answer}\n"))
        capsys.readouterr()
        try:
            status = main([str(one) for one in arguments])
        except SystemExit as ended:  # argparse
            status = int(ended.code or 0)
        return Ended(status, *capsys.readouterr())

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two workflows, one of which calls the other."""
    found = tmp_path / "workflows"
    found.mkdir()
    for definition in (child(), parent()):
        (found / f"{definition['name']}.json").write_text(json.dumps(definition))
    return found
