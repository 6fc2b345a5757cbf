"""The page of errors: its example of a task; tests/docs/test_errors_page.py runs it."""

from airflow.providers.common.compat.sdk import AirflowFailException, task

from airflow_provider_service.client.errors import ServiceError
from airflow_provider_service.hooks.service import ServiceHook


@task(retries=3)
def activate(workflow_id: str) -> None:
    try:
        with ServiceHook() as service:
            service.workflows.activate(workflow_id)
    except ServiceError as error:
        if error.final:
            raise AirflowFailException(str(error)) from error
        raise
