"""Run a workflow on its webhook for a key: what an attempt resumes, what it starts, and what its call carries."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_service.arguments import require
from airflow_provider_service.client.errors import (
    ServiceAnswerTooLargeError,
    ServiceRunNotFoundError,
    ServiceUnexpectedResponseError,
)
from airflow_provider_service.client.execution_data import last_output, with_data
from airflow_provider_service.client.http.redaction import redacted
from airflow_provider_service.client.http.webhook_answers import checked_headers
from airflow_provider_service.client.lookup import get_workflow
from airflow_provider_service.client.resources.webhooks import checked_payload
from airflow_provider_service.runs.search import RUN_KEY_HEADER, find_earlier_runs
from airflow_provider_service.runs.start import RunCall, RunStarter

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources, ServiceClient
    from airflow_provider_service.client.models.workflows import Workflow
    from airflow_provider_service.runs.once import RunOnce
    from airflow_provider_service.runs.search import EarlierRuns

log = logging.getLogger(__name__)

MAX_OUTPUT_BYTES = 48_000
_SCHEMES = frozenset({"apikey", "basic", "bearer", "token"})

OnRetry = Literal["new", "retry_execution"]
#: Makes the headers of a call for the authentication that the webhook's node asks for.
MakeHeaders = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True)
class WorkflowRun:
    """What is asked of a run.

    :param workflow: the whole workflow.
    :param payload: JSON body of the call; query parameters where the webhook has no body.
    :param webhook_node: name of the webhook node; required if the workflow has several.
    :param headers: makes further headers.
    :param activate: activate the workflow when it is not active.
    :param on_retry: what follows an execution that failed: a new run, or the service's own retry of it.
    """

    workflow: Workflow
    payload: Any
    webhook_node: str | None
    headers: MakeHeaders
    activate: bool
    on_retry: OnRetry = "new"

    def resume_or_start(self, once: RunOnce) -> str:
        """Resume the execution of an earlier attempt, or start one; its id.

        :raises ServiceRunNotFoundError: an execution may have been started that cannot be found.
        :raises ServiceInputError: the workflow cannot be run as it stands; nothing was started.
        """
        return self._earlier(once) or self._start(once)

    @property
    def _about(self) -> str:
        return f"workflow {self.workflow.id} ({self.workflow.name})"

    def _earlier(self, once: RunOnce) -> str | None:
        """The execution that this attempt resumes instead of starting one."""
        attempt = once.attempt
        if attempt.is_first:
            return None
        runs = find_earlier_runs(once.client, self.workflow.id, attempt.key, attempt.since, once.stopped)
        attempt.follow(runs)
        run = runs.adoptable(attempt.key)
        if run is not None:
            log.info("Resuming execution %s, which an earlier attempt started", run.execution.id)
            return run.execution.id
        if attempt.may_have_started_unseen and not runs.has_attempt(attempt.key.attempt - 1):
            doubt = runs.doubt(all_are_kept=self.workflow.keeps_executions)
            if doubt is not None:
                raise ServiceRunNotFoundError(f"an earlier attempt may have run {self._about}: {doubt}")
        return self._retry_of_failed(once, runs) if self.on_retry == "retry_execution" else None

    def _retry_of_failed(self, once: RunOnce, runs: EarlierRuns) -> str | None:
        key, kept = once.attempt.key, once.attempt.recalled()
        is_of_this_order = kept is not None and kept.attempt >= key.first  # clearing the task orders a new execution
        failed_id = runs.failed(key) or (kept.execution_id if kept and is_of_this_order else None)
        if failed_id is None:
            return None
        failed = once.client.executions.get(failed_id)
        if failed.status == "canceled":  # the service would cancel its retry as well
            return None
        return once.earlier_retry(failed) or once.retry(failed)

    def _start(self, once: RunOnce) -> str:
        workflow = self.workflow
        trigger = once.client.webhooks.find(workflow, self.webhook_node)
        call = RunCall(
            workflow_id=workflow.id,
            trigger=trigger,
            key=once.attempt.key,
            payload=checked_payload(trigger, self.payload),
            headers=checked_headers(self.headers(trigger.authentication)),
            timeout=once.timeout,
            is_kept=workflow.keeps_executions,
        )
        self._make_active(once.client)
        return once.start(RunStarter(once.client, call, once.stopped))

    def _make_active(self, client: Resources) -> None:
        require(not self.workflow.is_archived, f"{self._about} is archived; nothing was started")
        if self.workflow.active:
            return
        require(self.activate, f"{self._about} is not active, and activate=False; nothing was started")
        log.info("Activating %s", self._about)
        client.workflows.activate(self.workflow.id)


def whole_workflow(client: Resources, workflow_id: str | None, workflow_name: str | None) -> Workflow:
    """Read a workflow by its id, or by its exact name.

    :raises ServiceLookupError: none carries the name, or several.
    """
    if workflow_id is None:
        found = get_workflow(client, str(workflow_name))
        workflow_id = found.id  # a list's item is not the whole workflow
    return client.workflows.get(workflow_id)


def small_output(client: ServiceClient, execution_id: str, headers: MakeHeaders) -> list[Any] | None:
    """The output of the last node of an execution; None if it is not shown or larger than 48 kB.

    :param headers: made those of the call: what they hold is taken out.
    """
    try:
        items = last_output(with_data(client, execution_id))
    except (ServiceAnswerTooLargeError, ServiceUnexpectedResponseError) as error:
        log.warning("The output of execution %s cannot be read: %s", execution_id, error)
        return None
    if items is None:
        log.warning("Execution %s does not show the output of its last node", execution_id)
        return None
    # A workflow that passes on its input outputs the headers of the call.
    # The login of the webhook's connection may be a user's name, or the name of a header.
    items = redacted(items, _secrets(headers("basicAuth")), doubtful=_secrets(headers("headerAuth")))
    size = len(json.dumps(items))
    if size > MAX_OUTPUT_BYTES:
        log.warning("The output has %d bytes, more than %d, and was left out", size, MAX_OUTPUT_BYTES)
        return None
    return list(items)


def _secrets(sent: Mapping[str, str]) -> dict[str, list[str]]:
    """What a call carried that must not be shown, by name of the header."""
    return {**{name: [value, *_credentials(value)] for name, value in sent.items()}, RUN_KEY_HEADER: []}


def _credentials(value: str) -> list[str]:
    """What a header holds behind its scheme, as in "Bearer x"."""
    scheme, _, credentials = value.partition(" ")
    return [credentials] if scheme.lower() in _SCHEMES else []
