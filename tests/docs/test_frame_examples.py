"""The guide's examples of DataFrames do what the guide says."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from airflow_provider_service.simulator import ServiceSimulator

from .frame_examples import load_frame, load_large_file, mean_price


def test_frames_go_in_and_out(simulator: ServiceSimulator, tmp_path: Path) -> None:
    assert load_frame(pd.DataFrame({"sku": ["a", "b"], "price": [1.5, 2.5]}))["inserted"] == 2
    path = tmp_path / "prices.csv"
    path.write_text("sku,price,changed\na,3.5,True\nb,9,False\nc,6,True\n")
    result = load_large_file(path)
    assert (result["rows"], result["inserted"], result["updated"]) == (2, 1, 1)
    assert mean_price() == (3.5 + 2.5 + 6) / 3
