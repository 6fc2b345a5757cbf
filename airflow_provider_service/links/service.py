"""Addresses of the service's pages, which only this module builds and reads, and the buttons that lead there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from airflow.providers.common.compat.sdk import BaseOperatorLink

from airflow_provider_service._airflow.attempts import keep
from airflow_provider_service.client._constraints import is_plain_id

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseOperator, Context
    from airflow.sdk.types import TaskInstanceKey

__all__ = ["ServiceDataTableLink", "ServiceExecutionLink", "ServicePageLink", "ServiceWorkflowLink"]

WORKFLOWS_PAGE = "/home/workflows"
WORKFLOW_PAGE = "/workflow/{}"
EXECUTIONS_PAGE = "/home/executions"
WORKFLOW_EXECUTIONS_PAGE = "/workflow/{}/executions"
EXECUTION_PAGE = "/workflow/{}/executions/{}"
DATA_TABLE_PAGE = "/projects/{}/datatables/{}"
TABLES_PAGE = "/home/datatables"
VARIABLES_PAGE = "/home/variables"
CREDENTIALS_PAGE = "/home/credentials"
USERS_PAGE = "/settings/users"
COMMUNITY_PACKAGES_PAGE = "/settings/community-nodes"
SOURCE_CONTROL_PAGE = "/settings/environments"
INSIGHTS_PAGE = "/insights"


def page_url(base_url: str, path: str, *ids: str | int) -> str:
    """Return the address of a page of the service; the ids replace each ``{}`` of the path.

    If an id could lead to another page, the address is that of the list of workflows, so that a report or a task with
    such an object still has one.
    """
    texts = [str(value) for value in ids]
    return base_url + (path.format(*texts) if all(map(is_plain_id, texts)) else WORKFLOWS_PAGE)


def execution_url(base_url: str, workflow_id: str, execution_id: str | int) -> str:
    return page_url(base_url, EXECUTION_PAGE, workflow_id, execution_id)


class ServiceLink(BaseOperatorLink):
    """Base of the links: the address is pushed as soon as it is known, so the button works while the task waits."""

    name = "Service"

    @property
    def xcom_key(self) -> str:
        """XCom key that holds the address."""
        return f"_link_{type(self).__name__}"

    def push(self, context: Context, url: str) -> None:
        """Let the button of this task instance lead to an address."""
        pushed = getattr(context.get("task"), "pushed_links", None)
        if pushed is not None and pushed.get(self.xcom_key) == url:
            return
        try:
            context["ti"].xcom_push(key=self.xcom_key, value=url)
        except Exception:  # noqa: BLE001 - Airflow writes those of a cleared attempt, and refuses one of two at once
            context["ti"].xcom_push(key=self.xcom_key, value=url)
        if pushed is not None:
            pushed[self.xcom_key] = url

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the pushed address, or an empty text if the task has not pushed one."""
        # Airflow also calls this in the process of the task, where it would log an error for each XCom that is missing.
        pushed: dict[str, str] | None = getattr(operator, "pushed_links", None)
        if pushed is not None:
            return pushed.get(self.xcom_key, "")
        from airflow.providers.common.compat.sdk import XCom

        return XCom.get_value(key=self.xcom_key, ti_key=ti_key) or ""


class ServiceWorkflowLink(ServiceLink):
    """Button to the workflow's page."""

    name = "Workflow"


class ServiceExecutionLink(ServiceLink):
    """Button to the execution's page."""

    name = "Execution"

    def push(self, context: Context, url: str) -> None:
        """Let the button of this task instance lead to an address, and keep it for the time after this attempt."""
        super().push(context, url)
        keep(context, "execution", url)


class ServiceDataTableLink(ServiceLink):
    """Button to the data table's page."""

    name = "Data table"


class ServicePageLink(ServiceLink):
    """Button to the page of the service that shows the task's subject."""

    name = "Service"


class ExecutionAddress(NamedTuple):
    base_url: str
    workflow_id: str
    execution_id: str


def read_execution_url(url: object) -> ExecutionAddress | None:
    """Read an address that :func:`execution_url` returned; None for any other text."""
    if not isinstance(url, str) or len(url) > 2_000:  # a longer text is not an address
        return None
    match = re.fullmatch(r"(https?://.+?)/workflow/([^/?#]+)/executions/([^/?#]+)", url)
    if not match or not all(map(is_plain_id, match.group(2, 3))):
        return None
    return ExecutionAddress(*match.groups())
