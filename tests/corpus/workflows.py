"""Make workflows with the shapes that the files of public collections have, in about their frequencies.

The same seed makes the same workflows. All names, texts and ids are made here: a file of somebody that went wrong adds
its shape to the tables below, never itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

Definition = dict[str, Any]
Node = dict[str, Any]
Change = Callable[[Random, Definition], object]

BASE, AGENTS = "n8n-nodes-base.", "@n8n/n8n-nodes-langchain."
NOTE = f"{BASE}stickyNote"
SUBJECTS = ["orders", "invoices", "customers", "parcels", "returns", "vouchers", "leads", "reviews", "tickets", "stock"]
VERBS = ["import", "check", "send", "sort", "merge", "archive", "count", "tag", "read", "mail"]
TEXT = "Reads what has changed since yesterday.\nThe rest is left to the next run.\n\n**Ask the shop before a change.**"

#: Credentials that exist where the workflows are deployed, by type; nodes may name others that do not.
CREDENTIALS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "httpBasicAuth": ("Shop (basic)", {"user": "shop", "password": "p"}),
    "httpHeaderAuth": ("Shop / header 🔑", {"name": "X-Key", "value": "v"}),
    "slackApi": ("Chat", {"accessToken": "t"}),
    "openAiApi": ("Models", {"apiKey": "k"}),
    "githubApi": ("Code", {"server": "http://127.0.0.1:9", "user": "shop", "accessToken": "t"}),
}


class Sample(NamedTuple):
    """A workflow as its file holds it.

    :param shapes: the names of its shapes.
    :param fault: the name of the one for which the service refuses it, or None.
    """

    file: str
    definition: Definition
    shapes: list[str]
    fault: str | None


def _step(kind: str, version: float, credential: str | None = None, /, **parameters: Any) -> Node:
    uses = {"credentials": {credential: {}}} if credential else {}
    return {"type": kind if "/" in kind else BASE + kind, "typeVersion": version, "parameters": parameters, **uses}


def _rows(**rows: Any) -> Node:
    return {name: {"__rl": True, "mode": "list", "value": value, "cachedResultName": f"{value} (old name)"}
            for name, value in rows.items()}  # fmt: skip


_CONDITION = {"leftValue": "={{ $json.total }}", "rightValue": 10, "operator": {"type": "number", "operation": "gt"}}
_CONDITIONS = {"combinator": "and", "conditions": [_CONDITION], "options": {"version": 2}}
_TEXTS = {"string": [{"name": "state", "value": "={{ $json.state }}"}]}
_CODE = "const seen = new Set();\nfor (const item of items) {\n  seen.add(item.json.id);\n}\nreturn items;"
_URL = "=http://127.0.0.1:9/{{ $json.id }}"

#: What follows in workflows, old versions of nodes included, with how often.
STEPS: tuple[tuple[int, Node], ...] = (
    (12, _step("set", 1, values=_TEXTS, options={})),
    (10, _step("set", 3.4, assignments={"assignments": [{"id": "a", "name": "n", "value": "=1", "type": "number"}]})),
    (6, _step("httpRequest", 1, "httpBasicAuth", url="http://127.0.0.1:9", authentication="basicAuth", options={})),
    (12, _step("httpRequest", 4.2, "httpHeaderAuth", url=_URL, authentication="genericCredentialType",
               genericAuthType="httpHeaderAuth", options={})),
    (8, _step("httpRequest", 4.2, url=_URL, options={"timeout": 1000})),
    (10, _step("code", 2, jsCode=_CODE)),
    (8, _step("function", 1, functionCode=_CODE)),
    (4, _step("functionItem", 1, functionCode="item.n = 1;\nreturn item;")),
    (6, _step("if", 1, conditions={"number": [{"value1": "={{ $json.total }}", "operation": "larger", "value2": 10}]})),
    (8, _step("if", 2.2, conditions=_CONDITIONS, options={})),
    (4, _step("filter", 2.2, conditions=_CONDITIONS, options={})),
    (4, _step("splitOut", 1, fieldToSplitOut="lines", options={})),
    (3, _step("aggregate", 1, aggregate="aggregateAllItemData", options={})),
    (4, _step("slack", 1, "slackApi", channel="#shop", text="={{ $json.text }}", attachments=[], otherOptions={})),
    (4, _step("slack", 2.3, "slackApi", select="channel", text="sold", otherOptions={}, **_rows(channelId="C1"))),
    (3, _step("github", 1, "githubApi", operation="get", owner="shop", repository="shop", issueNumber=1)),
    (3, _step("respondToWebhook", 1.1, respondWith="noData", options={})),
    (3, _step("wait", 1.1, amount=3, unit="minutes")),
    (3, _step("noOp", 1)),
    (2, _step("dateTime", 1, value="={{ $json.date }}", options={})),
    (2, _step("html", 1.2, html="<h1>{{ $json.name }}</h1>")),
    (2, _step("limit", 1, maxItems=5)),
)  # fmt: skip

#: How workflows start, with how often. Some of these start nothing by themselves.
STARTS: tuple[tuple[int, Node], ...] = (
    (23, _step("manualTrigger", 1)),
    (17, _step("start", 1)),
    (16, _step("webhook", 2, httpMethod="POST", options={})),
    (4, _step("webhook", 1, httpMethod="POST", responseMode="onReceived", options={})),
    (14, _step("scheduleTrigger", 1.2, rule={"interval": [{"field": "hours", "hoursInterval": 6}]})),
    (9, _step(f"{AGENTS}chatTrigger", 1.1, options={})),
    (7, _step("executeWorkflowTrigger", 1.1, inputSource="passthrough")),
    (4, _step("formTrigger", 2.2, formTitle="Order", formDescription="", options={})),
    (3, _step("cron", 1, triggerTimes={"item": [{"mode": "everyHour"}]})),
    (2, _step("interval", 1, interval=5, unit="minutes")),
    (1, _step("errorTrigger", 1)),
)
#: Numbers of nodes, as the tenths of the collections have them.
SIZES = (2, 3, 5, 7, 9, 11, 14, 19, 26, 37)


def _id(draw: Random) -> str:
    return "".join(draw.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789", k=16))


def _uuid(draw: Random) -> str:
    return str(UUID(int=draw.getrandbits(128), version=4))


def _choice(draw: Random, table: tuple[tuple[int, Node], ...]) -> Node:
    [node] = draw.choices([node for _, node in table], [often for often, _ in table])
    return copy.deepcopy(node)


def add_node(draw: Random, workflow: Definition, node: Node, name: str | None = None) -> Node:
    """Add a node with an id and a name that no other has, as the editor does."""
    name, names = name or node["type"].rpartition(".")[2].capitalize(), {one["name"] for one in workflow["nodes"]}
    number = next(number for number in range(len(names) + 1) if f"{name}{number or ''}" not in names)
    place = [len(names) * 220 - 400, draw.randrange(0, 600, 20)]
    added = {"id": _uuid(draw), "name": f"{name}{number or ''}", "position": place, **node}
    for kind, named in added.get("credentials", {}).items():
        # As where the file comes from: the name is right, the id is another.
        added["credentials"] = {kind: named or {"id": _id(draw), "name": CREDENTIALS[kind][0]}}
    if added["type"].endswith((".webhook", ".formTrigger", ".chatTrigger", ".wait")):
        added["webhookId"] = _uuid(draw)
    if added["type"].endswith((".webhook", ".formTrigger")):
        added["parameters"]["path"] = added["webhookId"]
    workflow["nodes"].append(added)
    return added


def connect(workflow: Definition, source: str, target: str, kind: str = "main") -> None:
    """Connect the first output of this kind of a node with another node."""
    groups = workflow["connections"].setdefault(source, {}).setdefault(kind, [[]])
    groups[0].append({"node": target, "type": kind, "index": 0})


def clean(draw: Random, name: str) -> Definition:
    """A workflow as today's editor writes one: a start, and a chain of nodes with branches."""
    workflow: Definition = {"name": name, "nodes": [], "connections": {}, "settings": {"executionOrder": "v1"}}
    add_node(draw, workflow, _choice(draw, STARTS))
    for _ in range(draw.choice(SIZES) - 1):
        add_node(draw, workflow, _choice(draw, STEPS))
    names = [node["name"] for node in workflow["nodes"]]
    for source, target in pairwise(names):
        connect(workflow, source, target)
        if source.startswith("If") and draw.random() < 0.5:
            workflow["connections"][source]["main"].append([{"node": names[-1], "type": "main", "index": 0}])
    return workflow


