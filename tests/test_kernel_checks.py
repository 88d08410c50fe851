"""The check of kernel matrices from outside: good ones pass in any size and scale, bad ones are named."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from threadpoolctl import threadpool_limits

from taxolearn.kernels.checks import _extreme_eigenvalues, check_positive_semidefinite

SIZES = [1, 2, 50, 200, 201, 400]  # up to 200 by all eigenvalues, beyond by an estimate
FLOATS = [np.float32, np.float64]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Matrices this small are slower on more."""
    with threadpool_limits(1, "blas"):
        yield


def inputs(n, features=5):
    return np.random.default_rng(n).standard_normal((n, features))


def with_spectrum(values):
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values), len(values))))
    K = (rotation * values) @ rotation.T
    return (K + K.T) / 2


def check(K, random_state=None):
    check_positive_semidefinite(K, "kernel matrix", random_state)


class TestGoodMatrices:
    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("n", SIZES)
    @pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
    def test_any_size_and_scale(self, n, dtype, scale):
        X = inputs(n)
        for K in (X @ X.T, np.eye(n), np.ones((n, n)), np.zeros((n, n)), np.diag(np.arange(n))):
            check((scale * K).astype(dtype))
        for gamma in (1e-6, 1e-2, 1.0, 1e3):
            check(dtype(scale) * rbf_kernel(X.astype(dtype), gamma=gamma))

    @pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e300, 1.7e308])
    @pytest.mark.parametrize("n", [30, 300])
    def test_the_ends_of_the_range(self, n, scale):
        check(scale * rbf_kernel(inputs(n)))

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_slightly_negative_by_rounding(self, dtype):
        X = inputs(600).astype(dtype)
        K = rbf_kernel(X, gamma=1e-3)
        assert K.dtype == dtype
        assert np.linalg.eigvalsh(K.astype(np.float64))[0] < 0
        check(K)
        check(np.round(rbf_kernel(inputs(150), gamma=1e-3), 6))

    @pytest.mark.parametrize("n", [40, 300])
    def test_other_arrays(self, n):
        K = rbf_kernel(inputs(n))
        K.flags.writeable = False
        check(K)
        check(np.asfortranarray(K))
        check(K[::2, ::2])
        check(np.eye(n, dtype=int))
        check([[1.0, 0.5], [0.5, 1.0]])
        check(np.zeros((0, 0)))


class TestBadMatrices:
    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("n", [2, 150, 300])
    @pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
    @pytest.mark.parametrize("least", [-1e-3, -0.1, -1.0, -30.0])
    def test_indefinite(self, n, dtype, scale, least):
        values = np.exp(-np.arange(n) / 20)
        values[-1] = least
        K = (scale * with_spectrum(values)).astype(dtype)
        with pytest.raises(ValueError, match=r"kernel matrix is not positive semidefinite.*to its diagonal") as raised:
            check(K)
        said = str(raised.value)
        assert f"smallest eigenvalue is about {least * scale:.1g}"[:-4] in said
        check(K + dtype(-1.01 * least * scale) * np.eye(n, dtype=dtype))

    def test_a_kernel_that_is_none(self):
        for n in (100, 500):
            with pytest.raises(ValueError, match="not positive semidefinite"):
                check(sigmoid_kernel(inputs(n)))

    def test_negative_definite(self):
        for n in (1, 3, 300):
            with pytest.raises(ValueError, match="smallest eigenvalue is about -1, its largest -1"):
                check(-np.eye(n))

    @pytest.mark.parametrize("n", [5, 300])
    @pytest.mark.parametrize(("dtype", "small", "large"), [(np.float32, 5e-7, 1e-5), (np.float64, 5e-11, 1e-9)])
    def test_asymmetric(self, n, dtype, small, large):
        K = 8.0 * np.eye(n, dtype=dtype)
        K[4, 1] = 8.0 * small
        check(K)
        K[n - 1, 2] = 8.0 * large
        message = rf"kernel matrix is not symmetric: entry \(2, {n - 1}\) is 0 and .*difference of {8 * large:.0e}"
        with pytest.raises(ValueError, match=message):
            check(K)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_not_finite(self, value):
        K = np.eye(300)
        K[270, 3] = value
        with pytest.raises(ValueError, match=rf"kernel matrix has the entry {value} at \(270, 3\)"):
            check(K)

    def test_not_square(self):
        for shape in [(2, 3), (3,), (2, 2, 2)]:
            with pytest.raises(ValueError, match="expected a square matrix"):
                check(np.ones(shape))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "values",
    [
        np.linspace(-0.5, 1.0, 320),
        np.repeat([-1.0, 0.0, 2.0], [1, 300, 9]),
        np.exp(-np.arange(260) / 10),
        np.concatenate([[-0.01], np.geomspace(1e-6, 50.0, 400)]),
    ],
)
def test_estimate_lies_within_the_spectrum(values, dtype):
    K = with_spectrum(values).astype(dtype)
    expected = np.linalg.eigvalsh(K.astype(np.float64))
    rounding = 100 * np.finfo(dtype).eps * np.abs(values).max()
    for seed in range(3):
        low, high = _extreme_eigenvalues(K, seed)
        assert expected[0] - rounding <= low <= expected[0] + 1e-3 * np.ptp(values)
        assert expected[-1] - 1e-3 * np.ptp(values) <= high <= expected[-1] + rounding
    assert _extreme_eigenvalues(K, 1) == _extreme_eigenvalues(K, 1)
    assert _extreme_eigenvalues(K, np.random.RandomState(1)) == _extreme_eigenvalues(K, 1)
