"""``MaxMarginTreeClassifier``: forms of labels, trees and forests, kernels, learning C, probabilities, files."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_predict

import taxolearn
from taxolearn import MaxMarginTreeClassifier, RecursiveRegularizationClassifier, Taxonomy
from taxolearn.estimators.margin import label_order, label_scales
from taxolearn.kernels import RBF, Cosine, Function, Linear, Precomputed

TREE = Taxonomy.from_labels(["art/music", "art/film/silent", "art/film/sound", "sport/ball", "food"], separator="/")
LEAVES = sorted(TREE.classes.tolist())


def documents(n=120, seed=0, noise=0.5):
    """Rows in which each label adds a direction of its own; sets of up to three labels, inner ones among them."""
    rng = np.random.default_rng(seed)
    names = sorted(TREE.names[1:].tolist())
    directions = np.random.default_rng(99).standard_normal((len(names), 12))
    X, y = [], []
    for _ in range(n):
        chosen = set(rng.choice(names, size=rng.integers(0, 4), replace=False).tolist())
        closed = {above for name in chosen for above in names if name == above or name.startswith(above + "/")}
        X.append(sum((directions[names.index(name)] for name in sorted(closed)), np.zeros(12)))
        y.append(sorted(closed))
    return np.array(X) + noise * rng.standard_normal((n, 12)), y


X, Y = documents()
X_NEW, Y_NEW = documents(seed=1)


@pytest.mark.parametrize("loss", ["hamming", "hierarchical", "zero-one"])
def test_it_learns_unions_of_paths(loss):
    model = MaxMarginTreeClassifier(TREE, loss=loss).fit(X, Y)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 0.01
    assert model.score(X_NEW, Y_NEW) > 0.6
    answers = model.predict(X_NEW)
    for answer in answers:
        assert all(name.rpartition("/")[0] in (*answer, "") for name in answer)
    u = model.decision_function(X_NEW)
    chosen = [tuple(model.classes_[row].tolist()) for row in u > 0]
    assert [tuple(sorted(answer)) for answer in answers] == chosen


def test_forms_of_labels_give_one_model():
    sets = [set(labels) for labels in Y]
    model = MaxMarginTreeClassifier(TREE).fit(X, Y)
    names = model.classes_
    indicator = np.array([[int(name in labels) for name in names] for labels in Y])
    for y in (sets, indicator, sp.csr_array(indicator), pd.DataFrame(indicator, columns=names)):
        other = MaxMarginTreeClassifier(TREE).fit(X, y)
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        answer = other.predict(X_NEW)
        assert type(answer) is type(y)
        assert other.score(X_NEW, answer) == 1.0
    lowest = [[name for name in labels if not any(o.startswith(name + "/") for o in labels)] for labels in Y]
    other = MaxMarginTreeClassifier(TREE).fit(X, lowest)
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


def test_without_a_tree_labels_are_apart():
    """Then hamming losses make one support vector machine per label."""
    y = np.array([[int(name in labels) for name in LEAVES] for labels in Y])
    model = MaxMarginTreeClassifier(tol=1e-6, max_iter=100_000).fit(X, y)
    for k in range(len(LEAVES)):
        alone = MaxMarginTreeClassifier(tol=1e-6, max_iter=100_000).fit(X, [[k] if bit else [] for bit in y[:, k]])
        np.testing.assert_allclose(
            alone.decision_function(X_NEW).ravel(), model.decision_function(X_NEW)[:, k], atol=2e-2
        )


def test_scalings():
    order, parents = label_order(TREE, np.sort(TREE.names[1:]))
    names = np.sort(TREE.names[1:])[order].tolist()
    sibling = dict(zip(names, label_scales(parents, "sibling").tolist(), strict=True))
    assert sibling["food"] == pytest.approx(1 / 3)
    assert sibling["art/film"] == pytest.approx(1 / 6)
    assert sibling["art/film/silent"] == pytest.approx(1 / 12)
    assert sibling["sport/ball"] == pytest.approx(1 / 3)
    subtree = dict(zip(names, label_scales(parents, "subtree").tolist(), strict=True))
    assert subtree["art"] == pytest.approx(5 / 8)
    assert subtree["art/film"] == pytest.approx(3 / 8)
    assert subtree["food"] == pytest.approx(1 / 8)
    assert label_scales(parents, "uniform").tolist() == [1.0] * 8
    fitted = [
        MaxMarginTreeClassifier(TREE, loss="hierarchical", scaling=scaling).fit(X, Y).result_.objective
        for scaling in ("uniform", "sibling", "subtree")
    ]
    assert len(set(fitted)) == 3


@pytest.mark.parametrize("kernel", [Linear(1.0), Linear(0.5), RBF(3.0), Cosine(), 0.5 * RBF(3.0) + Linear(0.1), "rbf"])
def test_kernels(kernel):
    model = MaxMarginTreeClassifier(TREE, kernel=kernel).fit(X, Y)
    assert model.score(X_NEW, Y_NEW) > 0.5


@pytest.mark.parametrize("kernel", [Linear(1.0), Linear(0.5), RBF(3.0), Cosine(), 0.5 * RBF(3.0) + Linear(0.1)])
def test_a_kernel_is_what_its_matrix_is(kernel):
    exact = {"C": 0.01, "tol": 1e-7, "max_iter": 100_000}
    model = MaxMarginTreeClassifier(TREE, kernel=kernel, **exact).fit(X, Y)
    given = MaxMarginTreeClassifier(TREE, kernel=Precomputed(), **exact).fit(kernel(X, X), Y)
    assert given.result_.objective == pytest.approx(model.result_.objective, rel=1e-6)
    anew = MaxMarginTreeClassifier(TREE, kernel=kernel, memory_limit=0.0, **exact).fit(X, Y)
    expected = model.decision_function(X_NEW)
    np.testing.assert_allclose(given.decision_function(kernel(X_NEW, X)), expected, atol=1e-2)
    np.testing.assert_allclose(anew.decision_function(X_NEW), expected, atol=1e-2)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows(form):
    exact = {"C": 0.01, "tol": 1e-7, "max_iter": 100_000}
    dense = MaxMarginTreeClassifier(TREE, **exact).fit(X, Y)
    model = MaxMarginTreeClassifier(TREE, **exact).fit(form(X), Y)
    np.testing.assert_allclose(model.decision_function(form(X_NEW)), dense.decision_function(X_NEW), atol=1e-2)


def test_costs_are_compared_on_rows_held_out():
    model = MaxMarginTreeClassifier(TREE, C="cv").fit(X, Y)
    assert model.held_out_losses_[model.C_] == min(model.held_out_losses_.values())
    assert len(model.held_out_losses_) == 6
    same = MaxMarginTreeClassifier(TREE, C=model.C_).fit(X, Y)
    assert same.held_out_losses_ is None
    two = MaxMarginTreeClassifier(TREE, C=[1.0, 1e-6]).fit(X, Y)
    assert two.C_ == 1.0
    assert list(two.held_out_losses_) == [1e-6, 1.0]
    by_kernel = MaxMarginTreeClassifier(TREE, C=[1.0, 1e-6], kernel=Precomputed()).fit(X @ X.T, Y)
    assert by_kernel.held_out_losses_ == pytest.approx(two.held_out_losses_, abs=0.1)
    again = clone(model).fit(X, Y).refit(X_NEW, Y_NEW)
    assert again.C_ == model.C_
    assert again.held_out_losses_ == model.held_out_losses_


def test_probabilities_are_calibrated_on_rows_held_out():
    plain = MaxMarginTreeClassifier(TREE).fit(X, Y)
    with pytest.raises(ValueError, match="calibrate=True"):
        plain.predict_proba(X)
    model = MaxMarginTreeClassifier(TREE, calibrate=True).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X_NEW), plain.decision_function(X_NEW))
    p = model.predict_proba(X_NEW)
    temperature, offset = model.calibration_
    np.testing.assert_allclose(p, expit((model.decision_function(X_NEW) + offset) / temperature))
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X_NEW), atol=1e-12)
    truth = np.array([[name in labels for name in model.classes_] for labels in Y_NEW])
    share = truth.mean(axis=0)
    log_loss = -np.log(np.where(truth, p, 1 - p)).mean()
    assert log_loss < 0.6 * -np.log(np.where(truth, share, 1 - share)).mean()
    nodes = model.predict_node_proba(X_NEW)
    for node, parent in enumerate(TREE.parents):
        if parent >= 0:
            assert (nodes[:, node] <= nodes[:, parent] + 1e-12).all()
    for loss in ("hamming", "f1", "hierarchical", "zero-one"):
        assert model.score(X_NEW, model.decide(X_NEW, loss)) > 0.4
    with pytest.raises(ValueError, match="stop_cost"):
        model.decide(X_NEW, stop_cost=0.1)


@pytest.mark.parametrize("given", [{}, {"kernel": RBF(3.0)}, {"C": "cv", "calibrate": True, "loss": "zero-one"}])
def test_files(given, tmp_path):
    model = MaxMarginTreeClassifier(TREE, **given).fit(X, Y)
    taxolearn.save(model, tmp_path / "model.taxo")
    loaded = taxolearn.load(tmp_path / "model.taxo")
    assert loaded.get_params() == model.get_params() | {"taxonomy": loaded.taxonomy}
    np.testing.assert_allclose(loaded.decision_function(X_NEW), model.decision_function(X_NEW), atol=1e-4)
    assert loaded.predict(X_NEW) == model.predict(X_NEW)
    assert (loaded.result_, loaded.C_, loaded.calibration_) == (model.result_, model.C_, model.calibration_)
    assert loaded.held_out_losses_ == model.held_out_losses_
    assert taxolearn.read_report(tmp_path / "model.taxo")


def test_rows_with_weights_and_threads():
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = MaxMarginTreeClassifier(TREE, tol=1e-6, max_iter=100_000).fit(X, Y, sample_weight=counts)
    rows = np.repeat(np.arange(len(X)), counts)
    repeated = MaxMarginTreeClassifier(TREE, tol=1e-6, max_iter=100_000).fit(X[rows], [Y[i] for i in rows])
    assert weighted.result_.objective == pytest.approx(repeated.result_.objective, rel=1e-5)
    one, three = (MaxMarginTreeClassifier(TREE, n_threads=count).fit(X, Y) for count in (1, 3))
    np.testing.assert_array_equal(one.decision_function(X_NEW), three.decision_function(X_NEW))


def test_meta_estimators():
    y = np.array([[int(name in labels) for name in sorted(TREE.names[1:])] for labels in Y])
    answers = cross_val_predict(MaxMarginTreeClassifier(TREE), X, y, cv=3)
    assert (answers == y).all(axis=1).mean() > 0.4
    assert clone(MaxMarginTreeClassifier(TREE, C=3.0)).C == 3.0


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_awkward_data():
    nothing = MaxMarginTreeClassifier(TREE).fit(np.zeros((4, 2)), [["food"], [], ["art"], ["food"]])
    assert nothing.result_.status == "converged"
    assert nothing.predict(np.zeros((1, 2))) in ([()], [("food",)])
    single = MaxMarginTreeClassifier().fit(X[:1], [["only"]])
    assert single.predict(X[:1]) == [("only",)]
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        MaxMarginTreeClassifier(TREE, max_iter=1, tol=1e-9).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "y", "error", "message"),
    [
        ({"loss": "hinge"}, Y, ValueError, "loss is 'hinge'"),
        ({"scaling": "subtree"}, Y, ValueError, 'goes with loss="hierarchical"'),
        ({"scaling": "other"}, Y, ValueError, "scaling is 'other'"),
        ({"C": -1.0}, Y, ValueError, "C must be finite and above 0"),
        ({"C": []}, Y, ValueError, "C is an empty sequence"),
        ({"C": "best"}, Y, ValueError, "C is 'best'"),
        ({"folds": 1}, Y, ValueError, "folds must be"),
        ({"kernel": Function(np.dot)}, Y, TypeError, "Precomputed"),
        ({"taxonomy": "tree"}, Y, TypeError, "taxonomy must be"),
        ({}, ["food"] * len(Y), ValueError, "one label per row"),
        ({}, [["what"]] * len(Y), ValueError, "what"),
        ({"C": "cv", "folds": 1000}, Y, ValueError, "folds=1000"),
    ],
)
def test_errors(given, y, error, message):
    with pytest.raises(error, match=message):
        MaxMarginTreeClassifier(**{"taxonomy": TREE} | given).fit(X, y)


def test_it_has_to_be_fitted():
    with pytest.raises(NotFittedError):
        MaxMarginTreeClassifier(TREE).predict(X)
    with pytest.raises(ValueError, match="explain needs a linear model"):
        MaxMarginTreeClassifier(TREE).fit(X, Y).explain(X)


def test_answers_are_written_as_by_recursive_regularization():
    other = RecursiveRegularizationClassifier(TREE, tuning=None).fit(X, Y)
    model = MaxMarginTreeClassifier(TREE).fit(X, Y)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert model.label_form_.kind == other.label_form_.kind
