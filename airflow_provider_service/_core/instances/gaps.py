"""What is left out of an export or a backup, and what a restore does not restore: by name, and with the reason."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_provider_service.client._ids import NOT_PLAIN, is_plain_id
from airflow_provider_service.client._texts import shown

if TYPE_CHECKING:
    from airflow_provider_service.client.models import DataTable, Project, Workflow

log = logging.getLogger(__name__)

Object = TypeVar("Object", "Workflow", "DataTable", "Project")


class Gap(NamedTuple):
    """Something that is left out, and the reason."""

    what: str
    why: str


class Gaps(list[Gap]):
    """What is left out, each once."""

    def note(self, gap: Gap) -> bool:
        """Add a gap, and return whether it is new."""
        is_new = gap not in self
        if is_new:
            self.append(gap)
        return is_new

    def leave_out(self, kind: str, one: Workflow | DataTable | Project, why: str) -> None:
        """Make an object of an instance a gap, with a warning."""
        gap = Gap(f"{kind} {one.name!r} with the id {shown(one.id)}", why)
        if self.note(gap):
            log.warning("Left out: %s: %s", *gap)

    def addressable(self, kind: str, found: Iterable[Object]) -> list[Object]:
        """Those of an instance's objects that can be read by their ids; each other one becomes a gap."""
        listed = list(found)
        for one in listed:
            if not is_plain_id(one.id):
                self.leave_out(kind, one, f"the id {NOT_PLAIN}")
        return [one for one in listed if is_plain_id(one.id)]
