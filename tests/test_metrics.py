"""Metrics against loops over sets and paths, scikit-learn, cases done by hand, and the laws they obey."""

import doctest
import functools
import importlib
import itertools
import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn.metrics
from sklearn.calibration import calibration_curve
from sklearn.preprocessing import MultiLabelBinarizer

from taxolearn import metrics
from taxolearn.taxonomy import Taxonomy

SEEDS = range(4)
PAIR_METRICS = {
    "accuracy": metrics.accuracy,
    "zero_one_loss": metrics.zero_one_loss,
    "micro": lambda *args, taxonomy=None, **options: metrics.f1(*args, average="micro", **options),
    "macro": lambda *args, taxonomy=None, **options: metrics.f1(*args, average="macro", **options),
    "taxo_loss": metrics.taxo_loss,
    "parent_accuracy": metrics.parent_accuracy,
    "hierarchical": metrics.hierarchical_precision_recall_f,
    "level": lambda *args, **options: np.concatenate(metrics.level_precision_recall_f(*args, **options)[1:4]),
    "symmetric_difference": metrics.symmetric_difference_loss,
    "h_loss": lambda *args, **options: metrics.h_loss(*args, weights="sibling", **options),
    "error_reject_area": lambda true, predicted, *, taxonomy, sample_weight=None: (
        metrics.error_reject_curve(
            true, predicted, [len(str(name)) for name in predicted], taxonomy=taxonomy, sample_weight=sample_weight
        ).area
    ),
}
SET_METRICS = ["accuracy", "zero_one_loss", "micro", "macro", "hierarchical", "level", "symmetric_difference", "h_loss"]
PROBA_METRICS = {
    "log_loss": metrics.log_loss,
    "reciprocal_rank": metrics.reciprocal_rank,
    "precision_at_k": lambda *args, **options: metrics.precision_at_k(*args, k=3, **options),
    "ece": metrics.expected_calibration_error,
    "ece_quantile": lambda *args, **options: metrics.expected_calibration_error(*args, strategy="quantile", **options),
}


# The slow, obvious side: dictionaries and sets of names.


@functools.cache
def random_tree(seed, n_nodes=23):
    generator = np.random.default_rng(seed)
    parents = [-1] + [int(generator.integers(max(0, node - 7), node)) for node in range(1, n_nodes)]
    return Taxonomy.from_parents(parents, [f"{'x' * (node % 5)}{node}" for node in range(n_nodes)])


@functools.cache
def ancestors(taxonomy, name):
    """The node and all above it, but the root."""
    found = []
    while taxonomy.parent(name) is not None:
        found.append(name)
        name = taxonomy.parent(name)
    return tuple(found)


@functools.cache
def neighbours(taxonomy, name):
    return set(taxonomy.children(name)) | {taxonomy.parent(name)} - {None}


def path_length(taxonomy, a, b):
    """By breadth-first search over the edges."""
    reached, edge, length = {a}, {a}, 0
    while b not in reached:
        edge = set().union(*(neighbours(taxonomy, name) for name in edge)) - reached
        reached |= edge
        length += 1
    return length


def closed(taxonomy, names):
    return {above for name in names for above in ancestors(taxonomy, name)}


def slow_costs(taxonomy, kind):
    def below(name):
        return 1 + sum(map(below, taxonomy.children(name)))

    def sibling(name):
        parent = taxonomy.parent(name)
        return 1.0 if parent is None else sibling(parent) / len(taxonomy.children(parent))

    cost = {"uniform": lambda name: 1.0, "sibling": sibling, "subtree": lambda name: below(name) / len(taxonomy)}[kind]
    return {name: cost(name) for name in taxonomy.names}


def slow_h_loss(taxonomy, true, predicted, costs, given):
    loss = 0.0
    for name in taxonomy.names[1:]:
        wrong = (name in true) != (name in predicted)
        above = ancestors(taxonomy, name)[1:]
        if given == "parent":
            above = above[:1]
        if wrong and all((other in true) == (other in predicted) for other in above):
            loss += costs[name]
    return loss


def slow_scores(pairs, weights, beta=1.0):
    both = sum(w * len(a & b) for w, (a, b) in zip(weights, pairs, strict=True))
    true = sum(w * len(a) for w, (a, _) in zip(weights, pairs, strict=True))
    predicted = sum(w * len(b) for w, (_, b) in zip(weights, pairs, strict=True))
    precision = both / predicted if predicted else math.nan
    recall = both / true if true else math.nan
    f = (1 + beta**2) * both / (beta**2 * true + predicted) if true + predicted else math.nan
    return precision, recall, f


def weighted_mean(values, weights):
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def slow_rank(scores, true):
    """Place of the first true class when, of equal scores, the wrong ones come first."""
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], c in true))
    return 1 + min(order.index(c) for c in true)


def slow_hits(scores, true, k):
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], c in true))
    return sum(c in true for c in order[:k])


def names_case(seed, n=60):
    """Labels of any depth, predictions that are often right, and weights some of which are zero."""
    generator = np.random.default_rng(seed + 100)
    taxonomy = random_tree(seed)
    true = generator.choice(taxonomy.names[1:], n).astype(str)
    predicted = np.where(generator.random(n) < 0.4, true, generator.choice(taxonomy.names, n).astype(str))
    weights = generator.integers(0, 4, n).astype(float)
    return SimpleNamespace(taxonomy=taxonomy, true=true, predicted=predicted, weights=weights)


def sets_case(seed, n=50):
    """Sets of nodes, some empty, that need not respect the tree."""
    generator = np.random.default_rng(seed + 200)
    taxonomy = random_tree(seed)
    true = generator.random((n, len(taxonomy))) < 0.15
    predicted = true ^ (generator.random((n, len(taxonomy))) < 0.1)
    as_sets = [[set(taxonomy.names[row]) - {taxonomy.names[0]} for row in part] for part in (true, predicted)]
    weights = generator.integers(0, 4, n).astype(float)
    return SimpleNamespace(
        taxonomy=taxonomy,
        true=sp.csr_array(true),
        predicted=sp.csr_array(predicted),
        pairs=list(zip(*as_sets, strict=True)),
        weights=weights,
    )


def proba_case(seed, n=80, n_classes=9, ties=False):
    generator = np.random.default_rng(seed + 300)
    classes = np.array([f"c{k}" for k in generator.permutation(n_classes)])
    proba = generator.dirichlet(np.full(n_classes, 0.5), n)
    if ties:
        proba = np.round(proba, 1)
    codes = np.array([generator.choice(n_classes, p=row / row.sum()) for row in proba])
    weights = generator.integers(0, 4, n).astype(float)
    return SimpleNamespace(proba=proba, classes=classes, codes=codes, true=classes[codes], weights=weights)


