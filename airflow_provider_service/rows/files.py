"""Write rows to files that are either complete or absent."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from airflow_provider_service.client.errors import ServiceInputError

Row = Mapping[str, Any]

ENDINGS = (".csv", ".jsonl")
#: Characters that spreadsheets take for the start of a formula; the full-width ones count in East Asian locales.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write_rows(path: str, columns: Sequence[str], rows: Iterable[Row], *, neutralize_formulas: bool = True) -> int:
    """Write rows to a file, one at a time, and return their number.

    The file gets its name when it is complete; after a failure, the previous file is unchanged. A new file takes over
    the permissions of the file that it replaces, and a link stays a link: the file that it points to is replaced.

    :param path: path that ends in ``.csv`` or ``.jsonl``; its directory must exist.
    :param columns: columns, in the order in which they are written.
    :param neutralize_formulas: put an apostrophe before text in a ``.csv`` file that looks like a formula.
    :raises ServiceInputError: the ending is another, the directory does not exist, or the path is not that of a file.
    """
    target = _target(path)
    partial = target.with_name(f".{target.name}.{uuid4().hex}.part")
    is_csv = path.endswith(".csv")
    count = 0
    try:
        _create_like(target, partial)
        # Half a surrogate pair, which UTF-8 cannot encode, is written as its escape sequence.
        with partial.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            if is_csv:
                file.write(",".join(columns) + "\n")
            for row in rows:
                file.write(_csv_line(row, columns, neutralize_formulas) if is_csv else _json_line(row, columns))
                count += 1
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _target(path: str) -> Path:
    if not isinstance(path, str):
        raise ServiceInputError(f"path must be text, not {type(path).__name__}")
    if not path.endswith(ENDINGS):
        raise ServiceInputError(f"path must end in {' or '.join(ENDINGS)}, not {path!r}")
    try:
        target = Path(path).resolve()
        has_directory, is_other = target.parent.is_dir(), target.exists() and not target.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise ServiceInputError(f"path {path!r} cannot be used: {error}") from error
    if not has_directory:
        raise ServiceInputError(f"the directory of path {path!r} does not exist")
    if is_other:
        raise ServiceInputError(f"path {path!r} exists and is not a file")
    return target


def _create_like(target: Path, partial: Path) -> None:
    # Only those who may open the file that it replaces may open it, even while it is empty.
    if target.exists():
        partial.touch(0o600, exist_ok=False)
        partial.chmod(stat.S_IMODE(target.stat().st_mode))
    else:
        partial.touch(exist_ok=False)


def _csv_line(row: Row, columns: Sequence[str], neutralize_formulas: bool) -> str:
    # By hand: Python's writer does not quote some line breaks, and distinguishes empty text from null only since 3.12.
    return ",".join(_cell(row.get(name), neutralize_formulas) for name in columns) + "\n"


def _cell(value: Any, neutralize_formulas: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)  # true and false, so that both kinds of file have the same values
    text = value if isinstance(value, str) else json.dumps(value)
    if neutralize_formulas and text.startswith(FORMULA_STARTS):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"'


def _json_line(row: Row, columns: Sequence[str]) -> str:
    values = {name: row[name] for name in columns if name in row}
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
