"""The archive: ``manifest.json`` and one JSON file per entity, in a folder named after its kind, name and id."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_service.simulator.validation import ApiError

# Kind in the manifest to the entity's file name.
KINDS = {
    "projects": "project.json",
    "folders": "folder.json",
    "workflows": "workflow.json",
    "credentials": "credential.json",
    "variables": "variable.json",
    "tags": "tag.json",
}
METADATA = "workflow-metadata.json"
FORMAT_VERSION = "1"

_MAX_UNPACKED = 64 * 1024 * 1024
_MAX_FILES = 10_000


@dataclass
class Package:
    """The contents of an archive: entities by kind and id. A workflow also has ``publishedVersionId``."""

    source_version: str = "simulator"
    source_id: str = ""
    exported_at: str = ""
    entities: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {kind: {} for kind in KINDS})

    def add(self, kind: str, entity: Mapping[str, Any]) -> None:
        self.entities[kind][entity["id"]] = dict(entity)

    def counts(self) -> dict[str, int]:
        """The number of entities of each kind, for the export's header."""
        kinds = ("workflows", "folders", "credentials", "variables", "tags")
        return {**{kind: len(self.entities[kind]) for kind in kinds}, "dataTables": 0}


def write(package: Package) -> bytes:
    """Pack a package."""
    manifest: dict[str, Any] = {
        "packageFormatVersion": FORMAT_VERSION,
        "exportedAt": package.exported_at,
        "sourceN8nVersion": package.source_version,
        "sourceId": package.source_id,
    }
    files: dict[str, Any] = {}
    for kind, entities in package.entities.items():
        for entity in entities.values():
            target = f"{kind}/{_slug(entity['name'])}-{entity['id']}"
            manifest.setdefault(kind, []).append({"id": entity["id"], "name": entity["name"], "target": target})
            if kind == "workflows":
                files[f"{target}/{METADATA}"] = {"publishedVersionId": entity.get("publishedVersionId")}
            files[f"{target}/{KINDS[kind]}"] = {
                name: value for name, value in entity.items() if name != "publishedVersionId"
            }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in {"manifest.json": manifest, **files}.items():
            data = json.dumps(content, indent=1).encode()
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unnamed"


def read(content: bytes) -> Package:
    """Unpack a package in memory and within limits, because the archive is not trusted.

    :raises ApiError: 400 if it is not a package
    """
    try:
        files = _read_files(content)
        manifest = files["manifest.json"]
        package = Package(manifest["sourceN8nVersion"], manifest["sourceId"], manifest["exportedAt"])
        for kind, file_name in KINDS.items():
            for entry in manifest.get(kind, ()):
                entity = {**entry, **files[f"{entry['target']}/{file_name}"]}
                del entity["target"]
                if kind == "workflows":
                    entity.update(files.get(f"{entry['target']}/{METADATA}", {}))
                package.add(kind, entity)
    except (tarfile.TarError, OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ApiError(400, "Failed to read package archive") from error
    return package


def _read_files(content: bytes) -> dict[str, Any]:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        unpacked = stream.read(_MAX_UNPACKED + 1)
    if len(unpacked) > _MAX_UNPACKED:
        raise ValueError("the archive is too large")
    files: dict[str, Any] = {}
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
        for member in archive:
            opened = archive.extractfile(member) if member.isfile() else None
            if opened is not None:
                files[member.name] = json.loads(opened.read())
            if len(files) > _MAX_FILES:
                raise ValueError("the archive has too many files")
    return files
