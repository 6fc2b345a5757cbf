"""The whole state of one simulated service: a store per resource, clock, keys and settings."""

from __future__ import annotations

import asyncio
import secrets
import string
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from airflow_provider_service.simulator._clock import Clock, Schedule, stamp
from airflow_provider_service.simulator._engine.engine import Engine, ExecutionStore
from airflow_provider_service.simulator._stores.audit import AuditStore, CommunityPackageStore
from airflow_provider_service.simulator._stores.credentials import CredentialStore
from airflow_provider_service.simulator._stores.folders import FolderStore
from airflow_provider_service.simulator._stores.projects import MEMBER_ROLE, ProjectStore, UserStore, VariableStore
from airflow_provider_service.simulator._stores.publishing import NodeTypes
from airflow_provider_service.simulator._stores.source_control import SourceControlStore
from airflow_provider_service.simulator._stores.workflows import TagStore, WorkflowStore
from airflow_provider_service.simulator._tables import TableStore
from airflow_provider_service.simulator._validation import NEWEST


@dataclass(frozen=True)
class ApiKey:
    """A key: its scopes (None: all) and the user it acts as."""

    secret: str = field(repr=False)
    scopes: frozenset[str] | None
    owner_id: str

    def allows(self, scope: str) -> bool:
        return self.scopes is None or scope in self.scopes


class State:
    """The state of the service. A store gets this object as its :class:`Host`, and the other stores that it uses."""

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
        self.version = NEWEST
        self.mcp_enabled = True
        self.mcp_key = f"mcp_{secrets.token_urlsafe(48)}"
        self.stopping = False
        self.booting_until: datetime | None = None
        self.owner_id = str(uuid.uuid4())
        self.personal_project_id = self.new_id()
        self.keys: dict[str, ApiKey] = {}
        self.schedule = Schedule()
        #: Number of requests that are held open.
        self.held = 0
        self._moved = asyncio.Event()
        self.executions = ExecutionStore()
        self.engine = Engine(self.clock, self.schedule, self.executions, concurrency_limit, has_workers=queue_mode)
        self.tags = TagStore(self)
        self.data_tables = TableStore(self)
        self.community_packages = CommunityPackageStore(self)
        self.users = UserStore(self)
        self.projects = ProjectStore(self, self.users)
        self.credentials = CredentialStore(self, self.projects)
        self.variables = VariableStore(self, self.projects)
        self.node_types = NodeTypes(self, self.community_packages.all)
        self.workflows = WorkflowStore(
            self, self.engine, self.users, self.projects, self.tags, self.credentials, self.node_types
        )
        self.folders = FolderStore(self, self.projects, self.workflows)
        self.audit = AuditStore(self, self.executions, self.workflows, self.credentials)
        self.source_control = SourceControlStore(
            self, self.tags, self.variables, self.credentials, self.projects, self.workflows
        )
        self.projects.add_personal(self.users.add_owner())

    @property
    def booting(self) -> bool:
        """Whether the service accepts connections but serves nothing yet."""
        return self.booting_until is not None and self.clock.now() < self.booting_until

    # ------------------------------------------------------------ operations on several stores

    def add_user(
        self, email: str, role: str = MEMBER_ROLE, *, first_name: str = "", last_name: str = ""
    ) -> dict[str, Any]:
        """Add an active user with a personal project, as if the user had been invited and had signed up."""
        return self._add_user(email, role, (first_name, last_name))

    def invite_users(self, invitations: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        """Invite (e-mail, role) pairs, all or none; return an invitation for each who is not an active user yet."""
        self.users.check_invitations(invitations)
        users = [self.users.find(email) or self._add_user(email, role, None) for email, role in invitations]
        return [self.users.invitation(user) for user in users if user["isPending"]]

    def _add_user(self, email: str, role: str, names: tuple[str, str] | None) -> dict[str, Any]:
        user = self.users.add(email, role, names)
        self.projects.add_personal(user)
        return user

    def delete_user(self, user_id: str, *, by: str) -> None:
        self.users.delete(user_id, by=by)
        self._delete_content(self.projects.delete_user(user_id))

    def delete_project(self, project_id: str) -> None:
        self.projects.delete(project_id)
        self._delete_content(project_id)

    def _delete_content(self, project_id: str) -> None:
        self.workflows.delete_project(project_id)
        self.credentials.delete_project(project_id)
        self.data_tables.delete_project(project_id)
        self.variables.delete_project(project_id)
        self.folders.delete_project(project_id)

    # ------------------------------------------------------------ ids, keys and time

    def new_id(self) -> str:
        return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(16))

    def stamp(self) -> str:
        return stamp(self.clock.now())

    def add_key(self, scopes: Iterable[str] | None = None, *, secret: str | None = None) -> ApiKey:
        """Create an API key of the owner; ``scopes`` None means all."""
        secret = secret or f"sim_{secrets.token_urlsafe(48)}"
        key = ApiKey(secret, None if scopes is None else frozenset(scopes), self.owner_id)
        self.keys[secret] = key
        return key

    def settle(self) -> None:
        self.schedule.run_due(self.clock.now())

    async def pause(self, seconds: float) -> None:
        """Hold a request for some seconds of the clock, or until the server stops."""
        end = self.clock.now() + timedelta(seconds=seconds)
        self.schedule.at(end, lambda _: None)
        await self.hold(lambda: self.clock.now() >= end)

    async def hold(self, reached: Callable[[], bool], has_left: Callable[[], Awaitable[bool]] | None = None) -> bool:
        """Hold a request open; return whether ``reached()`` came true before the server stopped or the caller left."""
        self.held += 1
        pause = 0.005
        try:
            while True:
                self.settle()
                if reached():
                    return True
                if self.stopping or (has_left is not None and await has_left()):
                    return False
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._moved.wait(), pause)
                pause = min(pause * 1.5, 0.05)
        finally:
            self.held -= 1

    def wake(self) -> None:
        """Make held requests look at the clock at once. Only the server's event loop may call this."""
        self._moved.set()
        self._moved = asyncio.Event()
