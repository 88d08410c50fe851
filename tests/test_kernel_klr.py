"""The estimator with kernels beyond the linear one."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_formulas import matrix
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import kernels as process_kernels
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score, train_test_split

from taxolearn import KernelLogisticClassifier, Solver, Taxonomy, Tree
from taxolearn.kernels import (
    RBF,
    Cosine,
    Linear,
    Matern,
    PerClass,
    PerGroup,
    PerNode,
    Polynomial,
    Precomputed,
    RationalQuadratic,
)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    return train_test_split(X, np.array(["a", "b", "c"])[y], test_size=0.4, random_state=0, stratify=y)


def random_problem(n, C, seed, d=4):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((C, d))
    y = np.concatenate([np.arange(C), rng.integers(C, size=n - C)])
    return centres[y] + 1.2 * rng.standard_normal((n, d)), y


def model(kernel, **options):
    return KernelLogisticClassifier(kernel, **{"tol": 1e-9} | options, tuning=None)


def phi_and_dual(K, alpha, y, weights):
    """Objective and a lower bound of its minimum, for K (n C x n C), classes one after the other."""
    n = len(y)
    C = len(K) // n
    u = (K @ alpha.T.ravel()).reshape(C, n).T
    target = np.eye(C)[y]
    phi = weights @ (logsumexp(u, axis=1) - (u * target).sum(axis=1)) + alpha.T.ravel() @ u.T.ravel() / 2
    p = softmax(u, axis=1)
    r = (weights[:, None] * (target - p)).T.ravel()
    return phi, -weights @ (p * log_softmax(u, axis=1)).sum(axis=1) - r @ K @ r / 2


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("n", "C"), [(60, 2), (200, 8), (500, 5)])
def test_exact_and_iterative_agree(n, C, own):
    X, y = random_problem(n, C, seed=n + own)
    kernel = {c: RBF(1.0 + 0.3 * c, 1.0 + c) for c in range(C)} if own else RBF(1.5, 4.0)
    weights = np.random.default_rng(1).gamma(2.0, size=n)
    X_new, _ = random_problem(100, C, seed=9)
    options = {"intercept_variance": 2.0, "tol": 1e-12, "max_iter": 5000}
    exact = model(kernel, **options, solver=Solver("exact", precision="double")).fit(X, y, weights)
    iterative = model(kernel, **options, solver=Solver("lbfgs", precision="double")).fit(X, y, weights)
    assert exact.result_.method == "exact"
    assert exact.result_.iterations < 30
    for fitted in (exact, iterative):
        assert fitted.result_.status == "converged"
        assert fitted.result_.relative_gap <= 1e-9
    assert abs(exact.result_.objective - iterative.result_.objective) <= 1e-9 * exact.result_.objective
    assert np.abs(exact.predict_proba(X_new) - iterative.predict_proba(X_new)).max() < 1e-6


def test_the_certificate_is_that_of_dense_algebra():
    n, C = 50, 3
    X, y = random_problem(n, C, seed=3)
    weights = np.random.default_rng(1).gamma(2.0, size=n)
    kernel = RBF(1.5, 4.0)
    fitted = model(kernel, intercept_variance=2.0, tol=1e-3).fit(X, y, weights)
    K = np.kron(np.eye(C), matrix(kernel, X, X) + 2.0)
    (expansion,) = fitted.expansions_
    phi, dual = phi_and_dual(K, expansion.coefficients, y, weights)
    assert fitted.result_.objective == pytest.approx(phi, rel=1e-10)
    assert fitted.result_.gap == pytest.approx(phi - dual, rel=1e-6)
    u = matrix(kernel, X, X) @ expansion.coefficients + fitted.intercept_
    assert np.allclose(fitted.decision_function(X), u)


@pytest.mark.parametrize("algorithm", ["gram", "tiled", "low_rank"])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.5),
        RBF((1.0, 2.0, 3.0, 1.0), 3.0),
        Matern(1.5, 0.5),
        RationalQuadratic(1.0, 0.5),
        Polynomial(2, 0.2),
        Cosine(5.0),
        Linear(2.0) + RBF(1.0),
        RBF(2.0) * Linear(),
    ],
    ids=str,
)
def test_kernels_and_algorithms_tell_the_same_story(iris, kernel, algorithm):
    X, X_test, y, y_test = iris
    reference = model(Precomputed(), tol=1e-10).fit(matrix(kernel, X, X), y)
    expected = reference.predict_proba(matrix(kernel, X_test, X))
    for form in (np.asarray, sp.csr_matrix, lambda A: A.astype(np.float32)):
        rank = len(X) if algorithm == "low_rank" else None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = model(kernel, tol=1e-10, solver=Solver(products=algorithm, rank=rank, precision="double")).fit(
                form(X), y
            )
        assert fitted.result_.algorithm == algorithm
        assert np.abs(fitted.predict_proba(form(X_test)) - expected).max() < 1e-5
    assert fitted.score(X_test, y_test) > 0.8


def test_formats_may_change_between_fit_and_predict(iris):
    X, X_test, y, _ = iris
    fitted = model(RBF(1.5)).fit(X, y)
    expected = fitted.predict_proba(X_test)
    for form in (sp.csr_matrix, sp.csc_matrix, lambda A: A.astype(np.float32), np.asfortranarray):
        assert np.allclose(fitted.predict_proba(form(X_test)), expected, atol=1e-6)
    sparse = model(RBF(1.5)).fit(sp.csr_matrix(X), y)
    assert np.allclose(sparse.predict_proba(X_test), expected, atol=1e-6)


def test_functions_of_scikit_learn(iris):
    X, X_test, y, _ = iris
    ours = model(RBF(2.0, 3.0)).fit(X, y)
    theirs = model(lambda A, B: 3.0 * rbf_kernel(A, B, gamma=0.125)).fit(X, y)
    process = model(3.0**0.5 * process_kernels.RBF(2.0) * 3.0**0.5).fit(X, y)
    for other in (theirs, process):
        assert np.abs(other.predict_proba(X_test) - ours.predict_proba(X_test)).max() < 1e-5
    single = model(lambda A, B: rbf_kernel(A.astype(np.float32), B, gamma=0.125).astype(np.float32)).fit(X, y)
    assert single.result_.status == "converged"
    with pytest.raises(TypeError, match="complex"):
        model(lambda A, B: (A @ B.T).astype(complex)).fit(X, y)
    low = model(lambda A, B: 3.0 * rbf_kernel(A, B, gamma=0.125), solver=Solver(rank=40)).fit(X, y)
    assert low.result_.ranks == (40,)
    assert np.abs(low.predict_proba(X_test) - ours.predict_proba(X_test)).max() < 0.05


def test_linear_by_any_algorithm(iris):
    X, X_test, y, _ = iris
    expected = model(Linear(2.0)).fit(X, y).predict_proba(X_test)
    for algorithm in ("gram", "tiled", "low_rank"):
        fitted = model(Linear(2.0), solver=Solver(products=algorithm)).fit(X, y)
        assert not hasattr(fitted, "coef_")
        assert np.abs(fitted.predict_proba(X_test) - expected).max() < 1e-4
    exact = model(Linear(2.0), solver="exact").fit(X, y)
    assert np.allclose(exact.predict_proba(X_test), expected, atol=1e-4)
    assert exact.coef_.shape == (3, 4)


def test_own_kernels(iris):
    X, X_test, y, _ = iris
    tied = model(RBF(1.5, 4.0)).fit(X, y)
    expected = tied.predict_proba(X_test)
    own = model(PerClass(RBF(1.5, 4.0))).fit(X, y)
    assert len(own.expansions_) == 3
    assert own.result_.kernel_bytes == 3 * tied.result_.kernel_bytes
    semi = model(PerClass(RBF(1.5, 4.0), share="correlation")).fit(X, y)
    assert len(semi.expansions_) == 1
    for fitted in (own, semi):
        assert np.abs(fitted.predict_proba(X_test) - expected).max() < 1e-5
    kernels = {"a": RBF(1.0, 2.0), "b": RBF(1.0, 5.0), "c": Matern(2.0, 1.5)}
    by_mapping = model(kernels).fit(X, y)
    assert len(by_mapping.expansions_) == 2
    assert by_mapping.hyperparameters_.kernels == kernels
    by_list = model(list(kernels.values())).fit(X, y)
    assert np.allclose(by_list.predict_proba(X_test), by_mapping.predict_proba(X_test))
    exact = model(kernels, solver="exact").fit(X, y)
    assert np.abs(exact.predict_proba(X_test) - by_mapping.predict_proba(X_test)).max() < 1e-5
    low = model(kernels, solver=Solver(rank=50)).fit(X, y)
    assert len(low.result_.ranks) == 2
    assert np.abs(low.predict_proba(X_test) - by_mapping.predict_proba(X_test)).max() < 0.05
    # Different variances without different correlations are a coupling of one kernel.
    linear = model({"a": Linear(1.0), "b": Linear(2.0), "c": Linear(3.0)}).fit(X, y)
    assert linear.coef_.shape == (3, 4)


def test_own_kernels_of_nodes_and_groups():
    X, y = random_problem(90, 4, seed=5)
    labels = np.array(["p/a", "p/b", "q/a", "q/b"])[y]
    tree = Taxonomy.from_labels(labels)
    shared = model(RBF(1.5, 2.0), taxonomy=tree, coupling=Tree(variances=[2.0, 0.5])).fit(X, labels)
    expected = shared.predict_proba(X)
    same = [
        model(PerNode(RBF(1.5, 2.0)), taxonomy=tree, coupling=Tree(variances=[2.0, 0.5])),
        model(PerGroup(RBF(1.5, 2.0)), taxonomy=tree, coupling=Tree(variances=[2.0, 0.5])),
        model({"level 1": RBF(1.5, 4.0), "level 2": RBF(1.5, 1.0)}, taxonomy=tree),
        model({name: RBF(1.5, 1.0 if "/" in name else 4.0) for name in tree.names[1:]}, taxonomy=tree),
        model(PerNode(RBF(1.5, 2.0)), taxonomy=tree, coupling=Tree(variances=[2.0, 0.5]), solver=Solver(rank=90)),
    ]
    for other in same:
        assert np.abs(other.fit(X, labels).predict_proba(X) - expected).max() < 1e-4
    assert len(same[0].expansions_) == 6
    # Two kernels: the same as one dense covariance of all classes.
    own = model({"level 1": RBF(3.0, 2.0), "level 2": RBF(1.0, 0.7)}, taxonomy=tree, intercept_variance=1.5).fit(
        X, labels
    )
    subtree = np.kron(np.eye(2), np.ones((2, 2)))
    K = 2.0 * np.kron(subtree, matrix(RBF(3.0), X, X)) + np.kron(np.eye(4), 0.7 * matrix(RBF(1.0), X, X) + 1.5)
    u = own.decision_function(X)
    target = np.eye(4)[np.searchsorted(own.classes_, labels)]
    alpha = target - softmax(u, axis=1)  # at the minimum
    assert np.allclose((K @ alpha.T.ravel()).reshape(4, -1).T, u, atol=1e-3)
    flat = model(PerGroup({"level 2": RBF(1.0)}), taxonomy=tree, coupling="independent").fit(X, labels)
    assert np.allclose(flat.predict_proba(X), model(RBF(1.0)).fit(X, labels).predict_proba(X), atol=1e-5)


def test_memory_limit_chooses_and_is_explained(iris):
    X, X_test, y, _ = iris
    stored = model(RBF(1.5)).fit(X, y)
    assert stored.result_.algorithm == "gram"
    assert "within memory_limit" in stored.result_.reason
    assert stored.result_.method == "lbfgs"
    assert stored.result_.reason.startswith("lbfgs, because the vectors")
    tiled = model(RBF(1.5), solver=Solver(memory_limit="1 KB")).fit(X, y)
    assert tiled.result_.algorithm == "tiled"
    assert tiled.result_.method == "ncg"
    assert "more than memory_limit" in tiled.result_.reason
    assert np.abs(tiled.predict_proba(X_test) - stored.predict_proba(X_test)).max() < 1e-5
    with pytest.raises(ValueError, match="memory_limit"):
        model(RBF(1.5), solver=Solver(method="exact", memory_limit=1e4)).fit(X, y)
    with pytest.raises(ValueError, match=r"rank 50 takes 54 kB for 90 rows, more than memory_limit \(20 kB\)"):
        model(RBF(1.5), solver=Solver(rank=50, memory_limit="20 kB")).fit(X, y)
    cut = model(RBF(1.5), solver=Solver(rank_tolerance=0.0, memory_limit="20 kB")).fit(X, y).result_
    assert cut.ranks == (18,)
    assert "memory_limit ended the rank at 18" in cut.reason


def test_expansions_tell_the_whole_model():
    X, y = random_problem(70, 5, seed=8)
    labels = np.array(["Z/z1", "Z/z2", "B/b1", "B/b2", "q"])[y]
    tree = Taxonomy.from_edges(
        [("root", "Z"), ("root", "B"), ("root", "q"), ("Z", "Z/z1"), ("Z", "Z/z2"), ("B", "B/b1"), ("B", "B/b2")]
    )
    X_new, _ = random_problem(20, 5, seed=9)
    kernels = {name: RBF(1.0 + k, 2.0 + k) for k, name in enumerate(tree.names[1:])}
    flat = {name: RBF(1.0 + k, 2.0 + k) for k, name in enumerate(sorted(set(labels)))}
    for fitted in (
        model(RBF(1.5, 3.0), taxonomy=tree).fit(X, labels),
        model(RBF(1.5, 3.0), taxonomy=tree, solver=Solver(rank=20)).fit(X, labels),
        model(lambda A, B: rbf_kernel(A, B, gamma=0.5), taxonomy=tree).fit(X, labels),
        model(kernels, taxonomy=tree, coupling=Tree(variances=[2.0, 0.5])).fit(X, labels),
        model(flat).fit(X, labels),
        model(list(flat.values())).fit(X, labels),
    ):
        functions = {}
        for expansion in fitted.expansions_:
            values = expansion.kernel(X_new, expansion.basis) @ expansion.coefficients
            functions |= dict(zip(expansion.functions, values.T, strict=True))
        u = np.tile(fitted.intercept_, (len(X_new), 1))
        for c, label in enumerate(fitted.classes_):
            own = label in functions and len(functions) == len(fitted.classes_)
            path = [label] if own else [label, *label.split("/")[:1]]
            u[:, c] += sum(functions[name] for name in dict.fromkeys(path))
        assert np.allclose(fitted.decision_function(X_new), u, atol=1e-10)


def test_exact_steps_finish_what_iterations_do_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = rng.integers(3, size=200)
    fitted = KernelLogisticClassifier(RBF(1.0, 1e4), tuning=None).fit(X, y)
    assert fitted.result_.status == "converged"
    assert fitted.result_.method == "exact"
    assert "exact, because lbfgs was at a relative gap of" in fitted.result_.reason
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        assert KernelLogisticClassifier(RBF(1.0, 1e4), max_iter=50, tuning=None).fit(X, y).result_.method == "lbfgs"


def test_a_kernel_of_rank_zero(iris):
    X, X_test, y, _ = iris
    for kernel in (Cosine(), Polynomial(2, offset=0.0), PerClass(Cosine())):
        for form in (np.asarray, sp.csr_matrix):
            fitted = model(kernel, solver=Solver(rank=5)).fit(form(0 * X), y)
            assert np.allclose(fitted.predict_proba(form(0 * X_test)), 1 / 3, atol=0.02)


def test_rank_and_tolerance(iris):
    X, _, y, _ = iris
    assert model(RBF(1.5), solver=Solver(rank=12)).fit(X, y).result_.ranks == (12,)
    loose = model(RBF(1.5), solver=Solver(rank_tolerance=0.1)).fit(X, y).result_.ranks[0]
    tight = model(RBF(1.5), solver=Solver(rank_tolerance=1e-4)).fit(X, y).result_.ranks[0]
    assert 1 <= loose < tight < len(X)
    fitted = model(RBF(1.5), solver=Solver(rank=12)).fit(X, y)
    assert fitted.expansions_[0].basis.shape == (12, 4)


def test_the_model_does_not_hang_on_the_users_array(iris):
    X, X_test, y, _ = iris
    mine = X.copy()
    fitted = model(RBF(1.5)).fit(mine, y)
    before = fitted.predict_proba(X_test)
    mine[:] = 0.0
    assert np.array_equal(fitted.predict_proba(X_test), before)


def test_copies_pickles_and_searches(iris):
    X, X_test, y, _ = iris
    for kernel in (RBF(1.5), PerClass(RBF(1.5)), PerClass(Matern(1.0), share="correlation")):
        fitted = clone(model(kernel)).fit(X, y)
        again = pickle.loads(pickle.dumps(fitted))
        assert np.array_equal(again.predict_proba(X_test), fitted.predict_proba(X_test))
    K = matrix(RBF(1.5), X, X)
    by_matrix = cross_val_score(model(Precomputed()), K, y, cv=3)
    assert np.array_equal(by_matrix, cross_val_score(model(RBF(1.5)), X, y, cv=3))
    same = [Precomputed()] * 3
    for kernel in (same, dict(zip("abc", same, strict=True)), PerClass(dict(zip("abc", same, strict=True)))):
        assert np.array_equal(by_matrix, cross_val_score(model(kernel), K, y, cv=3))


def test_warm_start(iris):
    X, _, y, _ = iris
    fitted = model(RBF(1.5), warm_start=True, tol=1e-6).fit(X, y)
    first = fitted.n_iter_
    assert fitted.fit(X, y).n_iter_ < first / 2
    fitted.set_params(kernel=RBF(1.6)).fit(X, y)
    assert fitted.n_iter_ < first
    fitted.fit(X[:, :2], y)  # other features: from the beginning, and no error
    fitted.set_params(kernel=process_kernels.RBF()).fit(X, y)
    assert fitted.set_params(kernel=RBF(1.5)).fit(sp.csr_matrix(X), y).result_.status == "converged"
    fitted.set_params(kernel=Linear()).fit(X, y)
    assert fitted.set_params(kernel=RBF(1.5)).fit(X, y).result_.status == "converged"


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e8])
@pytest.mark.parametrize("kernel", [RBF, lambda s: Matern(s, 0.5), RationalQuadratic])
def test_extreme_length_scales(iris, kernel, scale):
    X, X_test, y, _ = iris
    fitted = model(kernel(scale), tol=1e-6).fit(X, y)
    proba = fitted.predict_proba(X_test)
    assert fitted.result_.status == "converged"
    assert np.isfinite(proba).all()
    if scale >= 1e8:  # functions are constant: only the intercepts are left, and they know the shares of the classes
        assert np.abs(proba - proba[0]).max() < 0.02


def test_duplicates_and_near_singular_kernels(iris):
    X, X_test, y, _ = iris
    many, labels = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    weighted = model(RBF(1.5)).fit(X, y, np.full(len(X), 4.0)).predict_proba(X_test)
    for algorithm in ("gram", "tiled", "low_rank"):
        rank = len(many) if algorithm == "low_rank" else None
        fitted = model(RBF(1.5), tol=1e-8, solver=Solver(products=algorithm, rank=rank)).fit(many, labels)
        assert fitted.result_.status == "converged"
        assert np.abs(fitted.predict_proba(X_test) - weighted).max() < 1e-4
    assert fitted.result_.ranks[0] <= len(np.unique(X, axis=0))
    K = np.ones((len(X), len(X)))  # rank one
    assert model(Precomputed()).fit(K, y).result_.status == "converged"
    assert model(Precomputed()).fit(np.zeros_like(K), y).result_.status == "converged"


def test_indefinite_and_odd_matrices_are_rejected(iris):
    X, _, y, _ = iris
    K = matrix(RBF(1.5), X, X)
    n = len(X)
    with pytest.raises(ValueError, match="positive semidefinite"):
        model(Precomputed()).fit(K - 0.5 * np.eye(n), y)
    with pytest.raises(ValueError, match="symmetric"):
        model(Precomputed()).fit(K + np.triu(np.ones((n, n)), 1), y)
    with pytest.raises(ValueError, match="square"):
        model(Precomputed()).fit(K[:, :10], y)
    with pytest.raises(ValueError, match="positive semidefinite"):
        model(lambda A, B: -(A @ B.T)).fit(X, y)
    with pytest.raises(TypeError, match="dense"):
        model(Precomputed()).fit(sp.csr_matrix(K), y)
    rounded = K.astype(np.float32)
    assert model(Precomputed(), tol=1e-5).fit(rounded, y).result_.status == "converged"
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model(Precomputed()).fit(K, y).predict(K[:3])
    with pytest.raises(ValueError, match="features"):
        model(Precomputed()).fit(K, y).predict(K[:3, :5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": RBF((1.0, 2.0))}, "length_scale has 2 values, X has 4 features"),
        ({"kernel": RBF}, "expected a kernel"),
        ({"kernel": "gauss"}, "kernel is 'gauss', expected a kernel or one of 'linear', 'rbf'"),
        ({"kernel": [RBF(), RBF()]}, "kernel has 2 elements"),
        ({"kernel": {"a": RBF(), "b": RBF()}}, "no kernel for class 'c'"),
        ({"kernel": PerNode(RBF())}, "needs a taxonomy"),
        ({"kernel": PerGroup(RBF())}, "needs a taxonomy"),
        ({"kernel": RBF(), "solver": Solver(products="dense")}, "products is 'dense'"),
        ({"kernel": RBF(), "solver": Solver(rank=0)}, "rank must be"),
        ({"kernel": RBF(), "solver": Solver(rank=5, products="gram")}, "belong to products"),
        ({"kernel": RBF(), "solver": Solver(rank_tolerance=-1)}, "rank_tolerance must be"),
        ({"kernel": RBF(), "solver": Solver(rank_tolerance=1.0)}, "must be below 1"),
        ({"kernel": Linear(), "solver": Solver(rank=2, space="weights")}, 'and products "auto"'),
        ({"kernel": RBF(), "solver": Solver(memory_limit="much")}, "memory_limit is 'much'"),
        ({"kernel": RBF(), "solver": Solver(memory_limit=-1)}, "memory_limit must be"),
        ({"kernel": RBF(), "solver": Solver(space="weights")}, "needs the linear kernel"),
        ({"kernel": PerClass({"a": Precomputed(), "b": RBF(), "c": RBF()})}, "own kernels must be"),
    ],
)
def test_bad_arguments(iris, options, message):
    X, _, y, _ = iris
    with pytest.raises((ValueError, TypeError), match=message):
        KernelLogisticClassifier(**options, tuning=None).fit(X, y)


def test_per_class_is_for_flat_models():
    X, y = random_problem(40, 4, seed=5)
    labels = np.array(["p/a", "p/b", "q/a", "q/b"])[y]
    tree = Taxonomy.from_labels(labels)
    with pytest.raises(ValueError, match="use PerNode or PerGroup"):
        model(PerClass(RBF()), taxonomy=tree).fit(X, labels)
    with pytest.raises(ValueError, match="use PerClass"):
        model(PerNode(RBF()), taxonomy=tree, coupling="independent").fit(X, labels)
    with pytest.raises(ValueError, match="flat models"):
        model(RBF(), taxonomy=tree, solver="exact").fit(X, labels)
    with pytest.raises(ValueError, match="a list of kernels is for flat models"):
        model([RBF()] * 4, taxonomy=tree).fit(X, labels)
    with pytest.raises(ValueError, match="kernel maps classes to kernels"):
        model(dict.fromkeys(labels, RBF()), taxonomy=tree).fit(X, labels)
    with pytest.raises(ValueError, match="scale the features"):
        model(Polynomial(5)).fit(1e80 * X, labels)
