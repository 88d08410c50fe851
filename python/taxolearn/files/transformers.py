"""The transformers of scikit-learn that often come before a classifier, as JSON and arrays, and back."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.feature_extraction.text as text
import sklearn.preprocessing as preprocessing
from sklearn.pipeline import FeatureUnion, Pipeline

from taxolearn.features.tables import TableFeatures
from taxolearn.files.codec import NotStorableError, Packer, Unpacker, expect
from taxolearn.files.container import ContentError

__all__ = ["TRANSFORMERS", "pack_transformer", "unpack_transformer"]

_NUMBER = (int, float, str, bool)


@dataclass(frozen=True)
class _Scaler:
    """A transformer whose state is some arrays and numbers."""

    kind: type[Any]
    attributes: tuple[str, ...]

    def pack(self, transformer: Any, packer: Packer) -> Any:
        return {name: packer.value(getattr(transformer, name, None)) for name in self.attributes}

    def unpack(self, transformer: Any, entry: Any, unpacker: Unpacker) -> None:
        for name in self.attributes:
            value = unpacker.value(entry[name])
            if isinstance(value, np.ndarray) and value.shape != (entry["n_features_in_"],):
                raise ContentError(f"its {self.kind.__name__} has a wrong shape")
            if value is not None or name in ("mean_", "scale_", "var_"):
                setattr(transformer, name, value)


@dataclass(frozen=True)
class _Vectorizer:
    """Counts of terms, weighted or not."""

    kind: type[Any]

    def pack(self, transformer: Any, packer: Packer) -> Any:
        terms = sorted(transformer.vocabulary_, key=transformer.vocabulary_.__getitem__)
        coded = np.frombuffer(json.dumps(terms, ensure_ascii=False).encode("utf-8", "surrogatepass"), dtype=np.uint8)
        out = {"terms": packer.array("terms", coded), "idf": None}
        if getattr(transformer, "use_idf", False):
            out["idf"] = packer.array("idf", np.asarray(transformer.idf_, dtype=np.float64))
        return out

    def unpack(self, transformer: Any, entry: Any, unpacker: Unpacker) -> None:
        coded = unpacker.array(entry["terms"], None, kinds="u").tobytes().decode("utf-8", "surrogatepass")
        terms = expect(json.loads(coded), list)
        vocabulary = {expect(term, str): k for k, term in enumerate(terms)}
        if len(vocabulary) < len(terms) or not terms:
            raise ContentError("its vocabulary is wrong")
        transformer.vocabulary_ = vocabulary
        transformer.fixed_vocabulary_ = transformer.vocabulary is not None
        if entry["idf"] is not None:
            transformer.idf_ = unpacker.array(entry["idf"], len(terms)).copy()
        elif getattr(transformer, "use_idf", False):
            raise ContentError("its vocabulary has no weights")
        elif isinstance(transformer, text.TfidfVectorizer):
            weights = text.TfidfTransformer(norm=transformer.norm, use_idf=False, sublinear_tf=transformer.sublinear_tf)
            transformer._tfidf = weights.fit(sp.csr_matrix((1, len(terms))))


class _Table:
    """Our own features."""

    kind: type[Any] = TableFeatures

    def pack(self, transformer: TableFeatures, packer: Packer) -> Any:
        return {
            "vectorizers": [[kind, pack_transformer(each, packer)] for kind, each in transformer.vectorizers_.items()],
            "mean": packer.value(getattr(transformer, "mean_", None)),
            "scale": packer.value(getattr(transformer, "scale_", None)),
        }

    def unpack(self, transformer: TableFeatures, entry: Any, unpacker: Unpacker) -> None:
        vectorizers = [(kind, unpack_transformer(each, unpacker)) for kind, each in expect(entry["vectorizers"], list)]
        for kind, vectorizer in vectorizers:
            if kind not in ("words", "characters") or type(vectorizer) is not text.TfidfVectorizer:
                raise ContentError("its features are wrong")
        transformer.vectorizers_ = dict(vectorizers)
        numbers = len(transformer.numeric or ())
        if numbers:
            mean, scale = (unpacker.value(entry[name]) for name in ("mean", "scale"))
            if mean.shape != (numbers,) or scale.shape != (numbers,) or not (scale > 0).all():
                raise ContentError("its scale of numbers is wrong")
            transformer.mean_, transformer.scale_ = mean, scale
        if not vectorizers and not numbers:
            raise ContentError("it has no features")


_KINDS: tuple[_Scaler | _Vectorizer | _Table, ...] = (
    _Table(),
    _Vectorizer(text.TfidfVectorizer),
    _Vectorizer(text.CountVectorizer),
    _Scaler(text.HashingVectorizer, ()),
    _Scaler(preprocessing.Normalizer, ()),
    _Scaler(preprocessing.StandardScaler, ("n_features_in_", "mean_", "scale_", "var_", "n_samples_seen_")),
    _Scaler(preprocessing.MaxAbsScaler, ("n_features_in_", "scale_", "max_abs_", "n_samples_seen_")),
    _Scaler(
        preprocessing.MinMaxScaler,
        ("n_features_in_", "scale_", "min_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"),
    ),
)
_BY_NAME = {each.kind.__name__: each for each in _KINDS}
TRANSFORMERS = (*_BY_NAME, "FeatureUnion", "Pipeline")


def pack_transformer(transformer: Any, packer: Packer) -> Any:
    """A fitted transformer."""
    if transformer is None or transformer in ("passthrough", "drop"):
        return {"kind": str(transformer)}
    kind = type(transformer).__name__
    if isinstance(transformer, (Pipeline, FeatureUnion)) and kind in TRANSFORMERS:
        is_pipeline = isinstance(transformer, Pipeline)
        steps = transformer.steps if is_pipeline else transformer.transformer_list
        weights = None if is_pipeline else packer.value(transformer.transformer_weights)
        return {
            "kind": kind,
            "steps": [[name, pack_transformer(each, packer)] for name, each in steps],
            "weights": weights,
        }
    if kind not in _BY_NAME or type(transformer) is not _BY_NAME[kind].kind:
        raise NotStorableError(f"a model file cannot hold a {kind}; it can hold {', '.join(TRANSFORMERS)}")
    return {
        "kind": kind,
        "parameters": {name: _pack_parameter(kind, name, value, packer) for name, value in _parameters(transformer)},
        "fitted": _BY_NAME[kind].pack(transformer, packer),
    }


def _parameters(transformer: Any) -> list[tuple[str, Any]]:
    """Those that are not the default; the vocabulary is part of what was fitted."""
    usual = type(transformer)().get_params(deep=False)
    return [
        (name, value)
        for name, value in transformer.get_params(deep=False).items()
        if name != "vocabulary" and not (type(value) is type(usual[name]) and value == usual[name])
    ]


def _pack_parameter(kind: str, name: str, value: Any, packer: Packer) -> Any:
    if name == "dtype":
        return {"dtype": np.dtype(value).str}
    try:
        return packer.value(value)
    except NotStorableError as error:
        raise NotStorableError(
            f"{kind} has {name}={value!r}, which a model file cannot hold; use one of its own settings instead"
        ) from error


def unpack_transformer(entry: Any, unpacker: Unpacker) -> Any:
    """The transformer, ready to transform."""
    kind = expect(entry["kind"], str)
    if kind in ("None", "passthrough", "drop"):
        return None if kind == "None" else kind
    if kind in ("Pipeline", "FeatureUnion"):
        steps = [(expect(name, str), unpack_transformer(each, unpacker)) for name, each in expect(entry["steps"], list)]
        if kind == "Pipeline":
            return Pipeline(steps)
        return FeatureUnion(steps, transformer_weights=unpacker.value(entry["weights"]))
    if kind not in _BY_NAME:
        raise ContentError(f"it has a {kind!r}, which this release does not know")
    make: Callable[..., Any] = _BY_NAME[kind].kind
    transformer = make()
    known = transformer.get_params(deep=False)
    parameters = {}
    for name, value in expect(entry["parameters"], dict).items():
        if name not in known:
            raise ContentError(f"it has a {kind} with the setting {name!r}, which the scikit-learn here does not know")
        parameters[name] = np.dtype(value["dtype"]).type if name == "dtype" else _plain(unpacker.value(value))
    transformer.set_params(**parameters)
    _BY_NAME[kind].unpack(transformer, expect(entry["fitted"], dict), unpacker)
    return transformer


def _plain(value: Any) -> Any:
    """A setting: a number, a text, None, or some of these."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    if not all(part is None or isinstance(part, _NUMBER) for part in parts):
        raise ContentError("it has a setting that cannot be")
    return value
