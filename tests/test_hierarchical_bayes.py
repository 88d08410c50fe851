"""Hierarchical Bayes: moments and bounds against dense algebra, posteriors against a sampler, the classifier."""

import numpy as np
import pytest
import scipy.sparse as sp
from bayes_formulas import moments, sample_posterior, variational_bounds
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks
from trees import random_taxonomy

from taxolearn import HierarchicalBayesClassifier, Solver, Taxonomy, _core, load, read_report, save
from taxolearn.fitting.bayes import GammaValues, NodePrecisions, updated_variances
from taxolearn.targets import LabelSets, Targets

TREE = Taxonomy.from_labels(["a/b", "a/c", "d/e/g", "d/e/h", "f"])
LEAVES = ["a/b", "a/c", "d/e/g", "d/e/h", "f"]


def make_rows(n=200, d=4, seed=0, scale=1.5):
    """Rows whose classes follow weights drawn over the tree."""
    rng = np.random.default_rng(seed)
    of_node = {name: scale * rng.normal(size=d) for name in TREE.names[1:]}
    W = np.array([sum(of_node[name] for name in TREE.path(leaf)) for leaf in LEAVES])
    X = rng.normal(size=(n, d))
    p = softmax(X @ W.T, axis=1)
    return X, np.array([LEAVES[rng.choice(5, p=row)] for row in p])


def random_problem(seed, n=30, d=3):
    """Rows, labels, a tree with at least two leaves, and groups of its nodes."""
    rng = np.random.default_rng(seed)
    trees = (random_taxonomy(seed + k, int(rng.integers(3, 12)), int(rng.choice([2, 5, 20]))) for k in range(100))
    tree = next(tree for tree in trees if tree.n_classes > 1)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.7)
    groups = np.concatenate([[-1], rng.integers(0, 3, tree.n_nodes - 1)])
    return rng, tree, X, rng.integers(0, tree.n_classes, n), groups


