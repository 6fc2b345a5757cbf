"""The plots of the documentation, which are made of its tables."""

from __future__ import annotations

import html
import json
import re

import pytest

from scripts.plots import COLOURS, IMAGES, PLOTS, table


@pytest.mark.parametrize("suffix", COLOURS)
@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_shows_what_its_table_says(name, suffix):
    text = (IMAGES / f"plot-{name}{suffix}.svg").read_text(encoding="utf-8")
    (description,) = re.findall(r"<dc:description>(.*?)</dc:description>", text, re.S)

    assert json.loads(html.unescape(description)) == PLOTS[name].values(), "run make plots"


def test_a_table_that_is_gone_is_named():
    with pytest.raises(ValueError, match="there is no table of way, seconds below 'Rows'"):
        table("## Rows\n\n| work | seconds |\n|---|---|\n| read | 1 |\n", "Rows", ("way", "seconds"))
