"""The status of source control: the changes that a push or a pull would make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, get_args

from airflow_provider_service._core.arguments import (
    SourceControlDirection,
    SourceControlState,
    as_texts,
    require,
    require_choice,
)
from airflow_provider_service.links.service import SOURCE_CONTROL_PAGE, page_url

if TYPE_CHECKING:
    from airflow_provider_service._core.waits.conditions import PollResult
    from airflow_provider_service.client import ServiceClient
    from airflow_provider_service.client.models import SourceControlledFile

_MAX_FILES_IN_XCOM = 200


@dataclass(frozen=True)
class SourceControlCheck:
    """Polls the changes that a push or a pull would make. Holds only values that a trigger can store."""

    direction: SourceControlDirection
    state: SourceControlState
    types: Sequence[str] | None

    @classmethod
    def of_values(cls, *, direction: Any, state: Any, types: Any) -> SourceControlCheck:
        require_choice("direction", direction, get_args(SourceControlDirection))
        require_choice("state", state, get_args(SourceControlState))
        return cls(direction, state, read_types(types))

    @property
    def subject(self) -> str:
        return "the status of source control"

    @property
    def unmet(self) -> str:
        return f"there were {'still' if self.state == 'unchanged' else 'no'} changes to {self.direction}"

    def poll(self, client: ServiceClient) -> PollResult:
        from airflow_provider_service._core.waits.conditions import PollResult

        files = [
            one
            for one in client.source_control.get_status(self.direction)
            if self.types is None or one.type in self.types
        ]
        url = page_url(client.base_url, SOURCE_CONTROL_PAGE)
        by_type = dict(Counter(one.type for one in files))
        message = f"{len(files)} objects to {self.direction} {by_type or ''}".rstrip()
        return PollResult(bool(files) == (self.state == "changed"), message, {**changes_in(files), "url": url})

    def to_arguments(self) -> dict[str, Any]:
        return asdict(self)


def read_types(types: Any) -> list[str] | None:
    from airflow_provider_service.client.resources._source_control import FileType

    if types is None:
        return None
    chosen = as_texts("types", types)
    require(chosen, "types is empty; leave it out for all types")
    for one in chosen:
        require_choice("each of types", one, get_args(FileType))
    return chosen


def changes_in(files: Sequence[SourceControlledFile]) -> dict[str, Any]:
    return {
        "count": len(files),
        "by_type": dict(Counter(one.type for one in files)),
        "by_status": dict(Counter(one.status for one in files)),
        "changes": _by_kind(files),
        "files": shown_files(files),
    }


def shown_files(files: Sequence[SourceControlledFile]) -> list[dict[str, Any]]:
    names = ("file", "type", "id", "name", "status", "conflict")
    return [{name: getattr(one, name) for name in names} for one in files[:_MAX_FILES_IN_XCOM]]


def _by_kind(files: Sequence[SourceControlledFile]) -> Mapping[str, Mapping[str, int]]:
    kinds = sorted({str(one.type) for one in files})
    return {kind: dict(Counter(str(one.status) for one in files if one.type == kind)) for kind in kinds}
