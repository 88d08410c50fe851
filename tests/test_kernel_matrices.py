"""Every kernel through every operator: one contract, against dense NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from kernel_formulas import matrix

from taxolearn.kernels import RBF, Cosine, Linear, Matern, Polynomial, Precomputed, RationalQuadratic

testing = pytest.importorskip(
    "taxolearn_testing", reason="there is no taxolearn_testing; cmake -DTAXOLEARN_BUILD_TEST_MODULE=ON builds it"
)

FEATURES = 7
ARD = (0.5, 1.0, 2.0, 3.0, 1.5, 0.7, 1.1)
KERNELS = {
    "linear": Linear(0.7),
    "rbf": RBF(1.5, 2.0),
    "rbf ard": RBF(ARD, 2.0),
    "matern 1/2": Matern(1.5, 0.5, 0.8),
    "matern 3/2": Matern(1.5, 1.5, 0.8),
    "matern 5/2 ard": Matern(ARD, 2.5, 0.8),
    "rational quadratic": RationalQuadratic(1.2, 0.6, 1.5),
    "polynomial": Polynomial(3, 0.3, 0.5, 1.2),
    "cosine": Cosine(1.3),
    "sum": RBF(1.5) + 0.5 * Linear() + Matern(ARD, 0.5),
    "product": 2.0 * RBF(2.0) * (Linear() + Polynomial(2, 0.5)),
}
FORMS = {"dense": np.asarray, "float32": lambda X: X.astype(np.float32), "sparse": sp.csr_array}
PRECISIONS = {
    "single": (testing.KernelMatricesSingle, np.float32, 2e-5),
    "double": (testing.KernelMatricesDouble, np.float64, 1e-12),
}


def rows(n, seed):
    """Rows that are exact in single precision, some features zero, two rows the same."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, FEATURES)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.4] = 0.0
    X[n // 2] = X[0]
    return X


def operator(kernel, X, algorithm, precision, **options):
    build, dtype, tolerance = PRECISIONS[precision]
    if algorithm == "low_rank":
        options = {"rank": len(X) if not sp.issparse(X) else X.shape[0], "rank_tolerance": 0.0} | options
    return build([kernel.to_core()], X, algorithm=algorithm, **options), dtype, tolerance


def error(value, expected):
    return np.linalg.norm(value - expected) / max(np.linalg.norm(expected), 1e-300)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ["gram", "tiled", "low_rank"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_contract(kernel, algorithm, form, precision):
    n, m = 37, 3
    X, X_new = rows(n, 0), rows(11, 1)
    rng = np.random.default_rng(2)
    whole, dtype, tolerance = operator(kernel, FORMS[form](X), algorithm, precision)
    assert whole.algorithm == algorithm
    if algorithm == "low_rank":
        tolerance *= 1e3  # the factor of a full rank is known to rounding times the condition of the pivots
    subsets = [np.arange(n), rng.permutation(n)[:20], rng.permutation(n), np.array([5]), np.arange(n)]
    for step, subset in enumerate(subsets):
        op = whole.subset(subset.tolist()) if step > 0 else whole
        S = rng.standard_normal((len(subset), m)).astype(dtype)
        shift = rng.standard_normal(m).astype(dtype)
        M = matrix(kernel, X[subset], X[subset])
        assert op.rows == len(subset)
        assert error(op.apply(S), M @ S) < tolerance
        assert error(op.apply(S, shift=shift), M @ S + shift) < tolerance
        assert error(op.apply_cross(FORMS[form](X_new), S), matrix(kernel, X_new, X[subset]) @ S) < tolerance
        assert error(op.diag(), M.diagonal()) < 1e-12


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ["gram", "tiled", "low_rank"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_derivatives_are_finite_differences(kernel, algorithm, form, precision):
    n, m = 23, 2
    X = rows(n, 3)
    rng = np.random.default_rng(4)
    whole, dtype, _ = operator(kernel, FORMS[form](X), algorithm, precision)
    for subset in (np.arange(n), rng.permutation(n)[:15]):
        op = whole.subset(subset.tolist())
        E, F = rng.standard_normal((2, len(subset), m)).astype(dtype)

        def value(theta, rows=subset, E=E, F=F):
            changed = kernel.with_theta(theta)
            return np.trace(E.T.astype(float) @ matrix(changed, X[rows], X[rows]) @ F)

        theta, step = kernel.theta, 1e-5
        expected = [(value(theta + step * e) - value(theta - step * e)) / (2 * step) for e in np.eye(len(theta))]
        scale = np.abs(expected).max()
        assert np.allclose(
            op.bilinear_grad(E, F), expected, rtol=1e-3, atol=scale * (1e-3 if dtype == np.float32 else 1e-5)
        )


@pytest.mark.parametrize("algorithm", ["gram", "tiled"])
def test_precomputed_contract(algorithm):
    n = 30
    X = rows(n, 5)
    K = matrix(RBF(1.5), X, X)
    rng = np.random.default_rng(6)
    for precision in PRECISIONS:
        whole, dtype, tolerance = operator(Precomputed(2.0), K, algorithm, precision)
        K_new = np.ascontiguousarray(matrix(RBF(1.5), rows(8, 7), X))
        for subset in (np.arange(n), rng.permutation(n)[:12]):
            op = whole.subset(subset.tolist())
            S = rng.standard_normal((len(subset), 2)).astype(dtype)
            assert error(op.apply(S), 2.0 * K[np.ix_(subset, subset)] @ S) < tolerance
            assert error(op.apply_cross(K_new, S), 2.0 * K_new[:, subset] @ S) < tolerance


@pytest.mark.parametrize("precision", PRECISIONS)
def test_own_kernels_share_one_store(precision):
    n = 300  # more than one tile
    X = rows(n, 8)
    kernels = [RBF(1.0), Matern(2.0, 0.5), Linear()]
    build, dtype, tolerance = PRECISIONS[precision]
    op = build([kernel.to_core() for kernel in kernels], X, algorithm="gram", n_threads=2)
    alone = build([kernels[0].to_core()], X, algorithm="gram")
    assert op.bytes == 3 * alone.bytes
    full = n * n * np.dtype(dtype).itemsize
    assert alone.bytes < 1.0 * full
    rng = np.random.default_rng(9)
    for subset in (np.arange(n), rng.permutation(n)[:200], np.arange(n)):
        some = op.subset(subset.tolist())
        S = rng.standard_normal((len(subset), 2)).astype(dtype)
        for k, kernel in enumerate(kernels):
            M = matrix(kernel, X[subset], X[subset])
            assert error(some.apply(S, kernel=k), M @ S) < tolerance


def test_threads_do_not_change_the_answer():
    X = rows(700, 10)
    S = np.random.default_rng(11).standard_normal((700, 5))
    for precision in PRECISIONS:
        for algorithm in ("gram", "tiled", "low_rank"):
            answers = []
            for n_threads in (1, 2):
                op, dtype, _ = operator(RBF(1.5), X, algorithm, precision, n_threads=n_threads, rank=50)
                answers.append(op.apply(S.astype(dtype)))
            assert np.array_equal(*answers)


def test_low_rank_is_the_formula_of_its_pivots():
    X = rows(60, 12)
    M = matrix(RBF(2.0), X, X)
    S = np.random.default_rng(13).standard_normal((60, 2))
    before = np.inf
    for rank in (5, 20, 40):
        op, *_ = operator(RBF(2.0), X, "low_rank", "double", rank=rank)
        approximation = op.apply(np.eye(60))
        assert np.allclose(approximation.diagonal(), M.diagonal())
        left = np.linalg.norm(approximation - M)
        assert left < before
        before = left
        assert np.allclose(op.apply(S), approximation @ S)
        assert np.linalg.eigvalsh(approximation).min() > -1e-10


def test_core_rejects_what_does_not_fit():
    X = rows(10, 14)
    op, *_ = operator(RBF(1.0), X, "gram", "double")
    with pytest.raises(ValueError, match="twice"):
        op.subset([1, 1])
    with pytest.raises(ValueError, match=r"expected indices in \[0, 10\)"):
        op.subset([10])
    with pytest.raises(ValueError, match="empty"):
        op.subset([])
    with pytest.raises(ValueError, match="kernel is 1"):
        op.apply(np.zeros((10, 1)), kernel=1)
    with pytest.raises(ValueError, match="S has shape"):
        op.apply(np.zeros((9, 1)))
    with pytest.raises(ValueError, match="feature"):
        op.apply_cross(np.zeros((2, 3)), np.zeros((10, 1)))
    with pytest.raises(ValueError, match="algorithm"):
        testing.KernelMatricesDouble([RBF(1.0).to_core()], X, algorithm="dense")
    with pytest.raises(ValueError, match="no kernel"):
        testing.KernelMatricesDouble([], X)
