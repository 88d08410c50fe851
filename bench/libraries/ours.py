"""taxolearn, as it takes part beside the others."""

from collections.abc import Callable
from functools import partial
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from bench.harness.job_scores import columns_of, log_probabilities
from bench.libraries.contracts import (
    VALUES,
    Answer,
    Classifier,
    FitJob,
    FitLabels,
    FitRBF,
    FittedJob,
    FittedLabels,
    FittedRBF,
    JobModel,
    LabelAnswer,
    LabelModel,
    Labels,
    PaperModel,
    PaperRows,
    Predict,
    PredictTop,
    Rows,
    Solver,
    SolverEntry,
    Task,
    TopModel,
)
from bench.problems.catalogue import CATEGORIES, DATES, NUMBERS, TITLE
from bench.problems.data import Data
from bench.problems.features import usual_features
from bench.problems.jobs import EmbeddedTexts, Job
from bench.problems.label_jobs import LabelJob
from bench.problems.rbf import Values
from taxolearn import (
    Blocks,
    CrossValidation,
    KernelLogisticClassifier,
    PoolClassifier,
    RecursiveRegularizationClassifier,
    Taxonomy,
    TopDownClassifier,
    Tree,
)
from taxolearn import Solver as KernelSolver
from taxolearn.features import TableFeatures
from taxolearn.kernels import Linear, PerClass

_INTERCEPT_VARIANCE = 1.0  # of classifiers
_TOP_GAP = 1e-2  # of support vector machines of very many classes


def solver(task: Task, method: str = "lbfgs") -> Solver:
    """The flat linear model; its tolerance is the relative gap."""

    def fit(tol: float) -> Any:
        model = KernelLogisticClassifier(
            Linear(task.v),
            intercept_variance=task.intercept_variance,
            tuning=None,
            tol=tol,
            solver=method,
            n_threads=task.n_threads,
        )
        return model.fit(task.data.X, task.data.y)

    return Solver(fit, lambda model: (model.coef_, model.intercept_), (task.gap, task.gap / 2))


def level_tree(taxonomy: Taxonomy, ratio: float) -> Tree:
    """A tree whose variances change by a factor from level to level."""
    return Tree(variances=ratio ** np.arange(taxonomy.height))


def classifier(rows: Rows, tree: bool, variance: float, ratio: float = 1.0) -> Predict:
    """A flat model, or one with variances that change by ``ratio`` from level to level of the tree."""
    model = KernelLogisticClassifier(
        Linear(variance),
        taxonomy=rows.data.taxonomy,
        coupling=level_tree(rows.data.taxonomy, ratio) if tree else "independent",
        intercept_variance=_INTERCEPT_VARIANCE,
        tuning=None,
        n_threads=rows.n_threads,
    )
    model.fit(rows.X, rows.classes[rows.y])
    columns = np.searchsorted(rows.classes, model.classes_)
    seen = np.isin(model.classes_, rows.classes)  # the tree may have classes without any row
    return lambda X: rows.spread(columns[seen], model.predict_proba(X)[:, seen])


def rbf_model(
    data: Data, values: Values, n_threads: int, own: bool = False, gap: float = 1e-4, **solver: Any
) -> FitRBF:
    """One kernel for all classes, or ``own`` ones; the rest are arguments of ``Solver``."""
    kernel = PerClass(values.kernel) if own else values.kernel

    def fit() -> FittedRBF:
        model = KernelLogisticClassifier(
            kernel,
            intercept_variance=values.intercept_variance,
            tuning=None,
            tol=gap,
            solver=KernelSolver(**solver),
            n_threads=n_threads,
        )
        result = model.fit(data.X, data.y).result_
        facts = {
            "products": result.products,
            "gap": result.relative_gap,
            "kernel_megabytes": result.kernel_bytes / 1e6,
            "algorithm": result.algorithm,
            "reason": result.reason,
            "precision": result.precision,
            "timings": result.timings,
            "status": result.status,
        }
        return FittedRBF(model.predict_log_proba, model.classes_, facts)

    return fit


def pool(job: Job, n_threads: int) -> FitJob:
    """The pool with its defaults, and each of its experts at its own temperature."""

    def run() -> FittedJob:
        features: Any = TableFeatures() if job.is_text else TfidfTransformer(sublinear_tf=True)
        if not (job.is_text or job.has_counts):
            features = None
        X = job.X if features is None else features.fit_transform(job.X)
        model = PoolClassifier(taxonomy=job.taxonomy, n_threads=n_threads).fit(X, job.y)
        chosen = ", ".join(f"{name} {weight:.2f}" for name, weight in model.weights_.items())

        def answers(X: Any) -> list[Answer]:
            given = X if features is None else features.transform(X)
            whole = Answer(model.classes_, model.predict_log_proba(given))
            return [whole, *(_expert(model, row, given, len(job.y)) for row in model.table_)]

        return FittedJob(answers, chosen)

    return run


