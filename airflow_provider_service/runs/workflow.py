"""Run a workflow for a key: what an attempt resumes, what it starts, and what the run has put out."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_service.arguments import require
from airflow_provider_service.client.errors import (
    ServiceAnswerTooLargeError,
    ServiceInputError,
    ServiceRunNotFoundError,
    ServiceUnexpectedResponseError,
)
from airflow_provider_service.client.execution_data import last_output, with_data
from airflow_provider_service.client.http.redaction import SIGNED, redacted
from airflow_provider_service.client.lookup import get_workflow
from airflow_provider_service.runs.search import RUN_KEY_HEADER
from airflow_provider_service.runs.ways.choice import choose

if TYPE_CHECKING:
    from airflow_provider_service.client._client import Resources, ServiceClient
    from airflow_provider_service.client.models.workflows import Workflow
    from airflow_provider_service.runs.once import RunOnce
    from airflow_provider_service.runs.request import MakeHeaders, RunRequest
    from airflow_provider_service.runs.search import EarlierRuns
    from airflow_provider_service.runs.ways.way import Way

log = logging.getLogger(__name__)

MAX_OUTPUT_BYTES = 48_000
_SCHEMES = frozenset({"apikey", "basic", "bearer", "token"})


def resume_or_start(request: RunRequest, once: RunOnce) -> str:
    """Resume the execution of an earlier attempt, or start one; its id.

    :raises ServiceRunNotFoundError: an execution may have been started that cannot be found.
    :raises ServiceInputError: the workflow cannot be run as it stands; nothing was started.
    """
    way, obstacle = choose(request, once.client)
    earlier = _earlier(request, way, once)
    if earlier is not None:
        return earlier
    require(obstacle is None, f"{request.about} cannot be started. {obstacle}. Nothing was started")
    return once.start(way.starter(once))


def _earlier(request: RunRequest, way: Way, once: RunOnce) -> str | None:
    """The execution that this attempt resumes instead of starting one."""
    attempt = once.attempt
    if attempt.is_first:
        return None
    runs = way.earlier(once)
    attempt.follow(runs)
    run = runs.adoptable(attempt.key)
    if run is not None:
        log.info("Resuming execution %s, which an earlier attempt started", run.execution.id)
        return run.execution.id
    if attempt.may_have_started_unseen and not runs.has_attempt(attempt.key.attempt - 1):
        doubt = runs.doubt(once.client.base_url, all_are_kept=request.workflow.keeps_executions)
        if doubt is not None:
            raise ServiceRunNotFoundError(f"an earlier attempt may have run {request.about}: {doubt}")
    return _retry_of_failed(once, runs) if request.on_retry == "retry_execution" else None


def _retry_of_failed(once: RunOnce, runs: EarlierRuns) -> str | None:
    key, note = once.attempt.key, once.attempt.note()
    is_of_this_order = note is not None and note.attempt >= key.first  # clearing the task orders a new execution
    failed_id = runs.failed(key) or (note.execution_id if note and is_of_this_order else None)
    if failed_id is None:
        return None
    failed = once.client.executions.get(failed_id)
    if failed.status == "canceled":  # the service would cancel its retry as well
        return None
    return once.earlier_retry(failed) or once.retry(failed)


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
    items = _without_secrets(items, headers)
    size = len(json.dumps(items))
    if size > MAX_OUTPUT_BYTES:
        log.warning("The output has %d bytes, more than %d, and was left out", size, MAX_OUTPUT_BYTES)
        return None
    return list(items)


def _without_secrets(items: list[Any], headers: MakeHeaders) -> list[Any]:
    try:
        # The login of the webhook's connection may be a user's name, or the name of a header.
        sent, doubtful = headers("basicAuth"), headers("headerAuth")
    except ServiceInputError:  # it has no login, because it signs a token for each call
        return list(redacted(items, _secrets(headers("jwtAuth")), shapes=[SIGNED]))
    return list(redacted(items, _secrets(sent), doubtful=_secrets(doubtful)))


def _secrets(sent: Mapping[str, str]) -> dict[str, list[str]]:
    """What a call carried that must not be shown, by name of the header."""
    return {**{name: [value, *_credentials(value)] for name, value in sent.items()}, RUN_KEY_HEADER: []}


def _credentials(value: str) -> list[str]:
    """What a header holds behind its scheme, as in "Bearer x"."""
    scheme, _, credentials = value.partition(" ")
    return [credentials] if scheme.lower() in _SCHEMES else []
