"""The whole state of one simulated service: a store per resource, clock, keys and settings."""

from __future__ import annotations

import asyncio
import secrets
import string
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from airflow_provider_service.simulator.clock import Clock, stamp
from airflow_provider_service.simulator.engine.engine import Engine
from airflow_provider_service.simulator.engine.schedule import Schedule
from airflow_provider_service.simulator.stores.audit import AuditStore
from airflow_provider_service.simulator.stores.community_packages import CommunityPackageStore
from airflow_provider_service.simulator.stores.credentials import CredentialStore
from airflow_provider_service.simulator.stores.executions import ExecutionStore
from airflow_provider_service.simulator.stores.folders import FolderStore
from airflow_provider_service.simulator.stores.projects import ProjectStore
from airflow_provider_service.simulator.stores.source_control import SourceControlStore
from airflow_provider_service.simulator.stores.tags import TagStore
from airflow_provider_service.simulator.stores.test_runs import TestRunStore
from airflow_provider_service.simulator.stores.users import UserStore
from airflow_provider_service.simulator.stores.variables import VariableStore
from airflow_provider_service.simulator.stores.workflows import WorkflowStore
from airflow_provider_service.simulator.tables import TableStore

_ALPHABET = string.ascii_letters + string.digits


@dataclass(frozen=True)
class ApiKey:
    """A key: what it may do (``scopes`` None: everything) and as whom."""

    secret: str = field(repr=False)
    scopes: frozenset[str] | None
    owner_id: str

    def allows(self, scope: str) -> bool:
        return self.scopes is None or scope in self.scopes


class State:
    """Everything the service knows. Stores get this object and find each other through it."""

    def __init__(
        self,
        *,
        licensed: bool = True,
        concurrency_limit: int | None = None,
        queue_mode: bool = False,
        publish_delay: float = 0.1,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.licensed = licensed
        self.queue_mode = queue_mode
        self.publish_delay = publish_delay
        self.base_url = ""
        self.stopping = False
        self.booting_until: datetime | None = None
        self.owner_id = str(uuid.uuid4())
        self.personal_project_id = self.new_id()
        self._keys: dict[str, ApiKey] = {}
        self.schedule = Schedule()
        self.executions = ExecutionStore()
        self.engine = Engine(self.clock, self.schedule, self.executions, concurrency_limit, has_workers=queue_mode)
        self.workflows = WorkflowStore(self)
        self.tags = TagStore(self)
        self.credentials = CredentialStore(self)
        self.projects = ProjectStore(self)
        self.users = UserStore(self)
        self.users.add_owner()
        self.folders = FolderStore(self)
        self.variables = VariableStore(self)
        self.data_tables = TableStore(self)
        self.community_packages = CommunityPackageStore(self)
        self.test_runs = TestRunStore(self)
        self.audit = AuditStore(self)
        self.source_control = SourceControlStore(self)

    @property
    def owner_name(self) -> str:
        """The owner's full name, as authors of versions are written."""
        owner = self.users.get(self.owner_id)
        return f"{owner['firstName']} {owner['lastName']}"

    @property
    def booting(self) -> bool:
        """Whether the service accepts connections but serves nothing yet."""
        return self.booting_until is not None and self.clock.now() < self.booting_until

    def delete_project_content(self, project_id: str) -> None:
        """Delete whatever a deleted project held."""
        self.workflows.delete_project(project_id)
        self.credentials.delete_project(project_id)
        self.data_tables.delete_project(project_id)
        self.variables.delete_project(project_id)
        self.folders.delete_project(project_id)

    def new_id(self) -> str:
        """A fresh id as the service makes them: 16 alphanumerics."""
        return "".join(secrets.choice(_ALPHABET) for _ in range(16))

    def stamp(self) -> str:
        """The clock's moment as ``YYYY-MM-DDTHH:MM:SS.mmmZ``."""
        return stamp(self.clock.now())

    def add_key(self, scopes: Iterable[str] | None = None, *, secret: str | None = None) -> ApiKey:
        """Make an API key of the owner; ``scopes`` None means all."""
        secret = secret or f"sim_{secrets.token_urlsafe(48)}"
        key = ApiKey(secret, None if scopes is None else frozenset(scopes), self.owner_id)
        self._keys[secret] = key
        return key

    def find_key(self, secret: str) -> ApiKey | None:
        return self._keys.get(secret)

    def revoke_key(self, secret: str) -> None:
        self._keys.pop(secret, None)

    def settle(self) -> None:
        """Let everything happen that has fallen due on the clock."""
        self.schedule.run_due(self.clock.now())

    async def pause(self, seconds: float) -> None:
        """Sleep in real time, but no longer than the server runs."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not self.stopping and (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, 0.05))