# ---------------------------------------------------------------- the shapes


def _drawn(draw: Random, values: Mapping[str, Any]) -> Definition:
    return {key: value(draw) if callable(value) else copy.deepcopy(value) for key, value in values.items()}


def file(**values: Any) -> Change:
    """The file has these keys; a value may be drawn."""
    return lambda draw, workflow: workflow.update(_drawn(draw, values))


def setting(**values: Any) -> Change:
    return lambda draw, workflow: workflow.setdefault("settings", {}).update(values)


def node(**values: Any) -> Change:
    """A node has these keys."""
    return lambda draw, workflow: draw.choice(workflow["nodes"]).update(_drawn(draw, values))


def one_more(step: Node, name: str | None = None, *, apart: bool = False) -> Change:
    """A node more, which follows the last, or stands apart."""

    def add(draw: Random, workflow: Definition) -> Node:
        last = workflow["nodes"][-1]["name"]
        added = add_node(draw, workflow, copy.deepcopy(step), name)
        if not apart:
            connect(workflow, last, added["name"])
        return added

    return add


def several(*changes: Change) -> Change:
    return lambda draw, workflow: [change(draw, workflow) for change in changes]


def notes(draw: Random, workflow: Definition) -> None:
    for number in range(draw.randint(1, 6)):
        size = {"width": 240 + 80 * number, "height": 160, "color": draw.randint(1, 7)}
        add_node(draw, workflow, {"type": NOTE, "typeVersion": 1, "parameters": {"content": f"## {TEXT}", **size}})


