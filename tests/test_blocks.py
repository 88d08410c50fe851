"""Inputs in blocks. The oracle is the matrix of all columns, each block times the root of its variance."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict

import taxolearn
from taxolearn import (
    Blocks,
    CentroidClassifier,
    CrossValidation,
    Independent,
    KernelLogisticClassifier,
    LearnedCoupling,
    NaiveBayesClassifier,
    Solver,
    Taxonomy,
    Tree,
)
from taxolearn.estimators.explain import block_shares
from taxolearn.kernels import RBF, Cosine, Function, Linear, Matern, PerBlock, PerGroup, Polynomial, Precomputed, Sum
from taxolearn.model_selection import CrossValidationObjective

N, CLASSES = 150, 4
VARIANCES = {"words": 0.7, "numbers": 2.5, "more": 0.3}
TREE = Taxonomy.from_paths([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
LABELS = np.array(["a1", "a2", "b1", "b2"])


def make_blocks(seed=0, n=N):
    rng = np.random.default_rng(seed)
    words = sp.random(n, 40, 0.15, random_state=rng, format="csr", dtype=np.float32)
    return Blocks({"words": words, "numbers": rng.normal(size=(n, 3)), "more": rng.normal(size=(n, 2)).astype("f4")})


def make_labels(X, seed=1):
    rng = np.random.default_rng(seed)
    u = X["numbers"] @ rng.normal(size=(3, CLASSES)) + 2 * X["words"] @ rng.normal(size=(40, CLASSES))
    return LABELS[(u + rng.gumbel(size=u.shape)).argmax(axis=1)]


def glued(X, variances=VARIANCES):
    return np.hstack(
        [np.sqrt(variances[name]) * (A.toarray() if sp.issparse(A) else A).astype(np.float64) for name, A in X.items()]
    )


def linear(variances=VARIANCES):
    return {name: Linear(value) for name, value in variances.items()}


X = make_blocks()
Y = make_labels(X)


# -- Blocks -----------------------------------------------------------------------------------------------------------


def test_blocks_have_a_shape_names_and_rows():
    assert X.shape == (N, 45)
    assert len(X) == N
    assert X.names == ("words", "numbers", "more")
    assert X.n_features == {"words": 40, "numbers": 3, "more": 2}
    assert X["words"] is X.matrices[0]
    rows = [7, 3, 3]
    for chosen in (X[rows], X[np.array(rows)], X[rows, ...], X[rows, :]):
        np.testing.assert_array_equal(chosen["numbers"], X["numbers"][rows])
        np.testing.assert_array_equal(chosen["words"].toarray(), X["words"][rows].toarray())
    assert X[10:20].shape == (10, 45)
    assert X[np.arange(N) < 5].shape == (5, 45)
    weights = np.random.default_rng(0).normal(size=(45, 3))
    ones = dict.fromkeys(X.names, 1.0)
    np.testing.assert_allclose(X @ weights, glued(X, ones) @ weights)
    np.testing.assert_allclose(X @ sp.csr_array(weights), glued(X, ones) @ weights)
    copy = X.copy()
    copy["numbers"][0] = 99
    assert X["numbers"][0, 0] != 99


def test_blocks_from_the_columns_of_one_matrix():
    dense = np.arange(12.0).reshape(2, 6)
    columns = {"a": slice(0, 2), "b": [5, 3], "c": np.arange(6) == 4}
    for matrix in (dense, sp.csr_array(dense)):
        found = Blocks.from_columns(matrix, columns)
        for name, chosen in columns.items():
            own = found[name]
            np.testing.assert_array_equal(own.toarray() if sp.issparse(own) else own, dense[:, chosen])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Blocks([np.ones((2, 2))]), TypeError, "must be a mapping"),
        (lambda: Blocks({}), ValueError, "blocks is empty"),
        (lambda: Blocks({1: np.ones((2, 2))}), TypeError, "has the name 1"),
        (lambda: Blocks({"a": np.ones(2)}), ValueError, "block 'a' has 1 dimensions"),
        (lambda: Blocks({"a": np.ones((2, 2)), "b": np.ones((3, 2))}), ValueError, "'b' has 3 rows and 'a' has 2"),
        (lambda: Blocks({"a": X}), TypeError, "block 'a' has blocks itself"),
        (lambda: X["other"], KeyError, "there is no block 'other'"),
        (lambda: X[3], IndexError, "got 3"),
        (lambda: X[:, 3], IndexError, "Blocks take"),
        (lambda: np.asarray(X), TypeError, "several matrices"),
    ],
)
def test_blocks_that_make_no_sense_are_rejected(make, error, message):
    with pytest.raises(error, match=message):
        make()


# -- Kernels ----------------------------------------------------------------------------------------------------------


def test_a_kernel_of_blocks_is_the_sum_of_those_of_its_blocks():
    parts = {"words": Cosine(2.0), "numbers": RBF(0.7) + Linear(0.1), "more": Matern(1.5)}
    kernel = PerBlock(parts)
    other = make_blocks(3, 8)
    expected = sum(part(other[name], X[name]) for name, part in parts.items())
    np.testing.assert_allclose(kernel(other, X), expected, rtol=1e-12)
    np.testing.assert_allclose(np.diag(kernel(X)), kernel.diag(X), rtol=1e-12)
    Q = np.random.default_rng(0).normal(size=(8, 8))

    def value(theta):
        return (Q * kernel.with_theta(theta)(other)).sum()

    np.testing.assert_allclose(
        kernel.gradient(other, Q), approx_fprime(kernel.theta, value, 1e-6), rtol=1e-4, atol=1e-5
    )


def test_a_kernel_of_blocks_is_a_value_with_parameters_by_block():
    kernel = PerBlock({"words": Linear(2.0), "numbers": RBF(3.0, variance=6.0)})
    assert kernel.parameter_names == ("words.variance", "numbers.length_scale", "numbers.variance")
    assert kernel.with_theta(kernel.theta) == kernel
    assert kernel != PerBlock({"terms": Linear(2.0), "numbers": RBF(3.0, variance=6.0)})
    assert kernel.with_params(words__variance=5.0)["words"] == Linear(5.0)
    variance, unit = kernel.split()
    assert variance == 2.0
    assert unit == PerBlock({"words": Linear(1.0, fixed="variance"), "numbers": RBF(3.0, variance=3.0)})
    assert 2.0 * kernel == PerBlock({"words": Linear(4.0), "numbers": RBF(3.0, variance=12.0)})
    assert eval(repr(kernel), {"PerBlock": PerBlock, "Linear": Linear, "RBF": RBF}) == kernel
    assert hash(kernel) == hash(clone(kernel))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PerBlock({}), ValueError, "the mapping is empty"),
        (lambda: PerBlock(Linear()), TypeError, "must be a mapping"),
        (lambda: PerBlock({"a": "rbf"}), TypeError, r"PerBlock\['a'\] must be a kernel"),
        (lambda: PerBlock({"a": Precomputed()}), ValueError, "that reads features"),
        (lambda: PerBlock({"a": Function(lambda a, b: a @ b.T)}), ValueError, "that reads features"),
        (lambda: PerBlock({"a": Linear()}) + Linear(), ValueError, "no part of another kernel"),
        (lambda: Linear() * PerBlock({"a": Linear()}), ValueError, "no part of another kernel"),
        (lambda: PerBlock(linear())(X["words"]), TypeError, "reads taxolearn.Blocks, got csr"),
        (lambda: PerBlock({"a": Linear()})(X), ValueError, "X has the blocks 'words', 'numbers', 'more', but"),
        (lambda: RBF()(X), TypeError, "reads one matrix, got Blocks"),
    ],
)
def test_kernels_of_blocks_that_make_no_sense_are_rejected(make, error, message):
    with pytest.raises(error, match=message):
        make()


# -- Fits with given variances ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["weights", "coefficients"])
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("taxonomy", [None, TREE])
def test_linear_blocks_are_the_glued_matrix_with_scaled_columns(space, precision, taxonomy):
    tol = 1e-5 if precision == "single" else 1e-12
    options = {"taxonomy": taxonomy, "tuning": None, "tol": tol, "solver": Solver(space=space, precision=precision)}
    model = KernelLogisticClassifier(linear(), **options).fit(X, Y)
    oracle = KernelLogisticClassifier(Linear(), **options).fit(glued(X), Y)
    assert model.result_.status == "converged"
    assert model.result_.objective == pytest.approx(oracle.result_.objective, rel=max(tol, 1e-9))
    atol = 1e-2 if precision == "single" else 1e-6
    fresh = make_blocks(5)
    np.testing.assert_allclose(model.predict_proba(fresh), oracle.predict_proba(glued(fresh)), atol=atol)
    scales = np.repeat(np.sqrt(list(VARIANCES.values())), list(X.n_features.values()))
    np.testing.assert_allclose(model.coef_ / scales, oracle.coef_, atol=10 * atol)
    assert model.n_features_in_ == 45
    assert model.blocks_in_ == X.n_features
    assert model.hyperparameters_.kernel == PerBlock(linear())


@pytest.mark.parametrize("products", ["gram", "tiled"])
def test_products_by_matrices_give_the_same_model(products):
    model = KernelLogisticClassifier(linear(), tuning=None, tol=1e-10).fit(X, Y)
    other = clone(model).set_params(solver=Solver(products=products)).fit(X, Y)
    assert other.result_.algorithm == products
    assert other.result_.objective == pytest.approx(model.result_.objective, rel=1e-9)
    np.testing.assert_allclose(other.predict_proba(X[:20]), model.predict_proba(X[:20]), atol=1e-5)


@pytest.mark.parametrize("solver", [Solver(), Solver(products="tiled"), Solver(rank=N)])
def test_kernels_of_blocks_are_their_summed_matrix(solver):
    kernel = {"words": Linear(0.5), "numbers": RBF(1.5), "more": Polynomial(2)}
    model = KernelLogisticClassifier(kernel, tuning=None, tol=1e-10, solver=solver).fit(X, Y)
    matrix = PerBlock(kernel)(X)
    oracle = KernelLogisticClassifier(Precomputed(), tuning=None, tol=1e-10).fit(matrix, Y)
    assert model.result_.objective == pytest.approx(oracle.result_.objective, rel=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), oracle.predict_proba(matrix), atol=1e-4)
    assert model.expansions_[0].kernel == PerBlock(kernel)
    assert isinstance(model.expansions_[0].basis, Blocks)


@pytest.mark.parametrize("taxonomy", [None, TREE])
def test_a_low_rank_is_of_the_blocks_that_are_not_linear(taxonomy, tmp_path):
    """Words have a kernel matrix of full rank, smooth functions of two numbers one of low rank."""
    kernel = {"more": RBF(4.0), "words": Linear(3.0)}
    inputs, fresh = (Blocks({name: blocks[name] for name in kernel}) for blocks in (X, make_blocks(7, 30)))
    options = {"taxonomy": taxonomy, "tuning": None, "tol": 1e-9}
    exact = KernelLogisticClassifier(kernel, **options).fit(inputs, Y)
    model = KernelLogisticClassifier(kernel, solver=Solver(rank=40), **options).fit(inputs, Y)
    assert model.result_.algorithm == "low_rank"
    assert model.result_.objective == pytest.approx(exact.result_.objective, rel=1e-6)
    np.testing.assert_allclose(model.predict_proba(fresh), exact.predict_proba(fresh), atol=1e-4)
    (expansion,) = model.expansions_
    assert len(expansion.basis) == model.result_.ranks[0] <= 40
    weights = 3.0 * inputs["words"].T @ exact.expansions_[0].coefficients
    np.testing.assert_allclose(expansion.weights, weights, atol=1e-3)
    assert exact.expansions_[0].weights is None
    taxolearn.save(model, tmp_path / "model")
    loaded = taxolearn.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(fresh), model.predict_proba(fresh), atol=1e-6)
    if taxonomy is not None:
        larger = Taxonomy.from_edges([*TREE.to_edges(), ("a", "a3")])
        grown, expected = (each.with_taxonomy(larger).predict_proba(fresh) for each in (model, exact))
        np.testing.assert_allclose(grown, expected, atol=1e-4)


def test_a_low_rank_of_kernels_of_groups_has_weights_of_linear_blocks():
    groups = TREE.groups("level")[1]
    parts = [{"words": Linear(0.5), "more": RBF(4.0)}, {"words": Linear(2.0), "more": RBF(3.0, variance=2.0)}]
    kernel = PerGroup({group: PerBlock(part) for group, part in zip(groups, parts, strict=True)})
    inputs = Blocks({name: X[name] for name in ("words", "more")})
    options = {"taxonomy": TREE, "tuning": None, "tol": 1e-9}
    exact = KernelLogisticClassifier(kernel, **options).fit(inputs, Y)
    model = KernelLogisticClassifier(kernel, solver=Solver(rank=60), **options).fit(inputs, Y)
    np.testing.assert_allclose(model.predict_proba(inputs), exact.predict_proba(inputs), atol=1e-4)
    larger = Taxonomy.from_edges([*TREE.to_edges(), ("a", "a3")])
    grown, expected = (each.with_taxonomy(larger).predict_proba(inputs) for each in (model, exact))
    np.testing.assert_allclose(grown, expected, atol=1e-4)


def test_a_sum_of_kernels_on_one_matrix_is_that_of_equal_blocks():
    matrix = X["numbers"]
    model = KernelLogisticClassifier({"a": RBF(2.0), "b": Linear(0.3)}, tuning=None, tol=1e-10)
    model.fit(Blocks({"a": matrix, "b": matrix}), Y)
    oracle = KernelLogisticClassifier(Sum((RBF(2.0), Linear(0.3))), tuning=None, tol=1e-10).fit(matrix, Y)
    np.testing.assert_allclose(
        model.predict_proba(Blocks({"a": matrix, "b": matrix})), oracle.predict_proba(matrix), atol=1e-6
    )


def test_groups_of_nodes_may_have_variances_of_blocks_of_their_own():
    groups = TREE.groups("level")[1]
    near = {"words": 0.5, "numbers": 1.5, "more": 1.0}
    kernels = dict(zip(groups, (PerBlock(linear()), PerBlock(linear(near))), strict=True))
    model = KernelLogisticClassifier(PerGroup(kernels), taxonomy=TREE, tuning=None, tol=1e-9).fit(X, Y)
    matrices = [glued(X, variances) @ glued(X, variances).T for variances in (VARIANCES, near)]
    # At the optimum u = K (y - p), with the prior covariance K put together by hand, level by level.
    top = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1.0]])
    K = np.kron(matrices[0], top) + np.kron(matrices[1], np.eye(4)) + np.kron(np.ones((N, N)), np.eye(4))
    u = model.decision_function(X)
    probability = model.predict_proba(X)
    alpha = (Y[:, None] == LABELS) - probability
    np.testing.assert_allclose((K @ alpha.ravel()).reshape(N, 4), u, atol=5e-3)


def test_one_kernel_is_that_of_every_block_and_names_start_from_each():
    model = KernelLogisticClassifier("rbf", tuning=None).fit(X, Y)
    kernel = model.hyperparameters_.kernel
    for name, matrix in X.items():
        alone = KernelLogisticClassifier("rbf", tuning=None).fit(matrix, Y)
        assert kernel[name] == alone.hyperparameters_.kernel
    model = KernelLogisticClassifier(tuning=None).fit(X, Y)
    assert {type(part) for part in model.hyperparameters_.kernel.parts} == {Linear}
    mixed = KernelLogisticClassifier({"words": "linear", "numbers": "rbf", "more": RBF(4.0)}, tuning=None).fit(X, Y)
    assert mixed.hyperparameters_.kernel["numbers"] == kernel["numbers"]
    assert mixed.hyperparameters_.kernel["more"] == RBF(4.0)


def test_kernels_by_name_need_not_be_in_the_order_of_the_blocks():
    turned = dict(reversed(linear().items()))
    expected = KernelLogisticClassifier(linear(), tuning=None).fit(X, Y)
    for kernel in (turned, PerBlock(turned)):
        model = KernelLogisticClassifier(kernel, tuning=None).fit(X, Y)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("kernel", ["linear", {"words": "linear", "numbers": "rbf"}])
def test_a_wide_sparse_block_stays_sparse_beside_a_dense_one(kernel):
    """As an array it would take 16 GB."""
    rng = np.random.default_rng(0)
    wide = sp.csr_array((np.ones(2000), rng.integers(0, 10**7, 2000), np.arange(0, 2001, 5)), shape=(400, 10**7))
    inputs = Blocks({"words": wide.astype(np.float32), "numbers": rng.normal(size=(400, 3))})
    labels = (inputs["numbers"][:, 0] > 0).astype(int)
    model = KernelLogisticClassifier(kernel, tuning=CrossValidation(2, search="scale"))
    assert model.fit(inputs, labels).score(inputs, labels) > 0.9


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ({"words": Linear(), "numbers": Linear()}, "no kernel for the blocks 'more'"),
        (linear() | {"other": Linear()}, "unknown blocks 'other'"),
        (PerBlock({"words": Linear()}), "X has the blocks"),
    ],
)
def test_kernels_for_other_blocks_are_rejected(kernel, message):
    for tuning in (None, "cv"):
        with pytest.raises(ValueError, match=message):
            KernelLogisticClassifier(kernel, tuning=tuning).fit(X, Y)


# -- Learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taxonomy", [None, TREE])
@pytest.mark.parametrize("coupling", ["auto", LearnedCoupling(1)])
@pytest.mark.parametrize(
    ("kernel", "solver"),
    [
        (linear(), Solver()),
        ({"words": Linear(0.5), "numbers": RBF(1.5), "more": Linear(2.0)}, Solver()),
        ({"words": Linear(0.5), "numbers": RBF(1.5), "more": Linear(2.0)}, Solver(products="tiled")),
        ({"words": Linear(0.5), "numbers": RBF(1.5), "more": Linear(2.0)}, Solver(rank=20)),
    ],
)
def test_the_gradient_is_that_of_the_criterion(taxonomy, coupling, kernel, solver):
    tuning = CrossValidation(3)
    model = KernelLogisticClassifier(kernel, taxonomy=taxonomy, coupling=coupling, tuning=tuning, solver=solver)
    objective = CrossValidationObjective(model, X[:60], Y[:60])
    names = [name for name in objective.names if name.startswith("kernel.")]
    groups = taxonomy is not None
    assert ("kernel.words.variance" in names) is not groups  # the variances of groups are its scale
    assert {"kernel.numbers.variance", "kernel.more.variance"} <= set(names)
    value, gradient = objective.value_and_gradient(objective.theta, tol=1e-12)
    for name in names:
        k = objective.names.index(name)
        step = np.zeros(len(objective.theta))
        step[k] = 1e-4
        above, below = (objective.value(objective.theta + sign * step, tol=1e-12) for sign in (1, -1))
        assert gradient[k] == pytest.approx((above - below) / 2e-4, rel=1e-3, abs=1e-4 * abs(value))


def test_groups_of_nodes_learn_variances_of_blocks_of_their_own():
    kernel = PerGroup({group: PerBlock(linear()) for group in TREE.groups("level")[1]})
    model = KernelLogisticClassifier(kernel, taxonomy=TREE, tuning=CrossValidation(3))
    objective = CrossValidationObjective(model, X[:60], Y[:60])
    expected = {f"kernels[level {level}].{block}.variance" for level in (1, 2) for block in X.names}
    assert set(objective.names) == expected | {"intercept_variance"}
    value, gradient = objective.value_and_gradient(objective.theta, tol=1e-12)
    for k, step in enumerate(1e-4 * np.eye(len(gradient))):
        above, below = (objective.value(objective.theta + sign * step, tol=1e-12) for sign in (1, -1))
        assert gradient[k] == pytest.approx((above - below) / 2e-4, rel=1e-3, abs=1e-4 * abs(value))


def test_the_criterion_is_that_of_the_glued_matrix():
    tuning = CrossValidation(3, learn_temperature=False)
    model = KernelLogisticClassifier(linear(), taxonomy=TREE, tuning=tuning)
    oracle = CrossValidationObjective(clone(model).set_params(kernel=Linear()), glued(X), Y)
    objective = CrossValidationObjective(model, X, Y)
    assert objective.names == ("kernel.numbers.variance", "kernel.more.variance", *oracle.names)
    value, gradient = objective.value_and_gradient(objective.theta)
    expected, by_groups = oracle.value_and_gradient(oracle.theta)
    assert value == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(gradient[2:], by_groups, rtol=1e-4, atol=1e-4)


def test_an_irrelevant_block_gets_next_to_no_variance_and_costs_next_to_nothing():
    rng = np.random.default_rng(0)
    n, fresh = 1500, 3000
    weights = rng.normal(size=(8, CLASSES))

    def draw(count):
        good, noise = rng.normal(size=(count, 8)), rng.normal(size=(count, 1000))
        labels = (good @ weights + rng.gumbel(size=(count, CLASSES))).argmax(axis=1)
        return Blocks({"good": good, "noise": noise}), labels

    (train, y), (test, truth) = draw(n), draw(fresh)
    model = KernelLogisticClassifier(n_threads=2).fit(train, y)
    alone = KernelLogisticClassifier(n_threads=2).fit(train["good"], y)
    kernel = model.hyperparameters_.kernel
    assert 1000 * kernel["noise"].variance < 0.01 * 8 * kernel["good"].variance
    loss = log_loss(truth, model.predict_proba(test))
    assert loss < 1.01 * log_loss(truth, alone.predict_proba(test["good"]))


def test_the_learned_model_is_the_one_with_these_variances():
    model = KernelLogisticClassifier(taxonomy=TREE, tuning=CrossValidation(3)).fit(X, Y)
    assert model.cv_result_.names[:2] == ("kernel.numbers.variance", "kernel.more.variance")
    variances = {name: part.variance for name, part in zip(X.names, model.hyperparameters_.kernel.parts, strict=True)}
    groups = list(model.hyperparameters_.variances.values())
    oracle = KernelLogisticClassifier(
        Linear(),
        taxonomy=TREE,
        coupling=Tree(variances=groups),
        intercept_variance=model.hyperparameters_.intercept_variance,
        temperature=model.hyperparameters_.temperature,
        tuning=None,
    ).fit(glued(X, variances), Y)
    np.testing.assert_allclose(model.predict_proba(X), oracle.predict_proba(glued(X, variances)), atol=1e-3)
    tuned = KernelLogisticClassifier(taxonomy=TREE, tuning=CrossValidation(3)).tuned(X, Y)
    assert tuned.kernel == model.hyperparameters_.kernel
    np.testing.assert_allclose(tuned.fit(X, Y).predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_learning_starts_from_what_was_learned_before_for_the_same_blocks():
    model = KernelLogisticClassifier(tuning=CrossValidation(3), warm_start=True).fit(X, Y)
    found = model.cv_result_.theta
    model.fit(X, Y)
    np.testing.assert_array_equal(model.cv_result_.evaluations[0].theta, found)
    other = Blocks.from_columns(glued(X), {"first": slice(0, 20), "second": slice(20, 45)})
    model.fit(other, Y)
    np.testing.assert_array_equal(model.cv_result_.evaluations[0].theta, model.cv_result_.start)


def test_a_refit_keeps_the_variances():
    model = KernelLogisticClassifier(tuning=CrossValidation(3)).fit(X[:100], Y[:100])
    kernel = model.hyperparameters_.kernel
    model.refit(X, Y)
    assert model.hyperparameters_.kernel == kernel
    again = KernelLogisticClassifier(
        kernel,
        intercept_variance=model.hyperparameters_.intercept_variance,
        temperature=model.hyperparameters_.temperature,
        tuning=None,
    )
    np.testing.assert_allclose(again.fit(X, Y).predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_checkpoints_belong_to_the_blocks_they_were_written_for(tmp_path):
    tuning = CrossValidation(3, checkpoint=tmp_path / "learning")
    KernelLogisticClassifier(tuning=tuning).fit(X, Y)
    other = Blocks(dict(X.items()) | {"numbers": X["numbers"] + 1.0})
    with pytest.raises(ValueError, match="checkpoint"):
        KernelLogisticClassifier(tuning=tuning).fit(other, Y)


def test_learning_takes_subsets_partial_labels_and_checkpoints(tmp_path):
    labels = Y.astype(object)
    labels[:10] = "a"
    labels[10] = None
    tuning = CrossValidation(3, subset=0.8, checkpoint=tmp_path / "learning", max_evaluations=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelLogisticClassifier(taxonomy=TREE, tuning=tuning).fit(X, labels)
        again = KernelLogisticClassifier(taxonomy=TREE, tuning=tuning).fit(X, labels)
    assert model.em_result_ is not None
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


# -- The estimator around it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [linear(), {"words": Linear(), "numbers": RBF(), "more": RBF()}])
def test_models_are_saved_and_loaded(tmp_path, kernel):
    model = KernelLogisticClassifier(kernel, taxonomy=TREE, tuning=CrossValidation(2)).fit(X, Y)
    taxolearn.save(model, tmp_path / "model")
    loaded = taxolearn.load(tmp_path / "model")
    assert loaded.blocks_in_ == model.blocks_in_
    assert loaded.hyperparameters_ == model.hyperparameters_
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-6)
    with pytest.raises(TypeError, match=r"X must be taxolearn\.Blocks"):
        loaded.predict(glued(X))


def test_blocks_at_prediction_must_be_those_of_the_fit():
    model = KernelLogisticClassifier(linear(), tuning=None).fit(X, Y)
    expected = model.predict_proba(X[:5])
    turned = Blocks({name: X[name] for name in reversed(X.names)})
    np.testing.assert_array_equal(model.predict_proba(turned[:5]), expected)
    with pytest.raises(ValueError, match="X has the blocks 'words', expected 'words', 'numbers', 'more' as in fit"):
        model.predict(Blocks({"words": X["words"]}))
    other = Blocks(dict(X.items()) | {"numbers": np.ones((N, 4))})
    with pytest.raises(ValueError, match=r"X\['numbers'\] has 4 features, expected 3 as in fit"):
        model.predict(other)
    with pytest.raises(TypeError, match=r"X must be taxolearn\.Blocks with the blocks 'words', 'numbers', 'more'"):
        model.predict(glued(X))
    with pytest.raises(ValueError, match=r"Input X\['numbers'\] contains NaN"):
        model.predict(Blocks(dict(X.items()) | {"numbers": np.full((N, 3), np.nan)}))
    plain = KernelLogisticClassifier(tuning=None).fit(glued(X), Y)
    with pytest.raises(TypeError, match="the model was fitted to one matrix"):
        plain.predict(X)
    model.set_params(kernel=Linear()).fit(glued(X), Y)
    assert not hasattr(model, "blocks_in_")
    model.predict(glued(X))


def test_other_classifiers_say_that_they_take_one_matrix():
    for model in (CentroidClassifier(), NaiveBayesClassifier()):
        with pytest.raises(TypeError, match=f"got Blocks: {type(model).__name__} takes one matrix"):
            model.fit(X, Y)


def test_labels_that_do_not_belong_to_the_rows_are_rejected():
    with pytest.raises(ValueError, match="inconsistent"):
        KernelLogisticClassifier(tuning=None).fit(X, Y[:-1])


def test_scikit_learn_selects_rows():
    model = KernelLogisticClassifier(PerBlock(linear()), tuning=None)
    oracle = KernelLogisticClassifier(Linear(), tuning=None)
    found = cross_val_predict(model, X, Y, cv=3, method="predict_proba")
    np.testing.assert_allclose(found, cross_val_predict(oracle, glued(X), Y, cv=3, method="predict_proba"), atol=1e-3)
    search = GridSearchCV(model, {"kernel__words__variance": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert search.best_estimator_.kernel["words"].variance == search.best_params_["kernel__words__variance"]


@pytest.mark.parametrize("space", ["weights", "coefficients"])
@pytest.mark.parametrize("taxonomy", [None, TREE])
def test_warm_starts_carry_over_what_is_known(space, taxonomy):
    options = {"taxonomy": taxonomy, "tuning": None, "tol": 1e-8, "solver": Solver(space=space)}
    iterations = []
    for seed in range(3):  # one problem alone may be lucky
        X = make_blocks(seed)
        Y = make_labels(X, seed + 1)
        model = KernelLogisticClassifier(linear(), warm_start=True, **options).fit(X[:140], Y[:140])
        first = model.n_iter_
        model.set_params(kernel=linear({"words": 0.75, "numbers": 2.4, "more": 0.32})).fit(X, Y)
        cold = clone(model).set_params(warm_start=False).fit(X, Y)
        iterations.append((model.n_iter_, first, cold.n_iter_))
        np.testing.assert_allclose(model.predict_proba(X), cold.predict_proba(X), atol=1e-4)
        model.fit(X, Y)
        assert model.n_iter_ <= 1
    warm, first, cold = np.sum(iterations, axis=0)
    assert warm < min(first, cold)


def test_explanations_are_by_block():
    model = KernelLogisticClassifier(linear(), taxonomy=TREE, tuning=None).fit(X, Y)
    ones = dict.fromkeys(X.names, 1.0)
    oracle = KernelLogisticClassifier(Linear(), taxonomy=TREE, tuning=None).fit(glued(X), Y)
    names = {"numbers": ["height", "width", "depth"]}
    (nodes, *_) = model.explain(X[:3], top=45, feature_names=names)
    (expected, *_) = oracle.explain(glued(X)[:3], top=45)
    flat = [(block, name) for block, count in X.n_features.items() for name in names.get(block, range(count))]
    assert [node.node for node in nodes] == [node.node for node in expected]
    for node, other in zip(nodes, expected, strict=True):
        found = dict(node.contributions)
        assert set(found) == {flat[k] for k, _ in other.contributions}
        for k, part in other.contributions:
            assert found[flat[k]] == pytest.approx(part, abs=1e-3)
        for block in X.names:
            assert node.blocks[block] == pytest.approx(sum(v for (own, _), v in found.items() if own == block))
        assert sum(node.blocks.values()) == pytest.approx(sum(found.values()) + node.rest)
    with pytest.raises(TypeError, match="mapping from names of blocks"):
        model.explain(X[:1], feature_names=[str(k) for k in range(45)])
    with pytest.raises(ValueError, match=r"feature_names\['more'\] has 3 elements, expected 2"):
        model.explain(X[:1], feature_names={"more": ["a", "b", "c"]})
    assert oracle.explain(glued(X, ones)[:1])[0][0].blocks == {}


def test_shares_of_blocks_are_those_of_the_predictors():
    model = KernelLogisticClassifier(linear(), taxonomy=TREE, tuning=None).fit(X, Y)
    shares = block_shares(X, model.coef_)
    parts = {}
    for name in X.names:
        alone = Blocks({own: each if own == name else 0 * each for own, each in X.items()})
        u = model.decision_function(alone)
        parts[name] = np.var(u - u.mean(axis=1, keepdims=True), axis=0).sum()
    assert shares == pytest.approx({name: part / sum(parts.values()) for name, part in parts.items()}, rel=1e-6)
    assert block_shares(X, sp.csr_array(model.coef_)) == pytest.approx(shares)
    assert block_shares(X, 0 * model.coef_) == dict.fromkeys(X.names, 0.0)


def test_pruned_models_and_larger_trees_predict_on_blocks():
    model = KernelLogisticClassifier(linear(), taxonomy=TREE, tuning=None).fit(X, Y)
    pruned = taxolearn.prune(model, 1e-12)
    np.testing.assert_allclose(pruned.predict_proba(X), model.predict_proba(X), atol=1e-6)
    larger = Taxonomy.from_edges([*TREE.to_edges(), ("a", "a3")])
    assert model.with_taxonomy(larger).predict_proba(X[:2]).shape == (2, 5)


def test_weights_of_rows_and_flat_models_over_a_tree_work_on_blocks():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N)
    options = {"taxonomy": TREE, "coupling": Independent(), "tuning": None, "class_weight": "balanced", "tol": 1e-9}
    model = KernelLogisticClassifier(linear(), **options).fit(X, Y, weights)
    oracle = KernelLogisticClassifier(Linear(), **options).fit(glued(X), Y, weights)
    np.testing.assert_allclose(model.predict_node_proba(X), oracle.predict_node_proba(glued(X)), atol=1e-5)
    np.testing.assert_array_equal(model.decide(X, "taxo"), oracle.decide(glued(X), "taxo"))
