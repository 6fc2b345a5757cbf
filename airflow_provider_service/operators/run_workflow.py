"""Operator that runs a workflow exactly once, and waits for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.settings import DEFAULT_DEFERRABLE
from airflow_provider_service._core.arguments import (
    DAY_SECONDS,
    FAULT_TOLERANCE_SECONDS,
    POLL_SECONDS,
    OnRetry,
    OnVanished,
    Start,
    as_rendered,
    has_template,
    is_structure,
    require,
    require_items,
)
from airflow_provider_service._core.references import PROJECT, WORKFLOW
from airflow_provider_service.client._constraints import Mode
from airflow_provider_service.operators._base import SealedFieldsMixin, revealed
from airflow_provider_service.operators._starting import ServiceStartingOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._airflow.connection import WebhookHeaders
    from airflow_provider_service._core.arguments import (
        Duration,
        ReturnOutput,
        TaskArguments,
        Templated,
        TemplatedDuration,
    )
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service.client._http.encoding import FileSource

__all__ = ["ServiceRunWorkflowOperator"]


def _payload_of_start(payload: Any, start: Start) -> None:
    if start == "bridge":
        require_items(payload)


class ServiceRunWorkflowOperator(SealedFieldsMixin, ServiceStartingOperator):
    """Run a workflow, whatever its trigger, and wait until the execution has ended.

    Safe to repeat: there is one execution per task run. If the trigger takes data, the call carries a key of the task
    run. A later attempt searches for the execution of an earlier one and resumes it, unless that execution failed.
    Clearing the task starts a new execution, unless the last one is still active. If an earlier attempt may have
    started an execution that cannot be found, the task fails without further retries, rather than run it twice. This
    can happen if the trigger takes no data, or the workflow does not keep its executions or hides their data.

    :param workflow_id: id of the workflow.
    :param workflow_name: exact name of the workflow, instead of its id; archived ones do not count.
    :param project_id: id of the project in which to look up the name; None (the default) for any project.
    :param project_name: exact name of that project, instead of its id.
    :param payload: data for the trigger: the JSON body of a webhook, or its query if the method is ``GET``; the fields
        of a form; the text of a chat; the input of a sub-workflow, as a mapping or a list of mappings; None (the
        default) for a schedule or a manual trigger. Pass text that contains braces as ``literal``, from ``airflow.sdk``
        (``airflow.utils.template`` before Airflow 3). A template renders to text: pass a mapping with templates as
        values, or set ``render_template_as_native_obj`` of the DAG. A template that renders to the text of a mapping or
        a list is refused.
    :param trigger_node: name of the trigger node; required if the workflow has several that could start it; None (the
        default) if there is only one.
    :param webhook_conn_id: Airflow connection with the webhook's own authentication: user and password; for header
        authentication, the name of the header as login and its value as password; for a token (JWT), no login, the
        passphrase as password, and in ``extra`` the algorithm: ``{"algorithm": "HS256"}``.
    :param path_parameters: values of the parameters in the webhook's path, by name: ``{"id": 7}`` for ``orders/:id``.
        None (the default) for none.
    :param files: files that the call of a webhook carries, by the name of their field: paths on the worker, URLs such
        as ``s3://conn_id@bucket/key``, or an ``ObjectStoragePath``. The values of ``payload`` are then text fields.
        None (the default) for none.
    :param webhook_method: HTTP method of the call, if the webhook accepts several; None (the default) for the first of
        them.
    :param webhook_headers: further headers of the call; None (the default) for none. They are hidden in logs, rendered
        fields and the stored DAG; prefer ``webhook_conn_id`` for secrets.
    :param activate: True to activate the workflow if it is not active, which publishes its draft and switches its
        schedule on; with False (the default), an inactive workflow fails the task without further retries.
    :param start: the start method: the production webhook (``"webhook"``); the server's MCP endpoint (``"mcp"``), which
        also starts workflows with a schedule, form, chat or manual trigger; or the bridge (``"bridge"``), a workflow
        that starts other workflows, such as those with a sub-workflow trigger, and is installed if it is missing.
        ``"auto"`` (the default) takes the first start method that fits the workflow.
    :param mode: with ``"mcp"``, what to run: the published version (``"production"``, the default) or the draft
        (``"manual"``).
    :param enable_mcp: True to make the workflow available in MCP if it is not, by its setting ``availableInMCP``; False
        by default.
    :param on_retry: what a retry of the task does if the execution of the previous attempt failed: run the workflow
        again (``"new"``, the default), or have the service retry that execution (``"retry_execution"``), unless it was
        canceled.
    :param return_output: what to return: the output of the last node (``"last_node"``), the output of another node
        (``{"node": "Name"}``), or no output (``"none"``, the default).
    :param max_output_items: maximum number of items to return; None (the default) for all.
    :param output_path: file for output that is larger than 48 kB of JSON: a path, or an address such as
        ``"s3://my_conn@bucket/{{ run_id }}.json"``, which may name an Airflow connection. None (the default) to leave
        such output out.
    :param wait_for_completion: wait until the execution has ended; True by default.
    :param deferrable: wait in the triggerer, where thousands of waits share their requests; the default is Airflow's
        ``[operators] default_deferrable``.
    :param poll_interval: seconds, or a timedelta, between two polls; 10 seconds by default.
    :param timeout: seconds, or a timedelta, after which the wait is over and the execution is stopped; a day by
        default. A deferred wait is over before the task's ``execution_timeout``.
    :param fault_tolerance: seconds, or a timedelta, for which polls may keep failing before the task fails; 300 seconds
        by default.
    :param cancel_on_kill: stop the execution if a person or a time limit ends the task, or if it is killed in its last
        attempt; True by default. If the worker ends while attempts are left, the next attempt resumes the execution.
    :param on_vanished: what to do if the execution cannot be found, or the key may not see it: ``"fail"`` (the default)
        or ``"succeed"``.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`RunResult`.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    :raises ServiceExecutionFailedError: the execution failed, or did not end in time; a retry runs the workflow again.
    :raises ServiceWaitError: the execution could not be observed; a retry resumes it.
    """

    template_fields: Sequence[str] = (
        *ServiceStartingOperator.template_fields,
        *WORKFLOW.fields,
        *PROJECT.fields,
        "payload",
        "trigger_node",
        "webhook_conn_id",
        "path_parameters",
        "files",
        "webhook_method",
        "webhook_headers",
        "output_path",
    )
    references = (WORKFLOW, PROJECT)
    joint_checks = {("payload", "start"): _payload_of_start}
    template_fields_renderers = {"payload": "json"}
    sealed_fields = ("webhook_headers",)

    def __init__(
        self,
        *,
        workflow_id: Templated[str | None] = None,
        workflow_name: Templated[str | None] = None,
        project_id: Templated[str | None] = None,
        project_name: Templated[str | None] = None,
        payload: Any = None,
        trigger_node: Templated[str | None] = None,
        webhook_conn_id: Templated[str | None] = None,
        path_parameters: Templated[Mapping[str, str | int] | None] = None,
        files: Templated[Mapping[str, str | FileSource] | None] = None,
        webhook_method: Templated[str | None] = None,
        webhook_headers: Templated[Mapping[str, str] | None] = None,
        activate: bool = False,
        start: Start = "auto",
        mode: Mode = "production",
        enable_mcp: bool = False,
        on_retry: OnRetry = "new",
        return_output: ReturnOutput = "none",
        max_output_items: int | None = None,
        output_path: Templated[str | None] = None,
        wait_for_completion: bool = True,
        deferrable: bool = DEFAULT_DEFERRABLE,
        poll_interval: TemplatedDuration = POLL_SECONDS,
        timeout: TemplatedDuration = DAY_SECONDS,
        fault_tolerance: Duration = FAULT_TOLERANCE_SECONDS,
        cancel_on_kill: bool = True,
        on_vanished: OnVanished = "fail",
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(
            wait_for_completion=wait_for_completion,
            deferrable=deferrable,
            poll_interval=poll_interval,
            timeout=timeout,
            fault_tolerance=fault_tolerance,
            cancel_on_kill=cancel_on_kill,
            on_vanished=on_vanished,
            service_conn_id=service_conn_id,
            **kwargs,
        )
        self.workflow_id = as_rendered(workflow_id)
        self.workflow_name = as_rendered(workflow_name)
        self.project_id = as_rendered(project_id)
        self.project_name = as_rendered(project_name)
        self.payload = payload
        self.has_rendered_payload = False
        self.trigger_node = as_rendered(trigger_node)
        self.webhook_conn_id = as_rendered(webhook_conn_id)
        self.path_parameters = as_rendered(path_parameters)
        self.files = as_rendered(files)
        self.webhook_method = as_rendered(webhook_method)
        self.webhook_headers = as_rendered(webhook_headers)
        self.activate = activate
        self.start = start
        self.mode = mode
        self.enable_mcp = enable_mcp
        self.on_retry = on_retry
        self.return_output = return_output
        self.max_output_items = max_output_items
        self.output_path = as_rendered(output_path)
        self.check_arguments()
        # A mapped task, which Airflow creates only when it runs, may get the text of another task.
        is_mapped = getattr(self, "_BaseOperator__from_mapped", False)
        is_of_dag_file = isinstance(payload, str) and not has_template(payload) and not is_mapped
        require(
            not is_of_dag_file or not is_structure(payload),
            "payload is the text of a mapping or a list, and would be sent as text: give the mapping or the list, or "
            "literal(...) of airflow.sdk (airflow.utils.template before Airflow 3) if it is meant as text",
        )

    def _do_render_template_fields(self, parent: Any, *args: Any, **kwargs: Any) -> None:
        declared = parent.payload
        super()._do_render_template_fields(parent, *args, **kwargs)
        # Airflow does not render what a mapped task gets from another task, and may render a rendered field again.
        if isinstance(declared, str) and has_template(declared) and parent.payload != declared:
            parent.has_rendered_payload = True

    def begin(self, context: Context, start: IdempotentStart) -> tuple[str, str]:
        from airflow_provider_service._core.lineage import parent_headers
        from airflow_provider_service._core.runs.request import RunRequest

        workflow = self.hook.workflows.get(WORKFLOW.required_id_in(self, self.hook))
        self.link_workflow(context, workflow.id)
        self.known_name = workflow.name
        request = RunRequest(
            workflow,
            payload=self.payload,
            trigger_node=self.trigger_node,
            headers=self._headers(),
            activate=self.activate,
            start=self.start,
            mode=self.mode,
            enable_mcp=self.enable_mcp,
            on_retry=self.on_retry,
            path_parameters=self.path_parameters,
            webhook_method=self.webhook_method,
            files=self.files,
            has_rendered_payload=self.has_rendered_payload,
            parent_headers=parent_headers(context["ti"]),
        )
        wanted = self.wanted_output()
        if wanted is not None:
            wanted.require_in(request)
        return start.run_workflow(request)

    def requested_workflow_id(self) -> str | None:
        return self.workflow_id

    def wanted_output(self) -> WantedOutput | None:
        from airflow_provider_service._core.runs.output import WantedOutput

        return WantedOutput.of(self.return_output, self.max_output_items, self.output_path)

    def call_headers(self, authentication: str) -> Mapping[str, str]:
        return self._headers()(authentication)

    def _headers(self) -> WebhookHeaders:
        from airflow_provider_service._airflow.connection import WebhookHeaders

        return WebhookHeaders(
            None if self.webhook_conn_id is None else self.hook.get_connection(self.webhook_conn_id),
            revealed(self.webhook_headers),
        )