# Labels


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("with_taxonomy", [False, True])
def test_accuracy_of_labels(seed, with_taxonomy):
    case = names_case(seed)
    options = {"taxonomy": case.taxonomy if with_taxonomy else None, "sample_weight": case.weights}
    expected = weighted_mean([a == b for a, b in zip(case.true, case.predicted, strict=True)], case.weights)
    assert metrics.accuracy(case.true, case.predicted, **options) == pytest.approx(expected)
    assert metrics.zero_one_loss(case.true, case.predicted, **options) == pytest.approx(1 - expected)
    assert expected == pytest.approx(
        sklearn.metrics.accuracy_score(case.true, case.predicted, sample_weight=case.weights)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_zero_one_and_symmetric_difference_of_sets(seed):
    case = sets_case(seed)
    true, predicted = case.true[:, 1:], case.predicted[:, 1:]
    for options in ({}, {"taxonomy": case.taxonomy}):
        ours = (case.true, case.predicted) if options else (true, predicted)
        expected = weighted_mean([a != b for a, b in case.pairs], case.weights)
        assert metrics.zero_one_loss(*ours, sample_weight=case.weights, **options) == pytest.approx(expected)
        assert metrics.accuracy(*ours, sample_weight=case.weights, **options) == pytest.approx(1 - expected)
        expected = weighted_mean([len(a ^ b) for a, b in case.pairs], case.weights)
        loss = metrics.symmetric_difference_loss(*ours, sample_weight=case.weights, **options)
        assert loss == pytest.approx(expected)
    assert metrics.accuracy(true, predicted) == pytest.approx(sklearn.metrics.accuracy_score(true, predicted))
    hamming = sklearn.metrics.hamming_loss(true, predicted) * true.shape[1]
    assert metrics.symmetric_difference_loss(true, predicted) == pytest.approx(hamming)


def test_symmetric_difference_of_labels_without_a_tree():
    assert metrics.symmetric_difference_loss(["a", "b"], ["a", "c"]) == 1.0  # 0 and |{b, c}|


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_f1_of_labels(seed, average):
    case = names_case(seed)
    ours = metrics.f1(case.true, case.predicted, average=average)
    assert ours == pytest.approx(sklearn.metrics.f1_score(case.true, case.predicted, average=average))
    some = [*np.unique(case.true)[:5], "absent"]
    ours = metrics.f1(case.true, case.predicted, average=average, labels=some, sample_weight=case.weights)
    theirs = sklearn.metrics.f1_score(
        case.true, case.predicted, labels=some, average=average, sample_weight=case.weights, zero_division=0
    )
    assert ours == pytest.approx(theirs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_f1_of_sets(seed, average):
    case = sets_case(seed)
    labels = np.arange(len(case.taxonomy))
    ours = metrics.f1(case.true, case.predicted, average=average, labels=labels, sample_weight=case.weights)
    theirs = sklearn.metrics.f1_score(
        case.true, case.predicted, average=average, sample_weight=case.weights, zero_division=0
    )
    assert ours == pytest.approx(theirs)


def test_macro_f1_averages_the_classes_that_occur():
    true, predicted = ["a", "a", "b", "b"], ["a", "a", "b", "c"]
    scores = {"a": 1.0, "b": 2 / 3, "c": 0.0}
    assert metrics.f1(true, predicted, average="macro") == pytest.approx(sum(scores.values()) / 3)
    assert metrics.f1(true, predicted, average="macro", labels=["a", "b"]) == pytest.approx((1 + 2 / 3) / 2)
    assert metrics.f1(true, predicted, average="macro", labels=list("abcde")) == pytest.approx((1 + 2 / 3) / 5)
    # A row without weight is as good as absent, and so is the class that it alone has.
    assert metrics.f1(true, predicted, average="macro", sample_weight=[1, 1, 1, 0]) == 1.0
    columns = sp.csr_array(np.array([[1, 0, 1], [0, 0, 1]]))
    assert metrics.f1(columns, columns, average="macro") == 1.0
    assert metrics.f1(columns, columns, average="macro", labels=[0, 1, 2]) == pytest.approx(2 / 3)
    nothing = sp.csr_array((2, 3), dtype=int)
    assert math.isnan(metrics.f1(nothing, nothing, average="micro"))
    assert math.isnan(metrics.f1(nothing, nothing, average="macro"))


# Trees


@pytest.mark.parametrize("seed", SEEDS)
def test_taxo_loss_and_parent_accuracy(seed):
    case = names_case(seed)
    tree = case.taxonomy
    pairs = list(zip(case.true.tolist(), case.predicted.tolist(), strict=True))
    lengths = [path_length(tree, a, b) for a, b in pairs]
    options = {"taxonomy": tree, "sample_weight": case.weights}
    assert metrics.taxo_loss(case.true, case.predicted, **options) == pytest.approx(
        weighted_mean(lengths, case.weights) / 2
    )
    assert metrics.symmetric_difference_loss(case.true, case.predicted, **options) == pytest.approx(
        weighted_mean([len(closed(tree, [a]) ^ closed(tree, [b])) for a, b in pairs], case.weights)
    )
    assert metrics.parent_accuracy(case.true, case.predicted, **options) == pytest.approx(
        weighted_mean([tree.parent(a) == tree.parent(b) for a, b in pairs], case.weights)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_taxo_loss_is_a_distance(seed):
    tree = random_tree(seed, n_nodes=12)
    table = np.array([[metrics.taxo_loss([a], [b], taxonomy=tree) for b in tree.names] for a in tree.names])
    np.testing.assert_array_equal(table, table.T)
    np.testing.assert_array_equal(table == 0, np.eye(len(tree), dtype=bool))
    assert (table[:, :, np.newaxis] <= table[:, np.newaxis] + table.T[np.newaxis]).all()


def test_a_small_tree_by_hand():
    tree = Taxonomy.from_labels(["A/1", "A/2", "B/1", "C"])
    # A/1 to A/2: two edges; to B/1: four; to C: three; to its parent: one; to the root: two.
    for name, loss in {"A/1": 0, "A/2": 1, "B/1": 2, "C": 1.5, "A": 0.5, "root": 1}.items():
        assert metrics.taxo_loss(["A/1"], [name], taxonomy=tree) == loss
    for name, right in {"A/1": 1, "A/2": 1, "B/1": 0, "C": 0, "A": 0, "root": 0}.items():
        assert metrics.parent_accuracy(["A/1"], [name], taxonomy=tree) == right
    # Three children of the root, two of A, one of B; seven nodes.
    losses = {"uniform": 2, "sibling": 1 / 3 + 1 / 3, "subtree": 3 / 7 + 2 / 7}
    for weights, loss in losses.items():
        assert metrics.h_loss(["A/1"], ["B/1"], taxonomy=tree, weights=weights) == pytest.approx(loss)
    losses = {"uniform": 1, "sibling": 1 / 6, "subtree": 1 / 7}
    for weights, loss in losses.items():
        assert metrics.h_loss(["A/1"], ["A"], taxonomy=tree, weights=weights) == pytest.approx(loss)
    scores = metrics.hierarchical_precision_recall_f(["A/1", "C"], ["A/2", "B/1"], taxonomy=tree, beta=2)
    assert scores == pytest.approx((1 / 4, 1 / 3, 5 * 1 / (4 * 3 + 4)))
    levels = metrics.level_precision_recall_f(["A/1", "C"], ["A/2", "A"], taxonomy=tree)
    np.testing.assert_array_equal(levels.level, [1, 2])
    np.testing.assert_allclose(levels.precision, [1 / 2, 0])
    np.testing.assert_allclose(levels.recall, [1 / 2, 0])
    np.testing.assert_allclose(levels.f, [1 / 2, 0])
    np.testing.assert_allclose([levels.true, levels.predicted], [[2, 1], [2, 1]])


def test_scores_of_nothing_are_not_numbers():
    tree = Taxonomy.from_labels(["A/1", "B"])
    levels = metrics.level_precision_recall_f(["B"], ["A/1"], taxonomy=tree)
    np.testing.assert_array_equal(levels.precision, [0, 0])
    np.testing.assert_array_equal(levels.recall, [0, math.nan])
    np.testing.assert_array_equal(levels.f, [0, 0])
    np.testing.assert_array_equal(metrics.level_precision_recall_f(["B"], ["B"], taxonomy=tree).f, [1, math.nan])
    scores = metrics.hierarchical_precision_recall_f(["A/1"], ["root"], taxonomy=tree)
    assert math.isnan(scores.precision)
    assert (scores.recall, scores.f) == (0, 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_hierarchical_and_level_scores(seed, beta):
    case, sets = names_case(seed), sets_case(seed)
    paths = [
        (closed(case.taxonomy, [a]), closed(case.taxonomy, [b])) for a, b in zip(case.true, case.predicted, strict=True)
    ]
    unions = [(closed(sets.taxonomy, a), closed(sets.taxonomy, b)) for a, b in sets.pairs]
    for item, closed_pairs, pairs in ((case, paths, paths), (sets, unions, sets.pairs)):
        options = {"taxonomy": item.taxonomy, "beta": beta, "sample_weight": item.weights}
        scores = metrics.hierarchical_precision_recall_f(item.true, item.predicted, **options)
        assert scores == pytest.approx(slow_scores(closed_pairs, item.weights, beta))
        levels = metrics.level_precision_recall_f(item.true, item.predicted, **options)
        for level in range(1, item.taxonomy.height + 1):
            names = {name for name in item.taxonomy.names if len(ancestors(item.taxonomy, name)) == level}
            expected = slow_scores([(a & names, b & names) for a, b in pairs], item.weights, beta)
            got = [column[level - 1] for column in (levels.precision, levels.recall, levels.f)]
            assert got == pytest.approx(expected, nan_ok=True)
            assert levels.true[level - 1] == sum(
                w * len(a & names) for w, (a, _) in zip(item.weights, pairs, strict=True)
            )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["uniform", "sibling", "subtree"])
@pytest.mark.parametrize("given", ["ancestors", "parent"])
def test_h_loss(seed, kind, given):
    case, sets = names_case(seed), sets_case(seed)
    paths = [
        (closed(case.taxonomy, [a]), closed(case.taxonomy, [b])) for a, b in zip(case.true, case.predicted, strict=True)
    ]
    costs = slow_costs(case.taxonomy, kind)
    for item, pairs in ((case, paths), (sets, sets.pairs)):
        expected = weighted_mean([slow_h_loss(item.taxonomy, a, b, costs, given) for a, b in pairs], item.weights)
        options = {"taxonomy": item.taxonomy, "given": given, "sample_weight": item.weights}
        assert metrics.h_loss(item.true, item.predicted, weights=kind, **options) == pytest.approx(expected)
        numbers = [costs[name] for name in item.taxonomy.names]
        assert metrics.h_loss(item.true, item.predicted, weights=numbers, **options) == pytest.approx(expected)


def test_the_two_kinds_of_h_loss_part_where_labels_contradict_the_tree():
    tree = Taxonomy.from_labels(["A/1/x", "B"])
    true = MultiLabelBinarizer(classes=tree.names, sparse_output=True).fit_transform([["A", "A/1", "A/1/x"]])
    predicted = MultiLabelBinarizer(classes=tree.names, sparse_output=True).fit_transform([["A/1"]])
    assert metrics.h_loss(true, predicted, taxonomy=tree) == 1  # A alone
    assert metrics.h_loss(true, predicted, taxonomy=tree, given="parent") == 2  # and A/1/x, below a right A/1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["accuracy", "hierarchical", "level", "symmetric_difference", "h_loss"])
def test_all_forms_of_the_same_labels_agree(seed, name):
    tree = random_tree(seed)
    generator = np.random.default_rng(seed)
    true, predicted = generator.choice(tree.classes, (2, 40))
    predicted = np.where(generator.random(40) < 0.5, true, predicted)

    def nodes(labels):
        return sp.csr_array([[other in closed(tree, [label]) for other in tree.names] for label in labels], dtype=float)

    def classes(labels):
        return sp.csr_array((np.ones(40), tree.leaf_index(labels), np.arange(41)), shape=(40, tree.n_classes))

    expected = PAIR_METRICS[name](true, predicted, taxonomy=tree)
    forms = [list, nodes, classes, lambda labels: nodes(labels).toarray(), lambda labels: pd.Series(labels)]
    for form in forms:
        for other in forms:
            got = PAIR_METRICS[name](form(true), other(predicted), taxonomy=tree)
            np.testing.assert_allclose(got, expected)


def test_kinds_of_arrays():
    tree = Taxonomy.from_parents([-1, 0, 0, 1, 1], ["root", 1, 2, 3, 4])
    true, predicted = [3, 4, 2, 2], [3, 3, "root", 1]
    expected = (0 + 1 + 0.5 + 1) / 4
    assert metrics.taxo_loss(true, predicted, taxonomy=tree) == expected
    assert metrics.taxo_loss(np.array(true), np.array(predicted, dtype=object), taxonomy=tree) == expected
    strings = ["3", "4", "2", "2"]
    for kind in (np.array, tuple, pd.Series, pd.Categorical, pl.Series):
        assert metrics.accuracy(kind(true), [3, 3, 3, 2]) == 0.5
        assert metrics.accuracy(kind(strings), ["3", "3", "3", "2"]) == 0.5
    with pytest.raises(ValueError, match="both must be strings or both numbers"):
        metrics.accuracy(true, strings)
    with pytest.raises(ValueError, match=r"y_pred: .*not in the taxonomy"):
        metrics.accuracy(true, strings, taxonomy=tree)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix, np.array])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
def test_kinds_of_indicators(form, dtype):
    true = form(np.array([[1, 0, 1], [0, 1, 0]], dtype=dtype))
    predicted = form(np.array([[1, 0, 0], [0, 1, 0]], dtype=dtype))
    assert metrics.symmetric_difference_loss(true, predicted) == 0.5


def test_odd_sparse_matrices_are_read_and_left_alone():
    # Indices out of order and a stored zero.
    matrix = sp.csr_array((np.array([1, 1, 0, 1]), np.array([2, 0, 1, 1]), np.array([0, 3, 4])), shape=(2, 3))
    before = matrix.indices.copy(), matrix.data.copy()
    assert metrics.accuracy(matrix, np.array([[1, 0, 1], [0, 1, 0]])) == 1
    np.testing.assert_array_equal(matrix.indices, before[0])
    np.testing.assert_array_equal(matrix.data, before[1])


# Scores and probabilities


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
def test_ranks_of_single_labels(seed, ties, monkeypatch):
    monkeypatch.setattr("taxolearn.metrics.inputs._BLOCK", 100)  # several blocks of rows
    case = proba_case(seed, ties=ties)
    options = {"classes": case.classes, "sample_weight": case.weights}
    items = list(zip(case.proba.tolist(), case.codes.tolist(), strict=True))
    expected = weighted_mean([1 / slow_rank(row, {code}) for row, code in items], case.weights)
    assert metrics.reciprocal_rank(case.true, case.proba, **options) == pytest.approx(expected)
    for k in (1, 2, 9):
        expected = weighted_mean([slow_hits(row, {code}, k) / k for row, code in items], case.weights)
        assert metrics.precision_at_k(case.true, case.proba, k=k, **options) == pytest.approx(expected)
    if not ties:
        for k in (1, 3):
            theirs = sklearn.metrics.top_k_accuracy_score(case.codes, case.proba, k=k, labels=range(9))
            ours = metrics.precision_at_k(case.true, case.proba, classes=case.classes, k=k)
            assert k * ours == pytest.approx(theirs)
        theirs = sklearn.metrics.label_ranking_average_precision_score(np.eye(9)[case.codes], case.proba)
        assert metrics.reciprocal_rank(case.true, case.proba, classes=case.classes) == pytest.approx(theirs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
def test_ranks_of_sets(seed, ties, monkeypatch):
    monkeypatch.setattr("taxolearn.metrics.inputs._BLOCK", 100)
    case = proba_case(seed, ties=ties)
    true = np.random.default_rng(seed).random(case.proba.shape) < 0.2
    true[np.arange(len(true)), case.codes] = True
    options = {"classes": case.classes, "sample_weight": case.weights}
    items = [(row, set(np.flatnonzero(on))) for row, on in zip(case.proba.tolist(), true, strict=True)]
    expected = weighted_mean([1 / slow_rank(row, labels) for row, labels in items], case.weights)
    assert metrics.reciprocal_rank(sp.csr_array(true), case.proba, **options) == pytest.approx(expected)
    for k in (1, 3, 8):
        expected = weighted_mean([slow_hits(row, labels, k) / k for row, labels in items], case.weights)
        assert metrics.precision_at_k(sp.csr_array(true), case.proba, k=k, **options) == pytest.approx(expected)


def test_equal_scores_earn_nothing():
    options = {"classes": range(4)}
    assert metrics.reciprocal_rank([0, 1, 2, 3], np.full((4, 4), 0.25), **options) == 1 / 4
    assert metrics.precision_at_k([0, 1, 2, 3], np.full((4, 4), 0.25), **options) == 0
    assert metrics.reciprocal_rank([0], [[-math.inf, -1.0, -2.0, -3.0]], **options) == 1 / 4
    assert metrics.precision_at_k(sp.csr_array((2, 4), dtype=int), np.eye(2, 4), k=2, **options) == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_loss(seed, dtype):
    case = proba_case(seed)
    proba = np.maximum(case.proba, 1e-30).astype(dtype)
    options = {"classes": case.classes, "sample_weight": case.weights}
    items = zip(proba.tolist(), case.codes.tolist(), strict=True)
    expected = weighted_mean([-math.log(row[code]) for row, code in items], case.weights)
    assert metrics.log_loss(case.true, proba, **options) == pytest.approx(expected, rel=1e-6)
    assert metrics.log_loss(case.true, log_proba=np.log(proba), **options) == pytest.approx(expected, rel=1e-6)
    one_hot = sp.csr_array(np.eye(9)[case.codes])
    assert metrics.log_loss(one_hot, proba, **options) == pytest.approx(expected, rel=1e-6)
    if dtype == np.float64:
        theirs = sklearn.metrics.log_loss(case.codes, proba, sample_weight=case.weights, labels=range(9))
        assert expected == pytest.approx(theirs)


def test_log_loss_is_not_clipped():
    classes = ["a", "b"]
    assert metrics.log_loss(["a", "b"], [[1.0, 0.0], [1.0, 0.0]], classes=classes) == math.inf
    assert metrics.log_loss(["a", "b"], [[1.0, 0.0], [1.0, 0.0]], classes=classes, sample_weight=[1, 0]) == 0
    assert metrics.log_loss(["a"], log_proba=[[-math.inf, 0.0]], classes=classes) == math.inf
    assert metrics.log_loss(["a", "b"], log_proba=[[-2000.0, 0.0], [-1.5e3, 0.0]], classes=classes) == 1000
    assert math.copysign(1, metrics.log_loss(["a"], [[1.0, 0.0]], classes=classes)) == 1


# Confidence


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("with_taxonomy", [False, True])
def test_error_reject_curve(seed, with_taxonomy):
    case = names_case(seed)
    confidence = np.random.default_rng(seed).integers(0, 15, len(case.true)) / 15  # many ties
    tree = case.taxonomy if with_taxonomy else None
    curve = metrics.error_reject_curve(case.true, case.predicted, confidence, taxonomy=tree, sample_weight=case.weights)
    pairs = zip(case.true.tolist(), case.predicted.tolist(), strict=True)
    errors = [path_length(tree, a, b) / 2 if with_taxonomy else a != b for a, b in pairs]
    items = [item for item in zip(confidence.tolist(), errors, case.weights, strict=True) if item[2] > 0]
    total = sum(w for _, _, w in items)
    expected, area = [], 0.0
    for threshold in sorted({c for c, _, _ in items}):
        accepted = [(e, w) for c, e, w in items if c >= threshold]
        weight = sum(w for _, w in accepted)
        error = sum(e * w for e, w in accepted) / weight
        expected.append((1 - weight / total, error, threshold))
        area += error * sum(w for c, _, w in items if c == threshold) / total
    np.testing.assert_allclose(np.transpose(curve[:3]), expected, atol=1e-12)
    assert curve.area == pytest.approx(area)
    # The steps, integrated as they are drawn.
    assert curve.area == pytest.approx(np.diff(curve.rejected, append=1.0) @ curve.error)


def test_error_reject_curve_of_extremes():
    true, predicted = [0, 0, 0, 0], [0, 1, 0, 1]
    flat = metrics.error_reject_curve(true, predicted, [0.5] * 4)
    assert (flat.rejected.tolist(), flat.error.tolist(), flat.area) == ([0.0], [0.5], 0.5)
    best = metrics.error_reject_curve(true, predicted, [0.9, 0.2, 0.8, 0.1])
    np.testing.assert_allclose(best.error, [1 / 2, 1 / 3, 0, 0])
    worst = metrics.error_reject_curve(true, predicted, [0.2, 0.9, 0.1, 0.8])
    assert best.area < flat.area < worst.area
    sets = metrics.error_reject_curve(np.eye(2), np.ones((2, 2)), [0.1, 0.2])
    assert sets.area == 1


def slow_reliability(items, edges):
    """Items are (probability, hit, weight); bins are open on the left."""
    rows = []
    for k, (lower, upper) in enumerate(itertools.pairwise(edges)):
        inside = [i for i in items if lower < i[0] <= upper or (k == 0 and i[0] <= lower)]
        weight = sum(w for _, _, w in inside)
        if weight > 0:
            mean = sum(p * w for p, _, w in inside) / weight
            rows.append((mean, sum(h * w for _, h, w in inside) / weight, weight, lower, upper))
    return rows


def slow_quantile_edges(items, n_bins):
    items = sorted((i for i in items if i[2] > 0), key=lambda item: item[0])
    repeated = [p for p, _, w in items for _ in range(int(w))]
    inner = [repeated[math.ceil(k * len(repeated) / n_bins) - 1] for k in range(1, n_bins)]
    return sorted({0.0, *inner, 1.0})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("what", ["top", "labels", "pairs"])
def test_reliability_curve(seed, strategy, what):
    case = proba_case(seed)
    rows = range(len(case.true))
    if what == "top":
        options = {}
        chosen = [(i, int(np.argmax(case.proba[i]))) for i in rows]
    elif what == "labels":
        options = {"labels": case.classes[[4, 1]]}
        chosen = [(i, c) for i in rows for c in (4, 1)]
    else:
        chosen = [(i, c) for i in rows for c in range(9) if (3 * i + c) % 5 == 0][::-1]
        options = {"pairs": ([i for i, _ in chosen], [case.classes[c] for _, c in chosen])}
    items = [(float(case.proba[i, c]), case.codes[i] == c, case.weights[i]) for i, c in chosen]
    edges = [k / 7 for k in range(8)] if strategy == "uniform" else slow_quantile_edges(items, 7)
    expected = slow_reliability(items, edges)
    options |= {"classes": case.classes, "n_bins": 7, "strategy": strategy, "sample_weight": case.weights}
    curve = metrics.reliability_curve(case.true, case.proba, **options)
    np.testing.assert_allclose(np.transpose(curve), expected)
    error = sum(abs(f - c) * w for c, f, w, _, _ in expected) / sum(row[2] for row in expected)
    assert curve.calibration_error == pytest.approx(error)
    assert metrics.expected_calibration_error(case.true, case.proba, **options) == pytest.approx(error)


def test_reliability_curve_as_in_sklearn():
    case = proba_case(0, n=500)
    curve = metrics.reliability_curve(case.true, case.proba, classes=case.classes, labels=[case.classes[2]])
    frequency, confidence = calibration_curve(case.codes == 2, case.proba[:, 2], n_bins=10)
    np.testing.assert_allclose(curve.frequency, frequency)
    np.testing.assert_allclose(curve.confidence, confidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("several", [False, True])
def test_reliability_of_nodes(seed, several, monkeypatch):
    monkeypatch.setattr("taxolearn.metrics.inputs._BLOCK", 100)
    tree = random_tree(seed)
    generator = np.random.default_rng(seed)
    classes = generator.permutation(tree.classes)[:-1]  # in any order, and one leaf unknown to the model
    proba = generator.dirichlet(np.full(len(classes), 0.3), 40)
    true = generator.random(proba.shape) < 0.2 if several else np.eye(len(classes))[proba.argmax(axis=1)] > 0
    nodes = generator.choice(tree.names, 6, replace=False)

    def item(i, node):
        below = [k for k, name in enumerate(classes) if name in set(tree.leaves(node))]
        return min(sum(proba[i, k] for k in below), 1.0), any(true[i, k] for k in below), 1.0

    edges = np.linspace(0, 1, 11).tolist()
    y_true = sp.csr_array(true) if several else classes[true.argmax(axis=1)]
    options = {"classes": classes, "taxonomy": tree}
    curve = metrics.reliability_curve(y_true, proba, labels=nodes, **options)
    expected = slow_reliability([item(i, node) for i in range(40) for node in nodes], edges)
    np.testing.assert_allclose(np.transpose(curve), expected, atol=1e-12)
    rows, names = generator.integers(0, 40, 70), generator.choice(tree.names, 70)
    curve = metrics.reliability_curve(y_true, proba, pairs=(rows, names), **options)
    expected = slow_reliability([item(i, node) for i, node in zip(rows, names, strict=True)], edges)
    np.testing.assert_allclose(np.transpose(curve), expected, atol=1e-12)
    top = metrics.reliability_curve(y_true, proba, classes=classes)
    np.testing.assert_array_equal(metrics.reliability_curve(y_true, proba, **options), top)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reliability_of_answers(strategy):
    generator = np.random.default_rng(0)
    proba = generator.dirichlet(np.ones(4), 200)
    true, weight = generator.integers(4, size=200), generator.integers(3, size=200)
    options = {"strategy": strategy, "n_bins": 7, "sample_weight": weight}
    expected = metrics.reliability_curve(true, proba, classes=range(4), **options)
    correct = proba.argmax(axis=1) == true
    found = metrics.reliability_of_answers(proba.max(axis=1), correct, **options)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    default = metrics.reliability_curve(true, proba, classes=range(4))
    assert len(metrics.reliability_of_answers(proba.max(axis=1), correct).weight) == len(default.weight)
    for confidence, right, message in (
        ([0.5, 1.5], [True, False], "confidence must be probabilities between 0 and 1, got values from 0.5 to 1.5"),
        ([0.5, np.nan], [True, False], "confidence has NaN values, the first at 1"),
        ([], [], "confidence is empty"),
        ([0.5, 0.5], [1, 0], "correct must be 2 booleans"),
        ([0.5, 0.5], [True], "correct must be 2 booleans"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.reliability_of_answers(confidence, right)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_error_of_constructions(strategy):
    # Of ten items with probability p, 10 p come true.
    p = np.repeat([0.6, 0.7, 0.8, 0.9], 10)
    right = np.concatenate([np.arange(10) < 10 * share - 1e-9 for share in (0.6, 0.7, 0.8, 0.9)])
    proba = np.column_stack([p, 1 - p])
    options = {"classes": ["a", "b"], "strategy": strategy}
    true = np.where(right, "a", "b")
    assert metrics.expected_calibration_error(true, proba, **options) == pytest.approx(0, abs=1e-12)
    assert metrics.expected_calibration_error(true, proba, labels=["a", "b"], **options) == pytest.approx(0, abs=1e-12)
    sure = np.tile([1.0, 0.0], (40, 1))
    assert metrics.expected_calibration_error(true, sure, **options) == pytest.approx(1 - 0.75)
    never = np.full(40, "b")
    assert metrics.expected_calibration_error(never, proba, **options) == pytest.approx(0.75)


def test_probabilities_drawn_from_the_model_are_calibrated():
    case = proba_case(1, n=6000)
    assert metrics.expected_calibration_error(case.true, case.proba, classes=case.classes) < 0.03
    shifted = np.roll(case.classes, 1)
    assert metrics.expected_calibration_error(case.true, case.proba, classes=shifted) > 0.3


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reliability_of_labels_is_the_sum_over_blocks(strategy, monkeypatch):
    case = proba_case(2, n=60)
    options = {"classes": case.classes, "strategy": strategy, "sample_weight": case.weights}
    rows, columns = np.indices(case.proba.shape)
    pairs = (rows.ravel(), case.classes[columns.ravel()])
    whole = metrics.reliability_curve(case.true, case.proba, pairs=pairs, **options)
    for block in (1, 50, 10**6):
        monkeypatch.setattr("taxolearn.metrics.inputs._BLOCK", block)
        curve = metrics.reliability_curve(case.true, case.proba, labels=case.classes, **options)
        np.testing.assert_allclose(np.transpose(curve), np.transpose(whole))


def test_reliability_of_labels_takes_little_memory(monkeypatch):
    monkeypatch.setattr("taxolearn.metrics.inputs._BLOCK", 2**14)
    proba = np.random.default_rng(0).dirichlet(np.ones(200), 3000)
    true = proba.argmax(axis=1)
    tracemalloc.start()
    try:
        metrics.reliability_curve(true, proba, classes=np.arange(200), labels=np.arange(200))
        assert tracemalloc.get_traced_memory()[1] < proba.nbytes
    finally:
        tracemalloc.stop()


# Large integers and booleans


def test_large_integers_stay_apart():
    big = 2**53
    for one, other in [
        (np.array([2**63 - 1, 1], dtype=np.uint64), np.array([2**63 - 2, 1])),
        (np.array([2**63 - 1, 1], dtype=np.uint64), [2**63 - 2, 1]),
        (np.array([big + 1, -1], dtype=object), np.array([big, -1], dtype=np.int64)),
    ]:
        assert metrics.accuracy(one, other) == metrics.f1(one, other, average="micro") == 0.5
        assert metrics.accuracy(one, one) == 1
    # Of the three classes one is right.
    true, predicted = np.array([big + 1, 1], dtype=np.uint64), np.array([big, 1])
    assert metrics.f1(true, predicted, average="macro") == pytest.approx(1 / 3)
    assert metrics.f1(true, predicted, average="macro", labels=np.array([big + 1, 1], dtype=np.uint64)) == 0.5
    proba = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]
    assert metrics.reciprocal_rank(true, proba, classes=[big, 1, big + 1]) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        (
            np.array([2**63 + 1], dtype=np.uint64),
            [2**63 - 1],
            f"y_true has the integer {2**63 + 1}, which does not fit",
        ),
        ([1], [2**63], f"y_pred has the integer {2**63}, which does not fit"),
        ([1, 2], [1, 2**70], f"y_pred has the integer {2**70}, which does not fit"),
        ([1, 2], np.array([1, -(2**70)], dtype=object), f"y_pred has the integer {-(2**70)}, which does not fit"),
        ([2**53 + 1, 1], [0.5, 1.0], f"y_true has the integer {2**53 + 1}, but y_pred has floats"),
        ([0.5, 1.0], [-(2**53) - 1, 1], f"y_pred has the integer {-(2**53) - 1}, but y_true has floats"),
        ([1.0, 2.0**53], [1, 2], r"y_true\[1\] is 9007199254740992.0, but floats of this size"),
        ([1, 2], [2**63, -1], r"y_pred\[0\] is 9.2\d*e\+18, but floats of this size"),
        ([True, 2], [1, 2], "y_true mixes integers and booleans, such as 2 and True"),
        ([1, 2], np.array([1, np.True_], dtype=object), "y_pred mixes integers and booleans, such as 1 and "),
        (["a", "b"], ["a", True], "y_pred mixes strings and booleans, such as 'a' and True"),
    ],
)
def test_labels_that_cannot_be_compared(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        metrics.accuracy(true, predicted)


def test_booleans_are_labels_of_their_own():
    tree = Taxonomy.from_parents([-1, 0, 0])
    for y in ([True, True], np.array([True, True]), np.array([True, True], dtype=object)):
        assert metrics.accuracy(y, [True, False]) == 0.5
        with pytest.raises(ValueError, match=r"^y_pred: not in the taxonomy: booleans"):
            metrics.accuracy([1, 2], y, taxonomy=tree)
        with pytest.raises(ValueError, match=r"^y_true: not in the taxonomy: booleans"):
            metrics.taxo_loss(y, [1, 2], taxonomy=tree)
        with pytest.raises(ValueError, match="y_true has labels such as True and classes such as 0; booleans are no"):
            metrics.log_loss(y, [[0.5, 0.5]] * 2, classes=[0, 1])
        assert metrics.log_loss(y, [[0.5, 0.5]] * 2, classes=[False, True]) == pytest.approx(math.log(2))
    with pytest.raises(ValueError, match="y_true mixes integers and booleans"):
        metrics.taxo_loss([True, 2], [1, 2], taxonomy=tree)


# Laws


@pytest.mark.parametrize("name", PAIR_METRICS)
def test_weights_are_repetitions_and_rows_have_no_order(name):
    case = names_case(7)
    metric, tree = PAIR_METRICS[name], case.taxonomy
    expected = metric(case.true, case.predicted, taxonomy=tree, sample_weight=case.weights)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(len(case.true)), case.weights.astype(int)))
    np.testing.assert_allclose(metric(case.true[rows], case.predicted[rows], taxonomy=tree), expected)
    scaled = metric(case.true, case.predicted, taxonomy=tree, sample_weight=7 * case.weights)
    np.testing.assert_allclose(scaled, expected)


@pytest.mark.parametrize("name", SET_METRICS)
def test_weights_of_sets_are_repetitions(name):
    case = sets_case(7)
    metric, tree = PAIR_METRICS[name], case.taxonomy
    expected = metric(case.true, case.predicted, taxonomy=tree, sample_weight=case.weights)
    rows = np.repeat(np.arange(case.true.shape[0]), case.weights.astype(int))
    np.testing.assert_allclose(metric(case.true[rows], case.predicted[rows], taxonomy=tree), expected)


@pytest.mark.parametrize("name", PROBA_METRICS)
def test_weights_of_probabilities_are_repetitions(name):
    case = proba_case(7)
    metric = PROBA_METRICS[name]
    expected = metric(case.true, case.proba, classes=case.classes, sample_weight=case.weights)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(len(case.true)), case.weights.astype(int)))
    assert metric(case.true[rows], case.proba[rows], classes=case.classes) == pytest.approx(expected)
    columns = np.random.default_rng(0).permutation(len(case.classes))
    got = metric(case.true, case.proba[:, columns], classes=case.classes[columns], sample_weight=case.weights)
    assert got == pytest.approx(expected)


