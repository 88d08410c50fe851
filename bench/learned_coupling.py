"""Suite ``learned_coupling``: which classes go together, learned from data, beside the flat model and the given tree.

All models are linear and learn their variances by cross-validation on the same folds. "Learned" ones see no tree: they
share so many functions of all classes, with loadings that are learned with the variances.
"""

import time
from typing import Any

import numpy as np

from bench.cases import Cases
from bench.figures import Bar
from bench.hierarchies import SCORES, scores
from bench.learning import learning_facts
from bench.report import Result
from bench.taxonomies import OF_WORDS, TreeData
from taxolearn import KernelLogisticClassifier, LearnedCoupling
from taxolearn.kernels import Linear

DATA = ("news20", "clinc150", "lshtc")
MODELS: dict[str, Any] = {
    "flat": "identity",
    "given tree": "tree",
    "learned, rank 5": LearnedCoupling(5, base="identity"),
    "learned, rank 10": LearnedCoupling(10, base="identity"),
    "learned, rank 20": LearnedCoupling(20, base="identity"),
    "tree and rank 5": LearnedCoupling(5, base="tree"),
}
START, SIGMA2 = 5.0, 0.01
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
        f"Linear kernel from variance {START:g}, sigma2 = {SIGMA2:g}, tf-idf of words, 5 folds, one variance for all "
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
    fitted = KernelLogisticClassifier(
        Linear(START),
        taxonomy=problem.taxonomy,
        coupling=coupling,
        tying="level" if "tree" in model else "shared",
        sigma2=SIGMA2,
        learn_sigma2=False,
        max_evaluations=4 if quick else 100,
        time_limit=time_limit,
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
        **scores(problem, fitted),
        **({} if isinstance(coupling, str) else _similarity(problem, fitted)),
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


def run(*, data: list[str], models: list[str], n_threads: int, limit: float, quick: bool, cases: Cases) -> Result:
    """All models on each data set."""
    result = Result(
        suite="learned_coupling",
        title="Which classes go together: nothing, a given tree, or learned",
        columns=_COLUMNS,
        figure=Bar("log_loss", "log loss on test data", "{:.3f}"),
        settings={"threads": n_threads, "quick": quick, "limit": limit},
        notes=[*_NOTES, SCORES],
    )
    for name in data:
        for model in models:
            answer = cases.run(
                f"{name}, {model}",
                "bench.learned_coupling:measure",
                {"data": name, "model": model, "quick": quick},
                n_threads,
                time_limit=limit,
            )
            status = {"learning_status": answer.get("status")}
            result.rows.append({"problem": name, "library": f"taxolearn, {model}", **status, **answer})
            note = f"{answer['description']}." if "description" in answer else ""
            if note and note not in result.notes:
                result.notes.append(note)
    return result
