"""The multinomial logistic loss against scipy.special and finite differences."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import logsumexp, softmax

testing = pytest.importorskip(
    "taxolearn_testing", reason="there is no taxolearn_testing; cmake -DTAXOLEARN_BUILD_TEST_MODULE=ON builds it"
)


N, C = 17, 5


def predictors(seed=0, scale=2.0):
    return scale * np.random.default_rng(seed).standard_normal((N, C))


def labels(seed=1):
    return np.random.default_rng(seed).integers(0, C, N).astype(np.int32)


def soft_targets(seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(C), N)


def row_weights(seed=2):
    weights = np.random.default_rng(seed).random(N) * 3
    weights[3] = 0
    return weights


@pytest.fixture(params=["labels", "soft"])
def targets(request):
    return labels() if request.param == "labels" else soft_targets()


@pytest.fixture(params=[None, "weighted"])
def weights(request):
    return None if request.param is None else row_weights()


def dense(targets):
    return np.eye(C)[targets] if targets.ndim == 1 else targets


def ones_if_none(weights):
    return np.ones(N) if weights is None else weights


def loss(u, targets, weights):
    return ones_if_none(weights) @ (logsumexp(u, axis=1) - (dense(targets) * u).sum(axis=1))


def hessian_blocks(u, weights):
    pi = softmax(u, axis=1)
    blocks = np.einsum("ic,cd->icd", pi, np.eye(C)) - np.einsum("ic,id->icd", pi, pi)
    return ones_if_none(weights)[:, None, None] * blocks


def test_residual_is_loss_and_gradient(targets, weights):
    u = predictors()
    value, residual = testing.Softmax(targets, C, weights).residual(u)
    np.testing.assert_allclose(value, loss(u, targets, weights), rtol=1e-13)
    expected = ones_if_none(weights)[:, None] * (softmax(u, axis=1) - dense(targets))
    np.testing.assert_allclose(residual, expected, rtol=1e-12, atol=1e-15)


def test_residual_is_the_derivative_of_the_loss(targets, weights):
    core = testing.Softmax(targets, C, weights)
    error = check_grad(
        lambda flat: core.residual(flat.reshape(N, C))[0],
        lambda flat: core.residual(flat.reshape(N, C))[1].ravel(),
        predictors().ravel(),
    )
    assert error < 1e-4


def test_line_has_the_derivatives_along_a_direction(targets, weights):
    u, du = predictors(), predictors(seed=7, scale=0.5)
    core = testing.Softmax(targets, C, weights)
    value, slope, curvature = core.line(u, du)
    np.testing.assert_allclose(value, loss(u, targets, weights), rtol=1e-13)
    h = 1e-4
    before, after = loss(u - h * du, targets, weights), loss(u + h * du, targets, weights)
    np.testing.assert_allclose(slope, (after - before) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(curvature, (after - 2 * value + before) / h**2, rtol=1e-4)
    np.testing.assert_allclose(curvature, np.einsum("ic,icd,id", du, hessian_blocks(u, weights), du), rtol=1e-12)


def test_roots_multiply_to_the_hessian(weights):
    u, x = predictors(), predictors(seed=8)
    core = testing.Softmax(labels(), C, weights)
    state = core.curvature(u)
    np.testing.assert_allclose(state, softmax(u, axis=1), rtol=1e-13)
    product = core.root(state, core.root_transposed(state, x))
    np.testing.assert_allclose(product, np.einsum("icd,id->ic", hessian_blocks(u, weights), x), atol=1e-13)


def test_transposed_root_is_the_transpose(weights):
    x, y = predictors(seed=8), predictors(seed=9)
    core = testing.Softmax(labels(), C, weights)
    state = core.curvature(predictors())
    np.testing.assert_allclose((core.root(state, x) * y).sum(), (x * core.root_transposed(state, y)).sum(), rtol=1e-12)


def test_root_diagonal_is_that_of_the_transposed_product(weights):
    core = testing.Softmax(labels(), C, weights)
    state = core.curvature(predictors())
    columns = []
    for c in range(C):
        unit = np.zeros((N, C))
        unit[:, c] = 1
        columns.append(core.root_transposed(state, core.root(state, unit))[:, c])
    np.testing.assert_allclose(core.root_diagonal(state), np.stack(columns, axis=1), atol=1e-14)


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_large_predictors_neither_overflow_nor_lose_the_loss(targets, scale):
    u = predictors(scale=scale)
    core = testing.Softmax(targets, C)
    value, residual = core.residual(u)
    np.testing.assert_allclose(value, loss(u, targets, None), rtol=1e-12)
    np.testing.assert_allclose(residual, softmax(u, axis=1) - dense(targets), atol=1e-14)
    assert all(np.isfinite(core.line(u, u)))
    state = core.curvature(u)
    for out in (core.root(state, u), core.root_transposed(state, u), core.root_diagonal(state)):
        assert np.isfinite(out).all()


def test_adding_a_constant_to_a_row_changes_nothing(targets):
    u, core = predictors(), testing.Softmax(targets, C)
    shifted_value, shifted = core.residual(u + np.arange(N)[:, None])
    value, residual = core.residual(u)
    np.testing.assert_allclose(shifted_value, value, rtol=1e-12)
    np.testing.assert_allclose(shifted, residual, atol=1e-13)


def test_integer_weights_are_repetitions():
    u, y = predictors(), labels()
    repeats = np.arange(N) % 3
    weighted, _ = testing.Softmax(y, C, repeats.astype(float)).residual(u)
    repeated, _ = testing.Softmax(np.repeat(y, repeats), C).residual(np.repeat(u, repeats, axis=0))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-13)


def test_inputs_stay_as_they_were(targets):
    u, du = predictors(), predictors(seed=7)
    u.flags.writeable = du.flags.writeable = False
    core = testing.Softmax(targets, C)
    core.residual(u)
    core.line(u, du)
    np.testing.assert_array_equal(u, predictors())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.array([0, 5], dtype=np.int32), 5), "label 5 of row 1 is out of range"),
        ((np.array([0, -1], dtype=np.int32), 5), "label -1 of row 1 is out of range"),
        ((np.array([0, 1]), 5), "targets must be a contiguous array"),
        ((labels(), C, np.ones(N - 1)), f"sample_weight has {N - 1} elements, expected {N}"),
        ((labels(), C, np.r_[np.ones(N - 1), -1]), r"sample_weight\[16\] is -1"),
        ((labels(), C, np.r_[np.nan, np.ones(N - 1)]), r"sample_weight\[0\] is nan"),
        ((soft_targets() * 2, C), "targets of row 0 are not a distribution"),
        ((soft_targets(), C + 1), f"targets has {C} columns, expected {C + 1}"),
    ],
)
def test_bad_targets_and_weights_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        testing.Softmax(*arguments)


def test_predictors_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=rf"expected an array of shape \({N}, {C}\)"):
        testing.Softmax(labels(), C).residual(np.zeros((N, C + 1)))