def _expert(model: Any, row: Any, X: Any, n_rows: int) -> Answer:
    """What one expert of a fitted pool says; seconds are those of its tuning and of its fits in the folds."""
    facts = {"setting": f"weight {row.weight:.2f}", "seconds": row.seconds}
    if row.name not in model.experts_:
        return Answer(None, None, facts | {"status": "not kept"}, row.name)
    expert = model.experts_[row.name]
    if not (sparse.issparse(X) or get_tags(expert).input_tags.positive_only):
        X = (X - model.mean_) / model.scale_
    logs = log_softmax(expert.predict_log_proba(X) / model.temperatures_[row.name], axis=1)
    if not np.isfinite(logs).all():
        logs, zeros = log_probabilities(np.exp(logs), n_rows)
        facts["zeros"] = zeros
    return Answer(expert.classes_, logs, facts, row.name)


class _TextBlocks:
    """Words and characters of texts with embeddings, and the embeddings, as blocks."""

    def __init__(self) -> None:
        self._table = TableFeatures(output="blocks")

    def fit_transform(self, X: EmbeddedTexts) -> Blocks:
        return _beside(self._table.fit_transform(X.texts), X)

    def transform(self, X: EmbeddedTexts) -> Blocks:
        return _beside(self._table.transform(X.texts), X)


def _beside(blocks: Blocks, X: EmbeddedTexts) -> Blocks:
    return Blocks({**dict(blocks.items()), "embedding": X.embedding})


def _table_features(output: str) -> TableFeatures:
    return TableFeatures(TITLE, numeric=NUMBERS, categorical=CATEGORIES, dates=DATES, output=output)


def _pool(job: Job, n_threads: int) -> PoolClassifier:
    return PoolClassifier(taxonomy=job.taxonomy, n_threads=n_threads)


