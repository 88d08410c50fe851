"""Fitted classifiers as JSON and arrays, and back."""

from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier, class_functions, set_class_functions
from taxolearn.files.container import ContentError, NotStorableError, Packer, Unpacker, expect
from taxolearn.files.version1 import upgrade_fit, upgrade_hyperparameters, upgrade_name, upgrade_parameters
from taxolearn.fitting.expectation import ExpectationResult
from taxolearn.fitting.fit import FitResult
from taxolearn.fitting.functions import ClassFunctions, Expansion, KernelFunctions, LinearFunctions, MatrixFunctions
from taxolearn.fitting.recursive import RecursiveResult
from taxolearn.kernels.per_block import PerBlock
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.search import Evaluation, LearningResult

__all__ = [
    "describe_classifier",
    "pack_classifier",
    "pack_common",
    "pack_fit",
    "pack_functions",
    "unpack_classifier",
    "unpack_common",
    "unpack_fit",
    "unpack_functions",
]

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
    model.hyperparameters_ = _unpack_hyperparameters(entry, unpacker, version)
    fit = expect(unpacker.value(entry["fit"]), dict)
    fit = upgrade_fit(fit) if version == 1 else fit
    is_joint = "ranks" in fit
    model.result_ = FitResult(**fit | {"ranks": tuple(fit["ranks"])}) if is_joint else RecursiveResult(**fit)
    model.cv_result_ = None if entry["learning"] is None else _unpack_learning(entry["learning"], unpacker, version)
    model.n_iter_ = expect(model.result_.iterations, int)


def unpack_functions(model: Any, entry: Any, unpacker: Unpacker) -> ClassFunctions:
    """The functions of a classifier whose other parts are there."""
    functions = _unpack_functions(entry["functions"], unpacker, len(model.classes_))
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
        "hyperparameters": _unpack_hyperparameters(entry, unpacker, version).to_dict(),
        "fit": {name: value for name, value in entry["fit"]["mapping"] if name != "timings"},
    }


def _unpack_hyperparameters(entry: Any, unpacker: Unpacker, version: int) -> Hyperparameters:
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
