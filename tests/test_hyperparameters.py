"""The vector of hyperparameters: what is in it, what it is called, and that it acts as the readable table says."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from cv_formulas import covariance, functions_of
from cv_models import (
    COMBINATIONS,
    FEATURES,
    INDEPENDENT,
    KERNELS,
    SEEN,
    SHARINGS,
    TAXONOMY,
    TREE,
    classes_of,
    problem,
    shift,
)
from sklearn.gaussian_process import kernels as process_kernels
from sklearn.metrics.pairwise import rbf_kernel

from taxolearn import Independent, Tree, _core
from taxolearn.kernels import (
    RBF,
    Cosine,
    Function,
    Linear,
    Matern,
    PerClass,
    PerGroup,
    PerNode,
    Polynomial,
    Precomputed,
    RationalQuadratic,
)
from taxolearn.kernels.argument import start_kernel, start_kernels
from taxolearn.tuning.parameter_vector import ParameterVector, PriorGradient, make_parameters

X = problem(n=10)[0][:5]


def make(kernel, *, intercept_variance=2.0, learn_intercept_variance=True, taxonomy=None, coupling="auto"):
    classes = np.array(SEEN) if taxonomy is None else TAXONOMY.classes
    return make_parameters(kernel, taxonomy, classes, coupling, intercept_variance, learn_intercept_variance)


def model(kernel, sharing):
    own, options = SHARINGS[sharing]
    return make(own(KERNELS[kernel]), **options), options


def core_covariance(prior):
    """Of the predictors, from what the core is given."""
    R = prior.coupling.to_factors(np.eye(prior.coupling.classes))
    matrices = [kernel.matrix(X) for kernel in prior.kernels] or [X @ X.T]
    kernel_of = prior.kernel_of or [0] * R.shape[1]
    K = prior.intercept_variance * np.kron(np.eye(len(R)), np.ones((len(X), len(X))))
    return K + sum(np.kron(np.outer(r, r), matrices[k]) for r, k in zip(R.T, kernel_of, strict=True))


def table_covariance(parameters, theta, options):
    table = parameters.table(theta)
    return covariance(functions_of(table, classes_of(options), **options), table.intercept_variance, X)


def close(a, b, tolerance=1e-9):
    return np.abs(a - b).max() <= tolerance * np.abs(b).max()


@pytest.mark.parametrize(("kernel", "sharing"), COMBINATIONS)
def test_core_has_the_values_of_the_table(kernel, sharing):
    parameters, options = model(kernel, sharing)
    for theta in (parameters.theta, shift(parameters.theta), shift(parameters.theta, 1)):
        point = parameters.at(theta)
        expected = table_covariance(parameters, theta, options)
        for by_features in (True, False):
            prior = point.prior(by_features=by_features)
            assert bool(prior.kernels) or (by_features and kernel == "linear")
            assert close(core_covariance(prior), expected)
            assert prior.coupling.parameters == prior.coupling.factors
        # What the estimator's fit takes is the same model.
        class_kernels = point.class_kernels
        given = _core.Prior(
            kernels=[own.to_core() for own in class_kernels.kernels],
            kernel_of=class_kernels.kernel_of,
            coupling=class_kernels.coupling.to_core() or prior.coupling,
            intercept_variance=point.intercept_variance,
        )
        assert close(core_covariance(given), expected)


@pytest.mark.parametrize(("kernel", "sharing"), COMBINATIONS)
def test_gradient_is_a_finite_difference(kernel, sharing):
    """Of sum(Q * covariance), whose derivatives by the core's parameters are simple."""
    parameters, _ = model(kernel, sharing)
    theta, step = shift(parameters.theta), 1e-6
    n = len(X)
    Q = np.random.default_rng(1).standard_normal((n, n))

    def weighted(at, by_features):
        """The sum, each function with a weight of its own, and its gradient by the core's parameters."""
        prior = parameters.at(at).prior(by_features=by_features)
        R = prior.coupling.to_factors(np.eye(prior.coupling.classes))
        weights = (1.0 + np.arange(R.shape[1])) * (R**2).max(axis=0)  # variances of functions times numbers
        kernels, kernel_of = prior.kernels, prior.kernel_of or [0] * R.shape[1]
        sums = [(Q * own.matrix(X)).sum() for own in kernels] or [(Q * (X @ X.T)).sum()]
        by_function = weights * np.array([sums[k] for k in kernel_of])
        totals = [sum(w for w, k in zip(weights, kernel_of, strict=True) if k == j) for j in range(len(kernels))]
        by_kernel = [total * own.gradient(X, Q) for own, total in zip(kernels, totals, strict=True)]
        by_intercept = 3.0 * prior.intercept_variance
        return by_function.sum() + by_intercept, PriorGradient(by_kernel, by_function, by_intercept)

    for by_features in (True, False)[kernel != "linear" :]:
        gradient = parameters.gradient(parameters.at(theta), weighted(theta, by_features)[1])
        differences = [
            (weighted(theta + step * e, by_features)[0] - weighted(theta - step * e, by_features)[0]) / (2 * step)
            for e in np.eye(len(theta))
        ]
        assert close(gradient, np.array(differences), 1e-6)
        if not parameters.has_kernel_parameters:
            without = replace(weighted(theta, by_features)[1], kernels=[np.array([])])
            assert np.array_equal(parameters.gradient(parameters.at(theta), without), gradient)


