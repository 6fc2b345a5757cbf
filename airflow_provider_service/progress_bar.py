"""How far a command has come, as a bar in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def progress_bar(steps: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Show a bar below what is printed, and remove it at the end; nothing where the output is not a terminal.

    :param steps: a few words about each step.
    :returns: what to call when a step is done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    # The console that Rich shares has looked at the output when somebody used it first.
    with Progress(*columns, console=Console(), transient=True, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(steps[0], total=len(steps))
        following = iter(steps[1:])

        def done() -> None:
            bar.update(task, advance=1, description=next(following, ""), refresh=True)

        yield done
