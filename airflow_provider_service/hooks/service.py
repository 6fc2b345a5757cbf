"""The hook, which turns an Airflow connection into a client of the service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook, mask_secret

from airflow_provider_service._airflow.attempts import fail_without_retry
from airflow_provider_service._airflow.connection import config_of, connection_of, no_connection
from airflow_provider_service._core.arguments import DAY_SECONDS, POLL_SECONDS, STARTS, require_choice, require_flag
from airflow_provider_service._core.connection_check import check_connection
from airflow_provider_service._core.references import PROJECT, WORKFLOW
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client._client import Resources
from airflow_provider_service.client.errors import ServiceConfigError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from airflow.providers.common.compat.sdk import Connection, Context

    from airflow_provider_service._core.arguments import OnVanished, ReturnOutput, Start
    from airflow_provider_service._core.runs import RunResult
    from airflow_provider_service.client import ServiceConfig
    from airflow_provider_service.client._constraints import Mode
    from airflow_provider_service.client._http.encoding import FileSource
    from airflow_provider_service.client._http.transport import Transport
    from airflow_provider_service.hooks._data_tables import HookDataTables
    from airflow_provider_service.hooks._running import HookExecutions

__all__ = ["N8nHook", "ServiceHook"]


class ServiceHook(Resources, BaseHook):
    """Access to every endpoint of the service, one attribute per resource.

    The attributes are ``workflows``, ``executions``, ``credentials``, ``data_tables``, ``data_table_columns``,
    ``data_table_rows``, ``folders``, ``projects``, ``tags``, ``users``, ``variables``, ``community_packages``,
    ``insights``, ``audit``, ``source_control``, ``discovery``, ``webhooks`` and ``mcp``.

    Nothing is sent before the first call. It can be used as a context manager, which closes idle connections on exit.
    Arguments of a resource's methods that are None, the default of most, are not sent, so the server's defaults apply.
    Methods that return an iterator request each page when the iteration reaches it. The docstring of each method says
    whether it is safe to repeat; calls that only read always are.

    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``. The default, ``service_default``, stands
        for ``n8n_default`` if it is not defined.
    """

    conn_name_attr = "service_conn_id"
    default_conn_name = "service_default"
    conn_type = "service"
    hook_name = "Service"
    #: Id of the connection that was found, since the default id stands for several; None before that.
    resolved_conn_id: str | None = None

    def __init__(self, service_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.service_conn_id = service_conn_id

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return the labels and placeholders of the connection form."""
        from airflow_provider_service.get_provider_info import ui_field_behaviour

        return {name.replace("-", "_"): value for name, value in ui_field_behaviour(cls.conn_type).items()}

    @classmethod
    def get_connection(cls, conn_id: str) -> Connection:
        """Return a connection.

        :raises AirflowNotFoundException: there is no such connection.
        """
        try:
            return super().get_connection(conn_id)
        except AirflowNotFoundException:
            raise no_connection(conn_id) from None

    @cached_property
    def config(self) -> ServiceConfig:
        """The connection's settings.

        :raises AirflowNotFoundException: there is no such connection.
        :raises ServiceConfigError: a field of the connection is unknown, missing or invalid.
        """
        config = config_of(connection_of(self.service_conn_id, self._get_candidate))
        for key in config.keys:
            mask_secret(key)
        return config

    def _get_candidate(self, conn_id: str) -> Any:
        connection = self.get_connection(conn_id)
        self.resolved_conn_id = conn_id
        return connection

    @cached_property
    def client(self) -> ServiceClient:
        """The client of this connection, one per hook."""
        return ServiceClient(self.config)

    @cached_property
    def executions(self) -> HookExecutions:
        """Executions, and the output of their nodes."""
        from airflow_provider_service.hooks._running import HookExecutions

        return HookExecutions(self.client)

    @cached_property
    def data_tables(self) -> HookDataTables:
        """Data tables, and their conversion from and to DataFrames."""
        from airflow_provider_service.hooks._data_tables import HookDataTables

        return HookDataTables(self.client)

    @property
    def transport(self) -> Transport:
        """The transport that sends the requests."""
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

    def run_workflow(
        self,
        *,
        workflow_id: str | None = None,
        workflow_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        payload: Any = None,
        run_key: str | None = None,
        context: Context | None = None,
        trigger_node: str | None = None,
        webhook_conn_id: str | None = None,
        path_parameters: Mapping[str, str | int] | None = None,
        files: Mapping[str, str | FileSource] | None = None,
        webhook_method: str | None = None,
        webhook_headers: Mapping[str, str] | None = None,
        activate: bool = False,
        start: Start = "auto",
        mode: Mode = "production",
        enable_mcp: bool = False,
        wait_for_completion: bool = True,
        timeout: timedelta | float = DAY_SECONDS,
        poll_interval: timedelta | float = POLL_SECONDS,
        on_vanished: OnVanished = "fail",
        return_output: ReturnOutput = "none",
        max_output_items: int | None = None,
        output_path: str | None = None,
    ) -> RunResult:
        """Run a workflow, whatever its trigger, and wait in the worker until the execution has ended.

        Safe to repeat with a ``run_key``: a call with the same key resumes the execution that an earlier call started,
        even if that call was killed or lost its answer, unless the execution failed. In a task, the key belongs to the
        task run, like the execution of ``ServiceRunWorkflowOperator``: each attempt resumes the execution of the
        previous one, or starts another if that execution failed; clearing the task starts a new one. Elsewhere, the key
        alone identifies the run for one day. Every call then first searches for three seconds for earlier executions,
        and the workflow must keep its executions. Two simultaneous calls with the same key may start two executions.

        Without a key, every call starts one execution, even if its answer is lost, and repeating the call after a kill
        runs the workflow again.

        An execution that has not ended by the ``timeout`` is stopped. If the task ends early, the execution keeps
        running. Arguments that are not described here are those of :class:`ServiceRunWorkflowOperator`, without
        templates.

        :param run_key: any text that identifies this run of the workflow; None, the default, starts a new execution
            with every call.
        :param context: context of the task, if the call does not run in that task, but in a callback, for example.
        :returns: a :class:`RunResult`.
        :raises ServiceExecutionFailedError: the execution failed, or did not end in time and was stopped.
        :raises ServiceWaitError: the execution could not be observed; with the same key, another call resumes it.
        :raises ServiceRunNotStartedError: nothing was started.
        :raises ServiceApiError: another failure of a call; an execution may have been started unless its
            ``not_processed`` is True.
        :raises AirflowFailException: an argument or the workflow cannot be used, an execution may have been started
            that cannot be found, or it has vanished. Airflow does not retry the task: that would not help, or might
            run the workflow twice.
        """
        from airflow_provider_service._airflow.connection import WebhookHeaders
        from airflow_provider_service._core.runs.output import WantedOutput
        from airflow_provider_service._core.runs.request import RunRequest
        from airflow_provider_service.client._constraints import MODES
        from airflow_provider_service.client._http.redaction import hidden
        from airflow_provider_service.hooks._running import require_key, run_once, wait_as

        named = SimpleNamespace(
            workflow_id=workflow_id, workflow_name=workflow_name, project_id=project_id, project_name=project_name
        )
        webhook_headers = hidden(webhook_headers)  # so that no frame of a later error shows them
        with fail_without_retry():
            for reference in (WORKFLOW, PROJECT):
                reference.check(named, are_rendered=True)
            require_key(run_key, context)
            require_flag("activate", activate)
            require_choice("start", start, STARTS)
            require_choice("mode", mode, MODES)
            require_flag("enable_mcp", enable_mcp)
            require_flag("wait_for_completion", wait_for_completion)
            wanted = WantedOutput.of(return_output, max_output_items, output_path)
            wait = wait_as(self.service_conn_id, timeout, poll_interval, on_vanished)
            headers = WebhookHeaders(
                None if webhook_conn_id is None else self.get_connection(webhook_conn_id), webhook_headers
            )
            request = RunRequest(
                self.workflows.get(WORKFLOW.required_id_in(named, self)),
                payload,
                trigger_node,
                headers,
                activate,
                start,
                mode,
                enable_mcp,
                path_parameters=path_parameters,
                webhook_method=webhook_method,
                files=files,
            )
            return run_once(
                self.client,
                request,
                wait,
                run_key=run_key,
                context=context,
                wait_for_completion=wait_for_completion,
                wanted=wanted,
            )

    def test_connection(self) -> tuple[bool, str]:
        """Test the address and the key with one request, without retries: ``GET /discover``.

        :returns: whether both work, and a message that says what is wrong if not.
        """
        try:
            config = self.config.one_try()
        except ServiceConfigError as error:
            return False, str(error)
        with ServiceClient(config) as client:
            reached = check_connection(client)
        return reached.is_good, reached.message


class N8nHook(ServiceHook):
    """The hook that Airflow creates for a connection of type ``n8n``.

    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``n8n_default`` by default.
    """

    default_conn_name = "n8n_default"
    conn_type = "n8n"
    hook_name = "n8n"

    def __init__(self, service_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(service_conn_id, **kwargs)

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return the labels and placeholders of the connection form."""
        return super().get_ui_field_behaviour()  # Airflow before 3.2 ignores a method that the class inherits
