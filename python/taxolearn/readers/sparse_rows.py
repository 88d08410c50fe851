"""What the readers of svmlight, LSHTC and vw share: from the core's parser to a matrix and labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn import _core
from taxolearn.raw_files import Source, name_of, read_blocks
from taxolearn.validation import check_number

__all__ = ["Sizes", "SparseRows"]

_LARGEST_INT32 = np.iinfo(np.int32).max
_INEXACT = 2**53
_HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*\r?(?=\n|\Z)")
_LONGEST_HEADER = 200


class Sizes(NamedTuple):
    """The first line of a file of the extreme classification repository."""

    rows: int
    features: int
    labels: int


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put the file's name before the line and column of the core's errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}, {error}") from None


class SparseRows:
    """The rows of one file, as the core has parsed them."""

    def __init__(
        self,
        source: Source,
        *,
        form: str,
        multilabel: bool,
        query_ids: bool = True,
        named_features: bool = False,
        vocabulary: Sequence[str] | None = None,
    ) -> None:
        known = None if vocabulary is None else [name.encode("utf-8", "surrogateescape") for name in vocabulary]
        parser = _core.SparseTextParser(
            form=form,
            several_labels=bool(multilabel),
            query_ids=query_ids,
            named_features=named_features,
            vocabulary=known,
        )
        self.name = name_of(source)
        self.sizes: Sizes | None = None
        begin: bytes | None = b"" if form == "svmlight" else None
        for block in chain(read_blocks(source), [b""]):
            if begin is not None:  # the first line may come in pieces
                begin += block
                if block and len(begin) < _LONGEST_HEADER and b"\n" not in begin:
                    continue
                block, begin = self._without_header(begin, multilabel), None
            with _naming(self.name):
                parser.feed(block)
        with _naming(self.name):
            self.parsed = parser.finish()
        if len(self.parsed["offsets"]) == 1:
            raise ValueError(f"{self.name}, line 1, column 1: expected at least one row, found none in the whole file")
        self.vocabulary = [name.decode("utf-8", "surrogateescape") for name in parser.vocabulary()]

    def _without_header(self, block: bytes, multilabel: bool) -> bytes:
        """Read the sizes if the file begins with them: three integers, which are no row. Their line becomes blank."""
        match = _HEADER.match(block)
        if match is None:
            return block
        if not multilabel:
            raise ValueError(
                f"{self.name}, line 1, column 1: expected a row with one label, found the numbers of rows, features "
                "and labels; such files have several labels per row: pass multilabel=True"
            )
        self.sizes = Sizes(*(int(number) for number in match.groups()))
        return block[match.end() :]

    def starts_at_zero(self, zero_based: object) -> bool:
        """Whether the first column has the id 0: as given, or with "auto" if the id 0 occurs."""
        smallest = self.parsed["smallest"]
        has_zero = smallest is not None and smallest[0] == 0
        if isinstance(zero_based, str) and zero_based == "auto":
            return bool(has_zero) or self.sizes is not None
        if not isinstance(zero_based, bool | np.bool_):
            raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}')
        if has_zero and not zero_based:
            _, line, column = smallest
            raise ValueError(
                f"{self.name}, line {line}, column {column}: expected ids from 1 on, found 0; "
                "if the first id of the file is 0, pass zero_based=True"
            )
        return bool(zero_based)

    def matrix(self, *, first_id: int, n_features: int | None, dtype: npt.DTypeLike) -> sp.csr_array:
        """The features as a matrix. Its column 0 is the feature with the first id."""
        dtype = np.dtype(dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {dtype}")
        largest = self.parsed["largest"]
        width = 0 if largest is None else largest[0] - first_id + 1
        if n_features is not None:
            n_features = check_number("n_features", n_features, least=0, integer=True)
            if width > n_features:
                feature, line, column = largest
                raise ValueError(
                    f"{self.name}, line {line}, column {column}: expected ids from {first_id} to "
                    f"{first_id + n_features - 1} (n_features={n_features}), found {feature}"
                )
            width = n_features
        with np.errstate(over="ignore"):  # refused below
            values = self.parsed["values"].astype(dtype, copy=False)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.name}: values beyond the range of {dtype}; pass dtype=numpy.float64")
        ids, offsets = self.parsed["ids"], self.parsed["offsets"]
        if max(width, len(ids)) <= _LARGEST_INT32:
            columns, offsets = ids.astype(np.int32), offsets.astype(np.int32)
            columns -= first_id
        else:
            columns = ids - first_id
        X = sp.csr_array((values, columns, offsets), shape=(len(offsets) - 1, width))
        X.has_sorted_indices = True
        X.has_canonical_format = True
        return X

    def labels(self, multilabel: bool) -> Any:
        """One label per row as an array, or a list with a tuple for each row."""
        labels = self.parsed["labels"]
        largest = labels[np.abs(labels).argmax()] if len(labels) > 0 else 0.0
        if abs(largest) >= _INEXACT:
            raise ValueError(
                f"{self.name}: expected labels below 2**53 = {_INEXACT} in size, found {largest:.16g} or one near it; "
                "floats, as which labels are read, do not tell them apart: number the classes anew, say from 0 on"
            )
        if (labels == np.rint(labels)).all():
            labels = labels.astype(np.int64)
        if not multilabel:
            return labels
        offsets = self.parsed["label_offsets"]
        if self.sizes is not None:
            self._check_sizes(self.sizes, labels, offsets)
        flat, ends = labels.tolist(), offsets.tolist()
        return [tuple(flat[first:last]) for first, last in pairwise(ends)]

    def _check_sizes(self, sizes: Sizes, labels: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> None:
        n_rows = len(offsets) - 1
        if n_rows != sizes.rows:
            raise ValueError(f"{self.name}: expected {sizes.rows} rows, as line 1 says, found {n_rows}")
        wrong = np.flatnonzero((labels < 0) | (labels >= sizes.labels) | (labels != np.rint(labels)))
        if len(wrong) > 0:
            row = int(np.searchsorted(offsets, wrong[0], side="right"))
            raise ValueError(
                f"{self.name}, row {row}: expected labels from 0 to {sizes.labels - 1}, as line 1 says, found "
                f"{labels[wrong[0]]:g}"
            )
