"""Figures of metrics and of learning: each function draws into ``ax``, or into a new figure, and returns the axes.

They need the package matplotlib, which nothing else in taxolearn needs.
"""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from taxolearn.couplings.factors import ClassFactors
from taxolearn.estimators.label_embedding import LabelEmbedding, unit_rows
from taxolearn.metrics import ErrorRejectCurve, LevelScores, ReliabilityCurve
from taxolearn.tuning.search import LearningResult
from taxolearn.validation import check_choice

__all__ = [
    "class_similarity",
    "learning_trace",
    "plot_classes",
    "plot_comparison",
    "plot_error_reject",
    "plot_levels",
    "plot_reliability",
]

# Told apart by readers with any colour vision (Okabe and Ito 2008).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_QUIET = "#8a8f98"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_SCORES = ("precision", "recall", "f")
_MOST_LABELS, _LONGEST_LABEL = 160, 28  # of a heat map, and letters of each
_LARGEST_SIDE = 20.0  # of a heat map, inches
_BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}  # where legends hide no lines


def plot_error_reject(curves: Any, *, ax: Any = None) -> Any:
    """Plot the error among the accepted items against the fraction of rejected ones.

    Parameters
    ----------
    curves : ErrorRejectCurve or mapping of names to them
        What :func:`taxolearn.metrics.error_reject_curve` gave. With names there is a legend, with the areas.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    named = _named(curves, ErrorRejectCurve, "curves")
    ax = _axes(ax)
    for k, (name, curve) in enumerate(named.items()):
        label = f"{name} (area {curve.area:.3g})" if name is not None else None
        # The last error holds up to the end, which is how the area is counted.
        rejected, error = np.append(curve.rejected, 1.0), np.append(curve.error, curve.error[-1])
        ax.step(rejected, error, where="post", color=_colour(k), linewidth=1.6, label=label)
        ax.plot(rejected[0], error[0], "o", color=_colour(k), markersize=5, clip_on=False, zorder=3)
    ax.set(xlim=(0, 1), xlabel="fraction rejected", ylabel="error among accepted")
    # The last few items may be all wrong; the axis is made for the rest.
    highest = max(curve.error[curve.rejected <= 0.95].max() for curve in named.values())
    ax.set_ylim(0, 1.08 * highest if highest > 0 else 1)
    _tidy(ax, "both")
    if None not in named:
        _legend(ax, loc="best")
    return ax


def plot_reliability(curves: Any, *, ax: Any = None, histogram: bool = True) -> Any:
    """Plot observed frequency against predicted probability, with a histogram of the latter below.

    Parameters
    ----------
    curves : ReliabilityCurve or mapping of names to them
        What :func:`taxolearn.metrics.reliability_curve` gave. With names there is a legend, with calibration errors.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    histogram : bool, default=True
        Whether to draw the density of the probabilities, in axes of their own cut from the bottom of ``ax``.

    Returns
    -------
    matplotlib Axes
        Those of the curves.
    """
    named = _named(curves, ReliabilityCurve, "curves")
    ax = _axes(ax, size=(5.2, 6.0) if histogram else (5.2, 5.0))
    ax.plot([0, 1], [0, 1], color=_QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    for k, (name, curve) in enumerate(named.items()):
        label = f"{name} (error {curve.calibration_error:.3f})" if name is not None else None
        style = {"color": _colour(k), "marker": _MARKERS[k % len(_MARKERS)], "linewidth": 1.6, "markersize": 5.5}
        ax.plot(curve.confidence, curve.frequency, label=label, clip_on=False, zorder=3, **style)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="observed frequency")
    _tidy(ax, "both")
    if None not in named:
        _legend(ax, loc="best")
    if histogram:
        _histogram(named, ax)
    return ax


def _histogram(named: Mapping[Any, ReliabilityCurve], ax: Any) -> None:
    """Density of the probabilities, below the curves."""
    (below,) = _cut(ax, (4, 1))
    for k, curve in enumerate(named.values()):
        # A bin without weight falls to zero; bars of several would hide each other, so they are outlined.
        edges = np.unique(np.concatenate([[0.0], curve.lower, curve.upper, [1.0]]))
        density = np.zeros(len(edges) - 1)
        density[np.searchsorted(edges, curve.lower)] = curve.weight / curve.weight.sum() / (curve.upper - curve.lower)
        below.stairs(density, edges, color=_colour(k), alpha=0.7 if len(named) == 1 else 0.15, fill=True)
        if len(named) > 1:
            below.stairs(density, edges, color=_colour(k), linewidth=1.4)
    below.set(xlabel=ax.get_xlabel(), ylabel="density")
    below.set_ylim(bottom=0)
    _tidy(below, "y")
    ax.set_xlabel("")
    ax.tick_params(labelbottom=False)


def _cut(ax: Any, heights: Sequence[float]) -> list[Any]:
    """Cut new axes from the bottom of the given ones, in a way that layouts understand if there is a grid.

    The first height is that of the part that remains.
    """
    spec = ax.get_subplotspec()
    if spec is not None:
        first, *rows = spec.subgridspec(len(heights), 1, height_ratios=heights, hspace=0.1)
        ax.set_subplotspec(first)
        return [ax.figure.add_subplot(row, sharex=ax) for row in rows]
    left, bottom, width, height = ax.get_position().bounds
    space = 0.08 * height
    unit = (height - space * (len(heights) - 1)) / sum(heights)
    starts = [bottom + unit * sum(heights[k + 1 :]) + space * (len(heights) - 1 - k) for k in range(len(heights))]
    places = [(left, start, width, unit * part) for start, part in zip(starts, heights, strict=True)]
    ax.set_position(places[0])
    return [ax.figure.add_axes(place, sharex=ax) for place in places[1:]]


def learning_trace(result: LearningResult, *, ax: Any = None) -> Any:
    """Plot how hyperparameters were learned: mean log loss, gradient norm and parameters of each evaluation.

    The line follows the lowest loss so far; losses far above the first one are drawn at the upper edge. Failed
    evaluations are crosses. Parameters are drawn as factors of change since the start, loadings of a learned coupling
    as differences, the seven that changed most in colour.

    Parameters
    ----------
    result : LearningResult
        The attribute ``cv_result_`` of a fitted estimator.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure. The gradient norms and the parameters have axes of their own, cut from
        the bottom of it.

    Returns
    -------
    matplotlib Axes
        Those of the loss.
    """
    if not isinstance(result, LearningResult):
        raise ValueError(f"result must be a LearningResult (cv_result_ of a fitted estimator), got {result!r}")
    if result.best is None:
        raise ValueError(f"result has no evaluation that succeeded (status {result.status!r}), so there is no trace")
    ax = _axes(ax, size=(7.4, 7.2))
    middle, bottom = _cut(ax, (3, 2, 3))
    numbers = np.arange(1, len(result.evaluations) + 1)
    good = result.converged
    _loss_panel(ax, numbers, np.where(good, result.values, np.nan), result.best)
    norms = result.gradient_norms[good]
    middle.plot(numbers[good], norms, "o-", color=_COLOURS[0], linewidth=1.2, markersize=3.5)
    middle.set(yscale="log" if norms.any() else "linear", ylabel="gradient norm")
    units = np.log(10) if result.is_log is None else np.where(result.is_log, np.log(10), 1.0)
    _parameter_panel(bottom, numbers[good], (result.thetas - result.start)[good] / units, result)
    bottom.set(xlabel="evaluation", xlim=(0.4, len(numbers) + 0.6))
    bottom.xaxis.get_major_locator().set_params(integer=True)
    for panel in (ax, middle, bottom):
        _tidy(panel, "both")
    for panel in (ax, middle):
        panel.tick_params(labelbottom=False)
    return ax


def _loss_panel(ax: Any, numbers: Any, values: Any, best: int) -> None:
    """Mean log loss, NaN for failed evaluations."""
    lowest, first = values[best], values[np.isfinite(values)][0]
    top = first + 0.15 * (first - lowest) if first > lowest else lowest + 1
    above = values > top
    failed = np.isnan(values)
    ax.step(numbers, np.fmin.accumulate(values), where="post", color=_COLOURS[0], linewidth=1.6)
    ax.plot(numbers[~above], values[~above], "o", color=_COLOURS[0], markersize=4)
    edge = {"transform": ax.get_xaxis_transform(), "linestyle": "none", "clip_on": False}
    if above.any():
        ax.plot(numbers[above], np.ones(above.sum()), "^", color=_QUIET, markersize=6, label="off the scale", **edge)
    if failed.any():
        ax.plot(numbers[failed], np.ones(failed.sum()), "x", color=_COLOURS[1], markersize=6, label="failed", **edge)
    ax.plot(numbers[best], lowest, "o", color="none", markeredgecolor="#333333", markersize=9, label="best")
    ax.set(ylabel="mean log loss", ylim=(lowest - 0.08 * (top - lowest), top))
    _legend(ax, **_BESIDE)


def class_similarity(model: Any, *, ax: Any = None) -> Any:
    """Draw a heat map of the similarities of classes that a learned coupling found, similar ones side by side.

    Classes are in the order of the leaves of a hierarchical clustering, by average linkage. Red means that two classes
    go together, blue that they oppose each other.

    Parameters
    ----------
    model : KernelLogisticClassifier or ClassFactors
        A model fitted with a ``LearnedCoupling``, or its attribute ``coupling_``.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure, large enough for the labels of 150 classes. Of more classes, not all
        have a label.

    Returns
    -------
    matplotlib Axes
    """
    factors = model if isinstance(model, ClassFactors) else getattr(model, "coupling_", None)
    if not isinstance(factors, ClassFactors):
        raise ValueError(f"model must be fitted with coupling=LearnedCoupling(...), got {model!r}")
    values = factors.correlations()
    order = _clustered(values)
    n = len(order)
    letters = min(max(len(str(label)) for label in factors.classes), _LONGEST_LABEL)
    side = float(np.clip(2.0 + 0.07 * letters + 0.115 * n, 5.0, _LARGEST_SIDE))
    ax = _axes(ax, size=(side + 0.8, side))
    image = ax.imshow(values[np.ix_(order, order)], cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    step = -(-n // _MOST_LABELS)
    places = np.arange(0, n, step)
    texts = [str(factors.classes[order[k]]) for k in places]
    texts = [text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}\u2026" for text in texts]
    size = 8 if n <= 40 else 6
    ax.set_xticks(places, texts, rotation=90, fontsize=size)
    ax.set_yticks(places, texts, fontsize=size)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.6, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.set_label("similarity (correlation of loadings)")
    return ax


def plot_classes(embedding: Any, *, ax: Any = None, max_names: int = 60) -> Any:
    """Draw the classes of an embedding in two dimensions, coloured by their branch below the root of the tree.

    These are the first two principal directions of ``class_points()``, all at length 1: classes that are told apart
    with difficulty lie close together.

    Parameters
    ----------
    embedding : LabelEmbedding
        Fitted; without a taxonomy all points have the same colour.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.
    max_names : int, default=60
        Up to this many classes are named.

    Returns
    -------
    matplotlib Axes
    """
    if not isinstance(embedding, LabelEmbedding):
        raise ValueError(f"embedding must be a fitted LabelEmbedding, got {embedding!r}")
    units = unit_rows(embedding.class_points())
    directions = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)[2][:2]
    places = np.zeros((len(units), 2))
    places[:, : len(directions)] = units @ directions.T
    tree, names = embedding.taxonomy_, embedding.classes_.tolist()
    branches = ["" if tree is None else str(tree.path(name)[1]) for name in names]
    ax = _axes(ax, size=(6.5, 5.0))
    seen = sorted(set(branches))
    for k, branch in enumerate(seen):
        own = np.array([each == branch for each in branches])
        marker = _MARKERS[k // len(_COLOURS) % len(_MARKERS)]
        ax.scatter(*places[own].T, s=22, color=_colour(k), marker=marker, linewidths=0, alpha=0.8, label=branch)
    if len(names) <= max_names:
        for name, (x, y) in zip(names, places, strict=True):
            ax.annotate(str(name), (x, y), xytext=(3, 3), textcoords="offset points", fontsize=7)
    _tidy(ax, "both")
    ax.set_xlabel("first direction")
    ax.set_ylabel("second direction")
    if 1 < len(seen) <= 20:
        _legend(ax, **_BESIDE)
    return ax


def _clustered(similarity: Any) -> Any:
    """Find an order in which similar classes are neighbours."""
    if len(similarity) < 3:
        return np.arange(len(similarity))
    distance = squareform(np.maximum(1.0 - similarity, 0.0), checks=False)
    return leaves_list(linkage(distance, method="average", optimal_ordering=len(similarity) <= _MOST_LABELS))


def _parameter_panel(ax: Any, numbers: Any, changes: Any, result: LearningResult) -> None:
    """Decimal logarithms of the factors by which parameters changed."""
    order = np.argsort(-np.abs(result.theta - result.start), kind="stable")
    for k in order[: len(_COLOURS) - 1 : -1]:
        ax.plot(numbers, changes[:, k], color="#c4c8cf", linewidth=0.8, zorder=1)
    for rank, k in enumerate(order[: len(_COLOURS)]):
        ax.plot(numbers, changes[:, k], color=_colour(rank), linewidth=1.4, label=result.names[k])
    ax.set_ylabel("change (log10)")
    _legend(ax, **_BESIDE)


def plot_levels(scores: Any, *, score: str = "f", ax: Any = None) -> Any:
    """Draw bars of precision, recall and F at each level of a taxonomy.

    Parameters
    ----------
    scores : LevelScores or mapping of names to them
        What :func:`taxolearn.metrics.level_precision_recall_f` gave. One has bars for all three scores, several are
        compared by one of them.
    score : {"f", "precision", "recall"}, default="f"
        The score that several are compared by.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_choice("score", score, _SCORES)
    named = _named(scores, LevelScores, "scores")
    if None in named:
        bars = {"F" if name == "f" else name: getattr(scores, name) for name in _SCORES}
    else:
        bars = {str(name): getattr(part, score) for name, part in named.items()}
    ax = _axes(ax)
    width = 0.8 / len(bars)
    n_levels = max(len(part.level) for part in named.values())
    for k, (name, heights) in enumerate(bars.items()):
        at = np.arange(1, len(heights) + 1) + (k - (len(bars) - 1) / 2) * width
        drawn = ax.bar(at, heights, 0.92 * width, color=_colour(k), label=name, zorder=2)
        if n_levels * len(bars) <= 18:
            texts = ["" if np.isnan(height) else f"{height:.2f}" for height in heights]
            ax.bar_label(drawn, texts, padding=2, fontsize=8, color="#444444")
    ax.set(ylim=(0, 1.05), xlabel="level", ylabel="score" if None in named else "F" if score == "f" else score)
    ax.set_xticks(np.arange(1, n_levels + 1))
    _tidy(ax, "y")
    ax.tick_params(axis="x", length=0)
    # Above the axes, where there are no bars.
    _legend(ax, loc="lower left", bbox_to_anchor=(0, 1.02), ncols=min(len(bars), 4), borderaxespad=0)
    return ax


