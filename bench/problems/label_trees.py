"""Collections with several labels per row in a tree."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bench.problems.data import data_directory
from taxolearn import Taxonomy

__all__ = ["LabelledRows", "rcv1_family"]


@dataclass(frozen=True)
class LabelledRows:
    """Inputs, the indicator of the labels (closed upwards) and their names, whose depth is 0 below the root."""

    X: Any
    Y: npt.NDArray[np.bool_]
    taxonomy: Taxonomy
    names: list[str]
    parents: npt.NDArray[np.int64]  # columns of the labels above, -1 at the top
    depths: npt.NDArray[np.int64]

    def sample(self, train: int, test: int, seed: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Random rows for training, and others for test."""
        rows = np.random.default_rng(seed).permutation(self.X.shape[0])
        return rows[:train], rows[train : train + test]


def rcv1_family(family: str = "CCAT") -> LabelledRows:
    """Documents of RCV1 without duplicates, and the topics of one family."""
    with np.load(data_directory() / "rcv1" / "rcv1_30k_clean.npz") as file:
        X = sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        Y = np.unpackbits(file["Y"], axis=1)[:, : len(file["labels"])].astype(bool)
        names, above = file["labels"].tolist(), file["parents"].tolist()
    parent_of = dict(zip(names, above, strict=True))

    def path(name: str) -> list[str]:
        return [*path(parent_of[name]), name] if name in parent_of and name != family else [name]

    kept = sorted(name for name in names if path(name)[0] == family)
    taxonomy = Taxonomy.from_edges([("root", family)] + [(parent_of[name], name) for name in kept if name != family])
    parents = np.array([kept.index(parent_of[name]) if name != family else -1 for name in kept])
    depths = np.array([len(path(name)) - 1 for name in kept])
    X.sort_indices()
    seen: dict[bytes, int] = {}
    for row, (begin, end) in enumerate(pairwise(X.indptr.tolist())):
        seen.setdefault(X.indices[begin:end].tobytes() + X.data[begin:end].tobytes(), row)
    rows = np.array(sorted(seen.values()))
    columns = [names.index(name) for name in kept]
    return LabelledRows(X[rows], Y[rows][:, columns], taxonomy, kept, parents, depths)
