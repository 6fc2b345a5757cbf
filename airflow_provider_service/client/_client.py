"""The client, with one attribute per resource of the service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    from airflow_provider_service.client._config import ServiceConfig
    from airflow_provider_service.client._http.transport import Transport
    from airflow_provider_service.client.resources._audit import Audit
    from airflow_provider_service.client.resources._community_packages import CommunityPackages
    from airflow_provider_service.client.resources._credentials import Credentials
    from airflow_provider_service.client.resources._data_table_rows import DataTableRows
    from airflow_provider_service.client.resources._data_tables import DataTableColumns, DataTables
    from airflow_provider_service.client.resources._discovery import Discovery
    from airflow_provider_service.client.resources._executions import Executions
    from airflow_provider_service.client.resources._folders import Folders
    from airflow_provider_service.client.resources._insights import Insights
    from airflow_provider_service.client.resources._mcp import Mcp
    from airflow_provider_service.client.resources._projects import Projects
    from airflow_provider_service.client.resources._source_control import SourceControl
    from airflow_provider_service.client.resources._tags import Tags
    from airflow_provider_service.client.resources._users import Users
    from airflow_provider_service.client.resources._variables import Variables
    from airflow_provider_service.client.resources._webhooks import Webhooks
    from airflow_provider_service.client.resources._workflows import Workflows


class Resources:
    """The resources of one server; a subclass provides the transport.

    A resource's module is loaded when its attribute is first used.
    """

    if TYPE_CHECKING:

        @property
        def transport(self) -> Transport: ...

    @cached_property
    def workflows(self) -> Workflows:
        """Workflows, their history, versions and tags."""
        from airflow_provider_service.client.resources._workflows import Workflows

        return Workflows(self.transport)

    @cached_property
    def executions(self) -> Executions:
        """Executions and their annotation tags."""
        from airflow_provider_service.client.resources._executions import Executions

        return Executions(self.transport)

    @cached_property
    def credentials(self) -> Credentials:
        """Credentials."""
        from airflow_provider_service.client.resources._credentials import Credentials

        return Credentials(self.transport)

    @cached_property
    def data_tables(self) -> DataTables:
        """Data tables."""
        from airflow_provider_service.client.resources._data_tables import DataTables

        return DataTables(self.transport)

    @cached_property
    def data_table_columns(self) -> DataTableColumns:
        """Columns of data tables."""
        from airflow_provider_service.client.resources._data_tables import DataTableColumns

        return DataTableColumns(self.transport)

    @cached_property
    def data_table_rows(self) -> DataTableRows:
        """Rows of data tables."""
        from airflow_provider_service.client.resources._data_table_rows import DataTableRows

        return DataTableRows(self.transport)

    @cached_property
    def folders(self) -> Folders:
        """Folders of a project."""
        from airflow_provider_service.client.resources._folders import Folders

        return Folders(self.transport)

    @cached_property
    def projects(self) -> Projects:
        """Projects and their members."""
        from airflow_provider_service.client.resources._projects import Projects

        return Projects(self.transport)

    @cached_property
    def tags(self) -> Tags:
        """The global tag registry."""
        from airflow_provider_service.client.resources._tags import Tags

        return Tags(self.transport)

    @cached_property
    def users(self) -> Users:
        """Users of the instance."""
        from airflow_provider_service.client.resources._users import Users

        return Users(self.transport)

    @cached_property
    def variables(self) -> Variables:
        """Instance variables."""
        from airflow_provider_service.client.resources._variables import Variables

        return Variables(self.transport)

    @cached_property
    def community_packages(self) -> CommunityPackages:
        """Community node packages."""
        from airflow_provider_service.client.resources._community_packages import CommunityPackages

        return CommunityPackages(self.transport)

    @cached_property
    def insights(self) -> Insights:
        """Insights."""
        from airflow_provider_service.client.resources._insights import Insights

        return Insights(self.transport)

    @cached_property
    def audit(self) -> Audit:
        """The security audit."""
        from airflow_provider_service.client.resources._audit import Audit

        return Audit(self.transport)

    @cached_property
    def source_control(self) -> SourceControl:
        """The source control connection."""
        from airflow_provider_service.client.resources._source_control import SourceControl

        return SourceControl(self.transport)

    @cached_property
    def discovery(self) -> Discovery:
        """The capabilities of the key on this server."""
        from airflow_provider_service.client.resources._discovery import Discovery

        return Discovery(self.transport)

    @cached_property
    def webhooks(self) -> Webhooks:
        """Production webhooks of workflows, which are not part of the API."""
        from airflow_provider_service.client.resources._webhooks import Webhooks

        return Webhooks(self.transport)

    @cached_property
    def mcp(self) -> Mcp:
        """The MCP endpoint, which starts any workflow. It is not part of the API."""
        from airflow_provider_service.client.resources._mcp import Mcp

        return Mcp(self.transport)

    def request(
        self,
        method: str,
        path: str,
        *ids: str | int,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        files: Mapping[str, Any] | None = None,
        repeatable: bool | None = None,
        timeout: float | None = None,
        binary: bool = False,
    ) -> Any:
        """Call any endpoint of the API; meant for endpoints without a method of their own.

        :param method: HTTP method.
        :param path: path below the API root, with ``{}`` for each id: ``/roles/{}``.
        :param ids: values for the placeholders; they are percent-encoded.
        :param query: query parameters; those that are None are left out.
        :param body: JSON body, or the text fields that go with ``files``.
        :param files: files of a multipart body by the name of their field, each as ``(file name, bytes, media type)``.
        :param repeatable: whether a second call does no harm; by default true for GET, PUT and DELETE.
        :param timeout: seconds to wait for the answer instead of the connection's setting.
        :param binary: return the bytes of the answer instead of decoding JSON; False by default.
        :returns: the JSON value of the answer, None if the answer is empty, or its bytes with ``binary``.
        :raises ServiceApiError: the subclass that names the failure.
        """
        return self.transport.call(
            method,
            path,
            *ids,
            query=query,
            body=body,
            files=files,
            repeatable=repeatable,
            timeout=timeout,
            binary=binary,
        )


class ServiceClient(Resources):
    """A client of one server.

    :param config: address, key and limits.
    """

    #: Sends the requests.
    transport: Transport

    def __init__(self, config: ServiceConfig) -> None:
        from airflow_provider_service.client._http.transport import Transport

        self.transport = Transport(config)

    @property
    def base_url(self) -> str:
        """Address of the service; the paths of its pages are relative to it."""
        return self.transport.config.base_url

    def close(self) -> None:
        """Close idle connections."""
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
