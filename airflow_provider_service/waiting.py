"""How a wait for an execution is judged: the one verdict, the one deadline, the one tolerance of faults.

Poke, reschedule and deferred waits all decide here, so that they can not disagree.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from airflow_provider_service.client import errors
from airflow_provider_service.client.statuses import ACTIVE_STATUSES, ENDED_STATUSES
from airflow_provider_service.links import execution_url

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient, ServiceConfig
    from airflow_provider_service.client.models.executions import Execution

log = logging.getLogger(__name__)

OnVanished = Literal["fail", "succeed"]
Verdict = Literal["succeeded", "failed", "vanished", "timed_out", "unobservable"]

#: XCom key under which a task keeps the execution that it waits for.
EXECUTION_ID_KEY = "execution_id"

DEFAULT_FAULT_TOLERANCE = 300.0
MIN_FAILURES = 3
MAX_MESSAGE_CHARS = 1000
# Airflow kills a task 5 s after it asked it to end.
STOP_TIMEOUT_SECONDS = 3.0

# An answer that says the same however often it is asked; everything else may pass.
_FINAL_ERRORS = (
    errors.ServiceUnauthorizedError,
    errors.ServiceForbiddenError,
    errors.ServiceInvalidRequestError,
    errors.ServiceNotOfferedError,
    errors.ServiceRedirectError,
)


@dataclass(frozen=True)
class Outcome:
    """How a wait ended. Small and free of secrets: it travels in trigger events and XCom.

    :param execution_id: the execution.
    :param verdict: what the end means for the task.
    :param message: one line for the task's log.
    :param status: the service's own status, or None when the execution could not be read.
    :param workflow_id: the execution's workflow, if known.
    :param started_at: start of the execution, ISO 8601 in UTC.
    :param stopped_at: end of the execution, ISO 8601 in UTC.
    :param url: page of the execution, if known.
    """

    execution_id: str
    verdict: Verdict
    message: str
    status: str | None = None
    workflow_id: str | None = None
    started_at: str | None = None
    stopped_at: str | None = None
    url: str | None = None

    def to_event(self) -> dict[str, Any]:
        """The outcome as the payload of a trigger event."""
        return asdict(self)

    @classmethod
    def from_event(cls, event: Any) -> Outcome:
        """Read a trigger event; one of another shape counts as a wait that could not observe."""
        names = {field.name for field in fields(cls)}
        if isinstance(event, dict) and event.keys() == names and event["verdict"] in get_args(Verdict):
            return cls(**event)
        return cls("unknown", "unobservable", "the trigger sent an event of an unknown shape")

    def to_xcom(self) -> dict[str, Any]:
        """What a task that waited returns."""
        return {
            "execution_id": self.execution_id,
            "status": self.status,
            "workflow_id": self.workflow_id,
            "started_at": self.started_at,
            "stopped_at": self.stopped_at,
            "url": self.url,
        }


def broken(execution_id: str, error: Exception) -> Outcome:
    """The outcome of a wait that could not even ask, such as for want of a usable connection."""
    return Outcome(execution_id, "unobservable", f"the wait for execution {execution_id} broke: {error}")


def judge(execution: Execution, base_url: str) -> Outcome | None:
    """Decide whether an execution has ended, and how; None while it has not.

    Only ``success`` succeeds. A status this version does not know keeps the wait going until its deadline.
    """
    if execution.status not in ENDED_STATUSES:
        if execution.status not in ACTIVE_STATUSES:
            log.warning("Execution %s has the unknown status %r; waiting on", execution.id, execution.status)
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


class Watch:
    """One wait for one execution: looks, judges, tolerates faults of looking for a while, and keeps the deadline.

    A fault is tolerated until looking has failed both ``MIN_FAILURES`` times in a row and for
    ``fault_tolerance`` seconds. A refused key or request is no fault that passes, and ends the wait at once.

    :param execution_id: the execution.
    :param on_vanished: what it means that the execution can not be found: it was deleted or pruned, its workflow
        does not save such executions, or it never existed.
    :param fault_tolerance: seconds.
    :param deadline: moment that ends the wait, in seconds since the epoch.
    :param timeout: seconds from the begin of the wait to the deadline, for the message.
    """

    __slots__ = (
        "_failing_since",
        "_failures",
        "_fault_tolerance",
        "_on_vanished",
        "_timeout",
        "deadline",
        "execution_id",
        "workflow_id",
    )

    def __init__(
        self,
        execution_id: str,
        *,
        deadline: float = math.inf,
        timeout: float = math.inf,
        on_vanished: OnVanished = "fail",
        fault_tolerance: float = DEFAULT_FAULT_TOLERANCE,
    ) -> None:
        self.execution_id = execution_id
        self.workflow_id: str | None = None
        self.deadline = deadline
        self._timeout = timeout
        self._on_vanished = on_vanished
        self._fault_tolerance = fault_tolerance
        self._failures = 0
        self._failing_since = 0.0

    @property
    def in_trouble(self) -> bool:
        """Whether the last look failed."""
        return self._failures > 0

    @property
    def seconds_left(self) -> float:
        """Seconds to the deadline; 0 when it has passed."""
        return max(self.deadline - time.time(), 0.0)

    def look(self, client: ServiceClient) -> Outcome | None:
        """Read the execution and judge it; None while the wait goes on."""
        outcome = self._read(client)
        return self.timed_out() if outcome is None and not self.seconds_left else outcome

    def _read(self, client: ServiceClient) -> Outcome | None:
        try:
            execution = client.executions.get(self.execution_id)
        except errors.ServiceNotFoundError:
            return self._vanished()
        except (errors.ServiceInputError, errors.ServiceConfigError) as error:
            return broken(self.execution_id, error)
        except errors.ServiceApiError as error:
            log.warning("Execution %s could not be read: %s", self.execution_id, error)
            return self.failed_to_look(error)
        except Exception as error:
            # An answer that nobody has thought of must not fail other waits, nor this one at once.
            log.exception("Execution %s could not be read", self.execution_id)
            return self.failed_to_look(error)
        return self.saw(execution, client)

    def saw(self, execution: Execution, client: ServiceClient) -> Outcome | None:
        """Judge the execution as it was read."""
        self.saw_active()
        self.workflow_id = execution.workflow_id
        outcome = judge(execution, client.base_url)
        return _explained(client, outcome) if outcome and outcome.verdict == "failed" else outcome

    def saw_active(self) -> None:
        """Note that the execution was seen and has not ended."""
        self._failures = 0

    def failed_to_look(self, error: Exception) -> Outcome | None:
        """Note a failed look; the outcome once it must not be tolerated any longer."""
        now = time.monotonic()
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        lasted = now - self._failing_since
        # Whether a list or the execution itself was asked for must not show.
        reason = error.explanation if isinstance(error, errors.ServiceApiError) else str(error)
        if isinstance(error, _FINAL_ERRORS):
            return self._unobservable(reason)
        if self._failures >= MIN_FAILURES and lasted >= self._fault_tolerance:
            return self._unobservable(f"reading it failed for more than {self._fault_tolerance:g} s, last: {reason}")
        return None

    def timed_out(self) -> Outcome:
        """The outcome of a wait whose deadline has passed."""
        message = f"execution {self.execution_id} had not ended {self._timeout:g} s after the wait began"
        return Outcome(self.execution_id, "timed_out", message)

    def _unobservable(self, reason: str) -> Outcome:
        message = f"execution {self.execution_id} could not be observed, it may still be running: {reason}"
        return Outcome(self.execution_id, "unobservable", message[:MAX_MESSAGE_CHARS])

    def _vanished(self) -> Outcome:
        message = (
            f"execution {self.execution_id} can not be found: it was deleted or pruned, its workflow does not save "
            f"such executions, or it never existed (on_vanished='{self._on_vanished}')"
        )
        return Outcome(self.execution_id, "succeeded" if self._on_vanished == "succeed" else "vanished", message)


def _explained(client: ServiceClient, outcome: Outcome) -> Outcome:
    """Add the failing node and the service's message, when they can be read."""
    from airflow_provider_service.client.run_data import failure_of

    try:
        node, message = failure_of(client.executions.get(outcome.execution_id, include_data=True))
    except errors.ServiceApiError as error:
        node, message = None, f"its data could not be read ({type(error).__name__})"
    parts = [outcome.message, f" at node '{node}'" if node else "", f": {message}" if message else ""]
    text = "".join(parts)[:MAX_MESSAGE_CHARS]
    return replace(outcome, message=f"{text} - {outcome.url}" if outcome.url else text)


