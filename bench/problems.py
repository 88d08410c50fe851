"""The data that benchmarks run on: collections where they are, and things made up of the same kind."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfTransformer

from taxolearn.datasets import read_npz, read_vw

Floats = npt.NDArray[np.float64]

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Data:
    """Inputs (n x d, sparse or dense, float64) and labels, for training and test."""

    name: str
    X: Any
    y: npt.NDArray[Any]
    X_test: Any
    y_test: npt.NDArray[Any]

    @property
    def description(self) -> str:
        entries = self.X.nnz if sparse.issparse(self.X) else self.X.size
        return (
            f"{self.name}: {self.X.shape[0]} x {self.X.shape[1]}, {entries / self.X.shape[0]:.0f} entries a row, "
            f"{len(np.unique(self.y))} classes, {self.X_test.shape[0]} test rows"
        )

    def first_rows(self, count: int) -> "Data":
        """A random subset of the training rows, always the same."""
        rows = np.sort(np.random.default_rng(0).permutation(self.X.shape[0])[:count])
        return Data(f"{self.name} ({len(rows)} rows)", self.X[rows], self.y[rows], self.X_test, self.y_test)


def data_directory() -> Path:
    """``TAXOLEARN_DATA``, or ``shared/data`` next to the repository."""
    return Path(os.environ.get("TAXOLEARN_DATA", _ROOT.parent / "shared" / "data"))


def news20(quick: bool = False) -> Data:
    """News20 by date, sublinear tf-idf with document frequencies of the training set; made up if it is absent."""
    path = data_directory() / "news20" / "news20_rennie_vocab_counts.npz"
    if not path.exists():
        data = _made_up_text(2000 if quick else 11314, 500, 61188, 130, 20)
    else:
        train, test = (read_npz(path, part, n_features=61188) for part in ("train", "test"))
        data = _tfidf("news20 tf-idf", train.X.astype(np.float64), train.y, test.X.astype(np.float64), test.y)
    return data.first_rows(1000) if quick else data


def _tfidf(name: str, train: Any, y: npt.NDArray[Any], test: Any, y_test: npt.NDArray[Any]) -> Data:
    weighting = TfidfTransformer(sublinear_tf=True).fit(train)
    X, X_test = (sparse.csr_matrix(weighting.transform(part)) for part in (train, test))
    for part in (X, X_test):
        part.sort_indices()
    return Data(name, X, y, X_test, y_test)


def _made_up_text(n: int, n_test: int, d: int, length: int, n_classes: int) -> Data:
    """Words drawn from a Zipf law, a third of them from a law of the class's own."""
    random = np.random.default_rng(0)
    ranks = 1.0 / (np.arange(d) + 3.0)
    common = np.cumsum(ranks / ranks.sum())
    y = random.integers(n_classes, size=n + n_test)
    lengths = np.maximum(1, random.lognormal(np.log(length) + 0.1, 0.5, size=n + n_test).astype(int))
    rows = np.repeat(np.arange(n + n_test), lengths)
    words = np.searchsorted(common, random.random(len(rows))).clip(max=d - 1)
    orders = np.array([random.permutation(d) for _ in range(n_classes)])
    own = random.random(len(rows)) < 1 / 3
    words[own] = orders[y[rows[own]], words[own]]
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, words)), shape=(n + n_test, d))
    return _tfidf("made-up text", counts[:n], y[:n], counts[n:], y[n:])


def aloi(quick: bool = False) -> Data:
    """ALOI as in the file: 128 small whole numbers, not scaled."""
    parts = []
    for name in ("train", "test"):
        path = data_directory() / "aloi" / f"aloi_{name}.vw.gz"
        if not path.exists():
            raise FileNotFoundError(f"{path} is absent; TAXOLEARN_DATA names the directory of the data")
        part = read_vw(path, n_features=128, zero_based=False)
        parts += [part.X.toarray(), part.y]
    data = Data("ALOI", *parts)
    return data.first_rows(data.X.shape[0] // 20) if quick else data


def satimage(quick: bool = False) -> Data:
    """Statlog Landsat, original split, features divided by 10."""
    return _table("satimage", ("sat.trn.gz", "sat.tst.gz"), -1, 10.0, quick)


def usps(quick: bool = False) -> Data:
    """USPS digits, features in [-1, 1] as in the file."""
    return _table("USPS", ("zip.train.gz", "zip.test.gz"), 0, 1.0, quick)


def _table(name: str, files: tuple[str, str], label: int, divisor: float, quick: bool) -> Data:
    """Numbers separated by blanks, one of the columns the label."""
    parts = []
    for file in files:
        path = data_directory() / name.lower() / file
        if not path.exists():
            raise FileNotFoundError(f"{path} is absent; TAXOLEARN_DATA names the directory of the data")
        table = np.loadtxt(path)
        parts += [np.delete(table, label, axis=1) / divisor, table[:, label].astype(np.int64)]
    data = Data(name, *parts)
    return data.first_rows(600) if quick else data


@dataclass(frozen=True)
class Clusters:
    """A mixture of unit Gaussians with equal weights, each of one class: rows, and what the best classifier says."""

    centres: Floats
    classes: npt.NDArray[np.int64]

    @classmethod
    def made_up(cls, n_classes: int, per_class: int, d: int, spread: float) -> "Clusters":
        random = np.random.default_rng(0)
        centres = spread * random.standard_normal((n_classes * per_class, d))
        return cls(centres, np.repeat(np.arange(n_classes), per_class))

    def draw(self, n: int, n_test: int) -> Data:
        """Rows for training and test."""
        random = np.random.default_rng(1)
        which = random.integers(len(self.centres), size=n + n_test)
        X = self.centres[which] + random.standard_normal((n + n_test, self.centres.shape[1]))
        y = self.classes[which]
        return Data("clusters", X[:n], y[:n], X[n:], y[n:])

    def log_proba(self, X: Floats) -> Floats:
        """Logarithms of the true probabilities of the classes."""
        squares = (X**2).sum(axis=1)[:, None] - 2 * X @ self.centres.T + (self.centres**2).sum(axis=1)
        of_class = [-0.5 * squares[:, self.classes == c] for c in range(self.classes.max() + 1)]
        joint: Floats = np.stack([logsumexp(part, axis=1) for part in of_class], axis=1)
        normalized: Floats = joint - logsumexp(joint, axis=1, keepdims=True)
        return normalized


def dump_csr(X: Any, path: Path) -> None:
    """Write a sparse matrix for ``taxolearn_bench --csr``; the layout is described in bench/cpp/csr.hpp."""
    X = sparse.csr_matrix(X)
    with path.open("wb") as file:
        file.write(b"TAXOCSR1")
        np.array([*X.shape, X.nnz], dtype="<i8").tofile(file)
        X.indptr.astype("<i8").tofile(file)
        X.indices.astype("<i4").tofile(file)
        X.data.astype("<f8").tofile(file)
