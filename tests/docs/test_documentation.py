"""The documentation's examples, links, paths and commands are tested."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import jwt
import pytest
from pydantic import SecretStr

from airflow_provider_service._airflow.connection import WebhookHeaders
from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.simulator import ServiceSimulator
from scripts.first_steps import GUIDE, blocks, dag_file, steps
from scripts.standalone import MAPPED_FILE
from tests import airflow_features
from tests.runs.workflows import put, puts_out, webhook

from .hook_examples import (
    any_endpoint,
    count_failures,
    export_names,
    hand_over,
    sums_of,
    workflow_id_of,
    workflows_with,
)

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "airflow_provider_service"
OF_THE_ROOT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")]
PAGES = [*OF_THE_ROOT, *sorted((ROOT / "docs").rglob("*.md"))]
OF_THE_CODE = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "guarantees.md",
    *sorted((ROOT / "docs/decisions").glob("*.md")),
]
#: What ends in a slash, and files of some kinds, below the root or the package.
PATH = re.compile(r"(?<![\w./*-])[\w./-]+(?:/|\.(?:py|json|md|toml|txt))(?![\w./*-])")
TESTED = [*sorted((ROOT / "example_dags").glob("*.py")), *sorted(Path(__file__).parent.rglob("*.py"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)

BLOCKS = [(page, kind, text) for page in PAGES for kind, text in FENCE.findall(page.read_text())]
EXPORTS = {
    own: [
        line
        for _, kind, text in BLOCKS
        if kind == "sh"
        for line in text.splitlines()
        if line.startswith("export AIRFLOW_CONN_") and bool(re.search("(SERVICE|N8N)_DEFAULT", line)) is own
    ]
    for own in (True, False)
}
COMMANDS = [
    line
    for page in PAGES
    for block in re.findall(r"(?:^    \S.*\n)+", page.read_text(), re.M)
    for line in block.splitlines()
]


@pytest.mark.parametrize(
    ("page", "kind", "text"), BLOCKS, ids=[f"{page.name}-{n}" for n, (page, *_) in enumerate(BLOCKS)]
)
def test_python_is_an_excerpt_of_a_tested_file(page: Path, kind: str, text: str) -> None:
    # What is YAML is run by test_deploy_from_ci.py, test_mapping_file.py and test_recipes.py.
    is_yaml = kind == "yaml" and page.stem in ("deploy-from-ci", "instances", "recipes")
    assert kind in {"python", "sh", "json", "mermaid"} or is_yaml, (
        f"{page.name} has a block of kind {kind!r} that no test covers"
    )
    if kind == "python":
        inner = [textwrap.indent(text, " " * width) for width in (0, 4, 8)]
        assert any(one in path.read_text() for path in TESTED for one in inner), (
            f"{page.name} shows code that no tested file holds:\n{text}"
        )


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    found = re.findall(r"""(?:\]\(|src(?:set)?=")([^)"\s]+)[)"]""", page.read_text())
    targets = [target for target in found if "://" not in target]
    for target in targets:
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        assert not anchor or anchor in headings(path), target


@pytest.mark.parametrize("page", OF_THE_CODE, ids=lambda page: page.name)
def test_every_path_of_the_code_exists(page: Path) -> None:
    code = re.findall(r"^```mermaid\n.*?^```$|`[^`\n]+`", page.read_text(), re.M | re.S)
    named = [path for text in code for path in PATH.findall(text)]

    assert named or page.name == "README.md"
    assert [path for path in named if not any((root / path).exists() for root in (ROOT, PACKAGE))] == []


def test_the_architecture_page_names_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}

    assert packages <= set(re.findall(r"\b(\w+)/", page))


def written(value: object) -> str:
    """A setting as a connection writes it."""
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value).removesuffix(".0")


