"""Kernels of strings: against subsequences and substrings counted one by one, another toolbox's values, in models."""

import itertools
import re
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from taxolearn import (
    Blocks,
    CrossValidation,
    KernelLogisticClassifier,
    MaxMarginTreeClassifier,
    RecursiveRegularizationClassifier,
    Solver,
    Taxonomy,
    load,
    save,
)
from taxolearn.features import SequenceCodes, SequenceFeatures
from taxolearn.kernels import RBF, Linear, PerBlock, PerClass, Spectrum, Subsequence, WeightedDegree

STRINGS = st.lists(st.text("ab\U0001f9ec", max_size=7), min_size=1, max_size=6)


def subsequences(text, length, decay):
    """The weight of every subsequence: decay to the power of its span, over all the ways to choose it."""
    weights = defaultdict(float)
    for places in itertools.combinations(range(len(text)), length):
        weights["".join(text[place] for place in places)] += decay ** (places[-1] - places[0] + 1)
    return weights


def substrings(text, lengths, positions):
    weights = defaultdict(float)
    largest = max(lengths)
    for length in lengths:
        weight = np.sqrt(2 * (largest - length + 1) / (largest * (largest + 1))) if positions else 1.0
        for at in range(len(text) - length + 1):
            weights[text[at : at + length], at * positions] += weight
    return weights


def features_of(kernel, text):
    if isinstance(kernel, Subsequence):
        return subsequences(text, kernel.length, kernel.decay)
    return substrings(text, kernel.lengths, isinstance(kernel, WeightedDegree))


def by_definition(kernel, X, Y):
    left, right = ([features_of(kernel, text) for text in texts] for texts in (X, Y))

    def inner(x, y):
        return sum(weight * y[key] for key, weight in x.items() if key in y)

    values = np.array([[inner(x, y) for y in right] for x in left], dtype=np.float64)
    if kernel.normalized:
        norms = np.sqrt(np.outer([inner(x, x) for x in left], [inner(y, y) for y in right]))
        values = np.divide(values, norms, out=np.zeros_like(values), where=norms > 0)
    return kernel.variance * values


KERNELS = st.one_of(
    st.builds(
        Subsequence,
        st.integers(1, 5),
        st.sampled_from([1.0, 0.9, 0.5, 0.1, 1e-3]),
        st.booleans(),
        st.floats(0.1, 9),
    ),
    st.builds(Spectrum, st.sets(st.integers(1, 4), min_size=1), st.booleans(), st.floats(0.1, 9)),
    st.builds(WeightedDegree, st.sets(st.integers(1, 4), min_size=1), st.booleans(), st.floats(0.1, 9)),
)


