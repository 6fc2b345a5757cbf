"""The hook: an Airflow connection turned into a client of the service."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_service._compat import mask_secret
from airflow_provider_service.client._client import Resources, ServiceClient
from airflow_provider_service.client.errors import (
    ServiceConfigError,
    ServiceError,
    ServiceNotOfferedError,
    ServiceStartingError,
)
from airflow_provider_service.hooks.connection import config_of

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from airflow_provider_service.client.config import ServiceConfig
    from airflow_provider_service.client.http.transport import Transport


class ServiceHook(Resources, BaseHook):
    """Access to every endpoint of the service, one attribute per resource.

    Nothing is sent before the first call. Usable as a context manager, which closes idle connections.

    :param service_conn_id: Airflow connection of type ``service``.
    """

    conn_name_attr = "service_conn_id"
    default_conn_name = "service_default"
    conn_type = "service"
    hook_name = "Service"

    def __init__(self, service_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.service_conn_id = service_conn_id

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Labels and placeholders of the connection form."""
        from airflow_provider_service.get_provider_info import UI_FIELD_BEHAVIOUR

        return {name.replace("-", "_"): value for name, value in UI_FIELD_BEHAVIOUR.items()}

    @cached_property
    def config(self) -> ServiceConfig:
        """The connection's settings.

        :raises ServiceConfigError: a field of the connection is unknown, missing or wrong.
        """
        config = config_of(self.get_connection(self.service_conn_id))
        mask_secret(config.api_key.get_secret_value())
        return config

    @cached_property
    def client(self) -> ServiceClient:
        """The client of this connection, one per hook."""
        return ServiceClient(self.config)

    @property
    def transport(self) -> Transport:
        """What sends the requests."""
        return self.client.transport

    def get_conn(self) -> ServiceClient:
        """Return the client of this connection."""
        return self.client

    def close(self) -> None:
        """Close idle connections."""
        if "client" in self.__dict__:
            self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def test_connection(self) -> tuple[bool, str]:
        """Try address and key once, without retries: ``GET /discover``.

        :returns: whether both work, and what is wrong if not.
        """
        try:
            config = self.config.one_try()
        except ServiceConfigError as error:
            return False, str(error)
        with ServiceClient(config) as client:
            try:
                return True, f"Connected to {config.base_url}; {_what_the_key_may(client)}"
            except ServiceStartingError as error:
                return False, _starting_or_elsewhere(client, error)
            except ServiceError as error:
                return False, str(error)


def _what_the_key_may(client: ServiceClient) -> str:
    try:
        found = client.discovery.discover()
    except ServiceNotOfferedError:
        next(client.workflows.list(limit=1), None)
        return "the key may list workflows (this server can not tell its scopes)"
    return f"the key holds {len(found.scopes)} scopes"


def _starting_or_elsewhere(client: ServiceClient, error: ServiceStartingError) -> str:
    if client.transport.probe("/healthz/readiness") == 503:
        return f"The service at {client.transport.config.base_url} is still starting; try again in a minute"
    return f"{client.transport.config.api_root} is not the service's API: it answers with an HTML page. {error.hint}"
