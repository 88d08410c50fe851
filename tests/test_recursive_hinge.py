"""The estimator of recursive regularization with hinge losses: against liblinear, the core, and its own laws."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxolearn import CrossValidation, RecursiveRegularizationClassifier, Taxonomy, load, prune, read_report, save
from taxolearn.estimators.label_calibration import fit_class_temperature
from taxolearn.estimators.recursive_hinge import HingeProblem
from taxolearn.estimators.recursive_variances import tied_with_root
from taxolearn.fitting.functions import LinearFunctions
from taxolearn.fitting.node_functions import NodeFunctions
from taxolearn.fitting.recursive import fit_recursive
from taxolearn.targets import label_targets

LOSSES = ("hinge", "squared_hinge")
TREE = Taxonomy.from_labels(["a/b", "a/c", "d/e/g", "f"])
NODES = ["a", "a/b", "a/c", "d", "d/e", "d/e/g", "f"]
LEAVES = ["a/b", "a/c", "d/e/g", "f"]


def make_rows(n=120, d=5, width=4, seed=0, shift=0.7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, width)) + rng.normal(size=(n, width)) > shift).astype(int)


def one_label(Y):
    return np.array(LEAVES)[Y.argmax(axis=1)]


def sparse_rows(n=200, d=4000, seed=0):
    """Rows of a few words each, most of which never occur, so that most weights are zero."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.001, rng=rng, format="csr")
    return X, rng.integers(0, 4, size=n)


def hinge(*arguments, **options):
    return RecursiveRegularizationClassifier(*arguments, **{"loss": "hinge", "tuning": None, "C": 1.0, **options})


@parametrize_with_checks(
    [
        hinge(),
        hinge(loss="squared_hinge", tuning=CrossValidation(2, max_evaluations=3), C=None),
    ],
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": "fits are equal within their gap only, and folds differ"
        for kind in ("dense", "sparse")
    },
)
@pytest.mark.filterwarnings("ignore:Learning hyperparameters. stopped after max_evaluations")
@pytest.mark.filterwarnings("ignore:The fit stopped after 1000 iterations")
def test_scikit_learn_check(estimator, check):
    check(estimator)


# -- The minimum ------------------------------------------------------------------------------------------------------


def liblinear_objective(loss, X, Y, C, costs):
    """The least objective of all labels, each by liblinear, and its coefficients."""
    total, coef = 0.0, []
    for label, cost in zip(Y.T, costs, strict=True):
        one = LinearSVC(loss=loss, C=C, tol=1e-9, max_iter=10**6).fit(X, label, sample_weight=cost)
        slack = np.maximum(0, 1 - np.where(label == 1, 1, -1) * one.decision_function(X))
        own = (one.coef_**2).sum() + (one.intercept_**2).sum()
        total += own / (2 * C) + cost @ (slack if loss == "hinge" else slack**2)
        coef.append(one.coef_[0])
    return total, np.array(coef)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["one", "several", "weighted", "classes", "balanced"])
def test_flat_is_liblinear(loss, kind):
    X, Y = make_rows()
    options, y, weights = {}, Y, np.ones(len(X))
    if kind == "one":
        y = Y.argmax(axis=1)
        Y = np.eye(4, dtype=int)[y]
    positive = np.ones(4)
    if kind == "weighted":
        weights = np.random.default_rng(1).integers(0, 3, size=len(X)).astype(float)
    elif kind == "classes":
        options["class_weight"] = {0: 3.0, 2: 0.5}
        positive[[0, 2]] = 3.0, 0.5
    elif kind == "balanced":
        options["class_weight"] = "balanced"
        positive = Y.sum() / (4 * Y.sum(axis=0))
    model = hinge(loss=loss, C=0.7, tol=1e-8, max_iter=10**5, **options).fit(X, y, sample_weight=weights)
    costs = weights * np.where(Y.T == 1, positive[:, None], 1.0)
    least, coef = liblinear_objective(loss, X, Y, 0.7, costs)
    assert model.result_.objective == pytest.approx(least, rel=1e-6)
    assert model.result_.relative_gap <= 1e-8
    np.testing.assert_allclose(model.coef_, coef, atol=2e-3)
    if kind == "one":
        peer = LinearSVC(loss=loss, C=0.7, tol=1e-8, max_iter=10**6).fit(X, y)
        assert (model.predict(X) == peer.predict(X)).mean() > 0.98  # two labels may be as good


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tying", ["shared", "level", "node"])
def test_trees_are_those_of_the_core_whichever_way_it_takes(loss, tying):
    X, Y = make_rows()
    y = one_label(Y)
    groups, names = tied_with_root(TREE, tying)
    variances = np.random.default_rng(0).uniform(0.3, 2.0, size=len(names))
    C = variances if len(names) > 1 else float(variances[0])
    model = hinge(TREE, loss=loss, tying=tying, C=C, tol=1e-7, max_iter=10**4).fit(X, y)
    labels = TREE.leaf_index(y)
    other = fit_recursive(
        X,
        np.arange(len(X) + 1),
        labels,
        4,
        parents=TREE.parents,
        variances=variances[groups],
        loss=loss,
        method="alternating",
        tol=1e-7,
        max_iter=10**4,
    )
    assert model.result_.objective == pytest.approx(other.objective, rel=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), other.predictor().scores(X)[:, np.argsort(TREE.classes)], atol=5e-3
    )
    found = model.C_ if isinstance(model.C_, float) else list(model.C_.values())
    np.testing.assert_allclose(found, C)


