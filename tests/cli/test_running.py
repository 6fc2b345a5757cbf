"""``run`` and ``executions``: an execution, with its nodes as they end."""

from __future__ import annotations

import io
import json
import sys

import pytest

from airflow_provider_service._core.runs import output
from airflow_provider_service.client._clock import Clock, using
from tests.cli.conftest import Terminal
from tests.runs.workflows import put, puts_out, wait, webhook
from tests.set_clock import SetClock

QUICK = ("--poll-interval", "0.05")


@pytest.fixture
def count(simulator):
    return put(simulator, webhook(), puts_out('={{ {"n": $json.body.n} }}'), name="Count")


def test_a_run_by_name(cli, simulator, count):
    ended = cli("run", "Count", "--payload", '{"n": 1}', *QUICK)

    assert ended.status == 0, ended.err
    assert f"Execution 1 was started: {simulator.base_url}/workflow/{count}/executions/1\n" in ended.err
    *nodes, last = ended.out.splitlines()
    assert [line.split()[0] for line in nodes] == ["success"] * 2
    assert [line.split()[-1] for line in nodes] == ["Webhook", "Output"]
    assert last == "Execution 1 ended with status 'success'"


def test_its_result_for_machines(cli, count, tmp_path):
    (tmp_path / "payload.json").write_text('{"n": 2}')

    ended = cli(
        "run", "--workflow-id", count, "--payload", f"@{tmp_path}/payload.json", "--output", "-", "--json", *QUICK
    )

    assert ended.result["status"] == "success"
    assert ended.result["output"] == [{"n": 2}]
    assert ended.result["failure"] is None


def test_its_output_may_have_a_field_without_a_name(cli, simulator):
    put(simulator, webhook(), puts_out('={{ {"": 5, "n": 1} }}'), name="Blank")

    assert cli("run", "Blank", "--output", "-", "--json", *QUICK).result["output"] == [{"": 5, "n": 1}]


@pytest.mark.parametrize("node", ["-", "Output"])
def test_output_stands_alone_on_the_standard_output(cli, count, node):
    ended = cli("run", "Count", "--payload", '{"n": "\u00e9"}', "--output", node, *QUICK)

    assert ended.out == '[\n  {\n    "n": "\\u00e9"\n  }\n]\n'
    for line in ("Execution 1 was started: ", " items  Webhook", "Execution 1 ended with status 'success'"):
        assert line in ended.err


def test_output_is_printed_whatever_its_size(cli, count, tmp_path):
    arguments = ("run", "Count", "--payload", json.dumps({"n": "x" * 2 * output.MAX_OUTPUT_BYTES}), "--output", "-")

    [item] = json.loads(cli(*arguments, *QUICK).out)
    assert len(item["n"]) == 2 * output.MAX_OUTPUT_BYTES
    ended = cli(*arguments, "--output-path", tmp_path / "out.json", *QUICK)
    assert (ended.status, ended.out) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text()) == [item]


def test_output_at_a_terminal_is_readable(cli, count, monkeypatch):
    monkeypatch.setattr(sys, "stdout", screen := Terminal())

    cli("run", "Count", "--payload", '{"n": "\u00e9\u009b"}', "--output", "-", *QUICK)

    assert '"n": "\u00e9\ufffd"' in screen.getvalue()


def test_a_payload_from_the_standard_input(cli, count, monkeypatch):
    ended = cli("run", "Count", "--payload", "-", "--output", "-", "--json", *QUICK, answer='{"n": 3}')

    assert ended.result["output"] == [{"n": 3}]


def test_the_file_of_a_payload_is_utf_8_whatever_the_locale(cli, count, tmp_path, monkeypatch):
    file = tmp_path / "payload.json"
    file.write_bytes('{"n": "h\N{LATIN SMALL LETTER E WITH ACUTE}"}'.encode())
    monkeypatch.setattr(io, "text_encoding", lambda encoding, *_: encoding or "latin-1")

    ended = cli("run", "Count", "--payload", f"@{file}", "--output", "-", "--json", *QUICK)

    assert ended.result["output"] == [{"n": "h\N{LATIN SMALL LETTER E WITH ACUTE}"}]


