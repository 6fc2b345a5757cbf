"""``plan``, ``deploy`` and ``promote``."""

from __future__ import annotations

import io
import json
import sys

import pytest

from tests.cli.conftest import Terminal


def names(client):
    return sorted(one.name for one in client.workflows.list())


def test_a_plan_shows_what_would_change_and_writes_nothing(cli, client, folder):
    ended = cli("plan", folder)

    assert ended.status == 0
    assert "Plan: create 2, activate 2" in ended.out
    assert names(client) == []


@pytest.mark.parametrize("is_there", [True, False])
def test_the_status_of_a_plan_says_whether_there_are_changes(cli, folder, is_there):
    if is_there:
        assert cli("deploy", folder, "--yes").status == 0

    assert cli("plan", folder, "--detailed-exitcode").status == (0 if is_there else 3)


def test_a_deployment_and_its_repeat(cli, client, folder):
    first, second = (cli("deploy", folder, "--yes", "--json") for _ in range(2))

    assert (first.status, first.result["outcome"]) == (0, "deployed")
    assert [one["actions"] for one in first.result["changes"]] == [["create", "activate"]] * 2
    assert (second.status, second.result["outcome"]) == (0, "unchanged")
    assert names(client) == ["child", "parent"]
    assert second.result["workflow_ids"] == {one.name: one.id for one in client.workflows.list()}


def test_a_preview_of_a_deployment_is_a_plan(cli, client, folder):
    ended = cli("deploy", folder, "--preview", "--detailed-exitcode")

    assert ended.status == 3
    assert "Plan: create 2, activate 2" in ended.out
    assert names(client) == []


def test_an_error_names_options_instead_of_arguments(cli, tmp_path):
    ended = cli("plan", tmp_path)

    assert ended.status == 1
    assert "with --archive-missing, all workflows that this --deployment-name has deployed would be" in ended.err
    assert "give --allow-empty" in ended.err
    assert "=True" not in ended.err


@pytest.mark.parametrize("command", ["deploy", "promote", "restore"])
def test_nobody_to_ask_and_no_consent(cli, simulator, folder, command):
    arguments = {"deploy": [folder], "promote": ["--source-conn-id", "production"], "restore": ["backup.zip"]}
    simulator.clear_requests()

    ended = cli(command, *arguments[command])

    assert (ended.status, ended.out) == (2, "")
    assert (
        ended.err
        == "Error: there is no terminal on which to ask for confirmation, so --yes is required; nothing was done\n"
    )
    assert not simulator.requests


@pytest.mark.parametrize(("answer", "deployed"), [("y", True), ("yes", True), ("", False), ("no", False)])
def test_a_person_is_asked(cli, client, simulator, folder, answer, deployed):
    ended = cli("deploy", folder, answer=answer)

    assert f"Carry out this plan at {simulator.base_url}/home/workflows? [y/N]" in ended.err
    assert bool(names(client)) is deployed
    assert ended.status == (0 if deployed else 1)
    assert deployed or ended.err.endswith("Error: nothing was done\n")


def test_a_failure_is_one_readable_message(cli, client, folder):
    (folder / "child.json").unlink()

    ended = cli("deploy", folder, "--yes", "--json")

    assert ended.status == 1
    assert ended.result == {"error": ended.err.removeprefix("Error: ").rstrip("\n")}
    assert "no workflow 'child'" in ended.err
    assert "Traceback" not in ended.err
    assert names(client) == []


def test_a_deployment_that_the_service_refuses_is_rolled_back(cli, client, simulator, folder, tmp_path):
    simulator.inject("status", status=500, path="/activate", times=None)
    report = tmp_path / "plan.md"

    ended = cli("deploy", folder, "--yes", "--report-path", report)

    assert ended.status == 1
    assert "Error: the deployment failed while activating 'child'" in ended.err
    assert names(client) == []
    text = report.read_text()
    assert text.startswith("# Plan of a deployment\n")
    assert "Workflows to change: 2 of 2. This report was written before anything was changed" in text


def test_arguments_that_do_not_fit_are_wrong_usage(cli, simulator, folder):
    simulator.clear_requests()

    for more, message in {
        ("--project-id", "1", "--project-name", "a"): "either --project-id or --project-name",
        ("--report-path", "report.txt"): "--report-path must end in",
        ("--activate", "perhaps"): "neither yes nor no",
    }.items():
        ended = cli("plan", folder, *more)
        assert ended.status == 2
        assert message in ended.err
    assert not simulator.requests


def test_a_report_is_written(cli, folder, tmp_path):
    report = tmp_path / "plan.md"

    assert cli("plan", folder, "--report-path", report).status == 0

    assert "child" in report.read_text()


def test_into_a_project_and_inactive(cli, client, folder):
    project = client.projects.create("Sales")

    assert cli("deploy", folder, "--yes", "--project-name", "Sales", "--activate", "no").status == 0

    assert {one.active for one in client.workflows.list(project_id=project.id)} == {False}


def test_a_promotion(cli, simulator, second, second_client, folder):
    cli("deploy", folder, "--yes")
    promote = ("promote", "--source-conn-id", "service_default", "--conn-id", "production", "--workflow-names")

    preview = cli(*promote, "child", "parent", "--preview", "--detailed-exitcode")
    assert f"Source: {simulator.base_url} (service_default)\nInstance: {second.base_url} (production)\n" in preview.err
    assert (preview.status, names(second_client)) == (3, [])
    assert cli(*promote, "child", "parent", "--yes").status == 0
    assert names(second_client) == ["child", "parent"]
    assert cli(*promote, "child", "--preview", "--detailed-exitcode").status == 0


