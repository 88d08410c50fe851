"""Metrics of several labels per item, against scikit-learn, loops over sets and rankings, and the laws they obey."""

import itertools
import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from taxolearn import metrics
from taxolearn.taxonomy import Taxonomy

SEEDS = range(3)
NAMES = np.array(["d", "a", "g", "b", "f", "c", "e", "i", "h"])
AT_K = {
    "precision": metrics.precision_at_k,
    "recall": metrics.recall_at_k,
    "ndcg": metrics.ndcg_at_k,
    "propensity_scored_precision": lambda *args, **options: metrics.propensity_scored_precision_at_k(
        *args, np.linspace(0.1, 1, len(NAMES)), **options
    ),
    "propensity_scored_ndcg": lambda *args, **options: metrics.propensity_scored_ndcg_at_k(
        *args, np.linspace(0.1, 1, len(NAMES)), **options
    ),
}
WHOLE = {
    "coverage": metrics.coverage_error,
    "ranking_loss": metrics.label_ranking_loss,
    "average_precision": metrics.label_ranking_average_precision,
}
AREAS = {
    f"{average}-{curve}-{labels}": (
        lambda *args, average=average, curve=curve, labels=labels, **options: metrics.precision_recall_area(
            *args, average=average, curve=curve, labels=labels, **options
        )
    )
    for average, curve, labels in itertools.product(
        ("pooled", "labels", "weighted"), ("interpolated", "steps"), ("true", "all")
    )
}
RANKINGS = {**{name: (lambda *a, f=f, **o: f(*a, k=3, **o)) for name, f in AT_K.items()}, **WHOLE, **AREAS}


def case_of(seed, n=40, ties=False):
    """Sets, some empty and one label of them all absent; predictions that are often right, and scores."""
    generator = np.random.default_rng(seed)
    width = len(NAMES)
    true = generator.random((n, width)) < np.linspace(0.5, 0.0, width)
    predicted = true ^ (generator.random((n, width)) < 0.15)
    predicted[:, -2] = False
    proba = np.clip(0.5 * true + generator.random((n, width)), 0, 1.2) / 1.2
    if ties:
        proba = np.round(proba * 4) / 4
    return SimpleNamespace(
        true=true.astype(int),
        predicted=predicted.astype(int),
        proba=proba,
        weights=generator.integers(0, 4, n).astype(float),
        true_sets=[set(NAMES[row].tolist()) for row in true],
        predicted_sets=[set(NAMES[row].tolist()) for row in predicted],
    )


def forms(matrix, sets):
    yield matrix
    yield np.asfortranarray(matrix).astype(np.float32)
    yield matrix.astype(bool)
    yield pd.DataFrame(matrix, columns=NAMES)
    for make in (sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.csr_matrix, sp.dok_array):
        yield make(matrix)
    yield sets
    yield [tuple(sorted(each)) for each in sets]
    yield [[*each, *each] for each in sets]
    yield [np.array(sorted(each), dtype=str) for each in sets]
    yield pd.Series([list(each) for each in sets])


# Decisions


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("average", ["micro", "macro", "examples"])
@pytest.mark.parametrize("undefined", [0.0, 1.0, math.nan])
@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_precision_recall_f_agrees_with_scikit_learn(seed, average, undefined, beta):
    case = case_of(seed)
    options = {"sample_weight": case.weights, "beta": beta}
    theirs = {"average": "samples" if average == "examples" else average, "zero_division": undefined, **options}
    ours = metrics.precision_recall_f(case.true, case.predicted, average=average, undefined=undefined, **options)
    expected = sklearn.metrics.precision_recall_fscore_support(case.true, case.predicted, **theirs)[:3]
    assert ours == pytest.approx(expected, nan_ok=True)
    some = [1, 0, 7, 8]
    ours = metrics.precision_recall_f(
        case.true, case.predicted, average=average, undefined=undefined, labels=some, **options
    )
    expected = sklearn.metrics.precision_recall_fscore_support(case.true, case.predicted, labels=some, **theirs)[:3]
    assert ours == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("average", ["micro", "macro", "examples"])
