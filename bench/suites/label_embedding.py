"""Label embeddings beside the figures of Mineiro and Karampatziakis (2015), their siblings, their cost, other models.

Every case has a process of its own. Each table has every case that is known; ``--parts`` and ``--only`` choose which
are run.
"""

import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

import taxolearn
from bench.harness.cases import Cases
from bench.harness.figures import Axes, Bar, Figure, Lines
from bench.harness.memory import growth, megabytes, reset_peak
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.problems.data import aloi, data_directory
from bench.problems.jobs import JOBS
from bench.problems.label_jobs import LABEL_JOBS
from bench.problems.synthetic import made_up_text
from bench.problems.wordnet import wordnet
from taxolearn import (
    CrossValidation,
    KernelLogisticClassifier,
    LabelEmbedding,
    LabelEmbeddingClassifier,
    RecursiveRegularizationClassifier,
    TopDownClassifier,
    metrics,
)
from taxolearn.datasets import read_mulan

HELP = "label embeddings: errors, siblings, cost, and beside other models"
_METHODS = {"RE": "rembrandt", "PCA": "pca", "CS": "random", "PLST": "plst"}
# Test errors (%) of table 2, and of the authors' code with random features.
_TABLE_2 = {"RE + LR": 9.7, "PCA + LR": 9.7, "CS + LR": 10.8, "LR": 10.8, "OAA": 11.5, "RE + features + LR": 3.65}
_MODELS = (*_TABLE_2, "RE + features + top-down")
# Hamming loss, micro-F1, macro-F1 of the authors' code.
_LABELS = {
    "bibtex": (0.0140, 0.428, 0.353),
    "Corel5k": (0.0097, 0.225, 0.070),
    "yeast": (0.222, 0.603, 0.479),
}
_CURVE = (5, 10, 20, 30, 50, 70)
_QUICK_ROWS = 3000
_SCORED = 2**26  # predictors that are looked at together
_NOTE = (
    "Published: Mineiro, Karampatziakis 2015, table 2, and the results of their code. Errors are those of "
    "the published split; embeddings have 50 components, ridges by rows left out, and decoders learn variance and "
    "temperature on training rows. Seconds are those of the whole fit, embed s those of the embedding alone; "
    "processor seconds count all threads. Where they are far below the seconds, the machine did other work as well; "
    "then seconds and rows per second say little."
)


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
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


def _aloi_model(name: str, features: int, n_threads: int) -> Any:
    common: dict[str, Any] = {"n_threads": n_threads, "tol": 1e-2}
    if name.startswith("RE + features"):
        decoder = "softmax" if name.endswith("LR") else "top-down"
        return LabelEmbeddingClassifier(decoder=decoder, random_features=("gaussian", features), **common)
    if name in ("LR", "OAA"):
        loss = "softmax" if name == "LR" else "independent"
        tuning = CrossValidation(3, subset=4000, search="scale")
        return KernelLogisticClassifier(loss=loss, tuning=tuning, **common)
    return LabelEmbeddingClassifier(LabelEmbedding(50, _METHODS[name.split()[0]]), **common)