@settings(max_examples=150, deadline=None)
@given(kernel=KERNELS, X=STRINGS, Y=STRINGS)
def test_kernels_are_those_of_the_definition(kernel, X, Y):
    square = kernel(X)
    np.testing.assert_allclose(square, by_definition(kernel, X, X), rtol=1e-10, atol=1e-300)
    np.testing.assert_array_equal(square, square.T)
    np.testing.assert_allclose(kernel(X, Y, n_threads=2), by_definition(kernel, X, Y), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(kernel.diag(X), square.diagonal(), rtol=1e-10, atol=1e-300)
    assert np.linalg.eigvalsh(square).min() > -1e-9 * square.max(initial=1e-9)


def lodhi(s, t, length, decay):
    """The recursion of the paper, as printed."""
    inner = np.zeros((length, len(s) + 1, len(t) + 1))
    inner[0] = 1
    for k in range(1, length):
        for a in range(1, len(s) + 1):
            run = 0.0
            for b in range(1, len(t) + 1):
                run = decay * run + (s[a - 1] == t[b - 1]) * decay**2 * inner[k - 1, a - 1, b - 1]
                inner[k, a, b] = decay * inner[k, a - 1, b] + run
    pairs = itertools.product(range(len(s)), range(len(t)))
    return sum(decay**2 * inner[length - 1, a, b] for a, b in pairs if s[a] == t[b])


@pytest.mark.parametrize(("length", "decay"), [(4, 0.5), (8, 0.9), (6, 1.0), (3, 0.02)])
def test_long_strings(length, decay):
    """Longer than a strip of columns and than the rows that share a scale, of unequal lengths, more than lanes."""
    random = np.random.default_rng(length)
    texts = ["".join(random.choice(list("ACGT"), size)) for size in random.integers(2, 90, 21)]
    texts.append("".join(random.choice(list("ACGT"), 400)))
    kernel = Subsequence(length, decay, normalized=False)
    matrix = kernel(texts)
    for i, j in [(0, 0), (3, 21), (21, 3), (7, 11), (21, 21), (20, 2)]:
        np.testing.assert_allclose(matrix[i, j], lodhi(texts[i], texts[j], length, decay), rtol=1e-11)
    normalized = Subsequence(length, decay)(texts)
    norms = np.sqrt(np.outer(matrix.diagonal(), matrix.diagonal()))
    np.testing.assert_allclose(
        normalized, np.divide(matrix, norms, out=np.zeros_like(norms), where=norms > 0), rtol=1e-11
    )


@settings(max_examples=40, deadline=None)
@given(
    length=st.integers(1, 8),
    decay=st.floats(0.05, 0.95),
    normalized=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_derivatives_are_differences(length, decay, normalized, seed):
    random = np.random.default_rng(seed)
    texts = ["".join(random.choice(list("ACG"), size)) for size in random.integers(0, 45, 7)]
    Q = random.standard_normal((7, 7))
    kernel = Subsequence(length, decay, normalized, 2.0) + Spectrum((1, 2), normalized) + WeightedDegree(3, normalized)
    exact, step = kernel.gradient(texts, Q), 1e-6
    for k, direction in enumerate(np.eye(4)):
        up, down = (kernel.with_theta(kernel.theta + sign * step * direction)(texts) for sign in (1, -1))
        scale = np.abs(Q * (up + down)).sum() + 1e-300
        assert abs(exact[k] - (Q * (up - down)).sum() / (2 * step)) < 3e-7 * scale


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("CommWordString_DNA_10_0_False_3_60_False", Spectrum(3)),
        ("CommUlongString_DNA_10_0_False_3_60_False", Spectrum(3)),
        ("WeightedDegreeString_DNA_1_60", WeightedDegree(1)),
        ("WeightedDegreeString_DNA_20_60", WeightedDegree(range(1, 21))),
        ("FixedDegreeString_3_DNA_10_60", WeightedDegree(3)),
    ],
)
def test_values_of_another_toolbox(name, kernel, data_file):
    """Its files round to nine digits."""
    text = data_file(f"string_kernel_values/{name}.m").read_text()
    train, test = (
        re.findall("'([A-Z]+)'", re.search(rf"kernel_data_{part} = \{{(.*?)\}};", text, re.DOTALL)[1])
        for part in ("train", "test")
    )
    for part, values in (("train", kernel(train)), ("test", kernel(train, test))):
        matrix = re.search(rf"kernel_matrix_{part} = \[(.*?)\];", text, re.DOTALL)[1]
        expected = np.array([[float(value) for value in row.split(",")] for row in matrix.split(";")])
        np.testing.assert_allclose(values, expected, atol=1e-9)


def two_families(n, seed):
    """Strings whose classes differ in words that are torn apart, in groups of two."""
    random = np.random.default_rng(seed)
    texts, y = [], []
    for _ in range(n):
        kind = random.integers(4)
        letters = random.choice(list("ABCDEFGH"), random.integers(12, 30))
        places = np.sort(random.choice(len(letters), 8, replace=False))
        letters[places] = list(("ABBA" if kind < 2 else "HGGH") + ("CDCD" if kind % 2 else "FEFE"))
        texts.append("".join(letters))
        y.append(f"{'AB'[kind // 2]}/{'xy'[kind % 2]}")
    return texts, np.array(y)


TREE = Taxonomy.from_labels(["A/x", "A/y", "B/x", "B/y"])