def test_a_workflow_that_is_not_active_is_activated_only_on_request(cli, client, simulator):
    workflow_id = put(simulator, webhook(), puts_out("={{ {} }}"), name="Off", active=False)

    ended = cli("run", "Off", *QUICK)
    assert ended.status == 1
    assert f"workflow {workflow_id} (Off) is not active; nothing was started. Activate it in n8n, by" in ended.err
    assert not client.workflows.get(workflow_id).active

    ended = cli("run", "Off", "--activate", *QUICK)
    assert ended.status == 0, ended.err
    assert client.workflows.get(workflow_id).active


def test_a_run_that_fails(cli, simulator):
    simulator.create_webhook_workflow("Broken", path="broken", behaviour="failing")

    ended = cli("run", "Broken", *QUICK)

    assert ended.status == 1
    assert "Execution 1 ended with status 'error' at node" in ended.err
    assert "Traceback" not in ended.err
    assert any(line.startswith("error ") for line in ended.out.splitlines())


def test_a_run_that_takes_too_long_is_stopped(cli, client, simulator):
    simulator.create_webhook_workflow("Slow", path="slow", behaviour="long", seconds=60)

    ended = cli("run", "Slow", "--timeout", "0.2", "--json", *QUICK)

    assert ended.status == 1
    assert "it was stopped" in ended.result["failure"]
    assert client.executions.get("1").status == "canceled"


def test_only_started(cli, client, simulator):
    simulator.create_webhook_workflow("Slow", path="slow", behaviour="long", seconds=60)

    ended = cli("run", "Slow", "--no-wait", "--json")

    assert (ended.status, ended.result["execution_id"]) == (0, "1")
    assert client.executions.get("1").status == "running"


def test_a_key_resumes(cli, client, count):
    first, again = (cli("run", "Count", "--payload", '{"n": 1}', "--run-key", "k", "--json", *QUICK) for _ in range(2))

    assert first.result["execution_id"] == again.result["execution_id"]
    assert len(list(client.executions.list())) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--workflow-id"),
        (("Count", "--workflow-id", "1"), "either --workflow-id or --workflow-name"),
        (("Count", "--payload", "{"), "--payload cannot be read as JSON"),
        (("Count", "--payload", "@/no/such/file"), "nothing was started"),
        (("Count", "--timeout", "0"), "not a number of seconds above 0"),
        (("Count", "--timeout", "1e300"), "not a number of seconds above 0, up to 1000000000"),
        (("Count", "--poll-interval", "1e10"), "not a number of seconds above 0, up to 1000000000"),
        (("Count", "--payload", "NaN"), "--payload cannot be read as JSON: expected value at line 1"),
        (("Count", "--output-path", "out.json"), "--output-path has no effect without --output"),
        (("Count", "--run-key", ""), "--run-key must not be empty"),
        (("",), "--workflow-name must not be empty"),
        (("Count", "--project-name", " "), "--project-name must not be empty"),
    ],
)
def test_wrong_usage(cli, simulator, count, arguments, message):
    simulator.clear_requests()

    ended = cli("run", *arguments)

    assert ended.status == 2
    assert message in ended.err
    assert not simulator.requests


def test_a_workflow_is_named_once(cli, count):
    assert cli("run", "--workflow-name", "Count", *QUICK).status == 0

    ended = cli("run", "Count", "--workflow-name", "Count")
    assert (ended.status, ended.err) == (2, "Error: give the name of the workflow once\n")


def test_a_search_after_a_refusal_is_announced(cli, simulator, count):
    simulator.inject("status", method="POST", path="/webhook/", status=400, times=None)

    with using(SetClock(flows=True)):
        ended = cli("run", "Count", *QUICK)

    assert ended.status == 1
    assert "answered 400; its execution is being searched for" in ended.err


def test_an_unknown_workflow_or_node(cli, client, count):
    assert "no workflow" in cli("run", "Nope").err
    assert "has no node named 'Nope'" in cli("run", "Count", "--output", "Nope").err
    assert list(client.executions.list()) == []


