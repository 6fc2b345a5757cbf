"""Connect a command to an instance, through an Airflow connection, a URI, or environment variables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_service._cli.screen import UsageError, require_text
from airflow_provider_service.client.errors import ServiceConfigError

if TYPE_CHECKING:
    from airflow_provider_service._cli.screen import Screen
    from airflow_provider_service.hooks.service import ServiceHook

_DEFAULT = "service_default"
_ADDRESS, _KEY, _KEY_HEADER = "SERVICE_URL", "SERVICE_API_KEY", "SERVICE_KEY_HEADER"


@contextmanager
def connected(screen: Screen, conn_id: str | None, uri: str | None, *, option: str = "") -> Iterator[ServiceHook]:
    """Open the connection of a command.

    A URI or the environment variables become an Airflow connection of this process, so that the same code reads all of
    them. Airflow reads its database only for connections that the environment does not define.

    :param conn_id: id of an Airflow connection; None for that of the URI or the environment.
    :param uri: the connection itself.
    :param option: prefix of the names of the two options; with a prefix, the environment is ignored.
    :raises UsageError: an option is empty, or it is not clear which instance is meant.
    :raises ServiceConfigError: the connection does not exist or cannot be used.
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
        yield hook


def _open(hook: ServiceHook, name: str) -> None:
    from airflow_provider_service._core.pages.reading import error_text

    try:
        _ = hook.config
    except Exception as error:  # noqa: BLE001 - a secrets backend can raise anything, with a secret in its text
        reason = error.reason if isinstance(error, ServiceConfigError) else error_text(error)
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
    """Set a variable of the environment for a while, unless the value is None."""
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
