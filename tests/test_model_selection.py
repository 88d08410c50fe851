"""The cross-validation criterion: its value and gradient against dense matrices and against finite differences."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
from cv_formulas import Oracle, covariance, functions_of
from cv_models import (
    COMBINATIONS,
    INDEPENDENT,
    KERNELS,
    LABELS,
    SEEN,
    SHARINGS,
    TAXONOMY,
    TREE,
    classes_of,
    problem,
    shift,
)
from kernel_formulas import matrix
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from taxolearn import CrossValidation, Independent, KernelLogisticClassifier, Solver, Taxonomy, Tree
from taxolearn.kernels import RBF, Cosine, Function, Linear, Matern, PerClass, Polynomial, Precomputed
from taxolearn.model_selection import CrossValidationObjective
from taxolearn.tuning import learn as objective_module

TIGHT = 1e-11


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Matrices this small are slower on more."""
    with threadpool_limits(1, "blas"):
        yield


TUNING = ("folds", "repeats", "subset", "learn_intercept_variance", "learn_temperature", "deviation")
SOLVER = ("method", "precision", "products", "rank", "rank_tolerance", "memory_limit")
CRITERION = ("sample_weight", "classes", "strategy")


def make(X, y, kernel="linear", **options):
    """The criterion of a model whose tuning and solver are given by their fields, by default that of the paper."""
    defaults = {
        "learn_temperature": False,
        "deviation": None,
        "folds": 3,
        "intercept_variance": 2.0,
        "precision": "double",
        "n_threads": 1,
        "max_iter": 5000,
    }
    options = defaults | options

    def chosen(names):
        return {name: options.pop(name) for name in names if name in options}

    values = {"tuning": CrossValidation(**chosen(TUNING)), "solver": Solver(**chosen(SOLVER))}
    criterion = chosen(CRITERION)
    return CrossValidationObjective(KernelLogisticClassifier(kernel, **values, **options), X, y, **criterion)


def dense_oracle(objective, X, y, options, weights=None):
    """The oracle, and the covariance as a function of theta, by way of the readable table."""
    classes = classes_of(options).tolist()
    indices = np.array([classes.index(label) for label in y])
    oracle = Oracle(indices, len(classes), objective.partitions[0], weights)
    structure = {name: value for name, value in options.items() if name in ("taxonomy", "coupling")}
    known = {}

    def covariance_at(theta):
        table = objective.parameters.table(theta)
        return covariance(functions_of(table, classes, **structure), table.intercept_variance, X, known)

    return oracle, covariance_at


def directions(m):
    """Every axis, or where there are many of them, a few directions between them."""
    if m <= 8:
        return np.eye(m)
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((m, 5)))[0]
    return axes.T


def alike(gradient, expected, tolerance=1e-4):
    """Where fits are not exact, errors go with the largest derivative."""
    return np.abs(gradient - expected).max() <= tolerance * np.abs(expected).max()


def check_gradient(objective, theta, step=1e-4, tolerance=1e-4):
    """Against central differences of the corrected criterion."""
    value, gradient = objective.value_and_gradient(theta, TIGHT)
    for direction in directions(len(theta)):
        above = objective.value(theta + step * direction, TIGHT)
        below = objective.value(theta - step * direction, TIGHT)
        difference = (above - below) / (2 * step)
        assert abs(direction @ gradient - difference) <= tolerance * np.abs(gradient).max()
    return value, gradient


def check_against_dense(objective, X, y, options, weights=None):
    """Value and gradient against finite differences and against the oracle, away from where learning starts."""
    theta = shift(objective.theta)
    value, gradient = check_gradient(objective, theta)
    oracle, covariance_at = dense_oracle(objective, X, y, options, weights)
    expected, expected_gradient = oracle.gradient(covariance_at, theta)
    assert value == pytest.approx(expected, rel=1e-8)
    assert alike(gradient, expected_gradient, 3e-5)


@pytest.mark.parametrize(("kernel", "sharing"), COMBINATIONS)
def test_value_and_gradient(kernel, sharing):
    X, y = problem(n=22)
    own, options = SHARINGS[sharing]
    objective = make(X, y, own(KERNELS[kernel]), **options)
    check_against_dense(objective, X, y, options)


