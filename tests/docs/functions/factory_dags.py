"""The recipe for DAGs from a YAML file; tests/docs/test_recipes.py runs it."""

from datetime import datetime
from pathlib import Path

import yaml
from airflow.sdk import DAG

from airflow_provider_service.operators.run_workflow import ServiceRunWorkflowOperator

for dag_id, job in yaml.safe_load(Path(__file__).with_name("jobs.yaml").read_text()).items():
    with DAG(dag_id, schedule=job["schedule"], start_date=datetime(2026, 1, 1), catchup=False):
        ServiceRunWorkflowOperator(task_id="run", deferrable=True, retries=2, **job["run"])