# -- Moments of the posterior -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["softmax", "logistic"])
@pytest.mark.parametrize("by_feature", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_moments_against_dense_algebra(link, by_feature, seed):
    rng, tree, X, _, groups = random_problem(seed)
    W, b = rng.normal(size=(3, tree.n_classes)), rng.normal(size=tree.n_classes)
    w = rng.uniform(0, 2, size=len(X))
    variances = rng.uniform(0.1, 3.0, size=(3 if by_feature else 1, 3))
    expected = moments(X, w, W, b, link, tree.parents, groups, variances, 3)
    for kind in (X, sp.csr_array(X), sp.csr_array(X.astype(np.float32))):
        for n_threads in (1, 2):
            found = _core.weight_moments(
                X=kind,
                sample_weight=w,
                weights=W,
                intercepts=b,
                link=_core.Link[link],
                taxonomy=_core.Taxonomy(tree.parents),
                groups=groups.tolist(),
                variances=variances,
                intercept_variance=0.5,
                with_variances=True,
                n_threads=n_threads,
            )
            rtol = 1e-5 if kind.dtype == np.float32 else 1e-9
            np.testing.assert_allclose(found.take_squares(), expected[0], rtol=rtol)
            np.testing.assert_allclose(found.take_spreads(), expected[1], rtol=rtol)
            np.testing.assert_allclose(found.take_variances(), expected[2], rtol=rtol)
            p = softmax(X @ W + b, axis=1) if link == "softmax" else expit(X @ W + b)
            precision = 1 / 0.5 + (w[:, None] * p * (1 - p)).sum(axis=0)
            np.testing.assert_allclose(found.intercept_variances, 1 / precision, rtol=rtol)


def test_moments_of_bad_input():
    given_ = {
        "X": np.ones((2, 1)),
        "weights": np.ones((1, 2)),
        "intercepts": np.ones(2),
        "link": _core.Link.softmax,
        "taxonomy": _core.Taxonomy(np.array([-1, 0, 0])),
        "groups": [-1, 0, 0],
        "variances": np.ones((1, 1)),
        "intercept_variance": 1.0,
    }
    _core.weight_moments(**given_)
    for name, value, message in (
        ("weights", np.ones((2, 2)), "weights has shape"),
        ("groups", [-1, 0], "groups has 2 elements"),
        ("groups", [-1, 0, 1], "groups has 1, expected numbers from 0 to below 1"),
        ("variances", np.zeros((1, 1)), "expected positive"),
        ("variances", np.ones((3, 1)), "variances has 3 rows"),
        ("intercepts", None, "intercepts is None"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.weight_moments(**given_ | {name: value})


def test_no_rows_leave_the_prior():
    """Where rows say nothing, increments vary by just their prior variance, so that updates leave it."""
    found = _core.weight_moments(
        X=sp.csr_array((4, 6)),
        weights=np.zeros((6, 5)),
        intercepts=np.zeros(5),
        link=_core.Link.softmax,
        taxonomy=_core.Taxonomy(TREE.parents),
        groups=[-1, *range(TREE.n_nodes - 1)],
        variances=np.arange(1.0, TREE.n_nodes)[None],
        intercept_variance=1.0,
    )
    np.testing.assert_allclose(found.take_spreads(), 6 * np.arange(1.0, TREE.n_nodes)[None])


def test_updates_end_where_the_posterior_of_precisions_has_its_mean():
    prior = GammaValues(("g",), np.array([2.0]), np.array([[3.0]]))
    h, d = np.array([0.1, 5.0, 40.0]), np.array([0.3, -1.0, 2.0])
    v = np.array([[1.0]])
    for _ in range(200):
        spread = np.sum(1 / (1 / v + h))
        v = updated_variances(prior, np.array([3.0]), v, np.array([[np.sum(d**2)]]), np.array([[spread]]))
    rate = 3.0 + 0.5 * (np.sum(d**2) + np.sum(1 / (1 / v + h)))
    assert v.item() == pytest.approx(rate / (2.0 + 1.5), rel=1e-10)


def test_information_is_the_diagonal_of_the_hessian():
    rng = np.random.default_rng(0)
    X, W, b = rng.normal(size=(20, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)

    def loss(W):
        u = X @ W + b
        return np.sum(np.log(np.exp(u).sum(axis=1)))

    found = _core.observed_information(X=X, weights=W, intercepts=b, link=_core.Link.softmax)
    for j in range(3):
        for c in range(4):
            E = np.zeros_like(W)
            E[j, c] = 1e-4
            second = (loss(W + E) - 2 * loss(W) + loss(W - E)) / 1e-8
            assert found[j, c] == pytest.approx(second, rel=1e-4)


# -- Variational inference --------------------------------------------------------------------------------------------


def variational(X, w, Y, link, parents, groups, shape, rate, variances, rounds, n_threads=1, tol=1e-12):
    sets = LabelSets.of(sp.csr_array(Y))
    return _core.fit_variational(
        X=X,
        sample_weight=w,
        label_offsets=sets.offsets,
        labels=sets.labels,
        link=_core.Link[link],
        taxonomy=_core.Taxonomy(parents),
        groups=groups.tolist(),
        shapes=shape.tolist(),
        rates=rate,
        variances=variances,
        intercept_variance=0.8,
        max_rounds=rounds,
        tol=tol,
        n_threads=n_threads,
    )


def variational_problem(seed, link, by_feature):
    rng, tree, X, y, groups = random_problem(seed)
    Y = (np.eye(tree.n_classes)[y] if link == "softmax" else rng.uniform(size=(len(y), tree.n_classes)) < 0.3) * 1.0
    shape, rate = rng.uniform(0.5, 3, size=3), rng.uniform(0.2, 2, size=(3 if by_feature else 1, 3))
    w = rng.uniform(0, 2, size=len(y))
    return X, w, Y, link, np.asarray(tree.parents), groups, shape, rate, rate / shape


@pytest.mark.parametrize("link", ["softmax", "logistic"])
@pytest.mark.parametrize("by_feature", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_variational_rounds_against_dense_algebra(link, by_feature, seed):
    problem = variational_problem(seed, link, by_feature)
    bounds, mean, S, nu = variational_bounds(*problem, 0.8, 6)
    found = variational(*problem, 6)
    np.testing.assert_allclose(found.bounds, bounds, rtol=1e-9)
    np.testing.assert_allclose(found.take_rates(), nu, rtol=1e-8)
    N, C = len(problem[4]), problem[2].shape[1]
    leaves = np.arange(3)[:, None] * (N - 1) + np.arange(N - 1 - C, N - 1)
    np.testing.assert_allclose(found.take_weights(), mean[leaves], atol=1e-9)
    np.testing.assert_allclose(found.take_variances(), np.diag(S)[leaves], rtol=1e-8)
    np.testing.assert_allclose(found.intercepts, mean[3 * (N - 1) :], atol=1e-9)
    np.testing.assert_allclose(found.intercept_variances, np.diag(S)[3 * (N - 1) :], rtol=1e-8)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), link=st.sampled_from(["softmax", "logistic"]), by_feature=st.booleans())
def test_the_bound_never_falls(seed, link, by_feature):
    problem = variational_problem(seed, link, by_feature)
    bounds = variational(*problem, 60).bounds
    assert (np.diff(bounds) >= -1e-10 * np.abs(bounds[1:])).all()


def test_threads_do_not_change_the_bound():
    problem = variational_problem(3, "softmax", False)
    np.testing.assert_array_equal(variational(*problem, 5).bounds, variational(*problem, 5, n_threads=2).bounds)


@pytest.mark.parametrize("inference", ["map", "variational"])
@pytest.mark.parametrize("likelihood", ["softmax", "independent"])
def test_posterior_moments_agree_with_a_sampler(inference, likelihood):
    """Means within a part of a standard deviation, which the approximations cost, and the error of the sampler.

    Bouchard's bound of the softmax is less curved than the softmax, by a half where two classes are as likely, so that
    differences of classes become up to twice as large.
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 2))
    W = np.array([[1.2, 0.4], [0.8, 0.9], [-1.0, 0.3]])
    names, u = np.array(["a/b", "a/c", "d"]), X @ W.T
    y = names[(u + rng.gumbel(size=u.shape)).argmax(axis=1)]
    tree = Taxonomy.from_labels(names)
    model = HierarchicalBayesClassifier(
        tree, variant="M1", inference=inference, likelihood=likelihood, round_tol=1e-4, tol=1e-8, max_rounds=4000
    ).fit(X, y)
    with_root = likelihood == "independent"
    parents = np.array([-1, 0, *(np.asarray(tree.parents)[1:] + 1)]) if with_root else np.asarray(tree.parents)
    prior = model.posterior_.prior
    _, groups = np.unique(parents[1:], return_inverse=True)
    Y = (y[:, None] == tree.classes) * 1.0
    w, a = sample_posterior(
        X,
        Y,
        "softmax" if not with_root else "logistic",
        parents,
        np.array([-1, *groups]),
        prior.shape,
        prior.rate,
        1.0,
        4000,
        seed=1,
    )
    # The order of the classes here is that of the tree.
    place = [model.classes_.tolist().index(name) for name in tree.classes]
    spread = np.sqrt(model.posterior_.coef_variances[place]) / w[1]
    assert ((spread > (0.45 if inference == "variational" else 0.5)) & (spread < 1.5)).all()
    if (inference, likelihood) == ("variational", "softmax"):
        ours, theirs = (each - each.mean(axis=0) for each in (model.coef_[place], w[0]))
        assert 1 < (ours * theirs).sum() / (theirs**2).sum() < 2
        assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.99
        return
    off = np.abs(model.coef_[place] - w[0]) / (0.35 * w[1] + 4 * w[2])
    assert off.max() < 1
    precisions = model.posterior_.precisions
    off = np.abs(precisions.mean[0] - a[0]) / (0.6 * a[1] + 4 * a[2])
    assert off.max() < 1


# -- Which nodes share a precision ------------------------------------------------------------------------------------


def test_groups_and_priors():
    X, y = make_rows()
    model = HierarchicalBayesClassifier(TREE, max_rounds=0).fit(X, y)
    assert model.posterior_.precisions.names == tuple(TREE.names[1:])
    prior = dict(zip(model.posterior_.prior.names, model.posterior_.prior.shape, strict=True))
    assert prior == {"a": 2, "d": 2, "d/e": 2, "a/b": 1, "a/c": 1, "d/e/g": 1, "d/e/h": 1, "f": 1}
    p = (np.sum(y == "f") + 0.5) / (len(y) + 1)
    rate = dict(zip(model.posterior_.prior.names, model.posterior_.prior.rate[0], strict=True))
    assert rate["f"] == pytest.approx(np.mean(1 / (X**2).sum(axis=0)) / (p * (1 - p)))
    assert rate["d"] == pytest.approx(rate["d/e/g"] + rate["d/e/h"])
    with pytest.warns(ConvergenceWarning, match="The bound was still rising in round 1"):
        of_parents = HierarchicalBayesClassifier(TREE, variant="M2", inference="variational", max_rounds=1).fit(X, y)
    of_parents = of_parents.posterior_.prior
    shapes = dict(zip(of_parents.names, of_parents.shape, strict=True))
    assert shapes == {TREE.names[0]: 5, "a": 2, "d": 2, "d/e": 2}
    assert of_parents.rate.shape == (4, 4)


@pytest.mark.parametrize("prior", ["proportions", "fitted"])
def test_with_one_child_each_parents_and_nodes_are_the_same(prior):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    has = X @ [1.0, -2.0, 0.5] + rng.logistic(size=60) > 0
    chain = Taxonomy.from_parents([-1, 0, 1, 2])
    sets = LabelSets.of(sp.csr_array(has[:, None].astype(np.int8)))
    targets = Targets(chain.classes, chain, np.zeros(1, dtype=np.intp), sets.rarest(), sets=sets)
    found = {}
    for variant in ("M1", "M3"):
        model = HierarchicalBayesClassifier(variant=variant, likelihood="independent", prior=prior, tol=1e-9)
        problem, nodes = model._problem(X, targets, None)
        fit = model._inferred(problem, nodes, model._prior(problem, nodes), model._start(problem, nodes))
        found[variant] = fit
    assert len(found["M1"].posterior.precisions.names) == 4
    for values in ("shape", "rate"):
        one, other = (getattr(found[variant].posterior.precisions, values) for variant in ("M1", "M3"))
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(found["M1"].functions.coef, found["M3"].functions.coef, rtol=1e-12)


def test_sums_over_groups():
    targets = Targets(np.sort(TREE.classes), TREE, np.argsort(TREE.classes), np.zeros(1, dtype=np.int32))
    nodes = NodePrecisions.of(targets, "M1", with_root=True)
    assert nodes.names[0] == "above the root"
    assert nodes.sizes.tolist() == [1, 3, 2, 1, 2]
    assert nodes.sums_over_groups(np.ones(5)).tolist() == [5, 5, 2, 2, 2]


# -- The classifier ---------------------------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        HierarchicalBayesClassifier(),
        HierarchicalBayesClassifier(variant="M1", likelihood="independent", average="probit"),
        HierarchicalBayesClassifier(variant="M2", inference="variational", tol=1e-4),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("variant", ["M1", "M3"])
@pytest.mark.parametrize("likelihood", ["softmax", "independent"])
def test_variances_and_posterior_agree(variant, likelihood):
    """At the end the prior variances are where the posterior of the precisions has its mean."""
    X, y = make_rows(400)
    model = HierarchicalBayesClassifier(TREE, variant=variant, likelihood=likelihood, round_tol=1e-4).fit(X, y)
    assert model.bayes_result_.status == "converged"
    assert model.result_.relative_gap <= 1e-6
    scale = model.posterior_.precisions.scale
    np.testing.assert_allclose(model.variances_, scale[0], rtol=2e-3)
    assert model.score(X, y) > 0.6
    sparse = clone(model).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.variances_, model.variances_, rtol=1e-2)


def test_it_finds_which_nodes_differ_from_their_parents():
    rng = np.random.default_rng(2)
    centre, far = rng.normal(size=20), 3 * rng.normal(size=20)
    W = np.array([centre, centre + 0.05 * rng.normal(size=20), far, -far, np.zeros(20)])
    X = rng.normal(size=(1500, 20))
    y = np.array(LEAVES)[(X @ W.T + rng.gumbel(size=(1500, 5))).argmax(axis=1)]
    model = HierarchicalBayesClassifier(TREE, variant="M1").fit(X, y)
    v = dict(zip(model.posterior_.precisions.names, model.variances_, strict=True))
    assert v["a"] < 0.1 * v["d/e"]


def test_sample_weights_are_repetitions():
    X, y = make_rows(80)
    w = np.random.default_rng(0).integers(0, 3, len(y))
    one = HierarchicalBayesClassifier(TREE, round_tol=1e-3, tol=1e-9).fit(X, y, sample_weight=w)
    two = HierarchicalBayesClassifier(TREE, round_tol=1e-3, tol=1e-9).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(one.variances_, two.variances_, rtol=1e-3)


@pytest.mark.parametrize("inference", ["map", "variational"])
def test_several_labels(inference):
    X, y = make_rows(150)
    sets = [[label] if k % 3 else [label, "f"] for k, label in enumerate(y)]
    model = HierarchicalBayesClassifier(TREE, likelihood="independent", inference=inference, tol=1e-5).fit(X, sets)
    assert model.is_multilabel_
    p = model.predict_proba(X)
    place = {name: k for k, name in enumerate(model.classes_.tolist())}
    assert (p[:, place["d"]] >= p[:, place["d/e/g"]]).all()
    assert len(model.predict(X)) == len(X)
    assert model.top_classes(X[:2], 2)[1].shape == (2, 2)
    assert len(model.decide(X[:3], "f1")) == 3
    with pytest.raises(ValueError, match='likelihood="independent"'):
        HierarchicalBayesClassifier(TREE).fit(X, sets)


@pytest.mark.parametrize("likelihood", ["softmax", "independent"])
def test_averages_are_less_sure_far_from_the_rows(likelihood):
    X, y = make_rows(60)
    model = HierarchicalBayesClassifier(TREE, likelihood=likelihood).fit(X, y)
    far = 5 * X[:10]
    plain = model.predict_proba(far)
    probit = clone(model).set_params(average="probit").fit(X, y).predict_proba(far)
    assert probit.max(axis=1).mean() < plain.max(axis=1).mean()
    drawn = model.set_params(average=1000)
    samples = drawn.predict_proba(far)
    np.testing.assert_array_equal(samples, drawn.predict_proba(far))  # seeded
    np.testing.assert_allclose(samples.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(drawn.predict_log_proba(far)), samples)
    assert np.abs(samples - probit).mean() < 0.05
    variances = model.posterior_.predictor_variances(X[:1])
    expected = (X[0] ** 2) @ model.posterior_.coef_variances.T + model.posterior_.intercept_variances
    np.testing.assert_allclose(variances[0], expected)


@pytest.mark.parametrize("sets", [False, True])
@pytest.mark.parametrize("inference", ["map", "variational"])
def test_files(tmp_path, inference, sets):
    X, y = make_rows(80)
    labels = [[label] for label in y] if sets else y
    model = HierarchicalBayesClassifier(
        TREE, likelihood="independent" if sets else "softmax", inference=inference, average="probit", tol=1e-4
    ).fit(X, labels)
    save(model, tmp_path / "m.taxo", dtype="float64")
    again = load(tmp_path / "m.taxo")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.posterior_.precisions.rate, model.posterior_.precisions.rate)
    np.testing.assert_array_equal(again.variances_, model.variances_)
    assert again.bayes_result_ == model.bayes_result_
    assert again.posterior_.precisions.names == model.posterior_.precisions.names
    assert read_report(tmp_path / "m.taxo")["inference"]["status"] == "converged"
    assert again.refit(X, labels).variances_ == pytest.approx(model.variances_)


def test_checkpoint(tmp_path):
    X, y = make_rows()
    path = tmp_path / "rounds"
    whole = HierarchicalBayesClassifier(TREE, round_tol=1e-3).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="in round 2. Raise max_rounds"):
        HierarchicalBayesClassifier(TREE, round_tol=1e-3, checkpoint=path, max_rounds=2).fit(X, y)
    rest = HierarchicalBayesClassifier(TREE, round_tol=1e-3, checkpoint=path).fit(X, y)
    assert rest.bayes_result_.changes == whole.bayes_result_.changes
    np.testing.assert_array_equal(rest.coef_, whole.coef_)
    with pytest.raises(ValueError, match="another problem"):
        HierarchicalBayesClassifier(TREE, round_tol=1e-3, checkpoint=path).fit(2 * X, y)


def test_warm_start_and_refit():
    X, y = make_rows()
    model = HierarchicalBayesClassifier(TREE, warm_start=True).fit(X, y)
    first = model.bayes_result_.rounds
    assert model.fit(X, y).bayes_result_.rounds < first
    known = model.variances_
    model.refit(X[:150], y[:150])
    np.testing.assert_array_equal(model.variances_, known)
    assert model.max_rounds is None


def test_flat_models_without_a_tree():
    X, y = make_rows()
    shared = HierarchicalBayesClassifier(variant="M1").fit(X, y)
    assert shared.posterior_.precisions.names == ("all classes",)
    own = HierarchicalBayesClassifier().fit(X, y)
    assert own.posterior_.precisions.names == tuple(sorted(LEAVES))
    assert list(own.hyperparameters_.variances) == sorted(LEAVES)


def test_explanations():
    X, y = make_rows()
    (nodes,) = HierarchicalBayesClassifier(TREE).fit(X, y).explain(X[:1], "d/e/g")
    assert [each.node for each in nodes] == ["d", "d/e", "d/e/g"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": "M4"}, "variant is 'M4', expected one of 'M1', 'M2', 'M3'"),
        ({"inference": "mcmc"}, "inference is 'mcmc'"),
        ({"likelihood": "hinge"}, "likelihood is 'hinge'"),
        ({"prior": "flat"}, "prior is 'flat'"),
        ({"average": "mean"}, "average is 'mean', expected 'probit'"),
        ({"average": 0}, "average must be finite and at least 1"),
        ({"intercept_variance": -1.0}, "intercept_variance"),
        ({"round_tol": 0.0}, "round_tol"),
        ({"max_rounds": -1}, "max_rounds"),
        ({"inference": "variational", "max_rounds": 0}, "max_rounds"),
        ({"inference": "variational", "checkpoint": "c"}, 'checkpoint is for inference="map"'),
        ({"variances": [1.0, 2.0]}, r"variances has shape \(2,\), expected \(1, 8\)"),
        ({"variances": np.zeros(8)}, "variances must be positive"),
        ({"variances": "large"}, "variances is 'large'"),
        ({"variant": "M2"}, 'variances of features, which need inference="variational"'),
        ({"solver": Solver(products="low_rank")}, "products of kernel matrices"),
        ({"inference": "variational", "solver": Solver(memory_limit=1.0)}, "more than memory_limit"),
    ],
)
def test_bad_arguments(arguments, message):
    X, y = make_rows(30)
    with pytest.raises((ValueError, TypeError), match=message):
        HierarchicalBayesClassifier(TREE, **arguments).fit(X, y)


def test_bad_labels():
    X, y = make_rows(30)
    with pytest.raises(ValueError, match="rows without just one class"):
        HierarchicalBayesClassifier(TREE).fit(X, [None, *y[1:]])
    with pytest.raises(TypeError, match="taxonomy must be"):
        HierarchicalBayesClassifier("tree").fit(X, y)
