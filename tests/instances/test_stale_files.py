"""Files of an export whose workflows were renamed, archived or deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.operators.instances import ServiceExportWorkflowsOperator

from .workflows import child, node, parent, webhook, workflow

CODE = node("Sum up", "code", {"jsCode": "let a = 1;\nreturn a;"})
#: Files that no export has written.
FOREIGN = {
    "notes.json": "not JSON",
    "list.json": "[]",
    "without-id.json": json.dumps(workflow("by hand", webhook("by-hand"))),
    "settings.json": json.dumps({"id": "1", "colour": "red"}),
    "README.md": "read me",
    "below/other.json": json.dumps({"id": "1", "nodes": []}),
}


@pytest.fixture
def export(execute, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """``export()`` exports to a folder, which may hold other files already."""

    def run(**options: Any) -> dict[str, Any]:
        return execute(ServiceExportWorkflowsOperator, path=str(tmp_path / "workflows"), **options)

    return run


@pytest.fixture
def held(tmp_path: Path) -> Callable[[], set[str]]:
    """``held()`` returns the paths of the files in the folder."""
    root = tmp_path / "workflows"
    return lambda: {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def rename(client, name: str, new: str) -> None:
    [one] = client.workflows.list(name=name)
    whole = client.workflows.get(one.id)
    client.workflows.update(one.id, new, whole.nodes, whole.connections, {})


def test_a_renamed_workflow_leaves_no_second_file(client, deploy, export, held, tmp_path):
    deploy([workflow("old", webhook("old"), CODE), child()])
    export(code_files=True)
    assert held() == {"old.json", "old/Sum up.js", "child.json"}
    rename(client, "old", "new")

    done = export(code_files=True, remove_stale=True)

    assert held() == {"new.json", "new/Sum up.js", "child.json"}
    assert done["removed"] == ["old/Sum up.js", "old.json"]
    assert deploy(str(tmp_path / "workflows")).keys() == {"unchanged"}
    assert export(code_files=True, remove_stale=True)["removed"] == []


def test_without_the_option_a_former_name_is_a_warning(client, deploy, export, held, task_log, caplog):
    deploy([child()])
    export()
    rename(client, "child", "new")

    assert export()["removed"] == []

    assert held() == {"child.json", "new.json"}
    assert "'child.json' holds the same workflow as 'new.json', under another name" in caplog.text


def test_files_of_archived_deleted_and_unselected_workflows_are_removed(client, deploy, export, held):
    deploy([child(), parent(), workflow("archived", webhook("a")), workflow("deleted", webhook("d"))])
    export()
    [archived], [deleted] = client.workflows.list(name="archived"), client.workflows.list(name="deleted")
    client.workflows.archive(archived.id)
    client.workflows.deactivate(deleted.id)
    client.workflows.delete(deleted.id)

    assert export()["removed"] == []
    assert export(remove_stale=True)["removed"] == ["archived.json", "deleted.json"]
    assert held() == {"child.json", "parent.json"}
    assert export(workflow_names=["child"], remove_stale=True)["removed"] == ["parent.json"]


def test_files_that_no_export_has_written_stay(deploy, export, held, tmp_path):
    deploy([child()])
    root = tmp_path / "workflows"
    for path, text in FOREIGN.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    assert export(remove_stale=True)["removed"] == []
    assert held() == {*FOREIGN, "child.json"}


def test_a_stale_file_takes_only_its_own_code_along(export, held, tmp_path):
    root = tmp_path / "workflows"
    (root / "x").mkdir(parents=True)
    for path in ("x/own.js", "precious.js"):
        (root / path).write_text("1;\n2;")
    refers = [{"parameters": {"jsCode": {"file": path}}} for path in ("x/own.js", "precious.js", "x/gone.js")]
    (root / "x.json").write_text(json.dumps({"id": "1", "nodes": refers}))
    leading_out = [{"parameters": {"jsCode": {"file": "../../etc/passwd"}}}]
    (root / "y.json").write_text(json.dumps({"id": "2", "nodes": leading_out}))

    assert export(remove_stale=True, allow_empty=True)["removed"] == ["x/own.js", "x.json", "y.json"]
    assert held() == {"precious.js"}


def test_a_name_in_another_case_leaves_no_second_file(client, deploy, export, held, tmp_path):
    deploy([workflow("orders", webhook("orders"))])
    export()
    rename(client, "orders", "Orders")
    root = tmp_path / "workflows"
    distinguishes_case = not (root / "ORDERS.json").exists()

    done = export(remove_stale=True)

    assert done["removed"] == (["orders.json"] if distinguishes_case else [])
    assert len(held()) == 1
