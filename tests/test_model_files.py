"""Model files: what goes in comes out, and nothing else ever does."""

import hashlib
import json
import os
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler

import taxolearn
from taxolearn import CrossValidation, KernelLogisticClassifier, Solver, Taxonomy, Tree
from taxolearn.files.container import ContentError, read_container, write_container
from taxolearn.kernels import RBF, Cosine, Function, Linear, Matern, PerClass, PerNode, Polynomial, Precomputed

FILES = Path(__file__).parent / "files"
LABELS = np.array(["a/x", "a/y", "b/x", "b/y", "c"])


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        80, 6, n_informative=5, n_redundant=0, n_classes=5, n_clusters_per_class=1, random_state=0
    )
    return X, LABELS[y]


LINEAR = Linear()


def classifier(kernel=LINEAR, **options):
    return KernelLogisticClassifier(kernel, **{"tuning": None} | options)


def round_trip(model, path, **options):
    taxolearn.save(model, path, **options)
    return taxolearn.load(path)


TREE = {"taxonomy": Taxonomy.from_labels(LABELS)}
MODELS = {
    "linear": (classifier(), False),
    "linear, sparse": (classifier(Linear(3.0)), True),
    "linear, tree": (classifier(**TREE), False),
    "linear, variances": (classifier(**TREE, coupling=Tree(tying="node", variances=np.arange(1.0, 9.0)[:7])), False),
    "learned": (KernelLogisticClassifier(tuning=CrossValidation(max_evaluations=4, folds=3)), False),
    "rbf": (classifier(RBF(2.0)), False),
    "rbf, sparse": (classifier(RBF(2.0, fixed="variance")), True),
    "rbf per feature": (classifier(RBF([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], bounds={"variance": (0.1, 10.0)})), False),
    "sum": (classifier(RBF(2.0) + 0.5 * Matern(nu=1.5) * Cosine()), False),
    "polynomial, low rank": (classifier(Polynomial(3), solver=Solver(rank=10)), False),
    "rbf, tree": (classifier(RBF(2.0), **TREE), False),
    "own": (classifier(PerClass({label: RBF(1.0 + k) for k, label in enumerate(LABELS)})), False),
    "own, tree": (classifier(PerNode(RBF(2.0)), **TREE), False),
    "own, low rank": (classifier(PerClass(RBF(2.0)), solver=Solver(rank=12)), False),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name, data, tmp_path):
    model, is_sparse = MODELS[name]
    X, y = data
    X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0)) if is_sparse else X
    model = clone(model).fit(X, y)
    exact = round_trip(model, tmp_path / "exact.taxo", dtype="float64")
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(exact, method)(X), getattr(model, method)(X))
    np.testing.assert_array_equal(exact.classes_, model.classes_)
    assert exact.classes_.dtype == model.classes_.dtype
    assert exact.hyperparameters_ == model.hyperparameters_
    assert exact.result_ == model.result_
    assert exact.n_iter_ == model.n_iter_
    assert exact.n_features_in_ == model.n_features_in_
    if model.taxonomy_ is not None:
        assert exact.taxonomy_.names.tolist() == model.taxonomy_.names.tolist()
        np.testing.assert_array_equal(exact.taxonomy_.parents, model.taxonomy_.parents)
        np.testing.assert_array_equal(exact.predict_node_proba(X), model.predict_node_proba(X))
        np.testing.assert_array_equal(exact.decide(X, "taxo"), model.decide(X, "taxo"))
    small = round_trip(model, tmp_path / "small.taxo")
    np.testing.assert_allclose(small.predict_proba(X), model.predict_proba(X), atol=1e-6)
    # It can be saved again and fitted again.
    again = round_trip(exact, tmp_path / "again.taxo", dtype="float64")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(clone(exact).fit(X, y).predict_proba(X), model.predict_proba(X))


def test_learning_is_kept(data, tmp_path):
    X, y = data
    with pytest.warns(Warning, match="evaluations"):
        model = KernelLogisticClassifier(tuning=CrossValidation(max_evaluations=2, folds=3)).fit(X, y)
    loaded = round_trip(model, tmp_path / "m.taxo").cv_result_
    for name in ("values", "thetas", "gradient_norms", "converged", "gaps", "products", "seconds", "theta", "bounds"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model.cv_result_, name))
    for name in ("status", "message", "names", "best", "n_held_out"):
        assert getattr(loaded, name) == getattr(model.cv_result_, name)
    assert [each.tolerance for each in loaded.evaluations] == [each.tolerance for each in model.cv_result_.evaluations]


