"""Operator on source control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service.arguments import read_seconds, require_choice, require_flag
from airflow_provider_service.client.errors import ServiceApiError, ServiceConflictError
from airflow_provider_service.links import SOURCE_CONTROL_PAGE, ServicePageLink
from airflow_provider_service.operators._base import ServiceBaseOperator
from airflow_provider_service.task_arguments import LONG_CALL_SECONDS, as_rendered

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service.client.models.source_control import SourceControlledFile
    from airflow_provider_service.task_arguments import Duration, TaskArguments, Templated

_MAX_FILES_IN_XCOM = 200


class ServicePullSourceControlOperator(ServiceBaseOperator):
    """Pull the connected branch into the instance.

    Safe to repeat, but with ``force`` a repeat also discards local changes made since.

    :param force: discard local changes; with False, the default, changes that conflict with the pull fail the task.
    :param auto_publish: which of the pulled workflows to publish: ``"none"`` (the default), ``"all"``, or those that
        were ``"published"`` before.
    :param timeout: how long to wait for the pull: a timedelta, or seconds; 300 by default.
    :param service_conn_id: Airflow connection of type ``service``; ``service_default`` by default.
    :returns: ``{"count", "by_type", "by_status", "files", "url"}``; ``files`` lists the first 200 as
        ``{"file", "type", "id", "name", "status"}``.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "auto_publish")
    operator_extra_links = (ServicePageLink(),)
    checks = {"force": require_flag, "timeout": read_seconds}

    def __init__(
        self,
        *,
        force: bool = False,
        auto_publish: Templated[str] = "none",
        timeout: Duration = LONG_CALL_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.force = force
        self.auto_publish = as_rendered(auto_publish)
        self.timeout = timeout
        self.check_arguments()

    def perform(self, context: Context) -> dict[str, Any]:
        """Pull, and return what changed."""
        require_choice("auto_publish", self.auto_publish, ("none", "all", "published"))
        timeout = read_seconds("timeout", self.timeout)
        url = self.link_to(context, ServicePageLink(), SOURCE_CONTROL_PAGE)
        try:
            files = self.hook.source_control.pull(
                force=self.force,
                auto_publish=self.auto_publish,  # type: ignore[arg-type]
                timeout=timeout,
            )
        except ServiceConflictError as error:
            raise AirflowFailException(
                f"local changes conflict with the pull: {self._conflicts()}; force=True discards them. See {url}"
            ) from error
        by_type, by_status = Counter(one.type for one in files), Counter(one.status for one in files)
        self.log.info("Pulled %d objects %s: %s", len(files), dict(by_type), url)
        self._warn_of_unpublished(files)
        return {
            "count": len(files),
            "by_type": dict(by_type),
            "by_status": dict(by_status),
            "files": [
                {"file": one.file, "type": one.type, "id": one.id, "name": one.name, "status": one.status}
                for one in files[:_MAX_FILES_IN_XCOM]
            ],
            "url": url,
        }

    def _conflicts(self) -> str:
        # The answer itself is a bare list, which the message of an error would cut off.
        try:
            files = self.hook.source_control.get_status("pull")
        except ServiceApiError as error:
            return f"their names could not be read ({error})"
        conflicts = [one for one in files if one.conflict] or files
        return ", ".join(f"{one.type} {one.name!r} ({one.file})" for one in conflicts)

    def _warn_of_unpublished(self, files: Sequence[SourceControlledFile]) -> None:
        for one in files:
            if one.publishing_error:
                self.log.warning("Workflow %r was pulled, but not published: %s", one.name, one.publishing_error)
