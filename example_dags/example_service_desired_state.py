"""Every night, make sure that the instance holds the tags and tables that the pipelines need."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_service.operators.desired_state import ServiceEnsureDataTablesOperator, ServiceEnsureTagsOperator

# As in a YAML file, which path= would name.
TABLES = """
airflow_example_invoices:
  number: string
  amount: number
  paid: boolean
airflow_example_customers:
  name: string
  since: date
"""

with DAG(
    "example_service_desired_state",
    schedule="0 1 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # Two simultaneous runs could both try to create a table, which fails in the second.
    max_active_runs=1,
    tags=["service", "example"],
) as dag:
    # Of all other tags, only those that begin with "airflow-old-" are deleted.
    tags = ServiceEnsureTagsOperator(
        task_id="tags",
        tags=["airflow-critical", "airflow-nightly"],
        prune=True,
        prune_prefix="airflow-old-",
    )

    tables = ServiceEnsureDataTablesOperator(task_id="tables", data_tables=TABLES)