@pytest.mark.parametrize("labels", [None, "true", ["a", "h", "e"]])
def test_all_forms_of_sets_mean_the_same(average, labels):
    case = case_of(5)
    options = {"average": average, "labels": labels, "classes": NAMES, "sample_weight": case.weights}
    expected = metrics.precision_recall_f(case.true, case.predicted, **options)
    loss = metrics.hamming_loss(case.true, case.predicted, sample_weight=case.weights)
    for true, predicted in itertools.product(
        forms(case.true, case.true_sets), forms(case.predicted, case.predicted_sets)
    ):
        assert metrics.precision_recall_f(true, predicted, **options) == pytest.approx(expected)
        assert metrics.hamming_loss(true, predicted, classes=NAMES, sample_weight=case.weights) == pytest.approx(loss)


@pytest.mark.parametrize("seed", SEEDS)
def test_losses_of_lists(seed):
    case = case_of(seed)
    theirs = sklearn.metrics.hamming_loss(case.true, case.predicted, sample_weight=case.weights)
    assert metrics.hamming_loss(case.true, case.predicted, sample_weight=case.weights) == pytest.approx(theirs)
    lists = (case.true_sets, case.predicted_sets)
    for name in ("accuracy", "zero_one_loss", "symmetric_difference_loss"):
        metric = getattr(metrics, name)
        expected = metric(case.true, case.predicted, sample_weight=case.weights)
        assert metric(*lists, sample_weight=case.weights) == pytest.approx(expected)
    for average in ("micro", "macro"):
        expected = metrics.f1(case.true, case.predicted, average=average)
        assert metrics.f1(*lists, average=average) == pytest.approx(expected)


def test_lists_of_numbers():
    """What has nothing but 0 and 1 is an indicator matrix, unless rows have one number only."""
    for make in (list, tuple, np.array):
        rows = [make([1, 0, 1]), make([0, 1, 0])]
        assert metrics.symmetric_difference_loss(rows, [make([1, 1, 1]), make([0, 1, 0])]) == 0.5
        assert metrics.f1([make([0]), make([1])], [make([0]), make([0])], average="macro") == 1 / 3  # labels 0 and 1
        assert metrics.symmetric_difference_loss([make([7, 3]), make([1, 0])], [make([3, 7]), make([2, 0])]) == 1
    assert metrics.symmetric_difference_loss([{0, 1}, {0, 1}], [{0, 1}, {1, 7}]) == 1


def test_choices_for_labels_without_a_true_item():
    # a is right, b is true and never predicted, c is predicted and never true, d is neither.
    true, predicted = [["a"], ["a", "b"]], [["a", "c"], ["a"]]
    options = {"average": "macro", "classes": list("abcd")}
    assert metrics.precision_recall_f(true, predicted, **options) == (0.25, 0.25, 0.25)
    assert metrics.precision_recall_f(true, predicted, labels="true", **options) == (0.5, 0.5, 0.5)
    assert metrics.precision_recall_f(true, predicted, undefined=1.0, **options) == (0.75, 0.75, 0.5)
    assert metrics.precision_recall_f(true, predicted, undefined=math.nan, **options) == (0.5, 0.5, 1 / 3)
    assert metrics.f1(true, predicted, average="macro") == 1 / 3
    assert metrics.precision_recall_f([[], []], [[], []], average="micro", undefined=math.nan) == pytest.approx(
        (math.nan,) * 3, nan_ok=True
    )
    assert metrics.accuracy([[], []], [[], []]) == 1


def test_lists_of_nodes_stand_for_the_paths_to_them():
    tree = Taxonomy.from_labels(["A/1", "A/2", "B/1", "B/2"])
    true, predicted = [["A/1", "B"], []], [{"A/2"}, {"B/1", "B"}]
    closed = [{"A", "A/1", "B"}, set()], [{"A", "A/2"}, {"B", "B/1"}]
    nodes = [np.array([[name in each for name in tree.names] for each in part], dtype=int) for part in closed]
    for name in ("accuracy", "symmetric_difference_loss", "h_loss", "hierarchical_precision_recall_f"):
        metric = getattr(metrics, name)
        assert metric(true, predicted, taxonomy=tree) == metric(*nodes, taxonomy=tree)
    levels = metrics.level_precision_recall_f(true, predicted, taxonomy=tree)
    np.testing.assert_array_equal(levels.f, [0.5, 0])  # A of A, B and A, B; nothing of A/1 and A/2, B/1
    np.testing.assert_array_equal(levels, metrics.level_precision_recall_f(*nodes, taxonomy=tree))
    leaves = np.eye(2, len(tree.names), 3)  # without their ancestors
    first = metrics.level_precision_recall_f(leaves, leaves, taxonomy=tree)
    assert first.true.tolist() == [0, 2]
    assert metrics.level_precision_recall_f(leaves, leaves, taxonomy=tree, close=True).true.tolist() == [2, 2]


