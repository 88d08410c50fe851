"""The core's couplings against dense matrices, on trees of any shape."""

import numpy as np
import pytest
from trees import paths, random_taxonomy

from taxolearn import Independent, LearnedCoupling, Taxonomy, Tree, _core
from taxolearn.couplings.coupling import make_coupling

SEEDS = range(60)
TOLERANCE = {np.float32: 3e-6, np.float64: 1e-13}


def tree_coupling(taxonomy, variances, groups=None):
    return _core.TreeCoupling(_core.Taxonomy(taxonomy.parents), variances, groups)


def close(a, b, dtype=np.float64):
    return np.abs(a - b).max() <= TOLERANCE[dtype] * max(np.abs(b).max(), 1.0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_any_tree(seed, dtype):
    taxonomy = random_taxonomy(seed)
    rng = np.random.default_rng(seed)
    v = rng.gamma(1.0, size=taxonomy.n_nodes) * (rng.random(taxonomy.n_nodes) < 0.9)
    phi = paths(taxonomy)[:, 1:]
    G = phi @ np.diag(v[1:]) @ phi.T
    coupling = tree_coupling(taxonomy, v)
    S = rng.standard_normal((35, taxonomy.n_classes)).astype(dtype)
    product = coupling.apply(S)
    assert product.dtype == dtype
    assert close(product, S @ G, dtype)
    assert np.array_equal(product, coupling.apply(S, n_threads=2))
    if dtype is np.float32:
        return
    R = phi * np.sqrt(v[1:])
    A = rng.standard_normal((35, R.shape[1]))
    assert close(coupling.to_factors(S), S @ R)
    assert close(coupling.from_factors(A), A @ R.T)
    assert close(coupling.diag(), np.diag(G))
    # Phi and Phi^T by themselves: all variances one.
    plain = tree_coupling(taxonomy, np.ones(taxonomy.n_nodes))
    assert close(plain.to_factors(S), S @ phi)
    assert close(plain.from_factors(A), A @ phi.T)


@pytest.mark.parametrize("tying", ["shared", "level", "subtree", "node", "array"])
@pytest.mark.parametrize("kind", [Tree, Independent])
@pytest.mark.parametrize("seed", range(8))
def test_gradient_is_a_finite_difference(seed, kind, tying):
    taxonomy = random_taxonomy(seed, n_nodes=30)
    rng = np.random.default_rng(seed)
    if tying == "array":
        tying = rng.permutation(np.arange(taxonomy.n_nodes) % 3)
    groups, names = taxonomy.groups(tying)
    n_groups = len(names) if kind is Tree else len(np.unique(groups[taxonomy.n_inner :]))
    values = rng.gamma(2.0, size=n_groups)
    E, H = rng.standard_normal((2, 5, taxonomy.n_classes))

    def value(log_variances):
        return (E * make_coupling(taxonomy, kind(tying, variances=np.exp(log_variances))).to_core().apply(H)).sum()

    gradient = make_coupling(taxonomy, kind(tying, variances=values)).to_core().bilinear_grad(E, H)
    at, step = np.log(values), 1e-5
    expected = [(value(at + step * e) - value(at - step * e)) / (2 * step) for e in np.eye(n_groups)]
    assert np.allclose(gradient, expected, rtol=1e-6, atol=1e-6)


def test_variances_reach_their_nodes():
    taxonomy = Taxonomy.from_labels(["a/x", "a/y", "b/x", "b/y", "c"])
    phi = paths(taxonomy)
    for tying, variances, of_nodes in [
        ("shared", [3.0], dict.fromkeys(taxonomy.names, 3.0)),
        ("shared", 3.0, dict.fromkeys(taxonomy.names, 3.0)),
        ("level", [2.0, 5.0], {name: 5.0 if "/" in name else 2.0 for name in taxonomy.names}),
        ("level", None, dict.fromkeys(taxonomy.names, 1.0)),
    ]:
        v = np.array([of_nodes[name] for name in taxonomy.names])
        v[0] = 0.0
        coupling = make_coupling(taxonomy, Tree(tying, variances=variances))
        assert close(coupling.to_core().apply(np.eye(5)), phi @ np.diag(v) @ phi.T)
        assert set(coupling.by_name.values()) == set(v[1:])
        flat = make_coupling(taxonomy, Independent(tying, variances=1.0 if variances is None else variances))
        assert close(flat.to_core().apply(np.eye(5)), np.diag(v[taxonomy.n_inner :]))
    subtrees = make_coupling(taxonomy, Tree("subtree", variances=[2.0, 3.0, 4.0]))
    by_name = subtrees.by_name
    assert sorted(by_name) == ["a", "b", "c"]
    G = subtrees.to_core().apply(np.eye(5))
    for k, name in enumerate(taxonomy.classes):
        assert G[k, k] == by_name[name[0]] * (2 if "/" in name else 1)
    for nothing in (make_coupling(taxonomy, "independent"), make_coupling(None, "auto")):
        assert nothing.to_core() is None
        assert nothing.by_name == {}


def test_variances_of_functions_are_multiplied():
    taxonomy = Taxonomy.from_labels(["a/x", "a/y", "b"])
    factors = np.arange(1.0, taxonomy.n_nodes)
    tree = make_coupling(taxonomy, Tree(variances=[2.0, 3.0]))
    phi = paths(taxonomy)
    expected = phi @ np.diag(tree.variances * np.concatenate([[0.0], factors])) @ phi.T
    assert close(tree.times(factors).to_core().apply(np.eye(3)), expected)
    flat = make_coupling(None, "auto").times(np.array([1.0, 2.0, 4.0]))
    assert close(flat.to_core().apply(np.eye(3)), np.diag([1.0, 2.0, 4.0]))


@pytest.mark.parametrize(
    ("taxonomy", "coupling", "message"),
    [
        (None, "tree", "coupling='tree' needs a taxonomy; give one, or coupling='independent'"),
        (None, Tree(), r"coupling=Tree\(\) needs a taxonomy"),
        (None, LearnedCoupling(2, base="tree"), r"LearnedCoupling\(base='tree'\) needs a taxonomy"),
        (None, Independent(variances=[1.0]), "without one, set the kernel's variance"),
        (
            True,
            "dense",
            r"coupling is 'dense', expected one of 'auto', 'tree', .* Independent, LearnedCoupling or Graph",
        ),
        (True, LearnedCoupling(2, base="dense"), r"base is 'dense', expected one of .*Tree, Independent or None"),
        (True, Tree(variances=[1.0]), r"variances has shape \(1,\), expected a number or \(2,\) for: level 1, level 2"),
        (True, Tree(variances=[1.0, -1.0]), "variances must be finite, at least 0"),
        (True, Tree(variances=[1.0, np.nan]), "variances must be finite"),
        (True, Tree(variances=[0.0, 0.0]), "not all 0"),
    ],
)
def test_bad_arguments(taxonomy, coupling, message):
    tree = Taxonomy.from_labels(["a/x", "a/y", "b"]) if taxonomy else None
    with pytest.raises(ValueError, match=message):
        make_coupling(tree, coupling)


def test_core_rejects_what_does_not_fit():
    taxonomy = Taxonomy.from_labels(["a/x", "a/y", "b"])
    coupling = tree_coupling(taxonomy, np.ones(taxonomy.n_nodes))
    with pytest.raises(ValueError, match="S has shape"):
        coupling.apply(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="H has shape"):
        coupling.bilinear_grad(np.zeros((2, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="must be a matrix of float64"):
        coupling.apply(np.zeros((2, 3), dtype=int))
    with pytest.raises(ValueError, match="depth-first order"):
        _core.Taxonomy(np.array([-1, 0, 0, 1, 2, 3]))
