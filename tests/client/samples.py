"""Answers of the service as its contract documents them, complete in every field."""

from __future__ import annotations

from typing import Any

T1, T2 = "2026-01-02T03:04:05.006Z", "2026-02-03T04:05:06.700Z"
TIMES = {"createdAt": T1, "updatedAt": T2}


def page(*items: Any, cursor: str | None = None) -> dict[str, Any]:
    return {"data": list(items), "nextCursor": cursor}


TAG = {"id": "tagtagtagtagtag1", "name": "billing", **TIMES}
UPDATED_TAG = {"id": "tagtagtagtagtag1", "name": "billing", "updatedAt": T2}

NODE = {
    "id": "8d1e",
    "name": "Webhook",
    "type": "n8n-nodes-base.webhook",
    "typeVersion": 2.1,
    "position": [0, -1.5],
    "parameters": {"path": "orders", "options": {}, "retries": 3, "ratio": 3.0},
}
GRAPH = {
    "nodes": [NODE],
    "connections": {"Webhook": {"main": [[]]}},
    "nodeGroups": [{"id": "g1", "name": "In", "nodeIds": ["8d1e"]}],
}
PROJECT = {
    "id": "projectproject01",
    "name": "Data",
    "type": "team",
    "icon": {"type": "emoji", "value": "*"},
    "description": None,
    "customTelemetryTags": [{"key": "team", "value": "data"}],
    "creatorId": None,
    **TIMES,
}
CREATED_PROJECT = {**PROJECT, "role": "project:admin", "scopes": ["folder:create"]}
HISTORY_ITEM = {
    "versionId": "6f0d2a52-0000-4000-8000-000000000001",
    "workflowId": "workflowworkflow",
    "authors": "A. Author",
    "name": None,
    "description": "first",
    **TIMES,
}
VERSION = {**HISTORY_ITEM, **GRAPH, "autosaved": False}
PUBLISH_EVENT = {
    "id": 3,
    "workflowId": "workflowworkflow",
    "versionId": HISTORY_ITEM["versionId"],
    "event": "activated",
    "userId": None,
    "createdAt": T1,
}
WORKFLOW_ITEM = {
    "id": "workflowworkflow",
    "name": "Orders",
    "active": True,
    "activeVersionId": HISTORY_ITEM["versionId"],
    "versionId": HISTORY_ITEM["versionId"],
    "isArchived": False,
    "triggerCount": 1,
    **GRAPH,
    "settings": {"executionTimeout": 60, "timeSavedPerExecution": 1.5, "saveDataErrorExecution": "DEFAULT"},
    "staticData": None,
    "pinData": {"Webhook": [{"json": {"n": 1}}]},
    "meta": {"templateId": "7"},
    "tags": [TAG],
    "shared": [{"role": "workflow:owner", "workflowId": "workflowworkflow", "projectId": "projectproject01", **TIMES}],
    "activeVersion": VERSION,
    **TIMES,
}
WORKFLOW = {
    **WORKFLOW_ITEM,
    "description": None,
    "versionCounter": 4,
    "sourceWorkflowId": None,
    "activeVersion": {**VERSION, "workflowPublishHistory": [PUBLISH_EVENT]},
}
PUBLISHED_WORKFLOW = {name: value for name, value in WORKFLOW.items() if name not in ("tags", "shared")}
CREATED_WORKFLOW = {
    **WORKFLOW,
    "active": False,
    "activeVersionId": None,
    "activeVersion": None,
    "parentFolder": {"id": "folderfolder0001", "name": "In", "parentFolderId": None, **TIMES},
}
DELETED_WORKFLOW = {name: value for name, value in WORKFLOW.items() if name not in ("tags", "activeVersion")}

EXECUTION_ITEM = {
    "id": "7",
    "finished": False,
    "mode": "webhook",
    "retryOf": None,
    "retrySuccessId": None,
    "status": "waiting",
    "startedAt": T1,
    "stoppedAt": T2,
    "workflowId": "workflowworkflow",
    "waitTill": T2,
    "storedAt": "db",
    "jsonSizeBytes": 512,
    "workflowVersionId": None,
    "data": {"resultData": {"runData": {"Webhook": [{"startTime": 1767323045006, "executionTime": 0.5}]}}},
    "workflowData": {"id": "workflowworkflow", "name": "Orders", **GRAPH, "settings": {}},
    "customData": {"order": "17"},
    "dataTooLargeToDisplay": False,
}
EXECUTION = {
    **EXECUTION_ITEM,
    "createdAt": T1,
    "deletedAt": None,
    "tracingContext": {"traceparent": "00-0af7-b7ad-01"},
    "deduplicationKey": None,
    "binaryDataSizeBytes": 0,
    "usedPrivateCredentials": False,
}
RETRIED_EXECUTION = {
    "id": "8",
    "mode": "retry",
    "startedAt": T1,
    "workflowId": "workflowworkflow",
    "finished": False,
    "retryOf": "7",
    "status": "error",
    "waitTill": None,
    "data": {"resultData": {"error": {"message": "no"}}},
    "workflowData": {"id": "workflowworkflow"},
    "customData": {},
    "storedAt": "db",
    "annotation": {"vote": None},
}
DELETED_EXECUTION = {
    name: value
    for name, value in EXECUTION.items()
    if name not in ("data", "workflowData", "customData", "dataTooLargeToDisplay")
} | {"id": 7}
STOPPED_EXECUTION = {
    "mode": "webhook",
    "startedAt": "1970-01-01T00:00:00.000Z",
    "stoppedAt": T2,
    "finished": False,
    "status": "canceled",
}

