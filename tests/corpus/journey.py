"""The way of a corpus through all that this provider does with workflows; what differs from what is expected of it."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_provider_service._core.instances.apply import apply_plan
from airflow_provider_service._core.instances.backup import write_backup
from airflow_provider_service._core.instances.export import ExportSelection, exported, write_folder
from airflow_provider_service._core.instances.plan import DeploymentPlan, DeploymentTarget, make_plan
from airflow_provider_service._core.instances.restore import Restore
from airflow_provider_service._core.instances.restore_reading import opened_backup
from airflow_provider_service._core.instances.source import read_source
from airflow_provider_service._core.pages.drawing import MAX_NODES, draw
from airflow_provider_service.client import ServiceClient
from airflow_provider_service.client.errors import ServiceError
from tests.corpus.workflows import NOTE, Definition, Sample


class Journey:
    """One journey.

    :param first: an instance that holds the credentials of the corpus, and no workflows.
    :param second: another one; what the first holds at the end is restored into it.
    :param is_known: whether the samples are of the generator, so that their faults are known.
    """

    def __init__(
        self, samples: Sequence[Sample], first: ServiceClient, second: ServiceClient, folder: Path, *, is_known: bool
    ) -> None:
        self._samples, self._first, self._second, self._folder = samples, first, second, folder
        self._is_known = is_known
        self.counts: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.refusals: dict[str, Counter[str]] = defaultdict(Counter)
        self.differences: list[str] = []

    def go(self) -> None:
        with self._step("planned"):
            accepted = self._accepted()
        self.counts["planned"] = len(accepted)
        self.counts["refused by the plan"] = len(self._samples) - len(accepted)
        deployable = [sample for sample in accepted if sample.fault is None]
        with self._step("read"):
            source = self._written(deployable)
            self.counts["read"] = len(read_source(source, from_file_names=True))
        with self._step("created"):
            self.counts["created"] = len(self._deploy(source).by_action()["create"])
        with self._step("unchanged the second time"):
            plan = self._deploy(source)
            self._count("unchanged the second time", plan)
        ids = [change.workflow_id for change in plan.changes]  # those that others call come first
        with self._step("activated"):
            self.counts["activated"] = sum(map(self._is_activated, ids))
        with self._step("exported equal"):
            export = str(self._folder / "export")
            write_folder(export, exported(self._first, ExportSelection(), pinned_data=True), code_files=True)
            self._count("exported equal", make_plan(read_source(export), DeploymentTarget(self._first)))
        with self._step("restored equal"):
            self._restore()
        with self._step("drawn"):
            self.counts["drawn"] = sum(map(self._is_drawn, ids))

    def lines(self) -> Iterator[str]:
        """A table of counts and seconds; what was refused, with the reasons; and what differs."""
        yield from ("| workflows | number | seconds |", "|---|---|---|", f"| made | {len(self._samples)} | |")
        for title, count in self.counts.items():
            seconds = f"{self.seconds[title]:.1f}" if title in self.seconds else ""
            yield f"| {title} | {count} | {seconds} |"
        for title, reasons in self.refusals.items():
            yield f"\n{title}:"
            yield from (f"  {count} x {reason}" for reason, count in reasons.most_common())
        yield f"\nDifferences: {len(self.differences)}"
        yield from (f"  {difference}" for difference in self.differences)

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[title] = time.perf_counter() - begin

    def _accepted(self) -> list[Sample]:
        faultless = [sample for sample in self._samples if sample.fault is None]
        try:
            make_plan(read_source([*map(_named, faultless)]), DeploymentTarget(self._first))
        except ServiceError:
            faultless = [sample for sample in faultless if self._is_planned(sample)]
        return faultless + [sample for sample in self._samples if sample.fault and self._is_planned(sample)]

    def _is_planned(self, sample: Sample) -> bool:
        """Plan a workflow alone, beside that which others call, so that each has its own reasons."""
        called = [one.definition for one in self._samples[:1] if self._is_known and one is not sample]
        try:
            make_plan(read_source([*called, _named(sample)]), DeploymentTarget(self._first))
        except ServiceError as refusal:
            if self._is_known and sample.fault is None:
                self.differences.append(f"{sample.file} is refused: {refusal.explanation} (shapes: {sample.shapes})")
            self.refusals["Refused by the plan"][sample.fault or _general(refusal)] += 1
            return False
        if sample.fault is not None:
            self.differences.append(f"{sample.file} is planned, in spite of its fault: {sample.fault}")
        return True

    def _written(self, samples: Sequence[Sample]) -> str:
        folder = self._folder / "source"
        folder.mkdir(parents=True)
        for sample in samples:
            (folder / f"{sample.file}.json").write_text(json.dumps(sample.definition))
        return str(folder)

    def _deploy(self, source: str) -> DeploymentPlan:
        target = DeploymentTarget(self._first)
        plan = make_plan(read_source(source, from_file_names=True), target, activate=False)
        apply_plan(plan, target)
        return plan

    def _count(self, title: str, plan: DeploymentPlan) -> None:
        """Count what does not change."""
        self.counts[title] = len(plan.changes) - len(plan.changed)
        self.differences += [f"not {title}: {change}: {'; '.join(change.diff)}" for change in plan.changed]

    def _is_activated(self, workflow_id: str) -> bool:
        try:
            self._first.workflows.activate(workflow_id)
        except ServiceError as refusal:
            self.refusals["Not activated"][_general(refusal)] += 1
            return False
        return True

    def _restore(self) -> None:
        path = str(self._folder / "backup.zip")
        write_backup(self._first, path, made_at=datetime.now(UTC), service="corpus")
        with opened_backup(path, max_bytes=1 << 30) as backup:
            restore = Restore(self._second, backup)
            restore.carry_out(restore.plan())
        before, after = (_definitions(client) for client in (self._first, self._second))
        equal = [name for name, definition in before.items() if after.get(name) == definition]
        self.counts["restored equal"] = len(equal)
        self.differences += [f"not restored equal: {name}" for name in before.keys() - {*equal}]

    def _is_drawn(self, workflow_id: str) -> bool:
        """Whether the drawing of a workflow has a box for each node, a line for each connection, and each note."""
        workflow = self._first.workflows.get(workflow_id).to_wire()
        drawing = draw(workflow)
        names = [node["name"] for node in workflow["nodes"] if node["type"] != NOTE][:MAX_NODES]
        links = [link for link in _links(workflow) if {*link} <= {*names}]
        expected = (sorted(names), len(links), len(workflow["nodes"]) - len(names))
        found = drawing and (sorted(box.node for box in drawing.boxes), len(drawing.lines), len(drawing.notes))
        if found == expected or (found is None and not names):
            return True
        self.differences.append(f"not drawn whole: {workflow['name']}")
        return False


def _named(sample: Sample) -> Definition:
    """A definition with the name of its file if it has none, as the editor imports it."""
    return {"name": sample.file, **sample.definition}


def _definitions(client: ServiceClient) -> dict[str, Any]:
    return {made["name"]: {**made, "id": None} for _, made in exported(client, ExportSelection(), pinned_data=True)}


def _links(workflow: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for source, kinds in workflow["connections"].items():
        for groups in kinds.values():
            yield from ((source, link["node"]) for group in groups for link in group or ())


def _general(error: ServiceError) -> str:
    """The reason of a refusal without names and numbers, shortened."""
    reason = str(getattr(error, "server_message", None) or error.explanation)
    return re.sub(r"\s+", " ", re.sub(r"'[^']*'|\"[^\"]*\"|\d+", "...", reason))[:160]
