"""The figures of results: bars, labelled points, lines and traces, one panel per problem or pair of quantities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar

OURS, OTHERS = "#0b6e99", "#b0b0b0"

Rows = Sequence[dict[str, Any]]
Panel = tuple[str, Callable[[Any], None]]  # its title, and what draws it


class Figure:
    """One panel per problem, unless ``panels`` says otherwise."""

    height: ClassVar[float] = 3.1  # of a panel
    has_common_legend: ClassVar[bool] = False

    def panels(self, rows: Rows) -> list[Panel]:
        """What to draw, in its order."""
        return [(problem, partial(self.paint, rows=of_problem)) for problem, of_problem in by_problem(rows).items()]

    def paint(self, ax: Any, rows: Rows) -> None:
        """Draw the panel of a problem."""
        raise NotImplementedError


def by_problem(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    """The rows of each problem."""
    out: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        out.setdefault(row["problem"], []).append(row)
    return out


@dataclass(frozen=True)
class Axes:
    """What two axes show: keys of rows and labels; ``log`` names the logarithmic ones."""

    x: str
    x_label: str
    y: str
    y_label: str
    log: str = "x"


def is_ours(row: dict[str, Any]) -> bool:
    """Whether the row is of this library."""
    return str(row["library"]).startswith("taxolearn")


def draw(figure: Figure, title: str, rows: Rows, path: Path) -> None:
    """Write the figure as SVG; without matplotlib, say so."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        print("matplotlib is not installed: no figure")
        return
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "taxolearn"
    import matplotlib.pyplot as plt

    panels = figure.panels(rows)
    if not panels:
        return
    wide = min(len(panels), 2)
    high = -(-len(panels) // wide)
    fig, grid = plt.subplots(
        high, wide, figsize=(4.6 * wide, figure.height * high + 0.6), squeeze=False, layout="constrained"
    )
    for ax in grid.flat[len(panels) :]:
        ax.remove()
    for ax, (heading, paint) in zip(grid.flat, panels, strict=False):
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_title(heading, fontsize=9)
        paint(ax)
    if figure.has_common_legend:
        entries: dict[str, Any] = {}
        for ax in grid.flat[: len(panels)]:
            handles, names = ax.get_legend_handles_labels()
            entries |= dict(zip(names, handles, strict=True))
        fig.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    fig.suptitle(title, fontsize=10)
    if isinstance(figure, Points):
        fig.draw_without_rendering()  # labels need the final places of the points
        fig.set_layout_engine("none")
        for ax in grid.flat[: len(panels)]:
            _place_labels(fig, ax)
    fig.savefig(path, format="svg", metadata={"Date": None})
    plt.close(fig)


def _name(row: dict[str, Any]) -> str:
    return f"{row['library']}, {row['case']}" if row.get("case") else str(row["library"])


def _scales(ax: Any, axes: Axes) -> None:
    from matplotlib.ticker import LogFormatter

    if "x" in axes.log:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        # Without a power of ten in sight the ticks between are all there is.
        ax.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.5)))
    if "y" in axes.log:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:.2g}")
    ax.set_xlabel(axes.x_label, fontsize=8)
    ax.set_ylabel(axes.y_label, fontsize=8)
    ax.tick_params(which="both", labelsize=7)
    ax.grid(alpha=0.25, linewidth=0.5)


@dataclass(frozen=True)
class Bar(Figure):
    """A bar per row: its key, the label of the axis, and the format of a number."""

    height = 2.4
    key: str
    label: str
    text: str

    def panels(self, rows: Rows) -> list[Panel]:
        known = [row for row in rows if row.get(self.key) is not None]
        counts = {problem: len(of_problem) for problem, of_problem in by_problem(known).items()}
        return super().panels([row for row in known if counts[row["problem"]] > 1])  # a lone bar compares nothing

    def paint(self, ax: Any, rows: Rows) -> None:
        colors = [OURS if is_ours(row) else OTHERS for row in rows]
        bars = ax.barh(range(len(rows)), [row[self.key] for row in rows], color=colors)
        ax.bar_label(bars, labels=[self.text.format(row[self.key]) for row in rows], fontsize=7, padding=2)
        ax.set_yticks(range(len(rows)), [_name(row) for row in rows], fontsize=7)
        ax.invert_yaxis()
        ax.margins(x=0.18)
        ax.set_xlabel(self.label, fontsize=8)


