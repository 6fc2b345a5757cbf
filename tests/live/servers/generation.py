"""The generations of the server that the tests run against.

A generation is described by its ``package.json`` alone: the pinned version, the overrides that its dependencies need
and the script ``build-native``, which compiles the packages that hold native code.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from .node import node_version


@dataclass(frozen=True)
class Generation:
    """One pinned server."""

    name: str

    @property
    def manifest(self) -> Path:
        return Path(__file__).parent / "generations" / self.name / "package.json"

    @property
    def version(self) -> str:
        """The pinned version of the server, e.g. ``2.41.1``."""
        return str(json.loads(self.manifest.read_text())["dependencies"]["n8n"])

    @property
    def major(self) -> int:
        """The first number of the version."""
        return int(self.name.partition(".")[0])

    def has(self, version: str) -> bool:
        """Whether it is this version or a newer one: ``"2.35"``."""
        return _numbers(self.name) >= _numbers(version)

    @property
    def fingerprint(self) -> str:
        """Changes with the manifest and with the version of Node, against which the native code is compiled."""
        digest = hashlib.sha256(self.manifest.read_bytes())
        digest.update(node_version().encode())
        return digest.hexdigest()[:16]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


#: By name, the newest first.
GENERATIONS = {name: Generation(name) for name in ("2.41", "2.40", "2.39", "2.30", "2.20", "1.123")}
NEWEST = next(iter(GENERATIONS))
