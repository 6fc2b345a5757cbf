"""What a built wheel and sdist hold."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

_RELATIVE = re.compile(r"""(?:\]\(|src(?:set)?=")(?!https://|#)([^)"]+)""")
_URLS = {"Documentation", "Changelog", "Repository", "Issues"}
#: What users need to rebuild and to test the release.
_IN_THE_SDIST = ("README.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt", "tests/conftest.py")


def mistakes_in(wheel: Path, sdist: Path, version: str) -> list[str]:
    """What is wrong with the files, each as a sentence."""
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        found = _wrong_metadata(wheel.name, Parser().parsestr(files.read(metadata).decode()), version)
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
        [info] = [name for name in archive.getnames() if name.endswith("/PKG-INFO")]
        content = archive.extractfile(info)
        assert content is not None
        found += _wrong_metadata(sdist.name, Parser().parsestr(content.read().decode()), version)
    found += [f"{sdist.name} lacks {name}" for name in _IN_THE_SDIST if name not in inside]
    wanted = ("airflow_provider_service/py.typed", "airflow_provider_service/_core/reports/page.html.jinja")
    return found + [f"{wheel.name} lacks {name}" for name in wanted if name not in names]


def _wrong_metadata(name: str, metadata: Message, version: str) -> list[str]:
    found = []
    if metadata["Version"] != version:
        found.append(f"{name} is version {metadata['Version']}, not {version}")
    urls = {one.partition(",")[0] for one in metadata.get_all("Project-URL", [])}
    if urls != _URLS:
        found.append(f"{name} has the addresses {sorted(urls)}, not {sorted(_URLS)}")
    text = metadata.get_payload()
    assert isinstance(text, str)
    if len(text) < 1000:
        found.append(f"{name} has no README")
    return found + [f"the README of {name} has the relative link {link}" for link in _RELATIVE.findall(text)]
