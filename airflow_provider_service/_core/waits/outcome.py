"""Judge how a wait for an execution ended, and end the task accordingly.

Poke, reschedule and deferred waits all decide here, so that they cannot disagree. Only executions that cannot be found
or read are judged earlier, in ``watch.py``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from airflow_provider_service._airflow.attempts import push_execution
from airflow_provider_service.client._constraints import ACTIVE_STATUSES, ENDED_STATUSES
from airflow_provider_service.client.errors import ServiceError, ServiceExecutionFailedError, ServiceWaitError
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_service._core.runs.output import Show, WantedOutput
    from airflow_provider_service._core.runs.request import MakeHeaders
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.errors import ServiceRunNotKeptError
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

Verdict = Literal["succeeded", "failed", "vanished", "timed_out", "unobservable"]

#: XCom key of the execution that a task waits for.
EXECUTION_ID_KEY = "execution_id"


class Outcome(NamedTuple):
    """How a wait ended. Small and free of secrets: it travels in trigger events and XCom."""

    execution_id: str
    verdict: Verdict
    message: str
    #: The service's own status, or None if its end was not seen.
    status: str | None = None
    workflow_id: str | None = None
    #: ISO 8601 in UTC, as ``stopped_at``.
    started_at: str | None = None
    stopped_at: str | None = None
    url: str | None = None
    #: If it could not be observed: whether a retry of the task is pointless.
    final: bool = False
    #: If it could not be observed: whether the deadline has passed in the meantime.
    is_overdue: bool = False

    def to_event(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_event(cls, event: Any) -> Outcome:
        """Read a trigger event; one of an unknown shape counts as ``"unobservable"``."""
        if isinstance(event, dict) and event.keys() == set(cls._fields) and event["verdict"] in get_args(Verdict):
            return cls(**event)
        return cls("unknown", "unobservable", "the trigger sent an event of an unknown shape")

    def push_times(self, context: Context, workflow_name: str | None = None) -> None:
        if self.started_at:
            times = {"started_at": self.started_at, "stopped_at": self.stopped_at}
            push_execution(context, self.execution_id, **times, workflow_name=workflow_name)

    def to_xcom(self, *, only_ids: bool = False) -> dict[str, Any]:
        """What a task returns; only the ids if it did not wait."""
        names = ["workflow_id", "url"] if only_ids else ["status", "workflow_id", "started_at", "stopped_at", "url"]
        return {"execution_id": self.execution_id or None, **{name: getattr(self, name) for name in names}}


def broken(execution_id: str, error: Exception) -> Outcome:
    """The outcome of a wait that could not send a request, for example because the connection is unusable."""
    final = isinstance(error, ServiceError) and error.final
    return Outcome(execution_id, "unobservable", f"the wait for execution {execution_id} failed: {error}", final=final)


def started(base_url: str, workflow_id: str, execution_id: str) -> dict[str, Any]:
    url = execution_url(base_url, workflow_id, execution_id)
    return Outcome(execution_id, "succeeded", "", workflow_id=workflow_id, url=url).to_xcom(only_ids=True)


def not_kept(error: ServiceRunNotKeptError) -> Outcome:
    """The outcome of a run whose execution was not kept, when that counts as success."""
    log.warning("%s (on_vanished='succeed')", error)
    return Outcome("", "succeeded", str(error), workflow_id=error.workflow_id)


def message_of_end(execution_id: str, status: str | None) -> str:
    return f"execution {execution_id} ended with status '{status}'"


def judge(execution: Execution, base_url: str) -> Outcome | None:
    """Decide whether an execution has ended, and how; one with an unknown status has not."""
    if execution.status not in ENDED_STATUSES:
        if execution.status not in ACTIVE_STATUSES:
            log.warning("Execution %s has the unknown status %r; still waiting", execution.id, execution.status)
        return None
    wire = execution.to_wire()
    return Outcome(
        execution_id=execution.id,
        verdict="succeeded" if execution.status == "success" else "failed",
        message=message_of_end(execution.id, execution.status),
        status=execution.status,
        workflow_id=execution.workflow_id,
        started_at=wire.get("startedAt"),
        stopped_at=wire.get("stoppedAt"),
        url=execution_url(base_url, execution.workflow_id, execution.id) if execution.workflow_id else None,
    )


def settle(
    outcome: Outcome, *, soft_fail: bool = False, never_fail: bool = False, retry_helps: bool = False
) -> dict[str, Any]:
    """End a waiting task according to its outcome; return what it returns if the execution succeeded.

    With ``soft_fail``, it is skipped if the execution failed, vanished or did not end in time; with ``never_fail``,
    whatever happened. ``retry_helps`` says that another attempt starts another execution, and does not find this one.
    """
    from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSensorTimeout, AirflowSkipException

    if outcome.verdict == "succeeded":
        line = f"{outcome.message}: {outcome.url}" if outcome.url else outcome.message
        log.log(logging.WARNING if outcome.status is None else logging.INFO, "%s", line)
        return outcome.to_xcom()
    if never_fail or (soft_fail and outcome.verdict != "unobservable"):
        raise AirflowSkipException(outcome.message)
    # A vanished execution may have succeeded, so a retry might run the workflow twice.
    if outcome.final or outcome.verdict == "vanished":
        raise AirflowFailException(outcome.message)
    if outcome.verdict == "unobservable":
        raise ServiceWaitError(outcome.message)
    if retry_helps:
        raise ServiceExecutionFailedError(outcome.message)
    if outcome.verdict == "timed_out":
        raise AirflowSensorTimeout(outcome.message)
    raise AirflowFailException(outcome.message)


def result_of(
    client: ServiceClient, outcome: Outcome, wanted: WantedOutput | None, headers: MakeHeaders
) -> dict[str, Any]:
    """Read and log what the nodes did, and end a task whose wait is over according to the outcome.

    If the execution succeeded, return the outcome, what the nodes did, and the wanted output.
    """
    end = end_of(client, outcome, wanted, headers)
    return {**settle(outcome, retry_helps=True), **end}


def end_of(
    client: ServiceClient,
    outcome: Outcome,
    wanted: WantedOutput | None,
    headers: MakeHeaders,
    *,
    show: Show | None = None,
) -> dict[str, Any]:
    """Read the nodes and, if it succeeded, the output of an execution whose wait is over, and show or log the nodes."""
    from airflow_provider_service._core.runs.output import no_output, nodes_in_short, read_end

    if outcome.status is None and outcome.verdict != "timed_out":
        return {**nodes_in_short(None), **({} if wanted is None else no_output())}
    return read_end(client, outcome.execution_id, wanted if outcome.status == "success" else None, headers, show=show)
