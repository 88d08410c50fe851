"""Learned couplings: gradients, starts, recovery of known factors, and all that an estimator must be able to do."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, LearnedCoupling, Solver, Taxonomy, Tree, _core
from taxolearn.couplings import ClassFactors, SimilarityTable
from taxolearn.kernels import RBF, Linear, PerClass, Precomputed
from taxolearn.model_selection import CrossValidationObjective
from taxolearn.tuning.initial_loadings import confusion, leading_loadings

PATHS = ["a/x", "a/y", "b/x", "b/y", "b/z"]
TREE = Taxonomy.from_labels(PATHS, separator="/")


def factor_data(n, *, n_classes=12, rank=2, d=60, own=0.3, seed=0):
    """Rows whose classes share functions with known loadings."""
    random = np.random.RandomState(seed)
    B = random.standard_normal((n_classes, rank))
    weights = random.standard_normal((d, rank)) @ B.T + own * random.standard_normal((d, n_classes))
    X = random.standard_normal((n, d)) / np.sqrt(d)
    u = 2 * X @ weights
    return X, (u + random.gumbel(size=u.shape)).argmax(axis=1), B


def agreement(A, B):
    """Correlation of what softmax sees of A A' and B B', off the diagonal."""
    n = len(A)
    centre = np.eye(n) - 1 / n
    above = np.triu_indices(n, 1)
    first, second = (centre @ L @ L.T @ centre for L in (A, B))
    return np.corrcoef(first[above], second[above])[0, 1]


def small_problem(n=60, seed=3):
    X, y, _ = factor_data(n, n_classes=5, d=6, seed=seed)
    return X, np.array(PATHS)[y]


def log_loss(model, X, y):
    return -model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()


# -- The core's coupling -----------------------------------------------------------------------------------------------


def test_core_coupling_against_dense_algebra():
    random = np.random.RandomState(0)
    B, S, H = (random.standard_normal(shape) for shape in ((5, 2), (7, 5), (7, 5)))
    variances = random.uniform(0.5, 2, 5)
    base = _core.IndependentCoupling(variances, np.arange(5))
    coupling = _core.FactorCoupling(base, B)
    G = np.diag(variances) + B @ B.T
    assert (coupling.classes, coupling.factors, coupling.parameters) == (5, 7, 15)
    assert_allclose(coupling.apply(S), S @ G, rtol=1e-12)
    assert_allclose(coupling.apply(S.astype(np.float32)), S @ G, rtol=1e-4, atol=1e-5)
    assert_allclose(coupling.diag(), np.diag(G))
    slope = np.concatenate([variances * (S * H).sum(axis=0), ((S.T @ H + H.T @ S) @ B).ravel()])
    assert_allclose(coupling.bilinear_grad(S, H), slope, rtol=1e-10)
    alone = _core.FactorCoupling(None, B)
    del base  # the coupling keeps what it was made of
    assert_allclose(coupling.from_factors(coupling.to_factors(S)), S @ G, rtol=1e-12)
    assert_allclose(alone.apply(S), S @ B @ B.T, rtol=1e-12)


# -- The criterion -----------------------------------------------------------------------------------------------------


def learner(coupling, kernel="linear", folds=3, **options):
    return KernelLogisticClassifier(kernel, coupling=coupling, tuning=CrossValidation(folds), **options)


KERNELS = {
    "linear": (Linear(2.0), "auto"),
    "linear by its matrix": (Linear(2.0), "gram"),
    "rbf": (RBF(1.5, 2.0), "auto"),
    "matrix": (Precomputed(2.0), "auto"),
}


@pytest.mark.parametrize("base", ["independent", "tree", None])
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_gradient_is_that_of_the_criterion(kernel, base):
    X, y = small_problem()
    chosen, algorithm = KERNELS[kernel]
    if kernel == "matrix":
        X = X @ X.T
    elif kernel == "linear":
        X = sp.csr_matrix(np.where(np.abs(X) > 0.2, X, 0.0))
    taxonomy = TREE if base == "tree" else None
    coupling = LearnedCoupling(2, base=base)
    model = KernelLogisticClassifier(
        chosen,
        taxonomy=taxonomy,
        coupling=coupling,
        tuning=CrossValidation(3),
        solver=Solver(products=algorithm, precision="double"),
    )
    objective = CrossValidationObjective(model, X, y)
    assert ("coupling.variance" in objective.names) == (base is not None)
    assert np.count_nonzero(~objective.is_log) == 10
    random = np.random.RandomState(1)
    theta = objective.theta + 0.2 * random.standard_normal(len(objective.theta))
    gradient = objective.value_and_gradient(theta, tol=1e-12)[1]
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-4
        above, below = (objective.value(theta + sign * step, tol=1e-12) for sign in (1, -1))
        assert_allclose(gradient[k], (above - below) / 2e-4, rtol=1e-4, atol=1e-4, err_msg=objective.names[k])


def test_the_scale_of_the_loadings_is_no_parameter_but_for_the_penalty():
    X, y = small_problem()
    values = []
    for factor in (1.0, 3.0):
        coupling = LearnedCoupling(2, penalty=0)
        objective = CrossValidationObjective(learner(coupling, Linear()), X, y)
        values.append(objective.value(np.where(objective.is_log, 1.0, factor) * objective.theta))
    assert_allclose(values[1], values[0], rtol=1e-9)


def test_penalty_is_that_of_a_gaussian_about_the_start():
    X, y = small_problem()
    free, held = (CrossValidationObjective(learner(LearnedCoupling(2, penalty=penalty)), X, y) for penalty in (0, 4.0))
    assert_array_equal(free.theta, held.theta)
    assert_allclose(held.value(held.theta), free.value(free.theta), rtol=1e-12)
    theta = held.theta + np.where(held.is_log, 0.0, 0.1)
    # Ten entries with a prior variance of 1 / 4, relative to a mean square of 1.
    assert_allclose(np.mean(held.theta[~held.is_log] ** 2), 1.0)
    assert_allclose(held.value(theta) - free.value(theta), 10 * 0.1**2 * 4 / 2, rtol=1e-7)


# -- The start ---------------------------------------------------------------------------------------------------------


def test_start_finds_groups_of_classes_that_are_confused():
    groups = np.repeat([0, 1, 2], [4, 3, 3])
    M = 0.02 + 0.1 * (groups[:, None] == groups)
    np.fill_diagonal(M, np.linspace(0.3, 0.9, 10))  # how often they are right does not matter
    B = leading_loadings(M / M.sum(axis=1)[:, None], 2)
    assert_allclose(np.linalg.norm(B), 1)
    similarity = ClassFactors(B, np.arange(10)).correlations()
    same = groups[:, None] == groups
    assert similarity[same].min() > 0.9 > 0.1 > similarity[~same].max()
    assert_allclose(B.sum(axis=0), 0, atol=1e-7)
    assert (B[np.abs(B).argmax(axis=0), [0, 1]] > 0).all()


def test_confusion_is_what_labels_drawn_from_the_probabilities_would_give():
    proba = np.array([[0.8, 0.1, 0.1], [0.6, 0.4, 0.0], [0.2, 0.3, 0.5]])
    weights = np.array([1.0, 3.0, 1.0])
    expected = sum(w * np.outer(p, p) for w, p in zip(weights, proba, strict=True))
    assert_allclose(confusion(proba, weights), expected)


def test_loadings_wait_until_their_variance_is_right():
    X, y, _ = factor_data(600)
    model = KernelLogisticClassifier(coupling=LearnedCoupling(2)).fit(X, y)
    result = model.cv_result_
    moved = np.abs(result.thetas - result.start)[:, ~result.is_log].max(axis=1) > 0
    first = int(moved.argmax())
    assert first > 2
    assert moved[first:].all()
    assert np.abs(result.thetas[first - 1] - result.start)[result.is_log].max() > 0.1
    assert result.values[moved].min() < result.values[~moved].min()


def test_start_does_not_see_the_labels_that_are_held_out():
    X, y, _ = factor_data(300)
    inside = np.arange(len(y)) % 3 == 0
    other = y.copy()
    other[inside] = np.random.default_rng(0).permutation(y[inside])
    assert (other != y).sum() > 50
    starts = [
        CrossValidationObjective(learner(LearnedCoupling(3), folds=np.where(inside, 0, -1)), X, labels).theta
        for labels in (y, other)
    ]
    assert_array_equal(starts[0], starts[1])
    changed = np.where(inside, y, y[::-1])
    moved = CrossValidationObjective(learner(LearnedCoupling(3), folds=np.where(inside, 0, -1)), X, changed)
    assert np.abs(moved.theta - starts[0]).max() > 0.1  # that of the others counts


# -- The estimator -----------------------------------------------------------------------------------------------------


def test_known_factors_are_found_and_help():
    X, y, B = factor_data(6000)
    train, test = slice(0, 2000), slice(2000, None)
    flat = KernelLogisticClassifier().fit(X[train], y[train])
    model = KernelLogisticClassifier(coupling=LearnedCoupling(2)).fit(X[train], y[train])
    start = model.cv_result_.start[~model.cv_result_.is_log].reshape(12, 2)
    assert agreement(model.coupling_.B, B) > max(0.9, agreement(start, B))
    assert log_loss(model, X[test], y[test]) < log_loss(flat, X[test], y[test]) - 0.03


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_permuted_classes_give_a_permuted_criterion(kernel):
    X, y, _ = factor_data(300, n_classes=5, d=5)
    order = np.array([3, 0, 4, 1, 2])
    first, second = (
        CrossValidationObjective(
            learner(LearnedCoupling(2), kernel, folds=np.arange(300) % 3, solver=Solver(precision="double")), X, labels
        )
        for labels in (y, order[y])
    )

    def moved(vector):
        """From the order of the first to that of the second."""
        out = vector.copy()
        loadings = np.empty((5, 2))
        loadings[order] = vector[~first.is_log].reshape(5, 2)
        out[~first.is_log] = loadings.ravel()
        return out

    assert_allclose(second.theta, moved(first.theta), atol=1e-6)
    theta = first.theta + 0.1 * np.random.RandomState(0).standard_normal(len(first.theta))
    value, gradient = first.value_and_gradient(theta)
    other_value, other_gradient = second.value_and_gradient(moved(theta))
    # The penalties are about starts that may differ in their last digits.
    assert_allclose(other_value, value, rtol=1e-6)
    assert_allclose(other_gradient, moved(gradient), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("base", ["independent", "tree", None])
@pytest.mark.parametrize("kernel", [Linear(1.5), RBF(1.0, 1.5)])
def test_given_loadings_against_a_brute_force_fit(kernel, base):
    """Also where the prior is singular: the gap bounds the distance to the minimum."""
    X, y = small_problem(24)
    B = np.random.RandomState(0).standard_normal((5, 2))
    taxonomy = TREE if base == "tree" else None
    model = KernelLogisticClassifier(
        kernel, taxonomy=taxonomy, coupling=LearnedCoupling(B=B, base=base), intercept_variance=0.5, tuning=None
    )
    model.fit(X, y)
    paths = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
    G = B @ B.T + {"independent": np.eye(5), "tree": np.eye(5) + paths @ paths.T, None: 0}[base]
    K = np.kron(G, kernel(X)) + 0.5 * np.kron(np.eye(5), np.ones((24, 24)))
    Y = (y == np.array(PATHS)[:, None]).astype(float).ravel()

    def loss(alpha):
        u = (K @ alpha).reshape(5, 24)
        return np.logaddexp.reduce(u, axis=0).sum() - Y @ u.ravel() + alpha @ K @ alpha / 2

    alpha = np.zeros(120)
    for _ in range(30):  # Newton's method in dense algebra
        u = (K @ alpha).reshape(5, 24)
        pi = np.exp(u - np.logaddexp.reduce(u, axis=0)).ravel()
        H = np.diag(pi) - np.block(
            [[np.diag(pi[24 * a : 24 * a + 24] * pi[24 * b : 24 * b + 24]) for b in range(5)] for a in range(5)]
        )
        alpha = alpha - np.linalg.solve(np.eye(120) + H @ K, alpha + pi - Y)
    excess = model.result_.objective - loss(alpha)
    assert -1e-9 < excess <= model.result_.gap + 1e-9
    assert_allclose(model.decision_function(X).T.ravel(), K @ alpha, atol=2e-2)
    tight = clone(model).set_params(tol=1e-12).fit(X, y)
    assert_allclose(tight.decision_function(X).T.ravel(), K @ alpha, atol=1e-4)


def test_zero_loadings_change_nothing():
    X, y = small_problem()
    flat = KernelLogisticClassifier(Linear(), tuning=None, tol=1e-10).fit(X, y)
    zero = clone(flat).set_params(coupling=LearnedCoupling(B=np.zeros((5, 1)))).fit(X, y)
    assert_allclose(zero.predict_proba(X), flat.predict_proba(X), atol=1e-6)


@pytest.fixture(scope="module")
def fitted():
    X, y = small_problem(150)
    model = KernelLogisticClassifier(
        taxonomy=TREE, coupling=LearnedCoupling(2), tuning=CrossValidation(folds=3, max_evaluations=6, time_limit=60)
    )
    with pytest.warns(match="max_evaluations"):
        model.fit(X, y)
    return model, X, y


def test_what_was_learned_is_what_was_fitted(fitted):
    model, X, y = fitted
    found = model.hyperparameters_
    again = KernelLogisticClassifier(
        found.kernel,
        taxonomy=TREE,
        intercept_variance=found.intercept_variance,
        temperature=found.temperature,
        tuning=None,
        tol=1e-10,
        coupling=LearnedCoupling(B=found.loadings, base=Tree(variances=list(found.variances.values()))),
    ).fit(X, y)
    assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-3)
    assert "coupling.B[a/x, 0]" in repr(model.cv_result_)
    assert_array_equal(again.coupling_.B, model.coupling_.B)


def test_files_hold_learned_couplings(fitted, tmp_path):
    model, X, _ = fitted
    taxolearn.save(model, tmp_path / "model.taxo")
    read = taxolearn.load(tmp_path / "model.taxo")
    assert_allclose(read.predict_proba(X), model.predict_proba(X), atol=1e-6)  # weights are in single precision
    assert_array_equal(read.coupling_.B, model.coupling_.B)
    assert read.coupling.get_params() == model.coupling.get_params()
    assert_array_equal(read.cv_result_.is_log, model.cv_result_.is_log)
    given = KernelLogisticClassifier(Linear(), coupling=LearnedCoupling(B=model.coupling_.B), tuning=None)
    taxolearn.save(given.fit(X, np.resize(PATHS, len(X))), tmp_path / "2.taxo")
    assert_array_equal(taxolearn.load(tmp_path / "2.taxo").coupling.B, model.coupling_.B)


def test_scikit_learn_sees_its_parameters():
    model = KernelLogisticClassifier(coupling=LearnedCoupling(3))
    assert model.get_params()["coupling__rank"] == 3
    copy = clone(model).set_params(coupling__rank=2, coupling__penalty=5.0)
    assert (copy.coupling.rank, copy.coupling.penalty, model.coupling.rank) == (2, 5.0, 3)


@pytest.mark.filterwarnings("ignore:Learning hyperparameters")
def test_interrupted_learning_goes_on_from_its_checkpoint(tmp_path):
    X, y = small_problem(120)
    arguments = {
        "coupling": LearnedCoupling(2),
        "n_threads": 1,
    }
    whole = KernelLogisticClassifier(**arguments, tuning=CrossValidation(folds=3, max_evaluations=7)).fit(X, y)
    path = tmp_path / "checkpoint"
    KernelLogisticClassifier(**arguments, tuning=CrossValidation(folds=3, max_evaluations=3, checkpoint=path)).fit(X, y)
    resumed = KernelLogisticClassifier(
        **arguments, tuning=CrossValidation(folds=3, max_evaluations=7, checkpoint=path)
    ).fit(X, y)
    assert_array_equal(resumed.cv_result_.thetas, whole.cv_result_.thetas)
    assert_array_equal(resumed.coupling_.B, whole.coupling_.B)
    arguments["coupling"] = LearnedCoupling(2, penalty=3.0)
    with pytest.raises(ValueError, match="another problem"):
        KernelLogisticClassifier(**arguments, tuning=CrossValidation(folds=3, max_evaluations=7, checkpoint=path)).fit(
            X, y
        )


def test_warm_start_needs_fewer_iterations(fitted):
    model, X, y = fitted
    given = KernelLogisticClassifier(
        Linear(), coupling=LearnedCoupling(B=model.coupling_.B), tuning=None, warm_start=True, tol=1e-8
    ).fit(X, y)
    before = given.n_iter_
    given.set_params(coupling__B=1.01 * model.coupling_.B).fit(X, y)
    assert given.n_iter_ < before


def test_similarities_are_correlations_with_labels(fitted, monkeypatch):
    model, _, _ = fitted
    table = model.coupling_.class_similarity()
    assert list(table.index) == list(table.columns) == sorted(PATHS)
    B = model.coupling_.B
    assert_allclose(table.loc["a/x", "b/z"], B[0] @ B[4] / np.linalg.norm(B[0]) / np.linalg.norm(B[4]))
    assert_array_equal(np.diag(table), 1)
    monkeypatch.setitem(sys.modules, "pandas", None)
    plain = model.coupling_.class_similarity()
    assert isinstance(plain, SimilarityTable)
    assert_array_equal(plain.values, table.to_numpy())


def test_heat_map_puts_similar_classes_side_by_side():
    plotting = pytest.importorskip("taxolearn.plotting")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    groups = np.arange(12) % 3
    factors = ClassFactors(np.eye(3)[groups], np.array([f"class {k}" for k in range(12)]))
    ax = plotting.class_similarity(factors)
    places = [groups[int(text.get_text().split()[1])] for text in ax.get_yticklabels()]
    assert np.count_nonzero(np.diff(places)) == 2
    with pytest.raises(ValueError, match="LearnedCoupling"):
        plotting.class_similarity(KernelLogisticClassifier())
    pyplot.close("all")


# -- Errors ------------------------------------------------------------------------------------------------------------

NAN = np.ones((5, 2))
NAN[3, 1] = np.nan


@pytest.mark.parametrize(
    ("coupling", "message"),
    [
        (LearnedCoupling(0), "rank must be .*at least 1"),
        (LearnedCoupling(6), r"rank is 6, more than there are classes \(5\)"),
        (LearnedCoupling(B=np.ones((4, 2))), r"B has shape \(4, 2\), expected \(5, rank\)"),
        (LearnedCoupling(B=np.ones(5)), r"B has shape \(5,\)"),
        (LearnedCoupling(B=NAN), r"B\[3, 1\] is nan"),
        (LearnedCoupling(B="no"), "B must be an array of numbers"),
        (LearnedCoupling(3, B=np.ones((5, 2))), "B has 2 columns"),
        (LearnedCoupling(B=np.zeros((5, 2))), "zeros only"),
        (LearnedCoupling(2, base="forest"), "base is 'forest', expected one of"),
        (LearnedCoupling(2, base="tree"), "needs a taxonomy"),
        (LearnedCoupling(2, penalty=-1), "penalty must be"),
    ],
)
def test_wrong_arguments_are_told(coupling, message):
    X, y = small_problem()
    with pytest.raises(ValueError, match=message):
        KernelLogisticClassifier(coupling=coupling).fit(X, y)


def test_two_classes_have_nothing_to_share():
    X, y = small_problem()
    with pytest.raises(ValueError, match="needs at least 3 classes, got 2"):
        KernelLogisticClassifier(coupling=LearnedCoupling()).fit(X, y == y[0])


def test_no_rank_means_all_that_probabilities_tell_apart():
    X, y = small_problem()
    model = KernelLogisticClassifier(coupling=LearnedCoupling(), n_threads=1, tuning=CrossValidation(max_evaluations=3))
    with pytest.warns(ConvergenceWarning, match="max_evaluations=3"):
        model.fit(X, y)
    n_classes = len(np.unique(y))
    assert model.coupling_.B.shape == (n_classes, n_classes - 1)
    assert np.linalg.svd(model.coupling_.B, compute_uv=False).min() > 1e-3


def test_loadings_on_loadings_are_refused():
    inner = _core.FactorCoupling(_core.IndependentCoupling(np.ones(5)), np.ones((5, 1)))
    with pytest.raises(ValueError, match="has loadings itself"):
        _core.FactorCoupling(inner, np.ones((5, 2)))


def test_what_does_not_go_together_is_told():
    X, y = small_problem()
    learned = LearnedCoupling(2)
    with pytest.raises(ValueError, match="give one kernel for all"):
        KernelLogisticClassifier(PerClass("rbf"), coupling=learned).fit(X, y)
    with pytest.raises(ValueError, match="without B"):
        KernelLogisticClassifier(Linear(), coupling=learned, tuning=None).fit(X, y)
    with pytest.raises(ValueError, match=r'method="exact".* is for flat models'):
        KernelLogisticClassifier(coupling=learned, solver="exact").fit(X, y)
    with pytest.raises(ValueError, match=r"coupling is 3, expected .* LearnedCoupling or Graph"):
        KernelLogisticClassifier(coupling=3).fit(X, y)
    with pytest.raises(ValueError, match=r"5000 \* 2 = 10000 loadings.*Lower rank"):
        learned.n_shared(5000)
    with pytest.raises(ValueError, match=r"1000 \* 999 = 999000 loadings"):
        LearnedCoupling().n_shared(1000)
    flat = KernelLogisticClassifier(Linear(), tuning=None).fit(X, y)
    assert not hasattr(flat, "coupling_")