def table_2(library: str, features: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """A row of table 2."""
    X, y, X_test, y_test = _aloi(quick)
    model = _aloi_model(library, features, n_threads)
    _, cost = _timed(lambda: model.fit(X, y))
    embedding = getattr(model, "embedding_", None)
    answers, asked = _timed(lambda: model.predict(X_test))
    decoder = getattr(model, "decoder_", model)
    return {
        "error": 100 * float(np.mean(answers != y_test)),
        "loss": float(metrics.log_loss(y_test, model.predict_proba(X_test), classes=model.classes_)),
        "published": _TABLE_2.get(library),
        "embed_seconds": None if embedding is None else embedding.result_.seconds,
        "gap": decoder.result_.relative_gap,
        "rows_per_second": len(y_test) / asked["seconds"],
    } | cost


def curve(library: str, components: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """Figure 1a: error against the dimension."""
    X, y, X_test, y_test = _aloi(quick)
    embedding = LabelEmbedding(components, _METHODS[library])
    model = LabelEmbeddingClassifier(embedding, tol=1e-2, n_threads=n_threads)
    _, cost = _timed(lambda: model.fit(X, y))
    return {"error": 100 * float(np.mean(model.predict(X_test) != y_test))} | cost


# -- Several labels ---------------------------------------------------------------------------------------------------


def several(problem: str, quick: bool, n_threads: int) -> dict[str, Any]:
    """Scores beside those of the authors' code."""
    X, Y, X_test, Y_test = _read_labels(data_directory() / "mulan", problem)
    if quick:
        X, Y = X[:800], Y[:800]
    model = LabelEmbeddingClassifier(LabelEmbedding(min(100, Y.shape[1] - 1)), n_threads=n_threads)
    _, cost = _timed(lambda: model.fit(X, Y))
    best = model.decide(X_test, "f1")
    cut = model.decide(X_test, thresholds="s-cut")
    hamming, micro, macro = _LABELS[problem]
    return {
        "hamming": metrics.hamming_loss(Y_test, model.decide(X_test)),
        "published_hamming": hamming,
        "micro": metrics.precision_recall_f(Y_test, best, average="micro").f,
        "published_micro": micro,
        "macro": metrics.precision_recall_f(Y_test, cut, average="macro").f,
        "published_macro": macro,
        **_precisions(model, X_test, Y_test),
    } | cost


def _precisions(model: Any, X: Any, Y: Any) -> dict[str, float]:
    proba = model.predict_proba(X)
    return {f"precision_{k}": 100 * metrics.precision_at_k(Y, proba, k=k) for k in (1, 3, 5)}


def _read_labels(folder: Any, name: str) -> tuple[Any, Any, Any, Any]:
    """Training and test parts of a collection."""
    if name == "bibtex":
        import h5py

        with h5py.File(folder / "bibtex.mat") as file:
            return tuple(sp.csr_array(_matrix(file[key])) for key in ("xt", "yt", "xs", "ys"))  # type: ignore[return-value]
    parts = [sorted(folder.glob(f"{name}*{part}*.arff*")) for part in ("train", "test")]
    xml = sorted(folder.glob(f"{name}*.xml*"))
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


def _texts(problem: str, quick: bool) -> tuple[Any, Any, Any]:
    """A job of texts with a tree, and the features of its training and test rows."""
    job = wordnet() if problem == "wordnet" else JOBS[problem]()
    job = job.first_rows(_QUICK_ROWS) if quick else job
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    return job, vectorizer.fit_transform(job.X), vectorizer.transform(job.X_test)


def siblings(problem: str, library: str, quick: bool, n_threads: int) -> dict[str, Any]:
    """Table 4's question: how many classes have a sibling as their nearest neighbour."""
    job, X, _ = _texts(problem, quick)
    embedding = LabelEmbedding(100, _METHODS[library], n_threads=n_threads)
    _, cost = _timed(lambda: embedding.fit(X, job.y))
    share = metrics.sibling_fraction(embedding.class_points(), embedding.classes_, taxonomy=job.taxonomy)
    return {"siblings": 100 * share, "classes": len(embedding.classes_)} | cost


# -- Cost -------------------------------------------------------------------------------------------------------------


def cost(rows: int, classes: int, components: int, decoder: bool, quick: bool, n_threads: int) -> dict[str, Any]:
    """Made-up rows with a power law of words: the embedding alone, or with a top-down decoder and predictions."""
    X, y = made_up_text(rows, classes, 30, 100_000 if quick else 1_000_000, 0)
    X = X.astype(np.float32)
    embedding = LabelEmbedding(components, ridge=1.0, n_threads=n_threads)
    if not decoder:
        _, used = _timed(lambda: embedding.fit(X, y))
        residual = float(embedding.result_.residuals.max())
        return {"products": embedding.result_.iterations, "residual": residual} | used
    model = LabelEmbeddingClassifier(embedding, "top-down", tol=1e-3, n_threads=n_threads)
    _, used = _timed(lambda: model.fit(X, y))
    some = X[:1000]
    (labels, _), asked = _timed(lambda: model.top_classes(some, 5))
    return {
        "products": model.embedding_.result_.iterations,
        "residual": float(model.embedding_.result_.residuals.max()),
        "embed_seconds": model.embedding_.result_.seconds,
        "gap": model.decoder_.result_.relative_gap,
        "in_top": 100 * float((labels == y[:1000, None]).any(axis=1).mean()),
        "rows_per_second": len(labels) / asked["seconds"],
    } | used


# -- Beside other models ----------------------------------------------------------------------------------------------


def beside(problem: str, library: str, components: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """A model on a set with very many classes: scores, size of its file, predictions per second."""
    if problem == "delicious":
        job: Any = LABEL_JOBS[problem]()[0]
        job = job.first_rows(_QUICK_ROWS) if quick else job
        X, X_test, y = job.X, job.X_test, job.Y
    else:
        job, X, X_test = _texts(problem, quick)
        y = job.y
    model = _model_beside(library, components, getattr(job, "taxonomy", None), n_threads)
    _, used = _timed(lambda: model.fit(X, y))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.taxo"
        taxolearn.save(model, path)
        size = path.stat().st_size / 1e6
    some = X_test[:2000]
    _, asked = _timed(lambda: model.top_classes(some, 5) if hasattr(model, "top_classes") else model.predict(some))
    if problem == "delicious":
        proba = model.predict_proba(X_test)
        has = job.Y_test.toarray() > 0
        p = np.clip(np.where(has, proba, 1 - proba), 1e-15, 1)
        scores = {"loss": -float(np.log(p).sum(axis=1).mean()), **_precisions(model, X_test, job.Y_test)}
        scores["accuracy"] = scores["precision_1"]
    else:
        scores = _one_label_scores(model, X_test, job.y_test)
    facts = {"file_megabytes": size, "rows_per_second": some.shape[0] / asked["seconds"]}
    return scores | facts | used | {"gap": getattr(model, "decoder_", model).result_.relative_gap}


def _model_beside(name: str, k: int, taxonomy: Any, n_threads: int) -> Any:
    common: dict[str, Any] = {"n_threads": n_threads, "tol": 1e-3}
    if name.startswith("embedding"):
        decoder = name.removeprefix("embedding + ")
        tree = taxonomy if decoder == "top-down on the tree" else None
        return LabelEmbeddingClassifier(
            LabelEmbedding(k), decoder.removesuffix(" on the tree"), taxonomy=tree, **common
        )
    if name == "top-down":
        return TopDownClassifier(taxonomy, labels="own", **common)
    if name == "softmax":
        tuning = CrossValidation(3, subset=4000, search="scale")
        return KernelLogisticClassifier(tuning=tuning, **common)
    loss = name.partition(", ")[2].replace(" ", "_")
    return RecursiveRegularizationClassifier(taxonomy, loss=loss, **common)


def _one_label_scores(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Accuracy and log loss, for some rows after the other."""
    place = {name: k for k, name in enumerate(model.classes_.tolist())}
    columns = np.array([place[name] for name in y.tolist()])
    losses, right = [], []
    step = max(1, _SCORED // len(place))
    for begin in range(0, len(y), step):
        rows = slice(begin, begin + step)
        logs = model.predict_log_proba(X[rows])
        losses.append(-logs[np.arange(len(logs)), columns[rows]])
        right.append(logs.argmax(axis=1) == columns[rows])
    return {"loss": float(np.concatenate(losses).mean()), "accuracy": 100 * float(np.concatenate(right).mean())}


# -- Parts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """A table: what it is called, its columns and figure, and the cases of a function."""

    title: str
    columns: dict[str, str]
    figure: Figure
    measure: Callable[..., dict[str, Any]]
    cases: Callable[[bool, int], list[dict[str, Any]]]
    note: str = ""


_COST = {"seconds": "seconds", "processor_seconds": "processor s", "megabytes": "peak MB"}
_EMBEDDINGS = ("embedding + softmax", "embedding + top-down", "embedding + top-down on the tree")
_BESIDE = {
    "onet-titles": (*_EMBEDDINGS, "softmax", "recursive, squared hinge", "top-down"),
    "wordnet": (*_EMBEDDINGS[1:], "recursive, squared hinge", "top-down"),
    "delicious": ("embedding + independent", "recursive, logistic", "recursive, squared hinge"),
}


def _sizes(quick: bool) -> list[dict[str, Any]]:
    sizes = [(2000, 100, 20), (2000, 1000, 20)]
    if not quick:
        sizes = [(100_000, 10_000, 100), (300_000, 10_000, 100), (100_000, 10_000, 300), (1_000_000, 10_000, 100)]
        sizes += [(1_000_000, 100_000, 100), (1_000_000, 100_000, 300)]
    cases = [{"rows": n, "classes": c, "components": k, "decoder": False} for n, c, k in sizes]
    trained = sizes[:2] if quick else [(100_000, 10_000, 100), (1_000_000, 100_000, 100)]
    return cases + [{"rows": n, "classes": c, "components": k, "decoder": True} for n, c, k in trained]


_PARTS: dict[str, _Part] = {
    "aloi": _Part(
        "Label embeddings on ALOI: table 2",
        {"library": "model", "error": "error %", "published": "published %", "loss": "log loss"}
        | {"embed_seconds": "embed s", **_COST, "gap": "relative gap", "rows_per_second": "rows / s"},
        Bar("error", "test error %", "{:.2f}"),
        table_2,
        lambda quick, features: [{"library": name, "features": features} for name in _MODELS],
    ),
    "curve": _Part(
        "Label embeddings on ALOI: figure 1a",
        {"library": "model", "components": "k", "error": "error %"} | _COST,
        Lines((Axes("components", "components", "error", "test error %"),)),
        curve,
        lambda quick, _: [
            {"library": name, "components": k} for k in (_CURVE[:2] if quick else _CURVE) for name in ("RE", "PCA")
        ],
    ),
    "labels": _Part(
        "Label embeddings of several labels per row",
        {
            "problem": "problem",
            "hamming": "Hamming",
            "published_hamming": "published",
            "micro": "micro-F1",
            "published_micro": "published",
            "macro": "macro-F1",
            "published_macro": "published",
            **{f"precision_{k}": f"P@{k} %" for k in (1, 3, 5)},
        }
        | _COST,
        Bar("micro", "micro-F1", "{:.3f}"),
        several,
        lambda *_: [{"problem": name} for name in _LABELS],
        "Hamming loss is that of labels more probable than not, micro-F1 that of the sets of largest expected F1, "
        "macro-F1 that of labels above thresholds of their own (S-cut).",
    ),
    "siblings": _Part(
        "Classes whose nearest neighbour is a sibling",
        {"problem": "problem", "library": "embedding", "siblings": "siblings %", "classes": "classes"} | _COST,
        Bar("siblings", "siblings %", "{:.1f}"),
        siblings,
        lambda *_: [
            {"problem": problem, "library": name}
            for problem in ("onet-titles", "onet-tasks", "wordnet")
            for name in ("RE", "PLST", "CS")
        ],
        "Published for LSHTC (several labels per row, k = 100): RE 23.61, PLST 19.65, CS 3.08.",
    ),
    "cost": _Part(
        "What an embedding costs",
        {"library": "what", "rows": "rows", "classes": "classes", "components": "k", "products": "products"}
        | {"residual": "residual", "embed_seconds": "embed s", **_COST}
        | {"gap": "relative gap", "in_top": "among 5 best %", "rows_per_second": "rows / s"},
        Bar("processor_seconds", "processor s", "{:.0f}"),
        cost,
        lambda quick, _: _sizes(quick),
        "A million features, 30 words a row, a power law; ridge 1. Decoder: top-down on clusters of the classes.",
    ),
    "beside": _Part(
        "Label embeddings beside other models",
        {"problem": "problem", "library": "model", "accuracy": "accuracy or P@1 %", "loss": "log loss"}
        | {"file_megabytes": "file MB", "rows_per_second": "rows / s", **_COST, "gap": "relative gap"},
        Bar("loss", "log loss", "{:.2f}"),
        beside,
        lambda *_: [
            {"problem": problem, "library": name, "components": 300 if problem == "wordnet" else 100}
            for problem, models in _BESIDE.items()
            for name in models
        ],
        "Embeddings have 100 components, 300 on wordnet. Rows per second are those of the five best classes of 2,000 "
        "test rows. All learn their hyperparameters; top-down without a tree has one of clusters of the classes.",
    ),
}


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--parts", type=names, default=list(_PARTS), help=f"of {', '.join(_PARTS)}")
    parser.add_argument("--only", type=names, default=[], help="cases of these problems, models or sizes alone")
    parser.add_argument("--features", type=int, default=4000, help="random features on ALOI")
    parser.add_argument("--limit", type=float, default=1800.0, help="give a case up (s)")


def run(options: Namespace) -> list[Result]:
    cases = known_cases(options)
    for name in options.parts:
        part = _PARTS[name]
        for arguments in part.cases(options.quick, options.features):
            words = " ".join(map(str, arguments.values()))
            if not options.only or any(word in arguments.values() or word == words for word in options.only):
                given = arguments | {"quick": options.quick}
                cases.run(f"{name} {words}", part.measure, given, options.threads, options.limit)
    return [result for name, part in _PARTS.items() if (result := _result(options, cases, name, part)).rows]


def _result(options: Namespace, cases: Cases, name: str, part: _Part) -> Result:
    """The table of a part, with every case that is known."""
    result = Result.of(options, title=part.title, columns=part.columns, figure=part.figure, notes=[_NOTE])
    if part.note:
        result.add_note(part.note)
    if name != "aloi":
        result.suite += f"_{name}"
    for arguments in part.cases(options.quick, options.features):
        given = arguments | {"quick": options.quick, "n_threads": options.threads}
        answer = cases.known(part.measure, given)
        if answer is not None:
            first = {"problem": "aloi" if name in ("aloi", "curve") else name, "library": "taxolearn"}
            if name == "cost":
                first["library"] = "embedding and decoder" if arguments["decoder"] else "embedding"
            result.rows.append(first | arguments | answer)
    return result
