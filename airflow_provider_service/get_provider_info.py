"""The description of this provider for Airflow; imports nothing new, because Airflow reads it at every start."""

from __future__ import annotations

from typing import Any

__all__ = ["get_provider_info"]

#: What the connection form shows in empty fields, by type of connection.
_PLACEHOLDERS = {
    "n8n": {"host": "https://n8n.example.com", "password": "key created in n8n under Settings, n8n API"},
    "service": {"host": "https://service.example.com", "password": "key created in the service under Settings, API"},
}


def ui_field_behaviour(connection_type: str) -> dict[str, Any]:
    """What the form of a connection of type ``n8n`` or ``service`` hides, renames and shows in empty fields."""
    # Whoever reads the description before Airflow itself would otherwise import Airflow in a circle.
    from airflow import __version__

    port = "as in the base URL, or 443"
    if __version__ in ("3.3.1", "3.3.2"):
        port += f" (Airflow {__version__} needs it to test)"
    return {
        "hidden-fields": ["login", "schema"],
        "relabeling": {"host": "Base URL", "password": "API key"},
        "placeholders": {"port": port, **_PLACEHOLDERS[connection_type]},
    }


def _field(label: str, kind: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"label": label, "schema": {"type": [kind, "null"], **schema}, "description": description}


CONNECTION_FIELDS: dict[str, Any] = {
    "key_header": _field(
        "Key header", "string", "Header that carries the key; for n8n, choose the type n8n", default="X-SERVICE-API-KEY"
    ),
    # No default: the form would save it, and it would override the version in the base URL.
    "api_version": _field(
        "API version", "integer", "Number in the path of the API root; 1 unless the base URL contains it", minimum=1
    ),
    # Airflow rightly hides values of this name, too.
    "mcp_api_key": _field(
        "MCP key",
        "string",
        "Key of the server's MCP endpoint, created under Settings, Instance-level MCP",
        format="password",
    ),
    "webhook_base_url": _field(
        "Webhook base URL", "string", "Address that production webhooks are relative to, if it is not the base URL"
    ),
    "timeout": _field("Timeout", "number", "Seconds within which the whole answer must arrive", default=30),
    "connect_timeout": _field("Connect timeout", "number", "Seconds to wait for a connection", default=5),
    "retry_deadline": _field(
        "Retry deadline", "number", "Seconds within which all tries of a call must begin; 0: one try", default=60
    ),
    "verify": _field("Verify TLS", "string", "true, false, or the path of a CA bundle", default="true"),
    "cert": _field("Client certificate", "string", "Path of a certificate, or a JSON pair of certificate and key"),
    # Airflow rightly hides values of this name: an address can contain a password. It must not have a default, because
    # Airflow would offer it, and save it, as "***".
    "proxies": _field("Proxies", "string", 'Proxy by scheme as JSON: {"https": "http://proxy:3128"}'),
    "page_size": _field("Page size", "integer", "Items to request per page", default=250, minimum=1, maximum=250),
    "max_answer_mib": _field("Largest answer", "integer", "Largest answer to read, in MiB", default=256, minimum=1),
    # Airflow hides its value, as it must. It must not have a default, for the same reason as the proxies.
    "bridge_secret": _field(
        "Bridge secret",
        "string",
        "Text that all connections to one bridge share; by default the API key",
        format="password",
    ),
    "max_payload_mib": _field(
        "Largest payload", "number", "Largest body of a webhook in MiB: the server's N8N_PAYLOAD_SIZE_MAX", default=16
    ),
    "max_files_mib": _field(
        "Largest files",
        "number",
        "Total size of the files in a call, in MiB: the server's N8N_FORMDATA_FILE_SIZE_MAX",
        default=200,
    ),
}

_INTEGRATION = "Service"
_PACKAGE = "airflow_provider_service"


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": _INTEGRATION, "python-modules": [f"{_PACKAGE}.{name}" for name in names]}]


