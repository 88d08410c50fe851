"""What a pool says while it is fitted: what is being done, how good it is, and how long it will still take."""

import io
import re
import time

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from taxolearn import KernelLogisticClassifier, PoolClassifier, progress
from taxolearn.estimators.pooling import schedule as pool_schedule
from taxolearn.estimators.pooling.schedule import Schedule

PLAIN = KernelLogisticClassifier(tuning=None)


class Recorder:
    """Takes the place of a bar."""

    def __init__(self):
        self.shown, self.lines = [], []

    def update(self, place, left, is_least):
        self.shown.append((place, left, is_least))

    def line(self, text):
        self.lines.append(text)


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(pool_schedule.time, "perf_counter", lambda: now[0])
    return now


def test_the_time_left_is_what_is_known(clock):
    recorder = Recorder()
    schedule = Schedule(recorder, [False, True, True, False])
    schedule.begin("bayes")
    assert np.isnan(recorder.shown[-1][1]), "nobody knows anything"
    clock[0] = 1.0
    schedule.finish(2.0, 0.5)
    place, left, is_least = recorder.shown[-1]
    assert (place, left, is_least) == ("trying bayes (1 of 4), log loss 2.0000 so far", 0.5, True)
    schedule.begin("softmax")
    clock[0] = 3.0
    schedule.advance(0.0, 0.5, 1.5)  # two seconds for a half
    assert recorder.shown[-1][1:] == (pytest.approx(0.5 + 2.0 + 1.2 * 4.0), True)
    clock[0] = 5.0
    schedule.finish(1.4, 3.0)
    schedule.begin("independent")
    assert recorder.shown[-1][1:] == (pytest.approx(3.5), True), "the last one is of another kind"
    clock[0] = 6.0
    schedule.advance(0.0, 0.1, 1.6)
    assert recorder.shown[-1][1] == pytest.approx(3.5), "a tenth tells nothing yet"
    clock[0] = 10.0
    schedule.finish(1.6, 1.0)
    schedule.begin("rbf")
    clock[0] = 16.0
    schedule.advance(0.75, 0.0, np.inf)
    assert recorder.shown[-1] == ("trying rbf (4 of 4), log loss 1.4000 so far", pytest.approx(4.5 + 2.0), False)


def test_every_expert_has_its_turn(monkeypatch):
    recorder = Recorder()
    monkeypatch.setattr(progress.Stages, "update", lambda self, *given: recorder.update(*given))
    X, y = load_iris(return_X_y=True)
    pool = PoolClassifier([("a", PLAIN), ("b", GaussianNB())]).fit(X, y)
    places = [place for place, _, _ in recorder.shown]
    assert [place for place in places if place.startswith("trying a (1 of 2)")]
    assert [place for place in places if place.startswith("trying b (2 of 2), log loss")]
    fitted = [place for place in places if place.startswith("fitting")]
    assert fitted == [f"fitting {name} to all rows" for name in pool.experts_]
    left = [left for place, left, is_least in recorder.shown if place.startswith("fitting")]
    assert np.isfinite(left).all()
    recorder.shown.clear()
    pool.refit(X, y)
    assert [place for place, _, _ in recorder.shown] == fitted