def test_a_plan_that_writes_only_the_record_is_a_change(cli, client, folder):
    assert cli("deploy", folder, "--yes").status == 0
    named = (folder, "--deployment-name", "shop")

    plan = cli("plan", *named, "--detailed-exitcode")
    assert (plan.status, plan.out.splitlines()) == (
        3,
        ["Plan: unchanged 2", "Airflow: deployment of shop: create"],
    )
    assert cli("deploy", *named, answer="n").status == 1
    assert names(client) == ["child", "parent"]
    assert cli("deploy", *named, answer="y").status == 0
    assert cli("plan", *named, "--detailed-exitcode").status == 0


def archived(client):
    return [one.name for one in client.workflows.list() if one.is_archived]


def test_removed_workflows_are_archived_on_request(cli, client, second_client, folder):
    owned = ("--deployment-name", "shop", "--archive-missing")
    promote = ("promote", "--source-conn-id", "service_default", "--conn-id", "production", "--workflow-names", "child")
    assert cli("deploy", folder, *owned, "--yes").status == 0
    assert cli(*promote, "parent", *owned, "--yes").status == 0
    (folder / "parent.json").unlink()

    assert "parent: archive" in cli("plan", folder, *owned).out
    assert "archive" not in cli("plan", folder, "--deployment-name", "shop").out
    assert cli(*promote, *owned, "--yes", "--json").result["archived"] == ["parent"]
    assert archived(client) == []
    assert cli("deploy", folder, *owned, "--yes").status == 0
    assert archived(client) == archived(second_client) == ["parent"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give --workflow-names, a tag or a project of the source"),
        (["--tag-id", "1", "--tag-name", "a"], "give either --tag-id or --tag-name"),
    ],
)
def test_wrong_usage_is_explained_with_the_names_of_the_options(cli, simulator, words, message):
    done = cli("promote", "--source-conn-id", "service_default", "--conn-id", "production", *words, "--yes")
    assert (done.status, message in done.err) == (2, True), done.err
    assert not simulator.requests


@pytest.mark.parametrize("command", ["plan", "deploy", "promote"])
def test_archiving_needs_a_name(cli, simulator, folder, command):
    simulator.clear_requests()
    arguments = ["--tag-name", "release", "--source-conn-id", "production"] if command == "promote" else [folder]

    ended = cli(command, *arguments, "--archive-missing", *([] if command == "plan" else ["--yes"]))

    assert ended.status == 2
    assert not simulator.requests
    assert "--archive-missing needs --deployment-name" in ended.err


def test_a_mapping_file_gives_the_names_that_differ(cli, simulator, second_client, folder, tmp_path):
    mapping = tmp_path / "production.yaml"
    mapping.write_text("workflows: {child: kid}\nvalues: {parent: {Webhook: {path: live}}}")
    done = cli("deploy", folder, "--mapping", mapping, "--yes", "--json")
    assert done.result["created"] == ["kid", "parent"]
    assert cli("plan", folder, "--mapping", mapping, "--detailed-exitcode").status == 0

    promote = (
        "promote",
        "--source-conn-id",
        "service_default",
        "--conn-id",
        "production",
        "--mapping",
        mapping,
        "--yes",
    )
    mapping.write_text("workflows: {kid: child}")
    assert cli(*promote, "--workflow-names", "kid", "parent").status == 0
    assert names(second_client) == ["child", "parent"]


def test_an_invalid_mapping_file_is_wrong_usage(cli, simulator, folder, tmp_path):
    mapping = tmp_path / "production.yaml"
    mapping.write_text("credential: {a: b}")
    simulator.clear_requests()

    for command in ("plan", "deploy"):
        ended = cli(command, folder, "--mapping", mapping, *(["--yes"] if command == "deploy" else []))
        assert (ended.status, "'credential' is none of credentials" in ended.err) == (2, True)
    assert cli("plan", folder, "--mapping", tmp_path / "none.yaml").status == 2
    assert not simulator.requests


def test_a_promotion_needs_a_source(cli, folder):
    ended = cli("promote", "--yes", "--workflow-names", "child")

    assert (ended.status, ended.err) == (2, "Error: give --source-conn-id or --source-uri\n")


def test_a_name_that_the_standard_output_cannot_show_does_not_end_a_deployment(cli, client, tmp_path, monkeypatch):
    definition = {"name": "Launch \N{ROCKET}", "nodes": [], "connections": {}, "settings": {}}
    (tmp_path / "w.json").write_text(json.dumps(definition))
    monkeypatch.setattr(sys, "stdout", screen := io.TextIOWrapper(io.BytesIO(), "latin-1"))

    ended = cli("deploy", tmp_path, "--yes")

    screen.seek(0)
    assert ended.status == 0, ended.err
    assert "Launch \\U0001f680: create" in screen.read()
    assert names(client) == ["Launch \N{ROCKET}"]


def test_colours_only_on_a_terminal_and_no_control_characters(cli, simulator, tmp_path, monkeypatch):
    definition = {"name": "\x1b[31mred\x07", "nodes": [], "connections": {}, "settings": {}, "tags": ["new"]}
    (tmp_path / "w.json").write_text(json.dumps(definition))
    plain = cli("plan", tmp_path).out
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())

    cli("plan", tmp_path)

    assert "\x1b" not in plain
    assert "\ufffd[31mred\ufffd: create" in plain
    assert "\x1b[31mred" not in terminal.getvalue()
    assert "\x07" not in terminal.getvalue()