@dataclass(frozen=True)
class Ratios(Figure):
    """A point per row on a logarithmic axis, a line of points per library, from light to dark by another key.

    Rows with a ``bound`` are lower bounds: hollow arrows.
    """

    height, has_common_legend = 2.4, True
    key: str
    shades: str
    label: str

    def panels(self, rows: Rows) -> list[Panel]:
        levels = {problem: self._levels(of_problem) for problem, of_problem in by_problem(rows).items()}
        return [
            (f"{problem}, {self.shades} = {', '.join(f'{level:g}' for level in levels[problem])}", paint)
            for problem, paint in super().panels(rows)
        ]

    def _levels(self, rows: Rows) -> list[float]:
        return sorted({row[self.shades] for row in rows})

    def paint(self, ax: Any, rows: Rows) -> None:
        libraries = list(dict.fromkeys(row["library"] for row in rows if row.get(self.key) and not is_ours(row)))
        shades = ("#9ecae1", "#4a98c9", "#1764ab", "#08306b")  # from small to large
        levels = self._levels(rows)
        for row in rows:
            if row["library"] not in libraries or not row.get(self.key):
                continue
            at = levels.index(row[self.shades])
            place = libraries.index(row["library"]) + 0.16 * (at - (len(levels) - 1) / 2)
            shade = shades[at % len(shades)]
            face = "none" if row.get("bound") else shade
            ax.plot(
                row[self.key], place, ">" if row.get("bound") else "o", color=shade, markerfacecolor=face, markersize=4
            )
        if len(levels) > 1:
            for shade, name in ((shades[0], "smallest"), (shades[(len(levels) - 1) % len(shades)], "largest")):
                ax.plot([], [], "o", color=shade, markersize=4, label=f"{name} {self.shades}")
        ax.plot([], [], ">", color="#606060", markerfacecolor="none", markersize=4, label="at least")
        _scales(ax, Axes("", self.label, "", ""))
        for reference in (1, 10):
            ax.axvline(reference, color="#c8553d", linewidth=0.9, linestyle="-" if reference == 1 else ":")
        low, high = ax.get_xlim()
        ax.set_xlim(min(low, 0.8), max(high, 12))
        ax.set_yticks(range(len(libraries)), libraries, fontsize=7)
        ax.invert_yaxis()


@dataclass(frozen=True)
class Points(Figure):
    """A point per row with the name of its library."""

    axes: Axes

    def paint(self, ax: Any, rows: Rows) -> None:
        axes = self.axes
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


@dataclass(frozen=True)
class Marks(Figure):
    """A mark per row, whose form and colour are those of its library; the legend is common to all panels.

    A row above ``most`` is drawn there, with its value. One with a ``bound`` and without a place was given up: a hollow
    mark at that time, at the upper edge.
    """

    has_common_legend = True
    axes: Axes
    most: float

    def panels(self, rows: Rows) -> list[Panel]:
        libraries = list(dict.fromkeys(row["library"] for row in rows))
        ours = [name for name in libraries if is_ours({"library": name})]
        others = [name for name in libraries if name not in ours]
        styles = dict(zip(ours, ((form, OURS) for form in cycle("*o^vDp")), strict=False))
        colours = cycle(("#c8553d", "#e0a030", "#5a8f3c", "#7b5ea7", "#606060", "#b05090"))
        styles |= dict(zip(others, zip(cycle("sXPd<"), colours, strict=False), strict=False))
        return [
            (problem, partial(self._marks, rows=of_problem, styles=styles))
            for problem, of_problem in by_problem(rows).items()
        ]

    def _marks(self, ax: Any, rows: Rows, styles: dict[str, tuple[str, str]]) -> None:
        axes = self.axes
        _scales(ax, axes)
        given_up = 0
        for row in rows:
            form, colour = styles[row["library"]]
            size = 10 if form == "*" else 5
            if row.get(axes.x) is not None and row.get(axes.y) is not None:
                x, y = row[axes.x], min(row[axes.y], self.most)
                ax.plot(x, y, form, color=colour, markersize=size, label=row["library"], alpha=0.85)
                if y < row[axes.y]:
                    text = f"{row[axes.y]:.2g}"
                    ax.annotate(text, (x, y), (6, -3), "data", "offset points", fontsize=7, color=colour)
            elif row.get("bound"):
                place, where = 0.96 - 0.07 * given_up, ax.get_xaxis_transform()
                ax.plot(row["bound"], place, form, color=colour, markersize=size, fillstyle="none", transform=where)
                ax.annotate(">", (row["bound"], place), (6, -3), where, "offset points", fontsize=7, color=colour)
                given_up += 1
        ax.margins(x=0.1, y=0.15)


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


