"""Kernels as values, and their matrices against formulas written differently and against scikit-learn's."""

import copy
import doctest
import importlib
import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from taxolearn import KernelLogisticClassifier
from taxolearn.kernels import (
    RBF,
    Cosine,
    Function,
    Kernel,
    Linear,
    Matern,
    PerClass,
    PerGroup,
    PerNode,
    Polynomial,
    Precomputed,
    Product,
    RationalQuadratic,
    Sum,
    as_kernel,
    kernel_names,
)
from taxolearn.kernels.argument import STORABLE, start_kernel

SCALES = (0.7, 2.0, 1.3, 5.0)
FEATURES = len(SCALES)

# Kernels and the same by other formulas: distances by SciPy, inner products by einsum.
FORMULAS = [
    (Linear(0.4), lambda X, Y: 0.4 * np.einsum("id,jd->ij", X, Y)),
    (RBF(1.7, 3.0), lambda X, Y: 3.0 * np.exp(-cdist(X, Y, "sqeuclidean") / (2 * 1.7**2))),
    (RBF(SCALES), lambda X, Y: np.exp(-(scaled(X, Y) ** 2) / 2)),
    (Matern(2.0, 0.5, 0.3), lambda X, Y: 0.3 * np.exp(-cdist(X, Y) / 2.0)),
    (Matern(SCALES, 1.5), lambda X, Y: (1 + 3**0.5 * scaled(X, Y)) * np.exp(-(3**0.5) * scaled(X, Y))),
    (
        Matern(1.5, 2.5, 2.0),
        lambda X, Y: (
            (2 + 20**0.5 / 1.5 * cdist(X, Y) + 10 / 6.75 * cdist(X, Y) ** 2) / np.exp(5**0.5 * cdist(X, Y) / 1.5)
        ),
    ),
    (
        RationalQuadratic(1.2, 0.7, 2.0),
        lambda X, Y: 2.0 * np.exp(-0.7 * np.log1p(cdist(X, Y) ** 2 / (1.4 * 1.44))),
    ),
    (RationalQuadratic(SCALES, 3.0), lambda X, Y: 216 / (6 + scaled(X, Y) ** 2) ** 3),
    (Polynomial(3, 0.5, 1.5, 2.0), lambda X, Y: 2.0 * np.prod([X @ Y.T / 2 + 1.5] * 3, axis=0)),
    (Polynomial(2, 0.5, 0.0), lambda X, Y: np.einsum("id,jd,ie,je->ij", X, Y, X, Y) / 4),
    (Cosine(1.5), lambda X, Y: 1.5 * (1 - cdist(X, Y, "cosine"))),
    (
        RBF(1.7) + 0.4 * Linear() + Cosine(2.0),
        lambda X, Y: np.exp(-(cdist(X, Y) ** 2) / 5.78) + 0.4 * X @ Y.T + 2 * (1 - cdist(X, Y, "cosine")),
    ),
    (
        (Matern(2.0, 0.5) + 3.0 * Linear()) * RBF(SCALES, 0.5),
        lambda X, Y: (np.exp(-cdist(X, Y) / 2) + 3 * X @ Y.T) * np.exp(-(scaled(X, Y) ** 2) / 2) / 2,
    ),
    (
        2.0 * Function(pairwise.rbf_kernel) * Matern(2.0, 0.5) + Linear(),
        lambda X, Y: 2 * np.exp(-(cdist(X, Y) ** 2) / FEATURES - cdist(X, Y) / 2) + X @ Y.T,
    ),
]
KERNELS = [kernel for kernel, _ in FORMULAS]
PEERS = [
    (Linear(), pairwise.linear_kernel),
    (Linear(2.0), 2.0 * gp.DotProduct(sigma_0=0.0)),
    (RBF(SCALES, 3.0), 3.0 * gp.RBF(SCALES)),
    (RBF(0.5), lambda X, Y: pairwise.rbf_kernel(X, Y, gamma=2.0)),
    (Matern(1.3, 0.5), gp.Matern(1.3, nu=0.5)),
    (Matern(SCALES, 1.5), gp.Matern(SCALES, nu=1.5)),
    (Matern(SCALES, 2.5), gp.Matern(SCALES, nu=2.5)),
    (RationalQuadratic(1.3, 0.4), gp.RationalQuadratic(1.3, alpha=0.4)),
    (Polynomial(4, 0.3, 2.0), lambda X, Y: pairwise.polynomial_kernel(X, Y, degree=4, gamma=0.3, coef0=2.0)),
    (Cosine(), pairwise.cosine_similarity),
    (RBF(1.5) * Linear() + Matern(), gp.RBF(1.5) * gp.DotProduct(0.0) + gp.Matern(nu=2.5)),
]
FORMS = {
    "lists": lambda X: X.tolist(),
    "data frame": pd.DataFrame,
    "Fortran order": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR matrix": sp.csr_matrix,
    "CSR array": sp.csr_array,
    "CSC": sp.csc_matrix,
    "CSR float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "CSR int64": lambda X: sp.csr_array(
        (lambda A: (A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)))(sp.csr_array(X)), shape=X.shape
    ),
}


