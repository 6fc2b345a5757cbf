"""Render the pages as HTML. They load files from the same origin only."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from posixpath import dirname
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_service._core.pages.checkup import NO_RUNS, in_order, verdict, waits_table
from airflow_provider_service._core.pages.execution_view import SIGNS
from airflow_provider_service._core.pages.executions import EXECUTION_STATES
from airflow_provider_service._core.pages.reading import COMPUTING, ExecutionReading
from airflow_provider_service._core.pages.task_view import RUNNING_SECONDS, SLEEPING_SECONDS, follow_seconds
from airflow_provider_service._core.reports.report import Link, template_environment
from airflow_provider_service.links.service import execution_url

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from airflow_provider_service._core.pages.checkup import ConnectionView, Finding
    from airflow_provider_service._core.pages.drawing import Box, Line
    from airflow_provider_service._core.pages.execution_view import ExecutionView, NodeView
    from airflow_provider_service._core.pages.executions import ExecutionsView, TaskExecution
    from airflow_provider_service._core.pages.task_view import TaskView
    from airflow_provider_service.client._execution_data import SubExecution


#: The files that pages load, with their media types.
ASSETS = {
    "airflow.css": "text/css",
    "pages.css": "text/css",
    "listing.css": "text/css",
    "airflow.js": "text/javascript",
    "drawing.js": "text/javascript",
    "follow.js": "text/javascript",
    "outside.js": "text/javascript",
}
#: The pages load only these files, and send requests only to their own address.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
_PLACE = "airflow_provider_service._core.pages"


@dataclass(frozen=True)
class Part:
    """The part of a page that changes, and a version that changes with it."""

    html: str
    version: str


def drawn(seen: ExecutionReading) -> ExecutionReading:
    """Render the nodes of an execution, which is the part that all viewers share."""
    if seen.view is None:
        return seen
    with COMPUTING:
        template = _environment().get_template("nodes.html.jinja")

        def sub_url(execution: SubExecution) -> str:
            return "" if seen.base_url is None else execution_url(seen.base_url, *execution)

        return replace(seen, html=template.render(view=seen.view, sub_url=sub_url))


def task_part(
    task: TaskView,
    seen: ExecutionReading | None,
    why_hidden: str | None = None,
    *,
    root: str = "",
    problem: str | None = None,
) -> Part:
    if seen is not None and why_hidden is not None:
        nameless = replace(task, attempts=[replace(attempt, execution_id=None) for attempt in task.attempts])
        return rendered_part(
            "hidden.html.jinja", task=nameless, reason=why_hidden, follow=follow_seconds(task, ExecutionReading())
        )
    links = {"log_path": dirname(root).rstrip("/") + task.path, "connections_path": f"{root}/connections"}
    return rendered_part(
        "task.html.jinja", task=task, seen=seen, follow=follow_seconds(task, seen), problem=problem, **links
    )


def message_part(title: str, text: str) -> Part:
    return rendered_part("message.html.jinja", title=title, text=text, follow=None)


def packed(html: str) -> bytes:
    return gzip.compress(html.encode(), compresslevel=5, mtime=0)


def page(part: Part, title: str, root: str, *, takes: str = "") -> str:
    """``takes`` is the field in its address for a choice made in Airflow: ``zone`` or ``try_number``."""
    from markupsafe import Markup

    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            part=Markup(part.html),  # noqa: S704 - the part was escaped when it was rendered
            title=title,
            takes=takes,
            addresses={name: f"{root}/assets/{assets_version()}/{name}" for name in ASSETS},
        )
    )


@cache
def asset(name: str) -> bytes:
    return files(_PLACE).joinpath("assets", name).read_bytes()


@cache
def assets_version() -> str:
    """Return a version of the files that pages load, which changes with them, so that browsers may keep the files."""
    return hashlib.sha256(b"".join(map(asset, sorted(ASSETS)))).hexdigest()[:12]


def rendered_part(template: str, **values: Any) -> Part:
    with COMPUTING:
        # Texts of the service and of XComs may hold what no encoding has.
        html = _environment().get_template(template).render(**values).encode(errors="replace").decode()
    return Part(html, hashlib.sha256(html.encode()).hexdigest()[:16])


@cache
def _environment() -> Environment:
    from jinja2 import PackageLoader

    environment = template_environment(PackageLoader(_PLACE, "templates"))
    environment.filters.update(
        duration=duration,
        moment=_moment,
        iso=_iso,
        sign=lambda state: SIGNS.get(state, "?"),
        number=lambda number: f"{number:,}",
        percent=lambda part: f"{100 * part:.2f}%",
        px=lambda units: f"{units:.0f}",
        did=_did,
        edges=_edges,
        label=_label,
        tries="up to {} tries".format,  # the service does not record the actual number
        quote=lambda text: quote(text, safe=""),
        css=lambda state: str(state).replace(" ", "-"),
    )
    environment.tests.update(safe=lambda url: bool(url) and Link("", url).is_safe)
    return environment


def _iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="seconds")


def _moment(when: datetime) -> Markup:
    """Render a date and time, which the browser shows in the time zone that the user has chosen in Airflow."""
    from markupsafe import Markup

    text = f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(_iso(when), text)


def duration(seconds: float) -> str:
    if 0 < seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    for unit, length, part, part_length in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            rest = whole % length // part_length
            return f"{whole // length:,} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def _did(node: NodeView | None) -> str:
    if node is None:
        return ""
    if node.seconds is None or node.state in ("waiting", "running", "disabled"):
        return node.state
    if node.failed_runs and node.runs > 1:
        return f"{node.runs - node.failed_runs:,} of {node.runs:,} succeeded"
    if node.tokens:
        did = f"{node.tokens:,} tokens"
    elif node.runs > 1:
        did = f"{node.runs:,} runs"
    else:
        did = f"{node.items:,} {'item' if node.items == 1 else 'items'}"
    return f"{duration(node.seconds)} · {did}"


def _edges(view: ExecutionView) -> list[tuple[Line, int | None, bool]]:
    """Return the connections, each with the number of items if it was used; those come last, to be drawn on top."""
    nodes = {node.name: node for node in view.nodes}
    edges: list[tuple[Line, int | None, bool]] = []
    for line in view.drawing.lines if view.drawing is not None else ():
        node = nodes.get(line.source)
        if node is None or not node.runs or node.state in ("waiting", "running"):
            edges.append((line, None, False))
            continue
        items = node.items_by_output[line.output] if line.output < len(node.items_by_output) else 0
        edges.append((line, items, items > 0 or not line.is_main))
    return sorted(edges, key=lambda edge: edge[2])


def _label(node: NodeView | None, box: Box, state: str) -> str:
    """Return the accessible name of a node. It begins with the visible text, so that voice control recognizes it."""
    seen = " ".join(filter(None, (box.node, _did(node))))
    parts = seen, "" if seen.endswith(state) else state, f"up to {box.tries} tries" if box.tries > 1 else ""
    return ", ".join(filter(None, parts))


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
_GRADES = {"FAIL": ("✕", "failed"), "note": ("○", "note"), "ok": ("✓", "ok")}


def executions_part(
    view: ExecutionsView, nodes: Mapping[TaskExecution, str | None], is_all: bool, *, airflow: str
) -> Part:
    """``nodes`` are those at which executions wait; ``is_all`` is whether it is known what is open."""
    is_open = any(execution.is_open for execution in view.shown)
    follow = RUNNING_SECONDS if not is_all or None in nodes.values() else SLEEPING_SECONDS if is_open else None
    return _part("executions.html.jinja", view=view, nodes=nodes, follow=follow, is_all=is_all, airflow=airflow)


def connection_part(view: ConnectionView, *, airflow: str) -> Part:
    waits = waits_table(view.waits, view.made_at)
    shown = {"findings": in_order(view.findings), "verdict": verdict(view.findings), "waits": waits, "no_runs": NO_RUNS}
    return _part("connection.html.jinja", view=view, airflow=airflow, **shown)


def connections_part(
    connections: Sequence[str], verdicts: Mapping[str, Finding | None], lacks: Sequence[str] = ()
) -> Part:
    """Render the list of connections, each with the verdict of its examination, or None if that is not known yet."""
    shown = [(conn_id, quote(conn_id, safe=""), conn_id in verdicts, verdicts.get(conn_id)) for conn_id in connections]
    under_way = list(verdicts.values()).count(None)
    return _part("connections.html.jinja", connections=shown, under_way=under_way, lacks=lacks)


def _part(template: str, **values: object) -> Part:
    signs = {"state_signs": _STATE_SIGNS, "grades": _GRADES, "state_label": state_label}
    signs["execution_states"] = EXECUTION_STATES
    return rendered_part(template, **signs, **values)


def state_label(state: str | None) -> str:
    return "No Status" if state in {None, "none"} else str(state).replace("_", " ").title()