def test_strings_columns_and_codes_are_the_same(tmp_path):
    texts, y = two_families(60, 0)
    new, _ = two_families(9, 1)
    new.append("unknown letters \N{GREEK SMALL LETTER ALPHA} and far more of them than any other row " * 2)
    model = KernelLogisticClassifier(Subsequence(3), taxonomy=TREE, tuning=None)
    expected = model.fit(texts, y).predict_proba(new)
    frame = pd.DataFrame({"seq": texts})
    for own, others in ((np.array(texts), np.array(new, dtype=object)), (frame["seq"], pd.Series(new))):
        np.testing.assert_array_equal(clone(model).fit(own, y).predict_proba(others), expected)
    piped = make_pipeline(SequenceCodes(), clone(model)).fit(texts, y)
    np.testing.assert_array_equal(piped.predict_proba(new), expected)
    save(piped, tmp_path / "piped.tl")
    np.testing.assert_allclose(load(tmp_path / "piped.tl").predict_proba(new), expected, atol=1e-6)
    for products in ("tiled", "gram"):
        solver = Solver(products=products)
        again = clone(model).set_params(solver=solver, n_threads=2).fit(texts, y)
        np.testing.assert_allclose(again.predict_proba(new), expected, atol=1e-3)


@pytest.mark.parametrize(
    "kernel",
    [
        Subsequence(4, 0.6, variance=20.0) + Spectrum((2, 3)),
        10.0 * Subsequence(2) * WeightedDegree(1, bounds={"variance": (0.1, 10.0)}),
        PerClass(Subsequence(3), share="correlation"),
    ],
)
def test_models_go_to_files(kernel, tmp_path):
    texts, y = two_families(40, 2)
    model = KernelLogisticClassifier(kernel, tuning=None).fit(texts, y)
    save(model, tmp_path / "model.tl")
    again = load(tmp_path / "model.tl")
    assert repr(again.hyperparameters_.kernel) == repr(model.hyperparameters_.kernel)
    np.testing.assert_allclose(again.predict_proba(texts[:7]), model.predict_proba(texts[:7]), atol=1e-6)


def test_blocks_of_strings_and_numbers():
    texts, y = two_families(80, 3)
    sizes = np.random.default_rng(0).standard_normal((80, 2)) + (y >= "B")[:, None]
    X = Blocks({"sequence": texts, "sizes": sizes})
    kernel = {"sequence": Subsequence(3, 0.4, variance=5.0), "sizes": RBF(2.0)}
    model = KernelLogisticClassifier(kernel, tuning=None, tol=1e-6).fit(X[:60], y[:60])
    both = PerBlock(kernel)(X[:60])
    np.testing.assert_allclose(both, kernel["sequence"](texts[:60]) + kernel["sizes"](sizes[:60]), rtol=1e-12)
    assert model.score(X[60:], y[60:]) > 0.5
    assert model.result_.status == "converged"


def test_the_decay_is_learned():
    """Words that are torn apart need a large decay: the criterion finds that from a small one."""
    texts, y = two_families(150, 4)
    model = KernelLogisticClassifier(Subsequence(4, 0.05), tuning=CrossValidation(3), random_state=0).fit(texts, y)
    learned = model.hyperparameters_.kernel
    assert 0.2 < learned.decay <= 1.0
    new, truth = two_families(100, 5)
    fixed = KernelLogisticClassifier(Subsequence(4, 0.05, fixed="decay"), tuning=CrossValidation(3), random_state=0)
    assert model.score(new, truth) > fixed.fit(texts, y).score(new, truth)


def test_other_estimators():
    texts, y = two_families(90, 6)
    new, truth = two_families(60, 7)
    sets = [[label] for label in y]
    margin = MaxMarginTreeClassifier(TREE, kernel=Subsequence(4, 0.7), C=10.0).fit(texts, sets)
    assert np.mean([label in own for own, label in zip(margin.predict(new), truth, strict=True)]) > 0.4
    recursive = RecursiveRegularizationClassifier(TREE, kernel=Subsequence(4, 0.7), tuning=None).fit(texts, y)
    assert recursive.score(new, truth) > 0.4
    grid = GridSearchCV(
        KernelLogisticClassifier(Subsequence(), tuning=None), {"kernel__length": [1, 4], "kernel__decay": [0.7]}, cv=2
    )
    assert grid.fit(texts, y).best_score_ > 0.4