# Rankings


def slow_order(scores, true, gains):
    """Labels from the best down; of equal scores, the wrong ones come first, then those that gain least."""
    return sorted(range(len(scores)), key=lambda c: (-scores[c], c in true, gains[c]))


def slow_at_k(proba, truth, k, gains, weights):
    """All metrics at k by walking down sorted labels."""
    precision, recall, ndcg, found, best, found_discounted, best_discounted = (np.zeros(len(proba)) for _ in range(7))
    for i, (scores, row) in enumerate(zip(proba, truth, strict=True)):
        true = set(np.flatnonzero(row))
        plain = slow_order(scores, true, np.zeros(len(scores)))[:k]
        top = slow_order(scores, true, gains)[:k]
        ideal = sorted(true, key=lambda c: -gains[c])[:k]
        precision[i] = sum(c in true for c in plain) / k
        recall[i] = sum(c in true for c in plain) / len(true) if true else math.nan
        dcg = sum(1 / math.log2(place + 2) for place, c in enumerate(plain) if c in true)
        ndcg[i] = dcg / sum(1 / math.log2(place + 2) for place in range(len(ideal))) if true else 0
        found[i], best[i] = sum(gains[c] for c in top if c in true), sum(gains[c] for c in ideal)
        found_discounted[i] = sum(gains[c] / math.log2(place + 2) for place, c in enumerate(top) if c in true)
        best_discounted[i] = sum(gains[c] / math.log2(place + 2) for place, c in enumerate(ideal))
    some = ~np.isnan(recall)
    return {
        "precision": np.average(precision, weights=weights),
        "recall": np.average(recall[some], weights=weights[some]),
        "ndcg": np.average(ndcg, weights=weights),
        "propensity_scored_precision": weights @ found / (weights @ best),
        "propensity_scored_ndcg": weights @ found_discounted / (weights @ best_discounted),
    }


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 3, 9])
def test_metrics_at_k_against_sorted_labels(seed, ties, k):
    case = case_of(seed, ties=ties)
    expected = slow_at_k(case.proba, case.true, k, 1 / np.linspace(0.1, 1, len(NAMES)), case.weights)
    for name, metric in AT_K.items():
        ours = metric(case.true, case.proba, k=k, sample_weight=case.weights)
        assert ours == pytest.approx(expected[name]), name
        assert metric(case.true_sets, case.proba, classes=NAMES, k=k, sample_weight=case.weights) == ours