#: Assets of Airflow 3, and datasets of Airflow 2.
_ASSET_URIS = [
    {
        "schemes": ["service"],
        "handler": f"{_PACKAGE}.assets.service.sanitize_uri",
        "factory": f"{_PACKAGE}.assets.service.create_asset",
        "to_openlineage_converter": f"{_PACKAGE}.assets.service.convert_asset_to_openlineage",
    }
]


def _transfer(source: str, target: str, name: str) -> dict[str, Any]:
    return {
        "source-integration-name": source,
        "target-integration-name": target,
        "python-module": f"{_PACKAGE}.transfers.{name}",
    }


def get_provider_info() -> dict[str, Any]:
    """Describe the provider as Airflow's provider schema requires."""
    return {
        "package-name": "airflow-provider-service",
        "name": "Service (n8n)",
        "description": "Drive n8n, the workflow-automation service, from Airflow and wait for its executions.",
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["service"]}],
        "connection-types": [
            {
                "connection-type": "n8n",
                "hook-class-name": f"{_PACKAGE}.hooks.service.N8nHook",
                "hook-name": "n8n",
                "ui-field-behaviour": ui_field_behaviour("n8n"),
                # The type says which header carries the key.
                "conn-fields": {name: field for name, field in CONNECTION_FIELDS.items() if name != "key_header"},
            },
            {
                "connection-type": "service",
                "hook-class-name": f"{_PACKAGE}.hooks.service.ServiceHook",
                "hook-name": "Service",
                "ui-field-behaviour": ui_field_behaviour("service"),
                "conn-fields": CONNECTION_FIELDS,
            },
        ],
        "config": {
            "service": {
                "description": "How this deployment of Airflow presents itself to the service.",
                "options": {
                    "deployment": {
                        "description": (
                            "Name of this deployment. Only needed where several deployments of Airflow run the same "
                            "DAGs on one service and have the same base URL; it must differ then."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "production-blue",
                        "default": None,
                    },
                    "show_data": {
                        "description": (
                            "Whether the page of a task's execution shows the first items that its nodes put out, to "
                            "everybody who may read the task instance."
                        ),
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": None,
                        "default": "False",
                    },
                },
            }
        },
        "cli": [f"{_PACKAGE}._cli.commands.get_commands"],
        "hooks": _modules("hooks.service"),
        "operators": _modules(
            "operators.audit",
            "operators.backups",
            "operators.bridge",
            "operators.community_packages",
            "operators.credentials",
            "operators.data_tables",
            "operators.deployment",
            "operators.execution_selections",
            "operators.executions",
            "operators.generic",
            "operators.health",
            "operators.insights",
            "operators.instances",
            "operators.row_reads",
            "operators.rows",
            "operators.run_workflow",
            "operators.source_control",
            "operators.tags",
            "operators.users",
            "operators.variables",
            "operators.desired_state",
            "operators.workflows",
        ),
        "sensors": _modules("sensors.execution", "sensors.health", "sensors.rows", "sensors.source_control"),
        "triggers": _modules(
            "triggers.events", "triggers.execution", "triggers.health", "triggers.rows", "triggers.source_control"
        ),
        "transfers": [
            _transfer("Common SQL", _INTEGRATION, "sql_to_data_table"),
            _transfer("Common IO", _INTEGRATION, "object_storage_to_data_table"),
            _transfer(_INTEGRATION, "Common IO", "data_table_to_object_storage"),
            _transfer(_INTEGRATION, "Common SQL", "data_table_to_sql"),
        ],
        "asset-uris": _ASSET_URIS,
        "dataset-uris": _ASSET_URIS,
        "task-decorators": [
            {"name": "service_workflow", "class-name": f"{_PACKAGE}.decorators.run_workflow.service_workflow_task"}
        ],
        "notifications": [f"{_PACKAGE}.notifications.workflow.ServiceNotifier"],
        "extra-links": [
            f"{_PACKAGE}.links.service.ServiceDataTableLink",
            f"{_PACKAGE}.links.service.ServiceExecutionLink",
            f"{_PACKAGE}.links.service.ServicePageLink",
            f"{_PACKAGE}.links.service.ServiceWorkflowLink",
        ],
    }
