"""Tables as nobody wants them: a pool ends without a complaint, and is not worse than knowing no inputs at all.

Every table is a sample of a distribution that is made up, so that fresh rows of it can be drawn. A model that has
learned nothing should answer with the frequencies of the classes. The log losses of the model and of the frequencies of
the training rows (half a row added to each class) are compared row by row on fresh rows. If the model were no better
than the frequencies, the mean difference would be above two of its standard errors in 2.3 % of all samples; seeds are
fixed, so a test that passes always passes. All warnings are errors.
"""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from taxolearn import PoolClassifier, Taxonomy
from taxolearn.cli import main
from taxolearn.features import TableFeatures

FRESH = 1000
SAMPLES = 3  # of each table
STANDARD_ERRORS = 2.0
ROUNDING = 1e-6  # where both say the same of all rows


@dataclass(frozen=True)
class Table:
    """A distribution of rows, and which of its classes the training rows have.

    ``inputs`` draws a row of inputs for each class number, ``form`` makes of them what ``fit`` is given, and ``names``
    are the labels of the classes.
    """

    labels: np.ndarray
    inputs: Callable[[np.random.Generator, np.ndarray], Any]
    names: Any = None
    form: Callable[[Any], Any] = lambda X: X
    options: dict[str, Any] = field(default_factory=dict)

    def draw(self, seed: int, labels: np.ndarray) -> tuple[Any, np.ndarray]:
        X = self.form(self.inputs(np.random.default_rng(seed), labels))
        return X, labels if self.names is None else np.asarray(self.names)[labels]


def even(n_classes: int, rows: int) -> np.ndarray:
    """So many rows of each class."""
    return np.repeat(np.arange(n_classes), rows)


def clouds(n_classes: int, n_features: int = 4, distance: float = 1.5) -> Callable[..., Any]:
    """A cloud of rows around a centre for each class."""
    centres = distance * np.random.default_rng(5).normal(size=(n_classes, n_features))
    return lambda generator, labels: centres[labels] + generator.normal(size=(len(labels), n_features))


def counts(n_classes: int, n_words: int = 30, length: float = 10.0) -> Callable[..., Any]:
    """Counts of words, of which each class has its own frequencies."""
    rates = np.random.default_rng(6).dirichlet(np.full(n_words, 0.3), n_classes) * length
    return lambda generator, labels: sp.csr_matrix(generator.poisson(rates[labels]).astype(float))


def noise(n_features: int = 5) -> Callable[..., Any]:
    return lambda generator, labels: generator.normal(size=(len(labels), n_features))


def constant(value: float, n_features: int = 3) -> Callable[..., Any]:
    return lambda _, labels: np.full((len(labels), n_features), value)


def same_rows(generator: np.random.Generator, labels: np.ndarray) -> Any:
    """Four different rows, of which any may have any label: the first two are more frequent with the first class."""
    shares = np.array([[0.4, 0.4, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]])
    places = (generator.random(len(labels))[:, None] > shares[labels].cumsum(axis=1)).sum(axis=1).clip(max=3)
    return np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [2.0, 5.0]])[places]


def often_empty(generator: np.random.Generator, labels: np.ndarray) -> Any:
    X = counts(3)(generator, labels)
    return sp.csr_matrix(X.multiply(generator.random(len(labels))[:, None] < 0.3))


def rarely(generator: np.random.Generator, labels: np.ndarray) -> Any:
    """The last feature differs in one row of a hundred, so most folds have none of these."""
    X = clouds(3)(generator, labels)
    return np.column_stack([X, generator.random(len(labels)) < 0.01])


def with_copies(generator: np.random.Generator, labels: np.ndarray) -> Any:
    X = clouds(3)(generator, labels)
    return np.hstack([X, X, 2 * X + 1e-9 * generator.normal(size=X.shape)])


