"""All that the call of a webhook carries: values of its path, one of several methods, files, a token."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, ObjectStoragePath
from fsspec.implementations.memory import MemoryFileSystem

from airflow_provider_service.hooks.service import ServiceHook
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.simulator import ServiceSimulator
from tests.runs.task_run import TaskRun
from tests.runs.workflows import CALLED, DONE, FORM, calls, held, put, puts_out, started_with, statuses, webhook

if TYPE_CHECKING:
    from tests.s3 import Bucket

try:
    from airflow.sdk.io import attach
except ImportError:  # Airflow 2
    from airflow.io.store import attach  # type: ignore[no-redef]


def run(workflow_id: str, **arguments: Any) -> TaskRun:
    return TaskRun(ServiceRunWorkflowOperator, {"workflow_id": workflow_id, "poll_interval": 0.05, **arguments})


@pytest.mark.parametrize("mode", ["onReceived", "lastNode"])
def test_the_path_of_a_call_has_its_values(simulator: ServiceSimulator, mode: str) -> None:
    workflow_id = put(simulator, webhook("orders/:id/lines/:line", mode=mode), DONE)
    task = run(workflow_id, path_parameters={"id": 7, "line": "a b"}, payload={"n": 1})
    assert task.attempt(1)["status"] == "success"
    task.close()
    item = started_with(held(simulator, workflow_id)[0])
    assert (item["params"], item["body"]) == ({"id": "7", "line": "a b"}, {"n": 1})


def test_a_lost_answer_of_a_path_with_parameters(simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook("orders/:id"), DONE)
    simulator.inject("drop", path="/webhook/", after_processing=True)
    with ServiceHook() as hook:
        hook.run_workflow(workflow_id=workflow_id, path_parameters={"id": 7}, poll_interval=0.05)
    assert statuses(simulator, workflow_id) == ["success"]


@pytest.mark.parametrize("given", [None, {}, {"id": ""}, {"id": ".."}, {"id": 7, "x": 8}])
def test_values_that_cannot_be_sent_start_nothing(simulator: ServiceSimulator, given: Any) -> None:
    workflow_id = put(simulator, webhook("orders/:id"), DONE, active=False)
    task = run(workflow_id, path_parameters=given, activate=True)
    with pytest.raises(AirflowFailException, match="nothing was started"):
        task.attempt(1)
    task.close()
    assert (calls(simulator), statuses(simulator, workflow_id)) == (0, [])
    assert not simulator.in_loop(lambda: simulator.state.workflows.get(workflow_id).active)


def test_one_of_several_methods(simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(httpMethod=["GET", "PUT"], multipleMethods=True), DONE)
    for method, body in ((None, {}), ("PUT", {"n": "1"})):
        task = run(workflow_id, webhook_method=method, payload={"n": "1"})
        task.attempt(1)
        task.close()
        assert started_with(held(simulator, workflow_id)[-1])["body"] == body
    with pytest.raises(AirflowFailException, match="takes GET, PUT, not 'POST'"):
        run(workflow_id, webhook_method="POST").attempt(1)


def test_head_runs_a_workflow_that_goes_live_a_little_later(simulator: ServiceSimulator) -> None:
    simulator.state.publish_delay = 0.5
    workflow_id = put(simulator, webhook(httpMethod="HEAD"), DONE, active=False)
    task = run(workflow_id, payload={"n": "1"}, activate=True)
    assert task.attempt(1)["status"] == "success"
    task.close()
    assert statuses(simulator, workflow_id) == ["success"]


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_are_the_binary_data_of_the_item(
    simulator: ServiceSimulator, tmp_path: Path, scheme: str, is_lost: bool
) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    (tmp_path / "orders.csv").write_bytes(b"x" * 300_000)
    if is_lost:
        simulator.inject("drop", path="/webhook/", after_processing=True)
    task = run(workflow_id, files={"data": f"{scheme}{tmp_path}/orders.csv"}, payload={"n": 1, "day": "ä"})
    assert task.attempt(1)["status"] == "success"
    task.close()
    (execution,) = held(simulator, workflow_id)
    assert started_with(execution)["body"] == {"n": "1", "day": "ä"}
    assert execution.run.initial is not None
    file = execution.run.initial.items[0]["binary"]["data"]
    assert (file["fileName"], file["mimeType"], file["bytes"]) == ("orders.csv", "text/csv", 300_000)


@pytest.mark.parametrize("is_object", [False, True], ids=["address", "ObjectStoragePath"])
def test_files_of_s3(simulator: ServiceSimulator, bucket: Bucket, is_object: bool) -> None:
    bucket.write("in/orders.csv", b"x" * 300_000)
    workflow_id = put(simulator, webhook(), DONE)
    file = bucket.path("in/orders.csv") if is_object else bucket.address("in/orders.csv")
    simulator.inject("drop", path="/webhook/")  # the call is made again, with the whole file
    task = run(workflow_id, files={"data": file}, payload={"n": 1})
    assert task.attempt(1)["status"] == "success"
    task.close()
    (execution,) = held(simulator, workflow_id)
    assert execution.run.initial is not None
    sent = execution.run.initial.items[0]["binary"]["data"]
    assert (sent["fileName"], sent["mimeType"], sent["bytes"]) == ("orders.csv", "text/csv", 300_000)


def test_a_file_that_is_not_in_s3_starts_nothing(simulator: ServiceSimulator, bucket: Bucket) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    task = run(workflow_id, files={"data": bucket.address("none.csv")})
    with pytest.raises(AirflowFailException, match=r"none\.csv"):
        task.attempt(1)
    task.close()
    assert (calls(simulator), statuses(simulator, workflow_id)) == (0, [])


def test_files_of_an_object_storage(simulator: ServiceSimulator) -> None:
    attach("memory", fs=MemoryFileSystem())
    path = ObjectStoragePath("memory://bucket/report.pdf")
    path.write_bytes(b"report")
    workflow_id = put(simulator, webhook(), DONE)
    with ServiceHook() as hook:
        hook.run_workflow(workflow_id=workflow_id, files={"report": path}, poll_interval=0.05)
    (execution,) = held(simulator, workflow_id)
    assert execution.run.initial is not None
    assert execution.run.initial.items[0]["binary"]["report"]["fileName"] == "report.pdf"


class Unreliable(io.BytesIO):
    """A file of a storage that fails in the middle of the first read."""

    name = "orders.csv"
    st_size = 600_000
    opened = 0

    def is_file(self) -> bool:
        return True

    def stat(self) -> Unreliable:
        return self

    def open(self, mode: str) -> Unreliable:
        type(self).opened += 1
        return Unreliable(b"x" * (300_000 if self.opened == 1 else 600_000))


def test_a_call_that_is_aborted_runs_nothing_and_is_repeated(simulator: ServiceSimulator) -> None:
    workflow_id = put(simulator, webhook(), DONE)
    with ServiceHook() as hook:
        hook.run_workflow(workflow_id=workflow_id, files={"data": Unreliable()}, poll_interval=0.05)
    (execution,) = held(simulator, workflow_id)
    assert execution.run.initial is not None
    assert execution.run.initial.items[0]["binary"]["data"]["bytes"] == 600_000
    assert Unreliable.opened == 2


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/no/such/file", "there is no such file"),
        ("nosuch://bucket/key", "(Unsupported filesystem: '|No filesystem registered for scheme )nosuch"),
    ],
)
def test_a_file_that_is_not_there_starts_nothing(simulator: ServiceSimulator, path: str, words: str) -> None:
    workflow_id = put(simulator, webhook(), DONE, active=False)
    with pytest.raises(AirflowFailException, match=words):
        run(workflow_id, files={"data": path}, activate=True).attempt(1)
    assert (calls(simulator), statuses(simulator, workflow_id)) == (0, [])
    assert not simulator.in_loop(lambda: simulator.state.workflows.get(workflow_id).active)


# ---------------------------------------------------------------- tokens

SECRET = "the passphrase of the webhook, which is long enough"


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch, simulator: ServiceSimulator) -> dict[str, Any]:
    """A webhook that wants a token, and a connection that signs them."""
    fields = {"conn_type": "generic", "password": SECRET, "extra": {"algorithm": "HS384"}}
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(fields))
    data = {"keyType": "passphrase", "secret": SECRET, "algorithm": "HS384"}
    made = simulator.in_loop(lambda: simulator.state.credentials.create("hook", "jwtAuth", data))
    credentials = {"jwtAuth": {"id": made["id"], "name": "hook"}}
    return {**webhook(authentication="jwtAuth"), "credentials": credentials}


@pytest.mark.parametrize("deferrable", [False, True])
def test_a_token_is_signed_for_each_call(
    simulator: ServiceSimulator, guarded: dict[str, Any], deferrable: bool
) -> None:
    output = puts_out('={{ {"all": $json.headers, "copy": $json.headers.authorization} }}')
    workflow_id = put(simulator, guarded, output)
    simulator.inject("drop", path="/webhook/", after_processing=False)
    task = run(workflow_id, webhook_conn_id="hook", return_output="last_node", deferrable=deferrable)
    [item] = task.whole_attempt(1)["output"]
    task.close()
    sent = started_with(held(simulator, workflow_id)[0])["headers"]["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(sent, SECRET, ["HS384"], leeway=60)  # of the time that has jumped since
    assert claims["exp"] - claims["iat"] == 900
    assert sent not in json.dumps(item)
    assert item["all"]["authorization"] == "***"
    assert item["copy"].removeprefix("Bearer ") == "***"


def test_a_token_that_cannot_be_signed_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, simulator: ServiceSimulator, guarded: dict[str, Any]
) -> None:
    workflow_id = put(simulator, guarded, DONE)
    for extra, secret, words in (
        ({"algorithm": "none"}, SECRET, "must be one of HS256, .*, not 'none'"),
        ({"algorithm": "RS256"}, SECRET, r"cannot sign with RS256 \(\w+\)$"),
        ({}, "", "has no password; it is the secret"),
    ):
        fields = {"conn_type": "generic", "password": secret, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(fields))
        with pytest.raises(AirflowFailException, match=words):
            run(workflow_id, webhook_conn_id="hook").attempt(1)
    assert calls(simulator) == 0


@pytest.mark.parametrize("given", [{"path_parameters": {"id": 7}}, {"webhook_method": "PUT"}, {"files": {"a": "b"}}])
def test_only_a_webhook_takes_them(simulator: ServiceSimulator, given: dict[str, Any]) -> None:
    for trigger, way in ((FORM, "mcp"), (CALLED, "bridge")):
        workflow_id = put(simulator, trigger, DONE)
        words = f"{way}: only the call of a webhook takes {next(iter(given))}"
        for start in ("auto", way):
            with pytest.raises(AirflowFailException, match=words):
                run(workflow_id, start=start, **given).attempt(1)
        assert statuses(simulator, workflow_id) == []
