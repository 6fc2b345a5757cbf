"""Rows as files that are complete or not there."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

from airflow_provider_service.operators._base import require

Row = dict[str, Any]


def write_rows(path: str, columns: Sequence[str], rows: Iterable[Row]) -> int:
    """Write rows to a file, one at a time, and return their number.

    The file gets its name when it is complete; a failure leaves what was there before.

    :param path: ends in ``.csv`` or ``.jsonl``; its directory exists.
    :param columns: columns in their order.
    :raises AirflowFailException: another ending, or no such directory.
    """
    require(isinstance(path, str), f"path must be text, not {type(path).__name__}")
    target = Path(path)
    require(target.suffix in _WRITERS, f"path must end in {' or '.join(_WRITERS)}, not {path!r}")
    require(target.parent.is_dir(), f"the directory of path {path!r} does not exist")
    partial = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            count = _WRITERS[target.suffix](file, columns, rows)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Row]) -> int:
    writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
        count += 1
    return count


def _cell(value: Any) -> Any:
    # As JSON writes them, so that both kinds of file say the same.
    return json.dumps(value) if isinstance(value, bool) else value


def _write_jsonl(file: TextIO, columns: Sequence[str], rows: Iterable[Row]) -> int:
    count = 0
    for row in rows:
        values = {name: row[name] for name in columns if name in row}
        file.write(json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n")
        count += 1
    return count


_WRITERS: dict[str, Callable[[TextIO, Sequence[str], Iterable[Row]], int]] = {
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
}
