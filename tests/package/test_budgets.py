"""A room that has become larger than its budget fails ``make lint``."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import budgets


@pytest.mark.parametrize(("most", "status"), [((2, 1), 0), ((1, 1), 1), ((2, 0), 1)])
def test_a_room_above_its_budget_fails(
    most: tuple[int, int], status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room = tmp_path / "airflow_provider_service" / "client"
    room.mkdir(parents=True)
    (room / "a.py").write_text("a = 1\nb = 2\n")
    table = f'[tool.budgets]\n"client" = {list(most)}\nrest = [0, 0]\nall = [2, 1]\n'
    (tmp_path / "pyproject.toml").write_text(table)

    assert budgets.main(tmp_path) == status
    assert ("client" in capsys.readouterr().err) == bool(status)
