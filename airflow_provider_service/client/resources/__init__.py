"""The endpoints of the service, one module per resource.

"Safe to repeat" means that a second call does no harm. The client automatically repeats such a call if it failed for a
temporary reason, within the connection's ``retry_deadline``. Every call that only reads is safe to repeat. The client
repeats other calls only if the service has certainly not processed them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_MODULES = {
    "Audit": "_audit",
    "CallOptions": "_base",
    "CommunityPackages": "_community_packages",
    "Credentials": "_credentials",
    "DataTableColumns": "_data_tables",
    "DataTableRows": "_data_table_rows",
    "DataTables": "_data_tables",
    "Discovery": "_discovery",
    "Executions": "_executions",
    "Folders": "_folders",
    "Insights": "_insights",
    "Mcp": "_mcp",
    "Projects": "_projects",
    "Resource": "_base",
    "SourceControl": "_source_control",
    "Tags": "_tags",
    "Users": "_users",
    "Variables": "_variables",
    "Webhooks": "_webhooks",
    "Workflows": "_workflows",
}
__all__ = list(_MODULES)

if TYPE_CHECKING:
    from airflow_provider_service.client.resources._audit import Audit as Audit
    from airflow_provider_service.client.resources._base import CallOptions as CallOptions
    from airflow_provider_service.client.resources._base import Resource as Resource
    from airflow_provider_service.client.resources._community_packages import CommunityPackages as CommunityPackages
    from airflow_provider_service.client.resources._credentials import Credentials as Credentials
    from airflow_provider_service.client.resources._data_table_rows import DataTableRows as DataTableRows
    from airflow_provider_service.client.resources._data_tables import DataTableColumns as DataTableColumns
    from airflow_provider_service.client.resources._data_tables import DataTables as DataTables
    from airflow_provider_service.client.resources._discovery import Discovery as Discovery
    from airflow_provider_service.client.resources._executions import Executions as Executions
    from airflow_provider_service.client.resources._folders import Folders as Folders
    from airflow_provider_service.client.resources._insights import Insights as Insights
    from airflow_provider_service.client.resources._mcp import Mcp as Mcp
    from airflow_provider_service.client.resources._projects import Projects as Projects
    from airflow_provider_service.client.resources._source_control import SourceControl as SourceControl
    from airflow_provider_service.client.resources._tags import Tags as Tags
    from airflow_provider_service.client.resources._users import Users as Users
    from airflow_provider_service.client.resources._variables import Variables as Variables
    from airflow_provider_service.client.resources._webhooks import Webhooks as Webhooks
    from airflow_provider_service.client.resources._workflows import Workflows as Workflows
else:

    def __getattr__(name: str) -> object:
        """Load a resource when it is first used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