def test_without_intercepts():
    X, Y = make_rows()
    assert not hinge(intercept_variance=0.0).fit(X, Y).intercept_.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_warm_path_ends_where_cold_fits_do(loss):
    X, Y = make_rows(n=200)
    model = hinge(TREE, loss=loss)
    problem = HingeProblem.of(model, X, label_targets(one_label(Y), TREE, "own"), None)
    duals = None
    for step in range(-3, 4):
        logs = problem.variances(None) + step * np.log(4.0)
        warm, cold = (problem.fit(logs, 1e-7, start=start) for start in (duals, None))
        assert warm.objective == pytest.approx(cold.objective, rel=3e-7)
        duals = warm.duals


def test_warm_start():
    X, Y = make_rows(n=300)
    model = hinge(TREE, C=1.0, warm_start=True, tol=1e-5).fit(X[:290], Y[:290])
    model.fit(X, Y)
    cold = clone(model).fit(X, Y)
    assert model.result_.objective == pytest.approx(cold.result_.objective, rel=2e-4)
    again = model.fit(X, Y)
    assert again.result_.passes < 0.5 * cold.result_.passes
    model.fit(X[:50, :3], Y[:50])  # nothing to start from
    assert model.coef_.shape == (7, 3)


# -- Learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("several", [False, True])
def test_variances_are_learned(loss, several):
    X, Y = make_rows(n=200)
    y = Y if several else one_label(Y)
    model = RecursiveRegularizationClassifier(TREE, loss=loss, tuning=CrossValidation(3)).fit(X, y)
    values = model.cv_result_.values
    assert model.cv_result_.status == "converged"
    assert values.min() < values[0]
    assert list(model.C_) == [*(f"level {k}" for k in range(1, len(model.C_))), "root"]
    assert (model.thresholds_ is not None) == several
    again = hinge(TREE, loss=loss, C=list(model.C_.values()), temperature=model.hyperparameters_.temperature)
    again.set_params(offset=model.offset_).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-6)
    shared = RecursiveRegularizationClassifier(TREE, loss=loss, tying="shared", tuning=CrossValidation(3)).fit(X, y)
    assert isinstance(shared.C_, float)


def test_probabilities_are_those_of_held_out_rows():
    X, Y = make_rows(n=1500)
    y = Y.argmax(axis=1)
    model = RecursiveRegularizationClassifier(loss="hinge", tuning=CrossValidation(3)).fit(X[:750], y[:750])
    plain = hinge(C=model.C_).fit(X[:750], y[:750])
    assert log_loss(y[750:], model.predict_proba(X[750:])) < log_loss(y[750:], plain.predict_proba(X[750:]))
    assert model.cv_result_.values.min() == pytest.approx(log_loss(y[750:], model.predict_proba(X[750:])), abs=0.1)
    several = RecursiveRegularizationClassifier(loss="hinge", tuning=CrossValidation(3)).fit(X[:750], Y[:750])
    p, truth = several.predict_proba(X[750:]).ravel(), Y[750:].ravel()
    bins = np.minimum((p * 5).astype(int), 4)
    for b in range(5):
        assert truth[bins == b].mean() == pytest.approx(p[bins == b].mean(), abs=0.1)
    u = several.decision_function(X)
    np.testing.assert_array_equal(several.predict(X), u > 0)
    np.testing.assert_allclose(
        several.predict_proba(X), 1 / (1 + np.exp(-(u + several.offset_) / several.hyperparameters_.temperature))
    )
    s_cut = several.decide(X, thresholds="s-cut")
    np.testing.assert_array_equal(s_cut, several.predict_proba(X) > several.thresholds_)