@pytest.mark.parametrize(
    "labels", [np.arange(5), np.arange(5.0), LABELS, LABELS.astype(object)], ids=["int", "float", "str", "object"]
)
def test_labels_keep_their_type(labels, data, tmp_path):
    X, y = data
    y = labels[np.unique(y, return_inverse=True)[1]]
    model = classifier().fit(X, y)
    loaded = round_trip(model, tmp_path / "m.taxo")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert type(loaded.classes_[0]) is type(model.classes_[0])


def test_two_classes_of_bool(data, tmp_path):
    X, y = data
    model = classifier().fit(X, y == "c")
    loaded = round_trip(model, tmp_path / "m.taxo", dtype="float64")
    assert loaded.classes_.dtype == bool
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_own_leaves(data, tmp_path):
    X, y = data
    y = np.where(y == "a/x", "a", y)
    model = classifier(**TREE).fit(X, y)
    loaded = round_trip(model, tmp_path / "m.taxo")
    assert loaded.taxonomy_.names.tolist() == model.taxonomy_.names.tolist()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_precomputed(data, tmp_path):
    X, y = data
    K = RBF(2.0)(X)
    model = classifier(Precomputed(2.0)).fit(K, y)
    loaded = round_trip(model, tmp_path / "m.taxo", dtype="float64")
    np.testing.assert_array_equal(loaded.predict_proba(K[:7]), model.predict_proba(K[:7]))


def test_names_of_features(data, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    loaded = round_trip(classifier().fit(frame, y), tmp_path / "m.taxo")
    loaded.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_parameters_that_cannot_be_stored_have_their_defaults(data, tmp_path):
    X, y = data
    model = classifier(
        random_state=np.random.RandomState(0),
        intercept_variance=2.0,
        tuning=CrossValidation(folds=KFold(3), checkpoint=tmp_path / "c"),
    )
    loaded = round_trip(model.fit(X, y), tmp_path / "m.taxo")
    assert loaded.intercept_variance == 2.0
    assert (loaded.tuning.folds, loaded.tuning.checkpoint, loaded.random_state) == (5, None, 0)


TEXTS = [
    "red apples and pears",
    "blue sky",
    "green apples",
    "sky and sea, äöü \U0001f34f",
    "the sea is blue",
    "pears",
]
FRUIT = ["fruit", "nature", "fruit", "nature", "nature", "fruit"]
STEPS = {
    "tf-idf": [TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2))],
    "counts": [CountVectorizer(stop_words=["and", "the"]), MaxAbsScaler()],
    "no idf": [TfidfVectorizer(use_idf=False, dtype=np.float32)],
    "given vocabulary": [TfidfVectorizer(vocabulary=["sea", "sky", "apples", "pears"])],
    "hashing": [HashingVectorizer(n_features=64), Normalizer("l1")],
    "union": [
        FeatureUnion(
            [("words", TfidfVectorizer()), ("characters", TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)))],
            transformer_weights={"words": 2.0},
        )
    ],
}