def test_the_logs_of_an_execution(cli, simulator):
    simulator.create_webhook_workflow("Broken", path="broken", behaviour="failing")
    cli("run", "Broken", *QUICK)

    ended = cli("logs", "1")
    assert ended.status == 0
    assert "Execution 1 of 'Broken': error: " in ended.out
    assert "Failed at node " in ended.out
    found = cli("logs", "1", "--json").result
    assert found["status"] == "error"
    assert found["nodes"][-1]["status"] == "error"
    assert found["failure"] in ended.out
    assert cli("logs", "1", "--follow", *QUICK).status == 1


def test_the_logs_of_a_success_hold_no_failure(cli, count):
    cli("run", "Count", "--payload", '{"n": 1}', *QUICK)

    found = cli("executions", "show", "1", "--json").result
    assert (found["status"], found["workflow_name"], found["failure"]) == ("success", "Count", None)
    assert [node["node"] for node in found["nodes"]] == ["Webhook", "Output"]


def test_the_output_of_a_node_of_an_execution(cli, count):
    cli("run", "Count", "--payload", '{"n": 1}', *QUICK)

    for words in (("--output", "-"), ("--output", "Output", "--json"), ("--output", "-", "--follow", *QUICK)):
        ended = cli("executions", "show", "1", *words)
        assert (ended.status, ended.result) == (0, [{"n": 1}])
    assert "its nodes that ran: 'Webhook', 'Output'" in cli("executions", "show", "1", "--output", "Nope").err


def test_the_output_of_an_execution_that_failed_is_no_success(cli, simulator):
    simulator.create_webhook_workflow("Broken", path="broken", behaviour="failing")
    cli("run", "Broken", *QUICK)

    ended = cli("executions", "show", "1", "--output", "Webhook", "--follow", *QUICK)

    assert ended.status == 1
    assert json.loads(ended.out)


@pytest.fixture
def four(cli, simulator, count):
    """A success, a failure, one that sleeps, and one that runs."""
    simulator.create_webhook_workflow("Broken", path="broken", behaviour="failing")
    simulator.create_webhook_workflow("Slow", path="slow", behaviour="long", seconds=60)
    put(simulator, webhook("sleeper"), wait(600), puts_out("={{ {} }}"), name="Sleeper")
    for name in ("Count", "Broken", "Sleeper", "Slow"):
        cli("run", name, "--payload", '{"n": 1}', "--no-wait")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["4 running", "3 waiting", "2 error", "1 success"]),
        (("--limit", "2"), ["4 running", "3 waiting"]),
        (("--status", "waiting"), ["3 waiting"]),
        (("--status", "error", "success"), ["2 error", "1 success"]),
        (("--status", "error", "--status", "success"), ["2 error", "1 success"]),
        (("--since", "1h"), ["4 running", "3 waiting", "2 error", "1 success"]),
        (("--since", "2026-01-31T06:00"), ["4 running", "3 waiting", "2 error", "1 success"]),
        (("--since", "2099-12-31T00:00+02:00"), []),
        (("--workflow", "Broken"), ["2 error"]),
        (("--workflow", "Broken", "--status", "success"), []),
    ],
)
def test_executions_are_listed_newest_first(cli, four, words, expected):
    ended = cli("executions", "list", *words)

    assert ended.status == 0
    head, *lines = ended.out.splitlines()
    assert head.split() == ["id", "status", "workflow", "started", "(UTC)", "seconds"]
    assert [" ".join(line.split()[:2]) for line in lines] == expected
    listed = cli("executions", "list", *words, "--json").result
    assert [f"{one['execution_id']} {one['status']}" for one in listed] == expected


def test_executions_since_some_minutes(cli, count, simulator):
    simulator.start_execution(count, status="success", age=7200)
    cli("run", "Count", "--payload", '{"n": 1}', *QUICK)

    simulator.start_execution(count, status="new", age=7200)

    found = cli("executions", "list", "--since", "90m", "--status", "new", "success", "--json").result
    assert [one["execution_id"] for one in found] == ["3", "2"]
    for wrong in ("yesterday", "5", "5w", "-1h", "2026-13-01"):
        assert "--since is no date and time" in cli("executions", "list", f"--since={wrong}").err