def twins(generator: np.random.Generator, labels: np.ndarray) -> Any:
    """Three rows in turn have the same noise, and if they have the same label, they are the same."""
    first = np.arange(len(labels)) // 3 * 3
    centres = clouds(4)(np.random.default_rng(0), np.arange(4))
    return centres[labels] + generator.normal(size=(len(labels), 4))[first]


def texts(*choices: str) -> Callable[..., Any]:
    """Texts of two words of a class; fewer choices than classes leave them to chance."""

    def draw(generator: np.random.Generator, labels: np.ndarray) -> Any:
        words = [choices[label % len(choices)].split() for label in labels.tolist()]
        return {"text": [" ".join(generator.choice(each, 2)) for each in words]}

    return draw


def text_features(*texts: str) -> Callable[[Any], Any]:
    """Features that some texts have."""
    features = TableFeatures("text").fit({"text": list(texts)})
    return features.transform


def wide_indices(X: Any) -> Any:
    X = sp.csr_matrix(X)
    return sp.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def untidy(X: Any) -> Any:
    """Indices not sorted, and zeros that are stored."""
    X = sp.csr_matrix(X)
    X.data[::7] = 0.0
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[begin:end], X.data[begin:end] = X.indices[begin:end][::-1].copy(), X.data[begin:end][::-1].copy()
    X.has_sorted_indices = False
    return X


def read_only(X: Any) -> Any:
    X.setflags(write=False)
    return X


TAIL = np.repeat(np.arange(60), (60 / np.arange(1, 61)).astype(int))  # half of the classes have one row
COLOURS = ("red green", "blue green", "iron wood")
CHAIN = Taxonomy.from_paths([["a", "b", "c", "one"], ["a", "b", "c", "two"], ["d", "three"]])
UNSEEN = Taxonomy.from_labels(["a/one", "a/two", "a/never", "b/three", "b/nobody", "c/nothing"])

