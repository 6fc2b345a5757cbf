"""Models of the service's answers, one module per resource; loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_service.client._lazy import lazy_names

if TYPE_CHECKING:
    from airflow_provider_service.client.models._audit import AuditReport as AuditReport
    from airflow_provider_service.client.models._audit import AuditSection as AuditSection
    from airflow_provider_service.client.models._base import ServiceModel as ServiceModel
    from airflow_provider_service.client.models._community_packages import CommunityPackage as CommunityPackage
    from airflow_provider_service.client.models._community_packages import InstalledNode as InstalledNode
    from airflow_provider_service.client.models._credentials import Credential as Credential
    from airflow_provider_service.client.models._credentials import CredentialTest as CredentialTest
    from airflow_provider_service.client.models._credentials import DeletedCredential as DeletedCredential
    from airflow_provider_service.client.models._data_table_rows import ClearedRows as ClearedRows
    from airflow_provider_service.client.models._data_table_rows import Condition as Condition
    from airflow_provider_service.client.models._data_table_rows import InsertedRows as InsertedRows
    from airflow_provider_service.client.models._data_table_rows import RowFilter as RowFilter
    from airflow_provider_service.client.models._data_tables import Column as Column
    from airflow_provider_service.client.models._data_tables import DataTable as DataTable
    from airflow_provider_service.client.models._discovery import Capabilities as Capabilities
    from airflow_provider_service.client.models._discovery import DiscoveredEndpoint as DiscoveredEndpoint
    from airflow_provider_service.client.models._discovery import DiscoveredFilter as DiscoveredFilter
    from airflow_provider_service.client.models._discovery import DiscoveredResource as DiscoveredResource
    from airflow_provider_service.client.models._discovery import DiscoveryAnswer as DiscoveryAnswer
    from airflow_provider_service.client.models._executions import DeletedExecution as DeletedExecution
    from airflow_provider_service.client.models._executions import Execution as Execution
    from airflow_provider_service.client.models._executions import StoppedCount as StoppedCount
    from airflow_provider_service.client.models._executions import StoppedExecution as StoppedExecution
    from airflow_provider_service.client.models._folders import Folder as Folder
    from airflow_provider_service.client.models._folders import FolderItem as FolderItem
    from airflow_provider_service.client.models._insights import InsightsFigure as InsightsFigure
    from airflow_provider_service.client.models._insights import InsightsSummary as InsightsSummary
    from airflow_provider_service.client.models._mcp import StartedExecution as StartedExecution
    from airflow_provider_service.client.models._null import Null as Null
    from airflow_provider_service.client.models._projects import Project as Project
    from airflow_provider_service.client.models._projects import ProjectUser as ProjectUser
    from airflow_provider_service.client.models._source_control import FileList as FileList
    from airflow_provider_service.client.models._source_control import SourceControlledFile as SourceControlledFile
    from airflow_provider_service.client.models._tags import Tag as Tag
    from airflow_provider_service.client.models._users import Invitation as Invitation
    from airflow_provider_service.client.models._users import InvitedUser as InvitedUser
    from airflow_provider_service.client.models._users import User as User
    from airflow_provider_service.client.models._variables import Variable as Variable
    from airflow_provider_service.client.models._webhooks import WebhookAnswer as WebhookAnswer
    from airflow_provider_service.client.models._webhooks import WebhookTrigger as WebhookTrigger
    from airflow_provider_service.client.models._workflows import Workflow as Workflow
    from airflow_provider_service.client.models._workflows import WorkflowVersion as WorkflowVersion

__all__, __getattr__ = lazy_names(
    __name__,
    {
        "_audit": ["AuditReport", "AuditSection"],
        "_base": ["ServiceModel"],
        "_community_packages": ["CommunityPackage", "InstalledNode"],
        "_credentials": ["Credential", "CredentialTest", "DeletedCredential"],
        "_data_table_rows": ["ClearedRows", "Condition", "InsertedRows", "RowFilter"],
        "_data_tables": ["Column", "DataTable"],
        "_discovery": [
            "Capabilities",
            "DiscoveredEndpoint",
            "DiscoveredFilter",
            "DiscoveredResource",
            "DiscoveryAnswer",
        ],
        "_executions": ["DeletedExecution", "Execution", "StoppedCount", "StoppedExecution"],
        "_folders": ["Folder", "FolderItem"],
        "_insights": ["InsightsFigure", "InsightsSummary"],
        "_mcp": ["StartedExecution"],
        "_null": ["Null"],
        "_projects": ["Project", "ProjectUser"],
        "_source_control": ["FileList", "SourceControlledFile"],
        "_tags": ["Tag"],
        "_users": ["Invitation", "InvitedUser", "User"],
        "_variables": ["Variable"],
        "_webhooks": ["WebhookAnswer", "WebhookTrigger"],
        "_workflows": ["Workflow", "WorkflowVersion"],
    },
)
