"""Addresses of the service's pages, and the buttons that lead there. Addresses of pages are built only here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from airflow.providers.common.compat.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import BaseOperator, Context
    from airflow.sdk.types import TaskInstanceKey


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


_EXECUTION_ADDRESS = re.compile(r"(https?://.+?)/workflow/([^/?#]+)/executions/([^/?#]+)")


class ExecutionAddress(NamedTuple):
    """What the address of an execution's page names."""

    base_url: str
    workflow_id: str
    execution_id: str


def page_url(base_url: str, path: str, *ids: str | int) -> str:
    """Address of a page of the service; the encoded ids replace each ``{}`` of the path."""
    return base_url + path.format(*(quote(str(value), safe="") for value in ids))


def execution_url(base_url: str, workflow_id: str, execution_id: str | int) -> str:
    """Address of an execution's page."""
    return page_url(base_url, EXECUTION_PAGE, workflow_id, execution_id)


def read_execution_url(url: object) -> ExecutionAddress | None:
    """What :func:`execution_url` was made of; None for anything else."""
    found = _EXECUTION_ADDRESS.fullmatch(url) if isinstance(url, str) else None
    return ExecutionAddress(found[1], unquote(found[2]), unquote(found[3])) if found else None


class ServiceLink(BaseOperatorLink):
    """Base of the links: the address is pushed as soon as it is known, so the button works while the task waits."""

    name = "Service"

    @property
    def xcom_key(self) -> str:
        """XCom key that holds the address."""
        return f"_link_{type(self).__name__}"

    def push(self, context: Context, url: str) -> None:
        """Make the button of this task instance lead to an address."""
        context["ti"].xcom_push(key=self.xcom_key, value=url)

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the pushed address, or an empty text if the task did not get that far."""
        from airflow.providers.common.compat.sdk import XCom

        return XCom.get_value(key=self.xcom_key, ti_key=ti_key) or ""


class ServiceWorkflowLink(ServiceLink):
    """Button to the workflow's page."""

    name = "Workflow"


class ServiceExecutionLink(ServiceLink):
    """Button to the execution's page."""

    name = "Execution"


class ServiceDataTableLink(ServiceLink):
    """Button to the data table's page."""

    name = "Data table"


class ServicePageLink(ServiceLink):
    """Button to the page of the service that shows the task's subject."""

    name = "Service"
