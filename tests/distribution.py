"""How several processes share a run: which tests run together, in which order, and which files each imports first."""

from __future__ import annotations

import importlib
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

#: What takes seconds to make once in each process, and the files that need it.
SHARED = {
    "Airflow's API": (
        "tests/dags/test_connection_form.py",
        "tests/dags/test_definition.py",
        "tests/dags/test_event_examples.py",
        "tests/dags/test_examples.py",
        "tests/dags/test_instance_examples.py",
        "tests/dags/test_mcp_examples.py",
        "tests/dags/test_run_examples.py",
        "tests/dags/test_waits.py",
        "tests/docs/test_guide_dags.py",
        "tests/docs/test_hook_dag.py",
        "tests/docs/test_task_pages.py",
        "tests/docs/test_whole_dag.py",
        "tests/plugins/",
    ),
    "the server of forks": ("tests/rows/test_killed_loads.py", "tests/runs/test_killed_"),
}


class ByFileOrNeed(LoadFileScheduling):
    """A process runs the tests of a file, or those of all files that need the same of what is shared."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((need for need, files in SHARED.items() if file.startswith(files)), file)


def spread_folders(items: list[pytest.Item]) -> None:
    """Order the files so that those of each folder are spread over the whole run.

    Some folders wait more than they compute. One after the other, they would leave the processors idle or crowded.
    Files that wait in real time begin earlier, so that the run does not end with one of them.
    """
    files = list(dict.fromkeys(item.path for item in items))
    wait = {item.path for item in items if item.get_closest_marker("real_time")}
    size, seen = Counter(file.parent for file in files), Counter[Path]()
    place = {}
    for file in files:
        place[file] = (seen[file.parent] + 0.5) / size[file.parent] * (0.8 if file in wait else 1)
        seen[file.parent] += 1
    items.sort(key=lambda item: place[item.path])


def import_own_share(folders: list[str], number: int, processes: int) -> None:
    """Import a share of the test files first, so that not all processes compile the same file at the same time.

    Every process needs all files. What one has compiled, the others only load; compiling takes longest.
    """
    root = Path(__file__).resolve().parent.parent
    files = sorted(file for folder in folders for file in Path(folder.split("::")[0]).resolve().rglob("test_*.py"))
    for file in files[number::processes]:
        with suppress(Exception, pytest.skip.Exception):  # pytest reports it when it imports the file itself
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