def _softmax(job: Job, n_threads: int, **kernels: Any) -> KernelLogisticClassifier:
    """As ``taxolearn train --model softmax`` makes it: where evaluations of the criterion take long, fewer of them."""
    n_rows, n_classes = len(job.y), len(np.unique(job.y))
    most = max(4_000_000 // n_classes, 2_000)
    is_long = min(n_rows, most) * n_classes >= 1_000_000
    tuning = CrossValidation(3 if is_long else 5, subset=most if most < n_rows else None)
    if is_long:
        tuning.max_evaluations = 10
    return KernelLogisticClassifier(taxonomy=job.taxonomy, tuning=tuning, tol=1e-5, n_threads=n_threads, **kernels)


def _chosen(model: Any) -> str:
    """The weights of a pool, or the learned variances of blocks."""
    if hasattr(model, "weights_"):
        return ", ".join(f"{name} {weight:.2f}" for name, weight in model.weights_.items())
    kernel = model.hyperparameters_.kernel
    return ", ".join(f"{name} {kernel[name].variance:.3g}" for name in model.blocks_in_)


def evidence(
    job: Job, n_threads: int, features: Callable[[], Any], classifier: Callable[[Job, int], Any] = _pool
) -> FitJob:
    """Features, then a classifier."""

    def run() -> FittedJob:
        made = features()
        X = made.fit_transform(job.X)
        model = classifier(job, n_threads).fit(X, job.y)

        def answers(X: Any) -> list[Answer]:
            return [Answer(model.classes_, model.predict_log_proba(made.transform(X)))]

        return FittedJob(answers, _chosen(model))

    return run


def _texts_alone() -> Any:
    return make_pipeline(FunctionTransformer(attrgetter("texts")), TableFeatures())


def _embeddings_alone() -> Any:
    return FunctionTransformer(attrgetter("embedding"))


def top_down(rows: Rows) -> PredictTop:
    """A softmax at every inner node of the tree; a class that lies on such a node has a leaf of its own below it."""
    model = TopDownClassifier(rows.data.taxonomy, labels="own", n_threads=rows.n_threads)
    return _best(model.fit(rows.X, rows.classes[rows.y]), rows)


def recursive_top(rows: Rows, loss: str, C: float) -> PredictTop:
    """Recursive regularization with one variance of all nodes."""
    model = RecursiveRegularizationClassifier(
        rows.data.taxonomy, loss=loss, tying="shared", C=C, tuning=None, tol=_TOP_GAP, n_threads=rows.n_threads
    )
    return _best(model.fit(rows.X, rows.classes[rows.y]), rows)


def _best(model: Any, rows: Rows) -> PredictTop:
    def predict(X: Any, k: int) -> Labels:
        labels, _ = model.top_classes(X, k)
        return columns_of(labels.ravel(), rows.classes).reshape(labels.shape)

    return predict


SOLVERS = {"taxolearn": SolverEntry(solver)}
CLASSIFIERS = {
    "taxolearn, tree": Classifier(
        partial(classifier, tree=True),
        tuple({"variance": value, "ratio": ratio} for value, ratio in product(VALUES, (1 / 3, 1.0))),
    ),
    "taxolearn, flat": Classifier(partial(classifier, tree=False), tuple({"variance": value} for value in VALUES)),
}
TOP_MODELS = {
    "taxolearn, top-down": TopModel(top_down),
    "taxolearn, RR-SVM": TopModel(partial(recursive_top, loss="hinge"), ({"C": 1.0},)),
    "taxolearn, RR-SVM, squared": TopModel(partial(recursive_top, loss="squared_hinge"), ({"C": 1.0},)),
}
RBF_MODELS = {"taxolearn": rbf_model}
JOB_MODELS = {
    "taxolearn, pool": JobModel(pool, "PoolClassifier(taxonomy=...) on TableFeatures() of texts, everything by default")
}
_BLOCKS_TUNING = "as the command train makes it; its learned variances are shown"
EMBEDDING_MODELS = {
    "taxolearn, pool of tf-idf": JobModel(
        partial(evidence, features=_texts_alone), "PoolClassifier(taxonomy=...) on TableFeatures(), all by default"
    ),
    "taxolearn, pool of embedding": JobModel(
        partial(evidence, features=_embeddings_alone), "PoolClassifier(taxonomy=...) on the embeddings", embeds=True
    ),
    "taxolearn, blocks": JobModel(
        partial(evidence, features=_TextBlocks, classifier=_softmax),
        f"KernelLogisticClassifier over blocks of words, characters and embeddings, {_BLOCKS_TUNING}",
        embeds=True,
    ),
    "taxolearn, pool of blocks": JobModel(
        partial(evidence, features=_TextBlocks), "PoolClassifier(taxonomy=...) over the same blocks", embeds=True
    ),
}
TABLE_MODELS = {
    "taxolearn, pool of one matrix": JobModel(
        partial(evidence, features=partial(_table_features, "matrix")),
        "PoolClassifier(taxonomy=...) on TableFeatures(...), all by default",
    ),
    "taxolearn, blocks": JobModel(
        partial(evidence, features=partial(_table_features, "blocks"), classifier=_softmax),
        f'KernelLogisticClassifier over TableFeatures(..., output="blocks"), {_BLOCKS_TUNING}',
    ),
    "taxolearn, pool of blocks": JobModel(
        partial(evidence, features=partial(_table_features, "blocks")),
        "PoolClassifier(taxonomy=...) over the same blocks",
    ),
}


def several_labels(job: LabelJob, n_threads: int, hierarchy: bool = False, **settings: Any) -> FitLabels:
    """Recursive regularization with its defaults, or one label against the rest; labels of other nodes are left out."""

    def run() -> FittedLabels:
        features = usual_features(job)
        X = features.fit_transform(job.X)
        model = RecursiveRegularizationClassifier(
            job.hierarchy if hierarchy else None, n_threads=n_threads, **settings
        ).fit(X, job.label_sets())
        place = {name: k for k, name in enumerate(model.classes_.tolist())}
        known = [k for k, name in enumerate(job.classes) if name in place]
        columns = [place[job.classes[k]] for k in known]

        def of_job(values: Any, rest: float) -> Any:
            full = np.full((*values.shape[:-1], len(job.classes)), rest)
            full[..., known] = values[..., columns]
            return full

        def answer(given: Any) -> LabelAnswer:
            proba = model.predict_proba(features.transform(given))
            thresholds = None if model.thresholds_ is None else of_job(model.thresholds_, 0.5)
            above = {} if job.hierarchy is None else {"child_above_parent": _most_above_parent(job, place, proba)}
            return LabelAnswer(of_job(proba, 0.0), thresholds, {"gap": model.result_.relative_gap, **above})

        C = model.C_
        values = ", ".join(f"{value:.2g}" for value in (C.values() if isinstance(C, dict) else [C]))
        return FittedLabels(answer, f"C {values}, temperature {model.hyperparameters_.temperature:.2g}")

    return run


def _most_above_parent(job: LabelJob, place: dict[str, int], proba: Any) -> float:
    """By how much a label is more probable than one above it at most; below 0 if it never is."""
    assert job.hierarchy is not None
    edges = job.hierarchy.to_edges()
    pairs = [(place[parent], place[child]) for parent, child in edges if parent in place and child in place]
    if not pairs:
        return float("nan")
    parents, children = (np.array(part) for part in zip(*pairs, strict=True))
    return max(
        float((proba[:, child] - proba[:, parent]).max()) for parent, child in zip(parents, children, strict=True)
    )


_OF_LABELS = "RecursiveRegularizationClassifier with its defaults"
LABEL_MODELS = {
    "taxolearn, logistic": LabelModel(several_labels, f"{_OF_LABELS}, no tree"),
    "taxolearn, squared hinge": LabelModel(
        partial(several_labels, loss="squared_hinge"), f'{_OF_LABELS} and loss="squared_hinge", no tree'
    ),
    "taxolearn, logistic, tree": LabelModel(
        partial(several_labels, hierarchy=True), f"{_OF_LABELS} and the tree", lambda job: job.hierarchy is not None
    ),
}
GENE_MODELS = {
    "taxolearn, logistic, RBF": LabelModel(
        partial(several_labels, hierarchy=True, kernel="rbf"), f'{_OF_LABELS}, kernel="rbf" and the hierarchy'
    ),
    "taxolearn, logistic, flat": LabelModel(several_labels, f"{_OF_LABELS}, without the hierarchy"),
    "taxolearn, logistic": LabelModel(partial(several_labels, hierarchy=True), f"{_OF_LABELS} and the hierarchy"),
    "taxolearn, squared hinge": LabelModel(
        partial(several_labels, hierarchy=True, loss="squared_hinge"),
        f'{_OF_LABELS}, loss="squared_hinge" and the hierarchy',
    ),
}


def recursive(rows: PaperRows, C: Any, loss: str, tying: str) -> Callable[[Any], Any]:
    """Recursive regularization with given variances."""
    return _paper_scores(_recursive(rows, loss=loss, tying=tying, C=C, tuning=None), rows)


def learned_variances(rows: PaperRows, loss: str) -> Any:
    """A variance for each level of the tree."""
    C = _recursive(rows, loss=loss).C_
    return list(C.values()) if isinstance(C, dict) else C


def _recursive(rows: PaperRows, **settings: Any) -> RecursiveRegularizationClassifier:
    names = np.array(rows.job.classes, dtype=object)
    y = rows.label_of_each if rows.job.has_one_label else [tuple(names[k]) for k in _columns_of_rows(rows.Y)]
    model = RecursiveRegularizationClassifier(rows.job.hierarchy, tol=_PAPER_GAP, n_threads=rows.n_threads, **settings)
    return model.fit(rows.X, y)


def _columns_of_rows(Y: Any) -> Any:
    return np.split(Y.indices, Y.indptr[1:-1])


def _paper_scores(model: Any, rows: PaperRows) -> Callable[[Any], Any]:
    place = {name: k for k, name in enumerate(model.classes_.tolist())}
    columns = [place[name] for name in rows.job.classes]
    return lambda X: model.decision_function(X)[:, columns]


def softmax(rows: PaperRows, C: float) -> Callable[[Any], Any]:
    """Multinomial logistic regression without the tree."""
    model = KernelLogisticClassifier(
        Linear(C),
        taxonomy=rows.job.hierarchy,
        coupling="independent",
        tuning=None,
        tol=_PAPER_GAP,
        n_threads=rows.n_threads,
    )
    return _paper_scores(model.fit(rows.X, rows.label_of_each), rows)


_PAPER_GAP = 1e-4
PAPER_MODELS = {
    "taxolearn, MLR": PaperModel(softmax, lambda job: job.has_one_label),
    "taxolearn, RR-SVM": PaperModel(partial(recursive, loss="hinge", tying="shared")),
    "taxolearn, RR-LR": PaperModel(partial(recursive, loss="logistic", tying="shared")),
    "taxolearn, a variance per level": PaperModel(
        partial(recursive, loss="logistic", tying="level"), learn=partial(learned_variances, loss="logistic")
    ),
}
