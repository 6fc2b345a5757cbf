"""The reports on a backup, and on a restore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.reports.files import WRITTEN_FIRST
from airflow_provider_service._core.reports.report import Figure, Listing, Report, Table

if TYPE_CHECKING:
    from airflow_provider_service._core.instances.backup import Backup
    from airflow_provider_service._core.instances.gaps import Gap
    from airflow_provider_service._core.instances.restore import RestorePlan


def backup_report(backup: Backup, *, made_at: datetime, url: str) -> Report:
    """Return the report on a backup.

    :param url: page of the service to link to.
    """
    return Report(
        title="Backup",
        message=f"The backup was written to {backup.path}.",
        made_at=made_at,
        url=url,
        figures=[
            *(Figure(_words(kind), count) for kind, count in backup.counts.items()),
            Figure("Bytes", backup.size),
            Figure("Older backups deleted", backup.deleted),
        ],
        parts=[_gaps("Not in the backup", backup.gaps), Listing("SHA-256 of the archive", backup.sha256)],
    )


def restore_report(plan: RestorePlan, manifest: Mapping[str, Any], *, made_at: datetime, url: str) -> Report:
    """Return the report on the plan of a restore.

    :param manifest: the manifest of the archive.
    :param url: page of the service to link to.
    """
    counts = plan.counts()
    return Report(
        title="Plan of a restore",
        message="Nothing has to be changed."
        if plan.is_empty
        else f"The plan brings the instance in line with the backup. {WRITTEN_FIRST}",
        made_at=made_at,
        url=url,
        figures=[
            Figure("Backup of", str(manifest.get("made_at"))),
            *(
                Figure(action.capitalize(), sum(one.get(action, 0) for one in counts.values()))
                for action in ("created", "updated", "unchanged", "left")
            ),
        ],
        parts=[
            Table(
                "Objects",
                ("Kind", "Created", "Updated", "Unchanged", "Left as they are"),
                [
                    (_words(kind), one["created"], one["updated"], one["unchanged"], one["left"])
                    for kind, one in counts.items()
                ],
            ),
            _gaps("Not restored", plan.gaps),
            Listing("Changes", "\n".join(plan.lines())),
        ],
    )


def _gaps(title: str, gaps: Sequence[Gap]) -> Table:
    return Table(title, ("What", "Why"), [tuple(one) for one in gaps])


def _words(kind: str) -> str:
    return kind.replace("_", " ").capitalize()
