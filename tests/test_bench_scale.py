"""The suite ``scale``: its made-up problems, the exponents it fits, and a small run of all of it."""

import json

import numpy as np
import pytest

from bench.__main__ import make_parser
from bench.harness.figures import draw
from bench.problems.synthetic import frequencies, made_up_clusters, made_up_text, made_up_tree, permutations
from bench.suites import scale
from bench.suites.scale import LARGEST_GAP, levels, measure_evaluation
from taxolearn import Taxonomy


class TestProblems:
    @pytest.mark.parametrize(("d", "per_row"), [(20_000, 50), (20_000, 500), (100, 99), (10, 1)])
    def test_frequencies_follow_the_law_and_add_up(self, d, per_row):
        shares = frequencies(d, per_row)
        assert shares.sum() == pytest.approx(per_row)
        assert shares.max() <= 1 + 1e-12
        assert (np.diff(shares) <= 1e-12).all()
        rare = np.flatnonzero(shares < 1)
        np.testing.assert_allclose(shares[rare] * (rare + 1), shares[rare[0]] * (rare[0] + 1))

    @pytest.mark.parametrize("per_row", [0, 10, 11])
    def test_rows_need_words_and_a_choice_of_them(self, per_row):
        with pytest.raises(ValueError, match=f"got {per_row} of 10 words"):
            frequencies(10, per_row)

    @pytest.mark.parametrize("d", [12, 97, 1000])
    def test_permutations(self, d):
        factors, offsets = permutations(5, d, np.random.default_rng(0))
        for factor, offset in zip(factors, offsets, strict=True):
            assert len(np.unique((factor * np.arange(d) + offset) % d)) == d

    def test_text(self):
        X, y = made_up_text(2_000, 20, 30, 1_000, seed=3)
        assert X.shape == (2_000, 1_000)
        assert X.has_sorted_indices
        assert X.has_canonical_format
        assert 27 <= X.nnz / 2_000 <= 30
        np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
        assert np.bincount(y).tolist() == [100] * 20
        counts = np.sort(np.bincount(X.indices, minlength=1_000))[::-1]
        assert counts[0] > 20 * counts[500]

    def test_classes_have_words_of_their_own(self):
        X, y = made_up_text(2_000, 20, 30, 1_000, seed=3)
        means = np.stack([np.asarray(X[:1000][y[:1000] == c].mean(axis=0)).ravel() for c in range(20)])
        answers = (X[1000:] @ means.T).argmax(axis=1)
        assert np.mean(answers == y[1000:]) > 0.5

    def test_clusters(self):
        X, y = made_up_clusters(3_000, 10, 20, seed=1)
        assert X.shape == (3_000, 20)
        assert np.mean((X**2).sum(axis=1)) == pytest.approx(1, rel=0.2)
        assert np.bincount(y).tolist() == [300] * 10

    @pytest.mark.parametrize(
        "make",
        [lambda seed: made_up_text(50, 5, 8, 100, seed)[0].toarray(), lambda seed: made_up_clusters(50, 5, 4, seed)[0]],
    )
    def test_the_seed_decides(self, make):
        np.testing.assert_array_equal(make(0), make(0))
        assert not np.array_equal(make(0), make(1))

    def test_tree(self):
        assert made_up_tree([2, 4]).tolist() == [-1, 0, 0, 1, 1, 2, 2]
        assert made_up_tree([2, 2]).tolist() == [-1, 0, 0, 1, 2]
        with pytest.raises(ValueError, match="must not decrease"):
            made_up_tree([4, 2])

    @pytest.mark.parametrize(("nodes", "sizes"), [(10, [10]), (11, [1, 10]), (40, [10] * 4), (25, [5, 10, 10])])
    def test_trees_with_so_many_nodes(self, nodes, sizes):
        assert levels(10, nodes) == sizes
        tree = Taxonomy.from_parents(made_up_tree(sizes))
        assert tree.n_nodes == nodes + 1
        assert tree.n_classes == 10
        assert tree.classes.tolist() == list(range(nodes - 9, nodes + 1))


