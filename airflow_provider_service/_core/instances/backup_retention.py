"""Delete older backups of an instance: only archives whose contents identify them as such, whatever their names are."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime

from airflow_provider_service._airflow.arguments import require_source
from airflow_provider_service._core.instances.backup_archive import ENDING, ArchiveReader
from airflow_provider_service._core.object_storage import exists
from airflow_provider_service._core.stored_folders import StoredFolder
from airflow_provider_service.client._models import parse_moment
from airflow_provider_service.client.errors import ServiceError, ServiceInputError

log = logging.getLogger(__name__)


# An instance that is in use has some of these. That it has no more tags, say, or that a table is empty, is usual.
_GUARDED = ("workflows", "credentials", "data_tables")


def require_replaceable(address: str, counts: Mapping[str, int], service: str, *, allow_empty: bool) -> None:
    """Refuse to replace a backup of the instance by one that holds nothing of a kind that the former holds.

    :param address: path or address of the backup, which may not exist yet.
    :param counts: numbers of objects in the new one, by kind.
    :raises ServiceInputError: the new one lacks a kind.
    """
    folder, own = _folder_of(address)
    former = _read(folder, own, service) if exists("path", address) else None
    lost = _lost(counts, [former[1]] if former else [])
    loss = "it would replace a backup that holds some"
    require_source(not lost, f"the new backup {address} holds no {', no '.join(lost)}", loss, allow_empty=allow_empty)


def delete_older(
    address: str, keep: int, *, made_at: datetime, service: str, counts: Mapping[str, int], allow_empty: bool
) -> int:
    """Delete the older backups of an instance in the folder of a new one. Safe to repeat.

    :param address: path or address of the new backup, which is complete.
    :param keep: number of backups of the instance to keep, including the new one. Only older ones are ever deleted.
    :param made_at: when the new one was made, as its manifest says.
    :param service: address of the instance, as the manifest says.
    :param counts: numbers of objects in the new one, by kind.
    :returns: the number of deleted backups.
    :raises ServiceInputError: the folder cannot be listed, or some would be deleted that hold what the new one lacks.
    :raises ServiceError: some could not be deleted.
    """
    folder, own = _folder_of(address)
    names = [name for name in folder.files(ENDING, depth=1) if name != own and not folder.is_link(name)]
    known = {name: one for name in names if (one := _read(folder, name, service)) is not None}
    older = sorted(
        (name for name, (date, _) in known.items() if date < made_at), key=lambda name: (known[name][0], name)
    )
    leaving = older[: max(0, len(known) + 1 - keep)]
    lost = _lost(counts, [known[name][1] for name in leaving])
    loss = f"keep={keep} would delete the {len(leaving)} older backups that hold some"
    require_source(not lost, f"the new backup {address} holds no {', no '.join(lost)}", loss, allow_empty=allow_empty)
    deleted, problems = 0, []
    for name in reversed(leaving):
        try:
            folder.delete(name)
        except FileNotFoundError:
            continue  # it has just been deleted by someone else
        except OSError as error:
            problems.append(f"{name}: {error}")
            continue
        deleted += 1
        log.info("Deleted the older backup %s in %s", name, folder.path)
    if problems:
        raise ServiceError(f"{address} is complete, but older backups could not be deleted: {'; '.join(problems)}")
    return deleted


def _lost(counts: Mapping[str, int], leaving: Iterable[Mapping[str, int]]) -> list[str]:
    """The kinds of objects that the new backup read and holds none of, but those that leave do."""
    held = {kind for one in leaving for kind, count in one.items() if count}
    return [kind.replace("_", " ") for kind in _GUARDED if counts.get(kind) == 0 and kind in held]


def _folder_of(address: str) -> tuple[StoredFolder, str]:
    above, slash, own = address.rpartition("/")
    return StoredFolder("path", above or slash or "."), own


def _read(folder: StoredFolder, name: str, service: str) -> tuple[datetime, Mapping[str, int]] | None:
    """Read when a backup of the instance was made, and what it holds; None for any other file."""
    try:
        with folder.opened(name) as file:
            manifest = ArchiveReader(file, max_bytes=sys.maxsize).manifest
        date = parse_moment(str(manifest.get("made_at")))
    except (ServiceInputError, OSError, ValueError) as error:
        log.info("%s in %s cannot be read as a backup: %s", name, folder.path, error)
        return None
    counts = manifest.get("counts")
    is_own = date is not None and manifest.get("service") == service
    return (date, counts if isinstance(counts, dict) else {}) if is_own else None
