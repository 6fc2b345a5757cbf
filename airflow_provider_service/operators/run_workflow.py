"""Run a workflow and wait for it, exactly once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service.arguments import require, require_choice, require_flag, require_mapping, require_one_of
from airflow_provider_service.operators._rendering import SealedFieldsMixin, mask_all, revealed
from airflow_provider_service.operators._starting import ServiceStartingOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.client.models.workflows import Workflow
    from airflow_provider_service.runs.attempt import Attempt
    from airflow_provider_service.runs.search import EarlierRuns
    from airflow_provider_service.waits.outcome import Outcome

MAX_OUTPUT_BYTES = 48_000


class ServiceRunWorkflowOperator(SealedFieldsMixin, ServiceStartingOperator):
    """Run a workflow on its production webhook, and wait until the execution has ended. Safe to repeat.

    One task run makes one execution. The call carries a key of the task run; a later attempt looks for the execution
    of an earlier one and resumes it, unless that one failed. Clearing the task asks for a new execution, unless the
    last one is still active. Where a workflow does not keep its executions, or hides their data, a search proves
    nothing: then an attempt after one that may have called fails, without Airflow's retries, rather than run the
    workflow twice.

    :param workflow_id: the workflow.
    :param workflow_name: exact name of the workflow, instead of its id.
    :param payload: JSON body of the call; query parameters where the webhook takes ``GET``. Texts with braces of their
        own are kept by ``literal`` of ``airflow.sdk`` (``airflow.utils.template`` before Airflow 3).
    :param webhook_node: name of the webhook node, needed when the workflow has several.
    :param webhook_conn_id: Airflow connection that holds the webhook's own authentication: user and password, or for
        header authentication the header's name as login and its value as password.
    :param webhook_headers: further headers of the call. Hidden in logs, rendered fields and the stored DAG, but for
        what ``expand`` is given as literals; ``webhook_conn_id`` is the better place for secrets.
    :param activate: activate the workflow when it is not active; else such a workflow fails the task.
    :param on_retry: what a retry of the task does when the execution of the attempt before has failed: run the workflow
        anew (``"new"``), or let the service retry that execution (``"retry_execution"``), unless that was canceled.
    :param output: return what the last node put out (``"last_node"``) or not (``"none"``, the default).
    :returns: ``{"execution_id", "status", "workflow_id", "started_at", "stopped_at", "url"}``; with
        ``output="last_node"`` also ``"output"``: its JSON items, or None when they are larger than 48 kB or not shown;
        without ``wait_for_completion`` only ids and address. Of an execution that was not kept, with
        ``on_vanished="succeed"``, what is not known is None.
    """

    template_fields: Sequence[str] = (
        *ServiceStartingOperator.template_fields,
        "workflow_id",
        "workflow_name",
        "payload",
        "webhook_node",
        "webhook_conn_id",
        "webhook_headers",
    )
    template_fields_renderers = {"payload": "json"}
    sealed_fields = ("webhook_headers",)

    def __init__(
        self,
        *,
        workflow_id: str | None = None,
        workflow_name: str | None = None,
        payload: Any = None,
        webhook_node: str | None = None,
        webhook_conn_id: str | None = None,
        webhook_headers: Mapping[str, str] | None = None,
        activate: bool = True,
        on_retry: Literal["new", "retry_execution"] = "new",
        output: Literal["none", "last_node"] = "none",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.workflow_id = workflow_id
        self.workflow_name = workflow_name
        self.payload = payload
        self.webhook_node = webhook_node
        self.webhook_conn_id = webhook_conn_id
        self.webhook_headers = webhook_headers
        self.activate = activate
        self.on_retry = on_retry
        self.wanted_output = output  # Airflow keeps the name output for itself

    def begin(self, context: Context, attempt: Attempt) -> tuple[str, str]:
        """Resume the execution of an earlier attempt, or start one."""
        require_choice("on_retry", self.on_retry, ("new", "retry_execution"))
        require_choice("output", self.wanted_output, ("none", "last_node"))
        require_flag("activate", self.activate)
        require_one_of(workflow_id=self.workflow_id, workflow_name=self.workflow_name)
        workflow = self._workflow()
        self.link_workflow(context, workflow.id)
        return self._earlier(attempt, workflow) or self._run(attempt, workflow), workflow.id

    def output_of(self, outcome: Outcome) -> dict[str, Any]:
        """What the last node put out, when that was asked for and is small enough for XCom."""
        if self.wanted_output == "none":
            return {}
        if outcome.status is None:
            return {"output": None}
        from airflow_provider_service.client.http.redaction import redacted
        from airflow_provider_service.runs.data import last_output, with_data

        items = last_output(with_data(self.hook.client, outcome.execution_id))
        if items is None:
            self.log.warning("Execution %s does not show what its last node put out", outcome.execution_id)
            return {"output": None}
        # A workflow that passes its input on puts out the headers of the call.
        items = redacted(items, self._secrets())
        size = len(json.dumps(items))
        if size > MAX_OUTPUT_BYTES:
            self.log.warning("The output has %d bytes, more than %d, and was left out", size, MAX_OUTPUT_BYTES)
            return {"output": None}
        return {"output": items}

    def _workflow(self) -> Workflow:
        from airflow_provider_service.client.lookup import existing, find_workflow

        if self.workflow_id is not None:
            return self.hook.workflows.get(self.workflow_id)
        found = find_workflow(self.hook.client, str(self.workflow_name))
        # A list's item is not the whole workflow.
        return self.hook.workflows.get(existing(found, f"workflow named {self.workflow_name!r}").id)

    def _earlier(self, attempt: Attempt, workflow: Workflow) -> str | None:
        """The execution that this attempt resumes instead of starting one."""
        from airflow_provider_service.client.errors import ServiceRunNotFoundError
        from airflow_provider_service.runs.search import find_earlier_runs

        if attempt.is_first:
            return None
        runs = find_earlier_runs(self.hook.client, workflow.id, attempt.key, attempt.since, self._killed)
        run = runs.adoptable(attempt.key)
        if run is not None:
            self.log.info("Resuming execution %s, which an earlier attempt started", run.execution.id)
            return run.execution.id
        if attempt.may_have_started_unseen and not runs.has_attempt(attempt.key.attempt - 1):
            doubt = runs.doubt(all_are_kept=workflow.keeps_executions)
            if doubt is not None:
                about = f"workflow {workflow.id} ({workflow.name})"
                raise ServiceRunNotFoundError(f"an earlier attempt may have run {about}: {doubt}")
        return self._retry_of_failed(attempt, runs) if self.on_retry == "retry_execution" else None

    def _retry_of_failed(self, attempt: Attempt, runs: EarlierRuns) -> str | None:
        kept = attempt.recalled()
        failed_id = runs.failed(attempt.key) or (kept.execution_id if kept else None)
        if failed_id is None:
            return None
        failed = self.hook.executions.get(failed_id)
        if failed.status == "canceled":  # the service would cancel its retry as well
            return None
        return self._earlier_retry(attempt, failed) or self._retry(attempt, failed)

    def _run(self, attempt: Attempt, workflow: Workflow) -> str:
        from airflow_provider_service.client.http.webhook_answers import checked_headers
        from airflow_provider_service.client.resources.webhooks import checked_payload
        from airflow_provider_service.runs.start import RunCall, RunStarter

        trigger = self.hook.webhooks.find(workflow, self.webhook_node)
        call = RunCall(
            workflow_id=workflow.id,
            trigger=trigger,
            key=attempt.key,
            payload=checked_payload(trigger, self.payload),
            headers=checked_headers(self._headers(trigger.authentication)),
            timeout=self.timeout,
            is_kept=workflow.keeps_executions,
        )
        self._make_active(workflow)
        return self._start(RunStarter(self.hook.client, call, self._killed), attempt)

    def _make_active(self, workflow: Workflow) -> None:
        about = f"workflow {workflow.id} ({workflow.name})"
        require(not workflow.is_archived, f"{about} is archived; nothing was started")
        if workflow.active:
            return
        require(self.activate, f"{about} is not active, and activate=False; nothing was started")
        self.log.info("Activating %s", about)
        self.hook.workflows.activate(workflow.id)

    def _headers(self, authentication: str) -> dict[str, str]:
        from airflow_provider_service.client.resources.webhooks import authentication_headers

        headers = {} if self.webhook_headers is None else revealed(self.webhook_headers)
        require_mapping("webhook_headers", headers)
        if self.webhook_conn_id is None:
            return dict(headers)
        connection = self.hook.get_connection(self.webhook_conn_id)
        own = authentication_headers(authentication, connection.login or "", connection.password or "")
        mask_all(own)
        return {**headers, **own}

    def _secrets(self) -> dict[str, list[str]]:
        """What the call carried that must not be shown, by name of the header."""
        from airflow_provider_service.runs.search import RUN_KEY_HEADER

        sent = {**self._headers("basicAuth"), **self._headers("headerAuth")}
        # Also without the scheme before it, as in "Bearer x".
        secrets = {name: [value, value.rpartition(" ")[2]] for name, value in sent.items()}
        return {**secrets, RUN_KEY_HEADER: []}