class TestExponents:
    def test_of_a_power(self):
        assert scale.exponent([(value, 7 * value**1.5) for value in (1.0, 3.0, 10.0, 30.0)]) == pytest.approx(1.5)

    def test_one_value_has_none(self):
        assert scale.exponent([(2.0, 1.0), (2.0, 3.0)]) is None
        assert scale.exponents([(2.0, 1.0)]) is None
        assert scale.exponents([]) is None

    def test_upper_decade_apart(self):
        points = [(1.0, 1.0), (10.0, 1.0), (100.0, 10.0)]
        assert scale.exponents(points) == "0.50 (1.00)"

    def test_upper_decade_has_its_lower_end(self):
        points = [(1.0, 1.0), (30.0, 1.0), (300.0, 10.0)]
        assert scale.exponents(points).endswith("(1.00)")

    def test_upper_decade_that_is_all(self):
        assert scale.exponents([(1.0, 1.0), (10.0, 10.0)]) == "1.00"

    def test_upper_decade_of_one_point(self):
        assert scale.exponents([(1.0, 1.0), (100.0, 100.0)]) == "1.00"

    def test_rows_within(self):
        points = [(rows, 1e9 + 5e3 * rows) for rows in (1e4, 3e4)]
        assert scale.rows_within(21e9, points) == pytest.approx(4e6, abs=1)


class TestSizes:
    def test_only_the_factor_varies(self):
        for family in scale.BASES:
            for factor in ("rows", "features"):
                points = scale.sizes(family, factor, quick=False)
                assert [value for value, _ in points] == [problem[factor] for _, problem in points]
                assert points[-1][0] == 100 * points[0][0]
                assert (
                    len({tuple(value for key, value in problem.items() if key != factor) for _, problem in points}) == 1
                )

    def test_the_tree_grows_with_the_classes(self):
        for _, problem in scale.sizes("text", "classes", quick=False):
            assert problem["nodes"] == round(1.1 * problem["classes"])


def test_largest_is_foretold_by_smaller_ones():
    """Memory of 1 GB and 5 kB a row, in 20 GB with the margin."""
    asked = []

    def measure(function, problem, **more):
        asked.append(problem | more)
        return {"resident": 1e9 + 5e3 * problem["rows"], "status": "max_iter"}

    row = scale._largest("text", "ncg", 20.0, (10_000, 30_000), measure, quick=False)
    assert [problem["rows"] for problem in asked] == [10_000, 30_000, row["value"]]
    assert row["value"] == pytest.approx((scale.MARGIN * 20e9 - 1e9) / 5e3, abs=1)
    assert asked[-1]["classes"] == 1000
    assert asked[-1]["tol"] == LARGEST_GAP


def test_nothing_is_foretold_from_failures():
    row = scale._largest("dense", "lbfgs", 20.0, (1, 2), lambda *_, **__: {"status": "failed: memory"}, quick=True)
    assert row["status"] == "failed: memory"
    assert "value" not in row


def test_evaluation():
    answer = measure_evaluation(scale.QUICK_EVALUATED, groups=7, repeats=1, seed=0, n_threads=1)
    assert answer["status"] is None
    assert answer["seconds"] > 0
    assert answer["iterations"] > 10


def test_small_run(tmp_path):
    given = ["--only", "rows", "--repeats", "1", "--quick", "--threads", "1", "--output", str(tmp_path)]
    (result,) = scale.run(make_parser().parse_args(["scale", *given]))
    assert {row["problem"] for row in result.rows} == {"rows n"}
    assert [row["value"] for row in result.rows] == [400, 800] * 2
    assert all(row["status"] is None for row in result.rows)
    assert all(row["iteration"] > 0 and row["seconds"] > 0 for row in result.rows)
    for row, is_last in zip(result.rows, [False, True] * 2, strict=True):
        for key in ("iteration", "seconds"):
            assert (row.get(f"{key}_exponents") is not None) == is_last
    json.dumps(result.rows)
    draw(result.figure, result.title, result.rows, tmp_path / "scale.svg")
    assert (tmp_path / "scale.svg").stat().st_size > 0