def test_the_temperature_is_the_minimum():
    rng = np.random.default_rng(3)
    u = rng.normal(size=(200, 3))
    labels = np.array([rng.choice(3, p=np.exp(4 * row) / np.exp(4 * row).sum()) for row in u])
    temperature, loss = fit_class_temperature(u, labels)

    def penalized(t):
        return fit_class_temperature(u, labels, given=float(np.exp(t)))[1] + t**2 / 2

    at = np.log(temperature)
    assert penalized(at) <= min(penalized(at - 0.01), penalized(at + 0.01))
    assert loss == pytest.approx(
        log_loss(labels, np.exp(u / temperature) / np.exp(u / temperature).sum(1)[:, None], normalize=False)
    )


def test_a_search_ends_early():
    X, Y = make_rows()
    tuning = CrossValidation(2, max_evaluations=2, repeats=2, subset=80, learn_temperature=False)
    with pytest.warns(ConvergenceWarning, match="max_evaluations=2"):
        model = RecursiveRegularizationClassifier(loss="hinge", tuning=tuning, temperature=0.5).fit(X, Y)
    assert len(model.cv_result_.values) == 2
    assert model.hyperparameters_.temperature == 0.5
    assert model.offset_ == 0
    model = RecursiveRegularizationClassifier(loss="hinge", tuning=CrossValidation(2, time_limit=0)).fit(X, Y)
    assert model.cv_result_.status == "time_limit"
    with pytest.raises(ValueError, match="hinge losses have none"):
        RecursiveRegularizationClassifier(loss="hinge", tuning=CrossValidation(2, checkpoint="file")).fit(X, Y)


def test_refit_keeps_what_was_learned():
    X, Y = make_rows(n=200)
    model = RecursiveRegularizationClassifier(TREE, loss="hinge", tuning=CrossValidation(2)).fit(X[:150], Y[:150])
    C, offset, temperature = model.C_, model.offset_, model.hyperparameters_.temperature
    model.refit(X, Y)
    assert pytest.approx(C) == model.C_
    assert (model.offset_, model.hyperparameters_.temperature) == (offset, temperature)


# -- Sparse weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taxonomy", [None, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("several", [False, True])
def test_sparse_weights_answer_as_dense_ones_do(taxonomy, several, tmp_path):
    X, codes = sparse_rows()
    y = np.array(LEAVES)[codes]
    if several:
        y = [[LEAVES[code]] if k % 5 else [LEAVES[code], LEAVES[code - 1]] for k, code in enumerate(codes)]
    model = hinge(taxonomy, C=10.0).fit(X, y)
    assert isinstance(model._functions, NodeFunctions)
    assert sp.issparse(model.coef_)
    dense = clone(model).fit(X, y)
    dense._functions = LinearFunctions(model.coef_.toarray(), model.intercept_)
    for method in ("decision_function", "predict_proba"):
        np.testing.assert_allclose(getattr(model, method)(X), getattr(dense, method)(X), atol=1e-10)
    assert np.array_equal(model.predict(X), dense.predict(X)) if not several else model.predict(X) == dense.predict(X)
    for k in (1, 3, 10):
        for own, other in zip(model.top_classes(X, k), dense.top_classes(X, k), strict=True):
            if own.dtype.kind == "f":
                np.testing.assert_allclose(own, other)
            else:
                assert (own == other).mean() > 0.99  # rows without a word have equal ones
    assert len(model.explain(X[:5])) == 5
    save(model, tmp_path / "model.taxo", dtype="float64")
    again = load(tmp_path / "model.taxo")
    assert isinstance(again._functions, NodeFunctions)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.result_ == model.result_
    assert again.C_ == model.C_
    save(model, tmp_path / "small.taxo")
    np.testing.assert_allclose(
        load(tmp_path / "small.taxo").decision_function(X), model.decision_function(X), atol=1e-5
    )
    assert read_report(tmp_path / "model.taxo")["functions"] == "nodes"


def test_pruning():
    X, codes = sparse_rows()
    for taxonomy in (None, TREE):
        model = hinge(taxonomy, C=10.0).fit(X, np.array(LEAVES)[codes])
        small = prune(model, 0.9)
        assert small._functions.weights.nnz < model._functions.weights.nnz
        assert small.predict_proba(X).shape == (200, 4)
        same = prune(model, 0.0)
        np.testing.assert_allclose(same.decision_function(X), model.decision_function(X))
    X, Y = make_rows()
    dense = hinge(TREE).fit(X, Y)
    pruned = prune(dense, 0.5)
    assert pruned.coef_.nnz <= 0.5 * dense.coef_.size + 1
    assert len(pruned.predict(X)) == len(X)
    logistic = RecursiveRegularizationClassifier(TREE, C=1.0, tuning=None).fit(X, Y)
    np.testing.assert_allclose(prune(logistic, 0.0).predict_proba(X), logistic.predict_proba(X))


