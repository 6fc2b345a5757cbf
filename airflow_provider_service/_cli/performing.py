"""Perform a command: its screen, its connection, its errors in one line, and its exit status."""

from __future__ import annotations

import argparse
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module

from airflow_provider_service._cli.connecting import in_environment
from airflow_provider_service._cli.screen import DeclinedError, Screen, UsageError
from airflow_provider_service._core.instances.rollback import is_rolling_back

DONE, FAILED, MISUSED, CHANGES, INTERRUPTED = 0, 1, 2, 3, 130
# From the keyboard, from a CI, and from a terminal that is gone.
_SIGNALS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Since Airflow 3.1, only processes that set this get connections from the database. Its own commands set it, too.
_WITH_STORED_CONNECTIONS = ("_AIRFLOW_PROCESS_CONTEXT", "server")


def perform(name: str, arguments: argparse.Namespace) -> int:
    """Perform a command.

    :param name: name of the command and of its module.
    :returns: the exit status: 0 if it succeeded, 1 if it failed, 2 if its usage was wrong; for a plan with
        ``--detailed-exitcode``, 3 if there are changes.
    """
    screen = Screen(as_json=arguments.json)
    with (
        _interruptible(screen),
        screen.logs(is_verbose=arguments.verbose),
        in_environment(*_WITH_STORED_CONNECTIONS),
    ):
        try:
            module = import_module(f"airflow_provider_service._cli.{name}")
            status: int = module.perform(screen, arguments)
        except UsageError as error:
            return _failed(screen, error, MISUSED)
        except DeclinedError as error:
            return _failed(screen, error, FAILED)
        except KeyboardInterrupt:
            return _failed(screen, InterruptedError("interrupted"), INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - a person reads any error
            if arguments.verbose:
                screen.note(traceback.format_exc().rstrip())
            return _failed(screen, error, FAILED)
        return status


@contextmanager
def _interruptible(screen: Screen) -> Iterator[None]:
    """Let a signal to end interrupt the command, so that a deployment is rolled back, but let none end the rollback."""

    def interrupt(*_: object) -> None:
        if not is_rolling_back.get():
            raise KeyboardInterrupt
        with suppress(RuntimeError):  # the signal has interrupted the output of another line
            screen.note("Rolling back; please wait", None)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What is ignored, as under nohup, stays ignored.
    before = {one: now for one in _SIGNALS_TO_END if (now := signal.getsignal(one)) is not signal.SIG_IGN}
    try:
        for one in before:
            signal.signal(one, interrupt)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _failed(screen: Screen, error: Exception, status: int) -> int:
    from airflow.providers.common.compat.sdk import AirflowException

    from airflow_provider_service.client.errors import ServiceError

    is_ours = isinstance(error, (ServiceError, AirflowException, UsageError, DeclinedError, InterruptedError))
    text = str(error) if is_ours else f"{type(error).__name__}: {error} (--verbose shows more)"
    screen.note(f"Error: {text}", "bold red")
    screen.result({"error": text})
    return status
