"""The figure of how hyperparameters were learned: every evaluation is there, and failures are seen to be failures."""

import numpy as np
import pytest
from toy_objectives import Toy, quadratic, rosenbrock

from taxolearn import plotting
from taxolearn.tuning.search import learn

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

RESULT = learn(Toy(rosenbrock, [-0.7, 0.6], fails=lambda theta, number, tol: number in (1, 6, 7)))
MANY = learn(Toy(quadratic, np.linspace(-1, 1, 9)[[4, 0, 7, 2, 5, 8, 1, 6, 3]]), max_evaluations=8)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def labelled(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def test_loss_of_each_evaluation():
    ax = plotting.learning_trace(RESULT)
    best_so_far, points, *_ = ax.get_lines()
    numbers = np.arange(1, len(RESULT.evaluations) + 1)
    good = RESULT.converged
    values = np.where(good, RESULT.values, np.nan)
    top = ax.get_ylim()[1]
    inside = ~(values > top)
    assert np.count_nonzero(~inside) > 0  # this one overshoots
    assert inside[0]
    np.testing.assert_array_equal(points.get_data(), [numbers[inside], values[inside]])
    lowest = [np.nanmin(values[: k + 1]) for k in range(len(values))]
    np.testing.assert_array_equal(best_so_far.get_data(), [numbers, lowest])
    marked = labelled(ax)
    assert set(marked) == {"failed", "off the scale", "best"}
    assert marked["failed"].get_xdata().tolist() == [2, 7, 8]
    np.testing.assert_array_equal(marked["off the scale"].get_xdata(), numbers[~inside])
    np.testing.assert_array_equal(np.ravel(marked["best"].get_data()), [RESULT.best + 1, RESULT.values[RESULT.best]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(marked)


def test_panels_of_gradients_and_parameters():
    ax = plotting.learning_trace(RESULT)
    _, middle, bottom = ax.figure.axes
    numbers = 1 + np.flatnonzero(RESULT.converged)
    (norms,) = middle.get_lines()
    np.testing.assert_array_equal(norms.get_data(), [numbers, RESULT.gradient_norms[numbers - 1]])
    assert middle.get_yscale() == "log"
    lines = labelled(bottom)
    assert set(lines) == set(RESULT.names)
    for k, name in enumerate(RESULT.names):
        factors = np.exp(RESULT.thetas[numbers - 1, k]) / np.exp(RESULT.start[k])
        np.testing.assert_allclose(lines[name].get_data(), [numbers, np.log10(factors)], atol=1e-12)
    assert (ax.get_xlabel(), middle.get_xlabel(), bottom.get_xlabel()) == ("", "", "evaluation")
    ax.figure.canvas.draw()
    places = [panel.get_position() for panel in (ax, middle, bottom)]
    assert places[0].y0 >= places[1].y1
    assert places[1].y0 >= places[2].y1
    assert len({round(place.x0, 6) for place in places}) == 1
    assert ax.get_xlim() == middle.get_xlim() == bottom.get_xlim()


def test_of_many_parameters_those_that_changed_most_have_names():
    bottom = plotting.learning_trace(MANY).figure.axes[2]
    change = np.abs(MANY.theta - MANY.start)
    names = [MANY.names[k] for k in np.argsort(-change)[:7]]
    assert [text.get_text() for text in bottom.get_legend().get_texts()] == names
    assert len(bottom.get_lines()) == 9
    assert len({line.get_color() for line in labelled(bottom).values()}) == 7


def test_axes_with_a_grid_and_without():
    figure, axes = plt.subplots(1, 2)
    assert plotting.learning_trace(RESULT, ax=axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1
    assert not axes[0].has_data()
    figure.canvas.draw()
    figure = plt.figure()
    ax = figure.add_axes((0.2, 0.2, 0.6, 0.6))
    plotting.learning_trace(RESULT, ax=ax)
    places = [panel.get_position() for panel in figure.axes]
    assert places[0].y1 == pytest.approx(0.8)
    assert places[2].y0 == pytest.approx(0.2)
    assert places[0].y0 > places[1].y1 > places[1].y0 > places[2].y1


def test_traces_of_one_point():
    start = learn(Toy(quadratic, [0.0, 0.0]), max_evaluations=1)
    still = learn(Toy(quadratic, [2.0], bounds=[[2, 2]]))
    assert still.gradient_norms.tolist() == [0]
    for result in (start, still):
        ax = plotting.learning_trace(result)
        ax.figure.canvas.draw()
        assert ax.get_lines()[1].get_ydata().tolist() == result.values.tolist()
        assert ax.get_ylim()[0] < result.values[0] < ax.get_ylim()[1]


def test_bad_arguments():
    with pytest.raises(ValueError, match="result must be a LearningResult"):
        plotting.learning_trace({"values": [1, 2]})
    for toy in (Toy(quadratic, []), Toy(quadratic, [1.0], fails=lambda theta, number, tol: True)):
        with pytest.raises(ValueError, match="no evaluation that succeeded"):
            plotting.learning_trace(learn(toy))
    assert not plt.get_fignums()