@dataclass(frozen=True)
class Lines(Figure):
    """A line per problem and library in each panel; a row without ``x`` is a level.

    Colours are those of problems, full lines and points are ours, broken ones those of others, unless there are two.
    """

    has_common_legend = True
    axes: tuple[Axes, ...]

    def panels(self, rows: Rows) -> list[Panel]:
        return [("", partial(_lines, rows=rows, axes=axes, problems=list(by_problem(rows)))) for axes in self.axes]


def _lines(ax: Any, rows: Rows, axes: Axes, problems: Sequence[str]) -> None:
    _scales(ax, axes)
    for problem, color in zip(problems, ("#0b6e99", "#c8553d", "#5a8f3c", "#7b5ea7"), strict=False):
        styles = {True: ["-o", "-.^", "--v", ":P", ":X"], False: ["--s", ":D"]}  # ours and others, in turn
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
                left = styles[is_ours(of_line[0])]
                style = left.pop(0) if len(left) > 1 else left[0]
                ax.plot(*zip(*points, strict=True), style, color=color, markersize=3.5, linewidth=1.1, label=name)


@dataclass(frozen=True)
class Curves(Figure):
    """A line per library and quantity over ``value``, on logarithmic axes. One panel per problem and label.

    ``quantities`` has keys of rows and their names by the label of their axis. The legend adds ``<key>_exponents``.
    """

    quantities: dict[str, dict[str, str]]

    def panels(self, rows: Rows) -> list[Panel]:
        return [
            ("", partial(_curves, rows=of_problem, label=label, names=names))
            for of_problem in by_problem(rows).values()
            if len({row.get("value") for row in of_problem if row["library"] == of_problem[0]["library"]}) > 1
            for label, names in self.quantities.items()
        ]


