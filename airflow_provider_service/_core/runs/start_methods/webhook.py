"""Start a workflow on its production webhook. The call carries the run key in a header.

The webhook answers when the run begins, when it ends, or whatever the workflow chooses to answer, even with the answer
of another webhook. So an execution that an answer names is checked, and a search has the last word.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.object_storage import storage_path
from airflow_provider_service._core.runs import searching
from airflow_provider_service._core.runs.attempt import CLOCK_SKEW
from airflow_provider_service._core.runs.searching import (
    MAX_SHOWN_IDS,
    RUN_KEY_HEADER,
    EarlierRuns,
    RunSearch,
    find_earlier_runs,
    starting_call,
)
from airflow_provider_service._core.runs.start_methods.start_method import StartMethod
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._http.start_answers import checked_headers, is_refusal
from airflow_provider_service.client._models import WebhookAnswer, WebhookTrigger
from airflow_provider_service.client._values import one_line
from airflow_provider_service.client.resources._webhooks import checked_files, checked_payload, filled_path

if TYPE_CHECKING:
    from airflow_provider_service.client._http.encoding import FileSource
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

#: Seconds after which an execution that has just ended is in a list again, before a refused call is repeated.
SHOWN_WITHIN_SECONDS = 0.1


class WebhookStartMethod(StartMethod):
    name = "webhook"
    # Set by ``prepare``: the webhook, and the files that the call carries, by the name of their field.
    _trigger: WebhookTrigger
    _files: Mapping[str, FileSource] | None

    def reason_unavailable(self) -> str | None:
        request = self.request
        if request.mode == "manual":
            return "a webhook runs the published version, not the draft"
        if not request.triggers({"webhook"}):
            return request.missing_trigger_message({"webhook"})
        try:
            self._find_trigger()
        except errors.ServiceInputError as error:
            return str(error)
        return None

    def may_have_been_used(self) -> bool:
        return bool(self.request.triggers_ever({"webhook"}))

    def keeps_executions(self) -> bool:
        return self.request.workflow.keeps_executions

    def earlier(self) -> EarlierRuns:
        search = RunSearch(self.request.workflow.id, self.attempt.since)
        return find_earlier_runs(self.client, search, self.attempt.key, self.stopped)

    def prepare(self) -> None:
        request = self.request
        request.refuse_rendered_text()
        self._trigger = trigger = self._find_trigger()
        filled_path(trigger, request.path_parameters)
        checked_headers(request.headers(trigger.authentication))
        self._files = _stored_files(request.files)
        checked_files(trigger, self._files)
        checked_payload(trigger, request.payload, with_files=bool(self._files))
        request.make_active(self.client)
        self.called = f"webhook {trigger.path!r}"
        self.search = RunSearch(request.workflow.id, clock().utcnow() - CLOCK_SKEW)
        self.is_kept = request.workflow.keeps_executions
        self.answers_at_once = trigger.response_mode == "onReceived"

    def _find_trigger(self) -> WebhookTrigger:
        request = self.request
        return self.client.webhooks.find(request.workflow, request.trigger_node, method=request.webhook_method)

    def send(self) -> WebhookAnswer:
        request, trigger = self.request, self._trigger
        return self.client.webhooks.call(
            trigger,
            request.payload,
            path_parameters=request.path_parameters,
            files=self._files,
            headers={**request.all_headers(trigger.authentication), RUN_KEY_HEADER: self.attempt.key.header},
            timeout=self.timeout,
            stopped=self.stopped,
            may_repeat=None if self.answers_at_once else self._may_repeat,
        )

    def _may_repeat(self, error: errors.ServiceError) -> bool:
        """Whether a call has run nothing: a workflow may pass on the answer of another webhook that is not live."""
        if not isinstance(error, errors.ServiceApiError) or error.status is None:
            return True
        clock().wait(self.stopped, SHOWN_WITHIN_SECONDS)
        try:
            return self.look_meanwhile() is None
        except errors.ServiceError as failure:
            log.warning(
                "The call of %s is not repeated, because the search for its run failed: %s", self.called, failure
            )
            return False

    def is_refusal(self, error: errors.ServiceApiError) -> bool:
        return is_refusal(error)

    def started_by(self, answer: WebhookAnswer) -> str:
        named = answer.execution_id
        claim = _Claim.FALSE if named is None else self._judge(named)
        if claim is _Claim.PROVEN:
            return str(named)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            log.info("The %s answered %d; its execution is being searched for", self.called, answer.status)
        try:
            execution_id = self.search_for(self._patience(claim))
        except errors.ServiceApiError as error:
            if claim is _Claim.FALSE:
                raise
            log.warning("Execution %s, which the webhook named, was not checked: %s", named, error)
            return str(named)
        if execution_id is not None:
            return execution_id
        if claim is not _Claim.FALSE:
            return str(named)
        runs = self.search_exhaustively()
        execution_id = runs.own(self.attempt.key)
        if execution_id is None:
            raise self._not_found(answer, runs.unreadable)
        return execution_id

    def _judge(self, execution_id: str) -> _Claim:
        """Judge an answer that names an execution: a workflow may pass on the id of another one."""
        try:
            execution = self.client.executions.get(execution_id, include_data=True)
        except errors.ServiceNotFoundError:
            return _Claim.DOUBTFUL if self.is_kept else _Claim.LIKELY
        except errors.ServiceApiError as error:
            log.warning("Execution %s, which the webhook named, cannot be read: %s", execution_id, error)
            return _Claim.LIKELY
        if execution.workflow_id == self.request.workflow.id:
            call = starting_call(execution)
            if call.carries(self.attempt.key):
                return _Claim.PROVEN
            if not call.is_shown:
                return _Claim.LIKELY
        return _Claim.FALSE

    def _patience(self, claim: _Claim) -> float:
        if claim is _Claim.LIKELY:
            return 0.0
        if claim is _Claim.DOUBTFUL:
            return searching.SETTLING_SECONDS
        return searching.VISIBLE_WITHIN_SECONDS if self.is_kept else searching.UNKEPT_SECONDS

    def _not_found(self, answer: WebhookAnswer, hidden: list[Execution]) -> errors.ServiceRunInDoubtError:
        workflow_id = self.request.workflow.id
        what = f"the {self.called} answered {answer.status}, but no execution of workflow {workflow_id} carries its "
        what += "run key"
        if hidden:
            ids = ", ".join(execution.id for execution in hidden[:MAX_SHOWN_IDS])
            return errors.ServiceRunInDoubtError(
                f"{what}, and executions {ids} hide their data, or it is redacted. Let the workflow answer with its "
                "execution id"
            )
        hint = "Let the workflow save its executions, or answer with its execution id"
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return errors.ServiceRunInDoubtError(f"{what}: it may have ended without being saved. {hint}")
        return errors.ServiceRunNotKeptError(
            f"{what}: it has ended without being saved. {hint}", workflow_id=workflow_id
        )


def _stored_files(files: Mapping[str, Any] | None) -> Mapping[str, FileSource] | None:
    """Resolve paths as Airflow does: ``/path``, ``s3://bucket/key``, or ``s3://conn_id@bucket/key``."""
    if not isinstance(files, Mapping):
        return files
    return {name: _stored_file(name, value) if isinstance(value, str) else value for name, value in files.items()}


def _stored_file(name: str, path: str) -> FileSource:
    try:
        file: FileSource = storage_path(path)
        file.is_file()  # connects to the storage
    except (ImportError, ValueError) as error:
        raise errors.ServiceInputError(
            f"files[{name!r}], {path!r}: {one_line(str(error))}; nothing was started"
        ) from error
    return file


class _Claim(Enum):
    """Whether an execution that an answer names is the one that the call started."""

    PROVEN = "it carries the run key"
    LIKELY = "it cannot be read, its data is hidden, or it was not kept"
    DOUBTFUL = "it does not exist, although its workflow keeps its executions"
    FALSE = "it is another, or the answer names none"