def test_a_spectrum_is_the_linear_kernel_of_explicit_features():
    texts, _ = two_families(25, 8)
    X = SequenceFeatures((2, 3), dtype=np.float64).fit_transform(texts)
    np.testing.assert_allclose(Spectrum((2, 3))(texts), Linear()(X), rtol=1e-12, atol=1e-15)


def test_words(tmp_path):
    texts = ["the cat sat on the mat", "the dog sat", "a cat", ""]
    codes = SequenceCodes("words").fit(texts)
    assert codes.words_.tolist() == ["a", "cat", "dog", "mat", "on", "sat", "the"]
    assert codes.transform(["new cat new"]).data.tolist() == [8, 2, 8]
    letters = [text.translate(dict.fromkeys(map(ord, " "))) for text in ["T C S O T M", "T D S", "A C", ""]]
    kernel = Subsequence(2, 0.5)
    np.testing.assert_array_equal(kernel(codes.transform(texts)), kernel(letters))
    y = ["x", "y", "x", "y"]
    model = make_pipeline(SequenceCodes("words"), KernelLogisticClassifier(kernel, tuning=None)).fit(texts, y)
    save(model, tmp_path / "words.tl")
    np.testing.assert_allclose(
        load(tmp_path / "words.tl").predict_proba(["new cat sat"]), model.predict_proba(["new cat sat"]), atol=1e-6
    )


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Subsequence(9), ValueError, "length is 9, expected at most 8"),
        (lambda: Subsequence(4, 1.5), ValueError, "decay is 1.5, expected at most 1"),
        (lambda: Subsequence(4, bounds={"decay": (0.1, 2.0)}), ValueError, "expected at most 1"),
        (lambda: Subsequence(normalized=1), TypeError, "normalized must be True or False"),
        (lambda: Spectrum(()), ValueError, "expected at least one number"),
        (lambda: Spectrum("3"), TypeError, "lengths must be"),
        (lambda: WeightedDegree(0), ValueError, "lengths must be"),
        (lambda: Subsequence() + RBF(), ValueError, "Blocks"),
        (lambda: Spectrum()(np.eye(3)), TypeError, "reads sequences"),
        (lambda: Spectrum()(["a", 3]), TypeError, "row 1 is 3"),
        (lambda: Subsequence()(sp.csr_array([[0.0, 1.0]])), ValueError, "row 0 is no sequence: entry 0 is in column 1"),
        (lambda: WeightedDegree()(sp.csr_array([[1.5]])), ValueError, "letter 0 has the code 1.5"),
        (lambda: Spectrum()(sp.csr_array([[-1.0]])), ValueError, "expected a whole number"),
        (lambda: SequenceCodes("bytes").fit(["a"]), ValueError, "unit is 'bytes'"),
        (lambda: KernelLogisticClassifier(RBF()).fit(["a", "b"], ["x", "y"]), ValueError, "(?i)array|convert"),
        (lambda: SequenceCodes().fit_transform(["a" * (2**20 + 1)]), ValueError, "row 0 has 1048577 letters"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_matrices_in_single_precision():
    texts, _ = two_families(30, 9)
    for kernel in (Subsequence(4, 0.9), Spectrum() * Subsequence(2, normalized=False), WeightedDegree()):
        single = kernel(texts, texts[:7], dtype=np.float32)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, kernel(texts, texts[:7]), rtol=1e-5)
    with pytest.raises(ValueError, match="dtype is"):
        Spectrum()(texts, dtype=int)


def test_files_of_words_that_cannot_be_are_refused(tmp_path):
    piped = make_pipeline(SequenceCodes("words"), KernelLogisticClassifier(Spectrum(1), tuning=None))
    piped.fit(["a b", "c"], ["x", "y"])
    for words, unit in ((["b", "a"], "words"), (["a"], "letters")):
        piped[0].words_, piped[0].unit = np.array(words, dtype=object), unit
        save(piped, tmp_path / "model.tl")
        with pytest.raises(ValueError, match=r"its letters are wrong|words for letters"):
            load(tmp_path / "model.tl")
