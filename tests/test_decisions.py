"""Decisions against brute force over all answers."""

import numpy as np
import pytest
from trees import half_path, paths, random_taxonomy

from taxolearn import Taxonomy
from taxolearn.decisions import decide, expected_loss, node_proba


def random_proba(rng, n_rows, n_classes):
    proba = rng.dirichlet(np.full(n_classes, 0.3), size=n_rows)
    return proba / proba.sum(axis=1, keepdims=True)


def loss_matrix(taxonomy, loss):
    """Loss of every node as an answer (columns) for every class as the truth (rows)."""
    leaves = taxonomy.n_inner + np.arange(taxonomy.n_classes)
    if loss == "zero-one":
        return 1.0 - paths(taxonomy)
    if loss == "parent":
        return (taxonomy.parents[leaves][:, None] != taxonomy.parents[None, :]).astype(float)
    return np.array([[half_path(taxonomy, a, t) for a in range(taxonomy.n_nodes)] for t in leaves])


def shuffled(taxonomy, rng):
    return rng.permutation(taxonomy.classes)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("loss", ["zero-one", "taxo", "parent"])
def test_no_class_is_a_better_answer(seed, loss):
    taxonomy = random_taxonomy(seed, n_nodes=2 + 5 * (seed % 40))
    rng = np.random.default_rng(seed)
    classes = shuffled(taxonomy, rng)
    proba = random_proba(rng, 9, taxonomy.n_classes)
    costs = loss_matrix(taxonomy, loss)[:, taxonomy.n_inner :]
    place = taxonomy.leaf_index(classes)
    expected = proba @ costs[place]
    answers, reported = decide(
        proba, classes=classes, taxonomy=taxonomy, loss=loss, return_expected=True, n_threads=1 + seed % 2
    )
    chosen = expected[np.arange(9), taxonomy.leaf_index(answers)]
    assert np.allclose(chosen, expected.min(axis=1), atol=1e-12)
    assert np.allclose(reported, chosen, atol=1e-12)
    assert np.allclose(expected_loss(proba, answers, classes=classes, taxonomy=taxonomy, loss=loss), chosen, atol=1e-12)
    # Never worse than the most probable class.
    top = classes[proba.argmax(axis=1)]
    of_top = expected_loss(proba, top, classes=classes, taxonomy=taxonomy, loss=loss)
    assert (reported <= of_top + 1e-12).all()
    if loss == "zero-one":
        assert np.array_equal(proba[np.arange(9), np.argsort(place)[taxonomy.leaf_index(answers)]], proba.max(axis=1))
    # The same through an explicit matrix of costs.
    by_matrix = decide(proba, classes=classes, loss=costs[np.ix_(place, place)])
    of_matrix = expected[np.arange(9), taxonomy.leaf_index(by_matrix)]
    assert np.allclose(of_matrix, chosen, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("loss", ["zero-one", "taxo"])
@pytest.mark.parametrize("per_node", [False, True])
def test_no_node_is_a_better_answer(seed, loss, per_node):
    taxonomy = random_taxonomy(seed, n_nodes=2 + 3 * (seed % 40))
    rng = np.random.default_rng(seed)
    classes = shuffled(taxonomy, rng)
    proba = random_proba(rng, 9, taxonomy.n_classes)
    below = paths(taxonomy)
    if per_node:
        stop_cost = np.where(rng.random(taxonomy.n_nodes) < 0.3, np.inf, rng.random(taxonomy.n_nodes))
        stop_cost[-1] = 0.0
        costs = stop_cost
    else:
        stop_cost = 0.05
        depth = taxonomy.depths[taxonomy.n_inner :]
        deepest = np.array([depth[below[:, p] > 0].max() for p in range(taxonomy.n_nodes)])
        costs = 0.05 * (deepest - taxonomy.depths)
    expected = proba @ loss_matrix(taxonomy, loss)[taxonomy.leaf_index(classes)] + costs
    answers, reported = decide(
        proba, classes=classes, taxonomy=taxonomy, loss=loss, stop_cost=stop_cost, return_expected=True
    )
    chosen = expected[np.arange(9), taxonomy.index(answers)]
    assert np.allclose(chosen, expected.min(axis=1), atol=1e-12)
    assert np.allclose(reported, chosen, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_node_probabilities_and_confidence(seed):
    taxonomy = random_taxonomy(seed)
    rng = np.random.default_rng(seed)
    classes = shuffled(taxonomy, rng)
    proba = random_proba(rng, 9, taxonomy.n_classes)
    nodes = node_proba(proba, classes=classes, taxonomy=taxonomy, n_threads=2)
    assert np.allclose(nodes, proba @ paths(taxonomy)[taxonomy.leaf_index(classes)])
    for confidence in (0.2, 0.51, 0.9):
        answers = taxonomy.index(decide(proba, classes=classes, taxonomy=taxonomy, confidence=confidence))
        for row, answer in zip(nodes, answers, strict=True):
            enough = np.flatnonzero(row >= confidence)
            assert row[answer] >= confidence
            assert taxonomy.depths[answer] == taxonomy.depths[enough].max()
    sure = taxonomy.index(decide(np.eye(len(classes)), classes=classes, taxonomy=taxonomy, confidence=1.0))
    assert np.array_equal(sure, taxonomy.index(classes))


def test_stopping_pays_where_the_bet_is_bad():
    taxonomy = Taxonomy.from_labels(["pet/cat", "pet/dog", "car"])
    classes = np.array(["car", "pet/cat", "pet/dog"])
    proba = np.array([[0.02, 0.95, 0.03], [0.02, 0.5, 0.48], [0.34, 0.33, 0.33]])
    answer = {
        cost: decide(proba, classes=classes, taxonomy=taxonomy, stop_cost=cost).tolist() for cost in (0.0, 0.1, 0.5)
    }
    assert answer[0.0] == ["root"] * 3  # nothing is certain, and saying nothing is free
    assert answer[0.1] == ["pet/cat", "pet", "root"]
    assert answer[0.5] == ["pet/cat", "pet/cat", "car"]


def test_labels_keep_their_type():
    taxonomy = Taxonomy.from_parents([-1, 0, 0, 1, 1])
    answers = decide(np.eye(3), classes=taxonomy.classes, taxonomy=taxonomy)
    assert answers.dtype == np.int64
    assert answers.tolist() == taxonomy.classes.tolist()
    assert decide([[0.4, 0.6]], classes=["a", "b"]).tolist() == ["b"]
    stopped = decide(np.full((1, 3), 1 / 3), classes=taxonomy.classes, taxonomy=taxonomy, confidence=0.9)
    assert stopped.tolist() == [0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge', expected one of"),
        ({"taxonomy": None, "loss": "taxo"}, "loss='taxo' needs a taxonomy"),
        ({"taxonomy": None, "confidence": 0.5}, "stopping at an inner node needs a taxonomy"),
        ({"loss": np.eye(2)}, r"loss has shape \(2, 2\), expected \(3, 3\)"),
        ({"loss": np.eye(3), "confidence": 0.5}, "not with a matrix"),
        ({"loss": "taxo", "confidence": 0.5}, "confidence goes with"),
        ({"loss": "parent", "stop_cost": 0.5}, "takes no stop_cost"),
        ({"confidence": 0.5, "stop_cost": 0.5}, "confidence goes with"),
        ({"confidence": 0}, "confidence must be finite and above 0"),
        ({"confidence": 1.5}, r"expected a number in \(0, 1\]"),
        ({"stop_cost": -1}, "stop_cost must be finite and at least 0"),
        ({"stop_cost": [1.0, 2.0]}, r"stop_cost has shape \(2,\), expected a number or \(5,\)"),
        ({"stop_cost": np.full(5, np.nan)}, "stop_cost must not be NaN"),
        ({"stop_cost": np.full(5, np.inf)}, "rule out every node"),
        ({"classes": ["pet/cat", "pet/dog"]}, r"proba has shape \(1, 3\), expected one row per item and 2 columns"),
        ({"classes": ["pet/cat", "pet/dog", "bus"]}, "classes: not in the taxonomy: 'bus'"),
        ({"classes": ["pet/cat", "car"], "proba": [[0.5, 0.5]]}, "classes lacks 1 of the 3 classes .* 'pet/dog'"),
        ({"classes": ["pet/cat", "pet/cat", "car"]}, "classes names 'pet/cat' more than once"),
        ({"proba": [[0.5, 0.2, 0.2]]}, r"must sum to 1, got 0\.9 in row 0"),
        ({"proba": [[1.5, -0.5, 0.0]]}, "proba must be probabilities between 0 and 1, got values from -0.5"),
        ({"proba": [[np.nan, 0.5, 0.5]]}, "NaN"),
        ({"proba": np.zeros((0, 3))}, "proba is empty"),
        ({"proba": [0.5, 0.5, 0.0]}, r"proba has shape \(3,\)"),
    ],
)
def test_bad_questions(change, message):
    arguments = {
        "proba": [[0.2, 0.3, 0.5]],
        "classes": ["pet/cat", "pet/dog", "car"],
        "taxonomy": Taxonomy.from_labels(["pet/cat", "pet/dog", "car"]),
    } | change
    with pytest.raises(ValueError, match=message):
        decide(arguments.pop("proba"), **arguments)


@pytest.mark.parametrize("seed", range(10))
def test_the_parent_rule_answers_with_its_most_probable_child(seed):
    taxonomy = random_taxonomy(seed)
    rng = np.random.default_rng(seed)
    proba = random_proba(rng, 9, taxonomy.n_classes)
    answers = taxonomy.leaf_index(decide(proba, classes=taxonomy.classes, taxonomy=taxonomy, loss="parent"))
    parents = taxonomy.parents[taxonomy.n_inner :]
    for row, answer in zip(proba, answers, strict=True):
        assert row[answer] == row[parents == parents[answer]].max()


def test_names_of_one_kind_make_a_typed_array():
    numbers = Taxonomy.from_edges([(0, 10), (0, 20), (10, 11), (10, 12)])
    options = {"classes": numbers.classes, "taxonomy": numbers, "confidence": 0.9}
    assert decide(np.eye(3), **options).dtype == np.int64
    assert decide(np.full((1, 3), 1 / 3), **options).dtype == np.int64
    both = numbers.with_classes([10])  # its inner node is now "10/*"
    assert decide(np.eye(4), classes=both.classes, taxonomy=both, confidence=0.9).dtype == object


def test_expected_loss_of_bad_answers():
    taxonomy = Taxonomy.from_labels(["pet/cat", "pet/dog", "car"])
    classes, proba = ["pet/cat", "pet/dog", "car"], [[0.2, 0.3, 0.5]]
    with pytest.raises(ValueError, match="bus"):
        expected_loss(proba, ["bus"], classes=classes, taxonomy=taxonomy)
    with pytest.raises(ValueError, match="bus"):
        expected_loss(proba, ["bus"], classes=classes)
    for options in ({"taxonomy": taxonomy}, {}, {"loss": np.eye(3)}):
        for answers in (["car", "car"], []):
            with pytest.raises(ValueError, match=r"answers (has 2 elements|is empty)"):
                expected_loss(proba, answers, classes=classes, **options)
        with pytest.raises(ValueError, match="answers"):
            expected_loss(proba, "car", classes=classes, **options)
    with pytest.raises(ValueError, match="both must be strings or both numbers"):
        expected_loss(proba, [1], classes=classes)
    with pytest.raises(ValueError, match=r"taxonomy must be a taxolearn\.Taxonomy"):
        decide(proba, classes=classes, taxonomy="x")


def test_a_hundred_thousand_classes(run_python):
    """A large tree is built, checked and used on a thousand rows in little memory."""
    program = """
        import resource
        import numpy as np
        from taxolearn import Taxonomy
        from taxolearn.decisions import decide

        taxonomy = Taxonomy.from_paths((f"a{k // 2500}", f"b{k // 50}", f"c{k // 5}", f"d{k}") for k in range(100_000))
        assert taxonomy.n_classes == 100_000
        proba = np.random.default_rng(0).random((1000, 100_000))
        proba /= proba.sum(axis=1, keepdims=True)
        for options in ({"loss": "taxo"}, {"loss": "parent"}, {"stop_cost": 0.2}, {"confidence": 0.01}):
            answers = decide(proba, classes=taxonomy.classes, taxonomy=taxonomy, **options)
            assert len(answers) == 1000
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2)
    """
    run = run_python(program)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 4  # GiB
