"""The statuses of an execution."""

from __future__ import annotations

from typing import Literal

ExecutionStatus = Literal["canceled", "crashed", "error", "new", "running", "success", "unknown", "waiting"]

FAILED_STATUSES: tuple[ExecutionStatus, ...] = ("error", "canceled", "crashed")
ENDED_STATUSES: tuple[ExecutionStatus, ...] = ("success", *FAILED_STATUSES)
# In the order in which executions progress: one that progresses while the lists are read appears in a later list.
ACTIVE_STATUSES: tuple[ExecutionStatus, ...] = ("waiting", "new", "running")