@pytest.mark.parametrize(("kernel", "sharing"), COMBINATIONS)
def test_no_parameter_is_redundant(kernel, sharing):
    """Their effects on the covariance are linearly independent."""
    parameters, options = model(kernel, sharing)
    theta, step = shift(parameters.theta), 1e-5

    def at(point):
        return table_covariance(parameters, point, options).ravel()

    effects = np.array([(at(theta + step * e) - at(theta - step * e)) / (2 * step) for e in np.eye(len(theta))])
    effects /= np.linalg.norm(effects, axis=1)[:, None]
    assert np.linalg.svd(effects, compute_uv=False)[-1] > 1e-4


@pytest.mark.parametrize(("kernel", "sharing"), COMBINATIONS)
def test_start_is_what_was_given(kernel, sharing):
    own, options = SHARINGS[sharing]
    given = own(KERNELS[kernel])
    parameters, _ = model(kernel, sharing)
    table = parameters.table(parameters.theta)
    given = getattr(given, "kernel", given)
    if isinstance(given, list):
        given = dict(zip(sorted(SEEN), given, strict=True))
    if table.kernel is not None:
        assert table.kernel == given
    else:
        for name, shown in table.kernels.items():
            assert shown == (given[name] if isinstance(given, dict) else given)
    assert table.intercept_variance == 2.0
    if getattr(options.get("coupling"), "variances", None) is not None:
        assert list(table.variances.values()) == options["coupling"].variances
    assert len(set(parameters.names)) == len(parameters.names) == len(parameters)
    theta, bounds = parameters.theta, parameters.bounds
    assert bounds.shape == (len(theta), 2)
    assert (bounds[:, 0] <= theta).all()
    assert (theta <= bounds[:, 1]).all()
    for array in (theta, bounds, parameters.at(theta).theta):
        assert not array.flags.writeable


