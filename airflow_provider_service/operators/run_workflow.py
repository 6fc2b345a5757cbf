"""Run a workflow and wait for it, exactly once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service.operators._attempts import began, first_attempt, recalled, remember, run_key
from airflow_provider_service.operators._base import fail, require, require_choice
from airflow_provider_service.operators._rendering import SealedFieldsMixin, revealed
from airflow_provider_service.operators._waiting import ServiceWaitingOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service.client.models.executions import Execution
    from airflow_provider_service.client.models.workflows import Workflow
    from airflow_provider_service.client.runs import FoundRun, RunKey
    from airflow_provider_service.waiting import Outcome

MAX_OUTPUT_BYTES = 48_000


class ServiceRunWorkflowOperator(SealedFieldsMixin, ServiceWaitingOperator):
    """Run a workflow on its production webhook, and wait until the execution has ended. Safe to repeat.

    One task run makes one execution. The call carries a key of the task run; a later attempt looks for the execution
    of an earlier one and goes on with it, unless that one failed. Clearing the task asks for a new execution. A
    workflow that does not keep its executions can not be searched: there a killed attempt may be started again.

    :param workflow_id: the workflow.
    :param workflow_name: exact name of the workflow, instead of its id.
    :param payload: JSON body of the call; query parameters where the webhook takes ``GET``.
    :param webhook_node: name of the webhook node, needed when the workflow has several.
    :param webhook_conn_id: Airflow connection that holds the webhook's own authentication: user and password, or for
        header authentication the header's name as login and its value as password.
    :param webhook_headers: further headers of the call; never shown.
    :param activate: activate the workflow when it is not active; else such a workflow fails the task.
    :param on_retry: what a retry of the task does when the execution of the attempt before has failed: run the workflow
        anew (``"new"``), or let the service retry that execution (``"retry_execution"``).
    :param output: return what the last node put out (``"last_node"``) or not (``"none"``, the default).
    :returns: ``{"execution_id", "status", "workflow_id", "started_at", "stopped_at", "url"}``; with
        ``output="last_node"`` also ``"output"``: its JSON items, or None when they are larger than 48 kB; without
        ``wait_for_completion`` only ids and address.
    """

    template_fields: Sequence[str] = (
        *ServiceWaitingOperator.template_fields,
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
        self._calling: tuple[str, RunKey] | None = None

    def begin(self, context: Context) -> tuple[str, str]:
        """Go on with the execution of an earlier attempt, or start one."""
        require_choice("on_retry", self.on_retry, ("new", "retry_execution"))
        require_choice("output", self.wanted_output, ("none", "last_node"))
        require(bool(self.workflow_id) != bool(self.workflow_name), "give either workflow_id or workflow_name")
        workflow = self._workflow()
        key = run_key(context)
        execution_id = self._earlier(context, workflow, key) or self._start(context, workflow, key)
        remember(context, execution_id, key.key)
        return execution_id, workflow.id

    def output_of(self, outcome: Outcome) -> dict[str, Any]:
        """What the last node put out, when that was asked for and is small enough for XCom."""
        if self.wanted_output == "none" or outcome.status is None:
            return {}
        from airflow_provider_service.client.run_data import last_output

        items = last_output(self.hook.executions.get(outcome.execution_id, include_data=True))
        size = len(json.dumps(items))
        if size > MAX_OUTPUT_BYTES:
            self.log.warning("The output has %d bytes, more than %d, and was left out", size, MAX_OUTPUT_BYTES)
            return {"output": None}
        return {"output": items}

    def on_kill(self) -> None:
        """Stop the execution, also one that was just being started."""
        if self._waiting_for is None and self._calling is not None and self.cancel_on_kill:
            from airflow_provider_service.client.runs import find_runs

            workflow_id, key = self._calling
            runs = find_runs(self.hook.client, workflow_id, key.key, None)
            self._waiting_for = next((run.execution.id for run in runs if run.attempt == key.attempt), None)
        super().on_kill()

    def _workflow(self) -> Workflow:
        from airflow_provider_service.client.lookup import existing, find_workflow

        if self.workflow_id:
            return self.hook.workflows.get(self.workflow_id)
        found = find_workflow(self.hook.client, str(self.workflow_name))
        # A list's item is not the whole workflow.
        return self.hook.workflows.get(existing(found, f"workflow named {self.workflow_name!r}").id)

    def _earlier(self, context: Context, workflow: Workflow, key: RunKey) -> str | None:
        """The execution that this attempt is to go on with instead of starting one."""
        from airflow_provider_service.client.runs import FAILED_STATUSES, adoptable

        kept = recalled(context, key.key)
        if kept is None and key.attempt <= first_attempt(context):
            return None
        if kept is not None and self._status_of(kept) not in FAILED_STATUSES:
            self.log.info("Going on with execution %s, which an earlier attempt started", kept)
            return kept
        runs = self._runs_of_earlier_attempts(context, workflow, key)
        run = adoptable(runs, key.attempt)
        if run is not None:
            self.log.info("Going on with execution %s, which attempt %d started", run.execution.id, run.attempt)
            return run.execution.id
        if runs and self.on_retry == "retry_execution":
            return self._retried(context, runs[0].execution)
        return None

    def _status_of(self, execution_id: str) -> str | None:
        from airflow_provider_service.client.errors import ServiceNotFoundError

        try:
            return self.hook.executions.get(execution_id).status
        except ServiceNotFoundError:
            return None

    def _runs_of_earlier_attempts(self, context: Context, workflow: Workflow, key: RunKey) -> list[FoundRun]:
        from airflow_provider_service.client.runs import find_runs
        from airflow_provider_service.client.starting import SETTLING_SECONDS

        since = began(context)
        runs = find_runs(self.hook.client, workflow.id, key.key, since)
        if any(run.attempt >= key.attempt - 1 for run in runs):
            return runs
        # The attempt before may have been killed with its call still on the way.
        time.sleep(SETTLING_SECONDS)
        return find_runs(self.hook.client, workflow.id, key.key, since)

    def _retried(self, context: Context, failed: Execution) -> str:
        from airflow_provider_service.client.retries import RetryStarter, find_retries, going_on

        earlier = going_on(find_retries(self.hook.client, failed, began(context)))
        if earlier is not None:
            return earlier.id
        self.log.info("Letting the service retry execution %s", failed.id)
        starter = RetryStarter(self.hook.client, failed, load_workflow=None, timeout=self.timeout, stopped=self._killed)
        return starter.start()

    def _start(self, context: Context, workflow: Workflow, key: RunKey) -> str:
        from airflow_provider_service.client.runs import RunCall, RunStarter
        from airflow_provider_service.client.webhooks import webhook_of

        trigger = webhook_of(workflow, self.webhook_node)
        self._make_active(workflow)
        headers = self._headers(trigger.authentication)
        call = RunCall(
            workflow_id=workflow.id,
            trigger=trigger,
            key=key,
            payload=self.payload if self.payload is not None else {},
            headers=headers,
            since=began(context),
            timeout=self.timeout,
            is_kept=workflow.keeps_executions,
        )
        self._calling = (workflow.id, key)
        return RunStarter(self.hook.client, call, self._killed).start()

    def _make_active(self, workflow: Workflow) -> None:
        if workflow.active:
            return
        if not self.activate:
            fail(f"workflow {workflow.id} ({workflow.name}) is not active, and activate=False; nothing was started")
        self.log.info("Activating workflow %s (%s)", workflow.id, workflow.name)
        self.hook.workflows.activate(workflow.id)

    def _headers(self, authentication: str) -> dict[str, str]:
        from airflow_provider_service.client.webhooks import authentication_headers

        headers = dict(revealed(self.webhook_headers) or {})
        if self.webhook_conn_id is not None:
            connection = self.hook.get_connection(self.webhook_conn_id)
            headers |= authentication_headers(authentication, connection.login or "", connection.password or "")
        return headers