def test_perfect_predictions():
    case = names_case(3)
    for name, metric in PAIR_METRICS.items():
        perfect = metric(case.true, case.true, taxonomy=case.taxonomy)
        expected = 0.0 if "loss" in name or name in ("symmetric_difference", "error_reject_area") else 1.0
        np.testing.assert_array_equal(np.unique(perfect), expected, err_msg=name)
    sure = np.eye(3)
    assert metrics.log_loss([0, 1, 2], sure, classes=range(3)) == 0
    assert metrics.reciprocal_rank([0, 1, 2], sure, classes=range(3)) == 1
    assert metrics.precision_at_k([0, 1, 2], sure, classes=range(3)) == 1
    assert metrics.expected_calibration_error([0, 1, 2], sure, classes=range(3)) == 0


@pytest.mark.parametrize("name", SET_METRICS)
def test_huge_sparse_sets_stay_sparse(name):
    """As dense matrices these would take 20 GB."""
    n, n_leaves = 20_000, 100_000
    parents = np.concatenate([[-1], np.zeros(300, dtype=int), np.arange(n_leaves) % 300 + 1])
    tree = Taxonomy.from_parents(parents)
    generator = np.random.default_rng(0)
    leaves = generator.integers(tree.n_inner, tree.n_nodes, (2, 3 * n))
    sets = [
        sp.csr_array((np.ones(3 * n, dtype=bool), (np.repeat(np.arange(n), 3), part)), shape=(n, tree.n_nodes))
        for part in leaves
    ]
    assert np.all(np.isfinite(PAIR_METRICS[name](*sets, taxonomy=tree)) | (name == "level"))


