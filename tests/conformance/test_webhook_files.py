"""Files that a webhook is called with: the binary data of the item, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_service.client.errors import ServiceWebhookRefusedError
from airflow_provider_service.client.models import Execution, Workflow
from tests.polling import wait_until

from .expecting import unique
from .target import Target
from .workbench import Workbench, done, path_of, webhook


def the_run(bench: Workbench, service: Target, flow: Workflow) -> Execution:
    (run,) = wait_until(lambda: list(service.client.executions.list(workflow_id=flow.id)), what="the run")
    return bench.finished(run.id)


def item_of(execution: Execution) -> dict[str, Any]:
    """The whole item that the webhook put out."""
    assert execution.data is not None
    item = execution.data["resultData"]["runData"]["Webhook"][0]["data"]["main"][0][0]
    assert isinstance(item, dict)
    return item


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {"a.csv": b"x,y\n", 'ä "q".pdf': b"%PDF-", "short.bin": b"\0", "large.json": b" " * 3_000_000}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {f"f{number}": tmp_path / name for number, name in enumerate(contents)}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_files_are_binary_data(bench: Workbench, service: Target, files: dict[str, Path], method: str) -> None:
    flow = bench.create(webhook(unique(), httpMethod=method), done())
    service.client.workflows.activate(flow.id)
    wait_until(
        lambda: "not registered for" in service.outside("GET", f"/webhook/{path_of(flow)}").text, what="the webhook"
    )
    trigger = service.client.webhooks.find(flow)
    answer = service.client.webhooks.call(trigger, {"n": 1, "ä": "ö\r\n"}, files=files, timeout=30)
    assert answer.status == 200
    item = item_of(the_run(bench, service, flow))
    assert item["json"]["body"] == {"n": "1", "ä": "ö\r\n"}
    shown = ("fileName", "mimeType", "fileExtension")
    assert {name: tuple(map(file.get, shown)) for name, file in item["binary"].items()} == {
        "f0": ("a.csv", "text/csv", "csv"),
        "f1": ('ä "q".pdf', "application/pdf", "pdf"),
        "f2": ("short.bin", "application/octet-stream", "bin"),
        "f3": ("large.json", "application/json", "json"),
    }
    assert item["binary"]["f0"]["fileSize"] == "4 B"


def test_the_node_may_name_them(bench: Workbench, service: Target, files: dict[str, Path]) -> None:
    flow = bench.publish(webhook(unique(), options={"binaryPropertyName": "file"}), done())
    few = {name: files[name] for name in ("f0", "f1")}
    service.client.webhooks.call(service.client.webhooks.find(flow), files=few, timeout=30)
    item = item_of(the_run(bench, service, flow))
    # A busy server numbers them as it has stored them, which is not always as they were sent.
    assert set(item["binary"]) == {"file0", "file1"}
    assert {file["fileName"] for file in item["binary"].values()} == {"a.csv", 'ä "q".pdf'}


@pytest.mark.parametrize("order", ["empty", "empty, other", "other, empty"])
def test_an_empty_file(bench: Workbench, service: Target, tmp_path: Path, order: str) -> None:
    flow = bench.publish(webhook(unique()), done())
    sizes = {"empty": 0, "other": 3}
    files = {name: tmp_path / name for name in order.split(", ")}
    for name, file in files.items():
        file.write_bytes(b"x" * sizes[name])
    answer = service.client.webhooks.call(service.client.webhooks.find(flow), files=files, timeout=30)
    if service.differs("faults of forms"):
        assert (answer.status, list(service.client.executions.list(workflow_id=flow.id))) == (500, [])
        return
    run = the_run(bench, service, flow)
    if service.differs("empty file of a form"):
        # The file, and whatever comes after it, is left out without a word; what came before it is gone.
        is_first = order.startswith("empty")
        assert (answer.status, run.status) == ((200, "success") if is_first else (500, "error"))
        assert not is_first or "binary" not in item_of(run)
        return
    assert answer.status == 200
    assert {name: file["fileSize"] for name, file in item_of(run)["binary"].items()} == {
        name: f"{sizes[name]} B" for name in files
    }


def test_a_form_that_cannot_be_read_runs_nothing(bench: Workbench, service: Target) -> None:
    flow = bench.publish()
    answer = bench.call(flow, data=b"x", headers={"Content-Type": "multipart/form-data; boundary=b"})
    if service.differs("faults of forms"):
        assert answer.status_code == 500
        return
    if service.differs("form that cannot be read"):
        assert answer.status_code == 200
        return
    assert (answer.status_code, answer.json()["message"]) == (400, "The submitted form data could not be parsed.")
    assert list(service.client.executions.list(workflow_id=flow.id)) == []


def test_files_above_the_limit_run_nothing(bench: Workbench, service: Target, tmp_path: Path) -> None:
    flow, large = bench.publish(), tmp_path / "large.bin"
    with large.open("wb") as file:
        file.truncate(201 * 2**20)
    with service.client_of(max_files_mib=300) as client:
        trigger = client.webhooks.find(flow)
        if service.differs("status of files above the limit"):
            assert client.webhooks.call(trigger, files={"data": large}, timeout=60).status == 500
            return
        if service.differs("files above the limit"):
            assert client.webhooks.call(trigger, files={"data": large}, timeout=60).status == 200
            assert "binary" not in item_of(the_run(bench, service, flow))
            return
        with pytest.raises(ServiceWebhookRefusedError, match=r"The submitted form data exceeds the allowed size\."):
            client.webhooks.call(trigger, files={"data": large}, timeout=60)
    assert list(service.client.executions.list(workflow_id=flow.id)) == []
