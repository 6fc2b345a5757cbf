"""Print the lines and files of each room of the package beside its budget, and fail above one.

``[tool.budgets]`` of ``pyproject.toml`` gives each room its lines and files. A room is named by its folders below the
package; what no room names belongs to ``rest``. Lower a budget when a room has become smaller; to raise one takes a
reason beside it.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REST, ALL = "rest", "all"


def sizes(package: Path, rooms: list[str]) -> dict[str, tuple[int, int]]:
    """The lines and files of each room, and of the whole package."""
    found = dict.fromkeys([*rooms, REST, ALL], (0, 0))
    for path in package.rglob("*.py"):
        place = path.relative_to(package)
        room = next((room for room in rooms if any(place.is_relative_to(part) for part in room.split())), REST)
        lines = len(path.read_text().splitlines())
        for name in (room, ALL):
            found[name] = (found[name][0] + lines, found[name][1] + 1)
    return found


def main(root: Path = ROOT) -> int:
    """Print the table; the exit status is 1 if a room is above its budget."""
    budgets = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["budgets"]
    rooms = [room for room in budgets if room not in (REST, ALL)]
    above = []
    print(f"{'room':<60}{'lines':>7}{'budget':>8}{'files':>7}{'budget':>8}")
    for room, (lines, files) in sizes(root / "airflow_provider_service", rooms).items():
        most_lines, most_files = budgets[room]
        print(f"{room:<60}{lines:>7}{most_lines:>8}{files:>7}{most_files:>8}")
        if lines > most_lines or files > most_files:
            above.append(room)
    if above:
        print(f"Above their budgets in pyproject.toml: {', '.join(above)}", file=sys.stderr)
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
