"""What a traceback with local variables shows of an error."""

from __future__ import annotations

import traceback
from collections.abc import Iterator


def frames_of(error: BaseException | None) -> Iterator[str]:
    """Every local variable of every frame of an error, and of those that it hangs on, but for the tests' own."""
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_globals["__name__"].partition(".")[0] != "tests":
                yield from (f"{frame.f_code.co_name} {name} {value!r}" for name, value in frame.f_locals.items())
                # This is how tools that report errors write them.
                shown = traceback.StackSummary.extract([(frame, frame.f_lineno)], capture_locals=True)
                yield from (f"{frame.f_code.co_name} {name} {text}" for name, text in (shown[0].locals or {}).items())
        error = error.__cause__ or error.__context__


def showing(error: BaseException, *secrets: str) -> list[str]:
    """What shows one of the secrets: local variables, the error's text, or its repr."""
    found = [*frames_of(error), repr(error), str(error)]
    assert len(found) > 10
    return [line for line in found if any(secret in line for secret in secrets)]
