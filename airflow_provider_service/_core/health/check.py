"""A check of the health of workflows: which ones, over which window, against which thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_service._airflow.arguments import (
    Check,
    optional,
    read_count,
    read_seconds,
    refuse,
    require,
    require_flag,
)
from airflow_provider_service._airflow.references import OPTIONAL_TAG, OPTIONAL_WORKFLOW, PROJECT

if TYPE_CHECKING:
    from airflow_provider_service._airflow.references import Reference
    from airflow_provider_service._core.health.statistics import Thresholds

#: The arguments that name workflows, a tag or a project. All are template fields.
REFERENCES = (OPTIONAL_WORKFLOW, OPTIONAL_TAG, PROJECT)
NAMES = tuple(name for reference in REFERENCES for name in reference.fields)
DAY = timedelta(hours=24)
#: Default time between two polls: health changes slowly, and a poll reads all executions of the window.
POLL_SECONDS = 300.0


def read_rate(name: str, value: float | str) -> float:
    """Read a part of a whole.

    :raises ServiceInputError: it is not a number from 0 to 1.
    """
    try:
        rate = -1.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        rate = -1.0
    if not 0 <= rate <= 1:
        refuse(name, "a number from 0 to 1", value)
    return rate


_READERS: Mapping[str, Check] = {
    "window": read_seconds,
    "max_failure_rate": optional(read_rate),
    "max_age_of_success": optional(read_seconds),
    "min_runs": optional(partial(read_count, least=1)),
    "max_duration_median": optional(read_seconds),
    "max_duration_p95": optional(read_seconds),
}
#: The check for each argument that is not a template field; the operator and the sensor share them.
CHECKS: Mapping[str, Check] = {"all_workflows": require_flag, **_READERS}


@dataclass(frozen=True)
class HealthCheck:
    """A check of the health of workflows. It contains only values that a trigger may store.

    :param workflow_id: the workflow.
    :param workflow_name: the workflow's exact name, instead of its id.
    :param tag_id: a tag, for all workflows that have it.
    :param tag_name: the tag's exact name, instead of its id.
    :param project_id: the project of the workflows; on its own, it selects all of them.
    :param project_name: the project's exact name, instead of its id.
    :param all_workflows: True for the workflows of every project.
    :param window: seconds before now within which an execution that counts has started.
    :param max_failure_rate: and the rest: the thresholds, as in :class:`~.statistics.Thresholds`.
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
        """The check whose values are attributes of an operator or a sensor.

        :raises ServiceInputError: a value is invalid, or some do not go together.
        """
        return cls.of_values(**{field.name: getattr(holder, field.name) for field in fields(cls)})

    @classmethod
    def of_values(cls, **given: Any) -> HealthCheck:
        """The check with these values, in which times may be timedeltas.

        :raises ServiceInputError: a value is invalid, or some do not go together.
        """
        require_flag("all_workflows", given["all_workflows"])
        read: dict[str, Any] = {name: read_one(name, given[name]) for name, read_one in _READERS.items()}
        one = cls(**{**given, **read})
        for name in NAMES:
            if given[name] is not None and not str(given[name]).strip():
                refuse(name, "text that is not empty", given[name])
        for reference in REFERENCES:
            reference.check(one, are_rendered=True)
        chosen = [*one._given(OPTIONAL_WORKFLOW), *one._given(OPTIONAL_TAG), *(["all_workflows"] * one.all_workflows)]
        require(
            len(chosen) == 1 or (not chosen and one._given(PROJECT)),
            "give either a workflow, a tag, a project, or all_workflows=True",
        )
        if one.max_age_of_success is not None:
            require(
                one.max_age_of_success <= one.window,
                "max_age_of_success must not be longer than window, since only executions within it are read",
            )
        return one

    @property
    def names_workflows(self) -> bool:
        """Whether every workflow is chosen by the user, so that it counts even if it is not active and did not run."""
        return bool(self._given(OPTIONAL_WORKFLOW) or self._given(OPTIONAL_TAG))

    def _given(self, reference: Reference) -> list[str]:
        return [name for name in reference.fields if getattr(self, name) is not None]

    def to_arguments(self) -> dict[str, Any]:
        """The check as arguments of a trigger, which Airflow stores."""
        return asdict(self)

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds that every workflow must keep to."""
        from airflow_provider_service._core.health.statistics import Thresholds

        return Thresholds(**{field.name: getattr(self, field.name) for field in fields(Thresholds)})
