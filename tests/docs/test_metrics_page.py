"""The page of metrics and the dashboard name the metrics that are reported, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

from airflow_provider_service._airflow import metrics

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
NAMES = {value for name, value in vars(metrics).items() if name.isupper()}


def test_the_page_lists_every_metric() -> None:
    rows = re.findall(r"^\| `([\w.]+?)(?:\.<host>)?` \|", (DOCS / "metrics.md").read_text(), re.M)
    assert (len(rows), set(rows)) == (len(NAMES), NAMES)


def test_the_dashboard_shows_every_metric() -> None:
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    text = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    shown = {name.removesuffix("_") for name in re.findall(r"\bairflow_(\w+)", text)}
    assert shown == {name.replace(".", "_") for name in NAMES}