# Bad input

TREE = Taxonomy.from_labels(["A/1", "A/2", "B/1"])
GOOD = ["A/1", "A/2"]
PROBA = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
CLASSES = ["A/1", "A/2", "B/1"]


@pytest.mark.parametrize("name", PAIR_METRICS)
@pytest.mark.parametrize(
    ("true", "predicted", "options", "message"),
    [
        (GOOD, GOOD[:1], {}, "y_true has 2 items but y_pred has 1"),
        ([], [], {}, "y_true is empty"),
        (GOOD, GOOD, {"sample_weight": [1, -1]}, "sample_weight must not be negative"),
        (GOOD, GOOD, {"sample_weight": [0, 0]}, "sample_weight must have a positive"),
        (GOOD, GOOD, {"sample_weight": [1, np.nan]}, "sample_weight has NaN"),
        (GOOD, GOOD, {"sample_weight": [1, 1, 1]}, "sample_weight has shape"),
        (GOOD, GOOD, {"sample_weight": ["x", "y"]}, "sample_weight must be numbers"),
        (GOOD, ["A/1", None], {}, r"y_pred\[1\] is None"),
        (["A/1", 3.5], GOOD, {}, r"y_true\[1\] is 3.5"),
        ([["A/1"], "A/2"], GOOD, {}, "y_true must be one label or one list of labels per item"),
        ("A/1", GOOD, {}, "y_true must be an array"),
    ],
)
def test_bad_pairs(name, true, predicted, options, message):
    with pytest.raises(ValueError, match=message):
        PAIR_METRICS[name](true, predicted, taxonomy=TREE, **options)