TABLES = {
    "two classes": Table(even(2, 40), clouds(2)),
    "one row per class": Table(even(6, 1), clouds(6, distance=3)),
    "two rows per class": Table(even(6, 2), clouds(6, distance=3)),
    "ten rows": Table(np.arange(10) % 3, clouds(3)),
    "a thousand classes of two rows": Table(even(1000, 2), counts(1000, 300, 20)),
    "constant features": Table(np.arange(60) % 3 % 2, constant(7.0)),
    "features of zeros": Table(np.arange(60) % 3, constant(0.0)),
    "sparse features of zeros": Table(np.arange(60) % 3, constant(0.0), form=sp.csr_matrix),
    "constant features, classes of equal size": Table(even(3, 30), constant(7.0)),
    "sparse zeros, classes of equal size": Table(even(3, 30), constant(0.0), form=sp.csr_matrix),
    "constant text": Table(np.arange(60) % 4 % 3, texts("always"), form=text_features("always always")),
    "short texts": Table(np.arange(60) % 3, texts(*COLOURS), form=text_features(*COLOURS)),
    "same rows with different labels": Table(even(2, 60), same_rows),
    "every row three times": Table(np.arange(90) // 3 % 4, twins),
    "separable": Table(even(3, 30), clouds(3, distance=100)),
    "separable counts": Table(even(3, 30), lambda _, labels: sp.csr_matrix(np.eye(3)[labels])),
    "noise": Table(np.arange(200) % 7 % 3, noise()),
    "noise of counts": Table(np.arange(200) % 7 % 3, lambda g, y: sp.csr_matrix(g.poisson(1.0, (len(y), 20)) * 1.0)),
    "noise, many features": Table(np.arange(40) % 2, noise(200)),
    "one feature": Table(even(3, 30), clouds(3, 1)),
    "one class is rare": Table(np.repeat([0, 1], [1000, 2]), clouds(2)),
    "one class is rare, in counts": Table(np.repeat([0, 1], [1000, 2]), counts(2)),
    "rows of zeros": Table(even(3, 30), often_empty),
    "large and small units": Table(even(3, 30), lambda g, y: clouds(3, 2)(g, y) * [1e12, 1e-12]),
    "large and small counts": Table(even(3, 30), lambda g, y: counts(3, 2)(g, y).toarray() * [1e12, 1e-12]),
    "large and small, sparse": Table(even(3, 30), lambda g, y: sp.csr_matrix(clouds(3, 2)(g, y) * [1e12, 1e-12])),
    "far from zero": Table(even(3, 30), lambda g, y: clouds(3)(g, y) + 1e6),
    "more features than rows": Table(np.arange(20) % 2, clouds(2, 500, 0.3)),
    "one class has one row": Table(np.repeat([0, 1, 2], [30, 30, 1]), clouds(3)),
    "all classes but one have one row": Table(np.r_[np.arange(40), np.full(40, 40)], clouds(41)),
    "all classes but one have one row, noise": Table(np.r_[np.arange(40), np.full(40, 40)], noise()),
    "a long tail": Table(TAIL, counts(60, 100, 10)),
    "a long tail, noise": Table(TAIL, noise()),
    "numbers for labels": Table(even(3, 30), clouds(3), names=[-3, 10, 2]),
    "strings for labels": Table(even(3, 30), clouds(3), names=["z", "", "a b/ü"]),
    "booleans for labels": Table(even(2, 30), clouds(2), names=[False, True]),
    "a chain in the tree": Table(even(3, 30), clouds(3), ["one", "two", "three"], options={"taxonomy": CHAIN}),
    "leaves without rows": Table(even(3, 30), clouds(3), ["a/one", "a/two", "b/three"], options={"taxonomy": UNSEEN}),
    "a tree, one row per class": Table(
        even(3, 1), clouds(3, distance=3), ["a/one", "a/two", "b/three"], options={"taxonomy": UNSEEN}
    ),
    "single precision, by columns": Table(even(3, 30), clouds(3), form=lambda X: np.asfortranarray(X, np.float32)),
    "wide indices": Table(even(3, 30), counts(3), form=wide_indices),
    "untidy sparse matrix": Table(even(3, 30), counts(3), form=untidy),
    "read-only": Table(even(3, 30), clouds(3), form=read_only),
    "a data frame": Table(even(3, 30), clouds(3), form=lambda X: pd.DataFrame(X > 0, columns=list("abcd"))),
    "constant within folds": Table(even(3, 30), rarely),
    "columns that repeat others": Table(even(3, 30), with_copies),
}

# Samples in which a pool was once too sure, beside the first ones of each table.
SEEDS = {"ten rows": 51, "noise, many features": 84}


def samples() -> list[Any]:
    """Tables and seeds: several of each, but one of those that take long."""
    found = [
        pytest.param(table, seed, id=f"{name}, {seed}")
        for name, table in TABLES.items()
        for seed in sorted({*range(SAMPLES if len(table.labels) < 2000 else 1), SEEDS.get(name, 0)})
    ]
    many = Table(even(5000, 2), counts(5000, 1000, 20))
    return [*found, pytest.param(many, 0, id="five thousand classes of two rows", marks=pytest.mark.slow)]


def frequencies(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Shares of the classes in the training rows, half a row added to each."""
    found = np.array([(y == label).sum() for label in classes.tolist()]) + 0.5
    return found / found.sum()


@pytest.mark.parametrize(("table", "seed"), samples())
def test_awkward_table(table, seed):
    X, y = table.draw(100 + seed, table.labels)
    model = PoolClassifier(**table.options).fit(X, y)

    assert model.pool_result_.status in ("converged", "single", "equal")
    for name, expert in model.experts_.items():
        if hasattr(expert, "result_"):
            assert expert.result_.status == "converged", name

    fresh_X, fresh_y = table.draw(1000 + seed, np.random.default_rng(seed).choice(table.labels, FRESH))
    log_proba = model.predict_log_proba(fresh_X)
    assert log_proba.shape == (FRESH, len(model.classes_))
    assert np.isfinite(log_proba).all()
    np.testing.assert_allclose(model.predict_proba(fresh_X).sum(axis=1), 1.0, atol=1e-9)
    assert set(model.predict(fresh_X).tolist()) <= set(model.classes_.tolist())

    places = np.searchsorted(model.classes_, fresh_y)
    worse = np.log(frequencies(y, model.classes_))[places] - log_proba[np.arange(FRESH), places]
    mean, error = worse.mean(), worse.std(ddof=1) / np.sqrt(FRESH)
    assert mean <= STANDARD_ERRORS * error + ROUNDING, f"log loss is worse by {mean:.4f}, standard error {error:.4f}"


def test_there_are_many_tables():
    assert len(TABLES) >= 20
    assert SEEDS.keys() <= TABLES.keys()


# -- The same by the command line -------------------------------------------------------------------------------------


def write_rows(path: Any, labels: Any, words: Any, seed: int) -> Any:
    """A table of texts of three words, some of the label's own and some of all."""
    generator = np.random.default_rng(seed)
    every = sorted({word for each in words.values() for word in each.split()})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for label in labels:
            own = generator.choice(words[label].split(), 2)
            writer.writerow([" ".join([*own, generator.choice(every)]), label])
    return path


WORDS = {"x": "red green blue", "y": "iron wood stone", "z": "sea river lake"}
CHAINS = {"a/b/c/x": WORDS["x"], "a/b/c/y": WORDS["y"], "d/z": WORDS["z"]}
NUMBERS = {1: WORDS["x"], 22: WORDS["y"], -3: WORDS["z"]}
FILES = {
    "two classes": (["x", "y"] * 20, WORDS),
    "ten rows": (["x", "y", "z"] * 3 + ["x"], WORDS),
    "constant text": (["x", "y", "y"] * 15, dict.fromkeys("xy", "always")),
    "one class has one row": (["x", "y"] * 20 + ["z"], WORDS),
    "one class is rare": (["x"] * 500 + ["y"] * 2, WORDS),
    "numbers for labels": ([1, 22, -3] * 15, NUMBERS),
    "a chain in the tree": (list(CHAINS) * 15, CHAINS),
}


NOTES = (
    "note: no rows were held out to score the model, since there are fewer than 100",
    "note: labels are paths separated by",
    "note: the columns tell nothing about the classes",
)


@pytest.mark.parametrize("name", FILES)
def test_awkward_file(name, tmp_path, capsys):
    """Training says nothing that a user could not act on, and the model is not worse than frequencies."""
    labels, words = FILES[name]
    train = write_rows(tmp_path / "train.csv", labels, words, 0)
    fresh = write_rows(tmp_path / "fresh.csv", np.random.default_rng(1).choice(labels, FRESH).tolist(), words, 2)
    model = str(tmp_path / "m.taxo")
    arguments = ["--text", "text", "--label", "label", "--threads", "1", "--hold-out", "0", "-o", model]
    assert main(["train", str(train), *arguments]) == 0
    notes = capsys.readouterr().err.splitlines()
    assert [note for note in notes if not note.startswith(NOTES)] == []
    assert main(["evaluate", model, str(fresh), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    low, high = scores["log_loss_interval"]
    error = (high - low) / 2 / 1.96
    # The frequencies are those of the fresh rows themselves, so this asks for a little more than above.
    assert scores["log_loss"] <= scores["baseline_log_loss"] + STANDARD_ERRORS * error
    assert main(["predict", model, str(fresh), "-o", str(tmp_path / "answers.csv")]) == 0
    with (tmp_path / "answers.csv").open(encoding="utf-8") as file:
        answers = list(csv.DictReader(file))
    assert len(answers) == FRESH
    assert all(0 < float(row["probability"]) <= 1 for row in answers)
