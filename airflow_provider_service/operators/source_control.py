"""Operators for source control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_service._core.arguments import (
    LONG_CALL_SECONDS,
    as_rendered,
    as_texts,
    read_seconds,
    require,
    require_choice,
)
from airflow_provider_service.client.errors import ServiceApiError, ServiceConflictError
from airflow_provider_service.links.service import SOURCE_CONTROL_PAGE
from airflow_provider_service.operators._base import ServiceBaseOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated, TemplatedDuration
    from airflow_provider_service.client.models import SourceControlledFile
    from airflow_provider_service.operators.results import SourceControlResult

__all__ = ["ServicePullSourceControlOperator", "ServicePushSourceControlOperator"]

#: XCom key under which a task that fails on conflicts leaves the conflicting files.
CONFLICTS_KEY = "conflicts"

#: What conflicts, and what ``force`` does to it.
_CONFLICTS = {
    "pull": ("local changes conflict with the pull", "discards them"),
    "push": ("changes in the branch conflict with the push", "replaces them"),
}
_MAX_MESSAGE_CHARS = 1000


class _SourceControlOperator(ServiceBaseOperator):
    """Base class for operators that exchange changes with the connected branch."""

    direction: ClassVar[Literal["pull", "push"]]
    force: bool
    preview: bool
    timeout: TemplatedDuration

    def result(self, files: Sequence[SourceControlledFile], url: str) -> SourceControlResult:
        """Log and return the result of the task: the files that changed, or would change."""
        from airflow_provider_service._core.instances.source_control import changes_in

        changes = changes_in(files)
        did = f"Would {self.direction}" if self.preview else f"{self.direction.capitalize()}ed"
        self.log.info("%s %d objects %s: %s", did, len(files), changes["by_type"], url)
        return cast("SourceControlResult", {**changes, "preview": self.preview, "url": url})

    def conflict(
        self, context: Context, url: str, files: Sequence[SourceControlledFile] | None = None
    ) -> AirflowFailException:
        """Leave the conflicting files in XCom, and return the exception that fails the task; None to read them."""
        from airflow_provider_service._core.instances.source_control import shown_files

        what, remedy = _CONFLICTS[self.direction]
        try:
            if files is None:
                # The answer to a refused pull is a bare list of files, which an error message would cut short.
                status = self.hook.source_control.get_status(self.direction)
                files = [file for file in status if file.conflict] or status
            names = ", ".join(f"{file.type} {file.name!r} ({file.file})" for file in files)
            context["ti"].xcom_push(key=CONFLICTS_KEY, value=shown_files(files))
        except ServiceApiError as error:
            names = f"their names could not be read ({error})"
        return AirflowFailException(f"{what}: {names}; force=True {remedy}. See {url}")


class ServicePullSourceControlOperator(_SourceControlOperator):
    """Pull the connected branch into the instance.

    Safe to repeat, but with ``force`` a repeat also discards local changes made since. The service answers only when
    the pull has ended and shows no progress, so the task cannot be deferred. ``ServiceSourceControlSensor`` waits for
    changes to pull.

    :param force: True to discard local changes; with False, the default, changes that conflict with the pull fail the
        task.
    :param auto_publish: which of the pulled workflows to publish: ``"none"`` (the default), ``"all"``, or
        ``"published"`` for those that were published before.
    :param preview: True to return what a pull would change, without pulling; False by default.
    :param timeout: seconds, or a timedelta, to wait for the pull; 300 seconds by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`SourceControlResult`. ``changes`` holds the number of objects by type and status, as
        ``{"workflow": {"new": 2}}``; ``files`` lists the first 200 as ``{"file", "type", "id", "name", "status",
        "conflict"}``. A task that fails on conflicts leaves the conflicting files under the XCom key ``conflicts``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "auto_publish", "timeout")
    direction = "pull"

    def __init__(
        self,
        *,
        force: bool = False,
        auto_publish: Templated[str] = "none",
        preview: bool = False,
        timeout: TemplatedDuration = LONG_CALL_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.force = force
        self.preview = preview
        self.timeout = timeout
        self.auto_publish = as_rendered(auto_publish)
        self.check_arguments()

    def perform(self, context: Context) -> SourceControlResult:
        require_choice("auto_publish", self.auto_publish, ("none", "all", "published"))
        timeout = read_seconds("timeout", self.timeout)
        url = self.link_page(context, SOURCE_CONTROL_PAGE)
        if self.preview:
            return self.result(self.hook.source_control.get_status("pull"), url)
        try:
            files = self.hook.source_control.pull(
                force=self.force,
                auto_publish=self.auto_publish,  # type: ignore[arg-type]
                timeout=timeout,
            )
        except ServiceConflictError as error:
            raise self.conflict(context, url) from error
        for file in files:
            if file.publishing_error:
                self.log.warning("Workflow %r was pulled, but not published: %s", file.name, file.publishing_error)
        return self.result(files, url)


class ServicePushSourceControlOperator(_SourceControlOperator):
    """Commit local changes, and push them to the connected branch.

    Safe to repeat: changes are pushed only once. Without changes, there is no commit. The service answers only when the
    push has ended and shows no progress, so the task cannot be deferred.

    :param commit_message: message of the commit, 1 to 1000 characters.
    :param types: types of the objects to push: workflow, credential, tags, variables, file, folders, project or
        datatable; None (the default) for all.
    :param object_ids: ids of the objects to push, such as those of workflows; None (the default) for all that have
        changed. An empty list pushes nothing.
    :param force: True to push conflicting changes as well, which replaces those in the branch; with False, the default,
        conflicts fail the task, and nothing is pushed.
    :param preview: True to return what would be pushed, without pushing it; False by default.
    :param timeout: seconds, or a timedelta, to wait for the push; 300 seconds by default.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`SourceControlResult`. ``changes`` holds the number of objects by type and status, as
        ``{"workflow": {"modified": 2}}``; ``files`` lists the first 200 as ``{"file", "type", "id", "name", "status",
        "conflict"}``. A task that fails on conflicts leaves the conflicting files under the XCom key ``conflicts``.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "commit_message",
        "types",
        "object_ids",
        "timeout",
    )
    direction = "push"

    def __init__(
        self,
        *,
        commit_message: Templated[str],
        types: Templated[Sequence[str] | None] = None,
        object_ids: Templated[Sequence[str] | None] = None,
        force: bool = False,
        preview: bool = False,
        timeout: TemplatedDuration = LONG_CALL_SECONDS,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.force = force
        self.preview = preview
        self.timeout = timeout
        self.commit_message = as_rendered(commit_message)
        self.types = as_rendered(types)
        self.object_ids = as_rendered(object_ids)
        self.check_arguments()

    def perform(self, context: Context) -> SourceControlResult:
        from airflow_provider_service._core.instances.source_control import read_types

        timeout = read_seconds("timeout", self.timeout)
        message = self.commit_message
        require(
            isinstance(message, str) and len(message) <= _MAX_MESSAGE_CHARS,
            f"commit_message must be text of 1 to {_MAX_MESSAGE_CHARS} characters",
        )
        types = read_types(self.types)
        object_ids = None if self.object_ids is None else as_texts("object_ids", self.object_ids)
        url = self.link_page(context, SOURCE_CONTROL_PAGE)
        files = [
            file
            for file in self.hook.source_control.get_status("push")
            if (types is None or file.type in types) and (object_ids is None or file.id in object_ids)
        ]
        conflicts = [file for file in files if file.conflict]
        if conflicts and not (self.force or self.preview):
            raise self.conflict(context, url, conflicts)
        if files and not self.preview:
            names = [{"id": file.id, "type": file.type} for file in files]
            try:
                files = self.hook.source_control.push(message, names, force=self.force, timeout=timeout)
            except ServiceConflictError as error:
                raise self.conflict(context, url) from error
        return self.result(files, url)