@pytest.mark.parametrize(
    ("kernel", "options", "names"),
    [
        (RBF(), {}, ["kernel.length_scale", "kernel.variance", "intercept_variance"]),
        (RBF(fixed="variance"), {}, ["kernel.length_scale", "intercept_variance"]),
        (RBF(), {"intercept_variance": 0.0}, ["kernel.length_scale", "kernel.variance"]),
        (RBF(), {"learn_intercept_variance": False}, ["kernel.length_scale", "kernel.variance"]),
        (RBF(fixed=True), {"learn_intercept_variance": False}, []),
        (RationalQuadratic(), {}, ["kernel.length_scale", "kernel.alpha", "kernel.variance", "intercept_variance"]),
        # Of factors that multiply, the first is learned.
        (RBF() * Linear(), {}, ["kernel.0.length_scale", "kernel.0.variance", "intercept_variance"]),
        (RBF(fixed="variance") * Linear(), {}, ["kernel.0.length_scale", "kernel.1.variance", "intercept_variance"]),
        (
            (RBF(fixed="length_scale") + Cosine()) * (Linear() + Cosine()),
            {},
            ["kernel.0.0.variance", "kernel.0.1.variance", "kernel.1.1.variance", "intercept_variance"],
        ),
        (
            (Linear(fixed=True) + Cosine()) * (Linear() + Cosine()),
            {},
            ["kernel.0.1.variance", "kernel.1.0.variance", "kernel.1.1.variance", "intercept_variance"],
        ),
        (Linear() + Cosine() * Linear(), {}, ["kernel.0.variance", "kernel.1.0.variance", "intercept_variance"]),
        (Polynomial(), {}, ["kernel.offset", "kernel.variance", "intercept_variance"]),
        (Polynomial(offset=0.0), {}, ["kernel.variance", "intercept_variance"]),
        (Polynomial(fixed="variance"), {}, ["kernel.scale", "kernel.offset", "intercept_variance"]),
        (Polynomial(fixed="offset"), {}, ["kernel.scale", "kernel.variance", "intercept_variance"]),
        # Under a tree the groups have variances, and that of the kernel is held.
        (Linear(), TREE, [*(f"variances[level {k}]" for k in (1, 2, 3)), "intercept_variance"]),
        (Linear(fixed=True), TREE, [*(f"variances[level {k}]" for k in (1, 2, 3)), "intercept_variance"]),
        (
            RBF(),
            TREE | {"coupling": Tree("shared")},
            ["kernel.length_scale", "variances[shared]", "intercept_variance"],
        ),
        (
            Cosine(),
            TREE | {"coupling": Tree("subtree", variances=[1, 0, 2])},
            ["variances[a]", "variances[c]", "intercept_variance"],
        ),
        (
            RBF() + Linear(),
            TREE | {"coupling": Tree("shared")},
            ["kernel.0.length_scale", "kernel.1.variance", "variances[shared]", "intercept_variance"],
        ),
        (
            RBF() + Linear(fixed=True),
            TREE | {"coupling": Tree("shared")},
            ["kernel.0.length_scale", "kernel.0.variance", "variances[shared]", "intercept_variance"],
        ),
        (Linear(), INDEPENDENT | {"coupling": Independent("shared")}, ["kernel.variance", "intercept_variance"]),
        (Linear(), INDEPENDENT, [*(f"variances[level {k}]" for k in (1, 2, 3)), "intercept_variance"]),
        # Kernels of their own.
        (
            PerClass({label: RBF(2.0) if label < "b" else Linear() for label in SEEN}),
            {},
            [
                *(f"kernels[{label}].{name}" for label in ("a/x", "a/y") for name in ("length_scale", "variance")),
                *(f"kernels[{label}].variance" for label in SEEN[2:]),
                "intercept_variance",
            ],
        ),
        (
            PerClass({label: RBF(2.0) if label < "b" else Linear() for label in SEEN}, share="equal"),
            {},
            ["kernels[a/x, a/y].length_scale", *(f"kernels[{label}].variance" for label in SEEN), "intercept_variance"],
        ),
        (
            PerClass(RBF(fixed="variance"), share="correlation"),
            {},
            ["kernels.length_scale", "intercept_variance"],
        ),
        (
            PerGroup({"level 1": RBF(), "level 2": RBF(), "level 3": Matern()}, share="equal"),
            TREE | {"coupling": Tree(variances=[1, 1, 0])},
            [
                "kernels[level 1, level 2].length_scale",
                "kernels[level 1].variance",
                "kernels[level 2].variance",
                "intercept_variance",
            ],
        ),
        (
            PerNode(Cosine()),
            TREE,
            [*(f"kernels[{name}].variance" for name in TAXONOMY.names[1:]), "intercept_variance"],
        ),
        # Kernels that are evaluated in Python.
        (rbf_kernel, {}, ["kernel.variance", "intercept_variance"]),
        (Function(process_kernels.RBF(2.0)), {}, ["kernel.variance", "intercept_variance"]),
        (Function(rbf_kernel, fixed=True), {}, ["intercept_variance"]),
        (Function(rbf_kernel) * RBF() + Linear(), {}, ["kernel.variance", "intercept_variance"]),
        (Function(rbf_kernel) + Linear(fixed=True), {}, ["intercept_variance"]),
        (Function(rbf_kernel), TREE | {"coupling": Tree("shared")}, ["variances[shared]", "intercept_variance"]),
        (PerClass(rbf_kernel), {}, [*(f"kernels[{label}].variance" for label in SEEN), "intercept_variance"]),
        (Precomputed(2.0), {}, ["kernel.variance", "intercept_variance"]),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
def test_names(kernel, options, names):
    parameters = make(kernel, **options)
    assert list(parameters.names) == names
    assert parameters.theta.shape == (len(names),)
    assert isinstance(parameters, ParameterVector)
    assert all(name in repr(parameters) for name in names)
    parameters.at(shift(parameters.theta))


def test_values_and_bounds():
    kernel = RBF(2.0, 3.0, bounds={"variance": (0.5, 20.0)})
    parameters = make(kernel, intercept_variance=1e-9)
    assert np.allclose(np.exp(parameters.theta), [2.0, 3.0, 1e-9], rtol=1e-12)
    assert np.allclose(np.exp(parameters.bounds), [[1e-5, 1e5], [0.5, 20.0], [1e-9, 1e5]], rtol=1e-12)
    table = parameters.table(np.log([4.0, 6.0, 0.1]))
    assert math.isclose(table.kernel.length_scale, 4.0)
    assert math.isclose(table.kernel.variance, 6.0)
    assert math.isclose(table.intercept_variance, 0.1)
    # Splitting a kernel into correlation and variance keeps the bounds of both.
    shared = make(PerClass(kernel, share="correlation"))
    assert np.allclose(np.exp(shared.bounds[1:-1]), [0.5, 20.0], rtol=1e-12)
    assert np.allclose(np.exp(shared.theta[1:-1]), 3.0, rtol=1e-12)
    product = make(PerClass(kernel * Linear(2.0, fixed=True), share="correlation"))
    assert np.allclose(np.exp(product.bounds[1:-1]), [1.0, 40.0], rtol=1e-12)
    group = make(Linear(), **TREE, coupling=Tree(variances=[1e7, 1.0, 1e-8]))
    assert np.allclose(np.exp(group.bounds[:3]), [[1e-5, 1e7], [1e-5, 1e5], [1e-8, 1e5]], rtol=1e-12)
    matrix = make(Function(rbf_kernel, 3.0, bounds={"variance": (1.0, 30.0)}))
    assert np.allclose(np.exp(matrix.bounds[0]), [1.0, 30.0], rtol=1e-12)


def test_fixed_variances_stay():
    kernels = {label: (1.0 + k) * RBF(fixed="variance" if k % 2 else ()) for k, label in enumerate(SEEN)}
    parameters = make(PerClass(kernels))
    table = parameters.table(parameters.theta + 0.5)
    for k, label in enumerate(SEEN):
        factor = 1.0 if k % 2 else math.exp(0.5)
        assert math.isclose(table.kernels[label].variance, (1.0 + k) * factor)
        assert math.isclose(table.kernels[label].length_scale, math.exp(0.5))
        assert table.kernels[label].fixed == kernels[label].fixed


def test_bounds_do_not_stop_a_shared_sum():
    """Variances of later parts move with the first, beyond bounds that hold for them alone."""
    kernel = RBF() + Linear(bounds={"variance": (0.5, 2.0)})
    parameters = make(PerClass(kernel, share="correlation"))
    theta = parameters.theta.copy()
    theta[2:-1] += 3.0
    table = parameters.table(theta)
    for shown in table.kernels.values():
        assert math.isclose(shown.parts[1].variance, math.exp(3.0))


def test_python_kernels_have_a_factor():
    kernel = Function(process_kernels.RBF(2.0), variance=3.0) + Linear(0.5)
    parameters = make(kernel)
    point = parameters.at(parameters.theta + np.array([math.log(4.0), 0.0]))
    assert point.matrix_factor == pytest.approx(4.0)
    (shown,) = point.class_kernels.kernels
    assert np.allclose(shown(X), 4.0 * kernel(X))
    assert point.prior().kernels[0].parameters == 1
    # A matrix from the user does not have the variance in it.
    matrix = make(Precomputed(3.0))
    assert matrix.at(matrix.theta).matrix_factor == 3.0
    assert make(RBF()).at([0.0, 0.0, 0.0]).matrix_factor is None
    assert not matrix.has_kernel_parameters
    by_core = PriorGradient([np.array([])], np.ones(len(SEEN)), 7.0)
    assert matrix.gradient(matrix.at(matrix.theta), by_core).tolist() == [5.0, 7.0]


def test_switched_off_functions_have_no_parameters():
    parameters = make(PerGroup(RBF(2.0)), **TREE, coupling=Tree(variances=[1.0, 0.0, 1.0]))
    assert [name for name in parameters.names if "level 2" in name] == []
    table = parameters.table(parameters.theta + 1.0)
    assert table.kernels["level 2"] == RBF(2.0)
    assert table.variances == {"level 1": 1.0, "level 2": 0.0, "level 3": 1.0}


@pytest.mark.parametrize(
    ("theta", "match"),
    [
        (
            [0.0],
            r"theta has shape \(1,\), expected \(3,\) for: kernel.length_scale, kernel.variance, intercept_variance",
        ),
        ([[0.0, 0.0, 0.0]], r"theta has shape \(1, 3\)"),
        ([0.0, np.nan, 0.0], "kernel.variance must lie between -700 and 700, got nan"),
        ([0.0, 0.0, 701.0], "intercept_variance must lie between"),
    ],
)
def test_bad_points(theta, match):
    with pytest.raises(ValueError, match=match):
        make(RBF()).at(theta)


def test_many_names_are_shown_in_part():
    with pytest.raises(ValueError, match=r"kernels\[b/x\].length_scale, \.\.\.$"):
        make(PerClass(RBF())).at([])
    with pytest.raises(ValueError, match="for: no parameter"):
        make(Linear(fixed=True), learn_intercept_variance=False).at([1.0])


# Start values


def dense(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, FEATURES)) * [1.0, 5.0, 0.2] + [0.0, 3.0, -1.0]) * (rng.random((n, FEATURES)) < 0.6)


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array, lambda X: sp.csr_matrix(np.float32(X))])
def test_start_values(form):
    X = dense()
    given = form(X)
    square, variance = (X**2).sum(axis=1).mean(), X.var(axis=0).sum()
    tolerance = {"rel": 1e-5}
    unit = X[X.any(axis=1)] / np.linalg.norm(X[X.any(axis=1)], axis=1, keepdims=True)
    cosines = np.array([unit[i] @ unit[j] for i in range(len(unit)) for j in range(i)])
    usual = np.sqrt((cosines**2).mean())
    assert start_kernel("linear", given).variance == pytest.approx(5.0 / usual / square, **tolerance)
    for name, kind in (("rbf", RBF), ("matern", Matern), ("rational_quadratic", RationalQuadratic)):
        kernel = start_kernel(name, given)
        assert type(kernel) is kind
        assert kernel.length_scale == pytest.approx(variance**0.5, **tolerance)
        assert kernel.variance == 10.0
        assert kernel.bounds == {}
    assert start_kernel("cosine", given).variance == pytest.approx(5.0 / usual, **tolerance)
    polynomial = start_kernel("polynomial", given)
    assert polynomial.scale == pytest.approx(1.0 / square, **tolerance)
    assert polynomial([[square**0.5]])[0, 0] == pytest.approx(10.0, **tolerance)
    # Each has the mean diagonal that is promised.
    for name, expected in (("linear", 5.0 / usual), ("rbf", 10.0), ("cosine", 5.0 / usual)):
        rows = given[np.flatnonzero(X.any(axis=1))] if name == "cosine" else given
        assert start_kernel(name, given).diag(rows).mean() == pytest.approx(expected, **tolerance)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_start_of_rows_with_nothing_in_common(form):
    assert start_kernel("linear", form(np.eye(2000))).variance == pytest.approx(500.0)
    assert start_kernel("cosine", form(np.eye(3)[:1])).variance == 5.0
    assert start_kernel("cosine", form(np.zeros((3, 2)))).variance == 5.0


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e30, 1e-30])
@pytest.mark.parametrize("name", ["linear", "rbf", "matern", "rational_quadratic", "cosine", "polynomial"])
def test_constant_inputs(name, value, form):
    kernel = start_kernel(name, form(np.full((7, FEATURES), value)))
    assert np.isfinite(kernel.theta).all()
    if name == "rbf":
        assert kernel.length_scale == 1.0


