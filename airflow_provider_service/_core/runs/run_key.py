"""The run key: by what its call carries, an execution shows which task run and which attempt has started it."""

from __future__ import annotations

import re
from typing import NamedTuple

from airflow_provider_service.client._constraints import ENDED_STATUSES, FAILED_STATUSES

# The number of an attempt until a search has found the earlier ones, if Airflow does not count them.
UNCOUNTED = 0
# Stands for an attempt from before the DAG run was cleared.
_BEFORE_CLEARING = 0
_HEADER = re.compile(r"([^.]+)\.([^.]*)\.([^.]*)\.([0-9]{1,9})")


class CallTag(NamedTuple):
    """The identity of a caller, as the header of its call states it.

    :param task: identifies the DAG, the run, the task and the map index.
    :param start: identifies the time at which the DAG run began.
    :param deployment: identifies the deployment of Airflow.
    :param attempt: number of the attempt.
    """

    task: str
    start: str
    deployment: str
    attempt: int

    @property
    def header(self) -> str:
        """Value of the header that carries the tag."""
        return f"{self.task}.{self.start}.{self.deployment}.{self.attempt}"

    @classmethod
    def read(cls, header: object) -> CallTag | None:
        """Read a header's value; None for one that no task has sent."""
        parts = _HEADER.fullmatch(header) if isinstance(header, str) else None
        return cls(parts[1], parts[2], parts[3], int(parts[4])) if parts else None


class RunKey(NamedTuple):
    """The key that the calls of one task run carry.

    :param task: identifies the DAG, the run, the task and the map index.
    :param attempt: number of the attempt.
    :param first: the first attempt since another run was requested, for example by clearing the task.
    :param start: identifies the time at which the DAG run began, if known; clearing a finished DAG run changes it.
    :param deployment: identifies the deployment of Airflow.
    :param was_cleared: whether the DAG run may have begun before, with another ``start``.
    """

    task: str
    attempt: int
    first: int = 1
    start: str = ""
    deployment: str = ""
    was_cleared: bool = False

    @property
    def tag(self) -> CallTag:
        """The tag that the calls of this attempt carry."""
        return CallTag(self.task, self.start, self.deployment, self.attempt)

    @property
    def header(self) -> str:
        """Value of the header that carries the key."""
        return self.tag.header

    def attempt_of(self, tag: CallTag | None) -> int | None:
        """Return the attempt of this task run that made a call; 0 if it was made before the DAG run was cleared.

        The time at which the DAG run began identifies it, even if the configuration changes between two attempts. The
        deployment decides only if that time has changed.
        """
        if tag is None or tag.task != self.task:
            return None
        if tag.start == self.start:
            return tag.attempt
        return _BEFORE_CLEARING if self.was_cleared and tag.deployment == self.deployment else None

    @property
    def is_numbered(self) -> bool:
        """Whether the number of the attempt is known."""
        return self.attempt != UNCOUNTED

    def follows(self, made_by: int, status: str | None) -> bool:
        """Whether no execution of this task run came between one that was found and this attempt.

        Without the number of this attempt, that is known only of one that has not failed.

        :param made_by: the attempt that started it.
        :param status: its status; None if that does not show how the run ended.
        """
        return made_by >= self.attempt - 1 if self.is_numbered else status not in (None, *FAILED_STATUSES)

    def may_resume(self, made_by: int, status: str) -> bool:
        """Whether this attempt resumes the execution that another has started, instead of starting one itself."""
        if made_by < self.first:
            return status not in ENDED_STATUSES
        return made_by == self.attempt or status not in FAILED_STATUSES
