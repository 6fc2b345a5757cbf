"""The contents of a backup, except rows, as models that are validated when they are read from an archive."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from airflow_provider_service._core.rows.options import COLUMN_TYPES
from airflow_provider_service.client._constraints import plain_id

#: Names of members and folders in an archive.
CONTENTS = "contents.json"
WORKFLOWS, TABLES = "workflows", "data_tables"

#: What no backup contains, and why.
NEVER_BACKED_UP = {
    "secrets of credentials": "the service never shows them; credentials are in the archive by name and type",
    "executions": "the history of executions cannot be written to an instance",
    "archived workflows": "a copy would take the name of a workflow that is in use",
    "earlier versions of workflows": "only what runs, and the draft, can be written to an instance",
    "state of workflows": "a running workflow changes its static data all the time",
    "folders of workflows": "the service does not show in which folder a workflow is",
    "folders of personal projects": "the service does not show which project belongs to the key's user",
    "ids and dates of rows": "the service gives new ones to rows that are inserted",
    "passwords and keys of users": "the service never shows them; users are in the archive as a list",
    "settings of the instance": "the API does not export license, settings, community packages, source control and MCP",
}


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class TagEntry(_Entry):
    """A tag."""

    name: str


class VariableEntry(_Entry):
    """A variable; ``project`` is the name of a team project, or None for the whole instance."""

    key: str
    value: str = Field(repr=False)
    project: str | None = None


class MemberEntry(_Entry):
    """A member of a project."""

    email: str
    role: str | None = None


class ProjectEntry(_Entry):
    """A team project, with the paths of its folders."""

    name: str
    members: list[MemberEntry] = Field(default_factory=list)
    folders: list[list[str]] = Field(default_factory=list)


class CredentialEntry(_Entry):
    """A credential without its secrets."""

    name: str
    type: str
    project: str | None = None


class UserEntry(_Entry):
    """A user; only for information, since a restore does not invite users."""

    email: str
    first_name: str | None = None
    last_name: str | None = None
    role: str | None = None


class ColumnEntry(_Entry):
    """A column of a data table."""

    name: str
    type: Literal["string", "number", "boolean", "date"]


assert set(COLUMN_TYPES) == {"string", "number", "boolean", "date"}  # noqa: S101 - one list for people, one for checks


class TableEntry(_Entry):
    """A data table, and the member of the archive that holds its rows."""

    id: Annotated[str, AfterValidator(plain_id)] | None = None
    name: str
    project: str | None = None
    columns: list[ColumnEntry]
    rows: int
    file: str

    @property
    def types(self) -> dict[str, str]:
        """The types of the columns, by name."""
        return {one.name: one.type for one in self.columns}


class WorkflowEntry(_Entry):
    """A workflow: the version that runs, and the draft if it differs."""

    id: Annotated[str, AfterValidator(plain_id)]
    project: str | None = None
    definition: dict[str, Any]
    draft: dict[str, Any] | None = None


class Contents(_Entry):
    """The contents of a backup, except workflows and rows. A kind that could not be backed up is None."""

    tags: list[TagEntry]
    variables: list[VariableEntry] | None
    projects: list[ProjectEntry] | None
    credentials: list[CredentialEntry] | None
    users: list[UserEntry] | None
    data_tables: list[TableEntry] | None