def test_files_of_others_are_checked(tmp_path):
    X, codes = sparse_rows()
    model = hinge(TREE, C=10.0).fit(X, np.array(LEAVES)[codes])
    good = model._functions
    for wrong in (
        {"order": np.array([0, 1, 2, 2])},
        {"parents": np.zeros(8, dtype=np.int64)},
        {"parents": np.array([-1, 5, 0, 0, 1, 2, 3, 4])},
        {"parents": None},
        {"intercepts": np.full(8, np.nan)},
    ):
        model._functions = NodeFunctions(**{**vars(good), **wrong})
        save(model, tmp_path / "model.taxo")
        with pytest.raises(ValueError, match=r"do not fit together|not finite"):
            load(tmp_path / "model.taxo")


# -- Among people -----------------------------------------------------------------------------------------------------


def test_threads_change_nothing():
    X, Y = make_rows(n=200)
    tuning = CrossValidation(2, max_evaluations=20)
    one, two = (
        RecursiveRegularizationClassifier(TREE, loss="hinge", tuning=tuning, n_threads=n).fit(X, Y) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.C_ == two.C_


INTERRUPT = """
    import os, signal, threading, time
    import numpy as np
    from taxolearn import CrossValidation, RecursiveRegularizationClassifier

    X = np.random.default_rng(0).standard_normal((20000, 50))
    y = np.arange(20000) % 50
    sent = []

    def send():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(1.0, send).start()
    options = dict(loss="hinge", C=1e4, n_threads=1, max_iter=10**6, tol=1e-12)
    try:
        RecursiveRegularizationClassifier(tuning={tuning}, **options).fit(X, y)
        print("ended")
    except KeyboardInterrupt:
        print("interrupted", time.process_time() - sent[0])
    again = RecursiveRegularizationClassifier(loss="hinge", tuning=None, C=1.0).fit(np.eye(3), [0, 1, 2])
    print(again.predict(np.eye(3)))
"""


@pytest.mark.parametrize("tuning", ["None", "CrossValidation(2)"])
def test_ctrl_c_stops_a_fit(run_python, tuning):
    done = run_python(INTERRUPT.format(tuning=tuning))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("interrupted"), done.stdout
    assert float(first.split()[1]) < 1
    assert second == "[0 1 2]"


def test_a_fit_that_stops_early_says_so(capsys):
    X, Y = make_rows()
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        model = hinge(C=100.0, max_iter=1, tol=1e-8, verbose=2).fit(X, Y)
    assert model.result_.status == "max_iter"
    assert model.n_iter_ == 1
    assert "relative gap" in capsys.readouterr().err


# -- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be finite and above 0"),
        ({"C": [1.0, 2.0]}, "C has shape"),
        ({"C": [1.0, 2.0, 3.0], "taxonomy": TREE}, r"C has shape \(3,\), expected \(4,\) for: level 1"),
        ({"C": [1.0, 2.0, -3.0, 4.0], "taxonomy": TREE}, "C must be finite and above 0"),
        ({"tying": "all"}, "tying is 'all'"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"intercept_variance": -1.0}, "intercept_variance must be"),
        ({"temperature": 0.0}, "temperature must be"),
        ({"class_weight": {"z": 1.0}}, "class_weight names labels"),
    ],
)
def test_arguments(options, message):
    X, Y = make_rows()
    with pytest.raises(ValueError, match=message):
        hinge(**options).fit(X, Y)


@pytest.mark.parametrize("taxonomy", [None, TREE], ids=["flat", "tree"])
def test_labels_that_do_not_fit(taxonomy):
    X, Y = make_rows()
    model = hinge(taxonomy)
    for wrong, message in (
        (np.where(np.arange(480).reshape(120, 4) == 13, 7, Y), "row 3, column 1 is 7"),
        (np.where(np.arange(480).reshape(120, 4) == 13, np.nan, Y), "row 3, column 1 is NaN"),
        (np.zeros_like(Y), "y says nothing"),
        ([[] for _ in range(120)], "y says nothing"),
        (Y[:-1], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, wrong)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2, np.nan, X), Y)
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, Y, sample_weight=np.zeros(120))
    if taxonomy is not None:
        with pytest.raises(ValueError, match="a/x"):
            model.fit(X, [["a/x"]] * 120)


def test_labels_that_are_always_or_never_there():
    X, Y = make_rows()
    Y[:, 0], Y[:, 1] = 1, 0
    with pytest.warns(UserWarning, match="no row has the label 1"):
        model = hinge(class_weight="balanced").fit(X, Y)
    answers = model.predict(X)
    assert answers[:, 0].all()
    assert not answers[:, 1].any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tuned = RecursiveRegularizationClassifier(loss="hinge", tuning=CrossValidation(2)).fit(X, Y)
    assert tuned.predict_proba(X)[:, 0].min() > 0.6