@pytest.mark.parametrize("name", sorted(set(PAIR_METRICS) - {"micro", "macro"}))
def test_unknown_labels(name):
    with pytest.raises(ValueError, match=r"^y_pred: not in the taxonomy: 'A/3'"):
        PAIR_METRICS[name](GOOD, ["A/1", "A/3"], taxonomy=TREE)
    with pytest.raises(ValueError, match=r"^y_true: not in the taxonomy: 'A/3'"):
        PAIR_METRICS[name](["A/1", "A/3"], GOOD, taxonomy=TREE)


@pytest.mark.parametrize("name", SET_METRICS)
@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        (np.eye(2, 6), np.eye(3, 6), r"y_true"),
        (2 * np.eye(2, 6), np.eye(2, 6), "y_true must be an indicator matrix"),
        (np.eye(2, 6), np.eye(2, 6) * np.nan, "y_pred must be an indicator matrix"),
        (np.eye(2, 6), np.eye(2, 5), "y_pred"),
        (sp.csr_array((0, 6)), sp.csr_array((0, 6)), "y_true is empty"),
        (np.array([["A/1"], ["A/2"]]), GOOD, "y_true is two-dimensional"),
    ],
)
def test_bad_sets(name, true, predicted, message):
    with pytest.raises(ValueError, match=message):
        PAIR_METRICS[name](true, predicted, taxonomy=TREE)