CREDENTIAL = {
    "id": "credentialcreden",
    "name": "Header",
    "type": "httpHeaderAuth",
    "isManaged": False,
    "isGlobal": False,
    "isResolvable": True,
    "resolvableAllowFallback": False,
    "resolverId": None,
    **TIMES,
}
CREDENTIAL_ITEM = {
    "id": "credentialcreden",
    "name": "Header",
    "type": "httpHeaderAuth",
    **TIMES,
    "shared": [{"id": "projectproject01", "name": "Data", "role": "credential:owner", **TIMES}],
}
DELETED_CREDENTIAL = {**CREDENTIAL, "usageScope": "project"}
CREDENTIAL_SCHEMA = {
    "additionalProperties": False,
    "type": "object",
    "properties": {"name": {"type": "string"}, "hint": {"type": "notice"}},
    "required": ["name"],
    "allOf": [],
}
CREDENTIAL_TEST = {"status": "Error", "message": "No testing function found for this credential."}

COLUMN = {
    "id": "columncolumn0001",
    "dataTableId": "tabletabletable1",
    "name": "price",
    "type": "number",
    "index": 0,
    **TIMES,
}
DATA_TABLE = {
    "id": "tabletabletable1",
    "name": "orders",
    "projectId": "projectproject01",
    "columns": [{name: value for name, value in COLUMN.items() if name != "dataTableId"}],
    "sizeBytes": 4096,
    **TIMES,
}
ROW = {"id": 1, "price": 2.5, "count": 3, "paid": True, "note": None, "due": T1, **TIMES}

USER = {
    "id": "3d2f6c1e-0000-4000-8000-000000000001",
    "email": "a@example.com",
    "firstName": "A",
    "lastName": None,
    "role": "global:member",
    "isPending": False,
    "mfaEnabled": True,
    **TIMES,
}
INVITATION = {
    "user": {
        "id": USER["id"],
        "email": "a@example.com",
        "emailSent": False,
        "role": "global:member",
        "inviteAcceptUrl": "https://service.example.com/signup?token=t",
    },
    "error": "",
}
MEMBER = {
    "id": USER["id"],
    "email": "a@example.com",
    "firstName": None,
    "lastName": "B",
    "role": "project:viewer",
    **TIMES,
}
FOLDER = {"id": "folderfolder0001", "name": "In", "parentFolderId": None, **TIMES}
FOLDER_ITEM = {
    **FOLDER,
    "project": {"id": "projectproject01", "name": "Data", "type": "team", "icon": None},
    "tags": [{"id": "t", "name": "billing"}],
    "parentFolder": None,
    "workflowCount": 2,
    "subFolderCount": 0,
    "path": ["In"],
}
FOLDER_TOTALS = {**FOLDER, "totalSubFolders": 1, "totalWorkflows": 2}
VARIABLE = {"id": "variablevariable", "key": "rate", "value": "1.20", "type": "string", "project": PROJECT}

FILE = {
    "file": "workflows/w.json",
    "id": "workflowworkflow",
    "name": "Orders",
    "type": "workflow",
    "status": "modified",
    "location": "local",
    "conflict": False,
    "updatedAt": "2026-01-02T03:04:05Z",
    "pushed": True,
    "isLocalPublished": True,
    "isRemoteArchived": False,
    "parentFolderId": None,
    "folderPath": ["In"],
    "remoteFolderPath": [],
    "owner": {"type": "team", "projectId": "projectproject01", "projectName": "Data"},
    "publishingError": "review",
    "publishingErrorDetails": {"reason": "review_pending"},
    "contentImportPolicy": {"violations": [], "checkErrors": []},
}

COMMUNITY_PACKAGE = {
    "packageName": "n8n-nodes-example",
    "installedVersion": "1.2.3",
    "authorName": "A",
    "authorEmail": "a@example.com",
    "installedNodes": [{"name": "Example", "type": "n8n-nodes-example.example", "latestVersion": 1.1}],
    "updateAvailable": "1.3.0",
    "failedLoading": False,
    **TIMES,
}
INSIGHTS = {
    "total": {"value": 10, "deviation": -2, "unit": "count"},
    "failed": {"value": 1, "deviation": None, "unit": "count"},
    "failureRate": {"value": 0.1, "deviation": 0.05, "unit": "ratio"},
    "timeSaved": {"value": 1.0, "deviation": None, "unit": "minute"},
    "averageRunTime": {"value": 12.5, "deviation": None, "unit": "millisecond"},
}
AUDIT = {
    "Credentials Risk Report": {
        "risk": "credentials",
        "sections": [
            {
                "title": "Credentials not used in any workflow",
                "description": "They are not used.",
                "recommendation": "Delete them.",
                "location": [{"kind": "credential", "id": "1", "name": "Header"}],
            }
        ],
    }
}
CAPABILITIES = {
    "data": {
        "scopes": ["tag:list"],
        "resources": {
            "tags": {
                "operations": ["list"],
                "endpoints": [
                    {"method": "GET", "path": "/tags", "operationId": "getTags", "requestSchema": {"type": "object"}}
                ],
            }
        },
        "filters": {"resource": {"description": "Filter", "values": ["tags"]}},
        "specUrl": "/api/v1/openapi.yml",
    }
}
