"""A check of the health of workflows: which ones, over which window, against which thresholds.

Operators and sensors load this module with each DAG file; what counts executions is in :mod:`~.statistics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._core.arguments import (
    Check,
    optional,
    read_count,
    read_seconds,
    refuse,
    require,
    require_flag,
)
from airflow_provider_service._core.references import OPTIONAL_TAG, OPTIONAL_WORKFLOW, PROJECT

if TYPE_CHECKING:
    from airflow_provider_service._core.references import Reference


#: The arguments that name workflows, a tag or a project. All are template fields.
REFERENCES = (OPTIONAL_WORKFLOW, OPTIONAL_TAG, PROJECT)
NAMES = tuple(name for reference in REFERENCES for name in reference.fields)
DAY = timedelta(hours=24)
#: Default time between two polls: health changes slowly, and a poll reads all executions of the window.
HEALTH_POLL_SECONDS = 300.0


def _read_rate(name: str, value: float | str) -> float:
    try:
        rate = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        rate = -1.0
    if not 0 <= rate <= 1:
        refuse(name, "a number from 0 to 1", value)
    return rate


_THRESHOLDS: Mapping[str, Check] = {
    "max_failure_rate": optional(_read_rate),
    "max_age_of_success": optional(read_seconds),
    "min_runs": optional(partial(read_count, least=1)),
    "max_duration_median": optional(read_seconds),
    "max_duration_p95": optional(read_seconds),
}
#: The check for each argument that is not a template field; the operator and the sensor share them.
CHECKS: Mapping[str, Check] = {"all_workflows": require_flag, "window": read_seconds, **_THRESHOLDS}


@dataclass(frozen=True)
class HealthCheck:
    """A check of the health of workflows. It contains only values that a trigger may store, with times in seconds.

    :param project_id: on its own, it selects all workflows of the project.
    :param window: time before now within which an execution that counts has started.
    :param max_failure_rate: and the rest: what every workflow must keep to; None for no limit.
    """

    workflow_id: str | None
    workflow_name: str | None
    tag_id: str | None
    tag_name: str | None
    project_id: str | None
    project_name: str | None
    all_workflows: bool
    window: float
    max_failure_rate: float | None
    max_age_of_success: float | None
    min_runs: int | None
    max_duration_median: float | None
    max_duration_p95: float | None

    @classmethod
    def of(cls, holder: object) -> HealthCheck:
        return cls.of_values(**{field.name: getattr(holder, field.name) for field in fields(cls)})

    @classmethod
    def of_values(cls, **values: Any) -> HealthCheck:
        """The check with these values, in which times may be timedeltas."""
        require_flag("all_workflows", values["all_workflows"])
        read: dict[str, Any] = {name: CHECKS[name](name, values[name]) for name in ("window", *_THRESHOLDS)}
        check = cls(**{**values, **read})
        for name in NAMES:
            if values[name] is not None and not str(values[name]).strip():
                refuse(name, "text that is not empty", values[name])
        for reference in REFERENCES:
            reference.check(check, are_rendered=True)
        chosen = [check._names(OPTIONAL_WORKFLOW), check._names(OPTIONAL_TAG), check.all_workflows]
        require(
            sum(chosen) == 1 or (not any(chosen) and check._names(PROJECT)),
            "give either a workflow, a tag, a project, or all_workflows=True",
        )
        if check.max_age_of_success is not None:
            require(
                check.max_age_of_success <= check.window,
                "max_age_of_success must not be longer than window, since only executions within it are read",
            )
        return check

    @property
    def names_workflows(self) -> bool:
        """Whether every workflow is chosen by the user, so that it counts even if it is not active and did not run."""
        return self._names(OPTIONAL_WORKFLOW) or self._names(OPTIONAL_TAG)

    def _names(self, reference: Reference) -> bool:
        return any(getattr(self, name) is not None for name in reference.fields)

    @property
    def judges(self) -> bool:
        """Whether it judges workflows, and does not only count their runs."""
        return any(getattr(self, name) is not None for name in _THRESHOLDS)
