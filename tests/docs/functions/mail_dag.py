"""The guide's example of a report that is mailed; tests/docs/test_guide_dags.py runs it."""

from __future__ import annotations

from airflow.providers.smtp.hooks.smtp import SmtpHook
from airflow.sdk import DAG, task

from airflow_provider_service.operators.audit import ServiceGenerateAuditOperator

with DAG("mail_a_report", schedule="@weekly", catchup=False, params={"folder": "/shared"}) as dag:
    report = "{{ params.folder }}/service-audit.html"
    audit = ServiceGenerateAuditOperator(task_id="audit", fail_on=["database"], report_path=report, retries=0)

    @task(trigger_rule="all_done")  # the report is there even if a finding has failed the audit
    def mail(path: str) -> None:
        """Send the report as an attachment."""
        with SmtpHook() as smtp:
            smtp.send_email_smtp(
                to="ops@example.com", subject="Audit of n8n", html_content="See the attachment.", files=[path]
            )

    audit >> mail(report)
