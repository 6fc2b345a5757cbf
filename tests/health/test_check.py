"""What the operator reads, how it judges, and what a breach does to the task."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

from airflow_provider_service._core.health import reading
from airflow_provider_service.client._models import parse_moment
from airflow_provider_service.client.errors import ServiceNotFoundError, ServiceUnhealthyError
from airflow_provider_service.operators.health import ServiceWorkflowHealthCheckOperator
from tests.operators.conftest import FakeTaskInstance

from .checking import check, lists, statistics
from .conftest import HOUR


def test_the_figures_of_one_workflow(simulator, workflow):
    one = workflow("Sync", "success", "error", "success", "crashed", "canceled", "running", "waiting", "new")
    done = check(workflow_id=one, on_breach="report")

    url = f"{simulator.base_url}/workflow/{one}/executions"
    [statistic] = done.pop("workflows")
    assert abs(statistic.pop("success_age") - HOUR) < 60
    start, end = (parse_moment(done.pop(name)) for name in ("window_start", "window_end"))
    assert end - start == timedelta(hours=24)
    assert abs(end - parse_moment(statistic.pop("last_success_at")) - timedelta(hours=1)) < timedelta(minutes=1)
    assert statistic == {
        "workflow_id": one,
        "name": "Sync",
        "runs": 4,
        "succeeded": 2,
        "failed": 2,
        "canceled": 1,
        "failure_rate": 0.5,
        "duration_median": pytest.approx(60, abs=1),
        "duration_p95": pytest.approx(60, abs=1),
        "breaches": [],
        "url": url,
    }
    assert done == {
        "healthy": True,
        "message": "no thresholds are set; runs that failed over the last 24 h: 2 of 4; workflows: 1",
        "checked": 1,
        "unhealthy": 0,
        "runs": 4,
        "failed": 2,
        "failure_rate": 0.5,
        "more": False,
        "url": url,
        "report_path": None,
    }


@pytest.mark.parametrize("ended", [datetime.min, datetime.max])
def test_the_last_success_is_shown_as_the_service_dates_it(simulator, workflow, ended):
    workflow("Sync", "success")
    [execution] = simulator.state.executions
    execution.stopped_at = ended.replace(tzinfo=UTC)
    found = statistics(all_workflows=True)
    shown = ended.isoformat(timespec="milliseconds")
    assert [one["last_success_at"] for one in found.values()] == [f"{shown}Z"]


def test_runs_from_the_editor_do_not_count(workflow):
    workflow("Sync", "error", mode="manual")
    assert statistics(workflow_name="Sync")["Sync"]["runs"] == 0


def test_a_tag_selects_inactive_workflows_and_those_that_did_not_run_too(client, workflow):
    tag = client.tags.create("critical")
    for name, active in (("Runs", True), ("Off", False), ("Retired", True)):
        client.workflows.update_tags(one := workflow(name, active=active), [tag.id])
    client.workflows.archive(one)
    workflow("Other", "error")

    for by in ({"tag_name": "critical"}, {"tag_id": tag.id}):
        found = statistics(**by, min_runs=1)
        assert {name: len(one["breaches"]) for name, one in found.items()} == {"Runs": 1, "Off": 1}


def test_a_tag_with_a_comma_in_its_name_selects_its_own_workflows(client, workflow):
    tags = {name: client.tags.create(name).id for name in ("red,blue", "red", "blue")}
    client.workflows.update_tags(workflow("Mine", "success"), [tags["red,blue"]])
    client.workflows.update_tags(workflow("Theirs", "success"), [tags["red"], tags["blue"]])
    assert list(statistics(tag_name="red,blue")) == ["Mine"]


@pytest.mark.parametrize("by", ["all", "project", "name"])
def test_otherwise_workflows_that_are_active_or_ran_are_selected(simulator, client, workflow, by):
    project = client.projects.create("Team")
    for name, statuses, active in (("Idle", [], True), ("Off", [], False), ("Ran", ["error"], False)):
        one = workflow(name, *statuses, active=active)
        if by != "all":
            client.workflows.transfer(one, project.id)
            for execution in simulator.state.executions:
                execution.project_id = project.id
    if by != "all":
        workflow("Elsewhere", "error")

    chosen = {"all": {"all_workflows": True}, "project": {"project_id": project.id}, "name": {"project_name": "Team"}}
    found = statistics(**chosen[by])

    assert {name: one["runs"] for name, one in found.items()} == {"Idle": 0, "Ran": 1}


def test_a_breach_fails_the_attempt_and_names_all(simulator, workflow):
    workflow("Good", "success")
    bad = workflow("Bad", "error", "success", "error", took=90)
    none = workflow("Silent")
    ti = FakeTaskInstance()

    with pytest.raises(ServiceUnhealthyError) as raised:
        check(ti, all_workflows=True, max_failure_rate=0.5, max_age_of_success=timedelta(hours=12), min_runs=1)

    # It is not final, so Airflow retries it.
    assert not raised.value.final
    page = f"{simulator.base_url}/workflow"
    assert str(raised.value) == (
        "2 of 3 workflows are unhealthy over the last 24 h: "
        f"'Silent' (no success, max_age_of_success is 12 h; 0 runs, below min_runs 1) {page}/{none}/executions, "
        f"'Bad' (failure rate 0.6667, above max_failure_rate 0.5) {page}/{bad}/executions"
    )
    left = ti.pushed["health"]
    assert (left["healthy"], left["unhealthy"], left["message"]) == (False, 2, str(raised.value))
    assert [one["name"] for one in left["workflows"]] == ["Silent", "Bad", "Good"]
    assert left["workflows"][1]["breaches"] == [
        {"threshold": "max_failure_rate", "value": pytest.approx(2 / 3), "limit": 0.5}
    ]
    assert ti.pushed["_link_ServicePageLink"] == f"{simulator.base_url}/home/executions"


def test_a_breach_may_skip_or_only_be_reported(workflow, caplog):
    one = workflow("Bad", "error")
    ti = FakeTaskInstance()
    with pytest.raises(AirflowSkipException, match=r"'Bad' .failure rate 1, above max_failure_rate 0"):
        check(ti, workflow_id=one, max_failure_rate=0, on_breach="skip")
    assert ti.pushed["health"]["unhealthy"] == 1

    assert check(workflow_id=one, max_failure_rate=0, on_breach="report")["healthy"] is False
    assert "Workflow health: 1 of 1 workflows is unhealthy over the last 24 h: 'Bad'" in caplog.text


def test_durations_are_judged(workflow):
    one = workflow("Slow", "success", "success", took=600)
    limits = {"max_duration_median": timedelta(minutes=5), "max_duration_p95": 599}
    done = check(workflow_id=one, on_breach="report", **limits)

    [slow] = done["workflows"]
    assert [breach["threshold"] for breach in slow["breaches"]] == ["max_duration_median", "max_duration_p95"]
    assert "median duration 10 min, above max_duration_median 5 min" in done["message"]


def test_a_workflow_that_hides_executions_is_named_as_such(client, workflow):
    one = workflow("Sync", "error")
    read = client.workflows.get(one)
    settings = {"saveDataSuccessExecution": "none"}
    client.workflows.update(one, read.name, read.nodes or [], read.connections or {}, settings)

    assert (
        "does not keep all its executions" in check(workflow_id=one, max_failure_rate=0, on_breach="report")["message"]
    )


def test_the_result_is_bounded(workflow):
    for number in range(60):
        workflow(f"Workflow {number}", *(["error"] if number > 40 else []))
    done = check(all_workflows=True, max_failure_rate=0, on_breach="report")

    assert (done["checked"], done["unhealthy"], done["more"]) == (60, 19, True)
    assert [len(one["breaches"]) for one in done["workflows"]] == [1] * 19 + [0] * 31
    assert done["message"].endswith(", and 9 more")


def test_all_pages_are_read_and_long_work_is_logged(simulator, workflow, monkeypatch, caplog):
    monkeypatch.setattr(reading, "PROGRESS_EVERY", 300)
    workflow("Busy", *["success"] * 700)
    caplog.set_level("INFO")

    assert statistics(all_workflows=True)["Busy"]["runs"] == 700
    assert len(lists(simulator)) == 3
    progress = [line for line in caplog.messages if "were read" in line]
    assert progress == [f"{count} executions of the window were read" for count in (300, 600)]


def test_the_log_shows_a_table(workflow, caplog):
    workflow("Sync", "success", "error", took=90)
    workflow("Silent")
    caplog.set_level("INFO")
    check(all_workflows=True, max_failure_rate=0.2, on_breach="report")

    head, first, second = (line for line in caplog.messages if line.startswith(("workflow ", "Sync", "Silent")))
    assert head.split() == ["workflow", "runs", "failed", "canceled", "last", "success", "median", "95th", "breached"]
    assert first.split()[:4] == ["Sync", "2", "1", "0"]
    assert first.index("max_failure_rate") == head.index("breached")
    assert second.split() == ["Silent", "0", "0", "0", *"----"]


def test_without_thresholds_those_with_most_failures_come_first(workflow):
    for name, *statuses in (
        ("Quiet",),
        ("Busy", *["success"] * 3),
        ("One failure", "error", "success"),
        ("Two failures", "error", "error"),
    ):
        workflow(name, *statuses)
    done = check(all_workflows=True, on_breach="report")

    names = [one["name"] for one in done["workflows"] if one["runs"]]
    assert names == ["Two failures", "One failure", "Busy"]


NOT_ONE = "give either a workflow, a tag, a project, or all_workflows=True"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_runs": 1}, NOT_ONE),
        ({"tag_name": "a", "all_workflows": True, "min_runs": 1}, NOT_ONE),
        ({"tag_name": "a", "workflow_id": "b", "min_runs": 1}, NOT_ONE),
        ({"all_workflows": True}, "give at least one threshold, or on_breach='report'"),
        (
            {"all_workflows": True, "window": 60, "max_age_of_success": 61},
            "max_age_of_success must not be longer than window",
        ),
        ({"tag_name": "none", "min_runs": 1}, "there is no tag named 'none'"),
        ({"workflow_name": "none", "min_runs": 1}, "there is no workflow named 'none'"),
        ({"all_workflows": True, "min_runs": 1}, "there is no workflow to check"),
    ],
)
def test_what_cannot_be_checked_fails_for_good(simulator, arguments, message):
    with pytest.raises(AirflowFailException, match=message):
        check(**arguments)


def test_a_workflow_that_is_not_there(simulator):
    with pytest.raises(ServiceNotFoundError):
        check(workflow_id="none", min_runs=1)


def test_a_rate_is_a_part():
    with pytest.raises(ValueError, match="max_failure_rate must be a number from 0 to 1, not 5"):
        ServiceWorkflowHealthCheckOperator(task_id="check", max_failure_rate=5)


@pytest.mark.parametrize(("on_breach", "error"), [("fail", ServiceUnhealthyError), ("skip", AirflowSkipException)])
def test_the_report_is_written_before_the_task_fails_or_is_skipped(workflow, tmp_path, on_breach, error):
    workflow("Good", "success", "success")
    workflow("Bad", "error")
    ti, path = FakeTaskInstance(), tmp_path / "health.json"
    with pytest.raises(error):
        check(ti, all_workflows=True, max_failure_rate=0.5, on_breach=on_breach, report_path=str(path))
    report = json.loads(path.read_text())
    assert ti.pushed["health"]["report_path"] == str(path)
    assert report["tone"] == "bad"
    assert report["message"] == "Workflows that breach a threshold over the last 24 h: 1 of 2."
    chart, _, table = report["parts"]
    assert chart["bars"] == [{"label": "Good", "parts": [2, 0]}, {"label": "Bad", "parts": [0, 1]}]
    assert [(row[0]["text"], row[1], row[5]) for row in table["rows"]] == [
        ("Bad", "unhealthy", "100 %"),
        ("Good", "healthy", "0 %"),
    ]


def test_without_thresholds_no_workflow_is_called_healthy(workflow, tmp_path, caplog):
    caplog.set_level("INFO")
    one = workflow("Sync", "error", "error", "success", "error")
    check(workflow_id=one, on_breach="report", report_path=f"{tmp_path}/health.json")
    expected = "Workflow health: no thresholds are set; runs that failed over the last 24 h: 3 of 4; workflows: 1"
    assert expected in caplog.messages
    report = json.loads((tmp_path / "health.json").read_text())
    assert report["message"] == "No thresholds are set. Runs that failed over the last 24 h: 3 of 4."
    assert report["tone"] == "plain"
    assert [(row[0]["text"], row[1], row[5]) for row in report["parts"][-1]["rows"]] == [("Sync", "not judged", "75 %")]


def test_with_a_threshold_that_is_kept_the_message_says_so(workflow):
    one = workflow("Sync", "error", "success")
    done = check(workflow_id=one, max_failure_rate=0.5)
    assert done["message"] == "no threshold is breached over the last 24 h; workflows: 1"


def test_the_report_holds_workflows_that_the_result_leaves_out(workflow, tmp_path):
    for number in range(52):
        workflow(f"W{number}", *["success"] * (number % 30))
    done = check(all_workflows=True, on_breach="report", report_path=f"{tmp_path}/health.json")
    chart, over_time, table = json.loads((tmp_path / "health.json").read_text())["parts"]
    assert (len(done["workflows"]), len(table["rows"]), len(chart["bars"])) == (50, 52, 20)
    assert sum(sum(one["parts"]) for one in over_time["bars"]) == done["runs"]
    assert chart["note"] == "The 20 workflows with most runs; 30 more have fewer."


def test_the_report_shows_the_runs_over_time(simulator, workflow, tmp_path):
    one = workflow("Sync", "success", "error", "crashed", "canceled", "running", ended=2 * HOUR)
    workflow("Other", "success", ended=20 * HOUR)
    workflow("Tried out", "error", mode="manual")
    # It starts with an hour: the end of one slice and the beginning of the next.
    boundary = simulator.clock.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)
    execution = simulator.start_execution(one, status="success", age=HOUR)
    simulator.state.executions.get(int(execution)).started_at = boundary
    done = check(all_workflows=True, on_breach="report", report_path=f"{tmp_path}/health.json")

    chart = json.loads((tmp_path / "health.json").read_text())["parts"][1]
    expected: dict[str, list[int]] = {}
    for run in simulator.state.executions:
        if run.mode != "manual" and run.status in ("success", "error", "crashed"):
            counts = expected.setdefault(f"{run.started_at:%Y-%m-%d %H:00}", [0, 0])
            counts[run.status != "success"] += 1
    assert {bar["label"]: bar["parts"] for bar in chart["bars"] if any(bar["parts"])} == expected
    assert expected[f"{boundary:%Y-%m-%d %H:%M}"] == [1, 0]
    start, end = (done[name][:16].replace("T", " ") for name in ("window_start", "window_end"))
    assert chart["title"] == "Runs over time (UTC)"
    assert chart["note"] == (
        "All runs by their start. Each bar covers 60 min, the first and the last only what is in the window: "
        f"from {start} UTC to {end} UTC. Executions that the service has deleted are not included."
    )


def test_the_chart_says_that_workflows_do_not_keep_all_executions(client, workflow, tmp_path):
    read = client.workflows.get(workflow("Sync", "error"))
    settings = {"saveDataSuccessExecution": "none"}
    client.workflows.update(read.id, read.name, read.nodes or [], read.connections or {}, settings)
    workflow("Other", "success")
    check(all_workflows=True, on_breach="report", report_path=f"{tmp_path}/health.md")
    assert "Workflows that do not keep all their executions: 1." in (tmp_path / "health.md").read_text()


def test_a_single_run_of_a_workflow_with_a_hostile_name(client, workflow, tmp_path):
    read = client.workflows.get(workflow("Sync", "success"))
    client.workflows.update(read.id, "</ol><script>|\n## x", read.nodes or [], read.connections or {}, {})
    for suffix in ("html", "json"):
        check(workflow_id=read.id, on_breach="report", report_path=f"{tmp_path}/health.{suffix}")

    chart = json.loads((tmp_path / "health.json").read_text())["parts"][1]
    assert [bar["parts"] for bar in chart["bars"] if any(bar["parts"])] == [[1, 0]]
    assert all(datetime.strptime(bar["label"], "%Y-%m-%d %H:00") for bar in chart["bars"])
    page = (tmp_path / "health.html").read_text()
    assert 'aria-label="1 succeeded"' in page
    assert "<script" not in page


def test_a_report_without_runs_has_no_chart(workflow, tmp_path):
    workflow("Sync")
    check(workflow_name="Sync", on_breach="report", report_path=f"{tmp_path}/health.md")
    text = (tmp_path / "health.md").read_text()
    assert "## Runs" not in text
    assert "| [Sync](" in text
