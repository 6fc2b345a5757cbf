"""Decide whether a task's page may show an execution: only if the task has provably started it or waits for it.

The link that leads the page to the execution is an XCom, which users may write, so it proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_service._core.pages.execution_view import ExecutionView
    from airflow_provider_service._core.pages.reading import ExecutionReading
    from airflow_provider_service._core.runs.run_key import RunKey

_OTHER_WORKFLOW = "it belongs to another workflow than the link says"
_OTHER_TASK = "another task run has started it"
_NO_KEY = "it does not carry the run key of this task"
_NOT_SHOWN, _KEYLESS = "its data does not show what started it", "such executions carry no run key"
_NO_STATE = (
    "and the state that Airflow 3.3 and newer keep of this task does not name it together with the workflow that the "
    "task runs"
)


@dataclass(frozen=True)
class Evidence:
    """What Airflow knows about a task instance and users cannot write, with the exception of ``saved``.

    :param run_key: the key in the calls of the task.
    :param execution_id: the execution that the task's arguments name, to wait for, stop or retry; None if they do not.
    :param workflows: id and name of the workflow in the task's arguments.
    :param saved: ids of the executions and their workflows that the task has saved in its state (Airflow 3.3 and
        newer). Users who may edit the task instance may write them, too.
    """

    run_key: RunKey
    execution_id: str | None = None
    workflows: Collection[str] = ()
    saved: Collection[tuple[str, str]] = ()

    def why_hidden(self, seen: ExecutionReading, workflow_id: str) -> str | None:
        """Say why an execution may not be shown; None if it is the task's own, or was not read at all.

        :param seen: the execution.
        :param workflow_id: id of its workflow according to the link.
        """
        view = seen.view
        if view is None:
            return None
        if view.workflow_id not in (workflow_id, None):
            return _OTHER_WORKFLOW
        tag, is_shown = seen.call or (None, False)
        if self.run_key.attempt_of(tag) is not None or self._was_told(view):
            return None
        if tag is not None:
            return _OTHER_TASK
        if view.mode == "webhook" and is_shown:
            return _NO_KEY
        if self._has_saved(view):
            return None
        return f"{_KEYLESS if is_shown else _NOT_SHOWN}, {_NO_STATE}"

    def started_by(self, seen: ExecutionReading) -> int | None:
        """Return the number of the attempt that has started an execution, if its call shows that."""
        return self.run_key.attempt_of(seen.call.tag if seen.call else None)

    def _was_told(self, view: ExecutionView) -> bool:
        return self.execution_id is not None and self.execution_id in (view.execution_id, view.retry_of)

    def _has_saved(self, view: ExecutionView) -> bool:
        is_own_workflow = view.workflow_id in self.workflows or view.workflow_name in self.workflows
        return is_own_workflow and (view.execution_id, view.workflow_id) in self.saved
