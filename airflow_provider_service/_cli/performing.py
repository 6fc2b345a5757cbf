"""Perform a command: its screen, its errors in one line, and its exit status.

A command connects to an instance through an Airflow connection, a URI, or environment variables.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from airflow_provider_service._cli.screen import DeclinedError, Screen, UsageError, require_text
from airflow_provider_service._core.instances.rollback import is_rolling_back
from airflow_provider_service.client.errors import ServiceConfigError, ServiceError

if TYPE_CHECKING:
    from airflow_provider_service.hooks.service import ServiceHook


_DEFAULT = "service_default"
_ADDRESS, _KEY, _KEY_HEADER = "SERVICE_URL", "SERVICE_API_KEY", "SERVICE_KEY_HEADER"


# A name of several words, which no message contains by accident, or one that is set.
_ARGUMENT = re.compile(r"\b(?:([a-z]+(?:_[a-z]+)+)\b(?:=True)?|([a-z]+)=True)")

DONE, FAILED, MISUSED, CHANGES, INTERRUPTED = 0, 1, 2, 3, 130
# From the keyboard, from a CI, and from a terminal that is gone.
_SIGNALS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Since Airflow 3.1, only processes that set this get connections from the database. Its own commands set it, too.
_WITH_STORED_CONNECTIONS = ("_AIRFLOW_PROCESS_CONTEXT", "server")


def perform(place: str, arguments: argparse.Namespace) -> int:
    module, _, name = place.partition(".")
    screen = Screen(as_json=arguments.json)
    with _interruptible(screen), screen.logs(is_verbose=arguments.verbose), in_environment(*_WITH_STORED_CONNECTIONS):
        try:
            imported = import_module(f"airflow_provider_service._cli.{module}")
            status: int = getattr(imported, f"perform_{name}")(screen, arguments)
        except UsageError as error:
            return _failed(screen, _in_options(arguments, str(error)), MISUSED)
        except DeclinedError as error:
            return _failed(screen, str(error), FAILED)
        except KeyboardInterrupt:
            return _failed(screen, "interrupted", INTERRUPTED)
        except Exception as error:  # noqa: BLE001 - a person reads any error
            if arguments.verbose:
                screen.note(traceback.format_exc().rstrip())
            return _failed(screen, _in_options(arguments, _text(error)), FAILED)
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
    before = {number: now for number in _SIGNALS_TO_END if (now := signal.getsignal(number)) is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _text(error: Exception) -> str:
    from airflow.providers.common.compat.sdk import AirflowException

    is_ours = isinstance(error, (ServiceError, AirflowException))
    return str(error) if is_ours else f"{type(error).__name__}: {error} (--verbose shows more)"


def _in_options(arguments: argparse.Namespace, text: str) -> str:
    """A text that names the options of a command instead of the arguments of operators."""

    def option(name: re.Match[str]) -> str:
        argument = name[1] or name[2]
        return f"--{argument.replace('_', '-')}" if argument in arguments else name[0]

    return _ARGUMENT.sub(option, text)


def _failed(screen: Screen, text: str, status: int) -> int:
    screen.note(f"Error: {text}", "bold red")
    screen.result({"error": text})
    return status


@contextmanager
def connected(
    screen: Screen, conn_id: str | None, uri: str | None, *, option: str = "", is_examined: bool = False
) -> Iterator[ServiceHook]:
    """An option prefix, as ``source-``, takes no connection from the environment.

    A connection of Airflow's database is read only if the environment does not define one. At a terminal, a service
    that cannot be reached is an error at once, unless the command examines that itself.
    """
    from airflow_provider_service.hooks.service import ServiceHook

    require_text(f"{option}conn-id", conn_id)
    require_text(f"{option}uri", uri)
    if conn_id and uri:
        raise UsageError(f"give --{option}conn-id or --{option}uri, not both")
    if option and not (conn_id or uri):
        raise UsageError(f"give --{option}conn-id or --{option}uri")
    name, value = (f"--{option}uri", uri) if uri else (conn_id, None) if conn_id else _from_environment()
    with in_environment(f"AIRFLOW_CONN_{name.upper()}", value), ServiceHook(name) as hook:
        _open(hook, name)
        screen.hide(list(hook.config.keys))
        if not screen.as_json:
            screen.note(f"{'Source' if option else 'Instance'}: {hook.config.base_url} ({hook.resolved_conn_id})")
        if screen.is_terminal and not is_examined:
            is_reached, message = hook.test_connection()
            if not is_reached:
                raise ServiceError(message)
        yield hook


def _open(hook: ServiceHook, name: str) -> None:
    from airflow_provider_service._airflow.connection import NO_CONNECTION
    from airflow_provider_service._core.pages.reading import error_text

    try:
        _ = hook.config
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything, with a secret in its text
        reason = error.reason if isinstance(error, ServiceConfigError) else error_text(error)
        if reason == NO_CONNECTION and f"AIRFLOW_CONN_{name.upper()}" in os.environ:
            raise UsageError(f"{name} is neither a URI, such as n8n://:KEY@n8n.example.com, nor JSON") from None
        others = f"; or set {_ADDRESS} and {_KEY}, or give --conn-id" if name == _DEFAULT else ""
        raise ServiceConfigError(f"'{name}' cannot be used: {reason}{others}", source="connection") from None


def _from_environment() -> tuple[str, str | None]:
    url, key = os.environ.get(_ADDRESS), os.environ.get(_KEY)
    if not url and not key:
        return _DEFAULT, None
    if not (url and key):
        raise UsageError(f"set both {_ADDRESS} and {_KEY}, or neither")
    extra = {"key_header": os.environ.get(_KEY_HEADER)}
    return _ADDRESS, json.dumps({"conn_type": "n8n", "host": url, "password": key, "extra": extra})


@contextmanager
def in_environment(variable: str, value: str | None) -> Iterator[None]:
    if value is None:
        yield
        return
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]
        os.environ.update({} if before is None else {variable: before})
