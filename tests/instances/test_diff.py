"""What a plan shows of the changes, and what it hides."""

from __future__ import annotations

import json
import time

import pytest

from .test_deploy import plan_of
from .workflows import node, webhook, workflow


def test_a_diff_hides_secrets_and_shows_code_line_by_line(client, deploy):
    headers = {"parameters": [{"name": "Authorization", "value": "Bearer old"}]}
    code = "a\nb\nc\n"
    nodes = [
        node("Get", "httpRequest", {"headerParameters": headers, "apiKey": "old"}),
        node("Code", "code", {"jsCode": code}),
    ]
    deploy([workflow("one", *nodes)])
    text = json.dumps(nodes).replace("old", "new-value").replace("a\\nb", "a\\nB")
    [change] = plan_of(client, [workflow("one", *json.loads(text))]).changed
    shown = "\n".join(change.diff)
    assert "new-value" not in shown
    assert "old" not in shown
    assert shown.count("*** changed") == 2
    assert "  -b\n  +B" in shown


def headers(*fields):
    return {"parameters": [{"name": name, "value": value} for name, value in fields]}


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ({}, {"headers": headers(("Authorization", "S3CR3T"))}, "Authorization"),
        ({"headers": headers(("X-Key", "1"))}, {"headers": headers(("X-Key", "1"), ("X-Token", "S3CR3T"))}, "X-Token"),
        ({"headers": headers(("X-Api-Key", "S3CR3T"))}, {}, "X-Api-Key"),
        ({"options": {}}, {"options": {"auth": {"user": "me", "password": "S3CR3T"}}}, "me"),
        ({"json": '{"Cookie": "a", "x": 1}'}, {"json": '={"Cookie": "S3CR3T", "x": 2}'}, "x"),
        ({"json": "{}"}, {"json": '{"h": [\n{"name": "Authorization",\n"value": "S3CR3T"}]}'}, "Authorization"),
        ({"js": "a()\n"}, {"js": "const apiToken = 'S3CR3T'\nb()\n"}, "b()"),
        ({"js": "a"}, {"js": "h = {name: 'authorization',\nvalue: 'S3CR3T'}\nb()\n"}, "b()"),
        ({"js": "a()\n"}, {"js": "const privateKey = `first\nS3CR3T\n`.trim()\nb()\n"}, "b()"),
        ({"js": "a()\n"}, {"js": 'password = """\nS3CR3T\n"""\nb()\n'}, "b()"),
        ({"js": "a()\n"}, {"js": "token: 'first\nS3CR3T'\nb()\n"}, "b()"),
        ({"js": "a()\n"}, {"js": "token = `${x}` // don't\nb()\n"}, "b()"),
        (
            {"js": "a()\n"},
            {"js": "k = ['-----BEGIN PRIVATE KEY-----',\n'S3CR3T',\n'-----END PRIVATE KEY-----']\nb()\n"},
            "b()",
        ),
        ({"url": "https://old"}, {"url": "https://me:S3CR3T@host"}, "host"),
        ({"url": "https://old"}, {"url": "https://host:8443/x"}, "host:8443/x"),
        ({"text": "x"}, {"text": "use Bearer S3CR3T for y"}, "for y"),
        ({"text": "Bearer a"}, {"text": "Bearer S3CR3T"}, "*** changed"),
    ],
)
def test_a_plan_shows_no_secret_wherever_it_stands(client, deploy, before, after, shown):
    deploy([workflow("one", node("Get", "httpRequest", before))])
    [change] = plan_of(client, [workflow("one", node("Get", "httpRequest", after))]).changed
    text = "\n".join(change.diff)
    assert "S3CR3T" not in text
    assert shown in text


@pytest.mark.parametrize("repeated", ["token", "password=`\\`", "-----BEGIN PRIVATE KEY", 'password="\n'])
def test_a_plan_hides_secrets_in_a_long_text_at_once(client, deploy, repeated):
    deploy([workflow("one", node("Get", "httpRequest", {"text": "x"}))])
    started = time.process_time()
    plan_of(client, [workflow("one", node("Get", "httpRequest", {"text": repeated * 40_000}))])
    assert time.process_time() - started < 10  # seconds


PLAIN = node("A", "noOp"), node('B "x" \\', "noOp")


def diff_of(client, **changes):
    [change] = plan_of(client, [workflow("one", webhook("one"), *PLAIN, **changes)]).changed
    return list(change.diff)


def connected(*outputs, kind="main"):
    def target(name, index=0, to=kind):
        return {"node": name, "type": to, "index": index}

    return {kind: [[target(*one) if isinstance(one, tuple) else target(one) for one in group] for group in outputs]}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (connected(["A"]), connected(['B "x" \\']), r'"A" -> "B \"x\" \\"'),
        (connected(["A"]), connected([], ["A"]), '"A" -> "A" (output 1)'),
        (connected(["A"]), connected([("A", 1)]), '"A" -> "A" (input 1)'),
        (connected(["A"]), connected([], [("A", 2)]), '"A" -> "A" (output 1 input 2)'),
        (connected(["A"]), connected(["A"], kind="ai_tool"), '"A" -> "A" (ai_tool)'),
        (connected(["A"]), connected([("A", 0, "ai_tool")]), '"A" -> "A" (input 0 of kind ai_tool)'),
        (connected(["A", "Webhook"]), connected(["Webhook", "A"]), '"A", "Webhook" -> "Webhook", "A"'),
        (connected(["A"]), {}, '"A" -> none'),
    ],
)
def test_a_diff_shows_where_connections_lead(client, deploy, before, after, line):
    deploy([workflow("one", webhook("one"), *PLAIN, connections={"Webhook": before})])
    assert diff_of(client, connections={"Webhook": after}) == [f"connections of 'Webhook': {line}"]


def test_a_diff_shows_connections_that_differ_in_nothing_but_their_form(client, deploy):
    deploy([workflow("one", webhook("one"), *PLAIN, connections={"A": connected(["Webhook"])})])
    after = {"A": connected(["Webhook"], [])}
    assert diff_of(client, connections=after) == ["connections of 'A' changed in form only"]


def test_a_diff_shows_other_ids_of_nodes_and_webhooks(client, deploy):
    first = {"id": "node-1", "webhookId": "8c5ff1b6-6de7-4d4a-b8a9-0c3b61f1a001"}
    other = {"id": "node-2", "webhookId": "8c5ff1b6-6de7-4d4a-b8a9-0c3b61f1a002"}
    deploy([workflow("one", {**webhook("one"), **first})])
    assert not plan_of(client, [workflow("one", webhook("one"))]).changed
    [change] = plan_of(client, [workflow("one", {**webhook("one"), **other})]).changed
    assert list(change.diff) == [
        'node \'Webhook\': id: "node-1" -> "node-2"',
        f'node \'Webhook\': webhookId: "{first["webhookId"]}" -> "{other["webhookId"]}"',
    ]
