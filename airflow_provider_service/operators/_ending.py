"""Decide what happens to an execution when its task is killed in a worker."""

from __future__ import annotations

import logging
import sys
from concurrent.futures import Future, TimeoutError, wait
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_service._core.daemon_threads import in_background
from airflow_provider_service._core.waits.stop import (
    ASKING_SECONDS,
    Decision,
    TaskNow,
    ask,
    decide,
    in_a_hurry,
    stop_execution,
    undecided,
)
from airflow_provider_service.client._clock import clock

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart
    from airflow_provider_service.client import ServiceConfig

log = logging.getLogger(__name__)

# Airflow kills a task 5 s after asking it to end, and stopping the execution takes up to 3 s.
ASKING_SECONDS_IN_A_SIGNAL = 1.5
ENDING_SECONDS_IN_A_SIGNAL = 4.5
_COMMS = "airflow.sdk.execution_time.comms"


class EndingTask:
    """Stops the execution of a task that a person or a time limit has ended; otherwise leaves it to the next attempt.

    Airflow calls ``on_kill`` in a signal handler, in the thread of the task. The handler must not wait long, and must
    not ask Airflow while this thread is in the middle of another request to Airflow. If the handler cannot decide, the
    task decides when it continues and finds that it was killed, as it does on Airflow 3.

    - ``fate``: what happened to the execution, for messages; None until that is decided, or if there is no execution.

    :param ti: the task instance.
    :param start: the start of the execution.
    :param config: address and key of the server.
    """

    def __init__(self, ti: Any, start: IdempotentStart, config: ServiceConfig) -> None:
        self.fate: str | None = None
        self._ti, self._start, self._config = ti, start, config
        self._attempts_left = ti.try_number <= (ti.max_tries or 0)
        self._answer: Future[TaskNow] | None = None
        self._is_settling = False

    def settle(self, *, in_signal: bool) -> None:
        """Decide whether to stop the execution, and if so, stop it. Safe to repeat and to interrupt.

        :param in_signal: whether this is called in a signal handler: time is short, but the task may decide later.
        """
        if self._is_settling or self.fate is not None:  # a second signal interrupts the handler of the first
            return
        self._is_settling = True
        begin = clock().monotonic()
        try:
            decision = self._decide(in_signal=in_signal)
            if decision is not None:
                self.fate = self._carry_out(decision)
                if in_signal:
                    self._free_the_line(ENDING_SECONDS_IN_A_SIGNAL - (clock().monotonic() - begin))
        finally:
            self._is_settling = False
        if self.fate is not None:
            log.info("The task was killed; %s", self.fate)

    def _free_the_line(self, seconds: float) -> None:
        """Wait for the answer: on Airflow 3.0 and 3.1, it would mix with what this thread reports next."""
        if self._answer is not None:
            wait([self._answer], max(0.0, seconds))

    def _carry_out(self, decision: Decision) -> str | None:
        execution_id = self._start.execution_id
        if not decision.stops:
            what = "what the task has started" if execution_id is None else f"execution {execution_id}"
            return f"{what} keeps running: {decision.reason}"
        execution_id = execution_id or self._start.just_started(self._config)
        if execution_id is None:
            return None
        log.info("Execution %s is being stopped: %s", execution_id, decision.reason)
        fate = stop_execution(in_a_hurry(self._config), execution_id)
        doubt = " and may still be running" if fate == "could NOT be stopped" else ""
        return f"execution {execution_id} {fate}{doubt}: {decision.reason}"

    def _decide(self, *, in_signal: bool) -> Decision | None:
        if _has_timed_out():
            return Decision(True, "the task reached its execution_timeout")
        if in_signal and _interrupts_a_request():
            log.info("The task was killed; its execution keeps running until Airflow can be asked who ended the task")
            return None
        try:
            now = self._ask(ASKING_SECONDS_IN_A_SIGNAL if in_signal else ASKING_SECONDS)
        except TimeoutError as error:
            if in_signal and self._attempts_left:
                log.info("The task was killed; its execution keeps running until Airflow says who ended the task")
                return None
            return undecided(error, attempts_left=self._attempts_left)
        except Exception as error:  # noqa: BLE001 - whatever the error, who ended the task is unknown
            return undecided(error, attempts_left=self._attempts_left)
        return decide(now, self._start.execution_id, attempts_left=self._attempts_left)

    def _ask(self, seconds: float) -> TaskNow:
        """Ask Airflow in a thread, since the supervisor, its API server or its database may be slow to answer."""
        if self._answer is None:
            self._answer = in_background(ask, self._ti, self._start.attempt, name="service-end")
        return self._answer.result(seconds)


def _has_timed_out() -> bool:
    """Whether the task reached its ``execution_timeout``: Airflow calls ``on_kill`` while it handles that exception."""
    return isinstance(sys.exc_info()[1], AirflowTaskTimeout)


def _interrupts_a_request() -> bool:
    """Whether the signal interrupted a request of this thread to its supervisor, which answers one at a time."""
    frame = sys._getframe()
    while (caller := frame.f_back) is not None:
        if caller.f_globals.get("__name__") == _COMMS:
            return True
        frame = caller
    return False