def agent(draw: Random, workflow: Definition) -> None:
    """An agent with a model, a memory, tools and a parser, each connected with it by its kind."""
    added = one_more(_step(f"{AGENTS}agent", 1.7, promptType="define", text="={{ $json.chat }}", options={}))
    name = added(draw, workflow)["name"]
    model = _rows(model="model-5-mini")
    subs = {
        "ai_languageModel": _step(f"{AGENTS}lmChatOpenAi", 1.2, "openAiApi", options={}, **model),
        "ai_memory": _step(f"{AGENTS}memoryBufferWindow", 1.3, sessionIdType="customKey", sessionKey="={{ $json.id }}"),
        "ai_tool": _step(f"{AGENTS}toolCalculator", 1),
        "ai_outputParser": _step(f"{AGENTS}outputParserStructured", 1.2, jsonSchemaExample='{"n": 1}'),
    }
    for kind, sub in list(subs.items())[: draw.randint(1, 4)]:
        connect(workflow, add_node(draw, workflow, sub)["name"], name, kind)


def loop(draw: Random, workflow: Definition) -> None:
    """A node that goes through batches: its second output leads to a node that leads back to it."""
    batches = one_more(_step("splitInBatches", 3, options={}))(draw, workflow)
    back = add_node(draw, workflow, _step("noOp", 1), "Replace me")
    workflow["connections"][batches["name"]] = {"main": [[], [{"node": back["name"], "type": "main", "index": 0}]]}
    connect(workflow, back["name"], batches["name"])


def credential(change: Callable[[Node], Any]) -> Change:
    """A request of an old node, with credentials in another form."""

    def add(draw: Random, workflow: Definition) -> None:
        step = _step("httpRequest", 1, "httpBasicAuth", url="http://127.0.0.1:9", authentication="basicAuth")
        added: Node = one_more(step)(draw, workflow)
        added["credentials"] = {kind: change(value) for kind, value in added["credentials"].items()}

    return add


def many(draw: Random, workflow: Definition) -> None:
    for _ in range(draw.randint(150, 300)):
        one_more(_choice(draw, STEPS))(draw, workflow)


def missing_ids(draw: Random, workflow: Definition) -> None:
    for one in workflow["nodes"]:
        one.pop("id")
        one.pop("webhookId", None)


def empty_webhook_id(draw: Random, workflow: Definition) -> None:
    add_node(draw, workflow, _step("webhook", 2, path=_uuid(draw), httpMethod="POST"), "Call")["webhookId"] = ""


def empty_texts(draw: Random, workflow: Definition) -> None:
    """Texts that nobody has filled in: of an address, a note, a branch."""
    one_more(_step("httpRequest", 4.2, url="", options={}))(draw, workflow)
    draw.choice(workflow["nodes"])["notes"] = ""


def empty_groups(group: Any) -> Change:
    """An output that leads nowhere, before one that leads somewhere."""

    def add(draw: Random, workflow: Definition) -> None:
        source = one_more(_step("switch", 3.2, mode="expression", numberOutputs=3, output="=1"))(draw, workflow)["name"]
        target = add_node(draw, workflow, _step("noOp", 1))["name"]
        workflow["connections"][source] = {"main": [group, [{"node": target, "type": "main", "index": 0}], group]}

    return add


