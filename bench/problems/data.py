"""The data that benchmarks run on: published collections, and made-up data of the same kind."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfTransformer

from bench.problems.synthetic import made_up_text
from taxolearn.datasets import read_npz, read_vw

Floats = npt.NDArray[np.float64]
OfRows = TypeVar("OfRows", bound="Data")

_ROOT = Path(__file__).resolve().parents[2]


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
            f"{self.name}: {self.X.shape[0]} x {self.X.shape[1]}, {entries / self.X.shape[0]:.0f} entries per row, "
            f"{len(np.unique(self.y))} classes, {self.X_test.shape[0]} test rows"
        )

    def first_rows(self: OfRows, count: int) -> OfRows:
        """A random subset of the training rows, always the same."""
        rows = np.sort(np.random.default_rng(0).permutation(self.X.shape[0])[:count])
        return replace(self, name=f"{self.name} ({len(rows)} rows)", X=self.X[rows], y=self.y[rows])


def held_out_fifth(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A random fifth of n rows, always the same, and the others: to choose settings by."""
    held_out, rest = np.split(np.random.default_rng(0).permutation(n), [n // 5])
    return held_out, rest


def data_directory() -> Path:
    """``TAXOLEARN_DATA``, or ``shared/data`` next to the repository."""
    return Path(os.environ.get("TAXOLEARN_DATA", _ROOT.parent / "shared" / "data"))


def news20(quick: bool = False) -> Data:
    """News20 by date, sublinear tf-idf with document frequencies of the training set; made up if it is absent."""
    path = data_directory() / "news20" / "news20_rennie_vocab_counts.npz"
    if not path.exists():
        n = 2000 if quick else 11314
        X, y = made_up_text(n + 500, 20, 130, 61188, seed=0)
        data = Data("made-up text", X[:n], y[:n], X[n:], y[n:])
    else:
        train, test = (read_npz(path, part, n_features=61188) for part in ("train", "test"))
        weighting = TfidfTransformer(sublinear_tf=True).fit(train.X.astype(np.float64))
        X, X_test = (sparse.csr_matrix(weighting.transform(part.X.astype(np.float64))) for part in (train, test))
        for part in (X, X_test):
            part.sort_indices()
        data = Data("news20 tf-idf", X, train.y, X_test, test.y)
    return data.first_rows(1000) if quick else data


def _existing(folder: str, name: str) -> Path:
    path = data_directory() / folder / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is absent; TAXOLEARN_DATA names the directory of the data")
    return path


def aloi(quick: bool = False) -> Data:
    """ALOI as in the file: 128 small whole numbers, not scaled."""
    parts = []
    for name in ("train", "test"):
        part = read_vw(_existing("aloi", f"aloi_{name}.vw.gz"), n_features=128, zero_based=False)
        parts += [part.X.toarray(), part.y]
    data = Data("ALOI", *parts)
    return data.first_rows(data.X.shape[0] // 20) if quick else data


def scaled(data: Data, scaling: str) -> Data:
    """Features divided by the root mean square norm of a training row ("constant"), or standardized ("standard").

    "standard" subtracts the mean and divides by the deviation of the training rows and by sqrt(d). So the mean of
    |x|^2 is 1 in both.
    """
    if scaling == "standard":
        shift = data.X.mean(axis=0)
        factor: Any = np.maximum(data.X.std(axis=0), 1e-12) * np.sqrt(data.X.shape[1])
    else:
        shift = np.zeros(data.X.shape[1])
        factor = np.sqrt(np.mean(np.sum(data.X**2, axis=1)))
    return replace(data, X=(data.X - shift) / factor, X_test=(data.X_test - shift) / factor)


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
        table = np.loadtxt(_existing(name.lower(), file))
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