def test_a_workflow_is_run_by_its_id(cli, client, count):
    [workflow] = client.workflows.list()

    assert cli("run", workflow.id, "--payload", '{"n": 1}', "--json", *QUICK).result["workflow_id"] == workflow.id


def test_what_a_list_says_of_an_execution(cli, client, four, simulator):
    [workflow] = client.workflows.list(name="Broken")

    by_name, by_id = (cli("executions", "list", "--workflow", one, "--json").result for one in ("Broken", workflow.id))

    assert by_name == by_id
    [found] = by_id
    assert found.keys() == {
        *("execution_id", "status", "workflow_id", "workflow_name", "started_at", "stopped_at", "url")
    }
    assert (found["workflow_name"], found["workflow_id"]) == ("Broken", workflow.id)
    assert found["url"] == f"{simulator.base_url}/workflow/{workflow.id}/executions/2"
    row = cli("executions", "list", "--workflow", "Broken").out.splitlines()[1].split()
    assert row[:3] == ["2", "error", "Broken"]
    assert f"{row[3]}T{row[4]}" == found["started_at"][:19]


def test_executions_of_workflows_that_cannot_be_read(cli, client, four, simulator):
    [workflow] = client.workflows.list(name="Broken")
    simulator.inject("status", path="/workflows/", status=403, times=None)

    assert workflow.id in cli("executions", "list").out
    ended = cli("executions", "list", "--workflow", "No such workflow")
    assert ended.status == 1
    assert "there is no workflow named 'No such workflow'" in ended.err


def test_workflows_are_listed_by_name(cli, client, count, simulator):
    for name, is_active in (("sync B", True), ("A Sync", False), ("old Sync", False)):
        simulator.create_webhook_workflow(name, path=name, active=is_active)
    ids = {workflow.name: workflow.id for workflow in client.workflows.list()}
    client.workflows.archive(ids["old Sync"])

    listed = cli("workflows", "list", "--name", "SYNC", "--json").result

    assert [(one["workflow_name"], one["state"]) for one in listed] == [
        *(("A Sync", "inactive"), ("old Sync", "archived"), ("sync B", "active")),
    ]
    assert listed[0]["url"] == f"{simulator.base_url}/workflow/{ids['A Sync']}"
    head, *lines = cli("workflows", "list").out.splitlines()
    assert head.split() == ["id", "state", "workflow"]
    assert [line.split(maxsplit=2)[2] for line in lines] == ["A Sync", "Count", "old Sync", "sync B"]
    assert cli("workflows", "list", "--name", "nothing", "--json").result == []


def test_an_execution_is_stopped(cli, client, four):
    ended = cli("executions", "stop", "4", "--json")

    assert ended.result.keys() == {"execution_id", "status", "stopped", "url"}
    assert (ended.status, ended.result["status"], ended.result["stopped"]) == (0, "canceled", True)
    assert client.executions.get("4").status == "canceled"
    again = cli("executions", "stop", "4")
    assert again.status == 0
    assert "Execution 4 had ended: canceled: " in again.out
    assert cli("executions", "stop", "4", "--json").result["stopped"] is False


def test_an_execution_is_retried(cli, client, simulator, four):
    failed = cli("executions", "retry", "2", *QUICK)
    assert failed.status == 1
    assert "Execution 5 ended with status 'error' at node" in failed.err
    assert client.executions.get("5").retry_of == "2"

    started = cli("executions", "retry", "2", "--no-wait", "--json")
    assert (started.status, started.result["execution_id"]) == (0, "6")
    refused = cli("executions", "retry", "4")
    assert refused.status == 1
    assert "it has not ended, its status is 'running'; no retry was started" in refused.err


def test_the_output_of_a_retry(cli, client, simulator):
    workflow_id = put(simulator, webhook(), puts_out('={{ {"n": $json.body.n} }}'), name="Count")
    execution_id = simulator.start_execution(workflow_id, status="error")
    definition = {**client.workflows.get(workflow_id).to_wire(), "name": "Count"}
    definition["nodes"][1]["parameters"]["jsonOutput"] = '={{ {"n": "now"} }}'
    client.workflows.update(workflow_id, "Count", definition["nodes"], definition["connections"], {})

    ended = cli("executions", "retry", execution_id, "--load-workflow", "--output", "-", *QUICK)

    assert ended.status == 0, ended.err
    assert json.loads(ended.out) == [{"n": "now"}]


