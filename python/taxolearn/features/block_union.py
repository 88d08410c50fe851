"""Parts of a ``ColumnTransformer`` or a ``FeatureUnion`` as blocks, instead of one matrix of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from taxolearn.blocks import Blocks

__all__ = ["BlockUnion", "as_blocks"]


@dataclass(frozen=True)
class _Part:
    """A transformer, the columns that it is given (None for all), and what its output is multiplied by."""

    name: str
    transformer: Any
    columns: Any
    weight: float | None

    def fitted(self, X: Any, y: Any) -> tuple[_Part, Any]:
        transformer = clone(self.transformer)
        if hasattr(transformer, "fit_transform"):
            output = transformer.fit_transform(self._inputs(X), y)
        else:
            output = transformer.fit(self._inputs(X), y).transform(self._inputs(X))
        return _Part(self.name, transformer, self.columns, self.weight), self._weighted(output)

    def transform(self, X: Any) -> Any:
        return self._weighted(self.transformer.transform(self._inputs(X)))

    def _inputs(self, X: Any) -> Any:
        return X if self.columns is None else _safe_indexing(X, self.columns, axis=1)

    def _weighted(self, output: Any) -> Any:
        return output if self.weight is None else output * self.weight


class BlockUnion(TransformerMixin, BaseEstimator):
    """Applies the parts of a ``ColumnTransformer`` or a ``FeatureUnion``, and keeps their outputs apart.

    ``as_blocks`` makes it. The blocks have the names of the parts, among them "remainder". Sparse outputs stay sparse,
    dense ones dense, whatever the others are. Parts that are dropped or have no columns are left out.

    Parameters
    ----------
    transformer : ColumnTransformer or FeatureUnion
        What ``fit`` fits, or rather copies of its parts. ``sparse_threshold`` and ``set_output`` do not matter.

    Attributes
    ----------
    transformers_ : dict
        The fitted parts by name.
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> BlockUnion:
        """Fit the parts."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Blocks:
        """Fit the parts, and return their outputs."""
        _check(self.transformer)
        if isinstance(self.transformer, ColumnTransformer):
            X = _with_columns(X)
        parts = _parts(self._with_columns_found(X))
        if not parts:
            raise ValueError("as_blocks: all parts of transformer are dropped or have no columns, so there is no block")
        run = joblib.Parallel(n_jobs=self.transformer.n_jobs, prefer="threads")
        done = run(joblib.delayed(part.fitted)(X, y) for part in parts)
        self._set([part for part, _ in done])
        return self._blocks([output for _, output in done])

    def transform(self, X: Any) -> Blocks:
        """Apply the fitted parts."""
        check_is_fitted(self)
        if isinstance(self.transformer, ColumnTransformer):
            X = _with_columns(X)
        run = joblib.Parallel(n_jobs=self.transformer.n_jobs, prefer="threads")
        return self._blocks(run(joblib.delayed(part.transform)(X) for part in self._parts))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the features, block by block: ``block__feature``, as the parts call them."""
        check_is_fitted(self)
        names = [
            f"{part.name}__{name}" for part in self._parts for name in part.transformer.get_feature_names_out().tolist()
        ]
        return np.array(names, dtype=object)

    def _set(self, parts: list[_Part]) -> None:
        self._parts = parts
        self.transformers_ = {part.name: part.transformer for part in parts}

    def _blocks(self, outputs: list[Any]) -> Blocks:
        return Blocks({part.name: output for part, output in zip(self._parts, outputs, strict=True)})

    def _with_columns_found(self, X: Any) -> Any:
        """The transformer; a ``ColumnTransformer`` with ``transformers_``, not fitted but with the columns of each."""
        if isinstance(self.transformer, FeatureUnion):
            return self.transformer
        # One that drops all knows the columns, and those of the remainder, without computing anything.
        given = self.transformer.transformers
        finder = clone(self.transformer).set_params(
            transformers=[(name, "drop", columns) for name, _, columns in given], remainder="drop"
        )
        columns = {name: columns for name, _, columns in finder.fit(X).transformers_}
        found = clone(self.transformer)
        found.transformers_ = [(name, part, columns[name]) for name, part, _ in given]
        if "remainder" in columns:
            found.transformers_.append(("remainder", found.remainder, columns["remainder"]))
        return found


def as_blocks(transformer: ColumnTransformer | FeatureUnion) -> BlockUnion:
    """A transformer that gives the parts of another one as ``Blocks``.

    Parameters
    ----------
    transformer : ColumnTransformer or FeatureUnion
        If it is fitted, the result is ready to ``transform``; ``fit``, also in a pipeline, fits copies of its parts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from taxolearn.features import as_blocks
    >>> features = make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(), [1]))
    >>> as_blocks(features).fit_transform(np.array([[1.0, 3.0], [2.0, 4.0], [6.0, 3.0]]))
    Blocks of 3 rows: 'standardscaler' (1 features), 'onehotencoder' (2 features)
    """
    _check(transformer)
    union = BlockUnion(transformer)
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return union
    union._set(_parts(transformer))
    return union


def _check(transformer: Any) -> None:
    if not isinstance(transformer, (ColumnTransformer, FeatureUnion)):
        raise TypeError(
            f"as_blocks: transformer must be a ColumnTransformer or a FeatureUnion, got {type(transformer).__name__}"
        )


def _with_columns(X: Any) -> Any:
    """The table, as an array if it is a plain list of rows."""
    return X if hasattr(X, "shape") or hasattr(X, "columns") else np.asarray(X)


def _parts(transformer: Any) -> list[_Part]:
    """The parts that have an output."""
    if isinstance(transformer, ColumnTransformer):
        listed = list(transformer.transformers_)
    else:
        listed = [(name, part, None) for name, part in transformer.transformer_list]
    weights = transformer.transformer_weights or {}
    return [
        _Part(name, _passing() if isinstance(part, str) else part, columns, weights.get(name))
        for name, part, columns in listed
        if part != "drop" and not _is_empty(columns)
    ]


def _passing() -> FunctionTransformer:
    """What "passthrough" means."""
    return FunctionTransformer(accept_sparse=True, feature_names_out="one-to-one")


def _is_empty(columns: Any) -> bool:
    if columns is None or isinstance(columns, (str, slice)):
        return False
    chosen = np.asarray(columns)
    return chosen.size == 0 or (chosen.dtype == bool and not chosen.any())