def test_lines(capsys):
    X, y = load_iris(return_X_y=True)
    PoolClassifier([("a", PLAIN), ("b", GaussianNB())], verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert [re.match(r"(a|b): log loss 0\.\d{4}, temperature ", line) is not None for line in lines] == [1, 1, 0]
    assert lines[2].startswith("pool: log loss 0.")
    PoolClassifier([("a", PLAIN)]).fit(X, y)
    assert capsys.readouterr().err == ""


class Terminal:
    """Standard error as a terminal, kept as text."""

    def __init__(self, monkeypatch):
        self.file = io.StringIO()
        make = lambda file: Console(file=self.file, force_terminal=True, width=120)  # noqa: E731
        monkeypatch.setattr(progress, "Console", make)

    @property
    def text(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.file.getvalue())


def test_the_bar_on_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    terminal = Terminal(monkeypatch)
    with progress.stage_progress(0) as stages:
        stages.update("trying softmax (3 of 4), log loss 0.5000 so far", 75.0, True)
        time.sleep(0.3)
        stages.update("fitting softmax to all rows", 8.0, False)
        time.sleep(0.3)
        with progress.fit_progress(0, 1e-3) as inner:
            assert inner is None, "the fit of a part shows no bar of its own"
    assert re.search(r"trying softmax \(3 of 4\), log loss 0\.5000 so far .* more than 7[45] s left", terminal.text)
    assert re.search(r"fitting softmax to all rows .* about [78] s left", terminal.text)
    with progress.fit_progress(1, 1e-3) as inner:
        assert inner is not None, "later fits do"


def test_bars_of_short_work_are_not_shown(monkeypatch):
    terminal = Terminal(monkeypatch)
    X, y = load_iris(return_X_y=True)
    PoolClassifier([("a", PLAIN)]).fit(X, y)
    assert terminal.text == ""


@pytest.mark.parametrize(
    ("left", "is_least", "text"),
    [(0.5, False, "nearly done"), (-9.0, True, "more than 1 s left"), (200.0, False, "about 3 min left")],
)
def test_words_for_times(monkeypatch, left, is_least, text):
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    terminal = Terminal(monkeypatch)
    with progress.stage_progress(0) as stages:
        stages.update("x", left, is_least)
        time.sleep(0.2)
    assert text in terminal.text


def test_an_error_ends_the_bar(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE_SECONDS", 0.0)
    Terminal(monkeypatch)
    with pytest.raises(ZeroDivisionError), progress.stage_progress(0):
        raise ZeroDivisionError
    assert not progress._has_stages.is_set()


# -- Warm starts and experts without time -----------------------------------------------------------------------------


def test_warm_starts_need_fewer_iterations():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 5))
    y = (X @ generator.normal(size=(5, 4)) + generator.gumbel(size=(300, 4))).argmax(axis=1)
    options = {"tol": 1e-6, "random_state": 0}
    cold = PoolClassifier([("softmax", KernelLogisticClassifier(**options))])
    warm = PoolClassifier([("softmax", KernelLogisticClassifier(**options))], warm_start=True)
    cold.fit(X[:280], y[:280])
    warm.fit(X[:280], y[:280])
    first = warm.experts_["softmax"].n_iter_
    cold.refit(X, y)
    warm.refit(X, y)
    assert warm.experts_["softmax"].n_iter_ < min(first, cold.experts_["softmax"].n_iter_)
    np.testing.assert_allclose(warm.predict_proba(X), cold.predict_proba(X), atol=1e-3)
    cold.fit(X, y)
    warm.fit(X, y)
    assert warm.experts_["softmax"].n_iter_ < cold.experts_["softmax"].n_iter_
    np.testing.assert_allclose(warm.predict_proba(X), cold.predict_proba(X), atol=0.02)


def test_a_warm_start_with_other_classes_or_features_begins_anew():
    X, y = load_iris(return_X_y=True)
    pool = PoolClassifier([("a", PLAIN)], warm_start=True).fit(X, y)
    pool.fit(X[:, :2], np.where(y == 2, 5, y))
    anew = PoolClassifier([("a", PLAIN)]).fit(X[:, :2], np.where(y == 2, 5, y))
    np.testing.assert_allclose(pool.predict_proba(X[:, :2]), anew.predict_proba(X[:, :2]), atol=1e-3)


def test_experts_without_time_are_named():
    X, y = load_iris(return_X_y=True)
    pool = PoolClassifier([("a", PLAIN), ("b", GaussianNB())], time_limit=0).fit(X, y)
    assert pool.skipped_ == ["b"]
    assert PoolClassifier([("a", PLAIN), ("b", GaussianNB())]).fit(X, y).skipped_ == []
