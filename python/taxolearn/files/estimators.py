"""Fitted classifiers, and the transformers that come before them, as JSON and arrays, and back."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.feature_extraction.text as text
import sklearn.preprocessing as preprocessing
from numpy.typing import NDArray
from sklearn.pipeline import FeatureUnion, Pipeline

from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier, class_functions, set_class_functions
from taxolearn.features.embeddings import SentenceEmbeddings
from taxolearn.features.missing import ColumnMeans
from taxolearn.features.scales import CYCLES, Curves, NumberScale
from taxolearn.features.tables import TableFeatures
from taxolearn.files.container import ContentError, NotStorableError, Packer, Unpacker, expect
from taxolearn.files.embeddings import pack_embeddings, unpack_embeddings
from taxolearn.files.sequences import Substrings, WordCodes
from taxolearn.files.version1 import upgrade_fit, upgrade_hyperparameters, upgrade_name, upgrade_parameters
from taxolearn.fitting.expectation import ExpectationResult
from taxolearn.fitting.fit import FitResult
from taxolearn.fitting.functions import ClassFunctions, Expansion, KernelFunctions, LinearFunctions, MatrixFunctions
from taxolearn.fitting.recursive import RecursiveResult
from taxolearn.kernels.per_block import PerBlock
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.search import Evaluation, LearningResult

__all__ = [
    "TRANSFORMERS",
    "describe_classifier",
    "pack_classifier",
    "pack_common",
    "pack_fit",
    "pack_functions",
    "pack_transformer",
    "unpack_classifier",
    "unpack_common",
    "unpack_fit",
    "unpack_functions",
    "unpack_hyperparameters",
    "unpack_transformer",
]

_NUMBER = (int, float, str, bool)
_RESULT_COLUMNS = ("value", "converged", "gap", "products", "seconds", "tolerance", "temperature")


# -- Classifiers ------------------------------------------------------------------------------------------------------


def pack_common(model: Any, packer: Packer) -> dict[str, Any]:
    """What all classifiers have: parameters, classes, tree and features."""
    parameters = {}
    for name, value in model.get_params(deep=False).items():
        with suppress(NotStorableError):  # such as splitters and paths: they are for the fit alone
            parameters[name] = packer.value(value)
    names = getattr(model, "feature_names_in_", None)
    return {
        "parameters": parameters,
        "classes": packer.labels(model.classes_),
        "taxonomy": packer.taxonomy(model.taxonomy_),
        "features": int(model.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "blocks": list(map(list, getattr(model, "blocks_in_", {}).items())),
    }


def unpack_common(model: Any, entry: Any, unpacker: Unpacker, version: int, *, are_leaves: bool = True) -> None:
    """Set what ``pack_common`` stored. Classes are the leaves of the tree, or else all its nodes but the root."""
    known = model.get_params(deep=False)
    parameters = {name: unpacker.value(value) for name, value in expect(entry["parameters"], dict).items()}
    if version == 1:
        parameters = upgrade_parameters(parameters)
    model.set_params(**{name: value for name, value in parameters.items() if name in known})
    model.classes_ = unpacker.labels(entry["classes"])
    model.taxonomy_ = tree = unpacker.taxonomy(entry["taxonomy"])
    if tree is not None:
        names = tree.classes.tolist() if are_leaves else tree.names[1:].tolist()
        if sorted(names) != model.classes_.tolist():
            raise ContentError(f"its classes are not the {'leaves' if are_leaves else 'nodes'} of its tree")
    model.n_features_in_ = expect(entry["features"], int)
    blocks = {expect(name, str): expect(count, int) for name, count in expect(entry.get("blocks", []), list)}
    if blocks:
        if sum(blocks.values()) != model.n_features_in_ or min(blocks.values()) < 0:
            raise ContentError("its blocks have another number of features")
        model.blocks_in_ = blocks
    if entry["feature_names"] is not None:
        names = [expect(name, str) for name in expect(entry["feature_names"], list)]
        if len(names) != model.n_features_in_:
            raise ContentError("it has another number of features than names of features")
        model.feature_names_in_ = np.array(names, dtype=object)


def pack_fit(model: Any, packer: Packer) -> dict[str, Any]:
    """How a fit went: hyperparameters, its result, and how hyperparameters were learned."""
    return {
        "hyperparameters": packer.value(model.hyperparameters_.to_dict()),
        "fit": packer.value(asdict(model.result_)),
        "learning": None if model.cv_result_ is None else _pack_learning(model.cv_result_, packer),
    }


def unpack_fit(model: Any, entry: Any, unpacker: Unpacker, version: int) -> None:
    """Set what ``pack_fit`` stored."""
    model.hyperparameters_ = unpack_hyperparameters(entry, unpacker, version)
    fit = expect(unpacker.value(entry["fit"]), dict)
    fit = upgrade_fit(fit) if version == 1 else fit
    is_joint = "ranks" in fit
    model.result_ = FitResult(**fit | {"ranks": tuple(fit["ranks"])}) if is_joint else RecursiveResult(**fit)
    model.cv_result_ = None if entry["learning"] is None else _unpack_learning(entry["learning"], unpacker, version)
    model.n_iter_ = expect(model.result_.iterations, int)


def unpack_functions(model: Any, entry: Any, unpacker: Unpacker, n_functions: int | None = None) -> ClassFunctions:
    """The functions of a classifier whose other parts are there: one of each class, or so many."""
    n_functions = len(model.classes_) if n_functions is None else n_functions
    functions = _unpack_functions(entry["functions"], unpacker, n_functions)
    if functions.n_features != model.n_features_in_:
        raise ContentError("it has another number of features than weights")
    return functions


def pack_classifier(model: KernelLogisticClassifier, packer: Packer, dtype: Any) -> dict[str, Any]:
    """Parameters and what was fitted; weights and coefficients in the given type."""
    expectation = None if model.em_result_ is None else packer.value(asdict(model.em_result_))
    functions = {"functions": pack_functions(class_functions(model), packer, dtype)}
    return pack_common(model, packer) | pack_fit(model, packer) | functions | {"expectation": expectation}


def unpack_classifier(entry: Any, unpacker: Unpacker, version: int) -> KernelLogisticClassifier:
    """The classifier, ready to predict."""
    model = KernelLogisticClassifier()
    unpack_common(model, entry, unpacker, version)
    unpack_fit(model, entry, unpacker, version)
    set_class_functions(model, unpack_functions(model, entry, unpacker))
    rounds = entry.get("expectation")  # files of before have none
    model.em_result_ = None if rounds is None else ExpectationResult(**expect(unpacker.value(rounds), dict))
    return model


def describe_classifier(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    """What ``read_report`` says about the functions, the hyperparameters and the fit of a stored classifier."""
    return {
        "functions": expect(entry["functions"]["kind"], str),
        "hyperparameters": unpack_hyperparameters(entry, unpacker, version).to_dict(),
        "fit": {name: value for name, value in entry["fit"]["mapping"] if name != "timings"},
    }


def unpack_hyperparameters(entry: Any, unpacker: Unpacker, version: int) -> Hyperparameters:
    fields: dict[str, Any] = {"kernel": None} | expect(unpacker.value(entry["hyperparameters"]), dict)
    if version == 1:
        fields = upgrade_hyperparameters(fields)
    return Hyperparameters(**fields)


def _pack_learning(result: LearningResult, packer: Packer) -> Any:
    evaluations = result.evaluations
    gradients = [np.full(len(result.names), np.nan) if each.gradient is None else each.gradient for each in evaluations]
    shape = (len(evaluations), len(result.names))
    columns = [[getattr(each, name) for name in _RESULT_COLUMNS] for each in evaluations]
    return {
        "status": result.status,
        "message": result.message,
        "names": list(result.names),
        "best": result.best,
        "held_out": float(result.n_held_out),
        "is_log": None
        if result.is_log is None or np.all(result.is_log)
        else packer.array("learning.is_log", np.asarray(result.is_log, dtype=np.int64)),
        "start": packer.array("learning.start", np.asarray(result.start, dtype=np.float64)),
        "bounds": packer.array("learning.bounds", np.asarray(result.bounds, dtype=np.float64)),
        "thetas": packer.array("learning.thetas", np.asarray(result.thetas, dtype=np.float64)),
        "gradients": packer.array("learning.gradients", np.array(gradients, dtype=np.float64).reshape(shape)),
        "columns": packer.array(
            "learning.columns", np.array(columns, dtype=np.float64).reshape(-1, len(_RESULT_COLUMNS))
        ),
    }


def _unpack_learning(entry: Any, unpacker: Unpacker, version: int) -> LearningResult:
    names = tuple(expect(name, str) for name in expect(entry["names"], list))
    if version == 1:
        names = tuple(map(upgrade_name, names))
    thetas = unpacker.array(entry["thetas"], None, len(names))
    gradients = unpacker.array(entry["gradients"], *thetas.shape)
    columns = unpacker.array(entry["columns"], len(thetas), None)
    if columns.shape[1] == len(_RESULT_COLUMNS) - 1:  # files of before there were temperatures
        columns = np.column_stack([columns, np.ones(len(columns))])
    if columns.shape[1] != len(_RESULT_COLUMNS):
        raise ContentError("its record of learning is wrong")
    evaluations = []
    for theta, gradient, (value, converged, gap, products, seconds, tolerance, temperature) in zip(
        thetas, gradients, columns.tolist(), strict=True
    ):
        evaluations.append(
            Evaluation(
                theta=theta,
                value=value,
                gradient=None if np.isnan(gradient).all() and len(names) else gradient,
                converged=bool(converged),
                gap=gap,
                products=int(products),
                seconds=seconds,
                tolerance=tolerance,
                temperature=temperature,
            )
        )
    best, is_log = entry["best"], entry.get("is_log")
    if best is not None and not 0 <= expect(best, int) < len(evaluations):
        raise ContentError("its record of learning is wrong")
    return LearningResult(
        status=expect(entry["status"], str),
        message=expect(entry["message"], str),
        names=names,
        start=unpacker.array(entry["start"], len(names)),
        bounds=unpacker.array(entry["bounds"], len(names), 2),
        n_held_out=expect(entry["held_out"], float),
        evaluations=tuple(evaluations),
        best=best,
        is_log=None if is_log is None else unpacker.array(is_log, len(names), kinds="i").astype(np.bool_),
    )


# -- Functions of the classes -----------------------------------------------------------------------------------------


def pack_functions(functions: ClassFunctions, packer: Packer, dtype: Any) -> Any:
    intercept = packer.array("intercept", np.asarray(functions.intercept, dtype=np.float64))
    if isinstance(functions, LinearFunctions) and sp.issparse(functions.coef):
        weights = packer.matrix("weights", functions.coef.T.astype(dtype, copy=False))
        return {"kind": "sparse linear", "intercept": intercept, "weights": weights}
    if isinstance(functions, LinearFunctions):
        # By features, so that a prediction reads the rows of the features it has.
        weights = packer.array("weights", functions.coef.T.astype(dtype, copy=False))
        return {"kind": "linear", "intercept": intercept, "weights": weights}
    expansions = [
        {
            "kernel": packer.kernel(each.kernel),
            "basis": None if each.basis is None else packer.matrix(f"basis.{k}", each.basis),
            "coefficients": packer.array(f"coefficients.{k}", each.coefficients.astype(dtype, copy=False)),
            "functions": packer.value(each.functions),
            "weights": None
            if each.weights is None
            else packer.array(f"linear.{k}", each.weights.astype(dtype, copy=False)),
        }
        for k, each in enumerate(functions.expansions)
    ]
    out: dict[str, Any] = {"kind": "matrix", "intercept": intercept, "expansions": expansions}
    if isinstance(functions, KernelFunctions):
        parents = functions.coupling.parents
        out |= {
            "kind": "kernel",
            "kernel_of": list(functions.kernel_of),
            "parents": None if parents is None else packer.array("coupling.parents", parents),
            "order": packer.array("order", functions.order.astype(np.int64)),
        }
    return out


def _unpack_functions(entry: Any, unpacker: Unpacker, n_classes: int) -> ClassFunctions:
    kind = entry["kind"]
    intercept = unpacker.array(entry["intercept"], n_classes).astype(np.float64)
    if not np.isfinite(intercept).all():
        raise ContentError("its intercepts are not finite")
    if kind == "linear":
        return LinearFunctions(unpacker.array(entry["weights"], None, n_classes).T, intercept)
    if kind == "sparse linear":
        sparse = unpacker.matrix(entry["weights"])
        if not sp.issparse(sparse) or sparse.shape[1] != n_classes:
            raise ContentError("it has functions that do not fit together")
        return LinearFunctions(sparse.T, intercept)
    expansions = [_unpack_expansion(each, unpacker) for each in expect(entry["expansions"], list)]
    if kind == "matrix":
        (expansion,) = expansions
        if not expansion.kernel.is_precomputed or expansion.coefficients.shape[1] != n_classes:
            raise ContentError("it has functions that do not fit together")
        return MatrixFunctions(expansions, intercept)
    if kind != "kernel":
        raise ContentError(f"it has functions of the unknown kind {kind!r}; a newer release may know them")
    kernel_of = [expect(k, int) for k in expect(entry["kernel_of"], list)]
    order = unpacker.array(entry["order"], n_classes, kinds="i").astype(np.intp)
    coupling = ClassCoupling()
    if entry["parents"] is not None:
        parents = unpacker.array(entry["parents"], None, kinds="i").astype(np.int64)
        coupling = ClassCoupling(parents, np.ones(len(parents)))
    functions = KernelFunctions(expansions, kernel_of, coupling, intercept, order)
    _check_kernel_functions(functions, n_classes)
    return functions


def _unpack_expansion(entry: Any, unpacker: Unpacker) -> Expansion:
    kernel = unpacker.kernel(entry["kernel"])
    basis = None if entry["basis"] is None else unpacker.matrix(entry["basis"])
    coefficients: NDArray[Any] = unpacker.array(entry["coefficients"], None if basis is None else basis.shape[0], None)
    functions = expect(unpacker.value(entry["functions"]), tuple)
    if len(functions) != coefficients.shape[1] or kernel.is_precomputed != (basis is None):
        raise ContentError("it has functions that do not fit together")
    if basis is not None:
        kernel.check_reads(basis)
    weights = None
    if entry.get("weights") is not None:  # files of before have none
        if basis is None or not isinstance(kernel, PerBlock) or len(kernel.linear_blocks) in (0, len(kernel.names)):
            raise ContentError("it has weights of linear blocks, but no such blocks")
        rows = sum(basis[name].shape[1] for name in kernel.linear_blocks)
        weights = np.ascontiguousarray(unpacker.array(entry["weights"], rows, len(functions)), dtype=np.float64)
    return Expansion(kernel, basis, np.ascontiguousarray(coefficients, dtype=np.float64), functions, weights)


def _check_kernel_functions(functions: KernelFunctions, n_classes: int) -> None:
    expansions, kernel_of, parents = functions.expansions, functions.kernel_of, functions.coupling.parents
    counts, n_functions = [n_classes], 0
    if kernel_of:
        counts = np.bincount(kernel_of, minlength=len(expansions)).tolist()
        n_functions = n_classes if parents is None else len(parents) - 1
    is_valid = (
        [each.coefficients.shape[1] for each in expansions] == counts
        and len({each.basis.shape[1] for each in expansions}) == 1
        and len(kernel_of) == n_functions
        and (parents is None or len(np.setdiff1d(np.arange(len(parents)), parents)) == n_classes)
        and np.array_equal(np.sort(functions.order), np.arange(n_classes))
    )
    if not is_valid:
        raise ContentError("it has functions that do not fit together")
    functions.coupling.to_core()  # it checks the tree


# -- Transformers -----------------------------------------------------------------------------------------------------


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
            "curves": None if transformer.curves_ is None else packer.value(list(transformer.curves_.knots)),
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
        transformer.curves_ = None  # as in files of before
        if entry.get("curves") is not None:
            transformer.curves_ = _unpack_curves(entry["curves"], len(transformer.numeric or ()), unpacker)
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


def _unpack_curves(entry: Any, columns: int, unpacker: Unpacker) -> Curves:
    knots = expect(unpacker.value(entry), list)
    is_right = len(knots) == columns
    for each in knots:
        is_right &= isinstance(each, np.ndarray) and each.ndim == 1 and each.dtype == np.float64
        is_right = is_right and bool(np.isfinite(each).all() and (np.diff(each) > 0).all())
    if not is_right:
        raise ContentError("its curves of numbers are wrong")
    return Curves(tuple(knots))


def _are_cycles(cycles: Any) -> bool:
    return isinstance(cycles, list) and len(set(cycles)) == len(cycles) and set(cycles) <= set(CYCLES)


_KINDS: tuple[_Scaler | _Vectorizer | _Table | Substrings | WordCodes, ...] = (
    _Table(),
    Substrings(),
    WordCodes(),
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
