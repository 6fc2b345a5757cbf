"""Operators that back up an instance and restore it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_service._core.arguments import as_rendered, read_count, require_choice
from airflow_provider_service._core.references import MAPPING
from airflow_provider_service.client._clock import clock
from airflow_provider_service.links.service import WORKFLOWS_PAGE
from airflow_provider_service.operators._base import RollingBackMixin, ServiceBaseOperator
from airflow_provider_service.operators._selection import from_dag_folder

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from typing_extensions import Unpack

    from airflow_provider_service._core.arguments import TaskArguments, Templated
    from airflow_provider_service._core.instances.restore_reading import StoredBackup
    from airflow_provider_service.operators.results import BackupResult, RestoreResult

__all__ = ["ServiceBackupOperator", "ServiceRestoreOperator"]


class ServiceBackupOperator(ServiceBaseOperator):
    """Back up an instance to one archive. Safe to repeat: the file is replaced once the new one is complete.

    The archive holds workflows with their drafts and pinned data, tags, data tables with their rows, credentials by
    name and type, and a list of users. If the plan of the server includes them, it also holds variables, folders, and
    projects with their members. It holds no secrets of credentials, but it does hold the values of variables and the
    rows of tables: give it only to people who may read them. Rows are streamed, so memory does not depend on the size
    of a table. The result lists what is not in the backup.

    :param path: path of the archive, ending in ``.zip``, or an address of object storage such as
        ``s3://my_conn@bucket/{{ ds }}.zip``. The archive is either complete or absent.
    :param keep: number of backups of this instance to keep in the folder of ``path``, including the new one. Older ones
        are deleted once the new one is complete. Whatever its name, an archive is deleted only if its contents identify
        it as a backup of the instance at this address. None (the default) to delete nothing.
    :param allow_empty: True to replace or delete backups that hold workflows, credentials or data tables even if the
        new one holds none of these; with False, the default, the task then fails, and the older ones stay.
    :param report_path: file for a report on the backup, on a disk or in object storage; its suffix chooses the
        format: ``.md``, ``.html`` or ``.json``. None (the default) for no file.
    :param service_conn_id: Airflow connection of type ``n8n`` or ``service``; ``service_default`` by default.
    :returns: a :class:`BackupResult`: the size and the checksum of the archive, the number of objects by kind, what is
        not in it, as ``{"what", "why"}``, and the number of older backups that were deleted.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (*ServiceBaseOperator.template_fields, "path", "report_path")

    def __init__(
        self,
        *,
        path: Templated[str],
        keep: int | None = None,
        allow_empty: bool = False,
        report_path: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.path = as_rendered(path)
        self.keep = keep
        self.allow_empty = allow_empty
        self.report_path = as_rendered(report_path)
        self.check_arguments()

    def perform(self, context: Context) -> BackupResult:
        from airflow_provider_service._core.instances.backup import write_backup
        from airflow_provider_service._core.instances.backup_archive import require_archive
        from airflow_provider_service._core.instances.restore import backup_report
        from airflow_provider_service._core.object_storage import require_place
        from airflow_provider_service._core.reports.report import require_report_place, write_report

        require_archive(self.path)
        require_place("path", self.path)
        require_report_place(self.report_path)
        url = self.link_page(context, WORKFLOWS_PAGE)
        keep = None if self.keep is None else read_count("keep", self.keep)
        made_at = clock().utcnow()
        backup = write_backup(
            self.hook,
            self.path,
            made_at=made_at,
            service=self.hook.config.base_url,
            keep=keep,
            allow_empty=self.allow_empty,
        )
        write_report(self.report_path, lambda: backup_report(backup, made_at=made_at, url=url))
        for gap in backup.gaps:
            self.log.info("Not in the backup: %s: %s", gap.what, gap.why)
        self.log.info("Backup written to %s, %d bytes: %s", backup.path, backup.size, dict(backup.counts))
        return cast("BackupResult", backup.to_result())


class ServiceRestoreOperator(RollingBackMixin, ServiceBaseOperator):
    """Bring an instance in line with a backup. Safe to repeat.

    The task checks the whole archive before it writes anything: members, sizes, checksums and every row. Then it writes
    what differs: tags, projects, folders, variables, credentials, tables with their rows, and finally the workflows,
    all or nothing, as ``ServiceDeployWorkflowsOperator`` does. It looks up each workflow by its id, or by its name if
    the instance does not have the id, and looks up everything that workflows refer to by name. At the end, it compares
    the instance with the backup again. It does not touch anything else in the instance. If the task is killed, its next
    attempt finishes the restore.

    Credentials are created without their secrets, which must be entered by hand. Users are not invited. Workflows that
    were active become active here as well, even if the original instance still runs them; with ``activate=False``, none
    becomes active.

    :param path: path of the archive, or an address of object storage.
    :param on_conflict: what to do with objects that exist and differ from the backup: ``"fail"`` (the default) before
        anything is written; ``"skip"`` them; or ``"update"`` them, which replaces workflows, values, and rows of
        tables.
    :param kinds: kinds of objects to restore: a list of ``"tags"``, ``"projects"`` with members and folders,
        ``"variables"``, ``"credentials"``, ``"data_tables"`` and ``"workflows"``. None (the default) for all.
    :param names: exact names of the objects of these kinds to restore, or the keys of variables. Each must be in the
        backup. None (the default) for all.
    :param mapping: names that differ between the backup and the instance, and values of nodes, such as
        ``{"credentials": {"Mail (test)": "Mail"}}``, likewise ``data_tables``, ``projects``, ``tags``, ``workflows``
        and ``values``; or the same as text in YAML or JSON. None (the default) if all names are the same.
    :param mapping_path: path or address of a YAML or JSON file with the mapping, instead of ``mapping``; templates in
        it are not rendered. A relative path starts at the folder of the DAG file.
    :param activate: True to activate all workflows, False to deactivate them; None (the default) to give each its state
        in the backup.
    :param allow_empty: True to let ``on_conflict="update"`` delete all rows of a data table of which the backup holds
        none; with False, the default, the task then fails before anything is written.
    :param preview: True to stop after the plan; False by default.
    :param max_unpacked_bytes: maximum size of the unpacked archive in bytes; 10 GiB by default.
    :param report_path: file for the plan, on a disk or in object storage; its suffix chooses the format: ``.md``,
        ``.html`` or ``.json``. It is written before anything is changed. None (the default) for no file.
    :param service_conn_id: Airflow connection of the instance to restore; ``service_default`` by default.
    :returns: a :class:`RestoreResult`: the outcome is ``"restored"``, ``"unchanged"`` or, with ``preview``,
        ``"planned"``. It also holds, by kind, the numbers of objects that were created, updated, unchanged and left,
        and the names of those that differ and were left unchanged; what could not be restored, as ``{"what", "why"}``;
        and the names of the credentials that were created.
    :raises AirflowFailException: an argument cannot be used, or a call failed in a way that no retry mends.
    :raises ServiceApiError: a call failed, and a retry may help.
    """

    template_fields: Sequence[str] = (
        *ServiceBaseOperator.template_fields,
        "path",
        "on_conflict",
        "kinds",
        "names",
        *MAPPING.fields,
        "report_path",
    )
    references = (MAPPING,)

    def __init__(
        self,
        *,
        path: Templated[str],
        on_conflict: Templated[str] = "fail",
        kinds: Templated[Sequence[str] | None] = None,
        names: Templated[Sequence[str] | None] = None,
        mapping: Templated[Mapping[str, Any] | str | None] = None,
        mapping_path: Templated[str | None] = None,
        activate: bool | None = None,
        allow_empty: bool = False,
        preview: bool = False,
        max_unpacked_bytes: int = 10 * 1024**3,
        report_path: Templated[str | None] = None,
        service_conn_id: Templated[str] = "service_default",
        **kwargs: Unpack[TaskArguments],
    ) -> None:
        super().__init__(service_conn_id=service_conn_id, **kwargs)
        self.path = as_rendered(path)
        self.on_conflict = as_rendered(on_conflict)
        self.kinds = as_rendered(kinds)
        self.names = as_rendered(names)
        self.mapping = as_rendered(mapping)
        self.mapping_path = as_rendered(mapping_path)
        self.activate = activate
        self.allow_empty = allow_empty
        self.preview = preview
        self.max_unpacked_bytes = max_unpacked_bytes
        self.report_path = as_rendered(report_path)
        self.check_arguments()

    def perform(self, context: Context) -> RestoreResult:
        from airflow_provider_service._core.instances.mapping import InstanceMapping
        from airflow_provider_service._core.instances.restore import ON_CONFLICT
        from airflow_provider_service._core.instances.restore_reading import RestoreScope, opened_backup
        from airflow_provider_service._core.reports.report import require_report_place

        require_choice("on_conflict", self.on_conflict, ON_CONFLICT)
        require_report_place(self.report_path)
        mapping = InstanceMapping.read(self.mapping, from_dag_folder(self.mapping_path, self))
        scope = RestoreScope.read(self.kinds, self.names, mapping)
        limit = read_count("max_unpacked_bytes", self.max_unpacked_bytes)
        url = self.link_page(context, WORKFLOWS_PAGE)
        with opened_backup(self.path, max_bytes=limit) as backup:
            return self._restore(scope.of(backup), url)

    def _restore(self, backup: StoredBackup, url: str) -> RestoreResult:
        from airflow_provider_service._core.instances.restore import Restore, restore_report
        from airflow_provider_service._core.reports.report import write_report

        manifest = backup.archive.manifest
        self.log.info("The backup of %s is intact: %s", manifest.get("made_at"), manifest.get("counts"))
        restore = Restore(self.hook, backup, self.on_conflict, self.activate, self.allow_empty)  # type: ignore[arg-type]
        plan = restore.plan()
        for line in plan.lines():
            self.log.info("%s", line)
        for gap in plan.gaps:
            self.log.warning("Not restored: %s: %s", gap.what, gap.why)
        made_at = clock().utcnow()
        write_report(self.report_path, lambda: restore_report(plan, manifest, made_at=made_at, url=url))
        if not self.preview:
            restore.carry_out(plan)
        return cast("RestoreResult", plan.to_result(preview=self.preview))
