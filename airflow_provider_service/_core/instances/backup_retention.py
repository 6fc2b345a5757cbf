"""Delete older backups of an instance: only archives whose contents identify them as such, whatever their names are."""

from __future__ import annotations

import logging
import sys
from datetime import datetime

from airflow_provider_service._core.instances.backup_archive import ENDING, ArchiveReader
from airflow_provider_service._core.stored_folders import StoredFolder
from airflow_provider_service.client.errors import ServiceError, ServiceInputError
from airflow_provider_service.client.models._moments import parse_moment

log = logging.getLogger(__name__)


def delete_older(address: str, keep: int, *, made_at: datetime, service: str) -> int:
    """Delete the older backups of an instance in the folder of a new one. Safe to repeat.

    :param address: path or address of the new backup, which is complete.
    :param keep: number of backups of the instance to keep, including the new one. Only older ones are ever deleted.
    :param made_at: when the new one was made, as its manifest says.
    :param service: address of the instance, as the manifest says.
    :returns: the number of deleted backups.
    :raises ServiceInputError: the folder cannot be listed.
    :raises ServiceError: some could not be deleted.
    """
    above, slash, own = address.rpartition("/")
    folder = StoredFolder("path", above or slash or ".")
    dates = {name: _made_at(folder, name, service) for name in folder.files(ENDING, depth=1) if name != own}
    known = sorted(((date, name) for name, date in dates.items() if date is not None), reverse=True)
    older = [name for date, name in known if date < made_at]
    kept = max(0, keep - 1 - (len(known) - len(older)))
    deleted, problems = 0, []
    for name in older[kept:]:
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


def _made_at(folder: StoredFolder, name: str, service: str) -> datetime | None:
    """Return when a backup of the instance was made; None for any other file."""
    if folder.is_link(name):
        return None
    try:
        with folder.opened(name) as file:
            manifest = ArchiveReader(file, max_bytes=sys.maxsize).manifest
        date = parse_moment(str(manifest.get("made_at")))
    except (ServiceInputError, OSError, ValueError) as error:
        log.info("%s in %s is not deleted: %s", name, folder.path, error)
        return None
    return date if manifest.get("service") == service else None
