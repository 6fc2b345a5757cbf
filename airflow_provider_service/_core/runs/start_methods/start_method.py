"""The interface of every start method."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from airflow_provider_service._core.runs.idempotent_start import IdempotentStart, Starter
    from airflow_provider_service._core.runs.request import RunRequest
    from airflow_provider_service._core.runs.search import EarlierRuns
    from airflow_provider_service.client import ServiceClient


class StartMethod(Protocol):
    """A start method, for one request."""

    #: The value of ``start`` that chooses it.
    name: ClassVar[str]

    def __init__(self, request: RunRequest, client: ServiceClient) -> None: ...

    def reason_unavailable(self) -> str | None:
        """Say why this method cannot start the workflow, and what would change that; None if it can."""

    def may_have_been_used(self) -> bool:
        """Whether an earlier attempt may have used this method, even if it is no longer available."""

    def keeps_executions(self) -> bool:
        """Whether the service keeps the executions that this method starts: then what is not found does not exist."""

    def earlier(self, start: IdempotentStart) -> EarlierRuns:
        """Find the executions that earlier attempts have started with this method; starts nothing."""

    def starter(self, start: IdempotentStart) -> Starter:
        """Check all that can be checked, and make the workflow ready; starts nothing.

        :raises ServiceInputError: the workflow cannot be started as requested.
        """