class ServiceWaitError(Exception):
    """The execution could not be observed. That says nothing of how it ended, so trying the task again may help."""


class ServiceExecutionFailedError(Exception):
    """The execution a task started has failed, or did not end in time. Trying the task again starts a new one."""


def settle(
    outcome: Outcome, *, soft_fail: bool = False, never_fail: bool = False, retry_helps: bool = False
) -> dict[str, Any]:
    """End a waiting task as its outcome says.

    :param soft_fail: skip instead of failing when the execution failed, vanished or did not end in time.
    :param never_fail: skip instead of failing, whatever happened.
    :param retry_helps: whether trying the task again starts another execution; else it would find the same one.
    :returns: what the task returns when the execution succeeded.
    """
    from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSensorTimeout, AirflowSkipException

    if outcome.verdict == "succeeded":
        log.info("%s: %s", outcome.message, outcome.url or "")
        return outcome.to_xcom()
    if never_fail or (soft_fail and outcome.verdict != "unobservable"):
        raise AirflowSkipException(outcome.message)
    if outcome.verdict == "unobservable":
        raise ServiceWaitError(outcome.message)
    if outcome.verdict == "vanished":
        # A vanished execution may have succeeded, so that another one could be one too many.
        raise AirflowFailException(outcome.message)
    if retry_helps:
        raise ServiceExecutionFailedError(outcome.message)
    if outcome.verdict == "timed_out":
        raise AirflowSensorTimeout(outcome.message)
    raise AirflowFailException(outcome.message)


def stop_execution(config: ServiceConfig, execution_id: str) -> bool:
    """Stop an execution with one short request, since little time is left; says whether it is stopped or had ended.

    :param config: the server.
    """
    from airflow_provider_service.client import ServiceClient

    with ServiceClient(config.one_try(connect_timeout=1.5, timeout=STOP_TIMEOUT_SECONDS)) as client:
        try:
            client.executions.stop(execution_id)
        except (errors.ServiceConflictError, errors.ServiceNotFoundError) as error:
            log.info("Execution %s had ended before it was stopped: %s", execution_id, error)
        except errors.ServiceApiError as error:
            log.error("Execution %s could not be stopped and may still be running: %s", execution_id, error)
            return False
        else:
            log.info("Execution %s was stopped", execution_id)
    return True
