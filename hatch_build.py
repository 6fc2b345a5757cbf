"""What the build adds to the metadata: addresses that only a release knows, and a README whose links lead there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class CustomMetadataHook(MetadataHookInterface):
    """Fills ``readme`` and ``urls``, which ``pyproject.toml`` declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add them to the metadata of the project."""
        sys.path.insert(0, self.root)
        try:
            from scripts.release.metadata import project_urls, readme
        finally:
            sys.path.remove(self.root)
        text = readme(Path(self.root, "README.md").read_text(), os.environ)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = project_urls(os.environ)
