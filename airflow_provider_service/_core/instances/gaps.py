"""Objects that are left out of an export, a backup or a restore: their names, and the reasons."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_provider_service.client._constraints import NOT_PLAIN, is_plain_id
from airflow_provider_service.client._values import shown

if TYPE_CHECKING:
    from airflow_provider_service.client.models import DataTable, Project, Workflow

log = logging.getLogger(__name__)

Object = TypeVar("Object", "Workflow", "DataTable", "Project")


class Gap(NamedTuple):
    """Something that is left out, and the reason."""

    what: str
    why: str


class Gaps(list[Gap]):
    """A list of gaps without duplicates."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[Gap] = set()

    def note(self, gap: Gap) -> bool:
        """Add a gap, and return whether it is new."""
        is_new = gap not in self._known
        if is_new:
            self._known.add(gap)
            self.append(gap)
        return is_new

    def leave_out(self, kind: str, one: Workflow | DataTable | Project, why: str) -> None:
        """Add a gap for an object of an instance, and log a warning."""
        gap = Gap(f"{kind} {one.name!r} with the id {shown(one.id)}", why)
        if self.note(gap):
            log.warning("Left out: %s: %s", *gap)

    def addressable(self, kind: str, found: Iterable[Object]) -> list[Object]:
        """Return the objects that have valid ids, and add a gap for each of the others."""
        listed = list(found)
        for one in listed:
            if not is_plain_id(one.id):
                self.leave_out(kind, one, f"the id {NOT_PLAIN}")
        return [one for one in listed if is_plain_id(one.id)]
