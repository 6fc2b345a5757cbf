"""Interpret an Airflow connection. Nothing else in the package does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from airflow import __version__ as airflow_version
from airflow.providers.common.compat.connection import get_async_connection
from airflow.providers.common.compat.sdk import AirflowNotFoundException, mask_secret

from airflow_provider_service.client import ServiceConfig
from airflow_provider_service.client._config import DEFAULT_KEY_HEADER, NO_EXTRAS, is_blank
from airflow_provider_service.client._http.redaction import hidden
from airflow_provider_service.client.errors import ServiceConfigError

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

#: The header that carries the key, by type of connection. The password of another type is never sent to the host.
KEY_HEADERS = {"n8n": "X-N8N-API-KEY", "service": DEFAULT_KEY_HEADER}
#: The connections behind the default connection id: the first of them that is defined is used.
DEFAULT_CONNECTIONS = ("service_default", "n8n_default")
#: What is said of a connection that does not exist.
NO_CONNECTION = "Airflow has no such connection; add it under Admin, Connections, or as a variable of the environment"
_PROTOCOLS = ("http", "https")
# The extras that Airflow masks, too.
_SECRETS = frozenset({"bridge_secret", "mcp_api_key", "proxies"})


class _Fields(NamedTuple):
    """Fields of a connection. Unlike Airflow's own connection, it shows no secret in its repr."""

    conn_id: str
    conn_type: str | None
    host: str | None
    schema: str | None
    login: str | None
    password: str | None
    port: int | None
    extra: str | None


def _fields_of(connection: Any) -> _Fields:
    fields = _Fields(*(getattr(connection, name) for name in _Fields._fields))
    return fields._replace(password=hidden(fields.password), extra=hidden(fields.extra))


def config_of(connection: Connection) -> ServiceConfig:
    """``schema`` may hold ``http`` or ``https``, or the path prefix if the connection was given as a URI."""
    fields = _fields_of(connection)
    del connection  # the frame of an error would show it
    source = f"connection '{fields.conn_id}'"
    conn_type = fields.conn_type or "service"
    if conn_type not in KEY_HEADERS:
        raise ServiceConfigError(
            f"{source} is of type '{conn_type}', not 'n8n' or 'service': its password is not the service's, so "
            "nothing was sent"
        )
    extra = _extra(source, fields.extra)
    if misplaced := NO_EXTRAS & extra.keys():
        names = ", ".join(sorted(misplaced))
        raise ServiceConfigError(
            f"{names} cannot be in extra; the address belongs in host, the key in password", source=source
        )
    own = {
        "base_url": _base_url(source, fields),
        "api_key": fields.password,
        "key_header": KEY_HEADERS[conn_type],
        "application": f"apache-airflow/{airflow_version}",
    }
    if not (fields.password or "").strip():
        raise ServiceConfigError("password is empty; it holds the API key", source=source)
    given = {name: value for name, value in extra.items() if not is_blank(value)}
    return ServiceConfig.parse(source, {**own, **given})


def connection_of(service_conn_id: str, get: Callable[[str], Connection]) -> Connection:
    for conn_id in _candidates(service_conn_id):
        with suppress(AirflowNotFoundException):
            return get(conn_id)
    raise no_connection(*_candidates(service_conn_id))


async def config_for(service_conn_id: str) -> ServiceConfig:
    """Read the settings of a connection within an event loop."""
    for conn_id in _candidates(service_conn_id):
        with suppress(AirflowNotFoundException):
            return config_of(await get_async_connection(conn_id))
    raise no_connection(*_candidates(service_conn_id))


def _candidates(service_conn_id: str) -> tuple[str, ...]:
    return DEFAULT_CONNECTIONS if service_conn_id == DEFAULT_CONNECTIONS[0] else (service_conn_id,)


def no_connection(*conn_ids: str) -> AirflowNotFoundException:
    return AirflowNotFoundException(f"connection {' or '.join(map(repr, conn_ids))}: {NO_CONNECTION}")


class WebhookHeaders:
    """The connection holds a user as login and a password; or the name of a header as login and its value as password;
    or, for a signed token, no login, the secret as password, and the algorithm in ``extra``.
    """

    def __init__(self, connection: Connection | None, given: Mapping[str, str] | None) -> None:
        self._connection, given = None if connection is None else _fields_of(connection), hidden(given)
        del connection  # the frame of an error would show it
        from airflow_provider_service.client._http.start_answers import checked_headers

        self._given = checked_headers({} if given is None else given, "webhook_headers")

    @property
    def arguments(self) -> dict[str, bool]:
        """Whether each argument behind the headers was given, by its name in operators and the hook."""
        return {"webhook_headers": bool(self._given), "webhook_conn_id": self._connection is not None}

    def __call__(self, authentication: str) -> dict[str, str]:
        from airflow_provider_service.client.resources._webhooks import authentication_headers

        if self._connection is None:
            return dict(self._given)
        conn_id, login, password = self._connection.conn_id, self._connection.login, self._connection.password
        algorithm = _extra(f"connection '{conn_id}'", self._connection.extra).get("algorithm")
        headers = authentication_headers(authentication, login or "", password or "", algorithm=algorithm)
        for value in headers.values():  # the task's log hides them
            mask_secret(str(value))
            mask_secret(value.removeprefix("Bearer "))
        return {**self._given, **headers}


def _extra(source: str, text: str | None) -> dict[str, Any]:
    try:
        extra = json.loads(text or "{}")
    except (ValueError, RecursionError):
        extra = None
    if not isinstance(extra, dict):
        raise ServiceConfigError("extra must be a JSON object", source=source)
    return {name: hidden(value) if name in _SECRETS else value for name, value in extra.items()}


def _base_url(source: str, connection: _Fields) -> str:
    host, schema = (connection.host or "").strip(), (connection.schema or "").strip("/")
    if not host:
        raise ServiceConfigError(
            "host is empty; it holds the base URL, e.g. https://service.example.com", source=source
        )
    is_protocol = schema.lower() in _PROTOCOLS
    protocol, separator, name = host.rpartition("://")
    if not separator:
        protocol = schema if is_protocol else "https"
    with suppress(ValueError):  # if the connection is given as a URI, Airflow removes the brackets
        name = f"[{IPv6Address(name)}]"
    host = f"{protocol}://{name}"
    try:
        if not host.isprintable():
            raise ValueError  # urlsplit drops line breaks silently
        parts = urlsplit(host)
        port = f":{connection.port}" if connection.port and not parts.port else ""
    except ValueError:
        raise ServiceConfigError("host is not an address such as https://service.example.com", source=source) from None
    prefix = f"/{schema}" if schema and not is_protocol else ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{port}{parts.path.rstrip('/')}{prefix}{query}"
