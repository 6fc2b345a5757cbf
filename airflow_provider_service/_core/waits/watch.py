"""A wait for an execution: its settings, and its polls, which share one deadline and one fault tolerance.

A worker polls here itself; a triggerer lets the shared poller do it (``poller.py``). Both judge what they read by the
same :class:`Watch`, which claims nothing that was not observed: a failed read is no end, and a deadline that passes
while reads fail says nothing about the execution.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow import metrics
from airflow_provider_service._core.arguments import FAULT_PAUSE_SECONDS
from airflow_provider_service._core.waits.outcome import Outcome, broken, judge, message_of_end
from airflow_provider_service.client import errors
from airflow_provider_service.client._clock import clock
from airflow_provider_service.client._execution_data import (
    awaited_event,
    current_node,
    failed_node,
    failure_of,
    read_state,
)

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_provider_service._core.arguments import OnVanished
    from airflow_provider_service._core.runs.output import NodeLog
    from airflow_provider_service.client import ServiceClient, ServiceConfig
    from airflow_provider_service.client.models import Execution

log = logging.getLogger(__name__)

#: Polls that must fail in a row before a wait fails, even if the fault tolerance has passed.
MIN_FAILURES = 3
#: Longest pause in seconds between two polls that the service can ask for.
MAX_ASKED_SECONDS = 60.0
#: Seconds for which a page of a list is requested again while the service answers others.
PAGE_RETRY_SECONDS = 4.0  # shorter than the patience with a list
#: Characters of what a message says about the end of a wait.
MAX_OUTCOME_CHARS = 1000


# Two waits for the same execution are two waits, so none equals another. The slots are explicit and no field has a
# default, because with the slots that dataclass generates, no subclass could have mutable fields.
@dataclass(frozen=True, eq=False)
class Wait:
    """A wait for one execution: until a deadline in seconds since the epoch, polled every so many seconds."""

    __slots__ = (
        "deadline",
        "execution_id",
        "expected_workflow_id",
        "fault_tolerance",
        "on_vanished",
        "poll_interval",
        "service_conn_id",
        "timeout",
    )

    execution_id: str
    service_conn_id: str
    deadline: float
    timeout: float
    poll_interval: float
    on_vanished: OnVanished
    fault_tolerance: float
    expected_workflow_id: str | None

    @property
    def seconds_left(self) -> float:
        return max(self.deadline - clock().now(), 0.0)

    def may_be_of(self, workflow_id: str | None) -> bool:
        return workflow_id is None or self.expected_workflow_id in (None, workflow_id)

    def to_arguments(self) -> dict[str, Any]:
        """Return the wait as arguments of a trigger, which Airflow stores."""
        return asdict(self)


def poll_here(
    config: ServiceConfig,
    wait: Wait,
    stopped: threading.Event,
    *,
    only_once: bool = False,
    nodes: NodeLog | None = None,
    began: Callable[[datetime], None] | None = None,
) -> Outcome | None:
    """Poll until a wait is over, and meanwhile log the nodes. Return None if the wait is given up earlier."""
    from airflow_provider_service._core.runs.output import NodeLog
    from airflow_provider_service.client import ServiceClient

    watch, nodes = Watch(wait), nodes or NodeLog(config, wait.execution_id)
    with ServiceClient(config.one_try()) as client:
        statistics = PollStatistics(client)
        with statistics.poll():
            outcome = watch.poll(client)
        if outcome is None and watch.started_at is not None and began is not None:
            began(watch.started_at)
        while outcome is None and not only_once:
            if clock().wait(stopped, max(wait.poll_interval, watch.asked_pause), wait.deadline):
                return None
            nodes.poll()
            with statistics.poll():
                outcome = watch.poll(client)
    return outcome


class Watch(Wait):
    """A wait in progress: reads and judges the execution, tolerates faults for a while, and observes the deadline."""

    # As few objects as possible, because those of thousands of waits slow Python's garbage collector.
    __slots__ = ("_faults", "is_unreadable", "started_at", "workflow_id")

    #: Whether a failure is explained as soon as it is seen.
    explains = True

    def __init__(self, wait: Wait) -> None:
        super().__init__(**wait.to_arguments())
        self.workflow_id: str | None = None
        self.started_at: datetime | None = None
        self._faults: FaultTolerance | None = None  # created at the first failure
        #: Whether it was reported that the execution cannot be read by its id.
        self.is_unreadable = False

    @property
    def in_trouble(self) -> bool:
        return self._faults is not None

    @property
    def asked_pause(self) -> float:
        return self._faults.asked_pause if self._faults else 0.0

    def pause(self, interval: float) -> float:
        return self._faults.pause(interval) if self._faults else interval

    def poll(self, client: ServiceClient) -> Outcome | None:
        outcome = self.read(client)
        return self.timed_out() if outcome is None and not self.seconds_left else outcome

    def read(self, client: ServiceClient, *, is_last: bool = False) -> Outcome | None:
        """Read the execution and judge it, regardless of the deadline; None if it has not ended or that is unknown."""
        try:
            execution, unreadable = read_state(client, self.execution_id, self.expected_workflow_id)
        except errors.ServiceNotFoundError:
            return self._vanished()
        except errors.ServiceApiError as error:
            # A request that was turned away says nothing about this execution.
            others = client.transport.succeeded_at if error.not_processed else -math.inf
            return self.poll_failed(error, is_quiet=is_last, others_succeeded_at=others)
        except errors.ServiceError as error:  # nothing was sent
            return broken(self.execution_id, error)
        except Exception as error:  # noqa: BLE001 - it is logged with its traceback
            # An unexpected answer must not fail other waits, and must not end this one at once.
            return self.poll_failed(error, is_quiet=is_last)
        if unreadable and not self.is_unreadable:
            self.is_unreadable = True
            log.warning("The state of execution %s is taken from lists: %s", self.execution_id, unreadable)
        return self.saw(execution, client)

    def saw(self, execution: Execution, client: ServiceClient) -> Outcome | None:
        if not self.may_be_of(execution.workflow_id):
            return self._of_another_server(execution, client.base_url)
        self.saw_active()
        self.workflow_id, self.started_at = execution.workflow_id, execution.started_at
        outcome = judge(execution, client.base_url)
        return explained(client.transport.config, outcome) if outcome and self.explains else outcome

    def saw_active(self) -> None:
        if self._faults:
            self._faults.succeeded()
        self._faults = None

    def poll_failed(
        self, error: Exception, *, is_quiet: bool = False, others_succeeded_at: float = -math.inf
    ) -> Outcome | None:
        """Record a failed poll. Return the outcome if it is no longer tolerated."""
        self._faults = self._faults or FaultTolerance(f"execution {self.execution_id}", self.fault_tolerance)
        if self._faults.tolerates(error, is_quiet=is_quiet, others_succeeded_at=others_succeeded_at):
            return None
        reason = _reason(error)
        if isinstance(error, errors.ServiceError) and error.ends_wait:
            return self._unobservable(reason, final=error.final)
        return self._unobservable(
            f"reading it failed for more than {self.fault_tolerance:g} s (fault_tolerance), last: {reason}"
        )

    def timed_out(self) -> Outcome:
        """The outcome of a wait whose deadline has passed, which claims nothing that was not observed."""
        if self._faults and self._faults.last_error:
            reason = f"the deadline passed while reading it failed, last: {_reason(self._faults.last_error)}"
            return self._unobservable(reason)._replace(is_overdue=True)
        message = f"execution {self.execution_id} had not ended {self.timeout:g} s after the wait began"
        return Outcome(self.execution_id, "timed_out", message, workflow_id=self.expected_workflow_id)

    def _unobservable(self, reason: str, *, final: bool = False) -> Outcome:
        message = f"execution {self.execution_id} could not be observed and may still be running: {reason}"
        message = f"{message[:MAX_OUTCOME_CHARS]} (connection '{self.service_conn_id}')"
        workflow_id = self.expected_workflow_id
        return Outcome(self.execution_id, "unobservable", message, workflow_id=workflow_id, final=final)

    def _of_another_server(self, execution: Execution, base_url: str) -> Outcome:
        reason = (
            f"it is one of workflow '{self.expected_workflow_id}', but at {base_url}, that id is of an execution of "
            f"workflow '{execution.workflow_id}', so the connection leads to another server than before"
        )
        return self._unobservable(reason, final=True)

    def _vanished(self) -> Outcome:
        # Even a first read may find nothing: the execution was pruned before, or only an earlier attempt saw it.
        is_fine = self.on_vanished == "succeed"
        counts_as = "counts as successful" if is_fine else "counts as failed"
        message = (
            f"execution {self.execution_id} cannot be found: it was deleted or pruned, its workflow does not save such "
            f"executions, the id is wrong, or the key of connection '{self.service_conn_id}' may not see it; it "
            f"{counts_as}, although its end was not seen (on_vanished='{self.on_vanished}')"
        )
        return Outcome(self.execution_id, "succeeded" if is_fine else "vanished", message)


def _reason(error: Exception) -> str:
    # The message must not depend on whether a list or the execution itself was requested.
    return error.explanation if isinstance(error, errors.ServiceError) else str(error)


class FaultTolerance:
    """Tolerates failed polls until they have failed both ``MIN_FAILURES`` times in a row and for some seconds.

    A refused key or request is not temporary, and is not tolerated at all. Without a limit in seconds, any failure is.
    """

    __slots__ = ("_doing", "_failing_since", "_failures", "_is_logged", "_next", "_seconds", "_subject", "last_error")

    def __init__(self, subject: str, seconds: float | None, *, doing: str = "Reading") -> None:
        self._subject, self._seconds, self._doing = subject, seconds, doing
        self._failures, self._failing_since, self._is_logged, self._next = 0, 0.0, False, 0.0
        #: The failure of the last poll; None if it succeeded.
        self.last_error: Exception | None = None

    @property
    def in_trouble(self) -> bool:
        return self.last_error is not None

    @property
    def asked_pause(self) -> float:
        """Seconds for which the service asks not to be polled, but at most ``MAX_ASKED_SECONDS``; 0 if polls work."""
        return max(0.0, self._next - clock().monotonic()) if self.in_trouble else 0.0

    def pause(self, interval: float) -> float:
        return max(min(interval, FAULT_PAUSE_SECONDS), self.asked_pause)

    def succeeded(self) -> None:
        if self._is_logged:
            seconds = clock().monotonic() - self._failing_since
            log.info("%s %s works again, after %.0f s", self._doing, self._subject, seconds)
        self._failures, self._is_logged, self.last_error = 0, False, None

    def tolerates(self, error: Exception, *, is_quiet: bool = False, others_succeeded_at: float = -math.inf) -> bool:
        """Record a failed poll, and return whether the wait goes on.

        A first failure is not logged if it ``is_quiet``. If others succeeded since this one began to fail, it begins
        anew.
        """
        now = clock().monotonic()
        self._next = now + min(getattr(error, "retry_after", None) or 0.0, MAX_ASKED_SECONDS)
        if not self._failures or others_succeeded_at > self._failing_since:
            self._failures, self._failing_since = 0, now
        self._failures, self.last_error = self._failures + 1, error
        so = "trying again until it works"
        if self._seconds is not None:
            so = f"this is tolerated for {self._seconds:g} s"
            if isinstance(error, errors.ServiceError) and error.ends_wait:
                return False
            if self._failures >= MIN_FAILURES and now - self._failing_since >= self._seconds:
                return False
        if not self._is_logged and (self._failures > 1 or not is_quiet):
            self._is_logged = True
            unexpected = None if isinstance(error, errors.ServiceError) else error
            log.warning("%s %s fails; %s: %s", self._doing, self._subject, so, error, exc_info=unexpected)
        return True


def explained(config: ServiceConfig, outcome: Outcome) -> Outcome:
    """Add to a failure the service's message, and the node that failed or, if none did, the one that ran last.

    Not in a triggerer: the data of many executions would stall all its triggers, and the message may quote secrets that
    the workflow was called with, while Airflow logs and stores events.
    """
    from airflow_provider_service._core.runs.output import read_small

    # Other failures have been explained, those in events of earlier versions even by the trigger.
    if outcome.verdict != "failed" or outcome.message != message_of_end(outcome.execution_id, outcome.status):
        return outcome
    where = "at"
    try:
        execution = read_small(config, outcome.execution_id, config.max_answer_mib)
        node, message = failure_of(execution)
        where = "at" if failed_node(execution) else "after"
        if outcome.workflow_id not in (None, execution.workflow_id):
            node, message = None, "its data could not be read (the connection leads to another server now)"
    except errors.ServiceApiError as error:
        node, message = None, f"its data could not be read ({type(error).__name__})"
    parts = [outcome.message, f" {where} node '{node}'" if node else "", f": {message}" if message else ""]
    text = "".join(parts)[:MAX_OUTCOME_CHARS]
    return outcome._replace(message=f"{text} - {outcome.url}" if outcome.url else text)


def where_it_waits(config: ServiceConfig, outcome: Outcome) -> Outcome:
    """Add to a wait that timed out the node at which its execution sleeps, and for what, if that can be read."""
    from airflow_provider_service._core.runs.output import read_small

    try:
        execution = read_small(config, outcome.execution_id, config.max_answer_mib)
    except errors.ServiceError:
        return outcome
    if execution.status != "waiting" or outcome.workflow_id not in (None, execution.workflow_id):
        return outcome
    node, event, until = current_node(execution), awaited_event(execution), execution.wait_till
    where = f" at node '{node}'"[:MAX_OUTCOME_CHARS] if node else ""
    what = f" for {event}" if event else ""
    is_limited = until is not None and until.year < 3000  # which the service stores for a wait without a limit
    limit = f" until {until.isoformat(timespec='seconds')}" if until and is_limited else ""
    return outcome._replace(message=f"{outcome.message}, but was waiting{where}{what}{limit}")


class PollStatistics:
    """Reports the requests that clients send for polls, and how long polls last."""

    def __init__(self, *clients: ServiceClient) -> None:
        self._clients, self._reported = clients, 0

    @contextmanager
    def poll(self) -> Iterator[None]:
        began = clock().monotonic()
        try:
            yield
        finally:
            metrics.report_duration(metrics.POLL_DURATION, clock().monotonic() - began)
            sent = sum(client.transport.requests_sent for client in self._clients)
            metrics.count(metrics.POLL_REQUESTS, sent - self._reported)
            self._reported = sent
