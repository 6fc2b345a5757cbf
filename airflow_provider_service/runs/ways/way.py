"""What every way to start a workflow offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.runs.once import RunOnce, Starter
    from airflow_provider_service.runs.request import RunRequest
    from airflow_provider_service.runs.search import EarlierRuns


class Way(Protocol):
    """A way to start a workflow, for one request."""

    #: The word that asks for it.
    name: ClassVar[str]

    def __init__(self, request: RunRequest, client: ServiceClient) -> None: ...

    def obstacle(self) -> str | None:
        """Why this way cannot start the workflow and what would change that; None if nothing speaks against it."""

    def may_have_been_taken(self) -> bool:
        """Whether an earlier attempt may have taken this way: what it needed may be gone since."""

    def keeps_executions(self) -> bool:
        """Whether the executions that it searches are kept, so that one that was not found does not exist."""

    def earlier(self, once: RunOnce) -> EarlierRuns:
        """Find the executions that earlier attempts have started in this way."""

    def starter(self, once: RunOnce) -> Starter:
        """Check all that can be checked, and make the workflow ready; starts nothing.

        :raises ServiceInputError: the workflow cannot be started as it is asked for.
        """
