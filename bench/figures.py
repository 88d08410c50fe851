"""The figures of results: bars, labelled points, or lines, one panel per problem or pair of quantities."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS, OTHERS = "#0b6e99", "#b0b0b0"

Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Bar:
    """A bar per row: its key, the label of the axis, and the format of a number. One panel per problem."""

    key: str
    label: str
    text: str


@dataclass(frozen=True)
class Axes:
    """What two axes show: keys of rows and labels; ``log`` names the logarithmic ones."""

    x: str
    x_label: str
    y: str
    y_label: str
    log: str = "x"


@dataclass(frozen=True)
class Points:
    """A point per row with the name of its library. One panel per problem."""

    axes: Axes


@dataclass(frozen=True)
class Lines:
    """A line per problem and library in each panel; a row without ``x`` is a level.

    Colours are those of problems, full lines and points are ours, broken ones those of others.
    """

    panels: tuple[Axes, ...]


Figure = Bar | Points | Lines


def is_ours(row: dict[str, Any]) -> bool:
    """Whether the row is of this library."""
    return str(row["library"]).startswith("taxolearn")


def draw(figure: Figure, title: str, rows: Rows, stem: Path) -> None:
    """Write ``stem.svg`` and ``stem.png``; without matplotlib, say so."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        print("matplotlib is not installed: no figure")
        return
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "taxolearn"
    import matplotlib.pyplot as plt

    problems = list(dict.fromkeys(row["problem"] for row in rows))
    count = len(figure.panels) if isinstance(figure, Lines) else len(problems)
    wide = min(count, 2)
    high = -(-count // wide)
    height = 2.4 if isinstance(figure, Bar) else 3.1
    fig, grid = plt.subplots(high, wide, figsize=(4.6 * wide, height * high + 0.6), squeeze=False, layout="constrained")
    for ax in grid.flat[count:]:
        ax.remove()
    for ax in grid.flat[:count]:
        ax.spines[["top", "right"]].set_visible(False)
    if isinstance(figure, Lines):
        for ax, panel in zip(grid.flat, figure.panels, strict=False):
            _lines(ax, rows, panel, problems)
        handles, names = grid.flat[0].get_legend_handles_labels()
        fig.legend(handles, names, loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    for ax, problem in zip(grid.flat, [] if isinstance(figure, Lines) else problems, strict=False):
        ax.set_title(problem, fontsize=9)
        of_problem = [row for row in rows if row["problem"] == problem]
        if isinstance(figure, Bar):
            _bars(ax, of_problem, figure)
        elif isinstance(figure, Points):
            _points(ax, of_problem, figure.axes)
    fig.suptitle(title, fontsize=10)
    if isinstance(figure, Points):
        fig.draw_without_rendering()  # labels need the final places of the points
        fig.set_layout_engine("none")
        for ax in grid.flat[:count]:
            _place_labels(fig, ax)
    fig.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    fig.savefig(stem.with_suffix(".png"), dpi=150)
    plt.close(fig)


def _name(row: dict[str, Any]) -> str:
    return f"{row['library']}, {row['case']}" if row.get("case") else str(row["library"])


def _bars(ax: Any, rows: Rows, bar: Bar) -> None:
    rows = [row for row in rows if row.get(bar.key) is not None]
    colors = [OURS if is_ours(row) else OTHERS for row in rows]
    bars = ax.barh(range(len(rows)), [row[bar.key] for row in rows], color=colors)
    ax.bar_label(bars, labels=[bar.text.format(row[bar.key]) for row in rows], fontsize=7, padding=2)
    ax.set_yticks(range(len(rows)), [_name(row) for row in rows], fontsize=7)
    ax.invert_yaxis()
    ax.margins(x=0.18)
    ax.set_xlabel(bar.label, fontsize=8)


def _scales(ax: Any, axes: Axes) -> None:
    if "x" in axes.log:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter("")
    if "y" in axes.log:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:.2g}")
    ax.set_xlabel(axes.x_label, fontsize=8)
    ax.set_ylabel(axes.y_label, fontsize=8)
    ax.tick_params(which="both", labelsize=7)
    ax.grid(alpha=0.25, linewidth=0.5)


def _points(ax: Any, rows: Rows, axes: Axes) -> None:
    _scales(ax, axes)
    for row in rows:
        if row.get(axes.x) is None or row.get(axes.y) is None:
            continue
        color = OURS if is_ours(row) else "#606060"
        ax.plot(row[axes.x], row[axes.y], "o" if is_ours(row) else "s", color=color, markersize=5)
        label = ax.annotate(
            _name(row),
            (row[axes.x], row[axes.y]),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=6.5,
            color=color,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": color, "shrinkA": 0, "shrinkB": 2},
        )
        label.set_in_layout(False)
        label.arrow_patch.set_visible(False)  # a line to the point, for labels that end up far from it
    ax.margins(x=0.25, y=0.2)


def _place_labels(fig: Any, ax: Any) -> None:
    """Move every label to the nearest place around its point where it covers no point, no label and no edge."""
    from matplotlib.text import Text

    renderer = fig.canvas.get_renderer()
    frame = ax.get_window_extent(renderer)
    scale = fig.dpi / 72
    centres = [ax.transData.transform((line.get_xdata()[0], line.get_ydata()[0])) for line in ax.lines]
    placed: list[Any] = []
    for label, (x, y) in zip(ax.texts, centres, strict=True):
        size = Text.get_window_extent(label, renderer)  # without the line
        wide, high = size.width / scale, size.height / scale
        best: tuple[float, Any, Any] | None = None
        for distance in (5, 12, 20, 29, 39):
            middle = -high / 2
            for dx, dy in (
                (distance, middle),
                (-wide - distance, middle),
                (-wide / 2, distance),
                (-wide / 2, -high - distance),
                (4, distance),
                (4, -high - distance),
                (-wide - 4, distance),
                (-wide - 4, -high - distance),
            ):
                box = size.from_bounds(x + dx * scale, y + dy * scale, size.width, size.height)
                wrong = sum(box.overlaps(other) for other in placed)
                wrong += sum(box.padded(3 * scale).contains(*centre) for centre in centres if tuple(centre) != (x, y))
                wrong += 2 * (box.x0 < frame.x0 or box.x1 > frame.x1 or box.y0 < frame.y0 or box.y1 > frame.y1)
                if best is None or wrong + distance / 100 < best[0]:
                    best = (wrong + distance / 100, (dx, dy), box)
        if best is not None:
            label.set_position(best[1])
            placed.append(best[2])
            far = best[0] % 1 > 0.1
            if far and label.arrow_patch is not None:
                label.arrow_patch.set_visible(True)


def _lines(ax: Any, rows: Rows, axes: Axes, problems: Sequence[str]) -> None:
    _scales(ax, axes)
    for problem, color in zip(problems, ("#0b6e99", "#c8553d", "#5a8f3c", "#7b5ea7"), strict=False):
        for library in dict.fromkeys(row["library"] for row in rows if row["problem"] == problem):
            of_line = [row for row in rows if row["problem"] == problem and row["library"] == library]
            of_line = [row for row in of_line if row.get(axes.y) is not None]
            level = [row for row in of_line if row.get("level")]
            points = sorted((row[axes.x], row[axes.y]) for row in of_line if not row.get("level"))
            name = f"{problem}: {library}"
            for row in level:
                ax.axhline(row[axes.y], color=color, linewidth=0.9, linestyle=":", label=name)
                if row.get(axes.x) is not None:
                    ax.plot(row[axes.x], row[axes.y], "*", color=color, markersize=8)
            if points:
                style = "-o" if is_ours(of_line[0]) else "--s"
                ax.plot(*zip(*points, strict=True), style, color=color, markersize=3.5, linewidth=1.1, label=name)
