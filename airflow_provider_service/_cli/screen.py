"""The output of a command: lines for people, or one JSON value for machines; all else is on the standard error."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.reports.report import printable
from airflow_provider_service.client._http.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console


_PACKAGE = "airflow_provider_service"
# The errors of a pipe and of a terminal.
_READER_LEFT = (errno.EPIPE, errno.EIO)
_STYLES = {logging.WARNING: "yellow", logging.ERROR: "red"}


class UsageError(Exception):
    """The command cannot be performed as it was called; nothing was done."""


def require_text(name: str, value: object) -> None:
    """Refuse an option whose value is empty, as from a variable of a script that is not set."""
    if isinstance(value, str) and not value.strip():
        raise UsageError(f"--{name.replace('_', '-')} must not be empty")


def given_once(what: str, *values: str | None) -> str | None:
    """The one value that is given in any of several places; None if none is."""
    given = [value for value in values if value is not None]
    if len(given) > 1:
        raise UsageError(f"give {what} once")
    return next(iter(given), None)


class DeclinedError(Exception):
    """A person did not confirm a question; nothing was done."""


class Screen:
    """The output of a command. Texts may come from anybody: they are made printable, and keys in them are masked."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._secrets: list[str] = []
        self._output: Any = _Output(sys.stdout)
        self._errors = _console(_Output(sys.stderr))
        self.console = self._errors if as_json else _console(self._output)
        self.is_terminal = sys.stderr.isatty()

    def hide(self, secrets: Sequence[str]) -> None:
        self._secrets += secrets

    def line(self, text: str = "", style: str | None = None) -> None:
        if not self.as_json:
            _print(self.console, self._safe(text), style)

    def note(self, text: str, style: str | None = "dim") -> None:
        """Show a line apart from the result, on the standard error."""
        _print(self._errors, self._safe(text), style)

    def result(self, value: Any) -> None:
        if self.as_json:
            self._print_json(value)

    def keep_output_for_data(self) -> None:
        """Send all lines to the standard error, so that only :meth:`data` writes to the standard output."""
        self.console = self._errors

    def data(self, value: Any) -> None:
        """Print what was asked for: as JSON, or more readable at a terminal."""
        if self._output.isatty():
            _print(_console(self._output), self._safe(json.dumps(value, indent=2, ensure_ascii=False)), None)
        else:
            self._print_json(value)

    def _print_json(self, value: Any) -> None:
        plain = json.loads(json.dumps(value, default=str))
        # JSON escapes all characters outside of ASCII, so it cannot control a terminal.
        print(json.dumps(self._without_secrets(plain), indent=2), file=self._output, flush=True)

    def require_answer(self, *, yes: bool) -> None:
        """Refuse to begin if a confirmation is needed but there is no terminal."""
        if not yes and not sys.stdin.isatty():
            raise UsageError(
                "there is no terminal on which to ask for confirmation, so --yes is required; nothing was done"
            )

    def confirm(self, question: str, *, yes: bool) -> None:
        self.require_answer(yes=yes)
        if yes:
            return
        self._errors.print(f"{self._safe(question)} [y/N] ", style="bold", end="", soft_wrap=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise DeclinedError("nothing was done")

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        if not self._errors.is_terminal:
            yield
            return
        with self._errors.status(what):
            yield

    @contextmanager
    def logs(self, *, is_verbose: bool) -> Iterator[None]:
        """Send logs and the output of libraries to the standard error, to keep the standard output for the command."""
        root, own = logging.getLogger(), logging.getLogger(_PACKAGE)
        with (
            _lines_of(root, self, logging.DEBUG if is_verbose else logging.WARNING),
            _lines_of(own, self, logging.DEBUG if is_verbose else logging.INFO),
            # There, Airflow 2 shows connections that it cannot read, with their keys.
            _lines_of(logging.getLogger("airflow.models.connection"), self, logging.CRITICAL),
            redirect_stdout(sys.stderr),
        ):
            yield

    def _safe(self, text: str) -> str:
        return printable(self._without_secrets(text))

    def _without_secrets(self, value: Any) -> Any:
        return redacted(value, {}, doubtful={"": self._secrets})


class _Output:
    """If its reader leaves, as ``head`` does, output is dropped. Characters that it cannot show are escaped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        """Write a text, which is sent at the latest with the next ``flush``."""
        with self._dropping():
            try:
                self._stream.write(text)
            except UnicodeEncodeError:  # nothing of the text was written
                encoding = self._stream.encoding
                self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def flush(self) -> None:
        with self._dropping():
            self._stream.flush()

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _READER_LEFT:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class _Lines(logging.Handler):
    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.note(self.format(record), _STYLES.get(record.levelno, "dim"))


@contextmanager
def _lines_of(logger: logging.Logger, screen: Screen, level: int) -> Iterator[None]:
    before = logger.handlers[:], logger.level, logger.propagate
    # A later import may let Airflow configure the root logger again, so the loggers do not depend on each other.
    logger.handlers, logger.propagate = [_Lines(screen)], False
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.handlers, level, logger.propagate = before
        logger.setLevel(level)


def _console(file: Any) -> Console:
    from rich.console import Console

    # Colours appear only on a terminal, and not if NO_COLOR is set.
    return Console(file=file, highlight=False, markup=False, emoji=False)


def _print(console: Console, text: str, style: str | None) -> None:
    console.print(text, style=style, soft_wrap=True)


@contextmanager
def progress_bar(steps: Sequence[str], console: Console) -> Iterator[Callable[[], None]]:
    """Show a bar below the output, and remove it at the end; without a terminal, show nothing."""
    if not console.is_terminal:  # Rich 13 would end even a disabled bar with an empty line
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(steps[0], total=len(steps))
        following = iter(steps[1:])

        def done() -> None:
            bar.update(task, advance=1, description=next(following, ""), refresh=True)

        yield done
