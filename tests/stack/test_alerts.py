"""The notifier, called by a worker and by the DAG processor, in runs with and without a logical date."""

from __future__ import annotations

import pytest

from airflow_provider_service.client import ServiceClient
from airflow_provider_service.simulator._samples import webhook
from tests.polling import wait_until

from . import workflows
from .airflow_api import AirflowApi
from .figures import FIGURES
from .simulated import SimulatedService


@pytest.mark.parametrize("logical_date", [True, False], ids=["dated", "undated"])
def test_both_notify_the_workflow(
    api: AirflowApi, service: SimulatedService, client: ServiceClient, logical_date: bool
) -> None:
    workflow_id = service.create_workflow("Alerts", [webhook(workflows.path())])
    api.unpause("stack_alerts")
    run_id = api.trigger("stack_alerts", {"alert_workflow_id": workflow_id}, logical_date=logical_date)

    wait_until(lambda: len(workflows.executions(client, workflow_id)) == 2, seconds=240, what="both alerts", interval=1)

    notices = [workflows.payload(one) for one in workflows.executions(client, workflow_id)]
    by_sender = {notice["details"]["sent_by"]: notice for notice in notices}
    assert by_sender.keys() == {"worker", "dag-processor"}
    for notice in notices:
        assert notice["message"] == f"{run_id} has failed"
        assert (notice["details"]["logical_date"] == "None") is not logical_date
    assert by_sender["worker"]["task_id"] == "fail"
    assert by_sender["worker"]["exception"] == "there is nothing to load"
    FIGURES.add("alerts sent", len(notices))


@pytest.mark.parametrize("logical_date", [True, False], ids=["dated", "undated"])
def test_the_example_notifies_its_workflow(api: AirflowApi, client: ServiceClient, logical_date: bool) -> None:
    api.unpause("example_service_alert")
    run_id = api.trigger("example_service_alert", logical_date=logical_date)

    assert api.wait_for_run("example_service_alert", run_id, seconds=240) == "failed"

    workflow_id = api.xcom("example_service_alert", run_id, "activate")["workflow_id"]

    def notices() -> list[str]:
        found = map(workflows.payload, workflows.executions(client, workflow_id))
        return [one["message"] for one in found if one["run_id"] == run_id]

    wait_until(notices, seconds=60, what="the alert", interval=1)
    assert notices() == ["load of example_service_alert has failed"]
    FIGURES.add("alerts sent")