def scaled(X, Y):
    return cdist(X / np.array(SCALES), Y / np.array(SCALES))


def title(value):
    return repr(value) if isinstance(value, Kernel) else "="


def rows(n, seed=0):
    """Rows with exact zeros and numbers that single precision holds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, FEATURES)) * (rng.random((n, FEATURES)) < 0.7)
    X[:, 0] += 0.1
    return X.astype(np.float32).astype(np.float64)


def close(a, b, tolerance=1e-12):
    return a.shape == b.shape and np.abs(a - b).max(initial=0.0) <= tolerance * max(np.abs(b).max(initial=0.0), 1.0)


def finite_differences(kernel, X, Q, step=1e-5):
    theta = kernel.theta

    def value(at):
        return (Q * kernel.with_theta(at)(X)).sum()

    return np.array([(value(theta + step * e) - value(theta - step * e)) / (2 * step) for e in np.eye(len(theta))])


positive = st.floats(1e-4, 1e4)


def leaves():
    def options(names):
        return st.fixed_dictionaries(
            {},
            optional={
                "fixed": st.one_of(st.booleans(), st.lists(st.sampled_from(names), max_size=3)),
                "bounds": st.dictionaries(
                    st.sampled_from(names), st.tuples(st.floats(1e-9, 1e-6), st.floats(1e7, 1e9)), max_size=2
                ),
            },
        )

    def build(kind, names, **parameters):
        return st.builds(lambda given, more: kind(**given, **more), st.fixed_dictionaries(parameters), options(names))

    length_scale = st.one_of(positive, st.lists(positive, min_size=FEATURES, max_size=FEATURES))
    both = ["length_scale", "variance"]
    return st.one_of(
        build(Linear, ["variance"], variance=positive),
        build(Cosine, ["variance"], variance=positive),
        build(RBF, both, length_scale=length_scale, variance=positive),
        build(Matern, both, length_scale=length_scale, nu=st.sampled_from([0.5, 1.5, 2.5]), variance=positive),
        build(RationalQuadratic, [*both, "alpha"], length_scale=length_scale, alpha=positive, variance=positive),
        build(
            Polynomial,
            ["scale", "offset", "variance"],
            degree=st.integers(1, 5),
            scale=positive,
            offset=st.one_of(st.just(0.0), positive),
            variance=positive,
        ),
        build(Function, ["variance"], function=st.just(pairwise.chi2_kernel), variance=positive),
    )


kernels = st.recursive(
    leaves(),
    lambda parts: st.builds(
        lambda kind, some: kind(some), st.sampled_from([Sum, Product]), st.lists(parts, min_size=2, max_size=3)
    ),
)


class TestMatrices:
    @pytest.mark.parametrize(("kernel", "formula"), FORMULAS, ids=title)
    def test_formulas(self, kernel, formula):
        X, Y = rows(33), rows(70, seed=1)
        assert kernel(X).dtype == np.float64
        assert close(kernel(X), formula(X, X))
        assert close(kernel(X, Y), formula(X, Y))
        assert np.array_equal(kernel(X), kernel(X).T) or not kernel.is_native

    @pytest.mark.parametrize(("kernel", "peer"), PEERS, ids=title)
    def test_scikit_learn(self, kernel, peer):
        X, Y = rows(20), rows(41, seed=1)
        assert close(kernel(X, Y), peer(X, Y))

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_any_form_of_input(self, kernel, form):
        X, Y = rows(12), rows(40, seed=1)
        expected, Q = kernel(X, Y), np.random.default_rng(0).standard_normal((12, 12))
        tolerance = 1e-6 if "float32" in form and not kernel.is_native else 1e-12
        convert = FORMS[form]
        assert close(kernel(convert(X), convert(Y)), expected, tolerance)
        assert close(kernel(convert(X), Y), expected, tolerance)
        assert close(kernel(X, convert(Y)), expected, tolerance)
        assert close(kernel.diag(convert(X)), kernel.diag(X), tolerance)
        assert close(kernel.gradient(convert(X), Q), kernel.gradient(X, Q), 10 * tolerance)

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_threads_do_not_matter(self, kernel):
        X, Q = rows(150), np.random.default_rng(0).standard_normal((150, 150))
        assert np.array_equal(kernel(X, n_threads=1), kernel(X, n_threads=2))
        assert np.array_equal(kernel.gradient(X, Q, n_threads=1), kernel.gradient(X, Q, n_threads=2))

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_diagonal(self, kernel):
        X = rows(130)
        assert close(kernel.diag(X), kernel(X).diagonal())

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_gradient_is_a_finite_difference(self, kernel):
        X, Q = rows(9), np.random.default_rng(0).standard_normal((9, 9))
        gradient, expected = kernel.gradient(X, Q), finite_differences(kernel, X, Q)
        assert gradient.shape == kernel.theta.shape
        assert np.allclose(gradient, expected, rtol=1e-6, atol=1e-6)
        assert np.abs(expected).min() > 1e-4

    def test_gradient_of_the_free_alone(self):
        X, Q = rows(9), np.ones((9, 9))
        kernel = (RBF(SCALES, 2.0) + RationalQuadratic(1.5)) * Linear(3.0) + Polynomial()
        free = (RBF(SCALES, 2.0, fixed="length_scale") + RationalQuadratic(1.5, fixed=("alpha", "variance"))) * Linear(
            3.0, fixed=True
        ) + Polynomial(fixed="scale")
        kept = [kernel.parameter_names.index(name) for name in free.parameter_names]
        assert len(kept) == 4
        assert np.array_equal(free.gradient(X, Q), kernel.gradient(X, Q)[kept])
        assert Linear(fixed=True).gradient(X, Q).shape == (0,)

    def test_rows_of_zeros_have_no_direction(self):
        X = np.array([[0.0, 0.0], [3.0, 4.0], [4.0, -3.0]])
        expected = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
        for form in (X, sp.csr_array(X)):
            assert close(Cosine(2.0)(form), expected)
            assert close(Cosine(2.0).diag(form), expected.diagonal())

    @pytest.mark.parametrize("length_scale", [1e-12, 1e-3, 1e3, 1e12])
    @pytest.mark.parametrize("kernel", [RBF(), Matern(nu=0.5), Matern(nu=1.5), Matern(), RationalQuadratic()], ids=repr)
    def test_extreme_length_scales(self, kernel, length_scale):
        X = rows(13) + 100.0
        X[10:] = X[:3]
        K = kernel.with_theta([math.log(length_scale), *kernel.theta[1:]])(X)
        assert np.isfinite(K).all()
        assert (K >= 0).all()
        assert (K <= 1).all()
        assert np.array_equal(K[:3, 10:].diagonal(), np.ones(3))

    def test_own_names(self):
        for kernel, _ in FORMULAS[:-1]:
            assert kernel.is_native
            assert kernel.to_core().parameters == len(kernel.free) >= len(kernel.theta)
        with pytest.raises(TypeError, match="evaluated in Python"):
            FORMULAS[-1][0].to_core()


class TestPrecomputed:
    def test_it_is_the_matrix(self):
        K = RBF()(rows(20))
        kernel = Precomputed(3.0)
        assert close(kernel(K), 3.0 * K)
        assert close(kernel(K[:5], K), 3.0 * K[:5])
        assert close(kernel(K.astype(np.float32)), 3.0 * K, 1e-6)
        assert close(kernel.diag(K), 3.0 * K.diagonal())
        Q = rows(20) @ rows(20, seed=1).T
        assert close(kernel.gradient(K, Q), np.array([3.0 * (Q * K).sum()]))
        both = Precomputed() + 2.0 * Precomputed()
        assert both.is_precomputed
        assert close(both(K), 3.0 * K)

    def test_bad_matrices(self):
        with pytest.raises(TypeError, match=r"X is sparse.*X.toarray\(\)"):
            Precomputed()(sp.eye_array(3, format="csr"))
        with pytest.raises(ValueError, match="square"):
            Precomputed()(np.ones((3, 4)))
        with pytest.raises(ValueError, match="square"):
            Precomputed().diag(np.ones((3, 4)))
        with pytest.raises(ValueError, match="cannot go together"):
            Precomputed() + RBF()
        with pytest.raises(ValueError, match="cannot go together"):
            Function(pairwise.chi2_kernel) * Precomputed()


class TestFunction:
    def test_parameters_of_a_kernel_become_ours(self):
        function = gp.ConstantKernel(2.0, "fixed") * gp.RBF([1.0, 3.0], (1e-2, 1e2)) + gp.WhiteKernel(0.5)
        kernel = Function(function, 3.0)
        assert kernel.parameter_names == (
            "function.k1__k2__length_scale[0]",
            "function.k1__k2__length_scale[1]",
            "function.k2__noise_level",
            "variance",
        )
        assert np.array_equal(kernel.theta, [*function.theta, math.log(3.0)])
        assert np.array_equal(kernel.theta_bounds, np.vstack([function.bounds, np.log([[1e-5, 1e5]])]))
        X, Q = rows(8)[:, :2], rows(8) @ rows(8, seed=1).T
        assert close(kernel(X), 3.0 * function(X))
        assert close(kernel(X, X), 3.0 * function(X, X))
        assert not close(kernel(X), kernel(X, X))
        assert close(kernel.diag(X), kernel(X).diagonal())
        assert np.allclose(kernel.gradient(X, Q), finite_differences(kernel, X, Q), atol=1e-7)
        together = kernel * RBF(2.0) + Matern(1.5)
        assert np.allclose(together.gradient(X, Q), finite_differences(together, X, Q), atol=1e-7)

    def test_own_parameters_can_be_fixed(self):
        X, Q = rows(8), rows(8) @ rows(8, seed=1).T
        kernel = Function(gp.RBF(2.0), 3.0)
        fixed = Function(gp.RBF(2.0), 3.0, fixed="function")
        assert fixed.parameter_names == ("variance",)
        assert np.array_equal(fixed.gradient(X, Q), kernel.gradient(X, Q)[1:])
        assert fixed.with_theta([0.0])(X).max() == 1.0
        assert Function(gp.RBF(2.0), fixed=True).parameter_names == ()
        with pytest.raises(ValueError, match="Function: fixed names 'function', expected one of 'variance'"):
            Function(pairwise.chi2_kernel, fixed="function")

    def test_it_keeps_a_copy(self):
        function = gp.RBF(2.0)
        kernel = Function(function)
        function.length_scale = 5.0
        assert kernel == Function(gp.RBF(2.0))
        assert hash(kernel) == hash(Function(gp.RBF(2.0)))
        assert kernel != Function(gp.RBF(5.0))
        assert kernel.with_theta([math.log(5.0), 0.0])(rows(5)).tolist() == pytest.approx(gp.RBF(5.0)(rows(5)))

    def test_functions_without_parameters(self):
        X = abs(rows(70))
        kernel = Function(pairwise.chi2_kernel)
        assert kernel.parameter_names == ("variance",)
        assert close(kernel(X), pairwise.chi2_kernel(X))
        assert close(kernel.diag(X), np.ones(70))
        assert close((2.0 * Function(lambda X, Y: X @ Y.T))(sp.csr_array(X)), 2.0 * X @ X.T)
        assert Function(pairwise.chi2_kernel) == kernel
        assert Function(pairwise.chi2_kernel) != Function(pairwise.rbf_kernel)

    def test_bad_functions(self):
        X = rows(5)
        with pytest.raises(ValueError, match=r"returned an array of shape \(5,\), expected \(5, 5\)"):
            Function(lambda X, Y: X[:, 0])(X)
        with pytest.raises(ValueError, match="not finite"):
            Function(lambda X, Y: np.full((len(X), len(Y)), np.nan))(X)
        with pytest.raises(TypeError, match="X is sparse"):
            Function(gp.RBF())(sp.csr_array(X))
        for wrong in (3, None, "rbf", RBF()):
            with pytest.raises(TypeError, match="Function: function must be a callable"):
                Function(wrong)
        with pytest.raises(TypeError, match="Function: function is the class RBF, expected an instance"):
            Function(gp.RBF)


class TestTheta:
    def test_order_names_and_bounds(self):
        kernel = RBF([2.0, 3.0], 5.0, bounds={"length_scale": (0.1, 10.0)}) + RationalQuadratic(
            1.5, 0.5, fixed="variance"
        )
        assert kernel.parameter_names == (
            "0.length_scale[0]",
            "0.length_scale[1]",
            "0.variance",
            "1.length_scale",
            "1.alpha",
        )
        assert np.allclose(kernel.theta, np.log([2.0, 3.0, 5.0, 1.5, 0.5]))
        assert np.allclose(np.exp(kernel.theta_bounds), [(0.1, 10.0)] * 2 + [(1e-5, 1e5)] * 3)
        assert kernel.free.tolist() == [True] * 5 + [False]
        assert Polynomial(2, 3.0, 4.0, 5.0).parameter_names == ("scale", "offset", "variance")
        assert np.allclose(Polynomial(2, 3.0, 4.0, 5.0).theta, np.log([3.0, 4.0, 5.0]))

    def test_default_bounds_hold_the_value(self):
        assert np.allclose(np.exp(Linear(1e7).theta_bounds), [(1e-5, 1e7)])
        assert np.allclose(np.exp(Linear(1e-7).theta_bounds), [(1e-7, 1e5)])

    def test_no_offset_is_fixed(self):
        kernel = Polynomial(3, 0.5, 0.0)
        assert kernel.parameter_names == ("scale", "variance")
        assert kernel.with_theta([1.0, 2.0]) == Polynomial(3, math.exp(1.0), 0.0, math.exp(2.0))
        assert Polynomial(offset=0.0, bounds={"offset": (1.0, 2.0)}).offset == 0.0

    @given(kernels)
    @settings(max_examples=60, deadline=None)
    def test_round_trip(self, kernel):
        assert kernel.with_theta(kernel.theta) == kernel
        moved = kernel.with_theta(kernel.theta + 0.5)
        assert np.allclose(moved.theta, kernel.theta + 0.5, atol=1e-12)
        assert moved.parameter_names == kernel.parameter_names
        assert len(kernel.parameter_names) == len(kernel.theta) == len(kernel.theta_bounds) == kernel.free.sum()
        assert (kernel.theta_bounds[:, 0] <= kernel.theta).all()
        assert (kernel.theta <= kernel.theta_bounds[:, 1]).all()

    def test_the_ends_of_the_bounds_can_be_reached(self):
        for low, high in itertools.pairwise([1e-5, 0.1, 0.3, 7.0, 1e5]):
            kernel = RBF(low, bounds={"length_scale": (low, high)}, fixed="variance")
            (bounds,) = kernel.theta_bounds
            reached = [kernel.with_theta([bound]).length_scale for bound in bounds]
            assert reached == pytest.approx([low, high], rel=1e-14)
            assert low <= min(reached) < max(reached) <= high

    def test_arrays_are_read_only(self):
        for array in (RBF().theta, RBF().theta_bounds, RBF().free):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    @pytest.mark.parametrize(
        ("theta", "message"),
        [
            ([0.0], r"theta has shape \(1,\), expected \(2,\) for: length_scale, variance"),
            ([[0.0, 0.0]], r"theta has shape \(1, 2\)"),
            ([0.0, np.nan], "theta: the logarithm of variance must lie between -700 and 700, got nan"),
            ([800.0, 0.0], "theta: the logarithm of length_scale must lie"),
            ([np.log(30.0), 0.0], r"RBF: length_scale is 30.*, outside of its bounds \(0.1, 10.0\)"),
        ],
    )
    def test_bad_theta(self, theta, message):
        with pytest.raises(ValueError, match=message):
            RBF(bounds={"length_scale": (0.1, 10.0)}).with_theta(theta)


class TestValues:
    @given(kernels)
    @settings(max_examples=150, deadline=None)
    def test_repr_can_be_pasted(self, kernel):
        names = {name: getattr(importlib.import_module("taxolearn.kernels"), name) for name in EXPORTED}
        pasted = eval(repr(kernel), names | {"chi2_kernel": pairwise.chi2_kernel})
        assert pasted == kernel
        assert hash(pasted) == hash(kernel)
        assert repr(pasted) == repr(kernel)

    @pytest.mark.parametrize(
        ("kernel", "text"),
        [
            (Linear(5), "Linear(variance=5.0)"),
            (Linear(fixed=True), "Linear(variance=1.0, fixed='variance')"),
            (RBF(np.array([1, 2])), "RBF(length_scale=(1.0, 2.0), variance=1.0)"),
            (RBF(np.float32(0.5), fixed=True), "RBF(length_scale=0.5, variance=1.0, fixed=True)"),
            (Matern(nu=0.5), "Matern(length_scale=1.0, nu=0.5, variance=1.0)"),
            (
                RationalQuadratic(fixed=["variance", "alpha"]),
                "RationalQuadratic(length_scale=1.0, alpha=1.0, variance=1.0, fixed=('alpha', 'variance'))",
            ),
            (
                Cosine(bounds={"variance": (0.1, 10)}),
                "Cosine(variance=1.0, bounds={'variance': (0.1, 10.0)})",
            ),
            (
                (Linear() + Cosine()) * Linear(),
                "(Linear(variance=1.0) + Cosine(variance=1.0)) * Linear(variance=1.0)",
            ),
            (Function(pairwise.chi2_kernel, 2.0), "Function(chi2_kernel, variance=2.0)"),
            (Function(gp.RBF(2.0)), "Function(<RBF(length_scale=2)>, variance=1.0)"),
            (PerClass(Linear(2.0)), "PerClass(Linear(variance=2.0))"),
            (PerNode({"a": Linear()}, share="equal"), "PerNode({'a': Linear(variance=1.0)}, share='equal')"),
        ],
    )
    def test_repr(self, kernel, text):
        assert repr(kernel) == text

    @pytest.mark.parametrize("kernel", [*KERNELS, PerClass({"a": RBF(), 2: Linear()}), PerGroup(RBF())], ids=repr)
    def test_copies_are_equal(self, kernel):
        assert copy.deepcopy(kernel) == kernel
        assert hash(copy.deepcopy(kernel)) == hash(kernel)
        assert clone(KernelLogisticClassifier(kernel, tuning=None)).kernel == kernel

    def test_they_cannot_be_changed(self):
        for kernel, name in [(RBF(), "variance"), (RBF() + Linear(), "parts"), (PerClass(RBF()), "kernel")]:
            with pytest.raises(AttributeError):
                setattr(kernel, name, 2.0)
        with pytest.raises(TypeError):
            RBF(bounds={"variance": (0.1, 10)}).bounds["variance"] = (1, 2)
        bounds = {"variance": (0.1, 10.0)}
        kernel = RBF(bounds=bounds)
        bounds["variance"] = (1.0, 2.0)
        assert kernel.bounds == {"variance": (0.1, 10.0)}

    def test_equality(self):
        assert RBF([1, 2]) == RBF((1.0, 2.0)) == RBF(np.array([1.0, 2.0]))
        assert len({RBF(), RBF(1), RBF(1.0, 1), RBF(fixed=()), RBF(fixed=False), RBF(bounds={})}) == 1
        assert RBF(fixed=("variance", "length_scale")) == RBF(fixed=True)
        different = [RBF(), RBF([1.0]), RBF(2.0), RBF(1.0, 2.0), RBF(fixed=True), Matern(), Linear(), Cosine()]
        different += [RBF(bounds={"variance": (0.1, 9)}), RBF() + Linear(), Linear() + RBF(), RBF() * Linear()]
        assert len(set(different)) == len(different)
        assert RBF() != "RBF(length_scale=1.0, variance=1.0)"

    def test_sums_and_products_are_flat(self):
        a, b, c, d = Linear(1.0), RBF(2.0), Cosine(3.0), Matern(4.0)
        assert ((a + b) + c).parts == (a + (b + c)).parts == (a, b, c)
        assert ((a * b) * (c * d)).parts == (a, b, c, d)
        assert (a * b + c * d).parts == (a * b, c * d)
        assert Sum([a, b]) == a + b
        assert Product((a, b)) == a * b

    def test_numbers_scale_the_variance(self):
        assert 3 * RBF(2.0, 5.0) == RBF(2.0, 5.0) * 3.0 == np.float64(3.0) * RBF(2.0, 5.0) == RBF(2.0, 15.0)
        assert 2.0 * (Linear() + RBF()) == Linear(2.0) + RBF(1.0, 2.0)
        assert 2.0 * (Linear() * RBF()) == Linear(2.0) * RBF()
        assert 2.0 * ((Linear() + Cosine()) * RBF()) == (Linear(2.0) + Cosine(2.0)) * RBF()
        for wrong in (0, -1.0, np.inf, np.nan):
            with pytest.raises(ValueError, match="the factor of a kernel must be finite and above 0"):
                wrong * RBF()
        for wrong in ("2", True, None, np.ones(2)):
            with pytest.raises(TypeError):
                wrong * RBF()
        for wrong in (1.0, pairwise.chi2_kernel):
            with pytest.raises(TypeError):
                RBF() + wrong
        with pytest.raises(ValueError, match=r"RBF: variance is 4.0, outside of its bounds \(0.5, 2.0\)"):
            4.0 * RBF(bounds={"variance": (0.5, 2.0)})

    def test_as_kernel(self):
        assert as_kernel(RBF(2.0)) == RBF(2.0)
        assert as_kernel(pairwise.chi2_kernel) == Function(pairwise.chi2_kernel)
        with pytest.raises(TypeError, match=r"kernel is the class RBF, expected a kernel: RBF\(...\)"):
            as_kernel(RBF)
        assert as_kernel("rbf") == RBF()
        with pytest.raises(ValueError, match="kernel is 'gauss', expected a kernel or one of 'linear', 'rbf'"):
            as_kernel("gauss")
        own = PerClass({"a": "rbf", "b": Linear()}, share="equal")
        assert own.kernel == {"a": "rbf", "b": Linear()}
        assert own.assign(["a", "b"]) == PerClass({"a": RBF(), "b": Linear()}, share="equal").assign(["a", "b"])
        with pytest.raises(ValueError, match=r"PerClass\['a'\] is 'gauss'"):
            PerClass({"a": "gauss"})

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: RBF(0.0), ValueError, "RBF: length_scale must be finite and above 0, got 0.0"),
            (lambda: RBF([1.0, -2.0]), ValueError, r"RBF: length_scale\[1\] must be finite and above 0, got -2.0"),
            (lambda: RBF([]), ValueError, "RBF: length_scale is empty"),
            (lambda: RBF("1"), TypeError, "RBF: length_scale must be a number or one number per feature, got str"),
            (lambda: RBF(True), TypeError, "RBF: length_scale must be a number or one"),
            (lambda: RBF([[1.0]]), TypeError, r"RBF: length_scale\[0\] must be a number, got .* of type list"),
            (lambda: RBF(1.0, [1.0]), TypeError, "RBF: variance must be a number, got .* of type list"),
            (lambda: Matern(1.0, 2.0), ValueError, "Matern: nu is 2.0, expected 0.5, 1.5 or 2.5"),
            (lambda: Matern(1.0, None), TypeError, "Matern: nu must be a number"),
            (lambda: RationalQuadratic(alpha=np.inf), ValueError, "Quadratic: alpha must be finite and above 0"),
            (lambda: Polynomial(0), ValueError, "Polynomial: degree must be finite and at least 1, got 0"),
            (lambda: Polynomial(1.5), TypeError, "Polynomial: degree must be an integer"),
            (lambda: Polynomial(offset=-1.0), ValueError, "Polynomial: offset must be finite and at least 0"),
            (lambda: Polynomial(scale=0.0), ValueError, "Polynomial: scale must be finite and above 0"),
            (lambda: RBF(fixed="scale"), ValueError, "RBF: fixed names 'scale', expected one of 'length_scale', 'var"),
            (lambda: RBF(fixed=("variance", 3)), ValueError, "RBF: fixed names 3"),
            (lambda: RBF(fixed=1.5), TypeError, "RBF: fixed must be True, False, a name or several, got float"),
            (lambda: RBF(bounds=(1, 2)), TypeError, r"RBF: bounds must be a mapping like \{'variance': .*got tuple"),
            (lambda: RBF(bounds={"nu": (1, 2)}), ValueError, "RBF: bounds names 'nu'"),
            (lambda: RBF(bounds={"variance": 3}), ValueError, r"RBF: bounds of variance must be a pair .*got 3"),
            (lambda: RBF(bounds={"variance": (2, 1)}), ValueError, r"\(2.0, 1.0\), expected low < high"),
            (
                lambda: RBF(bounds={"variance": (0, 1)}),
                ValueError,
                "RBF: lower bound of variance must be finite and",
            ),
            (lambda: RBF(bounds={"variance": ("a", 1)}), TypeError, "RBF: lower bound of variance must be a number"),
            (lambda: RBF(3.0, bounds={"length_scale": (1, 2)}), ValueError, "RBF: length_scale is 3.0, outside of its"),
            (lambda: RBF([1, 3], bounds={"length_scale": (1, 2)}), ValueError, r"length_scale\[1\] is 3.0, outside"),
            (lambda: Sum([RBF()]), ValueError, "Sum: at least two parts are needed, got 1"),
            (lambda: Sum(RBF()), TypeError, "Sum: parts must be a sequence of kernels, got RBF"),
            (
                lambda: Product([RBF(), pairwise.chi2_kernel]),
                TypeError,
                "wrap a callable in taxolearn.kernels.Function",
            ),
        ],
    )
    def test_bad_arguments(self, make, error, message):
        with pytest.raises(error, match=message):
            make()

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: RBF([1.0, 2.0])(rows(3)), "RBF: length_scale has 2 values, X has 4 features"),
            (lambda: (Linear() + RBF([1.0, 2.0])).diag(rows(3)), "RBF: length_scale has 2 values, X has 4 features"),
            (lambda: RBF([1.0])(rows(3)), "RBF: length_scale has 1 values, X has 4 features"),
            (lambda: RBF()(rows(3), rows(3)[:, :2]), "X has 4 columns and Y has 2"),
            (lambda: RBF()([[np.nan]]), "X contains NaN"),
            (lambda: RBF()([[1.0]], [[np.inf]]), "Y contains infinity"),
            (lambda: RBF()([1.0, 2.0]), "Expected 2D array"),
            (lambda: RBF().gradient(rows(3), np.ones((2, 3))), r"Q has shape \(2, 3\), expected \(3, 3\)"),
        ],
    )
    def test_bad_inputs(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


class TestSplit:
    @given(kernels)
    @settings(max_examples=60, deadline=None)
    def test_the_parts_make_the_kernel(self, kernel):
        X = abs(rows(6))
        variance, unit = kernel.split()
        assert unit.split() == (1.0, unit)
        assert np.allclose(variance * unit(X), kernel(X), rtol=1e-9)

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    @pytest.mark.parametrize("factor", [2.0, 0.1, 1 / 3, 7e3])
    def test_scaling_leaves_the_unit(self, kernel, factor):
        variance, unit = (factor * kernel).split()
        assert unit == kernel.split()[1]
        assert variance == pytest.approx(factor * kernel.split()[0])

    def test_variances_that_multiply(self):
        assert (Linear(2.0) * RBF(3.0, 5.0)).split() == (10.0, Linear(fixed=True) * RBF(3.0, fixed="variance"))
        one = Cosine(2.0) + Linear(3.0) * RBF(1.0, 4.0)
        other = Cosine(0.5) + Linear(1.0) * RBF(1.0, 3.0)
        assert one.split() == (2.0, Cosine(fixed=True) + Linear(6.0) * RBF(fixed="variance"))
        assert one.split()[1] == other.split()[1]
        nested = (Linear(2.0) + Cosine(6.0)) * RBF(1.0, 5.0)
        assert nested.split() == (10.0, (Linear(fixed=True) + Cosine(3.0)) * RBF(fixed="variance"))

    def test_a_product_in_a_sum_keeps_a_free_variance(self):
        _, unit = (Cosine(2.0) + Linear(4.0, fixed=True) * RBF(1.0, 3.0)).split()
        assert unit == Cosine(fixed=True) + Linear(fixed=True) * RBF(1.0, 6.0)

    def test_bounds_follow(self):
        _, unit = RBF(2.0, 3.0, bounds={"variance": (2.0, 4.0), "length_scale": (1.0, 9.0)}).split()
        assert unit == RBF(2.0, bounds={"length_scale": (1.0, 9.0)}, fixed="variance")
        _, unit = (Linear(2.0) + RBF(2.0, 3.0, bounds={"variance": (2.0, 4.0)})).split()
        assert unit == Linear(fixed=True) + RBF(2.0, 1.5, bounds={"variance": (1.0, 2.0)})


class TestOwnKernels:
    @pytest.mark.parametrize("kind", [PerClass, PerNode, PerGroup])
    def test_one_kernel_for_all(self, kind):
        unit = RBF(2.0, fixed="variance")
        names = ["a", "b", "c"]
        assert kind(RBF(2.0, 3.0)).assign(names) == ([unit] * 3, [0, 1, 2], [3.0] * 3)
        for share in ("correlation", "equal"):
            assert kind(RBF(2.0, 3.0), share=share).assign(names) == ([unit], [0, 0, 0], [3.0] * 3)
        assert kind().assign(["a"]) == ([Linear(fixed=True)], [0], [1.0])
        assert kind(RBF()).assign([]) == ([], [], [])

    def test_a_mapping(self):
        table = {"a": RBF(2.0, 3.0), "b": RBF(2.0), 3: Linear(5.0)}
        rbf, linear = RBF(2.0, fixed="variance"), Linear(fixed=True)
        names = [3, "b", "a"]
        assert PerClass(table).assign(names) == ([linear, rbf, rbf], [0, 1, 2], [5.0, 1.0, 3.0])
        assert PerClass(table, share="equal").assign(names) == ([linear, rbf], [0, 1, 1], [5.0, 1.0, 3.0])
        assert PerClass(table).assign([np.int64(3), np.str_("b"), "a"])[1] == [0, 1, 2]
        del table["a"]
        shared = PerClass(table | {3: 2.0 * RBF(2.0)}, share="correlation")
        assert shared.assign(["b", 3]) == ([rbf], [0, 0], [1.0, 2.0])
        assert PerClass({"a": pairwise.chi2_kernel}).kernel == {"a": Function(pairwise.chi2_kernel)}
        assert PerClass({"a": RBF()}) != PerNode({"a": RBF()})

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: PerClass({}), ValueError, "PerClass: the mapping is empty, expected a kernel for every class"),
            (lambda: PerClass({"a": 3}), TypeError, r"PerClass\['a'\] must be one of taxolearn.kernels"),
            (lambda: PerNode(3), TypeError, "PerNode: kernel must be one of taxolearn.kernels"),
            (lambda: PerNode(PerClass(RBF())), TypeError, "PerNode: kernel must be one of taxolearn.kernels"),
            (lambda: PerClass(RBF(), share="all"), ValueError, "PerClass: share is 'all', expected one of 'nothing'"),
            (
                lambda: PerGroup({"a": RBF(), "b": 2.0 * RBF(), "c": RBF(3.0)}, share="correlation"),
                ValueError,
                "PerGroup: share=.* needs kernels that differ in their variance alone, but 'a' has RBF.*'c'",
            ),
            (lambda: PerClass({"a": RBF()}).assign("ab"), ValueError, "PerClass has no kernel for class 'b'$"),
            (lambda: PerNode({"a": RBF()}).assign("xbcdefg"), ValueError, "for nodes 'x', 'b', 'c', 'd', 'e', ...$"),
            (
                lambda: PerGroup({"a": RBF(), "b": RBF()}).assign("a"),
                ValueError,
                "PerGroup has kernels for unknown group 'b'",
            ),
        ],
    )
    def test_bad_arguments(self, make, error, message):
        with pytest.raises(error, match=message):
            make()


EXPORTED = importlib.import_module("taxolearn.kernels").__all__


def test_every_kernel_is_exported():
    assert all(
        issubclass(getattr(importlib.import_module("taxolearn.kernels"), type(k).__name__), Kernel) for k in KERNELS
    )


@pytest.mark.parametrize("module", ["argument", "base", "function", "inner_product", "stationary"])
def test_examples_run(module):
    result = doctest.testmod(importlib.import_module(f"taxolearn.kernels.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_names_of_kernels_are_in_one_place():
    X = np.random.default_rng(0).standard_normal((10, 3))
    for name in kernel_names():
        assert type(start_kernel(name, X)) is type(as_kernel(name)) is STORABLE[type(as_kernel(name)).__name__]
    with pytest.raises(ValueError, match=r"kernel is 'gauss', expected a kernel or one of 'linear', 'rbf'"):
        start_kernel("gauss", X)