@pytest.mark.parametrize("name", PROBA_METRICS)
@pytest.mark.parametrize(
    ("true", "proba", "options", "message"),
    [
        (GOOD[:1], PROBA, {}, "y_true has 1 items but proba has 2"),
        (GOOD, PROBA[:, :2], {}, r"proba has shape \(2, 2\)"),
        (GOOD, np.where(PROBA == 0.8, np.nan, PROBA), {}, "proba has NaN values, the first in row 1 for class 'B/1'"),
        (
            GOOD,
            sp.csr_array(PROBA),
            {"classes": CLASSES[:2]},
            "proba (is a sparse matrix|has 3 columns but there are 2)",
        ),
        (GOOD, "x", {}, "proba must be numbers"),
        (["A/1", "C"], PROBA, {}, "y_true has labels that are not in classes: 'C'"),
        ([1, 2], PROBA, {}, "y_true has labels such as 1 and classes such as 'A/1'"),
        (np.eye(2), PROBA, {}, "y_true has 2 columns"),
        (GOOD, PROBA, {"classes": ["A/1", "A/2", "A/2"]}, "classes names 'A/2' more than once"),
        ([], np.empty((0, 3)), {}, "proba is empty"),
        (GOOD, PROBA, {"sample_weight": [0, 0]}, "sample_weight"),
        (GOOD, PROBA, {"sample_weight": [-1, 0]}, "sample_weight"),
    ],
)
def test_bad_probabilities(name, true, proba, options, message):
    with pytest.raises(ValueError, match=message):
        PROBA_METRICS[name](true, proba, **{"classes": CLASSES, **options})


