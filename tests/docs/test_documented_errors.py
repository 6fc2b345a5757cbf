"""Whatever fails a task is among the errors that the documentation of its operator or sensor names."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat import sdk

from airflow_provider_service.client import errors
from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator
from airflow_provider_service.operators.backups import ServiceBackupOperator
from airflow_provider_service.operators.bridge import ServiceInstallBridgeOperator
from airflow_provider_service.operators.data_tables import ServiceCreateDataTableOperator
from airflow_provider_service.operators.deployment import ServiceCreateOrUpdateWorkflowOperator
from airflow_provider_service.operators.desired_state import ServiceEnsureDataTablesOperator, ServiceEnsureTagsOperator
from airflow_provider_service.operators.execution_selections import (
    ServiceDeleteExecutionsOperator,
    ServiceStopExecutionsOperator,
)
from airflow_provider_service.operators.health import ServiceWorkflowHealthCheckOperator
from airflow_provider_service.operators.insights import ServiceGetInsightsOperator
from airflow_provider_service.operators.instances import ServiceDeployWorkflowsOperator, ServiceExportWorkflowsOperator
from airflow_provider_service.operators.row_reads import ServiceReadRowsOperator
from airflow_provider_service.operators.rows import ServiceUpsertRowsOperator
from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator
from airflow_provider_service.operators.source_control import ServicePullSourceControlOperator
from airflow_provider_service.operators.workflows import ServiceActivateWorkflowOperator
from airflow_provider_service.sensors.execution import ServiceExecutionSensor
from airflow_provider_service.simulator import ServiceSimulator
from airflow_provider_service.testing import run_task
from tests.operators.test_every_operator import OPERATORS
from tests.package.test_copies import sensors

from .operator_examples import dag

ROOT = Path(__file__).resolve().parents[2]
KINDS: list[Any] = [*OPERATORS, *sensors()]
DEFINITION = {"name": "Sync", "nodes": [], "connections": {}, "settings": {}}
FURTHER: dict[Any, dict[str, Any]] = {
    ServiceActivateWorkflowOperator: {"workflow_name": "Nightly sync"},
    ServiceBackupOperator: {"path": "{{ params.folder }}/backup.zip"},
    ServiceCreateDataTableOperator: {"name": "t", "columns": {"sku": "string"}},
    ServiceCreateOrUpdateWorkflowOperator: {"definition": DEFINITION},
    ServiceDeleteExecutionsOperator: {"all_workflows": True},
    ServiceDeployWorkflowsOperator: {"source": [DEFINITION]},
    ServiceEnsureDataTablesOperator: {"data_tables": {"t": {"sku": "string"}}},
    ServiceEnsureTagsOperator: {"tags": ["a"]},
    ServiceExecutionSensor: {"execution_id": "{{ params.execution_id }}"},
    ServiceExportWorkflowsOperator: {"path": "{{ params.folder }}/export"},
    ServiceGenerateAuditOperator: {},
    ServiceGetInsightsOperator: {},
    ServiceInstallBridgeOperator: {},
    ServicePullSourceControlOperator: {},
    ServiceReadRowsOperator: {"data_table_name": "stock"},
    ServiceRunWorkflowOperator: {"workflow_name": "Nightly sync"},
    ServiceStopExecutionsOperator: {"all_workflows": True},
    ServiceUpsertRowsOperator: {"data_table_name": "stock", "rows": [{"sku": "a"}], "key_columns": ["sku"]},
    ServiceWorkflowHealthCheckOperator: {"all_workflows": True, "max_failure_rate": 0.5},
}
EXAMPLES = {type(task): task for task in dag.tasks}
EXAMPLES |= {kind: kind(task_id="task", **arguments) for kind, arguments in FURTHER.items()}
TESTS = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))

pytestmark = pytest.mark.usefixtures("virtual_time")


def documented(kind: Any) -> list[str]:
    return re.findall(r"^:raises (\w+): .", inspect.cleandoc(kind.__doc__), re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_error_of_the_documentation_exists_and_is_tested(kind: Any) -> None:
    names = documented(kind)
    assert names[0] == "AirflowFailException"
    assert len(set(names)) == len(names) > 1
    for name in names:
        error = getattr(errors, name, None) or getattr(sdk, name)
        assert issubclass(error, Exception)
        assert error is not errors.ServiceError  # which every error of the package is
        is_tested = re.search(rf'raises\([^\n]*\b{name}\b|"{name}"', TESTS)
        subclasses = [one.__name__ for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, error)]
        assert is_tested or any(f"raises({one}" in TESTS for one in subclasses), name


@pytest.mark.parametrize(("fault", "is_final"), [("away", False), ("hangs up", False), ("no scope", True)])
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_what_fails_a_task_is_documented(
    kind: Any, fault: str, is_final: bool, simulator: ServiceSimulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = simulator.create_webhook_workflow("Nightly sync", path="nightly")
    params = {"execution_id": simulator.start_execution(workflow["id"], status="error"), "folder": str(tmp_path)}
    (tmp_path / "stock.jsonl").write_text('{"sku": "a", "amount": 1}\n')
    shop = {"conn_type": "sqlite", "host": str(tmp_path / "shop.sqlite")}
    monkeypatch.setenv("AIRFLOW_CONN_SHOP", json.dumps(shop))
    monkeypatch.setenv("AIRFLOW_CONN_ORDERS", json.dumps({"conn_type": "generic", "login": "X", "password": "a"}))
    fields = {**json.loads(simulator.connection_json()), "extra": {"retry_deadline": 1}}
    if fault == "no scope":
        fields["password"] = simulator.create_key(["user:list"])
    elif fault == "away":
        simulator.inject("status", times=None, status=503)
    else:
        simulator.inject("drop", times=None)
    monkeypatch.setenv("AIRFLOW_CONN_SERVICE_DEFAULT", json.dumps(fields))

    with pytest.raises(Exception) as failed:  # noqa: PT011 - which errors it may be is what the documentation says
        run_task(EXAMPLES[kind], params=params)

    bases = [one.__name__ for one in failed.type.__mro__]
    assert set(bases) & set(documented(kind)), failed.value
    assert (failed.type is sdk.AirflowFailException) == is_final, failed.value


def test_the_faults_are_tried_on_all_but_these() -> None:
    others = {"ServicePromoteWorkflowsOperator", "ServiceRestoreOperator", "ServiceUpdateCredentialOperator"}
    assert {kind.__name__ for kind in KINDS if kind not in EXAMPLES} == others