def test_oracle_is_its_own_finite_difference():
    X, y = problem(n=20)
    objective = make(X, y, RBF(2.0, 3.0), **TREE)
    theta, step = shift(objective.theta), 1e-4
    oracle, covariance_at = dense_oracle(objective, X, y, TREE)
    _, gradient = oracle.gradient(covariance_at, theta)
    for k, direction in enumerate(np.eye(len(theta))):
        above, below = (oracle.value(covariance_at(theta + sign * step * direction)) for sign in (1, -1))
        assert (above - below) / (2 * step) == pytest.approx(gradient[k], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("sharing", ["flat", "flat, taxonomy", "PerClass", "PerClass, correlation", "list"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact(kernel, sharing):
    X, y = problem()
    own, options = SHARINGS[sharing]
    objective = make(X, y, own(KERNELS[kernel]), method="exact", **options)
    theta = shift(objective.theta)
    value, gradient = check_gradient(objective, theta)
    iterative, iterative_gradient = make(X, y, own(KERNELS[kernel]), **options).value_and_gradient(theta, TIGHT)
    assert value == pytest.approx(iterative, rel=1e-8)
    assert alike(gradient, iterative_gradient, 3e-5)


@pytest.mark.parametrize("rank", [12, 30])
@pytest.mark.parametrize("sharing", ["flat", "tree, level", "PerClass"])
@pytest.mark.parametrize("kernel", ["rbf", "rbf per feature", "sum"])
def test_low_rank(kernel, sharing, rank):
    """Steps are so small that the pivots stay the same."""
    X, y = problem()
    own, options = SHARINGS[sharing]
    objective = make(X, y, own(KERNELS[kernel]), products="low_rank", rank=rank, rank_tolerance=0.0, **options)
    check_gradient(objective, shift(objective.theta), step=1e-5)


def test_full_rank_is_the_kernel_itself():
    X, y = problem()
    full = make(X, y, RBF(1.0, 3.0), products="low_rank", rank=len(y), rank_tolerance=0.0)
    value, gradient = full.value_and_gradient(full.theta, TIGHT)
    expected, expected_gradient = make(X, y, RBF(1.0, 3.0)).value_and_gradient(full.theta, TIGHT)
    assert value == pytest.approx(expected, rel=1e-6)
    assert alike(gradient, expected_gradient)


@pytest.mark.parametrize("options", [{}, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize(
    "kernel", [Cosine(2.0), Polynomial(3, 0.2, 0.7), RBF(2.0) * Linear(0.5) + Matern(1.0, 0.5, fixed="length_scale")]
)
def test_other_kernels(kernel, options):
    X, y = problem()
    objective = make(X, y, kernel, **options)
    theta = shift(objective.theta)
    value, _ = check_gradient(objective, theta)
    oracle, covariance_at = dense_oracle(objective, X, y, options)
    assert value == pytest.approx(oracle.value(covariance_at(theta)), rel=1e-8)


@pytest.mark.parametrize("strategy", ["stacked", "shuffled"])
@pytest.mark.parametrize("algorithm", ["gram", "tiled"])
@pytest.mark.parametrize("sharing", ["flat", "tree, level", "PerClass", "PerNode"])
def test_ways_to_multiply_agree(sharing, algorithm, strategy):
    X, y = problem(n=50)
    own, options = SHARINGS[sharing]
    kernel = own(RBF(2.0, 3.0))
    reference = make(X, y, kernel, **options)
    value, gradient = reference.value_and_gradient(reference.theta, 1e-10)
    for form in (np.asarray, sp.csr_array):
        objective = make(form(X), y, kernel, products=algorithm, strategy=strategy, n_threads=2, **options)
        other, other_gradient = objective.value_and_gradient(objective.theta, 1e-10)
        assert other == pytest.approx(value, rel=1e-7)
        assert alike(other_gradient, gradient)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "single"])
@pytest.mark.parametrize("options", [{}, TREE], ids=["flat", "tree"])
@pytest.mark.parametrize("strategy", ["auto", "stacked", "shuffled"])
def test_linear_by_features_and_by_kernel(options, form, strategy):
    X, y = problem(n=50)
    X = X.astype(np.float32).astype(np.float64)
    reference = make(X, y, Linear(0.5), products="gram", **options)
    theta = shift(reference.theta, size=1.0)
    value, gradient = reference.value_and_gradient(theta, 1e-10)
    objective = make(form(X), y, Linear(0.5), strategy=strategy, **options)
    other, other_gradient = objective.value_and_gradient(theta, 1e-10)
    assert other == pytest.approx(value, rel=1e-7)
    assert alike(other_gradient, gradient)


def test_default_precision_and_tolerance_are_good_enough():
    X, y = problem(n=60)
    tuning = CrossValidation(3, learn_temperature=False, deviation=None)
    model = KernelLogisticClassifier(RBF(2.0, 3.0), intercept_variance=2.0, tuning=tuning)
    value, gradient = CrossValidationObjective(model, X, y).value_and_gradient(np.log([2.0, 3, 2]))
    expected, expected_gradient = make(X, y, RBF(2.0, 3.0)).value_and_gradient(np.log([2.0, 3, 2]), TIGHT)
    assert value == pytest.approx(expected, rel=1e-6)
    assert alike(gradient, expected_gradient, 1e-3)


def test_estimator_with_these_values_has_this_loss():
    """The criterion is what one gets by fitting and predicting fold by fold."""
    X, y = problem(n=60)
    objective = make(X, y, RBF(2.0, 3.0), **TREE, coupling=Tree(variances=[2.0, 1.0, 0.5]))
    value = objective.value(objective.theta, TIGHT)
    loss = 0.0
    for fold in range(3):
        out = objective.partitions[0] == fold
        model = KernelLogisticClassifier(
            RBF(2.0, 3.0),
            **TREE,
            coupling=Tree(variances=[2.0, 1.0, 0.5]),
            intercept_variance=2.0,
            tuning=None,
            tol=1e-10,
            solver=Solver(precision="double"),
        )
        log_proba = model.fit(X[~out], y[~out]).predict_log_proba(X[out])
        loss -= log_proba[np.arange(out.sum()), np.searchsorted(model.classes_, y[out])].sum()
    assert value == pytest.approx(loss, rel=1e-4)


# Weights


@pytest.mark.parametrize("method", ["lbfgs", "exact"])
def test_weights(method):
    X, y = problem()
    weights = np.random.default_rng(1).gamma(2.0, size=len(y)) * (np.arange(len(y)) % 7 > 0)
    objective = make(X, y, RBF(2.0, 3.0), sample_weight=weights, method=method)
    check_against_dense(objective, X, y, {}, weights)
    assert objective.n_held_out == pytest.approx(weights.sum())


def test_integer_weights_are_repetitions():
    X, y = problem()
    weights = np.random.default_rng(1).integers(0, 3, size=len(y))
    folds = make(X, y).partitions[0]
    weighted = make(X, y, RBF(2.0), folds=folds, sample_weight=weights)
    copies = np.repeat(np.arange(len(y)), weights)
    repeated = make(X[copies], y[copies], RBF(2.0), folds=folds[copies])
    assert set(y[copies]) == set(y)
    value, gradient = weighted.value_and_gradient(weighted.theta, TIGHT)
    other, other_gradient = repeated.value_and_gradient(weighted.theta, TIGHT)
    assert value == pytest.approx(other, rel=1e-8)
    assert alike(gradient, other_gradient, 3e-5)
    assert weighted.n_held_out == repeated.n_held_out == weights.sum()


def test_class_weights():
    X, y = problem()
    by_class = {label: 1.0 + k for k, label in enumerate(SEEN)}
    weights = np.array([by_class[label] for label in y])
    a, b = (make(X, y, Linear(), **option) for option in ({"class_weight": by_class}, {"sample_weight": weights}))
    assert a.value(a.theta) == b.value(b.theta)


# Rare classes


@pytest.mark.parametrize("options", [{}, TREE], ids=["flat", "tree"])
def test_class_with_one_row_is_always_trained_on(options):
    X, y = problem()
    y = np.concatenate([y, ["b/y/2"]])
    X = np.vstack([X, X[:1] + 1.0])
    objective = make(X, y, RBF(2.0, 3.0), **options)
    assert np.flatnonzero(objective.partitions[0] < 0).tolist() == [len(y) - 1]
    assert objective.n_held_out == len(y) - 1
    theta = shift(objective.theta)
    value, _ = check_gradient(objective, theta)
    classes = (TAXONOMY.classes if options else np.sort(LABELS)).tolist()
    oracle = Oracle(np.array([classes.index(label) for label in y]), 6, objective.partitions[0])
    table = objective.parameters.table(theta)
    K = covariance(functions_of(table, classes, **options), table.intercept_variance, X)
    assert value == pytest.approx(oracle.value(K), rel=1e-8)


@pytest.mark.parametrize("options", [{}, TREE], ids=["flat", "tree"])
def test_fold_without_a_class(options):
    """One class is in no training part of one fold, another is held out nowhere."""
    X, y = problem()
    folds = make(X, y).partitions[0].copy()
    folds[y == "a/y"], folds[y == "c"] = 1, -1
    objective = make(X, y, RBF(2.0, 3.0), folds=folds, **options)
    check_against_dense(objective, X, y, options)


def test_classes_without_rows():
    X, y = problem()
    labels = [*SEEN, "d"]
    weights = {"d": 5.0, "c": 2.0}
    objective = make(X, y, RBF(2.0, 3.0), classes=labels[::-1], class_weight=weights)
    theta = shift(objective.theta)
    value, _ = check_gradient(objective, theta)
    oracle = Oracle(np.searchsorted(labels, y), len(labels), objective.partitions[0], np.where(y == "c", 2.0, 1.0))
    table = objective.parameters.table(theta)
    K = covariance(functions_of(table, labels), table.intercept_variance, X)
    assert value == pytest.approx(oracle.value(K), rel=1e-8)
    with pytest.raises(ValueError, match=r"classes lacks labels that are in y: \['c'\]"):
        make(X, y, classes=SEEN[:-1])


def test_labels_on_inner_nodes():
    X, y = problem()
    y = np.where(y == "b/x", "b", y)
    objective = make(X, y, Linear(), **TREE)
    check_gradient(objective, objective.theta)


def test_more_folds_than_rows():
    X, y = problem(n=10)
    objective = make(X, y, RBF(2.0), folds=25)
    assert sorted(objective.partitions[0]) == list(range(10))
    assert np.isfinite(objective.value(objective.theta))


def test_single_hold_out():
    X, y = problem()
    objective = make(X, y, RBF(2.0), folds=np.where(np.arange(len(y)) % 3, -1, 0))
    assert objective.n_held_out == 10
    check_gradient(objective, objective.theta)


# Partitions and random numbers


def test_partitions_are_averaged():
    X, y = problem()
    many = make(X, y, RBF(2.0), repeats=3)
    singles = [make(X, y, RBF(2.0), folds=folds) for folds in many.partitions]
    assert len({folds.tobytes() for folds in many.partitions}) == 3
    results = [single.value_and_gradient(single.theta) for single in singles]
    value, gradient = many.value_and_gradient(many.theta)
    assert value == pytest.approx(np.mean([one for one, _ in results]), rel=1e-12)
    assert np.allclose(gradient, np.mean([one for _, one in results], axis=0), rtol=1e-9)
    assert many.n_held_out == len(y)
    evaluations = [single.evaluate(single.theta, 1e-6) for single in singles]
    assert many.evaluate(many.theta, 1e-6).products == sum(one.products for one in evaluations)


def test_random_state():
    X, y = problem()
    first, again, other = (make(X, y, RBF(2.0), random_state=seed, repeats=2) for seed in (3, 3, 4))
    assert np.array_equal(first.partitions, again.partitions)
    assert not np.array_equal(first.partitions, other.partitions)
    assert first.value(first.theta) == again.value(again.theta) != other.value(other.theta)


def test_splitter():
    X, y = problem(n=28)
    objective = make(X, y, Linear(), folds=KFold(4))
    assert np.array_equal(objective.partitions[0], np.arange(28) // 7)


# States


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("sharing", ["flat", "tree, node", "PerClass"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_state_round_trip(kernel, sharing, repeats, tmp_path):
    X, y = problem()
    own, options = SHARINGS[sharing]
    options = options | {"precision": "auto", "repeats": repeats}
    objective, fresh = (make(X, y, own(KERNELS[kernel]), **options) for _ in range(2))
    assert objective.state() == {}
    point = shift(objective.theta)
    first = objective.evaluate(objective.theta, 1e-4)
    assert objective.state() == {}
    objective.accept()
    np.savez(tmp_path / "state.npz", **objective.state())
    second = objective.evaluate(point, 1e-5)
    # Without accept, the next evaluation starts where this one did.
    third = objective.evaluate(point, 1e-5)
    with np.load(tmp_path / "state.npz") as file:
        fresh.set_state(dict(file))
    again = fresh.evaluate(point, 1e-5)
    for other in (third, again):
        assert other.value == second.value
        assert np.array_equal(other.gradient, second.gradient)
        assert (other.gap, other.products) == (second.gap, second.products)
    objective.set_state({})
    assert objective.state() == {}
    anew = objective.evaluate(objective.theta, 1e-4)
    assert anew.value == first.value
    assert np.array_equal(anew.gradient, first.gradient)


def test_accepted_fits_save_work():
    X, y = problem(n=60)
    objective = make(X, y, RBF(2.0, 30.0))
    cold = objective.evaluate(objective.theta, 1e-6)
    objective.accept()
    assert objective.evaluate(objective.theta + 0.01, 1e-6).products < cold.products


def test_foreign_states():
    X, y = problem()
    objective = make(X, y, RBF(2.0), repeats=2)
    objective.value(objective.theta)
    state = objective.state()
    with pytest.raises(ValueError, match="state has the key 'x'"):
        objective.set_state({"x": np.zeros(3)})
    with pytest.raises(ValueError, match=r"state has the key '7\.fits'"):
        objective.set_state({"7.fits": np.zeros(3)})
    with pytest.raises(ValueError, match=r"state has no '1\.fits'"):
        objective.set_state({key: array for key, array in state.items() if key.startswith("0.")})
    with pytest.raises(ValueError, match=r"state has no '1\.adjoints'"):
        objective.set_state({key: array for key, array in state.items() if key != "1.adjoints"})
    with pytest.raises(ValueError, match=r"state\['0.fits'\] must be finite numbers"):
        objective.set_state(state | {"0.fits": np.full_like(state["0.fits"], np.nan)})
    # Nothing of this has changed the objective.
    assert all(np.array_equal(array, state[key]) for key, array in objective.state().items())


# Kernels and what is learned of them


def test_names_of_kernels_start_from_the_data():
    X, y = problem()
    objective = make(X, y, "rbf")
    scale = X.var(axis=0).sum() ** 0.5
    assert np.allclose(np.exp(objective.theta), [scale, 10.0, 2.0])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = np.array([unit[i] @ unit[j] for i in range(len(unit)) for j in range(i)])
    start = 5.0 / np.sqrt((cosines**2).mean()) / (X**2).sum(axis=1).mean()
    assert np.allclose(np.exp(make(X, y, "linear").theta), [start, 2.0])
    mixed = make(X, y, {label: "rbf" if label < "b" else "linear" for label in SEEN})
    assert "kernels[a/x, a/y].length_scale" in mixed.names
    tree = make(X, y, "matern", **TREE)
    assert tree.names[:2] == ("kernel.length_scale", "variances[level 1]")
    assert tree.parameters.table(tree.theta).kernel.variance == 10.0
    with pytest.raises(ValueError, match="kernel is 'gauss'"):
        make(X, y, "gauss")


@pytest.mark.parametrize("options", [{}, TREE], ids=["flat", "tree"])
def test_matrices_in_place_of_kernels(options):
    X, y = problem()
    native = make(X, y, RBF(2.0, 3.0, fixed="length_scale"), **options)
    value, gradient = native.value_and_gradient(native.theta, TIGHT)
    function = make(X, y, Function(lambda A, B: rbf_kernel(A, B, gamma=0.125), 3.0), **options)
    precomputed = make(matrix(RBF(2.0), X, X), y, Precomputed(3.0), **options)
    for other in (function, precomputed):
        assert other.names == native.names
        assert np.allclose(other.theta, native.theta)
        for theta in (native.theta, shift(native.theta)):
            value, gradient = native.value_and_gradient(theta, TIGHT)
            other_value, other_gradient = other.value_and_gradient(theta, TIGHT)
            assert other_value == pytest.approx(value, rel=1e-7)
            assert alike(other_gradient, gradient)


def test_nothing_to_learn():
    X, y = problem()
    objective = make(X, y, RBF(2.0, fixed=True), learn_intercept_variance=False)
    assert objective.names == ()
    value, gradient = objective.value_and_gradient(objective.theta)
    assert np.isfinite(value)
    assert gradient.shape == (0,)


def test_without_intercepts():
    X, y = problem()
    objective = make(X, y, RBF(2.0), intercept_variance=0.0)
    assert objective.names == ("kernel.length_scale", "kernel.variance")
    theta = shift(objective.theta)
    value, _ = check_gradient(objective, theta)
    oracle, covariance_at = dense_oracle(objective, X, y, {})
    assert value == pytest.approx(oracle.value(covariance_at(theta)), rel=1e-8)


def test_two_classes():
    X, y = problem()
    objective = make(X, y < "b", RBF(2.0))
    check_gradient(objective, objective.theta)


def test_an_optimizer_lowers_it():
    X, y = problem(n=60)
    objective = make(X, y, "rbf", **TREE)
    before = objective.value(objective.theta)
    options = {"bounds": objective.bounds, "options": {"maxiter": 10}}
    found = minimize(objective.value_and_gradient, objective.theta, jac=True, method="L-BFGS-B", **options)
    assert found.fun < before - 3.0
    assert objective.value(found.x) == pytest.approx(found.fun, rel=1e-6)


# How evaluations go


def test_evaluation():
    X, y = problem()
    objective = make(X, y, RBF(2.0))
    calls = []
    evaluation = objective.evaluate(objective.theta, 1e-6, lambda *values: calls.append(values))
    assert evaluation.converged
    assert 0 <= evaluation.gap <= 1e-6
    assert evaluation.products > 0
    assert evaluation.seconds > 0
    assert np.array_equal(evaluation.theta, objective.theta)
    assert all(len(values) == 5 for values in calls)
    assert calls


def test_failed_evaluation():
    X, y = problem()
    objective = make(X, y, RBF(2.0, 100.0), max_iter=1)
    evaluation = objective.evaluate(objective.theta, 1e-10)
    assert not evaluation.converged
    assert evaluation.gap > 1e-10
    with pytest.raises(RuntimeError, match=r"tol=1e-10: raise tol or max_iter \(now 1\)"):
        objective.value_and_gradient(objective.theta, 1e-10)
    assert objective.state() == {}
    learned = make(X, y, RBF(2.0, 100.0), max_iter=1, learn_temperature=True).evaluate(objective.theta, 1e-10)
    assert not learned.converged
    assert np.isnan(learned.gradient).all()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"taxonomy": "tree"}, TypeError, "taxonomy must be a taxolearn.Taxonomy or None, got str"),
        ({"folds": 1}, ValueError, "folds is 1, expected at least 2"),
        ({"folds": [0, 1]}, ValueError, "folds must be a number of folds"),
        ({"repeats": 0}, ValueError, "repeats must be finite and at least 1"),
        ({"repeats": 2, "folds": KFold(3)}, ValueError, "repeats is 2, but folds gives one partition"),
        ({"intercept_variance": -1.0}, ValueError, "intercept_variance"),
        ({"learn_intercept_variance": "yes"}, TypeError, "learn_intercept_variance must be True or False, got 'yes'"),
        ({"learn_temperature": 1}, TypeError, "learn_temperature must be True or False, got 1"),
        ({"deviation": 0}, ValueError, "deviation must be finite and above 0"),
        ({"temperature": 0.0}, ValueError, "temperature must be finite and above 0"),
        ({"method": "sgd"}, ValueError, "method is 'sgd'"),
        ({"method": "exact", "taxonomy": TAXONOMY}, ValueError, r'Solver\(method="exact"\) is for flat models'),
        ({"products": "fast"}, ValueError, "products is 'fast'"),
        ({"products": "gram", "rank": 5}, ValueError, "rank and rank_tolerance belong to"),
        ({"rank": 0}, ValueError, "rank must be"),
        ({"rank_tolerance": 1.5}, ValueError, "rank_tolerance is a share of the trace"),
        ({"memory_limit": "much"}, ValueError, "memory_limit is 'much'"),
        ({"precision": "half"}, ValueError, "precision is 'half'"),
        ({"strategy": "none"}, ValueError, "strategy is 'none'"),
        ({"max_iter": 0}, ValueError, "max_iter must be"),
        ({"n_threads": 0}, ValueError, "n_threads must be"),
        ({"coupling": Independent(variances=[1.0])}, ValueError, "variances are those of the nodes of a taxonomy"),
        ({"coupling": "tree"}, ValueError, "coupling='tree' needs a taxonomy"),
        ({"kernel": RBF([1.0, 2.0])}, ValueError, "length_scale has 2 values, X has 3"),
        ({"kernel": 3}, TypeError, "kernel must be"),
        ({"kernel": Precomputed()}, ValueError, r"X has shape \(30, 3\), expected a square matrix"),
        ({"sample_weight": -np.ones(30)}, ValueError, "sample_weight"),
        ({"class_weight": {"d": 1.0}}, ValueError, "class_weight names labels"),
    ],
    ids=str,
)
def test_errors_name_the_argument(options, error, match):
    X, y = problem()
    with pytest.raises(error, match=match):
        make(X, y, **options)


def test_bad_data():
    X, y = problem()
    with pytest.raises(ValueError, match="NaN"):
        make(np.where(np.arange(3) == 1, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        make(X, y[:-1])
    with pytest.raises(ValueError, match="y has one class only"):
        make(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="tuning=None"):
        make(X, np.arange(len(y)))
    with pytest.raises(ValueError, match="y"):
        make(X, np.where(y == "c", "d", y), taxonomy=Taxonomy.from_labels(["a/x", "b"]))
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    with pytest.raises(ValueError, match="zero for all rows that are held out"):
        make(X, y, folds=np.where(np.arange(len(y)) % 3, -1, 0), sample_weight=weights)
    objective = make(X, y)
    with pytest.raises(ValueError, match=r"theta has shape \(1,\)"):
        objective.value([0.0])
    with pytest.raises(ValueError, match="tol must be"):
        objective.evaluate(objective.theta, 0.0)


def test_examples_run():
    results = doctest.testmod(objective_module)
    assert results.attempted > 4
    assert results.failed == 0


def test_per_class_of_labels_that_are_numbers():
    X, y = problem()
    numbers = np.array([SEEN.index(label) for label in y])
    objective = make(X, numbers, PerClass(RBF(2.0)))
    assert objective.names[0] == "kernels[0].length_scale"
    identity = make(X, y, PerClass(RBF(2.0)), **INDEPENDENT)
    assert "kernels[b/y/2].length_scale" in identity.names
    check_gradient(identity, identity.theta)


@pytest.mark.parametrize(("tol", "expected"), [(1e-3, 1e-4), (1e-5, 1e-6), (3e-7, 1e-7), (1e-9, 1e-9)])
def test_systems_are_solved_more_accurately_than_fits(tol, expected):
    generator = np.random.default_rng(0)
    objective = make(generator.normal(size=(30, 3)), np.arange(30) % 3, precision="auto")
    (criterion,) = objective._criteria
    asked = []

    class Spy:
        def evaluate(self, prior, settings, *others):
            asked.append((settings.tol, settings.adjoint_tol))
            return criterion.evaluate(prior, settings, *others)

    objective._criteria = [Spy()]
    objective.evaluate(objective.theta, tol)
    assert asked == [(tol, pytest.approx(expected))]
