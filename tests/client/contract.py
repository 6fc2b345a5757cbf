"""The API's contract for each operation, by the operation's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONTRACT: dict[str, dict[str, Any]] = {
    fact["operation"]: fact
    for fact in json.loads(Path(__file__).with_name("contract.json").read_text(encoding="utf-8"))
}
