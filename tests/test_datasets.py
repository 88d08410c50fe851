"""The embedded collection: what is in it, what must not be in it, and that it never varies."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.machinery import ModuleSpec

import numpy as np
import pytest

from taxolearn.datasets import TextCollection, docstrings, load_docstrings


@pytest.fixture(scope="module")
def collection() -> TextCollection:
    return load_docstrings()


def digest(collection: TextCollection) -> str:
    content = repr((collection.texts, collection.labels.tolist(), collection.names))
    return hashlib.sha256(content.encode()).hexdigest()


def test_counts_are_those_of_a_real_collection(collection: TextCollection) -> None:
    sizes = Counter(collection.labels.tolist())
    assert 3000 <= len(collection) <= 8000
    assert 70 <= len(sizes) <= 150
    assert min(sizes.values()) >= 5
    assert max(sizes.values()) < len(collection) / 4
    assert len(collection.texts) == len(collection.labels) == len(collection.names) == len(collection)


def test_labels_are_module_paths_of_up_to_three_levels(collection: TextCollection) -> None:
    depths = Counter(label.count("/") + 1 for label in collection.labels.tolist())
    assert set(depths) == {1, 2, 3}
    assert {label.split("/")[0] for label in collection.labels.tolist()} == {"numpy", "scipy", "sklearn"}
    for name, label in zip(collection.names, collection.labels.tolist(), strict=True):
        assert name.startswith(label.replace("/", ".") + ".")
    assert not [label for label in collection.labels.tolist() if "/_" in label]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("numpy.add", "numpy"),  # a compiled ufunc
        ("numpy.ndarray.argsort", "numpy"),  # a method documented apart from its code
        ("numpy.linalg.LinAlgError", "numpy/linalg"),  # also reachable from scipy.linalg
        ("scipy.special.erf", "scipy/special"),
        ("scipy.stats.norm", "scipy/stats"),  # an instance
        ("scipy.sparse.linalg.spsolve", "scipy/sparse/linalg"),
        ("scipy.linalg.solve", "scipy/linalg"),  # defined in a private file
        ("sklearn.metrics.pairwise.cosine_distances", "sklearn/metrics/pairwise"),
        (
            "sklearn.metrics.cluster.v_measure_score",
            "sklearn/metrics/cluster",
        ),  # re-exported by sklearn.metrics
        ("sklearn.svm.SVC", "sklearn/svm"),
    ],
)
def test_known_objects_are_found_where_they_belong(collection: TextCollection, name: str, label: str) -> None:
    assert collection.labels[collection.names.index(name)] == label


def test_no_document_occurs_twice(collection: TextCollection) -> None:
    assert len(set(collection.texts)) == len(collection)
    assert len(set(collection.names)) == len(collection)


def test_texts_do_not_name_their_package_or_module(collection: TextCollection) -> None:
    package = re.compile(r"(?<![a-z])(?:numpy|scipy|sklearn|scikit-learn)(?![a-z])", re.IGNORECASE)
    for text, label in zip(collection.texts, collection.labels.tolist(), strict=True):
        assert not package.search(text), text
        assert ">>>" not in text
        if "/" in label:
            last = re.escape(label.split("/")[-1])
            assert not re.search(rf"(?<![\w.]){last}\.[a-z_]\w*\(", text), (label, text)


@pytest.mark.parametrize(
    ("docstring", "text"),
    [
        ("add(x1, x2, /, out=None)\n\nAdd arguments.", "Add arguments."),
        ("f(a,\n  b)\n\nBody (of f).", "Body (of f)."),
        ("See scipy.sparse.linalg.spsolve.", "See spsolve."),
        ("See linalg.norm and np.linalg.norm.", "See norm and norm."),
        ("In `scipy.sparse.linalg` and NumPy.", "In `` and ."),
        ("Uses numpy._core.multiarray.c_einsum.", "Uses multiarray.c_einsum."),
        ("Keep Polynomial.fit, e.g. in a sparse tree.", "Keep Polynomial.fit, e.g. in a sparse tree."),
        ("Read the :ref:`User Guide <linear_model>`.", "Read the :ref:User Guide ."),
        ("At https://numpy.org/doc/fft.html now.", "At  now."),
        ("In scipy/optimize/_root.py it is.", "In  it is."),
        ("Text.\n\n>>> import numpy.fft\n... more\n[1 2]\n\nEnd.", "Text.\n\nEnd."),
        ("    Indented.\n\n\n\n    Twice.", "Indented.\n\nTwice."),
    ],
)
def test_what_spells_out_the_label_is_removed(docstring: str, text: str) -> None:
    assert docstrings._without_label(docstring) == text


def test_loading_again_gives_the_same(collection: TextCollection) -> None:
    assert digest(load_docstrings()) == digest(collection)
    assert digest(load_docstrings(packages=["sklearn", "scipy", "numpy"])) == digest(collection)


def test_another_process_gives_the_same(collection: TextCollection) -> None:
    """Neither the order of sets nor addresses in memory reach the documents."""
    script = (
        "import hashlib; from taxolearn.datasets import load_docstrings; c = load_docstrings();"
        "print(hashlib.sha256(repr((c.texts, c.labels.tolist(), c.names)).encode()).hexdigest())"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    answer = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == digest(collection)


def test_pair_instead_of_collection(collection: TextCollection) -> None:
    texts, labels = load_docstrings(return_X_y=True)
    assert texts == collection.texts
    np.testing.assert_array_equal(labels, collection.labels)


def test_packages_and_min_documents_select(collection: TextCollection) -> None:
    numpy_only = load_docstrings(packages=("numpy",), min_documents=20)
    sizes = Counter(numpy_only.labels.tolist())
    assert min(sizes.values()) >= 20
    assert all(label.split("/")[0] == "numpy" for label in sizes)
    assert set(sizes) < set(collection.labels.tolist())


def test_description_states_versions_and_counts(collection: TextCollection) -> None:
    assert f"numpy {np.__version__}" in collection.description
    assert f"{len(collection)} documents" in collection.description
    assert f"{len(set(collection.labels.tolist()))} classes" in collection.description
    assert repr(collection).startswith(f"TextCollection({len(collection)} documents")


@pytest.mark.parametrize("min_documents", [0, -1, 2.5, "5"])
def test_min_documents_must_be_a_positive_integer(min_documents: int) -> None:
    with pytest.raises(ValueError, match="min_documents must be an integer of at least 1"):
        load_docstrings(min_documents=min_documents)


def test_min_documents_beyond_every_class_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"min_documents=100000 leaves no class: the largest has \d+ documents"):
        load_docstrings(min_documents=100_000, packages=["numpy"])


@pytest.mark.parametrize("packages", [(), ("pandas",), ("numpy", "pandas"), "numpy"])
def test_packages_must_be_known_names(packages: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="packages must"):
        load_docstrings(packages=packages)


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "sklearn" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(ModuleNotFoundError, match=r"'sklearn', which was not found: install scikit-learn") as caught:
        load_docstrings()
    assert caught.value.name == "sklearn"
    assert len(load_docstrings(packages=["numpy"])) > 0


def test_submodule_that_a_version_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_docstrings(packages=["numpy"])
    monkeypatch.setitem(docstrings._MODULES, "numpy", ["no_such_module", *docstrings._MODULES["numpy"]])
    assert digest(load_docstrings(packages=["numpy"])) == digest(before)