def dangling(draw: Random, workflow: Definition) -> None:
    connect(workflow, workflow["nodes"][0]["name"], "Nowhere")


def kind_unknown(draw: Random, workflow: Definition) -> None:
    """The path of errors as somebody has imagined it."""
    connect(workflow, workflow["nodes"][0]["name"], workflow["nodes"][-1]["name"], "onError")


def same(key: str) -> Change:
    def repeat(draw: Random, workflow: Definition) -> None:
        one_more(_step("noOp", 1))(draw, workflow)
        workflow["nodes"][-1][key] = workflow["nodes"][0].setdefault(key, _uuid(draw))

    return repeat


def named(text: str) -> Change:
    return lambda draw, workflow: workflow.update(name=text.format(workflow["name"]))


_CALL = {"__rl": True, "mode": "list", "cachedResultName": "called"}
_CALLED = "k7QmXw2rTzB9cLpE"  # the id of the workflow "called" where the files come from
_GITHUB = _step("githubTrigger", 1, owner="shop", repository="shop", events=["push"])
_LEFT_OVER = {"httpHeaderAuth": {"id": "9", "name": CREDENTIALS["httpHeaderAuth"][0]}}
_LOCATOR = {"__rl": True, "mode": "list", "value": ""}
_OLD_SETTINGS = {"saveManualExecutions": True, "callerPolicy": "workflowsFromSameOwner", "timezone": "Europe/Berlin"}
_PINNED = {"Set": [{"json": {"state": "sold", "text": "ä\u2028😀"}}]}
_SCRIPT = "// ✓ \u2028 \\ `${x}`\nreturn [{json: {a: '</b>'}}];"
_TAGS = [{"id": "3", "name": "shop", "createdAt": "2023-01-01T00:00:00.000Z"}, {"name": "Old ones"}]
_WHEN = "2024-02-29T23:59:59.999Z"

#: The shapes, with how many of 577 files of two public collections have each, in percent; 0.2 where only other
#: collections have it. At least one workflow has each.
SHAPES: Mapping[str, tuple[float, Change]] = {
    "id": (70, file(id=_id)),
    "meta": (52, file(meta=lambda draw: {"instanceId": _uuid(draw), "templateCredsSetupCompleted": True})),
    "versionId": (34, file(versionId=_uuid)),
    "dates": (41, file(createdAt=_WHEN, updatedAt=_WHEN, triggerCount=1)),
    "tags": (9, file(tags=_TAGS)),
    "active": (6, file(active=True)),
    "pinned data": (5, file(pinData=_PINNED)),
    "static data": (0.5, file(staticData={"node:Cron": {"lastTime": 1700000000}})),
    "static data as text": (0.2, file(staticData='{"node:Cron": {}}')),
    "name with a slash": (1.6, named("{} / daily / v2")),
    "name with emoji": (1.2, named("🛒 {} ❤️‍🔥")),
    "name of 128 characters": (0.2, lambda draw, file: file.update(name=f"{file['name']} {'long ' * 30}"[:127] + "!")),
    "sticky notes": (51, notes),
    "agent with sub-nodes": (20, agent),
    "loop": (6, loop),
    "several triggers": (17, one_more(_step("scheduleTrigger", 1.2, rule={"interval": [{}]}), "Also", apart=True)),
    "hundreds of nodes": (0.2, many),
    "missing ids": (2.3, missing_ids),
    "empty id": (0.2, node(id="")),
    "empty webhookId": (0.3, empty_webhook_id),
    "empty texts": (5, empty_texts),
    "notes of nodes": (15, node(notes="Ask the shop", notesInFlow=True)),
    "always output": (14, node(alwaysOutputData=True)),
    "on error": (8, node(onError="continueRegularOutput")),
    "continue on fail": (1.7, node(continueOnFail=True)),
    "executed once": (8, node(executeOnce=True)),
    "retries": (5, node(retryOnFail=True, maxTries=5, waitBetweenTries=5000)),
    "disabled node": (7, node(disabled=True)),
    "empty group": (12, empty_groups([])),
    "null group": (2, empty_groups(None)),
    "connection of unknown kind": (0.2, kind_unknown),
    "node far away": (0.2, lambda draw, file: file["nodes"][-1].update(position=[0.5, -1e5])),
    "node named with slash and emoji": (1.6, one_more(_step("noOp", 1), "Sort / merge 🚚")),
    "code with odd letters": (2, one_more(_step("code", 2, jsCode=_SCRIPT))),
    "python": (0.5, one_more(_step("code", 2, language="python", pythonCode="# ✓\nreturn _input.all()"))),
    "credential as text": (1.2, credential(lambda value: value["name"])),
    "credential without id": (1.6, credential(lambda value: {"id": None, "name": value["name"]})),
    "credential of another node": (0.3, node(credentials=_LEFT_OVER)),
    "calls a workflow": (2.4, one_more(_step("executeWorkflow", 1.2, workflowId={**_CALL, "value": _CALLED}))),
    "calls itself": (6, one_more(_step("executeWorkflow", 1, workflowId="={{ $workflow.id }}"))),
    "calls nothing": (0.7, one_more(_step("executeWorkflow", 1.2, workflowId=_LOCATOR))),
    "community node": (0.7, one_more({"type": "n8n-nodes-shop.parcel", "typeVersion": 1, "parameters": {}})),
    "unknown node": (0.2, one_more(_step("parcelService", 1))),
    "no credential": (3, one_more(_step("telegram", 1.2, chatId="1", text="sold", additionalFields={}))),
    "mail": (1.2, one_more(_step("emailReadImap", 2, options={}), apart=True)),
    "trigger without credential": (5, one_more(_GITHUB, apart=True)),
    "old settings": (4, setting(**_OLD_SETTINGS)),
    "settings not kept": (0.3, setting(binaryMode="separate")),
    "settings at their defaults": (0.2, setting(executionTimeout=-1, timezone="DEFAULT", errorWorkflow="DEFAULT")),
    "no name": (23, lambda draw, file: [file.pop(key, None) for key in ("name", "settings")]),
}

