"""The trigger that starts a DAG when an execution ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.triggers import BaseEventTrigger
from airflow.triggers.base import TriggerEvent

from airflow_provider_service._core.arguments import read_seconds, refuse, require_output
from airflow_provider_service._core.events.selection import Selection
from airflow_provider_service.client._constraints import ENDED_STATUSES

if TYPE_CHECKING:
    from airflow_provider_service._core.arguments import Duration, ReturnOutput
    from airflow_provider_service._core.events.poll import EventPoll, PolledExecutions
    from airflow_provider_service._core.runs.output import WantedOutput

__all__ = ["ServiceExecutionEventTrigger"]


# The methods import what only a triggerer needs, because DAG files import this module.
class ServiceExecutionEventTrigger(BaseEventTrigger):
    """Fire an event whenever an execution of the selected workflows has ended; for an ``AssetWatcher``.

    Safe to repeat: on Airflow 3.3 and newer, a watcher continues after a restart where it had stopped. Give one
    selection: one or several workflows by id or by name, the workflows of a tag or a project, or all workflows. Names
    are looked up when the watch begins; archived workflows do not count. The workflows of a tag or a project are read
    again at every tenth poll, and whenever a workflow runs that the watch has not seen before: a new workflow is
    watched from its first execution on, while one that is given the tag or is moved later joins within ten polls.

    The watch begins with its first poll; executions that ended before are not reported. On Airflow 3.3 and newer,
    watchers of the same connection and interval share one poll; on older versions, each has its own.

    On Airflow 3.3 and newer, a watcher misses no end, however the triggerer ended: an event counts as reported only
    once it is in Airflow's database. If a triggerer dies or stops within about two seconds after an event, or is so
    overloaded that Airflow gives the watch to another one, an end may be reported again, with the same ``execution_id``
    and ``status``. The two seconds can become a minute while outputs are read, or executions of a slow service.
    Otherwise each end is reported once. The watch starts from scratch:

    - after a restart on Airflow before 3.3, or if several assets share a watcher, for which Airflow keeps no state;
    - when the selection, ``statuses``, the connection or its address changes;
    - when the executions that it has seen no longer exist, because the service has another database.

    The workflows must save the executions whose ends are to be reported.

    The event is ``{"execution_id", "workflow_id", "status", "started_at", "stopped_at", "url"}``, with
    ``return_output`` also ``{"output", "output_items"}`` if the execution succeeded. If the output is
    larger than 48 kB of JSON, or cannot be read within a minute after the poll that saw the end, it is None, and the
    log of the triggerer has a warning; the end is reported in any case.

    :param workflow_id: id of the workflow, or a list of several.
    :param workflow_name: exact name of the workflow, or a list of several.
    :param tag_id: id of a tag: the workflows that carry it.
    :param tag_name: exact name of a tag, instead of its id.
    :param project_id: id of a project: its workflows; with names or a tag, the project to which they are limited.
    :param project_name: exact name of that project, instead of its id.
    :param all_workflows: True to select all workflows that the key may see; False by default.
    :param statuses: final statuses that fire: ``"success"``, ``"error"``, ``"canceled"``, ``"crashed"``; default all.
    :param return_output: what to report: the output of the node that ran last (``"last_node"``), the output of another
        node (``{"node": "Name"}``), or none (``"none"``, the default). Airflow's database keeps it with the event. It
        may contain whatever the workflow was called with, including headers and their secrets.
    :param max_output_items: number of items to report at most; None (the default) for all.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :param poll_interval: seconds, or a timedelta, between two polls; 30 seconds by default.
    :raises ServiceInputError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        workflow_id: str | Sequence[str] | None = None,
        workflow_name: str | Sequence[str] | None = None,
        tag_id: str | None = None,
        tag_name: str | None = None,
        project_id: str | None = None,
        project_name: str | None = None,
        all_workflows: bool = False,
        statuses: Sequence[str] = ENDED_STATUSES,
        return_output: ReturnOutput = "none",
        max_output_items: int | None = None,
        service_conn_id: str = "service_default",
        poll_interval: Duration = 30.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if isinstance(statuses, str) or not statuses or set(statuses).difference(ENDED_STATUSES):
            refuse("statuses", f"a list of {', '.join(ENDED_STATUSES)}", statuses)
        selected = {
            "workflow_id": workflow_id,
            "workflow_name": workflow_name,
            "tag_id": tag_id,
            "tag_name": tag_name,
            "project_id": project_id,
            "project_name": project_name,
            "all_workflows": all_workflows,
        }
        self.selection = Selection.of_arguments(selected)
        self._selected = {name: _stored(value) for name, value in selected.items() if value}
        self.statuses = sorted(statuses)
        self._output = {"return_output": return_output, "max_output_items": max_output_items}
        self._wanted = _wanted_output(return_output, max_output_items)
        self.service_conn_id = service_conn_id
        self.poll_interval = read_seconds("poll_interval", poll_interval)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that recreate this trigger."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                **self._selected,
                "statuses": self.statuses,
                **(self._output if self._wanted else {}),
                "service_conn_id": self.service_conn_id,
                "poll_interval": self.poll_interval,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll separately, for versions of Airflow that do not share streams."""
        poll = self.create_shared_stream_producer(self.serialize()[1])
        async for event in self.filter_shared_stream(polled async for polled, _ in poll.open_stream()):
            yield event

    def shared_stream_key(self) -> Hashable:
        """Return the key of the shared poll: watchers of the same connection and interval share one."""
        return (type(self).__qualname__, self.service_conn_id, self.poll_interval)

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> EventPoll:
        """Create the poll of the executions of all workflows; Airflow calls this once per shared poll."""
        from airflow_provider_service._core.events.poll import EventPoll

        return EventPoll(kwargs)

    async def filter_shared_stream(self, shared_stream: AsyncIterator[PolledExecutions]) -> AsyncIterator[TriggerEvent]:
        """Report the ends of executions of this trigger's workflows."""
        from airflow_provider_service._core.events.poll import Watcher

        watcher = Watcher(self.selection, self.statuses, self._wanted, self.poll_interval)
        async for payload in watcher.ends(shared_stream, getattr(self, "asset_state_store", None), self._cursor_key):
            yield TriggerEvent(payload)

    @property
    def _cursor_key(self) -> str:
        # Several watchers of one asset have separate cursors: what one has reported, the other may not have.
        return f"service_executions:{self.service_conn_id}:{self.selection.key}:{','.join(self.statuses)}"


def _wanted_output(return_output: ReturnOutput, max_items: int | None) -> WantedOutput | None:
    require_output("return_output", return_output)
    if return_output == "none" and max_items is None:
        return None  # without importing the module that reads output
    from airflow_provider_service._core.runs.output import WantedOutput

    return WantedOutput.of(return_output, max_items, None)


def _stored(value: Any) -> Any:
    return value if isinstance(value, (str, bool)) else list(value)
