"""How a wait for an execution is judged, and what the verdict means for the task.

Poke, reschedule and deferred waits all decide here, so that they cannot disagree. Only what it means that an execution
cannot be found, or cannot be read, is decided before, in ``watch.py``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from airflow_provider_service.client.errors import ServiceError, ServiceExecutionFailedError, ServiceWaitError
from airflow_provider_service.client.models._statuses import ACTIVE_STATUSES, ENDED_STATUSES
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.nodes import Show
    from airflow_provider_service._core.runs.output import WantedOutput
    from airflow_provider_service._core.runs.request import MakeHeaders
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.errors import ServiceRunNotKeptError
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

Verdict = Literal["succeeded", "failed", "vanished", "timed_out", "unobservable"]

#: XCom key under which a task keeps the execution that it waits for.
EXECUTION_ID_KEY = "execution_id"


class Outcome(NamedTuple):
    """How a wait ended. Small and free of secrets: it travels in trigger events and XCom.

    :param execution_id: the execution.
    :param verdict: what the end means for the task.
    :param message: one line for the task's log.
    :param status: the service's own status, or None if its end was not seen.
    :param workflow_id: the execution's workflow, if known.
    :param started_at: start of the execution, ISO 8601 in UTC.
    :param stopped_at: end of the execution, ISO 8601 in UTC.
    :param url: page of the execution, if known.
    :param final: for one that could not be observed: whether trying the task again is pointless.
    :param is_overdue: for one that could not be observed: whether the deadline has passed meanwhile.
    """

    execution_id: str
    verdict: Verdict
    message: str
    status: str | None = None
    workflow_id: str | None = None
    started_at: str | None = None
    stopped_at: str | None = None
    url: str | None = None
    final: bool = False
    is_overdue: bool = False

    def to_event(self) -> dict[str, Any]:
        """The outcome as the payload of a trigger event."""
        return self._asdict()

    @classmethod
    def from_event(cls, event: Any) -> Outcome:
        """Read a trigger event; one of another shape counts as a wait that could not observe."""
        if isinstance(event, dict) and event.keys() == set(cls._fields) and event["verdict"] in get_args(Verdict):
            return cls(**event)
        return cls("unknown", "unobservable", "the trigger sent an event of an unknown shape")

    def to_xcom(self, *, only_ids: bool = False) -> dict[str, Any]:
        """What a task returns.

        :param only_ids: whether the task did not wait, so that only ids are known.
        """
        if only_ids:
            return {"execution_id": self.execution_id or None, "workflow_id": self.workflow_id, "url": self.url}
        return {
            "execution_id": self.execution_id or None,
            "status": self.status,
            "workflow_id": self.workflow_id,
            "started_at": self.started_at,
            "stopped_at": self.stopped_at,
            "url": self.url,
        }


def broken(execution_id: str, error: Exception) -> Outcome:
    """The outcome of a wait that could not even ask, because there is no usable connection, for example."""
    final = isinstance(error, ServiceError) and error.final
    return Outcome(execution_id, "unobservable", f"the wait for execution {execution_id} failed: {error}", final=final)


def started(base_url: str, workflow_id: str, execution_id: str) -> dict[str, Any]:
    """What a task returns that does not wait for the execution that it has started."""
    url = execution_url(base_url, workflow_id, execution_id)
    return Outcome(execution_id, "succeeded", "", workflow_id=workflow_id, url=url).to_xcom(only_ids=True)


def not_kept(error: ServiceRunNotKeptError) -> Outcome:
    """The outcome of a run whose execution was not kept, when that counts as success."""
    log.warning("%s (on_vanished='succeed')", error)
    return Outcome("", "succeeded", str(error), workflow_id=error.workflow_id)


def judge(execution: Execution, base_url: str) -> Outcome | None:
    """Decide whether an execution has ended, and how; None while it has not.

    Of the statuses, only ``success`` succeeds. With one that this version does not know, the wait continues until its
    deadline.
    """
    if execution.status not in ENDED_STATUSES:
        if execution.status not in ACTIVE_STATUSES:
            log.warning("Execution %s has the unknown status %r; still waiting", execution.id, execution.status)
        return None
    wire = execution.to_wire()
    return Outcome(
        execution_id=execution.id,
        verdict="succeeded" if execution.status == "success" else "failed",
        message=f"execution {execution.id} ended with status '{execution.status}'",
        status=execution.status,
        workflow_id=execution.workflow_id,
        started_at=wire.get("startedAt"),
        stopped_at=wire.get("stoppedAt"),
        url=execution_url(base_url, execution.workflow_id, execution.id) if execution.workflow_id else None,
    )


def settle(
    outcome: Outcome, *, soft_fail: bool = False, never_fail: bool = False, retry_helps: bool = False
) -> dict[str, Any]:
    """End a waiting task as its outcome says.

    :param soft_fail: skip instead of failing when the execution failed, vanished or did not end in time.
    :param never_fail: skip instead of failing, whatever happened.
    :param retry_helps: whether another attempt starts another execution; otherwise it would find the same one again.
    :returns: what the task returns when the execution succeeded.
    """
    from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSensorTimeout, AirflowSkipException

    if outcome.verdict == "succeeded":
        line = f"{outcome.message}: {outcome.url}" if outcome.url else outcome.message
        log.log(logging.WARNING if outcome.status is None else logging.INFO, "%s", line)
        return outcome.to_xcom()
    if never_fail or (soft_fail and outcome.verdict != "unobservable"):
        raise AirflowSkipException(outcome.message)
    # A vanished execution may have succeeded, so another one could be one too many.
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
    """End a task whose wait is over: as the outcome says, after what the nodes did was read and logged.

    :param wanted: the output that is wanted if the execution has succeeded.
    :param headers: makes the headers of the call, whose values are hidden in the output.
    :returns: what the task returns when the execution succeeded: the outcome, what the nodes did, and the output.
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
    """Read what the nodes did and put out of an execution whose wait is over, and show the nodes.

    :param wanted: the output that is wanted if the execution has succeeded.
    :param headers: makes the headers of the call, whose values are hidden in the output.
    :param show: shows the nodes; None to log them.
    """
    from airflow_provider_service._core.runs.output import nothing_of, read_end

    if outcome.status is None and outcome.verdict != "timed_out":
        return nothing_of(wanted)
    return read_end(client, outcome.execution_id, wanted if outcome.status == "success" else None, headers, show=show)
