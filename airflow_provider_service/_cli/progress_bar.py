"""Show the progress of a command as a bar in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def progress_bar(steps: Sequence[str], console: Console | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar below the output, and remove it at the end; without a terminal, show nothing.

    :param steps: a few words about each step.
    :param console: console for all other output; None for the standard output.
    :returns: a function to call after each step.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    # The shared console of Rich writes to the output that it found at its first use.
    console = console or Console()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(steps[0], total=len(steps))
        following = iter(steps[1:])

        def done() -> None:
            bar.update(task, advance=1, description=next(following, ""), refresh=True)

        yield done