@pytest.mark.parametrize(
    ("status", "seconds", "line"),
    [
        ("error", 5, "Failed at node 'Wait': it broke"),
        ("crashed", 5, "Ended after node 'Wait': Workflow did not finish"),
        ("canceled", 5, "Ended after node 'Webhook': The execution was cancelled manually"),
        ("canceled", 0, "Ended: The execution was cancelled manually"),
    ],
)
def test_the_logs_name_a_node_as_failed_only_if_it_failed(cli, simulator, monkeypatch, status, seconds, line):
    simulator.create_webhook_workflow("Slow", path="slow", behaviour="long", seconds=60)
    began = simulator.clock.now()
    with monkeypatch.context() as standing:
        standing.setattr(simulator.clock, "source", lambda: began)
        cli("run", "Slow", "--no-wait")
        simulator.clock.shift(seconds)
        simulator.finish_execution("1", status, message="it broke")

    assert line in cli("logs", "1").out


def test_the_nodes_of_an_execution_that_sleeps_are_shown_before_its_end(cli, simulator):
    put(simulator, webhook(), wait(66), puts_out("={{ {} }}"), name="Sleeper")
    started = cli("run", "Sleeper", "--no-wait", "--json").result["execution_id"]

    class Watched(Terminal):
        """A terminal whose reader wakes the execution once it has seen a node."""

        is_awake = False

        def write(self, text: str) -> int:
            if "success" in text and not self.is_awake:
                self.is_awake = True
                simulator.clock.shift(70)
            return super().write(text)

    original, sys.stdout = sys.stdout, (screen := Watched())
    try:
        ended = cli("logs", started, "--follow", *QUICK)
    finally:
        sys.stdout = original

    assert ended.status == 0, ended.err
    assert screen.is_awake
    assert "Output" in screen.getvalue()


def test_the_logs_of_an_execution_with_large_data_show_how_it_ended(cli, count, monkeypatch):
    monkeypatch.setattr(output, "MAX_SHOWN_MIB", 1)
    cli("run", "Count", "--payload", json.dumps({"n": "x" * 2**20}), *QUICK)

    for follow in ([], ["--follow", *QUICK]):
        ended = cli("logs", "1", *follow, "--json")
        assert ended.status == 0, ended.err
        assert (ended.result["status"], ended.result["nodes"], ended.result["failure"]) == ("success", None, None)
        assert "The nodes of execution 1 are not shown, because its data exceeds 1 MiB" in ended.err
        assert "max_answer_mib" not in ended.err


def test_a_failed_read_of_the_nodes_does_not_hide_that_the_execution_has_succeeded(cli, simulator, count):
    cli("run", "Count", "--payload", '{"n": 1}', *QUICK)
    simulator.inject("status", method="GET", path="/executions/1$", status=503, skip=1)

    ended = cli("logs", "1", "--follow", *QUICK)

    assert (ended.status, ended.out) == (0, "Execution 1 ended with status 'success'\n")
    assert "The nodes of execution 1 cannot be shown" in ended.err


@pytest.mark.parametrize(
    "words", [("logs", "9999999999"), ("executions", "stop", "9999999999"), ("executions", "retry", "9999999999")]
)
def test_an_execution_that_is_not_there(cli, words):
    ended = cli(*words)

    assert ended.status == 1
    assert ended.err.splitlines()[-1].startswith("Error: GET /executions/9999999999: not found")


def test_an_interrupted_wait_says_that_the_execution_keeps_running(cli, client, simulator, monkeypatch):
    simulator.create_webhook_workflow("Slow", path="slow", behaviour="long", seconds=60)

    class Interrupted(Clock):
        def wait(self, event, seconds, deadline=float("inf")):
            if seconds == 0.25:
                raise KeyboardInterrupt
            return super().wait(event, seconds, deadline)

    with using(Interrupted()):
        ended = cli("run", "Slow", "--poll-interval", "0.25")

    assert ended.status == 130
    assert "The execution keeps running; to follow it: executions show 1 --follow" in ended.err
    assert client.executions.get("1").status == "running"