@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e-4, 1e4, 1e20, 1e200])
def test_extreme_inputs_leave_room_for_search(scale):
    X = scale * dense()
    for name in ("linear", "rbf", "polynomial"):
        kernel = start_kernel(name, X)
        assert np.isfinite(kernel.theta).all()
        room = np.abs(kernel.theta_bounds - kernel.theta[:, None]).min()
        assert room >= math.log(99.0)


def test_start_kernels_inside():
    X = dense()
    rbf, linear = start_kernel("rbf", X), start_kernel("linear", X)
    assert start_kernels("linear", X) == linear
    assert start_kernels("rbf", X) == rbf
    assert start_kernels(RBF(3.0), X) == RBF(3.0)
    assert start_kernels(["rbf", Linear(), "linear"], X) == [rbf, Linear(), linear]
    assert start_kernels({"a": "rbf", "b": Cosine()}, X) == {"a": rbf, "b": Cosine()}
    own = PerClass({"a": RBF(), "b": Linear()}, share="equal")
    assert start_kernels(own, X) == own
    assert start_kernels(rbf_kernel, X) is rbf_kernel
    assert replace(PerClass(RBF()), kernel=Linear()) == PerClass(Linear())


def test_unknown_name():
    with pytest.raises(ValueError, match="kernel is 'gauss', expected a kernel or one of 'linear', 'rbf'"):
        start_kernel("gauss", dense())
