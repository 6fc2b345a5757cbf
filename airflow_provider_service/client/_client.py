"""The client, with one attribute per resource of the service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from airflow_provider_service.client import resources

if TYPE_CHECKING:
    from typing import Self

    from airflow_provider_service.client._config import ServiceConfig
    from airflow_provider_service.client._http.transport import Transport


class Resources:
    """The resources of one server; a subclass provides the transport.

    A resource's module is loaded when its attribute is first used.
    """

    if TYPE_CHECKING:

        @property
        def transport(self) -> Transport: ...

    @cached_property
    def workflows(self) -> resources.Workflows:
        """Workflows, their history, versions and tags."""
        return resources.Workflows(self.transport)

    @cached_property
    def executions(self) -> resources.Executions:
        """Executions and their annotation tags."""
        return resources.Executions(self.transport)

    @cached_property
    def credentials(self) -> resources.Credentials:
        """Credentials."""
        return resources.Credentials(self.transport)

    @cached_property
    def data_tables(self) -> resources.DataTables:
        """Data tables."""
        return resources.DataTables(self.transport)

    @cached_property
    def data_table_columns(self) -> resources.DataTableColumns:
        """Columns of data tables."""
        return resources.DataTableColumns(self.transport)

    @cached_property
    def data_table_rows(self) -> resources.DataTableRows:
        """Rows of data tables."""
        return resources.DataTableRows(self.transport)

    @cached_property
    def folders(self) -> resources.Folders:
        """Folders of a project."""
        return resources.Folders(self.transport)

    @cached_property
    def projects(self) -> resources.Projects:
        """Projects and their members."""
        return resources.Projects(self.transport)

    @cached_property
    def tags(self) -> resources.Tags:
        """The global tag registry."""
        return resources.Tags(self.transport)

    @cached_property
    def users(self) -> resources.Users:
        """Users of the instance."""
        return resources.Users(self.transport)

    @cached_property
    def variables(self) -> resources.Variables:
        """Instance variables."""
        return resources.Variables(self.transport)

    @cached_property
    def community_packages(self) -> resources.CommunityPackages:
        """Community node packages."""
        return resources.CommunityPackages(self.transport)

    @cached_property
    def insights(self) -> resources.Insights:
        """Insights."""
        return resources.Insights(self.transport)

    @cached_property
    def audit(self) -> resources.Audit:
        """The security audit."""
        return resources.Audit(self.transport)

    @cached_property
    def source_control(self) -> resources.SourceControl:
        """The source control connection."""
        return resources.SourceControl(self.transport)

    @cached_property
    def discovery(self) -> resources.Discovery:
        """The capabilities of the key on this server."""
        return resources.Discovery(self.transport)

    @cached_property
    def webhooks(self) -> resources.Webhooks:
        """Production webhooks of workflows, which are not part of the API."""
        return resources.Webhooks(self.transport)

    @cached_property
    def mcp(self) -> resources.Mcp:
        """The MCP endpoint, which starts any workflow. It is not part of the API."""
        return resources.Mcp(self.transport)

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
