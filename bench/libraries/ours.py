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
    FitRBF,
    FittedJob,
    FittedRBF,
    JobModel,
    Labels,
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
from bench.problems.jobs import EmbeddedTexts, Job
from bench.problems.rbf import Values
from taxolearn import (
    Blocks,
    CrossValidation,
    KernelLogisticClassifier,
    PoolClassifier,
    Taxonomy,
    TopDownClassifier,
    Tree,
)
from taxolearn import Solver as KernelSolver
from taxolearn.features import TableFeatures
from taxolearn.kernels import Linear, PerClass

_INTERCEPT_VARIANCE = 1.0  # of classifiers


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
    model.fit(rows.X, rows.classes[rows.y])

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
TOP_MODELS = {"taxolearn, top-down": TopModel(top_down)}
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