@pytest.mark.parametrize("seed", SEEDS)
def test_ndcg_without_ties_agrees_with_scikit_learn(seed):
    case = case_of(seed)
    for k in (1, 2, 5):
        theirs = sklearn.metrics.ndcg_score(case.true, case.proba, k=k, sample_weight=case.weights)
        assert metrics.ndcg_at_k(case.true, case.proba, k=k, sample_weight=case.weights) == pytest.approx(theirs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
def test_whole_rankings_agree_with_scikit_learn(seed, ties):
    case = case_of(seed, ties=ties)
    case.true[0] = 1
    theirs = {
        "coverage": sklearn.metrics.coverage_error,
        "ranking_loss": sklearn.metrics.label_ranking_loss,
        "average_precision": sklearn.metrics.label_ranking_average_precision_score,
    }
    for name, metric in WHOLE.items():
        expected = theirs[name](case.true, case.proba, sample_weight=case.weights)
        assert metric(case.true, case.proba, sample_weight=case.weights) == pytest.approx(expected), name


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("ties", [False, True])
def test_scores_in_all_forms(name, ties):
    """All scores stored is the same as a dense array; the lowest left out, too, as long as they are the last tie."""
    case = case_of(7, ties=ties)
    case.proba += 0.01  # so that no stored score is zero
    metric = RANKINGS[name]
    expected = metric(case.true, case.proba)
    order = np.argsort(-case.proba, axis=1)
    pair = (order, np.take_along_axis(case.proba, order, axis=1))
    narrow = (order.astype(np.int32), pair[1].astype(np.float32))
    readonly = np.asfortranarray(case.proba)
    readonly.flags.writeable = False
    for proba in (sp.csr_array(case.proba), sp.coo_matrix(case.proba), pair, readonly):
        assert metric(sp.csc_array(case.true), proba) == pytest.approx(expected)
        assert metric(case.true_sets, proba, classes=NAMES) == pytest.approx(expected)
    for proba in (narrow, case.proba.astype(np.float32)):
        assert metric(case.true, proba) == pytest.approx(expected, abs=1e-6 if ties else 1e-3)
    # Only what is above a half is kept; the dense counterpart has a tie of the rest.
    kept = np.where(case.proba > 0.5, case.proba, 0)
    columns = np.where(pair[1] > 0.5, pair[0], -1)
    if name in AT_K:
        best = metric(case.true, np.where(kept > 0, kept, -np.inf) + 0 * case.proba)
        assert metric(case.true, sp.csr_array(kept)) <= best + 1e-12
    else:
        assert metric(case.true, sp.csr_array(kept)) == pytest.approx(metric(case.true, kept))
    assert metric(case.true, (columns, pair[1])) == pytest.approx(metric(case.true, sp.csr_array(kept)))


def test_two_rows_of_scores_are_not_a_pair():
    assert metrics.precision_at_k(np.eye(2), ((0.9, 0.1), (0.8, 0.2))) == 0.5


def test_labels_without_a_score_are_never_hits():
    true = [[1, 1, 0, 0]]
    stored = sp.csr_array(np.array([[0.5, 0, 0, 0]]))
    assert metrics.precision_at_k(true, stored, k=2) == 0.5
    assert metrics.recall_at_k(true, stored, k=4) == 0.5
    assert metrics.precision_at_k(true, stored, k=4) == 0.25
    assert metrics.coverage_error(true, stored) == 4
    assert metrics.reciprocal_rank(true, sp.csr_array((1, 4))) == 0
    assert metrics.precision_at_k(true, sp.csr_array((1, 4)), k=1) == 0
    # Negative scores rank above those that are not stored.
    stored = sp.csr_array(np.array([[-5.0, 0, 0, -4.0]]))
    assert metrics.precision_at_k(true, stored, k=2) == 0.5
    assert metrics.reciprocal_rank(true, stored) == 0.5
    below = sp.csr_array((np.array([-np.inf]), np.array([0]), np.array([0, 1])), shape=(1, 4))
    assert metrics.precision_at_k(true, below, k=1) == 1


def test_propensities():
    generator = np.random.default_rng(0)
    train = generator.random((50, 4)) < [0.9, 0.5, 0.1, 0.0]
    counts = train.sum(axis=0)
    for options in ({}, {"A": 0.6, "B": 2.6}):
        a, b = options.get("A", 0.55), options.get("B", 1.5)
        c = (math.log(50) - 1) * (b + 1) ** a
        expected = [1 / (1 + c * math.exp(-a * math.log(count + b))) for count in counts]
        np.testing.assert_allclose(metrics.label_propensities(train, **options), expected)
    weights = generator.integers(0, 3, 50)
    np.testing.assert_allclose(
        metrics.label_propensities(train, sample_weight=weights),
        metrics.label_propensities(np.repeat(train, weights, axis=0)),
    )
    flat = np.full(len(NAMES), 0.3)
    case = case_of(1)
    full = np.tile([1, 1, 0, 0, 0, 0, 0, 0, 1], (40, 1))  # as many labels in each row
    ours = metrics.propensity_scored_ndcg_at_k(full, case.proba, flat, k=3)
    assert ours == pytest.approx(metrics.ndcg_at_k(full, case.proba, k=3))


# Areas


def slow_curve(true, scores):
    """Points (true positives, false positives) for all thresholds, from the highest down."""
    return [(np.sum(true & (scores >= t)), np.sum(~true & (scores >= t))) for t in np.unique(scores)[::-1]]


def slow_area(true, scores, curve):
    """One precision-recall curve, point by point."""
    true = true.astype(bool)
    positives = true.sum()
    if positives == 0:
        return 0.0
    points = slow_curve(true, scores)
    if curve == "steps":
        reached = [0, *(hits for hits, _ in points)]
        return sum(
            (after - before) / positives * after / (after + false)
            for before, after, (_, false) in zip(reached, reached[1:], points, strict=False)
        )
    first_hits, first_false = points[0]
    line = [(0.0, first_hits / (first_hits + first_false)), (first_hits, first_hits / (first_hits + first_false))]
    for (hits, false), (more_hits, more_false) in itertools.pairwise(points):
        for step in range(1, more_hits - hits):
            between = false + (more_false - false) * step / (more_hits - hits)
            line.append((hits + step, (hits + step) / (hits + step + between)))
        line.append((more_hits, more_hits / (more_hits + more_false)))
    return sum((x2 - x1) * (y1 + y2) / 2 for (x1, y1), (x2, y2) in itertools.pairwise(line)) / positives


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("curve", ["interpolated", "steps"])
def test_areas_point_by_point(seed, ties, curve):
    case = case_of(seed, ties=ties)
    frequency = case.true.sum(axis=0)
    some = frequency > 0
    assert not some.all()
    each = np.array([slow_area(t, s, curve) for t, s in zip(case.true.T, case.proba.T, strict=True)])
    expected = {
        ("pooled", "all"): slow_area(case.true.reshape(-1), case.proba.reshape(-1), curve),
        ("pooled", "true"): slow_area(case.true[:, some].reshape(-1), case.proba[:, some].reshape(-1), curve),
        ("labels", "all"): each.mean(),
        ("labels", "true"): each[some].mean(),
        ("weighted", "true"): np.average(each, weights=frequency),
        ("weighted", "all"): np.average(each, weights=frequency),
    }
    for (average, labels), area in expected.items():
        ours = metrics.precision_recall_area(case.true, case.proba, average=average, curve=curve, labels=labels)
        assert ours == pytest.approx(area), (average, labels)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_step_areas_agree_with_scikit_learn(seed, weighted):
    case = case_of(seed, ties=seed == 1)
    case.true[:3, -1] = 1  # scikit-learn has a value for labels without a true item only with a warning
    options = {"sample_weight": np.where(np.arange(40) < 3, 1, case.weights)} if weighted else {}
    for ours, theirs in (("pooled", "micro"), ("labels", "macro"), ("weighted", "weighted")):
        area = metrics.precision_recall_area(
            case.true, case.proba, average=ours, curve="steps", labels="all", **options
        )
        expected = sklearn.metrics.average_precision_score(case.true, case.proba, average=theirs, **options)
        assert area == pytest.approx(expected), ours


def test_areas_by_hand():
    # One label. Thresholds: 0.9 has a wrong item, 0.5 three true ones and a wrong one.
    true, proba = np.array([[0], [1], [1], [1], [0]]), np.array([[0.9], [0.5], [0.5], [0.5], [0.5]])
    # Through (0, 1), (1, 4/3), (2, 5/3), (3, 2): precisions 0, 3/7, 6/11, 3/5.
    line = (0 + 3 / 7) / 2 + (3 / 7 + 6 / 11) / 2 + (6 / 11 + 3 / 5) / 2
    assert metrics.precision_recall_area(true, proba) == pytest.approx(line / 3)
    assert metrics.precision_recall_area(true, proba, curve="steps") == pytest.approx(3 / 5)
    assert metrics.precision_recall_area(true, 0 * proba) == pytest.approx(3 / 5)
    assert metrics.precision_recall_area(true, true) == 1
    assert math.isnan(metrics.precision_recall_area(0 * true, proba))


# Laws


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(RANKINGS)))
def test_only_the_order_of_scores_matters(seed, name):
    case = case_of(seed, n=12, ties=seed % 2 == 0)
    case.true[0, 0] = 1
    metric = RANKINGS[name]
    expected = metric(case.true, case.proba)
    assert metric(case.true, np.exp(3 * case.proba) - 7) == pytest.approx(expected)
    order = np.random.default_rng(seed).permutation(len(NAMES))
    if "propensity" not in name:
        assert metric(case.true[:, order], case.proba[:, order]) == pytest.approx(expected)
    rows = np.random.default_rng(seed).permutation(12)
    assert metric(case.true[rows], case.proba[rows]) == pytest.approx(expected)
    perfect = metric(case.true, case.true / np.linspace(0.1, 1, len(NAMES)))
    assert perfect <= expected + 1e-12 if name in ("coverage", "ranking_loss") else perfect >= expected - 1e-12


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted({*AT_K, *WHOLE} | {n for n in AREAS if "steps" in n})))
def test_weights_are_repetitions(seed, name):
    case = case_of(seed, n=12)
    case.weights[0] = case.true[0, 0] = 1
    repeats = case.weights.astype(int)
    metric = RANKINGS[name]
    expected = metric(np.repeat(case.true, repeats, axis=0), np.repeat(case.proba, repeats, axis=0))
    for proba in (case.proba, sp.csr_array(case.proba)):
        assert metric(case.true, proba, sample_weight=case.weights) == pytest.approx(expected)