@pytest.mark.parametrize("name", ["log_loss", "ece", "ece_quantile"])
def test_probabilities_of_all_classes_are_dense(name):
    with pytest.raises(ValueError, match="proba is a sparse matrix"):
        PROBA_METRICS[name](GOOD, sp.csr_array(PROBA), classes=CLASSES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.log_loss(GOOD, PROBA / 2, classes=CLASSES), "proba: the probabilities of row 0 sum to 0.5"),
        (lambda: metrics.log_loss(GOOD, PROBA - 0.3, classes=CLASSES), "proba must be probabilities"),
        (lambda: metrics.log_loss(GOOD, log_proba=PROBA, classes=CLASSES), "log_proba: the probabilities of row 0"),
        (
            lambda: metrics.log_loss(GOOD, log_proba=np.full((2, 3), -np.inf), classes=CLASSES),
            "log_proba: the probabilities of row 0 sum to 0",
        ),
        (
            lambda: metrics.log_loss(GOOD, log_proba=np.array([[np.inf, 0, 0]] * 2), classes=CLASSES),
            "log_proba has infinite",
        ),
        (lambda: metrics.log_loss(GOOD, log_proba=PROBA * np.nan, classes=CLASSES), "log_proba has NaN"),
        (lambda: metrics.log_loss(GOOD, classes=CLASSES), "either proba or log_proba"),
        (lambda: metrics.log_loss(np.ones((2, 3)), PROBA, classes=CLASSES), "y_true must have one class"),
        (lambda: metrics.reciprocal_rank(np.eye(2, 3) * [[1], [0]], PROBA, classes=CLASSES), "y_true has rows without"),
        (lambda: metrics.reciprocal_rank(np.zeros((2, 3)), PROBA, classes=CLASSES), "y_true has rows without"),
        (lambda: metrics.precision_at_k(GOOD, PROBA, classes=CLASSES, k=4), "k must be at most"),
        (lambda: metrics.precision_at_k(GOOD, PROBA, classes=CLASSES, k=0), "k must be"),
        (lambda: metrics.reliability_curve(GOOD, PROBA * 3, classes=CLASSES), "proba must be probabilities"),
        (lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, n_bins=0), "n_bins"),
        (lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, strategy="x"), "strategy"),
        (lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, labels=["A"]), "labels has labels that"),
        (
            lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, labels=["C"], taxonomy=TREE),
            "^labels: not in the taxonomy",
        ),
        (
            lambda: metrics.reliability_curve(GOOD, PROBA, classes=["A", "A/2", "A/1"], taxonomy=TREE),
            "^classes: 'A' is no leaf",
        ),
        (lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, pairs=[0]), "pairs must be two"),
        (lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, pairs=([2], ["A/1"])), "pairs: rows"),
        (lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, pairs=([0, 1], ["A/1"])), "pairs has 2 rows"),
        (
            lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, pairs=([0], ["A/1"]), sample_weight=[0, 1]),
            "sample_weight is zero",
        ),
        (
            lambda: metrics.reliability_curve(GOOD, PROBA, classes=CLASSES, labels=GOOD, pairs=([0], ["A/1"])),
            "labels and pairs",
        ),
        (lambda: metrics.error_reject_curve(GOOD, GOOD, [0.5, np.nan]), "confidence has NaN values, the first at 1"),
        (lambda: metrics.error_reject_curve(GOOD, GOOD, [0.5]), "confidence has shape"),
        (lambda: metrics.error_reject_curve(GOOD, GOOD, ["x", "y"]), "confidence must be numbers"),
        (lambda: metrics.f1(GOOD, GOOD, average="none"), "average"),
        (lambda: metrics.f1(GOOD, GOOD, average="macro", labels=["A", "A"]), "labels"),
        (lambda: metrics.f1(GOOD, GOOD, average="macro", labels=[1]), "labels"),
        (lambda: metrics.f1(GOOD, np.eye(2), average="macro"), "both one label per item or both"),
        (lambda: metrics.f1(np.eye(2), np.eye(2), average="macro", labels=[2]), "labels must be column numbers"),
        (lambda: metrics.accuracy(["a", 1], ["a", "b"]), "y_true mixes strings and integers"),
        (lambda: metrics.accuracy([1.0, np.nan], [1.0, 2.0]), r"y_true\[1\] is nan"),
        (lambda: metrics.taxo_loss(GOOD, GOOD, taxonomy="tree"), "taxonomy must be"),
        (lambda: metrics.taxo_loss(np.eye(2, 6), np.eye(2, 6), taxonomy=TREE), "one label per item"),
        (lambda: metrics.parent_accuracy(np.eye(2, 6), np.eye(2, 6), taxonomy=TREE), "one label per item"),
        (lambda: metrics.h_loss(GOOD, GOOD, taxonomy=TREE, weights="x"), "weights"),
        (lambda: metrics.h_loss(GOOD, GOOD, taxonomy=TREE, weights=[1, 2]), "weights"),
        (lambda: metrics.h_loss(GOOD, GOOD, taxonomy=TREE, weights=-np.ones(6)), "weights"),
        (lambda: metrics.h_loss(GOOD, GOOD, taxonomy=TREE, given="x"), "given"),
        (lambda: metrics.hierarchical_precision_recall_f(GOOD, GOOD, taxonomy=TREE, beta=0), "beta"),
        (lambda: metrics.accuracy(np.eye(2, 4), np.eye(2, 4), taxonomy=TREE), "y_true has 4 columns"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "module", ["labels", "hierarchy", "probability", "confidence", "ranking", "propensity", "precision_recall"]
)
def test_examples(module):
    result = doctest.testmod(importlib.import_module(f"taxolearn.metrics.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
