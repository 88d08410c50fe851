"""Label embeddings beside the figures of Mineiro and Karampatziakis (2015), their siblings, and their cost."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

from bench.harness.figures import Bar
from bench.harness.memory import growth, megabytes, reset_peak
from bench.harness.options import add_common, names
from bench.harness.report import Result
from bench.problems.data import aloi, data_directory
from bench.problems.jobs import JOBS
from bench.problems.synthetic import made_up_text
from bench.problems.wordnet import wordnet
from taxolearn import CrossValidation, KernelLogisticClassifier, LabelEmbedding, LabelEmbeddingClassifier, metrics
from taxolearn.datasets import read_mulan

HELP = "label embeddings: errors, siblings and cost"
_PARTS = ("aloi", "curve", "labels", "siblings", "cost")
_METHODS = {"RE": "rembrandt", "PCA": "pca", "CS": "random", "PLST": "plst"}
# Test errors (%) of table 2, and of the authors' code with random features.
_TABLE_2 = {"RE + LR": 9.7, "PCA + LR": 9.7, "CS + LR": 10.8, "LR": 10.8, "OAA": 11.5, "RE + features + LR": 3.65}
# Hamming loss, micro-F1, macro-F1 of the authors' code.
_LABELS = {
    "bibtex": (0.0140, 0.428, 0.353),
    "Corel5k": (0.0097, 0.225, 0.070),
    "yeast": (0.222, 0.603, 0.479),
}
_CURVE = (5, 10, 20, 30, 50, 70)
_NOTE = (
    "Published: Mineiro, Karampatziakis 2015, table 2, and the results of their code. Errors are those of "
    "the published split; embeddings have 50 components, ridges by rows left out, and decoders learn variance and "
    "temperature on training rows. Seconds are those of the whole fit, embed s those of the embedding alone; "
    "processor seconds count all threads."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--parts", type=names, default=list(_PARTS), help=f"of {', '.join(_PARTS)}")
    parser.add_argument("--features", type=int, default=4000, help="random features on ALOI")


def run(options: Namespace) -> list[Result]:
    results = []
    for part in options.parts:
        title, columns, figure, rows = _MEASURED[part]
        result = Result.of(options, title=title, columns=columns, figure=figure, notes=[_NOTE])
        if part != "aloi":
            result.suite += f"_{part}"
        for row in rows(options):
            result.rows.append({"library": "taxolearn"} | row)
            print("  " + ", ".join(f"{name} {row.get(name)}" for name in columns), flush=True)
        results.append(result)
    return results


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    before = reset_peak()
    begin, processor = time.perf_counter(), time.process_time()
    out = work()
    return out, {
        "seconds": time.perf_counter() - begin,
        "processor_seconds": time.process_time() - processor,
        "megabytes": megabytes(growth(before)),
    }


# -- ALOI -------------------------------------------------------------------------------------------------------------


def _aloi(quick: bool) -> tuple[Any, Any, Any, Any]:
    """Divided by the root mean square norm of a training row; quick: fifty classes."""
    data = aloi()
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if quick:
        train, test = y <= 50, y_test <= 50
        X, y, X_test, y_test = X[train], y[train], X_test[test], y_test[test]
    scale = np.sqrt(np.square(X).sum(axis=1).mean())
    return (X / scale).astype(np.float32), y, (X_test / scale).astype(np.float32), y_test


def _aloi_models(options: Namespace) -> Iterator[tuple[str, Any]]:
    common = {"n_threads": options.threads}
    scale = CrossValidation(3, subset=4000, search="scale")
    for name, method in list(_METHODS.items())[:3]:
        yield f"{name} + LR", LabelEmbeddingClassifier(LabelEmbedding(50, method), tol=1e-4, **common)
    yield "LR", KernelLogisticClassifier(tuning=scale, tol=1e-4, **common)
    yield "OAA", KernelLogisticClassifier(loss="independent", tuning=scale, tol=1e-4, **common)
    features = ("gaussian", 300 if options.quick else options.features)
    yield "RE + features + LR", LabelEmbeddingClassifier(random_features=features, tol=1e-4, **common)


def _table_2(options: Namespace) -> Iterator[dict[str, Any]]:
    X, y, X_test, y_test = _aloi(options.quick)
    for name, model in _aloi_models(options):
        _, cost = _timed(lambda model=model: model.fit(X, y))
        embedding = getattr(model, "embedding_", None)
        yield {
            "problem": "aloi",
            "library": name,
            "error": 100 * float(np.mean(model.predict(X_test) != y_test)),
            "loss": float(metrics.log_loss(y_test, model.predict_proba(X_test), classes=model.classes_)),
            "published": _TABLE_2[name],
            "embed_seconds": None if embedding is None else embedding.result_.seconds,
        } | cost


def _curve(options: Namespace) -> Iterator[dict[str, Any]]:
    """Figure 1a: error against the dimension."""
    X, y, X_test, y_test = _aloi(options.quick)
    for k in _CURVE[:2] if options.quick else _CURVE:
        for name in ("RE", "PCA"):
            embedding = LabelEmbedding(k, _METHODS[name])
            model = LabelEmbeddingClassifier(embedding, tol=1e-3, n_threads=options.threads)
            _, cost = _timed(lambda model=model: model.fit(X, y))
            error = 100 * float(np.mean(model.predict(X_test) != y_test))
            yield {"problem": "aloi", "library": name, "components": k, "error": error} | cost


# -- Several labels ---------------------------------------------------------------------------------------------------


def _labels(options: Namespace) -> Iterator[dict[str, Any]]:
    folder = data_directory() / "mulan"
    for name, (hamming, micro, macro) in _LABELS.items():
        found = _read_labels(folder, name)
        if found is None:
            continue
        X, Y, X_test, Y_test = found
        if options.quick:
            X, Y = X[:800], Y[:800]
        k = min(100, Y.shape[1] - 1)
        model = LabelEmbeddingClassifier(LabelEmbedding(k), n_threads=options.threads)
        _, cost = _timed(lambda model=model, X=X, Y=Y: model.fit(X, Y))
        least = model.decide(X_test)
        best = model.decide(X_test, "f1")
        yield {
            "problem": name,
            "hamming": metrics.hamming_loss(Y_test, least),
            "published_hamming": hamming,
            "micro": metrics.precision_recall_f(Y_test, best, average="micro").f,
            "published_micro": micro,
            "macro": metrics.precision_recall_f(Y_test, best, average="macro").f,
            "published_macro": macro,
        } | cost


def _read_labels(folder: Any, name: str) -> tuple[Any, Any, Any, Any] | None:
    """Training and test parts of a collection, None if it is absent or cannot be read here."""
    if name == "bibtex":
        try:
            import h5py
        except ImportError:
            return None
        if not (folder / "bibtex.mat").exists():
            return None
        with h5py.File(folder / "bibtex.mat") as file:
            return tuple(sp.csr_array(_matrix(file[key])) for key in ("xt", "yt", "xs", "ys"))  # type: ignore[return-value]
    parts = [sorted(folder.glob(f"{name}*{part}*.arff*")) for part in ("train", "test")]
    xml = sorted(folder.glob(f"{name}*.xml*"))
    if not (parts[0] and parts[1] and xml):
        return None
    train, test = (read_mulan(part[0], xml[0]) for part in parts)
    binarizer = MultiLabelBinarizer(classes=train.classes, sparse_output=True)
    return train.X, binarizer.fit_transform(train.y), test.X, binarizer.transform(test.y)


def _matrix(entry: Any) -> Any:
    """Of a MATLAB file: dense, or sparse by columns."""
    if hasattr(entry, "keys"):
        rows = int(entry.attrs["MATLAB_sparse"])
        columns = len(entry["jc"]) - 1
        return sp.csc_array((entry["data"][:], entry["ir"][:], entry["jc"][:]), shape=(rows, columns))
    return np.asarray(entry).T


# -- Siblings ---------------------------------------------------------------------------------------------------------


def _siblings(options: Namespace) -> Iterator[dict[str, Any]]:
    """Table 4's question: how many classes have a sibling as their nearest neighbour."""
    jobs = {"onet-titles": JOBS["onet-titles"], "wordnet": wordnet}
    for problem, load in jobs.items():
        job = load()
        job = job.first_rows(3000) if options.quick else job
        X = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(job.X)
        for name in ("RE", "PLST", "CS"):
            embedding = LabelEmbedding(100, _METHODS[name], n_threads=options.threads)
            _, cost = _timed(lambda embedding=embedding, X=X, job=job: embedding.fit(X, job.y))
            share = metrics.sibling_fraction(embedding.class_points(), embedding.classes_, taxonomy=job.taxonomy)
            yield {"problem": problem, "library": name, "siblings": 100 * share} | cost


