"""Figures: what is drawn is what was measured, in the axes that were given."""

import numpy as np
import pytest

from taxolearn import metrics, plotting
from taxolearn.taxonomy import Taxonomy

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

TREE = Taxonomy.from_labels(["A/1", "A/2", "B/1", "C"])
TRUE = ["A/1", "A/1", "B/1", "C", "A/2", "B/1"]
PREDICTED = ["A/1", "A/2", "A/2", "C", "A/2", "B/1"]
CONFIDENCE = [0.9, 0.3, 0.35, 0.8, 0.6, 0.5]
PROBA = np.array(
    [
        [0.7, 0.1, 0.1, 0.1],
        [0.4, 0.3, 0.2, 0.1],
        [0.1, 0.2, 0.5, 0.2],
        [0.05, 0.0, 0.0, 0.95],
        [0.5, 0.4, 0.1, 0.0],
        [0.0, 0.1, 0.9, 0.0],
    ]
)
REJECT = metrics.error_reject_curve(TRUE, PREDICTED, CONFIDENCE)
OTHER_REJECT = metrics.error_reject_curve(TRUE, PREDICTED, CONFIDENCE, taxonomy=TREE)
RELIABILITY = metrics.reliability_curve(TRUE, PROBA, classes=TREE.classes, n_bins=5)
OTHER_RELIABILITY = metrics.reliability_curve(
    TRUE, PROBA, classes=TREE.classes, labels=["A"], taxonomy=TREE, n_bins=3, strategy="quantile"
)
LEVELS = metrics.level_precision_recall_f(TRUE, PREDICTED, taxonomy=TREE)
OTHER_LEVELS = metrics.level_precision_recall_f(TRUE, ["A", "A", "B", "C", "A", "B"], taxonomy=TREE)
CALLS = {
    "error_reject": lambda **options: plotting.plot_error_reject(REJECT, **options),
    "error_rejects": lambda **options: plotting.plot_error_reject({"a": REJECT, "b": OTHER_REJECT}, **options),
    "reliability": lambda **options: plotting.plot_reliability(RELIABILITY, **options),
    "reliabilities": lambda **options: plotting.plot_reliability({"a": RELIABILITY, "b": OTHER_RELIABILITY}, **options),
    "levels": lambda **options: plotting.plot_levels(LEVELS, **options),
    "comparison": lambda **options: plotting.plot_comparison({"a": 1.0, "b": 2.0}, **options),
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def steps(curve):
    return np.append(curve.rejected, 1.0), np.append(curve.error, curve.error[-1])


def data_labels(ax):
    """Texts written next to bars, by height."""
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", CALLS)
def test_axes_are_used_or_made(name):
    figure, axes = plt.subplots(1, 2)
    assert CALLS[name](ax=axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1
    assert not axes[0].has_data()
    figure.canvas.draw()
    made = CALLS[name]()
    assert made.figure is not figure
    made.figure.canvas.draw()
    assert made.get_ylabel() or name == "comparison"


def test_error_reject_curve_is_drawn_as_steps():
    ax = plotting.plot_error_reject(REJECT)
    line, start = ax.get_lines()
    assert line.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(line.get_data(), steps(REJECT))
    np.testing.assert_array_equal(np.ravel(start.get_data()), [0, REJECT.error[0]])
    assert ax.get_legend() is None
    assert ax.get_xlim() == (0, 1)
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] >= REJECT.error.max()


def test_several_error_reject_curves_have_a_legend():
    ax = plotting.plot_error_reject({"plain": REJECT, "tree": OTHER_REJECT})
    lines = ax.get_lines()[::2]
    for line, curve in zip(lines, (REJECT, OTHER_REJECT), strict=True):
        np.testing.assert_array_equal(line.get_data(), steps(curve))
    assert len({line.get_color() for line in lines}) == 2
    assert legend_texts(ax) == [f"plain (area {REJECT.area:.3g})", f"tree (area {OTHER_REJECT.area:.3g})"]


def test_error_reject_axis_of_a_perfect_classifier():
    curve = metrics.error_reject_curve(TRUE, TRUE, CONFIDENCE)
    assert plotting.plot_error_reject(curve).get_ylim() == (0, 1)


@pytest.mark.parametrize("curve", [RELIABILITY, OTHER_RELIABILITY], ids=["uniform", "quantile"])
def test_reliability_curve_and_its_histogram(curve):
    ax = plotting.plot_reliability(curve)
    diagonal, line = ax.get_lines()
    np.testing.assert_array_equal(diagonal.get_data(), [[0, 1], [0, 1]])
    np.testing.assert_array_equal(line.get_data(), [curve.confidence, curve.frequency])
    (below,) = (other for other in ax.figure.axes if other is not ax)
    (patch,) = below.patches
    density, edges, _ = patch.get_data()
    np.testing.assert_allclose(density @ np.diff(edges), 1)
    for lower, upper, weight in zip(curve.lower, curve.upper, curve.weight, strict=True):
        bin_number = edges.tolist().index(lower)
        assert edges[bin_number + 1] == upper
        assert density[bin_number] * (upper - lower) == pytest.approx(weight / curve.weight.sum())
    assert np.count_nonzero(density) == len(curve.weight)
    assert (ax.get_xlabel(), below.get_xlabel()) == ("", "predicted probability")
    ax.figure.canvas.draw()
    top, bottom = ax.get_position(), below.get_position()
    assert bottom.y1 <= top.y0
    assert (bottom.x0, bottom.x1) == pytest.approx((top.x0, top.x1))


def test_reliability_in_axes_without_a_grid():
    figure = plt.figure()
    ax = figure.add_axes((0.2, 0.2, 0.6, 0.6))
    plotting.plot_reliability(RELIABILITY, ax=ax)
    below = figure.axes[1]
    assert below.get_position().y0 == pytest.approx(0.2)
    assert below.get_position().y1 < ax.get_position().y0
    assert ax.get_position().y1 == pytest.approx(0.8)


def test_several_reliability_curves():
    ax = plotting.plot_reliability({"x": RELIABILITY, 7: OTHER_RELIABILITY}, histogram=False)
    assert ax.figure.axes == [ax]
    assert ax.get_xlabel() == "predicted probability"
    for line, curve in zip(ax.get_lines()[1:], (RELIABILITY, OTHER_RELIABILITY), strict=True):
        np.testing.assert_array_equal(line.get_data(), [curve.confidence, curve.frequency])
    errors = RELIABILITY.calibration_error, OTHER_RELIABILITY.calibration_error
    assert legend_texts(ax) == [f"x (error {errors[0]:.3f})", f"7 (error {errors[1]:.3f})"]
    ax = plotting.plot_reliability({"x": RELIABILITY, 7: OTHER_RELIABILITY})
    assert len(ax.figure.axes[1].patches) == 4  # two areas, two outlines


def test_bars_of_one_classifier_are_its_scores():
    ax = plotting.plot_levels(LEVELS)
    assert legend_texts(ax) == ["precision", "recall", "F"]
    for bars, heights in zip(ax.containers, (LEVELS.precision, LEVELS.recall, LEVELS.f), strict=True):
        np.testing.assert_array_equal([bar.get_height() for bar in bars], heights)
    middles = [bar.get_x() + bar.get_width() / 2 for bar in ax.containers[1]]
    np.testing.assert_allclose(middles, LEVELS.level)
    assert [f"{height:.2f}" for height in LEVELS.precision] == data_labels(ax)[: len(LEVELS.level)]
    np.testing.assert_array_equal(ax.get_xticks(), LEVELS.level)


@pytest.mark.parametrize("score", ["precision", "recall", "f"])
def test_bars_of_several_classifiers_are_one_score(score):
    ax = plotting.plot_levels({"deep": LEVELS, "shallow": OTHER_LEVELS}, score=score)
    assert legend_texts(ax) == ["deep", "shallow"]
    for bars, levels in zip(ax.containers, (LEVELS, OTHER_LEVELS), strict=True):
        np.testing.assert_array_equal([bar.get_height() for bar in bars], getattr(levels, score))
    assert ax.get_ylabel() == ("F" if score == "f" else score)
    # Nothing was predicted on level 2, so there is no number to write.
    assert np.isnan(OTHER_LEVELS.precision[1])
    assert ("" in data_labels(ax)) == (score == "precision")
    first, second = (bars[0] for bars in ax.containers)
    assert first.get_x() + first.get_width() <= second.get_x()


@pytest.mark.parametrize("kind", ["bar", "point"])
def test_comparison_draws_the_numbers_from_the_top(kind):
    values = {"a": 1.04, "b": 1.3, "c": -0.5}
    ax = plotting.plot_comparison(values, kind=kind, label="loss")
    if kind == "bar":
        drawn = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
        assert ax.get_xlim()[0] < 0 < ax.get_xlim()[1]
    else:
        drawn = {int(y): x for x, y in ax.collections[0].get_offsets()}
    assert drawn == dict(enumerate(values.values()))
    assert [label.get_text() for label in ax.get_yticklabels()] == list(values)
    assert ax.yaxis_inverted()
    assert [text.get_text() for text in ax.texts] == ["1.040", "1.300", "-0.500"]
    assert ax.get_xlabel() == "loss"


def test_bars_of_a_comparison_begin_at_zero():
    ax = plotting.plot_comparison({"a": 100.0, "b": 101.0})
    assert ax.get_xlim()[0] == 0
    assert plotting.plot_comparison({"a": 100.0, "b": 101.0}, kind="point").get_xlim()[0] > 90


def test_comparison_with_errors_and_highlight():
    values = {"a": 1.0, "b": 2.0, "c": 3.0}
    ax = plotting.plot_comparison(values, errors={"b": 0.25, "c": (0.5, 1.0)}, highlight="b")
    segments = [part.tolist() for part in ax.containers[-1].lines[2][0].get_segments()]
    assert segments == [[[1, 0], [1, 0]], [[1.75, 1], [2.25, 1]], [[2.5, 2], [4, 2]]]
    colours = [bar.get_facecolor() for bar in ax.patches]
    assert colours[0] == colours[2] != colours[1]
    assert [text.xy[0] for text in ax.texts] == [1, 2.25, 4]
    ax = plotting.plot_comparison(values, highlight=["a", "c"])
    assert ax.patches[0].get_facecolor() == colours[1] == ax.patches[2].get_facecolor()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plotting.plot_error_reject(RELIABILITY), "curves must be ErrorRejectCurve or a mapping"),
        (lambda: plotting.plot_error_reject({}), "curves must be"),
        (lambda: plotting.plot_reliability({"x": REJECT}), r"curves\['x'\] must be ReliabilityCurve"),
        (lambda: plotting.plot_levels([LEVELS]), "scores must be"),
        (lambda: plotting.plot_levels(LEVELS, score="accuracy"), "score is 'accuracy'"),
        (lambda: plotting.plot_comparison({}), "values must be a mapping"),
        (lambda: plotting.plot_comparison({"a": np.nan}), r"values\['a'\] must be a finite number"),
        (lambda: plotting.plot_comparison({"a": "1"}), r"values\['a'\] must be a finite number"),
        (lambda: plotting.plot_comparison({"a": 1}, errors={"b": 1}), "errors has the name 'b'"),
        (lambda: plotting.plot_comparison({"a": 1}, errors={"a": -1}), r"errors\['a'\]"),
        (lambda: plotting.plot_comparison({"a": 1}, highlight="b"), "highlight has the name 'b'"),
        (lambda: plotting.plot_comparison({"a": 1}, kind="pie"), "kind is 'pie'"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert not plt.get_fignums()


def test_without_matplotlib(run_python):
    program = """
        import sys
        sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
        from taxolearn import plotting
        try:
            plotting.plot_comparison({"a": 1.0})
        except ImportError as error:
            print(error)
    """
    result = run_python(program)
    assert result.stdout.strip() == "taxolearn.plotting needs the package matplotlib: pip install matplotlib", result
