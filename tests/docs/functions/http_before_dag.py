"""The guide's DAG with HttpOperator and HttpSensor; tests/docs/test_from_http_operators.py runs it."""

from datetime import datetime
from typing import Any

from airflow.providers.http.operators.http import HttpOperator
from airflow.providers.http.sensors.http import HttpSensor
from airflow.sdk import DAG


def has_succeeded(response: Any) -> bool:
    status = response.json()["status"]
    if status in {"error", "crashed", "canceled"}:
        raise RuntimeError(f"The execution ended with the status {status}")
    return status == "success"


with DAG("sync_orders", schedule="0 2 * * *", start_date=datetime(2026, 1, 1), catchup=False) as dag:
    start = HttpOperator(
        task_id="start",
        http_conn_id="n8n_http",
        endpoint="webhook/sync-orders",
        headers={"Content-Type": "application/json"},
        data='{"day": "{{ ds }}"}',
        response_filter=lambda response: response.json()["executionId"],
        retries=2,
    )

    wait = HttpSensor(
        task_id="wait",
        http_conn_id="n8n_http",
        endpoint="api/v1/executions/{{ ti.xcom_pull(task_ids='start') }}",
        response_check=has_succeeded,
        mode="reschedule",
        timeout=7200,
    )

    start >> wait
