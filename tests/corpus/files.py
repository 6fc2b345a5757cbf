"""Workflows in files of others, to take them the same way as those of the corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.corpus.workflows import Sample


def read_files(folder: Path) -> list[Sample]:
    """Read all workflows in a folder, but not what is none; names and ids that others have are changed."""
    samples, names, ids = list[Sample](), set[str](), set[str]()
    for path in sorted(folder.rglob("*.json")):
        try:
            definition = json.loads(path.read_text(encoding="utf-8-sig"))
        except ValueError:
            continue
        if isinstance(definition, dict) and "nodes" in definition:
            name = definition.get("name") or path.stem
            name = f"{name[:100]} ({len(samples)})" if name in names else name
            names.add(name)
            workflow_id = None if definition.get("id") in ids else definition.get("id")
            ids.add(str(workflow_id))
            changed = {**definition, "name": name, "id": workflow_id}
            samples.append(Sample(f"{len(samples):04} {path.stem[:60]}", changed, [], None))
    return samples


def credentials_of(samples: Sequence[Sample]) -> list[tuple[str, str, dict[str, Any]]]:
    """Type, name and data of each credential that a workflow names."""
    named = {
        (kind, value if isinstance(value, str) else str(value.get("name")))
        for sample in samples
        for node in sample.definition["nodes"]
        for kind, value in (node.get("credentials") or {}).items()
        if value
    }
    return [(kind, name, {}) for kind, name in sorted(named)]