@pytest.mark.parametrize("name", STEPS)
def test_pipelines_of_texts(name, tmp_path):
    model = make_pipeline(*map(clone, STEPS[name]), classifier()).fit(TEXTS, FRUIT)
    loaded = round_trip(model, tmp_path / "m.taxo", dtype="float64")
    assert isinstance(loaded, Pipeline)
    assert [step for step, _ in loaded.steps] == [step for step, _ in model.steps]
    new = [*TEXTS, "unknown words", ""]
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    if hasattr(model[0], "get_feature_names_out"):
        np.testing.assert_array_equal(loaded[0].get_feature_names_out(), model[0].get_feature_names_out())


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), StandardScaler(with_mean=False), MinMaxScaler((-1, 2)), None, "passthrough"]
)
def test_pipelines_of_numbers(scaler, data, tmp_path):
    X, y = data
    model = Pipeline([("scale", scaler), ("classify", classifier())]).fit(X, y)
    loaded = round_trip(model, tmp_path / "m.taxo", dtype="float64")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_what_cannot_be_saved(data, tmp_path):
    X, y = data
    path = tmp_path / "m.taxo"
    with pytest.raises(TypeError, match=r"must be a KernelLogisticClassifier, .* or a Pipeline"):
        taxolearn.save(StandardScaler(), path)
    with pytest.raises(Exception, match="not fitted"):
        taxolearn.save(classifier(), path)
    with pytest.raises(TypeError, match="is a Python function"):
        taxolearn.save(classifier(Function(lambda A, B: A @ B.T)).fit(X, y), path)
    with pytest.raises(TypeError, match=r"tokenizer=.*cannot hold"):
        taxolearn.save(
            make_pipeline(CountVectorizer(tokenizer=str.split, token_pattern=None), classifier()).fit(TEXTS, FRUIT),
            path,
        )
    with pytest.raises(TypeError, match=r"cannot hold a OneHotEncoder.*TfidfVectorizer"):
        taxolearn.save(make_pipeline(OneHotEncoder(), classifier()).fit([["a"], ["b"]], [0, 1]), path)
    model = classifier().fit(X, y)
    with pytest.raises(ValueError, match="dtype"):
        taxolearn.save(model, path, dtype="float16")
    with pytest.raises(TypeError, match="JSON"):
        taxolearn.save(model, path, report={"a": object()})
    with pytest.raises(TypeError, match="JSON"):
        taxolearn.save(model, path, report={"a": float("nan")})
    with pytest.raises(TypeError, match="path must be"):
        taxolearn.save(model, 3)
    with pytest.raises(OSError, match="cannot write"):
        taxolearn.save(model, tmp_path / "missing" / "m.taxo")
    assert list(tmp_path.iterdir()) == []


def test_report(data, tmp_path):
    X, y = data
    path = tmp_path / "m.taxo"
    taxolearn.save(classifier(Linear(3.0), **TREE).fit(X, y), path, report={"accuracy": 0.9, "note": "äöü"})
    report = taxolearn.read_report(path)
    assert report["report"] == {"accuracy": 0.9, "note": "äöü"}
    assert (report["classes"], report["features"], report["size"]) == (5, 6, path.stat().st_size)
    assert report["arrays"]["weights"] == ((6, 5), "float32")
    assert report["hyperparameters"]["kernel"] == Linear(3.0)
    assert report["written_by"] == f"taxolearn {taxolearn.__version__}"


def test_a_file_in_use_can_be_replaced(data, tmp_path):
    X, y = data
    path = tmp_path / "m.taxo"
    first = classifier(Linear(3.0)).fit(X, y)
    loaded = round_trip(first, path, dtype="float64")
    assert not loaded.coef_.flags.writeable
    taxolearn.save(classifier(Linear(0.01)).fit(X, y), path)
    np.testing.assert_array_equal(loaded.predict_proba(X), first.predict_proba(X))
    assert [each.name for each in tmp_path.iterdir()] == ["m.taxo"]


def test_links_and_devices_stay_what_they_are(data, tmp_path):
    X, y = data
    model = classifier().fit(X, y)
    (tmp_path / "target.taxo").write_bytes(b"old")
    (tmp_path / "link.taxo").symlink_to("target.taxo")
    taxolearn.save(model, tmp_path / "link.taxo")
    assert (tmp_path / "link.taxo").is_symlink()
    assert taxolearn.load(tmp_path / "target.taxo").predict(X[:3]).tolist() == model.predict(X[:3]).tolist()
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            taxolearn.save(model, special)
    assert (tmp_path / "pipe").is_fifo()


