"""The security audit of the service's contents, and the community packages that may be installed if they are vetted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow_provider_service.simulator._engine.engine import ExecutionStore
from airflow_provider_service.simulator._host import Host
from airflow_provider_service.simulator._stores.credentials import CredentialStore
from airflow_provider_service.simulator._stores.workflows import Workflow, WorkflowStore
from airflow_provider_service.simulator._validation import ApiError

CATEGORIES = ("credentials", "database", "nodes", "filesystem", "instance")

_RISKY_NODES = ("code", "executeCommand", "ftp", "function", "functionItem", "httpRequest", "ssh")
_FILE_NODES = ("readBinaryFile", "readBinaryFiles", "readPdf", "spreadsheetFile", "writeBinaryFile")
_DATABASES_WITH_PARAMETERS = ("crateDb", "postgres", "questDb", "timescaleDb")
_DATABASE_NODES = (*_DATABASES_WITH_PARAMETERS, "microsoftSql", "mySql", "snowflake")
# A webhook counts as protected if one of these follows it, since it may check the input.
_CHECKING_NODES = ("code", "function", "functionItem", "if", "switch")


class AuditStore:
    """``reports`` overrides the derived reports, and is returned unchanged (``[]`` means that nothing was found)."""

    def __init__(
        self, host: Host, executions: ExecutionStore, workflows: WorkflowStore, credentials: CredentialStore
    ) -> None:
        self._host = host
        self._executions = executions
        self._workflows = workflows
        self._credentials = credentials
        self.reports: dict[str, Any] | list[Any] | None = None

    def generate(self, categories: Sequence[str] = (), days_abandoned: int | None = None) -> Any:
        """Create the reports of the categories (none: all), by title; ``[]`` if there are no findings."""
        if self.reports is not None:
            return self.reports
        reporters = {
            "credentials": lambda: self._needless_credentials(90 if days_abandoned is None else days_abandoned),
            "database": self._queries,
            "nodes": lambda: self._node_section("Official risky nodes", _RISKY_NODES),
            "filesystem": lambda: self._node_section("Nodes that interact with the filesystem", _FILE_NODES),
            "instance": self._instance,
        }
        reports = {
            f"{category.capitalize()} Risk Report": {"risk": category, "sections": sections}
            for category in categories or CATEGORIES
            if (sections := reporters[category]())
        }
        return reports or []

    # ------------------------------------------------------------ credentials

    def _needless_credentials(self, days: int) -> list[dict[str, Any]]:
        workflows = self._workflows.all()
        since = self._host.clock.now() - timedelta(days=days)
        recent = {run.workflow_id for run in self._executions if run.created_at >= since}
        uses = {
            "Credentials not used in any workflow": workflows,
            "Credentials not used in any active workflow": [each for each in workflows if each.active],
            "Credentials not used in recently executed workflows": [each for each in workflows if each.id in recent],
        }
        unused = {title: self._unused_credentials(users) for title, users in uses.items()}
        return _sections("Nothing needs these credentials.", "Delete them.", unused)

    def _unused_credentials(self, workflows: Iterable[Workflow]) -> list[dict[str, Any]]:
        used = {
            reference.get("id")
            for workflow in workflows
            for node in workflow.nodes
            for reference in (node.get("credentials") or {}).values()
            if isinstance(reference, dict)
        }
        return [
            {"kind": "credential", "id": credential["id"], "name": credential["name"]}
            for credential in self._credentials.all()
            if credential["id"] not in used
        ]

    # ------------------------------------------------------------ nodes

    def _node_section(self, title: str, kinds: Sequence[str]) -> list[dict[str, Any]]:
        places = [_place(workflow, node) for workflow, node in self._nodes() if _kind(node) in kinds]
        return _sections("These nodes can do harm.", "Check that each is needed.", {title: places})

    def _nodes(self) -> Iterator[tuple[Workflow, dict[str, Any]]]:
        for workflow in self._workflows.all():
            for node in workflow.nodes:
                yield workflow, node

    def _queries(self) -> list[dict[str, Any]]:
        queries = [
            (_kind(node), node.get("parameters") or {}, _place(workflow, node))
            for workflow, node in self._nodes()
            if _kind(node) in _DATABASE_NODES and (node.get("parameters") or {}).get("operation") == "executeQuery"
        ]
        query_parameters = [
            ((fields.get("additionalFields") or {}).get("queryParams"), place)
            for kind, fields, place in queries
            if kind in _DATABASES_WITH_PARAMETERS
        ]
        findings = {
            'Expressions in "Execute Query" fields in SQL nodes': [
                place for _, fields, place in queries if _is_expression(fields.get("query"))
            ],
            'Expressions in "Query Parameters" fields in SQL nodes': [
                place for parameters, place in query_parameters if _is_expression(parameters)
            ],
            'Unused "Query Parameters" fields in SQL nodes': [
                place for parameters, place in query_parameters if parameters is None
            ],
        }
        return _sections("Input may become part of a query.", "Use query parameters.", findings)

    # ------------------------------------------------------------ instance

    def _instance(self) -> list[dict[str, Any]]:
        unprotected = [
            _place(workflow, node)
            for workflow, node in self._nodes()
            if workflow.active_version is not None
            and _kind(node) == "webhook"
            and "authentication" not in (node.get("parameters") or {})
            and not _is_checked(workflow, node)
        ]
        overview = {
            "title": "Security settings",
            "description": "How this instance is configured.",
            "recommendation": "Check that each setting is intended.",
            "settings": {
                "features": {
                    "communityPackagesEnabled": True,
                    "publicApiEnabled": True,
                    "templatesEnabled": False,
                    "versionNotificationsEnabled": False,
                },
                "nodes": {"nodesExclude": "none", "nodesInclude": "none"},
                "telemetry": {"diagnosticsEnabled": False},
            },
        }
        webhooks = {"Unprotected webhooks in instance": unprotected}
        return [*_sections("Anyone can call these.", "Require authentication.", webhooks), overview]


def _kind(node: dict[str, Any]) -> str:
    package, _, kind = str(node["type"]).rpartition(".")
    return kind if package == "n8n-nodes-base" else ""


def _is_expression(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=")


def _is_checked(workflow: Workflow, webhook: dict[str, Any]) -> bool:
    outputs = (workflow.connections.get(webhook["name"]) or {}).get("main") or [None]
    next_names = {link["node"] for link in outputs[0] or []}
    return any(node["name"] in next_names and _kind(node) in _CHECKING_NODES for node in workflow.nodes)


def _place(workflow: Workflow, node: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "node",
        "workflowId": workflow.id,
        "workflowName": workflow.name,
        "nodeId": node["id"],
        "nodeName": node["name"],
        "nodeType": node["type"],
    }


def _sections(
    description: str, recommendation: str, places_by_title: dict[str, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    shared = {"description": description, "recommendation": recommendation}
    return [{"title": title, **shared, "location": places} for title, places in places_by_title.items() if places]


# ---------------------------------------------------------------- community packages

_NAME = re.compile(r"(@[^/@\s]+/)?n8n-nodes-\S+")


@dataclass(frozen=True)
class VettedPackage:
    """A package that can be installed: its versions (newest last) and the node types in it."""

    versions: tuple[str, ...] = ("1.0.0",)
    nodes: tuple[str, ...] = ("Example",)
    author_name: str = "Example Author"
    author_email: str = "author@example.com"


class CommunityPackageStore:
    """Installed packages; ``vetted`` maps names to the packages that may be installed, and tests may change it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._installed: dict[str, dict[str, Any]] = {}
        self.vetted = {
            "n8n-nodes-example": VettedPackage(versions=("0.9.0", "1.0.0")),
            "@example/n8n-nodes-scoped": VettedPackage(nodes=("Scoped",)),
        }

    def all(self) -> Sequence[dict[str, Any]]:
        return [self._describe(package) for package in self._installed.values()]

    def _describe(self, package: dict[str, Any]) -> dict[str, Any]:
        vetted = self.vetted.get(package["packageName"])
        if vetted is None or vetted.versions[-1] == package["installedVersion"]:
            return package
        return {**package, "updateAvailable": vetted.versions[-1]}

    def install(self, name: str, version: str | None = None, *, verify: bool = True) -> dict[str, Any]:
        if not name:
            raise ApiError(400, "Package name is required")
        vetted = self._find(name, version, verify=verify)
        if name in self._installed:
            raise ApiError(400, f'Package "{name}" is already installed')
        now = self._host.stamp()
        self._installed[name] = package = {
            "packageName": name,
            "installedVersion": version or vetted.versions[-1],
            "authorName": vetted.author_name,
            "authorEmail": vetted.author_email,
            "installedNodes": [
                {"name": node, "type": f"{name}.{node[0].lower()}{node[1:]}", "latestVersion": 1}
                for node in vetted.nodes
            ],
            "createdAt": now,
            "updatedAt": now,
        }
        return self._describe(package)

    def update(self, name: str, version: str | None = None, *, verify: bool = True) -> dict[str, Any]:
        vetted = self._find(name, version, verify=verify)
        package = self._package(name)
        package.update(installedVersion=version or vetted.versions[-1], updatedAt=self._host.stamp())
        return self._describe(package)

    def uninstall(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ApiError(400, "Package name must start with n8n-nodes-")
        del self._installed[self._package(name)["packageName"]]

    def _package(self, name: str) -> dict[str, Any]:
        if name not in self._installed:
            raise ApiError(404, "This package is not installed - you must install it first")
        return self._installed[name]

    def _find(self, name: str, version: str | None, *, verify: bool) -> VettedPackage:
        vetted = self.vetted.get(name)
        if vetted is None and verify:
            raise ApiError(400, f"Package {name} is not vetted for installation")
        if vetted is None or (version is not None and version not in vetted.versions):
            raise ApiError(500, f'Error loading package "{name}" :Package version does not exist')
        return vetted
