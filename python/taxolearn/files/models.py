"""Model files: ``taxolearn.save`` and ``taxolearn.load``.

One file holds arrays and JSON, with checksums; nothing in it is ever executed. It is written as a whole or not at all,
and mapped into memory when it is loaded, so that large models are ready at once and processes share them.
"""

import os
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.files.estimators import (
    pack_classifier,
    pack_transformer,
    unpack_classifier,
    unpack_hyperparameters,
    unpack_transformer,
)
from taxolearn.files.format import (
    Container,
    ContentError,
    NotStorableError,
    Packer,
    Unpacker,
    expect,
    read_container,
    write_container,
)
from taxolearn.validation import check_choice

__all__ = ["DTYPES", "load", "read_report", "save"]

DTYPES = {"float32": np.float32, "float64": np.float64}


def save(
    model: Any, path: str | PathLike[str], *, dtype: str = "float32", report: dict[str, Any] | None = None
) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : KernelLogisticClassifier, or Pipeline that ends in one
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
    if not isinstance(classifier, KernelLogisticClassifier):
        raise TypeError(
            "save: model must be a KernelLogisticClassifier or a Pipeline that ends in one, got "
            f"{type(classifier).__name__}"
        )
    check_is_fitted(classifier)
    packer = Packer()
    try:
        content = {
            "classifier": pack_classifier(classifier, packer, DTYPES[dtype]),
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
    model : KernelLogisticClassifier or Pipeline
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
        classifier = unpack_classifier(expect(content["classifier"], dict), unpacker, container.version)
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
            "functions": expect(classifier["functions"]["kind"], str),
            "hyperparameters": unpack_hyperparameters(classifier, unpacker, container.version).to_dict(),
            "fit": {name: value for name, value in classifier["fit"]["mapping"] if name != "timings"},
            "arrays": {name: (array.shape, str(array.dtype)) for name, array in container.arrays.items()},
            "report": content["report"],
        }
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _unusable(source, f"its content is inconsistent ({error})") from error


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
