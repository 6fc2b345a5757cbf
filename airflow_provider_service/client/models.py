"""Models of the service's answers, which the modules of the resources define."""

from airflow_provider_service.client._models import Null as Null
from airflow_provider_service.client._models import ServiceModel as ServiceModel
from airflow_provider_service.client._models import WebhookAnswer as WebhookAnswer
from airflow_provider_service.client._models import WebhookTrigger as WebhookTrigger
from airflow_provider_service.client.resources._audit import AuditReport as AuditReport
from airflow_provider_service.client.resources._audit import AuditSection as AuditSection
from airflow_provider_service.client.resources._community_packages import CommunityPackage as CommunityPackage
from airflow_provider_service.client.resources._community_packages import InstalledNode as InstalledNode
from airflow_provider_service.client.resources._credentials import Credential as Credential
from airflow_provider_service.client.resources._credentials import CredentialTest as CredentialTest
from airflow_provider_service.client.resources._credentials import DeletedCredential as DeletedCredential
from airflow_provider_service.client.resources._data_table_rows import ClearedRows as ClearedRows
from airflow_provider_service.client.resources._data_table_rows import Condition as Condition
from airflow_provider_service.client.resources._data_table_rows import InsertedRows as InsertedRows
from airflow_provider_service.client.resources._data_table_rows import RowFilter as RowFilter
from airflow_provider_service.client.resources._data_tables import Column as Column
from airflow_provider_service.client.resources._data_tables import DataTable as DataTable
from airflow_provider_service.client.resources._discovery import Capabilities as Capabilities
from airflow_provider_service.client.resources._discovery import DiscoveredEndpoint as DiscoveredEndpoint
from airflow_provider_service.client.resources._discovery import DiscoveredFilter as DiscoveredFilter
from airflow_provider_service.client.resources._discovery import DiscoveredResource as DiscoveredResource
from airflow_provider_service.client.resources._discovery import DiscoveryAnswer as DiscoveryAnswer
from airflow_provider_service.client.resources._executions import DeletedExecution as DeletedExecution
from airflow_provider_service.client.resources._executions import Execution as Execution
from airflow_provider_service.client.resources._executions import StoppedCount as StoppedCount
from airflow_provider_service.client.resources._executions import StoppedExecution as StoppedExecution
from airflow_provider_service.client.resources._folders import Folder as Folder
from airflow_provider_service.client.resources._folders import FolderItem as FolderItem
from airflow_provider_service.client.resources._insights import InsightsFigure as InsightsFigure
from airflow_provider_service.client.resources._insights import InsightsSummary as InsightsSummary
from airflow_provider_service.client.resources._mcp import StartedExecution as StartedExecution
from airflow_provider_service.client.resources._projects import Project as Project
from airflow_provider_service.client.resources._projects import ProjectUser as ProjectUser
from airflow_provider_service.client.resources._source_control import FileList as FileList
from airflow_provider_service.client.resources._source_control import SourceControlledFile as SourceControlledFile
from airflow_provider_service.client.resources._tags import Tag as Tag
from airflow_provider_service.client.resources._users import Invitation as Invitation
from airflow_provider_service.client.resources._users import InvitedUser as InvitedUser
from airflow_provider_service.client.resources._users import User as User
from airflow_provider_service.client.resources._variables import Variable as Variable
from airflow_provider_service.client.resources._workflows import Workflow as Workflow
from airflow_provider_service.client.resources._workflows import WorkflowVersion as WorkflowVersion

__all__ = [name for name in dir() if not name.startswith("_")]
