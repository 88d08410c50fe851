"""Which classes go together, learned from data, beside the flat model and the given tree.

All models are linear and learn their variances by cross-validation on the same folds. "Learned" ones see no tree:
their classes share a few functions, with loadings that are learned together with the variances.
"""

import time
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from bench.harness import scores
from bench.harness.figures import Bar
from bench.harness.learning import learning_facts, tuning
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.problems.trees import OF_WORDS, TreeData
from taxolearn import Independent, KernelLogisticClassifier, LearnedCoupling, Tree
from taxolearn.kernels import Linear

HELP = "which classes go together: given and learned"
DATA = ("news20", "clinc150", "lshtc")
MODELS: dict[str, Any] = {
    "flat": Independent("shared"),
    "given tree": Tree("level"),
    **{f"learned, rank {rank}": LearnedCoupling(rank, base=Independent("shared")) for rank in (5, 10, 20)},
    "tree and rank 5": LearnedCoupling(5, base=Tree("level")),
}
START, INTERCEPT_VARIANCE = 5.0, 0.01
_MOST_SHOWN = 200  # classes whose loadings are kept in the results
_COLUMNS = {
    "problem": "data",
    "library": "model",
    "log_loss": "log loss",
    "accuracy": "acc %",
    "macro_f1": "macro-F1 %",
    "taxo": "taxo",
    "calibration": "ECE %",
    "cv_loss": "criterion",
    "parameters": "parameters",
    "tree_similarity": "similarity of siblings",
    "other_similarity": "of others",
    "evaluations": "evaluations",
    "learning_seconds": "learning s",
    "learning_status": "status of learning",
    "final_seconds": "final fit s",
    "gap": "gap",
}
_NOTES = [
    (
        f"Linear kernel from variance {START:g}, intercept variance {INTERCEPT_VARIANCE:g}, "
        "tf-idf of words, 5 folds, one variance for all "
        "classes of flat and learned models, one per level of the tree. The criterion of learned models includes their "
        "penalty."
    ),
    (
        "Similarity: mean correlation of learned loadings, of classes with the same parent in the given tree, which "
        "learned models do not see, and of all other pairs."
    ),
]


def _load(name: str, quick: bool) -> TreeData:
    data = OF_WORDS[name]()
    return data.first_rows(800) if quick else data


def measure(data: str, model: str, quick: bool, n_threads: int, time_limit: float) -> dict[str, Any]:
    """Learn for at most ``time_limit`` seconds, fit and score in this process."""
    problem = _load(data, quick)
    coupling = MODELS[model]
    begin = time.perf_counter()
    fitted: Any = KernelLogisticClassifier(
        Linear(START),
        taxonomy=problem.taxonomy,
        coupling=coupling,
        intercept_variance=INTERCEPT_VARIANCE,
        tuning=tuning(quick, time_limit=time_limit),
        random_state=0,
        n_threads=n_threads,
    ).fit(problem.X, problem.y)
    facts = learning_facts(fitted)
    is_log = fitted.cv_result_.is_log
    facts["learned"] = {
        name: value for (name, value), kept in zip(facts["learned"].items(), is_log.tolist(), strict=True) if kept
    }
    return {
        "description": problem.description,
        "seconds": time.perf_counter() - begin,
        **facts,
        **scores.scores(problem, fitted),
        **(_similarity(problem, fitted) if isinstance(coupling, LearnedCoupling) else {}),
    }


def _similarity(problem: TreeData, fitted: Any) -> dict[str, Any]:
    """Mean similarity of classes with the same parent, and of others; the loadings, to look at."""
    tree = fitted.taxonomy_
    parents = tree.parents[tree.n_inner :][np.argsort(tree.classes, kind="stable")]
    values = fitted.coupling_.correlations()
    above = np.triu_indices(len(values), 1)
    is_sibling = (parents[:, None] == parents)[above]
    loadings = np.round(fitted.coupling_.B, 4).tolist() if len(values) <= _MOST_SHOWN else None
    return {
        "tree_similarity": float(values[above][is_sibling].mean()) if is_sibling.any() else None,
        "other_similarity": float(values[above][~is_sibling].mean()) if not is_sibling.all() else None,
        "loadings": loadings,
        "classes": None if loadings is None else [str(label) for label in fitted.classes_],
    }


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--only", type=names, default=list(DATA), help="which data sets")
    parser.add_argument("--models", type=lambda text: text.split(";"), default=list(MODELS), help="separated by ;")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds that a model may learn")


def run(options: Namespace) -> list[Result]:
    """All models on each data set."""
    result = Result.of(
        options,
        title="Which classes go together: nothing, a given tree, or learned",
        columns=_COLUMNS,
        figure=Bar("log_loss", "log loss on test data", "{:.3f}"),
        notes=[*_NOTES, scores.NOTE],
    )
    cases = known_cases(options)
    for name in options.only:
        for model in options.models:
            answer = cases.run(
                f"{name}, {model}",
                measure,
                {"data": name, "model": model, "quick": options.quick},
                options.threads,
                time_limit=options.limit,
            )
            status = {"learning_status": answer.get("status")}
            result.rows.append({"problem": name, "library": f"taxolearn, {model}", **status, **answer})
            result.describe(answer)
    return [result]
