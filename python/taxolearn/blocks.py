"""Inputs that are several matrices side by side, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from taxolearn.sequence_codes import are_strings, letter_codes

__all__ = ["Blocks", "n_stored", "stack_rows"]


class Blocks:
    """Several matrices of the same rows, each under a name: different kinds of evidence about the same things.

    A model gives every block a kernel of its own, by default a linear one with a variance of its own, so that each has
    the weight that the data ask for. The matrices are never put together: a sparse one stays sparse beside a dense one.

    Parameters
    ----------
    blocks : mapping from names to arrays, sparse matrices or data frames of shape (n_samples, n_features of the block)
        In this order. A list or a column of strings becomes the codes of their letters, for a kernel of strings.

    Attributes
    ----------
    names : tuple of str
        Names of the blocks.
    matrices : tuple
        The matrices, in the same order.
    shape : tuple (n_samples, n_features)
        With the features of all blocks.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from taxolearn import Blocks
    >>> X = Blocks({"words": sp.csr_array(np.eye(3, 5)), "embedding": np.ones((3, 2))})
    >>> X
    Blocks of 3 rows: 'words' (5 features), 'embedding' (2 features)
    >>> X[1:]["words"].shape
    (2, 5)
    """

    def __init__(self, blocks: Mapping[str, Any]) -> None:
        if not isinstance(blocks, Mapping):
            raise TypeError(f'blocks must be a mapping like {{"words": X}}, got {type(blocks).__name__}')
        if not blocks:
            raise ValueError("blocks is empty, expected at least one matrix under a name")
        for name in blocks:
            if not isinstance(name, str):
                raise TypeError(f"blocks has the name {name!r}, expected a string")
        self.names = tuple(blocks)
        self.matrices = tuple(_as_matrix(name, matrix) for name, matrix in blocks.items())
        n = self.matrices[0].shape[0]
        for name, matrix in zip(self.names, self.matrices, strict=True):
            if matrix.shape[0] != n:
                raise ValueError(
                    f"block {name!r} has {matrix.shape[0]} rows and {self.names[0]!r} has {n}, expected the same number"
                )

    @classmethod
    def from_columns(cls, X: Any, columns: Mapping[str, Any]) -> Blocks:
        """The columns of one matrix in groups.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The matrix.
        columns : mapping from names to slices, lists of column numbers, or masks
            Which columns belong to each block. Those that are in no block are left out.

        Examples
        --------
        >>> import numpy as np
        >>> from taxolearn import Blocks
        >>> Blocks.from_columns(np.ones((2, 5)), {"size": slice(0, 2), "shape": [2, 4]})
        Blocks of 2 rows: 'size' (2 features), 'shape' (2 features)
        """
        matrix = _as_matrix("X", X)
        if sp.issparse(matrix):
            matrix = matrix.tocsc()
        return cls({name: matrix[:, chosen] for name, chosen in columns.items()})

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrices[0].shape[0]), sum(int(matrix.shape[1]) for matrix in self.matrices)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that holds the numbers of all blocks."""
        return np.result_type(*(matrix.dtype for matrix in self.matrices))

    @property
    def n_features(self) -> dict[str, int]:
        """Number of features by the name of the block."""
        return {name: int(matrix.shape[1]) for name, matrix in self.items()}

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of names and matrices."""
        return zip(self.names, self.matrices, strict=True)

    def parts(self) -> Iterator[tuple[str, Any, slice]]:
        """Names, matrices, and their columns among those of all blocks."""
        first = 0
        for name, matrix in self.items():
            yield name, matrix, slice(first, first + matrix.shape[1])
            first += matrix.shape[1]

    def select(self, names: Iterable[str]) -> Blocks:
        """Some of the blocks, in this order."""
        return Blocks({name: self[name] for name in names})

    def copy(self) -> Blocks:
        """The same with copies of the matrices."""
        return Blocks({name: matrix.copy() for name, matrix in self.items()})

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """A block by its name; or all blocks with the given rows: a slice, row numbers, or a mask."""
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"there is no block {key!r}, only {', '.join(map(repr, self.names))}")
            return self.matrices[self.names.index(key)]
        if isinstance(key, tuple) and len(key) == 2 and key[1] in (Ellipsis, slice(None)):
            key = key[0]
        is_rows = isinstance(key, slice) or (not np.isscalar(key) and np.ndim(key) == 1)
        if isinstance(key, tuple) or not is_rows:
            raise IndexError(f"Blocks take a name, a slice, row numbers or a mask of the rows, got {key!r}")
        return Blocks({name: matrix[key] for name, matrix in self.items()})

    def __matmul__(self, weights: Any) -> Any:
        """The product with weights of all features, shape (n_features, n_columns)."""
        products = [matrix @ weights[columns] for _, matrix, columns in self.parts()]
        return sum(product.toarray() if sp.issparse(product) else np.asarray(product) for product in products)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "Blocks are several matrices, which do not make one array; use X[name], or scipy.sparse.hstack(X.matrices)"
        )

    def __repr__(self) -> str:
        listed = ", ".join(f"{name!r} ({count} features)" for name, count in self.n_features.items())
        return f"Blocks of {len(self)} rows: {listed}"


def n_stored(X: Any) -> int:
    """How many numbers of an array, a sparse matrix or blocks are stored."""
    if isinstance(X, Blocks):
        return sum(map(n_stored, X.matrices))
    return int(X.nnz if sp.issparse(X) else X.size)


def stack_rows(first: Any, second: Any) -> Any:
    """The rows of two arrays, sparse matrices or blocks, one below the other."""
    if isinstance(first, Blocks):
        return Blocks({name: stack_rows(matrix, second[name]) for name, matrix in first.items()})
    return sp.vstack([first, second], format="csr") if sp.issparse(first) else np.vstack([first, second])


def _as_matrix(name: str, matrix: Any) -> Any:
    if isinstance(matrix, Blocks):
        raise TypeError(f"block {name!r} has blocks itself, expected a matrix")
    if are_strings(matrix):
        return letter_codes(matrix, f"block {name!r}")
    matrix = matrix.tocsr() if sp.issparse(matrix) else np.asarray(matrix)
    if matrix.ndim != 2:
        raise ValueError(f"block {name!r} has {matrix.ndim} dimensions, expected 2: rows and features")
    return matrix
