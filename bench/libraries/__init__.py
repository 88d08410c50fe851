"""The libraries that take part, a module each. A module registers itself by being in this folder.

Its tables say what it takes part in, by the names in results: ``SOLVERS`` of the flat linear objective (suite
``peers``), ``CLASSIFIERS`` that know trees or many classes (``peers_models``), ``TOP_MODELS`` of very many classes
(``wordnet``), ``RBF_MODELS`` with an RBF kernel (``kernels``, ``rank`` and ``large``), and models that do whole jobs:
``JOB_MODELS`` (``jobs``), ``EMBEDDING_MODELS`` of texts with embeddings (``embeddings``), ``TABLE_MODELS`` of data
frames (``tables``), ``LABEL_MODELS`` and ``GENE_MODELS`` of rows with several labels (``several_labels`` and
``gene_functions``), and ``PAPER_MODELS`` of Gopal and Yang's table (``recursive_paper``).
bench/libraries/contracts.py describes their entries.
"""

import importlib
import pkgutil
from typing import Any

from bench.libraries.contracts import Classifier, JobModel, LabelModel, MakeRBF, PaperModel, SolverEntry, TopModel

OURS = "taxolearn"

_NAMES = sorted((each.name for each in pkgutil.iter_modules(__path__)), key=lambda name: (name != "ours", name))
_MODULES = [importlib.import_module(f"{__name__}.{name}") for name in _NAMES]


def _entries(table: str) -> dict[str, Any]:
    """The entries of all modules, ours first."""
    return {title: entry for module in _MODULES for title, entry in getattr(module, table, {}).items()}


SOLVERS: dict[str, SolverEntry] = _entries("SOLVERS")
CLASSIFIERS: dict[str, Classifier] = _entries("CLASSIFIERS")
TOP_MODELS: dict[str, TopModel] = _entries("TOP_MODELS")
RBF_MODELS: dict[str, MakeRBF] = _entries("RBF_MODELS")
JOB_MODELS: dict[str, JobModel] = _entries("JOB_MODELS")
EMBEDDING_MODELS: dict[str, JobModel] = _entries("EMBEDDING_MODELS")
TABLE_MODELS: dict[str, JobModel] = _entries("TABLE_MODELS")
LABEL_MODELS: dict[str, LabelModel] = _entries("LABEL_MODELS")
GENE_MODELS: dict[str, LabelModel] = _entries("GENE_MODELS")
PAPER_MODELS: dict[str, PaperModel] = _entries("PAPER_MODELS")
