"""Back up an instance every week, and check that the backup can be restored, without changing anything."""

from __future__ import annotations

from datetime import datetime

from airflow.sdk import DAG

from airflow_provider_service.operators.backups import ServiceBackupOperator, ServiceRestoreOperator

with DAG(
    "example_service_weekly_backup",
    schedule="@weekly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # A folder, or an address of object storage such as s3://my_conn@backups/service.
    params={"folder": "/tmp"},  # noqa: S108 - the user names the folder
    tags=["service", "example"],
) as dag:
    # The archive contains the values of variables and the rows of tables, but no secrets of credentials.
    # Older backups of this instance are deleted, so that eight remain in the folder.
    back_up = ServiceBackupOperator(
        task_id="back_up",
        path="{{ params.folder }}/service-{{ run_id | replace(':', '_') }}.zip",
        keep=8,
        report_path="{{ params.folder }}/service-backup.md",
    )

    # Reads and checks the whole archive. With another connection and without preview, it restores the archive there.
    check = ServiceRestoreOperator(
        task_id="check",
        path="{{ ti.xcom_pull('back_up')['path'] }}",
        on_conflict="skip",
        preview=True,
    )

    back_up >> check
