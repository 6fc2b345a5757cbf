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


RANDOM = "a1B2c3D4e5F6g7H8i9J0"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
# Names of fields and what they hold, and texts.
SECRETS = [
    ("jsCode", "headers['X-Api-Key'] = 'S3CR3T';"),
    ("jsCode", 'headers["apiKey"]="S3CR3T"'),
    ("pythonCode", "os.environ['TOKEN'] = 'S3CR3T'"),
    # the names of fields
    ("password", "S3CR3T"),
    ("dbPass", "S3CR3T"),
    ("smtp_pwd", "S3CR3T"),
    ("passphrase", "S3CR3T"),
    ("clientSecret", "S3CR3T"),
    ("accessToken", "S3CR3T"),
    ("botToken", "S3CR3T"),
    ("apikey", "S3CR3T"),
    ("APIKey", "S3CR3T"),
    ("X-API-KEY", "S3CR3T"),
    ("openaiKey", "S3CR3T"),
    ("X-Key", "S3CR3T"),
    ("Ocp-Apim-Subscription-Key", "S3CR3T"),
    ("encryption_key", "S3CR3T"),
    ("githubPat", "S3CR3T"),
    ("pat", "S3CR3T"),
    ("sessionId", "S3CR3T"),
    ("connect.sid", "S3CR3T"),
    ("sid", "S3CR3T"),
    ("jwt", "S3CR3T"),
    ("otp", "S3CR3T"),
    ("pin", 4711),
    ("Set-Cookie", "S3CR3T"),
    ("Authorization", "S3CR3T"),
    ("proxyAuth", "S3CR3T"),
    ("key", RANDOM),
    ("auth", RANDOM),
    ("signature", RANDOM),
    # texts
    ("url", "https://h/x?auth=S3CR3T&page=2"),
    ("url", "https://h/x?page=2&key=S3CR3T"),
    ("url", "https://h/?sig=S3CR3T"),
    ("url", "https://h/?signature=S3CR3T"),
    ("url", "https://h/?access_token=S3CR3T"),
    ("url", "https://h/?apikey=S3CR3T"),
    ("url", "https://h/?code=S3CR3T"),
    ("url", "=https://h/?token=S3CR3T&id={{ $json.id }}"),
    ("url", "https://me:S3CR3T@h/x"),
    ("url", "postgres://me:p@S3CR3T@h:5432/db"),
    ("url", "redis://:S3CR3T@h"),
    ("url", "mongodb+srv://me:S3CR3T@a,b/db"),
    ("dsn", "Server=h;Uid=me;Pwd=S3CR3T;"),
    ("dsn", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=S3CR3T==;EndpointSuffix=y"),
    ("dsn", "Endpoint=sb://h/;SharedAccessKeyName=x;SharedAccessKey=S3CR3T"),
    ("command", "curl -u me:S3CR3T https://h"),
    ("command", "curl --user 'me:S3CR3T' https://h"),
    ("command", 'curl -H "X-Api-Key: S3CR3T" https://h'),
    ("command", "curl -H 'Cookie: a=S3CR3T'"),
    ("command", "export OPENAI_KEY=S3CR3T"),
    ("command", "deploy --token S3CR3T --fast"),
    ("command", "mysql --password=S3CR3T"),
    ("text", "API key: S3CR3T"),
    ("text", "session id = S3CR3T"),
    ("text", "Bearer S3CR3T"),
    ("text", "Basic dXNlcjpTM0NSM1Q/S3CR3T="),
    ("jsCode", f"const key = '{RANDOM}'"),
    ("jsCode", "credentials = 'S3CR3T'"),
    ("jsCode", "headers: {'x-functions-key': 'S3CR3T'}"),
    ("jsCode", "const token = $json.token || 'S3CR3T'"),
    ("jsCode", "if (token === 'S3CR3T') {"),
    ("jsonBody", '={"api_key": "S3CR3T", "id": {{ $json.id }}}'),
    ("jsonBody", '{"a": {"appKey": "S3CR3T"}}'),
    ("password", "={{ 'S3CR3T' }}"),
    ("password", "={{ $json.x }}S3CR3T"),
    ("password", "={{ $json.x.replace('S3CR3T', '') }}"),
    # issued tokens
    *(
        ("text", f"use {token}, please")
        for token in (
            f"sk-{RANDOM}{RANDOM}",
            f"sk-proj-{RANDOM}-{RANDOM}",
            f"sk-ant-api03-{RANDOM}_{RANDOM}",
            f"sk_live_{RANDOM}",
            f"rk_live_{RANDOM}",
            f"pk_test_{RANDOM}",
            f"whsec_{RANDOM}",
            f"xoxb-1234-{RANDOM}",
            f"xapp-1-{RANDOM}",
            f"ghp_{RANDOM}{RANDOM}",
            f"github_pat_{RANDOM}_{RANDOM}",
            f"glpat-{RANDOM}",
            f"npm_{RANDOM}{RANDOM}",
            f"hf_{RANDOM}",
            f"ntn_{RANDOM}",
            f"AIza{RANDOM}{RANDOM}",
            f"ya29.{RANDOM}",
            f"GOCSPX-{RANDOM}",
            f"AKIAIOSFODNN7EXAMPLE, {RANDOM}{RANDOM}",
            f"eyJhbGciOiJ.{RANDOM}.{RANDOM}",
            f"SG.{RANDOM}.{RANDOM}",
            f"123456789:AA{RANDOM}{RANDOM}",
            f"SK{HEX}",
            f"AC{HEX}",
            f"key-{HEX}",
            f"{HEX}-us12",
            f"shpat_{HEX}",
            f"dapi{HEX}",
            f"pat-na1-{RANDOM}",
            f"n8n_api_{HEX}",
            f"https://discord.com/api/webhooks/123/{RANDOM}",
            f"https://hooks.slack.com/services/T0/B0/{RANDOM}",
            f"https://api.telegram.org/bot123456789:AA{RANDOM}/sendMessage",
        )
    ),
    ("text", f"-----BEGIN RSA PRIVATE KEY-----\\n{RANDOM}\\n-----END RSA PRIVATE KEY-----"),
]
READABLE = [
    ("primaryKey", "id"),
    ("sortKey", "name"),
    ("keyboard", "qwerty"),
    ("monkey", "see"),
    ("key", "status"),
    ("key", "order_items_2024"),
    ("keyName", "mine"),
    ("propertyKey", "a1b"),
    ("fileKey", "in/2024.csv"),
    ("publicKey", "name"),
    ("projectKey", "OPS"),
    ("maxTokens", 500),
    ("max_tokens", 500),
    ("tokenLimit", 3),
    ("nextPageToken", "p2"),
    ("nodeCredentialType", "slackApi"),
    ("genericAuthType", "httpHeaderAuth"),
    ("authentication", "headerAuth"),
    ("auth", "basic"),
    ("credentials", {"httpBearerAuth": {"id": "1", "name": "Mine"}}),
    ("sendCredentials", True),
    ("passwordField", "#pw"),
    ("pattern", "^a+$"),
    ("path", "in"),
    ("patch", "1.2"),
    ("pinned", "yes"),
    ("compass", "north"),
    ("author", "me"),
    ("authorName", "me"),
    ("tokenUrl", "https://h/token"),
    ("signature", "Kind regards, Ada"),
    ("code", "DE"),
    ("considered", "x"),
    ("id", "8c5ff1b6-6de7-4d4a-b8a9-0c3b61f1a001"),
    ("commit", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ("hash", HEX),
    ("key", "={{ $json.key }}"),
    ("apiKey", "={{ $json.body.key }}"),
    ("Authorization", "=Bearer {{ $json.token }}"),
    ("token", "={{ $('Get it').item.json['a b'].token }}"),
    ("password", "={{ $env.PASSWORD }}"),
    ("token", '={{ $node["Get"].json["token"] }}'),
    ("token", "={{ $vars.token }}"),
    ("url", "=https://h/?key={{ $json.key }}&page=2"),
    ("url", "https://h:8443/x?page=2"),
    ("url", "https://h/monkey?sort=key"),
    ("jsonBody", '={"token": "{{ $json.token }}", "page": 2}'),
    ("jsonBody", '{"sortKey": "name",   "page": 2}'),
    ("jsCode", "const token = $json.token;\nreturn page"),
    ("jsCode", "const key = Object.keys(items)[0];\nreturn page"),
    ("jsCode", "for (const key of keys) { total[key] = 1 }"),
    ("text", "The basic plan has a key feature: speed"),
    ("text", "Press any key: it goes on"),
    ("text", "Basic Authentication is off"),
    ("text", "ask-me-anything-about-2024"),
    ("text", "risk-adjusted-return-of-2024"),
    ("text", "task_secret_santa"),
    ("text", "docker run -u 1000:1000 x"),
    ("text", "at 12:30:45, 2024-01-01T10:00:00Z"),
    ("text", "see https://me@h/x"),
]


def lines_of(client, deploy, fields, before=None):
    """Return the lines of a plan that adds each field to a node of its own, also as what a field beside it names."""
    deploy(
        [
            workflow(
                "one",
                *(node(f"{number}", "set", {"options": before} if before else {}) for number in range(len(fields))),
            )
        ]
    )
    nodes = [
        node(f"{number}", "set", {"options": {name: value}, "headers": headers((name, value))})
        for number, (name, value) in enumerate(fields)
    ]
    [change] = plan_of(client, [workflow("one", *nodes)]).changed
    return list(change.diff)


def test_a_plan_hides_secrets_in_their_usual_places(client, deploy):
    lines = lines_of(client, deploy, SECRETS)
    # In a text of several lines, nothing is cut.
    texts = [(name, f"{value}\n") for name, value in SECRETS if isinstance(value, str)]
    lines += lines_of(client, deploy, texts, {name: "x\ny" for name, _ in texts})
    assert len(lines) > 4 * len(SECRETS)
    assert [line for line in lines if any(secret in line for secret in ("S3CR3T", "4711", RANDOM[:12], HEX))] == []


def test_a_plan_shows_what_is_no_secret(client, deploy):
    assert [line for line in lines_of(client, deploy, READABLE) if "***" in line] == []


HOSTILE = [
    "a=",
    "key=",
    "&key=",
    "token={{ $json.a }}",
    "sk-",
    "eyJaaaaaaaa",
    "AKIAIOSFODNN7EXAMPLE ",
    "//a:",
    " -u a:",
    "[",
]


@pytest.mark.parametrize("repeated", ["token", "password=`\\`", "-----BEGIN PRIVATE KEY", 'password="\n', *HOSTILE])
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
