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
        return Path(__file__).parent / f"generation_{self.name}" / "package.json"

    @property
    def version(self) -> str:
        """The pinned version of the server, e.g. ``2.40.7``."""
        return str(json.loads(self.manifest.read_text())["dependencies"]["n8n"])

    @property
    def fingerprint(self) -> str:
        """Changes with the manifest and with the version of Node, against which the native code is compiled."""
        digest = hashlib.sha256(self.manifest.read_bytes())
        digest.update(node_version().encode())
        return digest.hexdigest()[:16]


GENERATIONS = {name: Generation(name) for name in ("2", "1")}
