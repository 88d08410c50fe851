"""``MaxMarginTreeClassifier``: forms of labels, trees and forests, kernels, learning C, probabilities, files."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.utils import assert_all_finite
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

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


class OfOneLabel(MaxMarginTreeClassifier):
    """Reads one label per row and answers with the best one, for the checks of scikit-learn, which have such labels."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        tags.classifier_tags.multi_label = False
        return tags

    def fit(self, X, y, sample_weight=None):
        if y is not None:
            assert_all_finite(y)
            check_classification_targets(y)
            y = [[int(label) if isinstance(label, float) else label] for label in column_or_1d(y, warn=True).tolist()]
        return super().fit(X, y, sample_weight)

    def decision_function(self, X):
        u = super().decision_function(X)
        return u[:, 1] - u[:, 0] if u.shape[1] == 2 else u

    def predict_proba(self, X):
        p = super().predict_proba(X)
        return p / p.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))

    def predict(self, X):
        best = super().decision_function(X).argmax(axis=1)
        return self.classes_[best]


@parametrize_with_checks(
    [OfOneLabel(calibrate=True, folds=2), OfOneLabel(C="cv", calibrate=True, kernel="rbf", folds=2)],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "rows that are repeated or removed make other folds"
        for kind in ("dense", "sparse")
    },
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:The fit stopped after")  # some features have a mean of 100 and a deviation of 1
def test_scikit_learn_check(estimator, check):
    check(estimator)


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
    np.testing.assert_array_equal(loaded.thresholds_, model.thresholds_)
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


@pytest.mark.parametrize(
    ("rows", "y", "given", "message"),
    [
        (np.where(np.arange(12) == 5, np.nan, X), Y, {}, "X contains NaN"),
        (sp.csr_array(np.where(np.arange(12) == 5, np.inf, X)), Y, {}, "X contains infinity"),
        (X, [[]] * len(X), {}, "says nothing"),
        (X, np.zeros((len(X), len(LEAVES)), dtype=int), {}, "says nothing"),
        (X, [[TREE.names[0]]] * len(X), {}, "the root of the taxonomy"),
        (X[:0], np.zeros((0, len(LEAVES)), dtype=int), {}, "at least one row"),
        (X[:, :0], Y, {}, "0 feature"),
        (X[:5], Y, {}, "inconsistent numbers of samples"),
        (X, None, {}, "requires y"),
        (X, Y, {"sample_weight": [1.0, 2.0]}, "sample_weight"),
        (X, Y, {"sample_weight": -np.ones(len(X))}, "Negative values"),
        (X, Y, {"sample_weight": np.zeros(len(X))}, "at least one non-zero"),
    ],
)
def test_rows_that_cannot_be(rows, y, given, message):
    model = MaxMarginTreeClassifier(TREE)
    with pytest.raises(ValueError, match=message):
        model.fit(rows, y, **given)
    assert not hasattr(model, "classes_")


def test_a_tree_with_one_node():
    y = [["only"] if x > 0 else [] for x in X[:, 0]]
    model = MaxMarginTreeClassifier(Taxonomy.from_labels(["only"])).fit(X, y)
    assert model.score(X, y) > 0.9
    flat = MaxMarginTreeClassifier().fit(X, y)
    np.testing.assert_array_equal(flat.decision_function(X), model.decision_function(X))


def test_thresholds_come_with_probabilities():
    model = MaxMarginTreeClassifier(TREE, calibrate=True).fit(X, Y)
    above = [set(row) for row in model.decide(X_NEW, thresholds="s-cut")]
    p = model.predict_proba(X_NEW)
    for row, answer in zip(p > model.thresholds_, above, strict=True):
        named = set(model.classes_[row].tolist())
        assert answer == named | {name for name in model.classes_ if any(o.startswith(name + "/") for o in named)}
    labels, largest = model.top_classes(X_NEW, 2)
    np.testing.assert_array_equal(largest, -np.sort(-p, axis=1)[:, :2])
    assert labels.shape == largest.shape
    again = clone(model).fit(X, Y).refit(X_NEW, Y_NEW)
    np.testing.assert_array_equal(again.thresholds_, model.thresholds_)
    with pytest.raises(ValueError, match="calibrate=True"):
        MaxMarginTreeClassifier(TREE).fit(X, Y).decide(X_NEW, thresholds="s-cut")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_ctrl_c_stops_a_fit(run_python, kernel):
    """One that would not reach its accuracy for hours; the classifier stays unfitted and can be fitted again."""
    done = run_python(
        """
        import os, signal, sys, threading, time
        import numpy as np
        from taxolearn import MaxMarginTreeClassifier

        random = np.random.default_rng(0)
        X, y = random.standard_normal((3000, 50)), random.integers(0, 2, (3000, 20))
        model = MaxMarginTreeClassifier(kernel=sys.argv[1], C=100.0, tol=1e-15, max_iter=10**9, n_threads=1)
        sent = []

        def send():
            sent.append(time.process_time())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(1.0, send).start()
        try:
            model.fit(X, y)
            print("ended")
        except KeyboardInterrupt:
            print("interrupted", time.process_time() - sent[0])
        print(hasattr(model, "classes_"), model.set_params(tol=0.5, C=1e-3).fit(X[:20], y[:20]).n_iter_ > 0)
        """,
        kernel,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("interrupted"), done.stdout
    assert float(first.split()[1]) < 1  # of the processor's time
    assert second == "False True"


def test_cut_files_are_refused(tmp_path):
    taxolearn.save(MaxMarginTreeClassifier(TREE, calibrate=True).fit(X, Y), tmp_path / "model.taxo")
    whole = (tmp_path / "model.taxo").read_bytes()
    for size in range(0, len(whole), max(1, len(whole) // 50)):
        (tmp_path / "model.taxo").write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"model\.taxo"):
            taxolearn.load(tmp_path / "model.taxo")


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
