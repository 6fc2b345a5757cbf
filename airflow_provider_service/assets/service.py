"""Addresses of data tables and workflows as assets (datasets in Airflow 2), and what OpenLineage calls them.

Airflow loads this module when a DAG file names such an asset, so it imports nothing heavy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from airflow_provider_service.client._constraints import plain_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

    from airflow.providers.common.compat.openlineage.facet import Dataset
    from airflow.providers.common.compat.sdk import Asset

__all__ = ["convert_asset_to_openlineage", "create_asset", "data_table_asset", "sanitize_uri", "workflow_asset"]

#: Scheme of the addresses.
SCHEME = "service"
TABLES, WORKFLOWS = "data_tables", "workflows"

_OBJECT = re.compile(rf"(?P<prefix>/.+)?/(?P<name>(?:{TABLES}|{WORKFLOWS})/[^/]+)")


def data_table_asset(base_url: str, data_table_id: str, *, extra: Mapping[str, Any] | None = None) -> Asset:
    """The asset of a data table: ``service://host:port/data_tables/{id}``.

    :param base_url: address of the service, as in the connection, such as ``"https://service.example.com"``.
    :param data_table_id: id of the table, which its page's address shows.
    :param extra: further information; None for none.
    """
    return create_asset(base_url=base_url, data_table_id=data_table_id, extra=extra)


def workflow_asset(base_url: str, workflow_id: str, *, extra: Mapping[str, Any] | None = None) -> Asset:
    """The asset of a workflow: ``service://host:port/workflows/{id}``.

    :param base_url: address of the service, as in the connection, such as ``"https://service.example.com"``.
    :param workflow_id: id of the workflow, which its page's address shows.
    :param extra: further information; None for none.
    """
    return create_asset(base_url=base_url, workflow_id=workflow_id, extra=extra)


def create_asset(
    *,
    base_url: str,
    data_table_id: str | None = None,
    workflow_id: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Asset:
    """The asset of a data table or of a workflow; the factory that Airflow knows.

    :raises ValueError: both or none of the two are given, the id is not one that the service makes, or the address has
        no host.
    """
    from airflow.providers.common.compat.sdk import Asset

    if (data_table_id is None) == (workflow_id is None):
        raise ValueError("give either data_table_id or workflow_id")
    kind, object_id = (TABLES, data_table_id) if data_table_id is not None else (WORKFLOWS, workflow_id)
    name = object_name(kind, plain_id(str(object_id)))
    return Asset(uri=f"{namespace_of(base_url)}/{name}", extra=None if extra is None else dict(extra))


def namespace_of(base_url: str) -> str:
    """The beginning of the addresses of the service's objects, which is their namespace in OpenLineage.

    :raises ValueError: the address has no host.
    """
    parts = urlsplit(base_url)
    if not parts.hostname:
        raise ValueError(f"{base_url!r} is not an address such as https://service.example.com")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{SCHEME}://{host}{port}{parts.path.rstrip('/')}"


def object_name(kind: str, object_id: object) -> str:
    """The name of a table or workflow below its namespace, such as ``data_tables/7``."""
    return f"{kind}/{quote(str(object_id), safe='')}"


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Refuse an address that is not one of a data table or a workflow.

    :raises ValueError: it is not.
    """
    path = uri.path.rstrip("/")
    if not uri.hostname or not _OBJECT.fullmatch(path):
        raise ValueError(
            f"an asset of the service is {SCHEME}://host/{TABLES}/id or {SCHEME}://host/{WORKFLOWS}/id, not "
            f"{uri.geturl()!r}"
        )
    return uri._replace(netloc=uri.netloc.lower(), path=path, query="", fragment="")


def convert_asset_to_openlineage(asset: Asset, lineage_context: Any) -> Dataset:  # noqa: ARG001
    """The dataset that OpenLineage knows a table or workflow as; called by Airflow's OpenLineage provider."""
    from airflow.providers.common.compat.openlineage.facet import Dataset

    uri = sanitize_uri(urlsplit(asset.uri))
    match = _OBJECT.fullmatch(uri.path)
    prefix, name = match.group("prefix", "name") if match else ("", uri.path)
    return Dataset(namespace=f"{SCHEME}://{uri.netloc}{prefix or ''}", name=unquote(name))