# Size


def test_many_labels_never_become_a_dense_array():
    generator = np.random.default_rng(0)
    n, width, best = 2000, 100_000, 20
    columns = generator.integers(0, width // best, (n, best)) + np.arange(best) * (width // best)  # all different
    values = generator.random((n, best))
    true = sp.csr_array((np.ones(3 * n), columns[:, [0, 5, 11]].reshape(-1), np.arange(0, 3 * n + 1, 3)), (n, width))
    stored = sp.csr_array((values.reshape(-1), columns.reshape(-1), np.arange(0, n * best + 1, best)), shape=(n, width))
    answer = stored > 0.5
    lists = [tuple(row.tolist()) for row in columns[:, :3]]
    tracemalloc.start()
    try:
        propensities = metrics.label_propensities(true)
        for proba in (stored, (columns, values)):
            for k in (1, 5):
                metrics.precision_at_k(true, proba, k=k)
                metrics.recall_at_k(true, proba, k=k)
                metrics.ndcg_at_k(true, proba, k=k)
                metrics.propensity_scored_precision_at_k(true, proba, propensities, k=k)
                metrics.propensity_scored_ndcg_at_k(true, proba, propensities, k=k)
            for metric in (*WHOLE.values(), *AREAS.values()):
                metric(true, proba)
        for average in ("micro", "macro", "examples"):
            metrics.precision_recall_f(true, answer, average=average)
            metrics.precision_recall_f(lists, answer, average=average, classes=np.arange(width))
        metrics.hamming_loss(true, answer)
        metrics.accuracy(true, answer)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n * width / 4  # a dense array of single bytes would have n * width


def test_a_hundred_thousand_rows_and_labels_take_memory_for_those_that_rows_have():
    generator = np.random.default_rng(1)
    n = width = 100_000
    best, has, k = 8, 3, 5
    columns = generator.integers(0, width // best, (n, best)) + np.arange(best) * (width // best)  # all different
    scores = generator.random((n, best))
    ends = np.arange(0, has * n + 1, has)
    true = sp.csr_array((np.ones(has * n, dtype=np.int8), columns[:, :has].reshape(-1), ends), shape=(n, width))
    answered = columns[:, 1 : 1 + has]
    answer = sp.csr_array((np.ones(has * n, dtype=np.int8), answered.reshape(-1), ends), shape=(n, width))
    lists = [tuple(row) for row in columns[:, :has].tolist()]
    tracemalloc.start()
    try:
        precision = metrics.precision_at_k(true, (columns, scores), k=k)
        f1 = metrics.precision_recall_f(true, answer, average="micro")[2]
        of_lists = metrics.precision_recall_f(lists, answer, average="micro", classes=np.arange(width))[2]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    first = np.argsort(-scores, axis=1)[:, :k]
    assert precision == pytest.approx((first < has).sum() / (n * k))
    assert f1 == of_lists == pytest.approx(2 / 3)  # two of three labels are right in every row
    assert peak < 300e6  # a dense array of single bytes would have 1e10


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.precision_recall_f([[1, 0]], [[0, 1]], average="samples"), "average is 'samples'"),
        (lambda: metrics.precision_recall_f([[1, 0]], [[0, 1]], average="micro", undefined=0.5), "undefined must be"),
        (lambda: metrics.precision_recall_f([[1, 0]], [[0, 1]], average="micro", undefined=True), "undefined must be"),
        (lambda: metrics.precision_recall_f([[1, 0]], [[0, 1]], average="micro", labels="all"), "labels is 'all'"),
        (lambda: metrics.precision_recall_f([[1, 0]], [[0, 2]], average="micro"), "y_pred lists labels by name"),
        (
            lambda: metrics.precision_recall_f([[1, 0]], [[0, 0.7]], average="micro"),
            "y_pred must be an indicator matrix",
        ),
        (lambda: metrics.precision_recall_f([["a"]], [["b"]], average="micro", classes=["a"]), "not in classes: 'b'"),
        (lambda: metrics.precision_recall_f([["a"]], [{1}], average="micro"), "both must be strings or both numbers"),
        (lambda: metrics.precision_recall_f([["a"]], np.eye(1), average="micro"), "classes is needed"),
        (lambda: metrics.precision_recall_f([["a"], ["b"]], [["b"]], average="micro"), "2 items but y_pred has 1"),
        (
            lambda: metrics.precision_recall_f(np.eye(2), [["b"]], average="micro", classes=["a", "b"]),
            r"shape \(2, 2\)",
        ),
        (lambda: metrics.precision_recall_f([["a", None]], [["b"]], average="micro"), "None"),
        (lambda: metrics.accuracy([{0}, {1.5}], [{0}, {math.nan}]), "nan"),
        (lambda: metrics.accuracy([[["a"]], [["b"]]], [["a"], ["b"]]), "lists of lists"),
        (
            lambda: metrics.accuracy([[["a"], ["a", "b"]], [["b"], ["c"]]], [["a"], ["b"]]),
            "one list of labels per item",
        ),
        (lambda: metrics.hamming_loss([["a"]], [["b"]]), "classes is needed"),
        (lambda: metrics.precision_at_k([["a"]], [[0.1, 0.9]]), "classes is needed"),
        (lambda: metrics.precision_at_k(["a"], ([[0]], [[0.9]])), "classes is needed"),
        (lambda: metrics.precision_at_k([["a"], ["a", "b"]], ([[0], [1]], [[0.9], [0.8]])), "classes is needed"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0], [1, 0]], [[0.9], [0.8]])), "proba must be numbers"),
        (lambda: metrics.precision_at_k(np.eye(2), (0.5, 0.5)), r"proba has shape \(2,\)"),
        (lambda: metrics.precision_at_k(np.eye(2), np.eye(2, 3)), "y_true has 2 columns but proba has 3"),
        (lambda: metrics.precision_at_k(np.eye(2), np.eye(3, 2)), "y_true has 2 items but proba has 3"),
        (
            lambda: metrics.precision_at_k(np.eye(2), np.eye(2) * math.nan),
            "NaN values, the first in row 0 for column 0",
        ),
        (lambda: metrics.precision_at_k(np.eye(2), sp.csr_array([[0, 0], [0, math.nan]])), "row 1 for column 1"),
        (lambda: metrics.precision_at_k(np.eye(2), sp.csr_array((2, 0))), "proba is empty"),
        (lambda: metrics.precision_at_k(np.eye(2), sp.csr_array(np.eye(2) * 1j)), "proba must be numbers"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0], [2]], [[0.5], [0.5]])), "column numbers from 0 to 2"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0], [-2]], [[0.5], [0.5]])), "column numbers from -2 to 0"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0, 0], [1, 0]], [[0.5, 0.2]] * 2)), "column 0 twice in row 0"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0], [1]], [[0.5, 0.2]] * 2)), "of the same shape"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0.0], [1.0]], [[0.5], [0.2]])), "column numbers and scores"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0], [1]], [["x"], ["y"]])), "numbers as scores"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0], [1]], [[0.5], [math.nan]])), "row 1 for column 1"),
        (lambda: metrics.precision_at_k(np.eye(2), ([[0], [1]], [[0.5], [0.2]]), k=2), "best 1 labels of each item"),
        (lambda: metrics.ndcg_at_k(np.eye(2), np.eye(2), k=3), "k must be at most"),
        (lambda: metrics.propensity_scored_ndcg_at_k(np.eye(2), np.eye(2), [0.5]), "propensities has 1 numbers"),
        (lambda: metrics.propensity_scored_ndcg_at_k(np.eye(2), np.eye(2), [0.5, 0]), "propensities must be"),
        (lambda: metrics.propensity_scored_ndcg_at_k(np.eye(2), np.eye(2), "x"), "propensities must be"),
        (lambda: metrics.label_propensities(np.eye(2)), "at least three"),
        (lambda: metrics.label_propensities([["a"]] * 3), "classes is needed"),
        (lambda: metrics.label_propensities(np.eye(3), B=0), "B must be"),
        (lambda: metrics.precision_recall_area(np.eye(2), np.eye(2), curve="x"), "curve"),
        (lambda: metrics.precision_recall_area(np.eye(2), np.eye(2), average="micro"), "average"),
        (lambda: metrics.precision_recall_area(np.eye(2), np.eye(2), labels=["a"]), "labels"),
        (lambda: metrics.precision_recall_area(np.eye(2), np.eye(2), sample_weight=[1, 1]), 'curve="steps"'),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
