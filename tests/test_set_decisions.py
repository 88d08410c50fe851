"""Sets of least expected loss, against all sets and all truths one by one."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from taxolearn import Taxonomy
from taxolearn.set_decisions import LabelTree, best_sets, best_thresholds

TREE = Taxonomy.from_labels(["a/b", "a/c", "d/e/g", "f"])
CLASSES = np.sort(TREE.names[1:].astype(str))
LABELS = LabelTree(TREE, CLASSES)
SETS = np.array(list(product([False, True], repeat=len(CLASSES))))
PARENTS = LABELS.parents
CLOSED = SETS[[bool((~row | (PARENTS < 0) | row[PARENTS]).all()) for row in SETS]]

probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=6).map(lambda p: np.array([p]))
conditionals = st.lists(st.floats(0.01, 0.99), min_size=len(CLASSES), max_size=len(CLASSES)).map(np.array)


def consistent(given):
    """Probabilities of labels from those given the label above them."""
    p = given.copy()
    for label in np.argsort(LABELS.depths):
        if PARENTS[label] >= 0:
            p[label] *= p[PARENTS[label]]
    return p


def tree_probability(row, given):
    """Of a closed set, where labels are independent given the one above."""
    is_asked = (PARENTS < 0) | row[PARENTS]
    return np.prod(np.where(is_asked, np.where(row, given, 1 - given), 1.0))


def f1(answer, truth):
    total = answer.sum() + truth.sum()
    return 1.0 if total == 0 else 2 * (answer & truth).sum() / total


def h_loss(answer, truth):
    wrong = answer != truth
    first = [wrong[k] and not any(wrong[j] for j in ancestors(k)) for k in range(len(wrong))]
    return sum(first)


def ancestors(label):
    while PARENTS[label] >= 0:
        label = PARENTS[label]
        yield label


@settings(max_examples=40, deadline=None)
@given(probabilities)
def test_f1_is_the_best_of_all_sets(proba):
    sets = np.array(list(product([False, True], repeat=proba.shape[1])))
    weights = np.array([np.prod(np.where(row, proba[0], 1 - proba[0])) for row in sets])
    values = np.array([sum(w * f1(answer, truth) for w, truth in zip(weights, sets, strict=True)) for answer in sets])
    found = best_sets(proba, "f1")[0]
    assert values[(sets == found).all(axis=1)][0] == pytest.approx(values.max(), abs=1e-9)


def test_f1_with_many_labels_is_that_of_simulated_truths():
    rng = np.random.default_rng(0)
    proba = rng.beta(0.3, 6.0, size=(3, 400))
    found = best_sets(proba, "f1")
    for p, chosen in zip(proba, found, strict=True):
        truths = rng.uniform(size=(4000, 400)) < p
        order = np.argsort(-p)
        assert chosen[order[: chosen.sum()]].all()
        hits = np.cumsum(truths[:, order], axis=1)
        sizes = np.arange(1, 401)
        means = (2 * hits / (sizes + truths.sum(axis=1)[:, None])).mean(axis=0)
        assert means[chosen.sum() - 1] >= means.max() - 0.005


def test_f1_of_nothing_and_of_all():
    assert not best_sets(np.zeros((2, 5)), "f1").any()
    assert best_sets(np.ones((2, 5)), "f1").all()
    assert not best_sets(np.full((1, 4), 1e-4), "f1").any()


@settings(max_examples=25, deadline=None)
@given(conditionals)
@pytest.mark.parametrize("loss", ["hierarchical", "zero-one", "hamming", "f1"])
def test_sets_of_a_tree_are_closed(loss, given):
    chosen = best_sets(consistent(given)[None, :], loss, LABELS)[0]
    assert (chosen == CLOSED).all(axis=1).any()


@settings(max_examples=25, deadline=None)
@given(conditionals)
@pytest.mark.parametrize(
    ("loss", "cost"),
    [
        ("hierarchical", h_loss),
        ("zero-one", lambda answer, truth: float((answer != truth).any())),
        ("hamming", lambda answer, truth: (answer != truth).sum()),
    ],
)
def test_losses_of_a_tree_are_the_least_of_all_closed_sets(loss, cost, given):
    weights = [tree_probability(row, given) for row in CLOSED]
    assert sum(weights) == pytest.approx(1.0)
    costs = [sum(w * cost(answer, truth) for w, truth in zip(weights, CLOSED, strict=True)) for answer in CLOSED]
    chosen = best_sets(consistent(given)[None, :], loss, LABELS)[0]
    assert costs[int((chosen == CLOSED).all(axis=1).argmax())] == pytest.approx(min(costs), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(conditionals)
def test_parents_are_raised_to_what_is_below(p):
    raised = LABELS.raise_parents(p[None, :].copy())[0]
    for label, node in enumerate(CLASSES):
        below = [k for k, other in enumerate(CLASSES) if node in TREE.path(str(other))]
        assert raised[label] == max(p[below])


def test_probabilities_of_zero():
    assert not best_sets(np.zeros((1, len(CLASSES))), "zero-one", LABELS).any()
    assert best_sets(np.ones((1, len(CLASSES))), "zero-one", LABELS).all()


def test_what_is_refused():
    with pytest.raises(ValueError, match="needs a taxonomy"):
        best_sets(np.array([[0.5]]), "hierarchical")
    with pytest.raises(ValueError, match="loss is 'f2'"):
        best_sets(np.array([[0.5]]), "f2")


def test_thresholds_are_the_best_of_all():
    rng = np.random.default_rng(1)
    proba = np.round(rng.uniform(size=(30, 4)), 1)
    truth = rng.uniform(size=(30, 4)) < proba**2
    truth[:, 3] = False
    thresholds = best_thresholds(proba, sp.csr_array(truth.astype(int)))
    assert thresholds[3] == 0.5
    for label in range(3):
        p, y = proba[:, label], truth[:, label]
        best = max(f1(p > t, y) for t in np.arange(-0.05, 1.0, 0.05))
        assert f1(p > thresholds[label], y) == pytest.approx(best)


def test_a_label_that_is_hardly_ever_found_keeps_its_threshold():
    proba = np.linspace(0.4, 0.0, 200)[:, None].repeat(2, axis=1)
    truth = np.zeros((200, 2), dtype=int)
    truth[150, 0] = 1  # behind 150 others: an F1 of 0.013
    truth[[2, 9], 1] = 1  # among the first ten: an F1 of 1/3
    thresholds = best_thresholds(proba, sp.csr_array(truth))
    assert thresholds[0] == 0.5
    assert proba[9, 1] > thresholds[1] > proba[10, 1] or proba[2, 1] > thresholds[1] > proba[3, 1]