# -- Cost -------------------------------------------------------------------------------------------------------------


def _cost(options: Namespace) -> Iterator[dict[str, Any]]:
    """Made-up rows with a power law of words: seconds by rows and by classes."""
    sizes = (
        [(20_000, 1000), (20_000, 10_000)]
        if options.quick
        else [(100_000, 10_000), (300_000, 10_000), (1_000_000, 10_000), (1_000_000, 100_000)]
    )
    for n, n_classes in sizes:
        d = 100_000 if options.quick else 1_000_000
        X, y = made_up_text(n, n_classes, 30, d, 0)
        X = X.astype(np.float32)
        for k in (20,) if options.quick else (100, 300):
            embedding = LabelEmbedding(k, ridge=1.0, n_threads=options.threads)
            _, cost = _timed(lambda embedding=embedding, X=X, y=y: embedding.fit(X, y))
            yield {
                "problem": f"{n} rows, {n_classes} classes",
                "components": k,
                "products": embedding.result_.iterations,
                "residual": float(embedding.result_.residuals.max()),
            } | cost


_COST = {"seconds": "seconds", "processor_seconds": "processor s", "megabytes": "peak MB"}
_Rows = Callable[[Namespace], Iterator[dict[str, Any]]]
_MEASURED: dict[str, tuple[str, dict[str, str], Bar, _Rows]] = {
    "aloi": (
        "Label embeddings on ALOI: table 2",
        {
            "library": "model",
            "error": "error %",
            "published": "published %",
            "loss": "log loss",
            "embed_seconds": "embed s",
        }
        | _COST,
        Bar("error", "test error %", "{:.2f}"),
        _table_2,
    ),
    "curve": (
        "Label embeddings on ALOI: figure 1a",
        {"library": "model", "components": "k", "error": "error %"} | _COST,
        Bar("error", "test error %", "{:.1f}"),
        _curve,
    ),
    "labels": (
        "Label embeddings of several labels per row",
        {
            "problem": "problem",
            "hamming": "Hamming",
            "published_hamming": "published",
            "micro": "micro-F1",
            "published_micro": "published",
            "macro": "macro-F1",
            "published_macro": "published",
        }
        | _COST,
        Bar("micro", "micro-F1", "{:.3f}"),
        _labels,
    ),
    "siblings": (
        "Classes whose nearest neighbour is a sibling",
        {"problem": "problem", "library": "embedding", "siblings": "siblings %"} | _COST,
        Bar("siblings", "siblings %", "{:.1f}"),
        _siblings,
    ),
    "cost": (
        "What an embedding costs",
        {"problem": "problem", "components": "k", "products": "products", "residual": "residual"} | _COST,
        Bar("seconds", "seconds", "{:.1f}"),
        _cost,
    ),
}