def test_a_killed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.taxo"
    script = f"""
import os, pathlib, numpy as np
from taxolearn.files import container
path = pathlib.Path({str(path)!r})
container.write_container(path, 1, {{}})
os.fsync = lambda _: os._exit(9)
container.write_container(path, 2, {{"a": np.ones(1000)}})
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    assert read_container(path).content == 1


# -- Files of other hands ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    """The bytes of a file with a bit of everything."""
    _, y = data
    path = tmp_path_factory.mktemp("model") / "m.taxo"
    texts = [f"word{k} word{k + 1}" for k in range(len(y))]
    taxolearn.save(
        make_pipeline(TfidfVectorizer(), classifier(PerNode(RBF(2.0)), **TREE, solver=Solver(rank=5))).fit(texts, y),
        path,
    )
    return path.read_bytes()


def refuses(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^load: cannot use .*m\.taxo: \S"):
        taxolearn.load(path)


def test_every_flipped_bit_is_found(whole, tmp_path):
    generator = np.random.default_rng(0)
    # The first bytes all, of the rest some.
    places = [*range(64), *generator.integers(64, len(whole), 200).tolist()]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(generator.integers(8))
        refuses(tmp_path / "m.taxo", changed)


def test_every_cut_is_found(whole, tmp_path):
    for size in [*range(80), *np.random.default_rng(0).integers(80, len(whole), 50).tolist(), len(whole) - 1]:
        refuses(tmp_path / "m.taxo", whole[:size])
    refuses(tmp_path / "m.taxo", whole + b"\0")


def test_other_files(tmp_path):
    for content in (b"", b"\0" * 1000, b"PK\x03\x04", b"\x93NUMPY", os.urandom(300)):
        refuses(tmp_path / "m.taxo", content)
    with pytest.raises(FileNotFoundError, match=r"cannot read .*none\.taxo"):
        taxolearn.load(tmp_path / "none.taxo")
    with pytest.raises(OSError, match="cannot read"):
        taxolearn.load(tmp_path)


def test_newer_versions_are_refused(whole, tmp_path):
    path = tmp_path / "m.taxo"
    path.write_bytes(whole[:16] + struct.pack("<I", 3) + whole[20:])
    with pytest.raises(ValueError, match=r"format version 3.*reads up to 2"):
        taxolearn.load(path)


def forge(whole, change):
    """The file with another header whose checksum is right: as long as the old one, or it would not fit."""
    (length,) = struct.unpack("<Q", whole[24:32])
    header = json.loads(whole[64 : 64 + length])
    changed = change(header)
    text = json.dumps(header if changed is None else changed, separators=(",", ":")).encode().ljust(length)
    if len(text) > length:
        return None
    return whole[:32] + hashlib.sha256(text).digest() + text + whole[64 + length :]


def _set(*path):
    *place, value = path

    def change(header):
        at = header
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = value

    return change


HEADERS = {
    "no arrays": _set("arrays", {}),
    "arrays of another kind": _set("arrays", []),
    "giant": _set("arrays", "intercept", "shape", [2**60]),
    "negative": _set("arrays", "intercept", "shape", [-1]),
    "beyond the end": _set("arrays", "intercept", "offset", 64000000),
    "in the header": _set("arrays", "intercept", "offset", 0),
    "off the grid": lambda header: _set("arrays", "intercept", "offset", header["arrays"]["intercept"]["offset"] + 8)(
        header
    ),
    "objects": _set("arrays", "intercept", "dtype", "|O"),
    "other size": _set("size", 5),
    "other checksums": _set("checksums", []),
    "list": lambda header: [],
    "number": lambda header: 3,
    "null": lambda header: "null",
    "no content": _set("content", None),
    "no classifier": _set("content", "classifier", 3),
    "no taxonomy": _set("content", "classifier", "taxonomy", 7),
    "negative taxonomy": _set("content", "classifier", "taxonomy", -1),
    "other classes": _set("content", "classifier", "classes", "values", ["a"]),
    "same classes": _set("content", "classifier", "classes", "values", ["a", "a", "a", "a", "a"]),
    "classes of another kind": _set("content", "classifier", "classes", "kind", "int"),
    "other features": _set("content", "classifier", "features", 3),
    "unknown functions": _set("content", "classifier", "functions", "kind", "x"),
    "linear functions": _set("content", "classifier", "functions", "kind", "linear"),
    "unknown kernel": _set("content", "classifier", "functions", "expansions", 0, "kernel", "kind", "os"),
    "forbidden kernel": _set("content", "classifier", "functions", "expansions", 0, "kernel", {"kind": "Function"}),
    "kernel out of range": _set("content", "classifier", "functions", "kernel_of", 0, 70),
    "negative kernel": _set("content", "classifier", "functions", "kernel_of", 0, -1),
    "few kernels": _set("content", "classifier", "functions", "kernel_of", [0, 1]),
    "no expansions": _set("content", "classifier", "functions", "expansions", []),
    "float order": _set("content", "classifier", "functions", "order", "intercept"),
    "unknown step": _set("content", "steps", 0, 1, "kind", "Popen"),
    "unknown setting": _set("content", "steps", 0, 1, "parameters", {"x": 1}),
    "terms that are not text": _set("content", "steps", 0, 1, "fitted", "terms", "intercept"),
    "bad idf": _set("content", "steps", 0, 1, "fitted", "idf", "intercept"),
    "no steps": _set("content", "steps", {}),
    "no separator": _set("content", "taxonomies", 0, "separator", 1),
    "few names": _set("content", "taxonomies", 0, "names", ["a"]),
}


@pytest.mark.parametrize("name", HEADERS)
def test_forged_headers(name, whole, tmp_path):
    refuses(tmp_path / "m.taxo", forge(whole, HEADERS[name]))


def test_deep_headers(whole, tmp_path):
    (length,) = struct.unpack("<Q", whole[24:32])
    text = (b"[" * (length // 2)).ljust(length)
    refuses(tmp_path / "m.taxo", whole[:32] + hashlib.sha256(text).digest() + text + whole[64 + length :])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**40) | st.floats() | st.text(max_size=5) | st.just("intercept"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "array", "x"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_headers(whole, tmp_path, data):
    """Any value in any place: a model or a clear error, never anything else."""

    def change(header):
        at = header
        while True:
            keys = sorted(at) if isinstance(at, dict) else list(range(len(at)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(at[key], (dict, list)) or not at[key] or data.draw(st.integers(0, 4)) == 0:
                at[key] = data.draw(JSON)
                return
            at = at[key]

    content = forge(whole, change)
    if content is None:
        return
    path = tmp_path / "m.taxo"
    path.write_bytes(content)
    model, message = None, "load: cannot use"
    try:
        model = taxolearn.load(path)
    except ValueError as error:
        message = str(error)
    assert message.startswith("load: cannot use")
    assert "\n" not in message
    if model is not None:
        with suppress(TypeError, ValueError):  # parameters of the estimator are checked when they are used
            model.predict(["word1"])


def test_sparse_indices_are_checked(data, tmp_path):
    X, y = data
    path = tmp_path / "m.taxo"
    X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0))
    taxolearn.save(classifier(RBF(2.0)).fit(X, y), path)
    container = read_container(path)
    for part, place, value in (("indices", 0, 6), ("indices", 3, -1), ("indptr", 0, 1), ("indptr", 5, 10**6)):
        arrays = {name: array.copy() for name, array in container.arrays.items()}
        arrays[f"basis.0.{part}"][place] = value
        write_container(path, container.content, arrays)
        with pytest.raises(ValueError, match="indices are wrong"):
            taxolearn.load(path)


def test_container_refuses_other_types(tmp_path):
    with pytest.raises(TypeError, match="'a' has the type complex128"):
        write_container(tmp_path / "x", None, {"a": np.ones(2, dtype=complex)})
    write_container(tmp_path / "x", [1], {"a": np.ones((0, 3)), "b": np.arange(5, dtype=np.uint8)})
    container = read_container(tmp_path / "x")
    assert container.arrays["a"].shape == (0, 3)
    assert container.arrays["b"].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ContentError, match="not a model file"):
        read_container(Path(__file__))


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("*.taxo")))
def test_files_of_old_versions(name, tmp_path):
    """What was saved once can be loaded for ever, and gives the same answers."""
    model = taxolearn.load(FILES / name)
    expected = json.loads((FILES / name).with_suffix(".json").read_text())
    np.testing.assert_allclose(model.predict_proba(expected["inputs"]), expected["proba"], atol=1e-7)
    assert model.predict(expected["inputs"]).tolist() == expected["labels"]
    # As a file of this version it is the same model, with parameters that the constructor knows.
    taxolearn.save(model, tmp_path / name, dtype="float64")
    again = taxolearn.load(tmp_path / name)
    np.testing.assert_array_equal(again.predict_proba(expected["inputs"]), model.predict_proba(expected["inputs"]))
    classifiers = [each[-1] if hasattr(each, "steps") else each for each in (model, again)]
    assert repr(classifiers[0].get_params()) == repr(classifiers[1].get_params())
    assert classifiers[0].hyperparameters_ == classifiers[1].hyperparameters_
    assert classifiers[0].hyperparameters_.intercept_variance > 0
    assert all(parameter.split("[")[0] != "sigma2" for parameter in getattr(classifiers[0].cv_result_, "names", ()))
