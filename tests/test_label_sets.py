"""Rows with any number of labels: reading, closing upwards, writing back, bad input, and the criterion of such rows."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from taxolearn import (
    CentroidClassifier,
    CrossValidation,
    KernelLogisticClassifier,
    NaiveBayesClassifier,
    PoolClassifier,
    Taxonomy,
    TopDownClassifier,
    _core,
)
from taxolearn.kernels import Linear
from taxolearn.model_selection import CrossValidationObjective
from taxolearn.targets import (
    LabelSets,
    closed_sets,
    is_label_sets,
    nodes_above,
    read_label_sets,
    read_targets,
    row_weights,
    set_targets,
)

pandas = pytest.importorskip("pandas")

TREE = Taxonomy.from_labels(["a/b", "a/c", "d/e/g", "f"])
NODES = ["a", "a/b", "a/c", "d", "d/e", "d/e/g", "f"]


def names_of(sets, classes):
    return [set(classes[sets.labels[a:b]].tolist()) for a, b in zip(sets.offsets, sets.offsets[1:], strict=False)]


def written(y, taxonomy=None):
    """What is read, written back."""
    sets, classes, form = read_label_sets(y, taxonomy)
    above = None if taxonomy is None else nodes_above(taxonomy, classes)
    return form.write(sets.matrix(), classes, above)


class TestReading:
    @pytest.mark.parametrize("y", [[["b", "a"], [], ["c"]], [{"b", "a"}, set(), {"c"}], [("a", "b"), (), "c"]])
    def test_lists_of_sets(self, y):
        sets, classes, _ = read_label_sets(y, None)
        assert classes.tolist() == ["a", "b", "c"]
        assert names_of(sets, classes) == [{"a", "b"}, set(), {"c"}]

    def test_columns_of_tables_and_arrays(self):
        rows = [np.array(["a", "b"]), np.array([], dtype=str), np.array(["c"])]
        for y in (pandas.Series(rows), np.array([*rows, None], dtype=object)[:3]):
            assert is_label_sets(y)
            sets, classes, _ = read_label_sets(y, None)
            assert names_of(sets, classes) == [{"a", "b"}, set(), {"c"}]

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, object])
    def test_indicators_of_any_type(self, dtype):
        dense = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1]])
        wanted = [{0, 1}, set(), {1, 2}]
        formats = [
            getattr(sp, f"{name}_{kind}")(dense) for name in ("csr", "csc", "coo") for kind in ("array", "matrix")
        ]
        for y in [dense.astype(dtype), np.asfortranarray(dense.astype(dtype)), *formats, dense.tolist()]:
            assert is_label_sets(y)
            sets, classes, _ = read_label_sets(y, None)
            assert names_of(sets, classes) == wanted

    def test_read_only_and_stored_zeros(self):
        dense = np.array([[1.0, 0.0], [1.0, 1.0]])
        dense.flags.writeable = False
        assert names_of(*read_label_sets(dense, None)[:2]) == [{0}, {0, 1}]
        stored = sp.csr_array((np.array([1, 0, 1]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
        assert names_of(*read_label_sets(stored, None)[:2]) == [{0}, {1}]
        assert stored.nnz == 3  # the caller's matrix stays as it is

    def test_plain_labels_are_no_sets(self):
        for y in (["a", "b"], [1, 2], np.array([0, 1]), np.array([[0], [1]]), pandas.Series(["a", "b"]), ["a", None]):
            assert not is_label_sets(y)

    def test_inner_nodes_imply_what_is_above_them(self):
        sets, classes, _ = read_label_sets([["d/e"], ["a/b", "f"], [], ["d/e/g"]], TREE)
        assert classes.tolist() == NODES
        assert names_of(sets, classes) == [{"d", "d/e"}, {"a", "a/b", "f"}, set(), {"d", "d/e", "d/e/g"}]

    def test_columns_without_names_are_leaves_or_nodes(self):
        leaves, nodes = np.eye(4, dtype=int), np.eye(7, dtype=int)
        sets, classes, _ = read_label_sets(leaves, TREE)
        assert names_of(sets, classes) == [set(TREE.path(leaf)) for leaf in sorted(TREE.classes.tolist())]
        sets, classes, _ = read_label_sets(nodes, TREE)
        assert names_of(sets, classes) == [set(TREE.path(node)) for node in NODES]

    def test_targets_are_in_the_order_of_the_core(self):
        sets, classes, _ = read_label_sets([["d/e"], ["a/b", "f"], [], ["d/e/g"]], TREE)
        targets = set_targets(sets, classes, TREE)
        assert targets.classes.tolist() == targets.in_core_order[targets.order].tolist() == NODES
        assert names_of(targets.sets, targets.in_core_order) == names_of(sets, classes)


class TestWriting:
    @pytest.mark.parametrize(
        "y",
        [
            [("a", "b"), (), ("c",)],
            [{"a", "b"}, set(), {"c"}],
            np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1]]),
        ],
    )
    def test_the_form_that_came(self, y):
        out = written(y)
        assert type(out) is type(y)
        assert np.array_equal(out, y) if isinstance(y, np.ndarray) else out == y

    def test_sparse_and_frames(self):
        y = sp.csr_array(np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1]]))
        assert sp.issparse(written(y))
        assert (written(y) != y).nnz == 0
        frame = pandas.DataFrame({"z": [1, 0], "a": [1, 1]})
        pandas.testing.assert_frame_equal(written(frame), frame)
        inner = pandas.DataFrame({"d": [1, 0, 1], "a/b": [0, 1, 0]})
        pandas.testing.assert_frame_equal(written(inner, TREE), inner)

    def test_sets_that_leave_out_what_is_implied(self):
        y = [("d/e",), ("a/b", "f"), (), ("d/e/g",), ("a",)]
        assert written(y, TREE) == y

    def test_sets_that_hold_what_is_implied(self):
        y = [("d", "d/e"), ("a", "a/b", "f"), (), ("d", "d/e", "d/e/g"), ("a",)]
        assert written(y, TREE) == y

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.sets(st.sampled_from(NODES)), min_size=1, max_size=6).filter(any))
    def test_closing_is_what_paths_say(self, y):
        sets, classes, _ = read_label_sets(y, TREE)
        wanted = [{above for label in row for above in TREE.path(label)} for row in y]
        assert names_of(sets, classes) == wanted
        above = nodes_above(TREE, classes)
        assert (closed_sets(sets.matrix(), above) != sets.matrix()).nnz == 0


class TestBadInput:
    @pytest.mark.parametrize(
        ("y", "taxonomy", "message"),
        [
            (np.array([[0, 1], [2, 0]]), None, "row 1, column 0 is 2"),
            (np.array([[0, 1], [0.5, 0]]), None, "row 1, column 0 is 0.5"),
            (sp.csr_array(np.array([[0, 1], [-1, 0]])), None, "row 1, column 0 is -1"),
            (np.array([[0, 1], [1, np.nan]]), None, "row 1, column 1 is NaN"),
            (sp.csr_array(np.array([[0, 1], [1, np.nan]])), None, "row 1, column 1 is NaN"),
            (np.array([["x", "y"], ["x", "z"]]), None, "are no numbers"),
            (np.zeros((3, 2)), None, "none of its 3 rows has a label"),
            (sp.csr_array((3, 2)), None, "none of its 3 rows has a label"),
            (np.zeros((0, 2)), None, "shape \\(0, 2\\)"),
            ([[], []], None, "no row has a label"),
            ([set(), set()], TREE, "none of its 2 rows has a label"),
            ([["a/x"], ["f"]], TREE, "'a/x'; is 'a/"),
            ([["root"], ["f"]], TREE, "is the root"),
            (np.eye(5, dtype=int), TREE, "5 columns, expected 4, one for each leaf .* or 7"),
            ([None, ["a"]], None, "row 0 is None"),
            ([["a"], [None]], None, "a label is missing"),
            ([["a"], float("nan")], None, "row 1 is nan"),
        ],
    )
    def test_errors_say_what_is_wrong(self, y, taxonomy, message):
        with pytest.raises(ValueError, match=message):
            read_label_sets(y, taxonomy)

    @pytest.mark.parametrize("y", [[["a", 1.5]], [["a", ["b"]]], [["a"], [1]], [[True], [False]]])
    def test_what_is_no_label(self, y):
        with pytest.raises(TypeError, match=r"no label|strings and numbers"):
            read_label_sets(y, None)

    def test_columns_of_the_same_name(self):
        with pytest.raises(ValueError, match="more than one column named 'a'"):
            read_label_sets(pandas.DataFrame([[1, 0], [0, 1]], columns=["a", "a"]), None)

    def test_columns_of_another_tree(self):
        with pytest.raises(ValueError, match="columns of y: not in the taxonomy: 'a/z'"):
            read_label_sets(pandas.DataFrame({"a/z": [1, 0], "f": [1, 1]}), TREE)

    def test_a_label_that_no_row_has(self):
        with pytest.warns(UserWarning, match="no row has the label 1"):
            sets, _, _ = read_label_sets(np.array([[1, 0], [1, 0]]), None)
        assert sets.n_labels == 2


class TestOfOneClass:
    """Estimators of one class per row say so, and name the one for several."""

    @pytest.mark.parametrize(
        "estimator",
        [KernelLogisticClassifier, TopDownClassifier, NaiveBayesClassifier, CentroidClassifier, PoolClassifier],
    )
    @pytest.mark.parametrize("kind", [np.array, sp.csr_array])
    def test_indicators_of_several_labels(self, estimator, kind):
        y = kind([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
        with pytest.raises((ValueError, TypeError), match="RecursiveRegularizationClassifier"):
            estimator().fit(np.eye(3), y)

    def test_what_looks_like_probabilities_keeps_its_advice(self):
        with pytest.raises(ValueError, match="divide each row by its sum"):
            read_targets(np.array([[0.5, 0.2], [1.0, 0.0]]), None, "below")

    def test_one_hot_rows_are_probabilities(self):
        assert read_targets(np.eye(3), None, "below").labels.tolist() == [0, 1, 2]

    def test_sets_that_are_closed_upwards(self):
        with pytest.warns(UserWarning, match="every row names all nodes above"):
            read_targets([["a", "a/b"], ["f"], ["d", "d/e"]], TREE, "below")

    def test_partial_labels_are_not_disturbed(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_targets([["a/b", "f"], "a", ["a/b"], ["a/b", "a"], "f"], TREE, "below")
            read_targets([["x", "y"], ["x"], ["y"]], None, "below")


def random_sets(rng, n, width, share=0.3):
    dense = rng.uniform(size=(n, width)) < share
    return dense, LabelSets.of(sp.csr_array(dense.astype(np.int8)))


class TestSets:
    def test_rarest_and_weights(self):
        dense, sets = random_sets(np.random.default_rng(0), 40, 6)
        counts = dense.sum(axis=0)
        for row, label in enumerate(sets.rarest()):
            here = np.flatnonzero(dense[row])
            assert label == (-1 if len(here) == 0 else here[counts[here].argmin()])
        targets = set_targets(sets, np.arange(6), None)
        weights = row_weights(targets, None, {0: 3.0}, np.zeros((40, 1)))
        wanted = [np.where(np.flatnonzero(row) == 0, 3.0, 1.0).mean() if row.any() else 1.0 for row in dense]
        np.testing.assert_allclose(weights, wanted)

    def test_the_core_sees_what_a_matrix_says(self):
        rng = np.random.default_rng(1)
        dense, sets = random_sets(rng, 30, 5)
        X = rng.normal(size=(30, 4))
        prior = _core.Prior(kernels=[Linear(2.0).to_core()], kernel_of=[], coupling=None, intercept_variance=1.0)
        results = [
            _core.fit(X=X, likelihood=each, prior=prior, settings=_core.FitSettings(tol=1e-10), n_threads=1)
            for each in (
                _core.IndependentLogisticOfSets(sets.labels, sets.offsets, 5),
                _core.IndependentLogistic(dense.astype(np.float64), 5),
            )
        ]
        assert results[0].objective == pytest.approx(results[1].objective, rel=1e-12)
        np.testing.assert_allclose(results[0].take_weights(), results[1].take_weights(), atol=1e-9)

    @pytest.mark.parametrize(
        ("labels", "offsets"),
        [([0, 7], [0, 2]), ([1, 0], [0, 2]), ([0, 1], [0, 1]), ([0, 1], [1, 2]), ([], []), ([0, 1], [0, 10**9, 2])],
    )
    def test_the_core_refuses_sets_that_are_none(self, labels, offsets):
        with pytest.raises(ValueError, match=r"label|offsets"):
            _core.IndependentLogisticOfSets(np.array(labels, dtype=np.int32), np.array(offsets, dtype=np.int64), 3)


class TestCriterion:
    @pytest.mark.parametrize("taxonomy", [None, Taxonomy.from_labels(["a/b", "a/c", "d"])], ids=["flat", "tree"])
    @pytest.mark.parametrize("learn_temperature", [False, True])
    def test_gradient_by_finite_differences(self, taxonomy, learn_temperature):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(60, 4))
        dense = X @ rng.normal(size=(4, 3)) + rng.normal(size=(60, 3)) > 0.8
        model = KernelLogisticClassifier(
            Linear(0.5),
            loss="independent",
            taxonomy=taxonomy,
            tuning=CrossValidation(3, learn_temperature=learn_temperature),
        )
        sets = LabelSets.of(sp.csr_array(dense.astype(np.int8)))
        objective = CrossValidationObjective(model, X, sets, classes=np.arange(3))
        theta = objective.theta + rng.normal(size=len(objective.theta)) * 0.3
        _, gradient = objective.value_and_gradient(theta, 1e-11)
        step = 1e-3
        for k in range(len(theta)):
            move = np.zeros(len(theta))
            move[k] = step
            slope = (objective.value(theta + move, 1e-11) - objective.value(theta - move, 1e-11)) / (2 * step)
            assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-5)

    def test_value_is_that_of_scikit_learn(self):
        """The sum of losses of held-out rows, each label by a model of its own."""
        rng = np.random.default_rng(3)
        X = rng.normal(size=(90, 3))
        dense = X @ rng.normal(size=(3, 2)) + rng.normal(size=(90, 2)) > 0
        folds = np.arange(90) % 3
        tuning = CrossValidation(folds, learn_temperature=False, deviation=None)
        model = KernelLogisticClassifier(Linear(0.7), loss="independent", intercept_variance=0.0, tuning=tuning)
        sets = LabelSets.of(sp.csr_array(dense.astype(np.int8)))
        objective = CrossValidationObjective(model, X, sets, classes=np.arange(2))
        total = 0.0
        for fold in range(3):
            train, test = folds != fold, folds == fold
            for label in range(2):
                one = LogisticRegression(C=0.7, fit_intercept=False, tol=1e-10, max_iter=1000)
                u = one.fit(X[train], dense[train, label]).decision_function(X[test])
                total -= np.log(expit(np.where(dense[test, label], u, -u))).sum()
        assert objective.value(objective.theta) == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        NaiveBayesClassifier(),
        CentroidClassifier(),
        TopDownClassifier(Taxonomy.from_labels(["x/a", "x/b", "y/c"])),
        KernelLogisticClassifier(loss="independent"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_lists_of_several_labels_name_the_classifier_for_them(model):
    """Where a list cannot be taken for classes of which one is right, nobody has to guess what is meant."""
    y = [["x/a", "y/c"], ["x/b"], ["x/a", "x/b", "y/c"], ["y/c"]] * 5
    with pytest.raises(ValueError, match="RecursiveRegularizationClassifier is for rows"):
        model.fit(np.ones((20, 2)), y)
