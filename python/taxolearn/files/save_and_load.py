"""Model files: ``taxolearn.save`` and ``taxolearn.load``.

One file holds arrays and JSON, with checksums; nothing in it is ever executed. It is written as a whole or not at all,
and mapped into memory when it is loaded, so that large models are ready at once and processes share them.
"""

import os
from collections.abc import Callable
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.embedding_classifier import LabelEmbeddingClassifier
from taxolearn.estimators.hierarchical_bayes import HierarchicalBayesClassifier
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.margin import MaxMarginTreeClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pool import PoolClassifier
from taxolearn.estimators.recursive import RecursiveRegularizationClassifier
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.files.bayes import describe_bayes, pack_bayes, unpack_bayes
from taxolearn.files.container import (
    Container,
    ContentError,
    NotStorableError,
    Packer,
    Unpacker,
    expect,
    read_container,
    write_container,
)
from taxolearn.files.estimators import (
    describe_classifier,
    pack_classifier,
    pack_transformer,
    unpack_classifier,
    unpack_transformer,
)
from taxolearn.files.label_embeddings import describe_label_embedding, pack_label_embedding, unpack_label_embedding
from taxolearn.files.margin import describe_margin, pack_margin, unpack_margin
from taxolearn.files.pools import (
    describe_centroid,
    describe_naive_bayes,
    describe_pool,
    pack_centroid,
    pack_naive_bayes,
    pack_pool,
    unpack_centroid,
    unpack_naive_bayes,
    unpack_pool,
)
from taxolearn.files.recursive import describe_recursive, pack_recursive, unpack_recursive
from taxolearn.files.top_down import describe_top_down, pack_top_down, unpack_top_down
from taxolearn.validation import check_choice

__all__ = ["DTYPES", "load", "read_report", "save"]

DTYPES = {"float32": np.float32, "float64": np.float64}


