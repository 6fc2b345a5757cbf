"""Executions of workflows of every size and shape, as the service's data holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
BEGAN_MS = int(BEGAN.timestamp() * 1000)
_ERROR = {"message": "The shop is closed", "name": "NodeApiError"}


def node(name: str, x: Any = 0, y: Any = 0, kind: str = "n8n-nodes-base.noOp", **more: Any) -> dict[str, Any]:
    """A node of a workflow where its editor places it."""
    return {"name": name, "type": kind, "position": [x, y], "parameters": {}, **more}


def note(content: Any, x: Any, y: Any, width: Any = 240, height: Any = 160, color: Any = 1) -> dict[str, Any]:
    """A sticky note of a workflow."""
    parameters = {"content": content, "width": width, "height": height, "color": color}
    return {**node(f"Note {x} {y}", x, y, "n8n-nodes-base.stickyNote"), "parameters": parameters}


def to(*names: str, kind: str = "main") -> list[dict[str, Any]]:
    """What an output leads to."""
    return [{"node": name, "type": kind, "index": 0} for name in names]


def run(
    at: int, took: int = 90, status: str = "success", items: int | Sequence[int] = 1, **more: Any
) -> dict[str, Any]:
    """A run of a node that began so many milliseconds after the execution; ``items`` may name those of each output."""
    outputs = [items] if isinstance(items, int) else items
    error = {"error": _ERROR} if status == "error" else {}
    data = {"main": [[{"json": {}}] * number for number in outputs]}
    return {"startTime": BEGAN_MS + at, "executionTime": took, "executionStatus": status, "data": data, **error, **more}


def execution(
    nodes: Iterable[dict[str, Any]],
    connections: dict[str, Any],
    runs: dict[str, list[dict[str, Any]]],
    status: str = "success",
    seconds: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """An execution; one that has ended took so many seconds."""
    last = max((one["startTime"] + one["executionTime"] for some in runs.values() for one in some), default=BEGAN_MS)
    ended = BEGAN + timedelta(seconds=(last - BEGAN_MS) / 1000 if seconds is None else seconds)
    data: dict[str, Any] = {"resultData": {"runData": runs, "lastNodeExecuted": next(reversed(runs), None)}}
    if status == "error":
        data["resultData"]["error"] = {**_ERROR, "node": {"name": next(reversed(runs))}}
    return {
        "id": "7",
        "status": status,
        "mode": "webhook",
        "workflowId": "w",
        "startedAt": BEGAN.isoformat(),
        "stoppedAt": None if status in ("running", "waiting") else ended.isoformat(),
        "workflowData": {"id": "w", "name": "Orders", "nodes": list(nodes), "connections": connections},
        "data": data,
        **more,
    }


def chain(size: int, failing: int | None = None, row: int = 10_000) -> dict[str, Any]:
    """Nodes one after the other, in rows of so many; the last that ran may have failed."""
    names = [f"Step {at}: prepare orders" for at in range(1, size + 1)]
    nodes = [node(name, 220 * (at % row), 160 * (at // row)) for at, name in enumerate(names)]
    connections = {name: {"main": [to(after)]} for name, after in pairwise(names)}
    ran = names if failing is None else names[: failing + 1]
    runs = {name: [run(100 * at, items=at)] for at, name in enumerate(ran)}
    if failing is not None:
        runs[ran[-1]] = [run(100 * failing, 250, "error", items=[])]
    return execution(nodes, connections, runs, "success" if failing is None else "error")


def branches() -> dict[str, Any]:
    """A Switch of four outputs, branches that meet again, and one that leads back."""
    areas = ("North", "East", "South", "West")
    kind = "n8n-nodes-base."
    rules = [{"outputKey": area, "renameOutput": True} for area in areas]
    nodes = [
        node("Orders", 0, 300, kind + "webhook"),
        node("Which area?", 220, 270, kind + "switch", parameters={"rules": {"values": rules}}),
        *(node(f"Ask {area}", 460, 160 * at, kind + "httpRequest") for at, area in enumerate(areas)),
        node("Is it enough?", 680, 0, kind + "if"),
        node("Merge", 1120, 240, kind + "merge"),
        node("Wait a moment", 900, -160, kind + "wait"),
        node("Write rows", 1340, 240, kind + "dataTable"),
        node("Old report", 1560, 240, kind + "httpRequest", disabled=True),
        node("Done", 1780, 240),
    ]
    connections = {
        "Orders": {"main": [to("Which area?")]},
        "Which area?": {"main": [to(f"Ask {area}") for area in areas]},
        "Ask North": {"main": [to("Is it enough?")]},
        "Is it enough?": {"main": [to("Merge"), to("Wait a moment")]},
        "Wait a moment": {"main": [to("Ask North")]},
        **{f"Ask {area}": {"main": [to("Merge")]} for area in areas[1:]},
        "Merge": {"main": [to("Write rows", "Done")]},
        "Write rows": {"main": [to("Old report")]},
        "Old report": {"main": [to("Done")]},
    }
    runs = {
        "Orders": [run(0, 3)],
        "Which area?": [run(10, 12, items=[3, 0, 1_250, 7])],
        "Ask North": [run(40, 900, items=2), run(1400, 700, items=3)],
        "Is it enough?": [run(950, 2, items=[0, 2]), run(2110, 3, items=[3, 0])],
        "Wait a moment": [run(960, 400, items=2)],
        "Ask South": [run(2120, 300, items=1_250)],
        "Ask West": [run(2430, 600, items=7)],
        "Merge": [run(3040, 15, items=1_260)],
        "Write rows": [run(3060, 1_400, items=1_260)],
        "Old report": [run(4470, 1, items=1_260)],
        "Done": [run(4480, 1, items=2_520)],
    }
    return execution(nodes, connections, runs)


def noted() -> dict[str, Any]:
    """Branches with sticky notes of all colours: behind nodes, within and over each other, and beside all nodes."""
    whole = branches()
    text = (
        "## Ask every area\n\nEach of the **four** shops answers within a second or two, or is asked again.\n\nWho to "
    )
    notes = [
        note(f"{text}call if one does not: the shop itself, and then its keeper. {'x' * 5_000}", 420, -80, 200, 720),
        note("# Small orders wait\nuntil there are more of them", 640, -220, 480, 340, 2),
        note("A pause", 860, -200, 180, 160, 3),
        note("Written at night", 1300, 180, 420, 200, 4),
        note("## Orders\nBegins with a call of Airflow.", -60, -300, 400, 200, 5),
        note("一二三四五六七八九十" * 8, 1740, 180, color=6),
        note("<script>alert(1)</script> {{ 7*7 }}", 1740, 600, color=7),
    ]
    for one in whole["workflowData"]["nodes"]:
        if one["name"].startswith("Ask "):
            one |= {"retryOnFail": True, "maxTries": 4}
    whole["workflowData"]["nodes"] += notes
    return whole


def loop(times: int = 500, failing: int | None = 250) -> dict[str, Any]:
    """A loop, one of whose runs fails without stopping it."""
    nodes = [
        node("Start", 0, 0),
        node("Loop over orders", 220, 0, "n8n-nodes-base.splitInBatches", typeVersion=3),
        node("Send order", 460, 160, "n8n-nodes-base.httpRequest"),
        node("Report", 460, -60),
    ]
    connections = {
        "Start": {"main": [to("Loop over orders")]},
        "Loop over orders": {"main": [to("Report"), to("Send order")]},
        "Send order": {"main": [to("Loop over orders")]},
    }
    sent = [run(20 + 40 * at, 30, "error" if at == failing else "success") for at in range(times)]
    looped = [run(15 + 40 * at, 2, items=[0, 1] if at < times else [times, 0]) for at in range(times + 1)]
    runs = {
        "Start": [run(0, 5, items=times)],
        "Loop over orders": looped,
        "Send order": sent,
        "Report": [run(40 * times + 30, 12)],
    }
    return execution(nodes, connections, runs)


def agent() -> dict[str, Any]:
    """An agent with a model, a memory and two tools, one of which starts another execution."""
    kind = "@n8n/n8n-nodes-langchain."
    subs = {
        "OpenAI model": ("ai_languageModel", kind + "lmChatOpenAi"),
        "Memory of the talk": ("ai_memory", kind + "memoryBufferWindow"),
        "Look up an order": ("ai_tool", kind + "toolWorkflow"),
        "Calculator": ("ai_tool", kind + "toolCalculator"),
    }
    parameters = {"OpenAI model": {"model": {"__rl": True, "value": "gpt-4o-mini", "mode": "list"}}}
    nodes = [
        node("When a message comes", 0, 0, kind + "chatTrigger"),
        node("Agent", 240, 0, kind + "agent"),
        node("Reply", 620, 0, "n8n-nodes-base.set"),
        *(
            node(name, 180 + 130 * at, 220, of, parameters=parameters.get(name, {}))
            for at, (name, (_, of)) in enumerate(subs.items())
        ),
    ]
    connections: dict[str, Any] = {
        "When a message comes": {"main": [to("Agent")]},
        "Agent": {"main": [to("Reply")]},
        **{name: {how: [to("Agent", kind=how)]} for name, (how, _) in subs.items()},
    }
    used = {"tokenUsage": {"promptTokens": 1_100, "completionTokens": 134, "totalTokens": 1_234}}

    def sub(at: int, took: int, how: str, value: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {**run(at, took, **more), "data": {how: [[{"json": value}]]}}

    runs = {
        "When a message comes": [run(0, 4)],
        "Agent": [run(10, 5_200)],
        "OpenAI model": [sub(40, 2_100, "ai_languageModel", used), sub(3_000, 1_900, "ai_languageModel", used)],
        "Memory of the talk": [sub(20, 3, "ai_memory", {}), sub(5_000, 3, "ai_memory", {})],
        "Look up an order": [
            sub(
                2_200,
                700,
                "ai_tool",
                {"response": "x"},
                metadata={"subExecution": {"executionId": "812", "workflowId": "sub1"}},
            )
        ],
        "Reply": [run(5_230, 2)],
    }
    return execution(nodes, connections, runs)


def waiting(*, progress: bool = True) -> dict[str, Any]:
    """An execution that waits since its third node."""
    whole = chain(5)
    runs = dict(list(whole["data"]["resultData"]["runData"].items())[:3])
    runs["Step 3: prepare orders"] = [run(200, 5, "waiting")]
    nodes, connections = whole["workflowData"]["nodes"], whole["workflowData"]["connections"]
    return execution(nodes, connections, runs if progress else {}, "waiting", waitTill="2026-01-02T00:00:00.000Z")


def running(size: int = 13, done: int = 7) -> dict[str, Any]:
    """An execution that saves its progress, and runs its next node."""
    whole = chain(size)
    runs = dict(list(whole["data"]["resultData"]["runData"].items())[:done])
    nodes, connections = whole["workflowData"]["nodes"], whole["workflowData"]["connections"]
    one = execution(nodes, connections, runs, "running")
    one["data"]["executionData"] = {"nodeExecutionStack": [{"node": nodes[done], "data": {"main": [[]]}}]}
    return one


def nightly_sync() -> dict[str, Any]:
    """A branch, one side of which is an agent; the node that writes what both put out fails."""
    kind, of_ai = "n8n-nodes-base.", "@n8n/n8n-nodes-langchain."
    subs = {
        "OpenAI model": ("ai_languageModel", of_ai + "lmChatOpenAi"),
        "Find similar items": ("ai_tool", of_ai + "toolWorkflow"),
    }
    nodes = [
        node("Airflow calls", 0, 0, kind + "webhook"),
        node("Read orders", 200, 0, kind + "httpRequest"),
        node("In stock?", 400, 0, kind + "if"),
        node("Reserve items", 680, 0, kind + "dataTable"),
        node("Offer another", 600, 176, of_ai + "agent"),
        node("OpenAI model", 608, 368, subs["OpenAI model"][1], parameters={"model": {"value": "gpt-4o-mini"}}),
        node("Find similar items", 768, 368, subs["Find similar items"][1]),
        node("Merge", 980, 80, kind + "merge"),
        node("Update shop", 1180, 80, kind + "httpRequest"),
        node("Send report", 1380, 80, kind + "emailSend"),
    ]
    connections: dict[str, Any] = {
        "Airflow calls": {"main": [to("Read orders")]},
        "Read orders": {"main": [to("In stock?")]},
        "In stock?": {"main": [to("Reserve items"), to("Offer another")]},
        "Reserve items": {"main": [to("Merge")]},
        "Offer another": {"main": [to("Merge")]},
        "Merge": {"main": [to("Update shop")]},
        "Update shop": {"main": [to("Send report")]},
        **{name: {how: [to("Offer another", kind=how)]} for name, (how, _) in subs.items()},
    }

    def sub(at: int, took: int, name: str, **more: Any) -> dict[str, Any]:
        tokens = {"tokenUsage": {"promptTokens": 830, "completionTokens": 92, "totalTokens": 922}}
        return run(at, took, data={subs[name][0]: [[{"json": tokens if name == "OpenAI model" else {}}]]}, **more)

    error = {"message": "503 Service Unavailable: the shop is being updated", "name": "NodeApiError"}
    found = {"subExecution": {"executionId": "4712", "workflowId": "s"}}
    runs = {
        "Airflow calls": [run(0, 4)],
        "Read orders": [run(6, 780, items=240)],
        "In stock?": [run(788, 9, items=[228, 12])],
        "Reserve items": [run(799, 1_340, items=228)],
        "Offer another": [run(2_141, 5_600, items=12)],
        "OpenAI model": [sub(2_160, 1_900, "OpenAI model"), sub(5_150, 2_500, "OpenAI model")],
        "Find similar items": [sub(4_080, 1_050, "Find similar items", metadata=found)],
        "Merge": [run(7_743, 3, items=240)],
        "Update shop": [run(7_748, 2_090, "error", items=[], error=error)],
    }
    one = execution(nodes, connections, runs, "error", id="4711")
    one["workflowData"]["name"] = "Nightly sync"
    one["data"]["resultData"]["error"] = {**error, "node": {"name": "Update shop"}}
    return one
