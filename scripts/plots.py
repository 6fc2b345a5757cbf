"""Plot the tables of measured figures in the documentation again: ``make plots``.

The figures stand only in the tables. Each plot holds those that it was made of as its description, so that a test finds
one that is older than its table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
#: For light and dark pages: text and axes, then the series. The contrast with either background is at least 4.5 to 1.
COLOURS = {
    "": ("#333333", ["#b3400a", "#0b6bb5", "#5b5f66"]),
    "-dark": ("#d6d6d6", ["#ff9a62", "#6cb8ff", "#a9afb8"]),
}
_INCHES = (7.2, 3.2)
_SETTINGS = {
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "plots",  # so that the same figures give the same file
    "axes.spines.top": False,
    "axes.spines.right": False,
}
#: The rows of a table, each by the titles of its columns.
Rows = Sequence[Mapping[str, str]]
#: What a plot shows: for each series, its values by their labels, with the ends of their range where there is one.
Series = dict[str, dict[str, list[float]]]


class Plot(NamedTuple):
    """A plot of a table.

    :param page: the page in ``docs`` with the table.
    :param section: heading above it.
    :param columns: titles of its first columns.
    :param read: chooses what is shown.
    :param draw: draws that.
    :param axis: what the numbers are.
    """

    page: str
    section: str
    columns: tuple[str, ...]
    read: Callable[[Rows], Series]
    draw: Callable[[Axes, Series, Sequence[str]], None]
    axis: str

    def values(self) -> Series:
        """What the table says now."""
        return self.read(table((DOCS / self.page).read_text(encoding="utf-8"), self.section, self.columns))


def table(text: str, section: str, columns: Sequence[str]) -> Rows:
    """The last table below a heading whose first columns have these titles.

    :raises ValueError: there is none.
    """
    _, heading, below = text.partition(f"\n## {section}\n")
    found = [rows for rows in _tables(below.partition("\n## ")[0]) if list(rows[0])[: len(columns)] == list(columns)]
    if not heading or not found:
        raise ValueError(f"there is no table of {', '.join(columns)} below {section!r}")
    return found[-1]


def _tables(text: str) -> Iterator[Rows]:
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.M):
        titles, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        yield [dict(zip(titles, row, strict=True)) for row in rows]


def numbers(cell: str) -> list[float]:
    """The numbers of a cell: a value, and the ends of its range."""
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", cell)]


# ------------------------------------------------------------ what the plots show


def _waiting(rows: Rows) -> Series:
    return {
        method: {row["waits"]: numbers(row["requests per interval"]) for row in rows if row["method"] == method}
        for method in ("one read per wait", "shared")
    }


def _starts(rows: Rows) -> Series:
    return {
        "seconds": {
            row["start method"]: numbers(row["median, s"]) + numbers(row["5th to 95th percentile, s"]) for row in rows
        }
    }


def _row_work(rows: Rows) -> Series:
    ratio = "times faster than the first"
    return {
        "times faster": {
            f"{row['job'].removeprefix('upsert: ')}: {row['method'].rpartition(', ')[2].strip('`')}": numbers(
                row[ratio]
            )
            for row in rows
            if row["job"].startswith("upsert") and row[ratio]
        }
    }


def _sizing(rows: Rows) -> Series:
    counts = dict.fromkeys(row["waits"] for row in rows)
    return {
        f"{count} waits": {
            row["triggerers"]: numbers(row["requests a minute"]) for row in rows if row["waits"] == count
        }
        for count in reversed(counts)
    }


# ------------------------------------------------------------ how they are drawn


def _lines(axes: Axes, series: Series, colours: Sequence[str]) -> None:
    for (name, values), colour in zip(series.items(), colours, strict=False):
        at = [numbers(label)[0] for label in values]
        axes.plot(at, [value[0] for value in values.values()], color=colour, marker="o", label=name)
        end = (at[-1], list(values.values())[-1][0])
        axes.annotate(name, end, (8, 0), textcoords="offset points", color=colour, va="center", annotation_clip=False)
        axes.set_xticks(at, list(values))
        axes.minorticks_off()


def _lines_of_both_scales(axes: Axes, series: Series, colours: Sequence[str]) -> None:
    axes.loglog()
    _lines(axes, series, colours)
    axes.set_xlabel("waits of one triggerer")


def _lines_by_triggerers(axes: Axes, series: Series, colours: Sequence[str]) -> None:
    _lines(axes, series, colours)
    axes.set_xlabel("triggerers that share the waits")
    axes.set_ylim(bottom=0)


def _bars(axes: Axes, series: Series, colours: Sequence[str]) -> None:
    (values,) = series.values()
    labels, middle = list(values), [value[0] for value in values.values()]
    ends = [[abs(value[0] - value[end]) for value in values.values()] for end in (1, 2)]
    bars = axes.barh(
        labels, middle, xerr=ends, color=colours[1], ecolor=axes.xaxis.label.get_color(), capsize=3, height=0.6
    )
    axes.bar_label(bars, [f"{value:g}" for value in middle], padding=4)
    axes.invert_yaxis()


def _bars_of_ratios(axes: Axes, series: Series, colours: Sequence[str]) -> None:
    axes.set_xscale("log")
    _bars(axes, series, colours)
    axes.axvline(1, color=colours[2], linewidth=1)


_BENCHMARKS, _SIZES = "benchmarks.md", "sizing.md"
PLOTS = {
    "waiting": Plot(
        _BENCHMARKS,
        "Waiting for many executions at once",
        ("waits", "method"),
        _waiting,
        _lines_of_both_scales,
        "requests per interval",
    ),
    "starts": Plot(
        _BENCHMARKS,
        "Starting workflows",
        ("start method", "median, s"),
        _starts,
        _bars,
        "seconds until the execution is known",
    ),
    "rows": Plot(
        _BENCHMARKS, "Rows", ("job", "rows", "method"), _row_work, _bars_of_ratios, "times faster than one call a row"
    ),
    "triggerers": Plot(_SIZES, "Waiting", ("triggerers", "waits"), _sizing, _lines_by_triggerers, "requests a minute"),
}


def main() -> None:
    """Write them, each for light and for dark pages."""
    for name, plot in PLOTS.items():
        for suffix, (text, colours) in COLOURS.items():
            path = IMAGES / f"plot-{name}{suffix}.svg"
            _write(path, plot, text, colours)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


def _write(path: Path, plot: Plot, text: str, colours: Sequence[str]) -> None:
    import matplotlib.pyplot as plt

    values = plot.values()
    inks = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), text)
    with plt.rc_context({**_SETTINGS, **inks}):
        figure, axes = plt.subplots(figsize=_INCHES, layout="constrained")
        plot.draw(axes, values, colours)
        numbered, name = (axes.xaxis, axes.set_xlabel) if len(values) == 1 else (axes.yaxis, axes.set_ylabel)
        numbered.set_major_formatter("{x:,.0f}")
        name(plot.axis)
        described = {"Description": json.dumps(values), "Date": None, "Creator": None}
        figure.savefig(path, transparent=True, metadata=described)
        plt.close(figure)


if __name__ == "__main__":
    main()
