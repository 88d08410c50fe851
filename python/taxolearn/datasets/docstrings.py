"""A hierarchical text collection that is already on the machine: docstrings labelled with their module.

How the collection is made
--------------------------
*Which modules.* The documented public modules of the three packages, listed in ``_MODULES``. They are
imported, not parsed: compiled functions, ufuncs and generated distributions have their docstrings only at run
time, and importing is also the quicker of the two. A module that the installed version lacks is left out.

*Which objects.* Callables in ``__all__`` (without one: public names defined there), and the public methods
and properties that their classes define themselves.

*Which label.* An object reachable from several modules belongs to the one that defines it: the longest listed
module that is a prefix of its ``__module__``; if that module does not list it, the first one that does. If
distinct objects share a text, the first in the order of the listing keeps it.

*What is removed from a text,* since it would spell out the label: a leading signature, interactive examples
with their output, the stock section on array standards, addresses, targets of cross references, file paths,
the names of the packages, and the module part of every dotted name (``scipy.sparse.linalg.spsolve`` and
``linalg.spsolve`` become ``spsolve``). Ordinary words that happen to be a module's name ("cluster", "sparse")
stay.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from taxolearn.datasets.collection import TextCollection

__all__ = ["load_docstrings"]

# In the order in which they are read, after the top level of the package itself.
_LISTING = {
    "numpy": """
        strings char ctypeslib dtypes exceptions fft lib lib.array_utils lib.format lib.introspect
        lib.mixins lib.npyio lib.recfunctions lib.scimath lib.stride_tricks linalg ma ma.mrecords
        polynomial polynomial.chebyshev polynomial.hermite polynomial.hermite_e polynomial.laguerre
        polynomial.legendre polynomial.polynomial polynomial.polyutils random rec testing typing
    """,
    "scipy": """
        cluster.hierarchy cluster.vq constants datasets differentiate fft fftpack integrate
        interpolate io io.arff io.matlab io.wavfile linalg linalg.interpolative ndimage odr optimize
        optimize.elementwise signal signal.windows sparse sparse.csgraph sparse.linalg spatial
        spatial.distance spatial.transform special stats stats.contingency stats.mstats stats.qmc
        stats.sampling
    """,
    "sklearn": """
        base calibration callback cluster compose covariance cross_decomposition datasets
        decomposition discriminant_analysis dummy ensemble exceptions feature_extraction
        feature_extraction.image feature_extraction.text feature_selection frozen gaussian_process
        gaussian_process.kernels impute inspection isotonic kernel_approximation kernel_ridge
        linear_model manifold metrics metrics.cluster metrics.pairwise mixture model_selection
        multiclass multioutput naive_bayes neighbors neural_network pipeline preprocessing
        random_projection semi_supervised svm tree utils utils.class_weight utils.discovery
        utils.estimator_checks utils.extmath utils.graph utils.metadata_routing utils.metaestimators
        utils.multiclass utils.parallel utils.random utils.sparsefuncs utils.validation
    """,
}
_MODULES = {package: names.split() for package, names in _LISTING.items()}
_DISTRIBUTIONS = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
_MINIMUM_WORDS = 5

_PACKAGE_NAMES = {"numpy", "scipy", "sklearn", "np", "sp"}
_SEGMENTS = {part for names in _MODULES.values() for name in names for part in name.split(".")}

# Most patterns begin with a literal or a set of letters, because the engine then skips ahead.
_SIGNATURE = re.compile(r"\A[\w.]+\([^\n]*(?:\n(?!\n)[^\n]*)*(?:\n+|\Z)")
_REMOVED = (
    re.compile(r">>>[^\n]*(?:\n[ \t]*\S[^\n]*)*"),  # an example and its output, up to the blank line
    re.compile(r"\n[ \t]*\.\.\.(?=\s)[^\n]*"),  # a continuation line after a blank one
    re.compile(r"\*\*Array API Standard Support\*\*(?s:.*?)dev-arrayapi[^\n]*"),
    re.compile(r"\.\. (?:current)?module::[^\n]*"),
    re.compile(r"Use of argument\(s\) ``\{[^}]*\}``"),  # a printed set, whose order changes from run to run
    re.compile(r"https?://[^\s>]+"),
    re.compile(r"sphx_glr\w*(?:\.py)?"),  # names of gallery pages contain the module's folder
    re.compile(r"[nseNSE](?:umpy|cipy|klearn|cikit-learn|xamples)/[\w./\-]+"),
)
_TARGET = re.compile(r"`([^`<>]*)<[^`<>]*>`")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PACKAGE = re.compile(r"[nNsS](?:um[pP]y|ci[pP]y|CIPY|klearn|cikit[-_]learn|CIKIT_LEARN)(?![a-z])\w*")
_BLANK = re.compile(r"\n\s*\n\s*")
_GENERATED_METHOD = re.compile(r"set_\w+_request\Z")


@overload
def load_docstrings(
    *, min_documents: int = ..., packages: Sequence[str] = ..., return_X_y: Literal[False] = ...
) -> TextCollection: ...
@overload
def load_docstrings(
    *, min_documents: int = ..., packages: Sequence[str] = ..., return_X_y: Literal[True]
) -> tuple[list[str], NDArray[np.str_]]: ...
def load_docstrings(
    *,
    min_documents: int = 5,
    packages: Sequence[str] = ("numpy", "scipy", "sklearn"),
    return_X_y: bool = False,
) -> TextCollection | tuple[list[str], NDArray[np.str_]]:
    """Load the docstrings of numpy, scipy and scikit-learn, labelled with their public module.

    Nothing is downloaded: the documents are those of the installed versions. The same versions always give
    the same documents in the same order. What would spell out the label is removed from the texts:
    signatures, interactive examples, and the module part of dotted names.

    Parameters
    ----------
    min_documents : int, default=5
        Classes with fewer documents are left out.
    packages : sequence of {"numpy", "scipy", "sklearn"}, default=all three
        The packages to read. Their order does not matter.
    return_X_y : bool, default=False
        Return the pair ``(texts, labels)`` instead of the collection.

    Returns
    -------
    collection : TextCollection
        ``texts``, ``labels`` such as ``"scipy/sparse/linalg"``, ``names`` such as
        ``"scipy.sparse.linalg.spsolve"``, and a ``description`` with versions and counts. A label may be a
        prefix of another one: ``"scipy/sparse"`` is a class too.

    Raises
    ------
    ValueError
        If an argument is out of range, or if no class has ``min_documents`` documents.
    ModuleNotFoundError
        If one of the packages is not installed.

    Examples
    --------
    >>> from taxolearn.datasets import load_docstrings
    >>> texts, labels = load_docstrings(packages=["numpy"], return_X_y=True)
    >>> "numpy/linalg" in labels
    True
    """
    chosen = _check_arguments(min_documents, packages)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated modules and attributes announce themselves when touched
        modules = _import_modules(chosen)
        documents = _documents(modules)
    sizes = Counter(label for _, label, _ in documents)
    kept = [document for document in documents if sizes[document[1]] >= min_documents]
    if not kept:
        raise ValueError(
            f"min_documents={min_documents} leaves no class: the largest has {max(sizes.values())} documents"
        )
    names, labels, texts = ([document[k] for document in kept] for k in range(3))
    if return_X_y:
        return texts, np.array(labels)
    return TextCollection(texts, np.array(labels), names, _describe(chosen, modules, labels))


def _check_arguments(min_documents: int, packages: Sequence[str]) -> list[str]:
    """Validate the arguments and return the packages in the order of the listing."""
    if not isinstance(min_documents, (int, np.integer)) or min_documents < 1:
        raise ValueError(f"min_documents must be an integer of at least 1, got {min_documents!r}")
    if isinstance(packages, str):
        raise ValueError(f"packages must be a sequence of names, got the string {packages!r}")
    unknown = [package for package in packages if package not in _MODULES]
    if unknown or not len(packages):
        raise ValueError(f"packages must name some of {', '.join(_MODULES)}; got {list(packages)!r}")
    chosen = [package for package in _MODULES if package in packages]
    for package in chosen:
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(
                f"load_docstrings reads the installed package {package!r}, which was not found: install "
                f"{_DISTRIBUTIONS[package]} or leave it out of packages={list(packages)!r}",
                name=package,
            )
    return chosen


def _import_modules(packages: Sequence[str]) -> dict[str, ModuleType]:
    """Import the listed modules that the installed versions have, by name and in the order of the listing."""
    names = [name for package in packages for name in (package, *(f"{package}.{sub}" for sub in _MODULES[package]))]
    found = {name: _import_if_present(name) for name in names}
    return {name: module for name, module in found.items() if module is not None}


def _import_if_present(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise  # the module is there, but something that it needs is not


def _documents(modules: dict[str, ModuleType]) -> list[tuple[str, str, str]]:
    """Collect (name, label, text), each object and each text once."""
    exposed: dict[int, list[tuple[str, str, Any]]] = {}  # object identity -> where it can be reached
    for module_name, module in modules.items():
        for name in _public_names(module):
            found = getattr(module, name, None)
            if callable(found) and not inspect.ismodule(found):
                exposed.setdefault(id(found), []).append((module_name, name, found))
    rank = {name: k for k, name in enumerate(modules)}
    owned = sorted((_owner(places, modules) for places in exposed.values()), key=lambda p: (rank[p[0]], p[1]))
    documents = []
    seen: set[str] = set()
    for module_name, name, found in owned:
        for suffix, docstring in _docstrings_of(found):
            text = _without_label(docstring)
            if len(text.split()) >= _MINIMUM_WORDS and text not in seen:
                seen.add(text)
                documents.append((f"{module_name}.{name}{suffix}", module_name.replace(".", "/"), text))
    return documents


def _public_names(module: ModuleType) -> list[str]:
    """Names in ``__all__``; without one, the public names of what the module or its private files define."""
    listed = getattr(module, "__all__", None)
    if listed:
        return sorted(set(listed))
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and _home(value, {module.__name__: module}) == module.__name__
    )


def _owner(places: list[tuple[str, str, Any]], modules: dict[str, ModuleType]) -> tuple[str, str, Any]:
    """Choose, among the places where one object can be reached, the module that defines it."""
    home = _home(places[0][2], modules)
    return next((place for place in places if place[0] == home), places[0])


def _home(found: Any, modules: dict[str, ModuleType]) -> str | None:
    """Longest listed module that contains the file which defines an object."""
    name = getattr(found, "__module__", None)
    while isinstance(name, str) and name and name not in modules:
        name = name.rpartition(".")[0]
    return name if isinstance(name, str) and name else None


def _docstrings_of(found: Any) -> Iterator[tuple[str, str]]:
    """Yield (suffix of the name, docstring) of an object and of the public members its class body defines."""
    if isinstance(found.__doc__, str):
        yield "", found.__doc__
    if inspect.isclass(found):
        for name, member in sorted(vars(found).items()):
            if name.startswith("_") or _GENERATED_METHOD.match(name) or inspect.isclass(member):
                continue
            docstring = getattr(member, "__doc__", None)
            described = callable(member) or inspect.isdatadescriptor(member)
            if (described or isinstance(member, (classmethod, staticmethod))) and isinstance(docstring, str):
                yield f".{name}", docstring


def _without_label(docstring: str) -> str:
    """Remove from a docstring what spells out its module; see the top of this file."""
    text = _SIGNATURE.sub("", inspect.cleandoc(docstring), count=1)
    for pattern in _REMOVED:
        text = pattern.sub("", text)
    text = _TARGET.sub(r"\1", text)
    text = _DOTTED.sub(_last_names, text)
    text = _PACKAGE.sub("", text)
    return _BLANK.sub("\n\n", text).strip()


def _last_names(dotted: re.Match[str]) -> str:
    """Drop the leading parts of a dotted name that are packages or modules, public or private."""
    parts = dotted.group().split(".")
    first = 0
    if parts[0].lower() in _PACKAGE_NAMES:
        first = 1
    elif parts[0] not in _SEGMENTS:
        return dotted.group()
    while first < len(parts) and (parts[first] in _SEGMENTS or parts[first].startswith("_")):
        first += 1
    return ".".join(parts[first:])


def _describe(packages: Sequence[str], modules: dict[str, ModuleType], labels: Sequence[str]) -> str:
    versions = ", ".join(f"{_DISTRIBUTIONS[package]} {modules[package].__version__}" for package in packages)
    classes = set(labels)
    depth = max(label.count("/") + 1 for label in classes)
    return (
        f"Docstrings of {versions}, labelled with their public module: "
        f"{len(labels)} documents, {len(classes)} classes, {depth} levels."
    )
