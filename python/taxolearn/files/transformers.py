"""Transformers that come before a classifier, of scikit-learn and of our own, as JSON and arrays, and back."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.feature_extraction.text as text
import sklearn.preprocessing as preprocessing
from sklearn.pipeline import FeatureUnion, Pipeline

from taxolearn.features.embeddings import SentenceEmbeddings
from taxolearn.features.missing import ColumnMeans
from taxolearn.features.scales import CYCLES, NumberScale
from taxolearn.features.tables import TableFeatures
from taxolearn.files.container import ContentError, NotStorableError, Packer, Unpacker, expect
from taxolearn.files.embeddings import pack_embeddings, unpack_embeddings

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
            **_pack_scale(transformer.numbers_, packer),
            "dates": _pack_scale(transformer.dates_, packer) | {"cycles": packer.value(transformer.cycles_)},
            "categories": packer.value(transformer.categories_),
            "others": packer.value(transformer.others_),
            "embedder": None if transformer.embedder_ is None else pack_embeddings(transformer.embedder_, packer),
            "embedding_scale": packer.value(transformer.embedding_scale_),
        }

    def unpack(self, transformer: TableFeatures, entry: Any, unpacker: Unpacker) -> None:
        vectorizers = [(kind, unpack_transformer(each, unpacker)) for kind, each in expect(entry["vectorizers"], list)]
        for kind, vectorizer in vectorizers:
            if kind not in ("words", "characters", "sequences") or type(vectorizer) is not text.TfidfVectorizer:
                raise ContentError("its features are wrong")
        if transformer.output not in ("matrix", "blocks"):
            raise ContentError("its features have an unknown output")
        transformer.vectorizers_ = dict(vectorizers)
        if bool(transformer.sequences) != ("sequences" in transformer.vectorizers_):
            raise ContentError("its sequences are wrong")
        dates = expect(entry.get("dates", {"cycles": {"mapping": []}}), dict)  # files of before have none
        cycles = expect(unpacker.value(dates["cycles"]), dict)
        if list(cycles) != list(dict.fromkeys(transformer.dates or ())) or not all(map(_are_cycles, cycles.values())):
            raise ContentError("its dates are wrong")
        transformer.cycles_ = cycles
        transformer.numbers_ = _unpack_scale(entry, len(transformer.numeric or ()), unpacker)
        transformer.dates_ = _unpack_scale(dates, len(cycles), unpacker)
        categories = expect(unpacker.value(entry["categories"]), dict) if "categories" in entry else {}
        is_right = list(categories) == list(dict.fromkeys(transformer.categorical or ()))
        for values in categories.values():
            is_right &= all(isinstance(value, str) for value in values) and len(set(values)) == len(values)
        others = expect(unpacker.value(entry["others"]), list) if "others" in entry else []
        if not is_right or not all(categories.get(name) for name in others):
            raise ContentError("its categories are wrong")
        transformer.categories_, transformer.others_ = categories, others
        transformer.embedder_, transformer.embedding_scale_ = None, expect(entry.get("embedding_scale", 1.0), float)
        if entry.get("embedder") is not None:  # files of before have none
            transformer.embedding_model = transformer.embedder_ = unpack_embeddings(entry["embedder"], unpacker)
        if (transformer.embed and transformer.embedder_ is None) or not transformer.embedding_scale_ > 0:
            raise ContentError("its embeddings are wrong")
        has_vectors = transformer.embedder_ is not None or bool(transformer.embedding_columns)
        has_numbers = transformer.numbers_ is not None or transformer.dates_ is not None
        if not vectorizers and not has_numbers and not any(categories.values()) and not has_vectors:
            raise ContentError("it has no features")


_SCALE = tuple(each.name for each in fields(NumberScale))


def _pack_scale(scale: NumberScale | None, packer: Packer) -> dict[str, Any]:
    arrays = {} if scale is None else {name: getattr(scale, name) for name in _SCALE}
    return {name: packer.value(array.astype(np.float64)) for name, array in arrays.items()}


def _unpack_scale(entry: Any, columns: int, unpacker: Unpacker) -> NumberScale | None:
    """The scale of so many columns; in files of before, they are taken as they are, and missing ones do not show."""
    if columns == 0:
        return None
    given = {name: unpacker.value(entry[name]) for name in _SCALE if name in ("mean", "scale") or name in entry}
    arrays = dict.fromkeys(_SCALE, np.zeros(columns)) | given
    is_right = all(isinstance(array, np.ndarray) and array.shape == (columns,) for array in arrays.values())
    if is_right:
        is_right = all(np.isfinite(array).all() for array in arrays.values())
        is_right &= bool((arrays["scale"] > 0).all() and (arrays["width"] >= 0).all())
    if not is_right:
        raise ContentError("its scale of numbers is wrong")
    return NumberScale(**arrays | {"has_missing": arrays["has_missing"] > 0})


def _are_cycles(cycles: Any) -> bool:
    return isinstance(cycles, list) and len(set(cycles)) == len(cycles) and set(cycles) <= set(CYCLES)


_KINDS: tuple[_Scaler | _Vectorizer | _Table, ...] = (
    _Table(),
    _Vectorizer(text.TfidfVectorizer),
    _Vectorizer(text.CountVectorizer),
    _Scaler(text.HashingVectorizer, ()),
    _Scaler(preprocessing.Normalizer, ()),
    _Scaler(ColumnMeans, ("n_features_in_", "mean_")),
    _Scaler(preprocessing.StandardScaler, ("n_features_in_", "mean_", "scale_", "var_", "n_samples_seen_")),
    _Scaler(preprocessing.MaxAbsScaler, ("n_features_in_", "scale_", "max_abs_", "n_samples_seen_")),
    _Scaler(
        preprocessing.MinMaxScaler,
        ("n_features_in_", "scale_", "min_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"),
    ),
)
_BY_NAME = {each.kind.__name__: each for each in _KINDS}
TRANSFORMERS = (*_BY_NAME, "SentenceEmbeddings", "FeatureUnion", "Pipeline")


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
    if type(transformer) is SentenceEmbeddings:
        return pack_embeddings(transformer, packer)
    if kind not in _BY_NAME or type(transformer) is not _BY_NAME[kind].kind:
        raise NotStorableError(f"a model file cannot hold a {kind}; it can hold {', '.join(TRANSFORMERS)}")
    return {
        "kind": kind,
        "parameters": {name: _pack_parameter(kind, name, value, packer) for name, value in _parameters(transformer)},
        "fitted": _BY_NAME[kind].pack(transformer, packer),
    }


def _parameters(transformer: Any) -> list[tuple[str, Any]]:
    """Those that are not the default; vocabularies and embeddings are part of what was fitted."""
    usual, own = (each.get_params(deep=False) for each in (type(transformer)(), transformer))
    names = [name for name in own if name not in ("vocabulary", "embedding_model")]
    return [(name, own[name]) for name in names if type(own[name]) is not type(usual[name]) or own[name] != usual[name]]


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
    if kind == "SentenceEmbeddings":
        return unpack_embeddings(entry, unpacker)
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
        raise ContentError("it has a setting that is no number or text")
    return value