def plot_comparison(
    values: Mapping[Any, float],
    *,
    errors: Mapping[Any, Any] | None = None,
    kind: str = "bar",
    label: str = "",
    highlight: Any = None,
    ax: Any = None,
) -> Any:
    """Draw named numbers side by side, the first on top.

    Parameters
    ----------
    values : mapping of names to numbers
        What to compare, such as the loss of several models.
    errors : mapping of names to numbers or (below, above) pairs, default=None
        Lengths of the error bars; names without one have none.
    kind : {"bar", "point"}, default="bar"
        Bars begin at zero. Points do not, so that small differences show.
    label : str, default=""
        What the numbers are.
    highlight : a name or a list of names, default=None
        Draw these in colour and the others in grey.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    check_choice("kind", kind, ("bar", "point"))
    names, numbers = _numbers(values)
    lengths = _error_lengths(errors, names)
    marked = _marked(highlight, names)
    colours = [_COLOURS[0] if highlight is None or name in marked else "#b9bdc4" for name in names]
    ax = _axes(ax, size=(6.0, 1.1 + 0.42 * len(names)))
    places = np.arange(len(names))
    ends = numbers + lengths[1]
    largest = np.abs(numbers).max()
    decimals = int(np.clip(3 - np.floor(np.log10(largest)), 0, 9)) if largest > 0 else 0
    if kind == "bar":
        ax.barh(places, numbers, height=0.66, color=colours, zorder=2)
        ax.axvline(0, color=_QUIET, linewidth=0.8)
    else:
        ax.scatter(numbers, places, s=52, c=colours, zorder=3)
    if lengths.any():
        ax.errorbar(numbers, places, xerr=lengths, fmt="none", ecolor="#333333", elinewidth=1.2, capsize=3, zorder=4)
    for place, number, low, high in zip(places, numbers, numbers - lengths[0], ends, strict=True):
        left = kind == "bar" and number < 0
        ax.annotate(
            f"{number:.{decimals}f}",
            (low if left else high, place),
            xytext=(-6 if left else 6, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=9,
            color="#444444",
        )
    ax.set_yticks(places, [str(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.margins(x=0.17)
    ax.set_xlabel(label)
    _tidy(ax, "x")
    ax.spines["left"].set_visible(kind == "point")
    ax.tick_params(axis="y", length=0)
    return ax


def _numbers(values: Any) -> tuple[list[Any], Any]:
    if not isinstance(values, Mapping) or not values:
        raise ValueError(f"values must be a mapping of names to numbers with at least one entry, got {values!r}")
    for name, number in values.items():
        if isinstance(number, bool) or not isinstance(number, Real) or not np.isfinite(float(number)):
            raise ValueError(f"values[{name!r}] must be a finite number, got {number!r}")
    return list(values), np.array([float(number) for number in values.values()])


def _error_lengths(errors: Mapping[Any, Any] | None, names: Sequence[Any]) -> Any:
    """Return the lengths of the error bars below and above each number, shape (2, n)."""
    lengths = np.zeros((2, len(names)))
    for name, error in (errors or {}).items():
        if name not in names:
            raise ValueError(f"errors has the name {name!r}, which is not in values")
        length = np.asarray(error, dtype=float)
        if length.shape not in ((), (2,)) or not (np.isfinite(length) & (length >= 0)).all():
            raise ValueError(f"errors[{name!r}] must be a length or a pair of lengths (below, above), got {error!r}")
        lengths[:, names.index(name)] = length
    return lengths


def _marked(highlight: Any, names: Sequence[Any]) -> list[Any]:
    if highlight is None:
        return []
    several = isinstance(highlight, Iterable) and not isinstance(highlight, str | tuple)
    marked = list(highlight) if several else [highlight]
    for name in marked:
        if name not in names:
            raise ValueError(f"highlight has the name {name!r}, which is not in values")
    return marked


def _named(given: Any, kind: type, argument: str) -> dict[Any, Any]:
    """Return the curves by name; a single curve without a name has the name None."""
    if isinstance(given, kind):
        return {None: given}
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"{argument} must be {kind.__name__} or a mapping of names to them, got {given!r}")
    for name, curve in given.items():
        if not isinstance(curve, kind):
            raise ValueError(f"{argument}[{name!r}] must be {kind.__name__}, got {type(curve).__name__}")
    return {str(name): curve for name, curve in given.items()}


def _axes(ax: Any, size: tuple[float, float] = (6.0, 4.0)) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("taxolearn.plotting needs the package matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def _colour(k: int) -> str:
    return _COLOURS[k % len(_COLOURS)]


def _tidy(ax: Any, grid: str) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(_QUIET)
    ax.tick_params(color=_QUIET)
    ax.grid(axis=grid, color="#e4e6ea", linewidth=0.8)
    ax.set_axisbelow(True)


def _legend(ax: Any, **options: Any) -> None:
    ax.legend(frameon=False, fontsize=9, handlelength=1.4, **options)