def _curves(ax: Any, rows: Rows, label: str, names: dict[str, str]) -> None:
    _scales(ax, Axes("", rows[0]["problem"], "", label, log="xy"))
    ticks = sorted({row["value"] for row in rows})
    ax.set_xticks(ticks[:: -(-len(ticks) // 6)])  # labels of more would overlap
    ax.set_xticks([], minor=True)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    for library, color in zip(dict.fromkeys(row["library"] for row in rows), (OURS, "#c8553d"), strict=False):
        for (key, name), style in zip(names.items(), ("-o", "--s"), strict=False):
            of_line = [row for row in rows if row["library"] == library]
            points = sorted((row["value"], row[key]) for row in of_line if row.get(key) is not None)
            if points:
                power = next((row[f"{key}_exponents"] for row in of_line if row.get(f"{key}_exponents")), "-")
                text = f"{library.removeprefix('taxolearn, ')}, {name}: exponent {power}"
                ax.plot(*zip(*points, strict=True), style, color=color, markersize=3.5, linewidth=1.1, label=text)
    low, high = ax.get_ylim()
    stretch = max(1.0, (100 * low / high) ** 0.5)  # to two decades, lest what is flat looks steep
    ax.set_ylim(low / stretch, high * stretch)
    ax.yaxis.set_minor_formatter("")
    ax.legend(fontsize=6, frameon=False)


@dataclass(frozen=True)
class Frequencies(Figure):
    """Frequency against probability, a line per library: lists ``probability``, ``frequency`` and ``count`` by bin.

    Bins with fewer than ``least`` members are left out.
    """

    has_common_legend = True
    least: int = 20

    def paint(self, ax: Any, rows: Rows) -> None:
        _scales(ax, Axes("", "probability", "", "frequency", log="xy"))
        ax.axline((1, 1), (1e-3, 1e-3), color="#606060", linewidth=0.7, linestyle=":")
        ours = cycle(("-o", "--^", "-.v"))
        others = cycle(zip(("#c8553d", "#e0a030", "#5a8f3c", "#7b5ea7", "#606060"), "sXPd<", strict=True))
        for row in rows:
            parts = zip(row["probability"], row["frequency"], row["count"], strict=True)
            points = [(x, y) for x, y, count in parts if count >= self.least and y > 0]
            colour, form = (OURS, next(ours)) if is_ours(row) else next(others)
            style = form if is_ours(row) else f"-{form}"
            if points:
                ax.plot(
                    *zip(*points, strict=True), style, color=colour, markersize=3, linewidth=0.9, label=row["library"]
                )
        ax.set_xlim(3e-4, 1.2)
        ax.set_ylim(3e-4, 1.2)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter("")


@dataclass(frozen=True)
class ErrorReject(Figure):
    """Error-reject curves of rows with ``rejected``, ``curve`` and ``area``."""

    def paint(self, ax: Any, rows: Rows) -> None:
        import numpy as np

        from taxolearn.metrics import ErrorRejectCurve
        from taxolearn.plotting import plot_error_reject

        curves = {}
        for row in rows:
            rejected, error = np.array(row["rejected"]), np.array(row["curve"])
            curves[row["library"].removeprefix("taxolearn, ")] = ErrorRejectCurve(
                rejected, error, np.full(len(error), np.nan), row["area"]
            )
        plot_error_reject(curves, ax=ax)
        ax.set_xlim(0, rows[0]["rejected"][-1])


@dataclass(frozen=True)
class Spread(Figure):
    """Learned values of own kernels, ``learned`` of each row, by class: a point per row. One panel per parameter."""

    parameters: tuple[str, ...]

    def panels(self, rows: Rows) -> list[Panel]:
        return [("", partial(_spread, rows=rows, parameter=name)) for name in self.parameters]


def _spread(ax: Any, rows: Rows, parameter: str) -> None:
    rows = [row for row in rows if "learned" in row]
    for place, label in enumerate(rows[0]["classes"]):
        values = sorted(row["learned"][f"kernels[{label}].{parameter}"] for row in rows)
        ax.plot([place, place], [values[0], values[-1]], color=OURS, linewidth=1.0, alpha=0.5)
        ax.plot([place] * len(values), values, "o", color=OURS, markersize=3.5)
    ax.set_xticks(range(len(rows[0]["classes"])), rows[0]["classes"])
    _scales(ax, Axes("", "class", "", parameter.replace("_", " "), log="y"))
    low, high = ax.get_ylim()
    if high > 10 * low:
        ax.yaxis.set_minor_formatter("")


@dataclass(frozen=True)
class Traces(Figure):
    """Rows have a ``trace``: lists by key, ``seconds`` among them. One panel per problem and key; keys have labels."""

    has_common_legend = True
    labels: dict[str, str]

    def panels(self, rows: Rows) -> list[Panel]:
        others = dict.fromkeys(row["library"] for row in rows if not is_ours(row))
        colours = dict(zip(others, cycle(("#606060", "#c8553d", "#5a8f3c", "#7b5ea7", "#b8860b")), strict=False))
        return [
            (problem, partial(_traces, rows=of_problem, key=key, label=label, colours=colours))
            for problem, of_problem in by_problem(rows).items()
            for key, label in self.labels.items()
        ]


def _traces(ax: Any, rows: Rows, key: str, label: str, colours: dict[str, str]) -> None:
    _scales(ax, Axes("", "seconds", "", label))
    for row in rows:
        points = [
            (at, value)
            for at, value in zip(row["trace"]["seconds"], row["trace"][key], strict=True)
            if value is not None
        ]
        if points:
            color, style = (OURS, "-o") if is_ours(row) else (colours[row["library"]], "--s")
            drawn = {"drawstyle": "steps-post", "markersize": 3, "linewidth": 1.2, "label": row["library"]}
            ax.plot(*zip(*points, strict=True), style, color=color, **drawn)
    # Far above the end, how fast the loss falls says little.
    everything = [value for row in rows for value in row["trace"][key] if value is not None]
    if everything:
        least = min(everything)
        ax.set_ylim(0.98 * least, min(1.6 * least, 1.02 * max(everything)))