_LOST_CALL = {**_CALL, "value": "42", "cachedResultName": "Nobody's"}
_LOST = {"telegramApi": {"id": "4", "name": "Nobody's"}}

#: Shapes with which no workflow can be deployed, likewise.
FAULTS: Mapping[str, tuple[float, Change]] = {
    "name too long": (7, lambda draw, file: file.update(name=f"{file.get('name', 'a')} {'long ' * 30}")),
    "names of nodes twice": (0.7, same("name")),
    "ids of nodes twice": (0.5, same("id")),
    "connection to nowhere": (0.5, dangling),
    "extended credential": (0.3, node(extendsCredential="slackApi")),
    "key of a node": (0.2, node(color="#ff0000")),
    "unknown setting": (0.3, setting(maxExecutions=5)),
    "unknown value of a setting": (0.2, setting(saveDataErrorExecution="sometimes")),
    "several faults": (0.2, several(same("name"), same("id"), dangling, node(color="#fff"), setting(maxExecutions=5))),
    "credential that is missing": (3, one_more({**_step("telegram", 1.2, chatId="1", text="t"), "credentials": _LOST})),
    "call of what is missing": (1.5, one_more(_step("executeWorkflow", 1.2, workflowId=_LOST_CALL))),
}


def existing() -> list[tuple[str, str, Mapping[str, Any]]]:
    """Type, name and data of each credential that exists where the workflows are deployed."""
    return [(kind, name, data) for kind, (name, data) in CREDENTIALS.items()]


def corpus(count: int = 300, seed: int = 53) -> list[Sample]:
    """Make workflows, of each shape as many as its frequency says; a workflow has one fault at most."""
    draw = Random(seed)
    files = [f"{draw.choice(VERBS)} {draw.choice(SUBJECTS)} {number:03}" for number in range(count)]
    workflows = [clean(draw, file.capitalize()) for file in files]
    shapes: list[list[str]] = [[] for _ in workflows]
    faults: list[str | None] = [None] * count
    for shape, (percent, change) in SHAPES.items():
        for number in sorted(draw.sample(range(count), max(1, round(count * percent / 100)))):
            change(draw, workflows[number])
            shapes[number].append(shape)
    faultless = draw.sample(range(count), count)
    for fault, (percent, change) in FAULTS.items():
        for _ in range(max(1, round(count * percent / 100))):
            number = faultless.pop()
            change(draw, workflows[number])
            faults[number] = fault
    called = clean(draw, "called")
    called.update(id=_CALLED, nodes=[], connections={})
    add_node(draw, called, _step("executeWorkflowTrigger", 1.1, inputSource="passthrough"))
    samples = [Sample(*parts) for parts in zip(files, workflows, shapes, faults, strict=True)]
    return [Sample("called", called, [], None), *samples]