@pytest.mark.parametrize("line", EXPORTS[True])
def test_connections_are_read(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, value = shlex.split(line)[1].partition("=")
    monkeypatch.setenv(name, value)

    config = ServiceHook().config

    assert config.base_url in {
        "https://n8n.example.com",
        "https://n8n.example.com/prefix",
        "http://localhost:5678/prefix",
        "http://localhost:5678",
        "http://n8n:5678",
    }
    assert config.key_header == ("X-N8N-API-KEY" if "N8N_DEFAULT" in name else "X-SERVICE-API-KEY")
    assert config.api_key.get_secret_value() in {"key", "your-key"}
    extras = json.loads(value)["extra"] if value.startswith("{") else dict(re.findall(r"[?&](\w+)=([^&]+)", value))
    assert {key: written(getattr(config, key)) for key in extras} == {k: str(v) for k, v in extras.items()}


@pytest.mark.parametrize("line", EXPORTS[False])
def test_connections_of_webhooks_are_read(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, value = shlex.split(line)[1].partition("=")
    monkeypatch.setenv(name, value)

    connection = ServiceHook.get_connection(name.removeprefix("AIRFLOW_CONN_").lower())

    if connection.login:
        assert WebhookHeaders(connection, None)("headerAuth") == {"X-Orders-Key": "key"}
    else:
        token = WebhookHeaders(connection, None)("jwtAuth")["Authorization"].removeprefix("Bearer ")
        assert jwt.get_unverified_header(token)["alg"] == "HS256"


def test_every_command_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = {shlex.split(line, comments=True)[1] for line in COMMANDS if line.strip().startswith("make ")}

    assert named
    assert named <= targets


def test_the_first_steps_are_found_on_their_page() -> None:
    assert [command.split()[0] for command in steps((2, 11))] == ["pip", "airflow", "export", "python", "airflow"]
    assert list(steps((3, 3)))[3] == "airflow service doctor"
    for code in (blocks(GUIDE, "python")[0], MAPPED_FILE):
        assert dag_file((2, 11), code).startswith("from airflow import DAG\n")
    assert dag_file((3, 0)).startswith("from airflow.sdk import DAG\n")


def test_the_simulator_starts_from_the_command_line() -> None:
    [command] = [
        line for _, kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if "simulator --port" in line
    ]
    arguments = shlex.split(command.replace("5678", "0"))[1:]
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        assert process.stdout is not None
        assert "http://127.0.0.1:" in process.stdout.readline()
    finally:
        process.terminate()
        process.communicate(timeout=600)
    assert process.returncode == 0


def test_the_hook_examples_run(simulator: ServiceSimulator) -> None:
    workflow = simulator.create_webhook_workflow("w", path="w")
    simulator.start_execution(workflow["id"], status="error")
    with ServiceHook() as service:
        table = service.data_tables.create("t", [{"name": "name", "type": "string"}])
        service.data_table_rows.insert(table.id, [{"name": "b"}, {"name": "a"}])
        tag = service.tags.create("prod")
        service.workflows.update_tags(workflow["id"], [tag.id])

    assert count_failures(workflow["id"]) == 1
    assert export_names(table.id) == ["a", "b"]
    assert any_endpoint(workflow["id"]) == ["prod"]
    simulator.create_webhook_workflow("W", path="other")
    assert workflow_id_of("w") == workflow["id"]


def test_the_example_of_somebody_who_leaves_runs_without_a_license(simulator: ServiceSimulator) -> None:
    simulator.state.licensed = False
    user = simulator.state.add_user("ana@example.com", first_name="Ana", last_name="Lee")
    own = next(one["id"] for one in simulator.state.projects.all() if one["creatorId"] == user["id"])
    other = simulator.state.personal_project_id
    with ServiceHook() as service:
        for project in (own, other):
            service.workflows.create(f"w {project}", [], {}, {}, project_id=project)
            service.credentials.create(
                f"c {project}", "httpHeaderAuth", {"name": "X", "value": "y"}, project_id=project
            )

        hand_over("ana@example.com", other)

        assert {one.name for one in service.workflows.list()} == {f"w {own}", f"w {other}"}
        assert {one.name for one in service.credentials.list()} == {f"c {own}", f"c {other}"}
        assert {one.email for one in service.users.list()} == {"owner@example.com"}


@pytest.mark.usefixtures("virtual_time")
def test_the_example_of_an_output_runs(simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), {**puts_out('={{ {"sum": 3} }}'), "name": "Sum"})
    with ServiceHook() as service:
        run = service.run_workflow(workflow_id=workflow_id)

    assert sums_of(run["execution_id"]) == [3]


def test_the_example_of_the_use_of_a_credential_runs(simulator: ServiceSimulator) -> None:
    called = {**webhook(), "credentials": {"httpHeaderAuth": {"id": "c1", "name": "Header"}}}
    put(simulator, called, name="Active")
    put(simulator, called, active=False, name="Draft")
    put(simulator, webhook("other"), name="Other")

    assert workflows_with("c1") == {"Active", "Draft"}
    assert workflows_with("c2") == set()


def test_the_page_of_compatibility_lists_what_versions_of_airflow_lack() -> None:
    marks = [mark.mark for mark in vars(airflow_features).values() if isinstance(mark, pytest.MarkDecorator)]
    page = (ROOT / "docs" / "compatibility.md").read_text()
    rows = re.findall(r"^\| ([0-9.]+) \| ([^|]+) \|", page, re.M)

    assert marks
    assert {(mark.args[0], mark.kwargs["lacks"]) for mark in marks} <= {(f">={since}", name) for since, name in rows}