def save(
    model: Any, path: str | PathLike[str], *, dtype: str = "float32", report: dict[str, Any] | None = None
) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : classifier of this package, or Pipeline that ends in one
        A pool may hold classifiers of this package only.
        The steps of a pipeline may be the vectorizers and scalers of scikit-learn, as long as they hold no Python
        functions.
    path : str or path
        Where to write. A file that is there is replaced, once the new one is complete.
    dtype : {"float32", "float64"}, default="float32"
        Type of the weights. Single precision changes probabilities in the seventh digit and halves the file; double
        precision keeps every bit.
    report : dict, optional
        Anything expressible in JSON that should travel with the model; ``read_report`` returns it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import taxolearn
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], ["a", "b", "b", "a"]
    >>> model = taxolearn.KernelLogisticClassifier(tuning=None).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "letters.taxo"
    ...     taxolearn.save(model, path)
    ...     taxolearn.load(path).predict([[0.9, 0.2]])
    array(['b'], dtype='<U1')
    """
    check_choice("dtype", dtype, tuple(DTYPES))
    target = _file_path(path)
    steps: list[tuple[str, Any]] = []
    classifier = model
    if isinstance(model, Pipeline):
        *steps, (last, classifier) = model.steps
    if _kind_of(classifier) is None:
        raise TypeError(
            f"save: model must be a {_known_kinds()}, or a Pipeline that ends in one, got {type(classifier).__name__}"
        )
    check_is_fitted(classifier)
    packer = Packer()
    try:
        content = {
            "classifier": _pack_model(classifier, packer, DTYPES[dtype]),
            "name": last if isinstance(model, Pipeline) else None,
            "steps": [[name, pack_transformer(step, packer)] for name, step in steps],
            "report": report,
            "taxonomies": packer.taxonomies,
            "written_by": _version(),
        }
    except NotStorableError as error:
        raise TypeError(f"save: {error}") from None
    try:
        write_container(target, content, packer.arrays)
    except ValueError as error:  # the report
        raise TypeError(f"save: report must be expressible in JSON: {error}") from None


def load(path: str | PathLike[str], *, check: bool = True) -> Any:
    """Read a model from a file of ``save``.

    Safe on files of strangers: they can give wrong answers, but nothing in them is executed, and what is inconsistent
    is refused. The arrays are mapped, so do not write into the file while the model is in use; ``save`` to the same
    path is fine.

    Parameters
    ----------
    path : str or path
        The file.
    check : bool, default=True
        Whether to compare checksums, for which the whole file is read once, at about a gigabyte in half a second.

    Returns
    -------
    model : classifier or Pipeline
        As it was saved. Parameters that only matter for fitting and cannot be stored, such as splitters and paths of
        checkpoints, have their defaults.

    Raises
    ------
    ValueError
        The file is damaged, of another kind or of a newer version.
    OSError
        It cannot be read.
    """
    source = _file_path(path)
    container = _read(source, check)
    try:
        content = expect(container.content, dict)
        unpacker = Unpacker(container.arrays, content["taxonomies"])
        classifier = _unpack_model(expect(content["classifier"], dict), unpacker, container.version)
        steps = [
            (expect(name, str), unpack_transformer(expect(step, dict), unpacker))
            for name, step in expect(content["steps"], list)
        ]
        if content["name"] is None:
            return classifier
        return Pipeline([*steps, (expect(content["name"], str), classifier)])
    except ContentError as error:
        raise _unusable(source, str(error)) from None
    # A file made up to do harm can have anything where something else belongs.
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _unusable(source, f"its content is inconsistent ({error})") from error


def read_report(path: str | PathLike[str]) -> dict[str, Any]:
    """What a model file says about itself, without loading the model.

    Returns
    -------
    report : dict
        "report" is what was given to ``save``; beside it "version" of the format, "size" in bytes, "written_by",
        "classes" and "features" (their numbers), "arrays" (shape and type by name) and "hyperparameters".
    """
    source = _file_path(path)
    container = _read(source, check=False)
    try:
        content = expect(container.content, dict)
        classifier = content["classifier"]
        unpacker = Unpacker(container.arrays, content["taxonomies"])
        return {
            "version": container.version,
            "size": container.size,
            "written_by": expect(content["written_by"], str),
            "steps": [step["kind"] for _, step in content["steps"]],
            "classes": len(classifier["classes"]["values"]),
            "features": expect(classifier["features"], int),
            **_read_kind(classifier).describe(classifier, unpacker, container.version),
            "arrays": {name: (array.shape, str(array.dtype)) for name, array in container.arrays.items()},
            "report": content["report"],
        }
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _unusable(source, f"its content is inconsistent ({error})") from error


# -- Kinds of classifiers ---------------------------------------------------------------------------------------------


def _pack_model(model: Any, packer: Packer, dtype: Any) -> dict[str, Any]:
    kind = _kind_of(model)
    if kind is None:
        raise NotStorableError(
            f"a {type(model).__name__}, which a model file cannot hold; it can hold a {_known_kinds()}"
        )
    name = {} if kind.name is None else {"kind": kind.name}
    return name | kind.pack(model, packer, dtype)


def _unpack_model(entry: Any, unpacker: Unpacker, version: int) -> Any:
    return _read_kind(entry).unpack(entry, unpacker, version)


def _pack_pool(model: Any, packer: Packer, dtype: Any) -> dict[str, Any]:
    return pack_pool(model, packer, dtype, _pack_model)


def _unpack_pool(entry: Any, unpacker: Unpacker, version: int) -> Any:
    return unpack_pool(entry, unpacker, version, _unpack_model)


def _pack_embedding(model: Any, packer: Packer, dtype: Any) -> dict[str, Any]:
    return pack_label_embedding(model, packer, dtype, _pack_model)


def _unpack_embedding(entry: Any, unpacker: Unpacker, version: int) -> Any:
    return unpack_label_embedding(entry, unpacker, version, _unpack_model)


def _describe_embedding(entry: Any, unpacker: Unpacker, version: int) -> dict[str, Any]:
    return describe_label_embedding(
        entry, unpacker, version, lambda part, *rest: _read_kind(part).describe(part, *rest)
    )


class _Kind(NamedTuple):
    """How classifiers of a class are stored; files of kernel logistic regression name no kind."""

    estimator: type[Any]
    name: str | None
    pack: Callable[[Any, Packer, Any], dict[str, Any]]
    unpack: Callable[[Any, Unpacker, int], Any]
    describe: Callable[[Any, Unpacker, int], dict[str, Any]]


_KINDS = (
    _Kind(KernelLogisticClassifier, None, pack_classifier, unpack_classifier, describe_classifier),
    _Kind(TopDownClassifier, "top-down", pack_top_down, unpack_top_down, describe_top_down),
    _Kind(NaiveBayesClassifier, "naive Bayes", pack_naive_bayes, unpack_naive_bayes, describe_naive_bayes),
    _Kind(CentroidClassifier, "centroid", pack_centroid, unpack_centroid, describe_centroid),
    _Kind(RecursiveRegularizationClassifier, "recursive", pack_recursive, unpack_recursive, describe_recursive),
    _Kind(LabelEmbeddingClassifier, "label embedding", _pack_embedding, _unpack_embedding, _describe_embedding),
    _Kind(MaxMarginTreeClassifier, "max-margin", pack_margin, unpack_margin, describe_margin),
    _Kind(HierarchicalBayesClassifier, "hierarchical Bayes", pack_bayes, unpack_bayes, describe_bayes),
    _Kind(PoolClassifier, "pool", _pack_pool, _unpack_pool, describe_pool),
)


def _kind_of(model: Any) -> _Kind | None:
    return next((kind for kind in _KINDS if isinstance(model, kind.estimator)), None)


def _read_kind(entry: Any) -> _Kind:
    name = entry.get("kind")
    for kind in _KINDS:
        if kind.name == name:
            return kind
    raise ContentError(f"it has a classifier of the unknown kind {name!r}; a newer release may know it")


def _known_kinds() -> str:
    *first, last = (kind.estimator.__name__ for kind in _KINDS)
    return f"{', '.join(first)} or {last}"


# -- Paths ------------------------------------------------------------------------------------------------------------


def _read(path: Path, check: bool) -> Container:
    try:
        return read_container(path, check=check)
    except ContentError as error:
        raise _unusable(path, str(error)) from None
    except OSError as error:
        message = f"load: cannot read {path}: {error.strerror or error}"
        raise type(error)(error.errno, message) if error.errno else OSError(message) from None


def _unusable(path: Path, reason: str) -> ValueError:
    return ValueError(f"load: cannot use {path}: {reason}")


def _file_path(path: Any) -> Path:
    try:
        return Path(os.fspath(path))
    except TypeError:
        raise TypeError(f"path must be a str or a path, got {type(path).__name__}") from None


def _version() -> str:
    return f"taxolearn {version('taxolearn')}"
