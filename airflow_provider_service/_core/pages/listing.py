"""Render the pages of connections, and of the executions that tasks have started or waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_provider_service._core.pages.checkup import Verdict, verdict
from airflow_provider_service._core.pages.connection_view import NO_RUNS, NO_WAITS, OF_ALL, last_heartbeat
from airflow_provider_service._core.pages.rendering import Part, rendered_part

if TYPE_CHECKING:
    from airflow_provider_service._core.pages.connection_view import ConnectionView
    from airflow_provider_service._core.pages.executions import ExecutionsView

# Signs of the states of Airflow's task instances; below, those of the grades of an examination.
_STATE_SIGNS = {
    "success": "✓",
    "failed": "✕",
    "upstream_failed": "✕",
    "running": "▶",
    "deferred": "‖",
    "up_for_retry": "↻",
    "restarting": "↻",
    "up_for_reschedule": "↷",
    "skipped": "»",
    "removed": "-",
}
_GRADES = {"FAIL": ("✕", "failed"), "note": ("!", "note"), "skip": ("?", "not examined"), "ok": ("✓", "ok")}


def executions_part(view: ExecutionsView, *, airflow: str, problem: str = "") -> Part:
    """Render the result of a search for executions.

    :param airflow: path below which Airflow's own pages are.
    :param problem: why the search is impossible.
    """
    return _part("executions.html.jinja", view=view, airflow=airflow, problem=problem)


def connection_part(view: ConnectionView, *, airflow: str) -> Part:
    """Render the page of a connection.

    :param airflow: path below which Airflow's own pages are.
    """
    notes = {"of_all": OF_ALL, "no_waits": NO_WAITS, "no_runs": NO_RUNS, "last_heartbeat": last_heartbeat}
    return _part("connection.html.jinja", view=view, verdict=verdict(view.findings), airflow=airflow, **notes)


def connections_part(
    connections: Sequence[str], verdicts: Mapping[str, Verdict | None], lacks: Sequence[str] = ()
) -> Part:
    """Render the list of connections, each with the verdict of its examination, or None if that is not known yet."""
    shown = [(one, quote(one, safe=""), one in verdicts, verdicts.get(one)) for one in connections]
    under_way = sum(one is None for one in verdicts.values())
    return _part("connections.html.jinja", connections=shown, under_way=under_way, lacks=lacks)


def _part(template: str, **values: object) -> Part:
    signs = {"state_signs": _STATE_SIGNS, "grades": _GRADES, "state_label": state_label}
    return rendered_part(template, **signs, **values)


def state_label(state: str | None) -> str:
    """Return the state of a task instance as Airflow's pages write it."""
    return "No Status" if state in {None, "none"} else str(state).replace("_", " ").title()
