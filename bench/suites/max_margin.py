"""Max-margin Markov trees: tables 1, 2 and 3 of Rousu et al. 2006 with their baselines, mails and genes, and cost.

``--parts`` chooses what is run; each part has a result of its own.
"""

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

from bench.harness.figures import Bar
from bench.harness.label_scores import label_scores
from bench.harness.options import add_common, names
from bench.harness.report import Result
from bench.problems.features import usual_features
from bench.problems.label_jobs import CLUS_JOBS, LabelJob
from bench.problems.label_trees import LabelledRows, rcv1_family
from bench.problems.synthetic import made_up_text, made_up_tree
from bench.suites.gene_functions import PUBLISHED
from taxolearn import MaxMarginTreeClassifier, RecursiveRegularizationClassifier, Taxonomy, metrics
from taxolearn.estimators.margin import label_scales

HELP = "max-margin Markov trees for several labels, against support vector machines per node"
_PARTS = ("tables", "genes", "cost")

Booleans = npt.NDArray[np.bool_]
_GENES = ("Enron_corr", "cellcycle_FUN", "eisen_FUN")
_SPLITS = 5
_SCALINGS = ("uniform", "sibling", "subtree")
_TRAINED = {
    "H-M3, symmetric difference": {"loss": "hamming"},
    "H-M3, hierarchical, uniform": {"loss": "hierarchical"},
    "H-M3, hierarchical, sibling": {"loss": "hierarchical", "scaling": "sibling"},
    "H-M3, hierarchical, subtree": {"loss": "hierarchical", "scaling": "subtree"},
    "H-M3, zero-one": {"loss": "zero-one"},
}
_PUBLISHED = {  # tables 1 and 2: 0/1 %, symmetric difference, H uniform, sibling, subtree, P, R, F1
    "SVM per node": (32.9, 0.61, None, None, None, 94.6, 58.4, 72.2),
    "H-SVM": (29.8, 0.57, None, None, None, 92.3, 63.4, 75.1),
    "H-RLS": (28.1, 0.55, None, None, None, 91.5, 65.4, 76.3),
    "H-M3, symmetric difference": (27.1, 0.574, 0.344, 0.114, 0.118, 91.0, 64.1, 75.2),
    "H-M3, hierarchical, uniform": (26.8, 0.590, 0.338, 0.118, 0.122, None, None, None),
    "H-M3, hierarchical, sibling": (28.2, 0.608, 0.381, 0.109, 0.114, None, None, None),
    "H-M3, hierarchical, subtree": (27.9, 0.588, 0.373, 0.109, 0.109, 85.4, 68.3, 75.9),
}
_MEASURES = {
    "zero_one": "0/1 %",
    "difference": "symmetric difference",
    "uniform": "H uniform",
    "sibling": "H sibling",
    "subtree": "H subtree",
    "precision": "P %",
    "recall": "R %",
    "f1": "F1 %",
}


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("--parts", type=names, default=list(_PARTS), help=f"of {', '.join(_PARTS)}")
    parser.add_argument("--largest", action="store_true", help="also 20,000 rows with 500 nodes, which take long")
    parser.add_argument("--sets", type=names, default=list(_GENES), help="of mails and genes")
    parser.add_argument("--splits", type=int, default=_SPLITS, help="random splits, over which figures are means")


def run(options: Namespace) -> list[Result]:
    parts = {"tables": _tables, "genes": _genes, "cost": _cost}
    return [parts[name](options) for name in options.parts]


def _tables(options: Namespace) -> Result:
    """Fit all methods to every split, and compare means with the published figures."""
    train, test, splits = (300, 300, 1) if options.quick else (2500, 5000, options.splits)
    data = rcv1_family()
    result = Result.of(
        options,
        title="Max-margin Markov trees: the CCAT family of RCV1",
        columns={"library": "method"}
        | _MEASURES
        | {
            "levels": "P / R / F1 by level",
            "seconds": "seconds",
            "processor_seconds": "processor s",
            "gap": "relative gap",
            "passes": "passes",
        },
        figure=Bar("zero_one", "0/1 loss in %", "{:.1f}"),
        settings={"C": 1.0, "tol": 1e-2, "train": train, "test": test, "splits": splits},
        notes=[_note(data)],
    )
    for name, fit in _methods(data, options.threads).items():
        scores = [_score(data, fit, *data.sample(train, test, seed)) for seed in range(splits)]
        numbers = [key for key in scores[0] if key != "levels"]
        row = {key: float(np.mean([score[key] for score in scores])) for key in numbers if scores[0][key] is not None}
        print(f"  {name}: {row['zero_one']:.1f} %, {row['seconds']:.2f} s", flush=True)
        result.rows.append({"problem": "CCAT", "library": name, "levels": scores[0]["levels"]} | row)
        if name in _PUBLISHED:
            published = dict(zip(_MEASURES, _PUBLISHED[name], strict=True))
            shown = {key: value for key, value in published.items() if value is not None}
            result.rows.append({"problem": "CCAT", "library": f"{name}, published"} | shown)
    return result


def _note(data: LabelledRows) -> str:
    return (
        f"{data.X.shape[0]} distinct documents, {len(data.names)} topics; random rows, means over the splits, levels "
        "of the first. Published figures are those of the authors' rows, features and tree. C = 1 everywhere, as in "
        "the paper; nothing was chosen on test rows. The family's own topic has an edge to a root, which the paper's "
        "has not. Baselines are scikit-learn's LinearSVC and Ridge; labels below a missing one are left out. H-RLS is "
        "least squares on the rows that have the label above, without the term of the row that is predicted."
    )


def _methods(data: LabelledRows, threads: int) -> dict[str, Callable[..., Any]]:
    def margin(arguments: dict[str, Any]) -> Callable[..., Any]:
        def fit(X: Any, Y: Booleans, X_test: Any) -> tuple[Booleans, Any]:
            model = MaxMarginTreeClassifier(data.taxonomy, n_threads=threads, **arguments)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "y: no row has the label")
                model.fit(X, Y.astype(int))
            return model.predict(X_test).astype(bool), model.result_

        return fit

    methods: dict[str, Callable[..., Any]] = {
        "SVM per node": lambda *rows: (_per_node(data, *rows, _svm, everywhere=True), None),
        "H-SVM": lambda *rows: (_per_node(data, *rows, _svm, everywhere=False), None),
        "H-RLS": lambda *rows: (_per_node(data, *rows, _least_squares, everywhere=False), None),
    }
    return methods | {name: margin(arguments) for name, arguments in _TRAINED.items()}


def _svm(X: Any, y: Booleans) -> Callable[[Any], Booleans]:
    model = LinearSVC(C=1.0, loss="hinge", random_state=0, max_iter=10_000).fit(X, y)
    return lambda X_test: model.decision_function(X_test) > 0


def _least_squares(X: Any, y: Booleans) -> Callable[[Any], Booleans]:
    model = Ridge(alpha=1.0, fit_intercept=False).fit(X, np.where(y, 1.0, -1.0))
    return lambda X_test: model.predict(X_test) > 0


def _per_node(
    data: LabelledRows, X: Any, Y: Booleans, X_test: Any, learn: Callable[..., Any], everywhere: bool
) -> Booleans:
    """A binary classifier per node, from all rows or those that have the node above; answers closed upwards."""
    out = np.zeros((X_test.shape[0], Y.shape[1]), dtype=bool)
    for node in np.argsort(data.depths, kind="stable"):
        above = data.parents[node]
        rows = np.arange(len(Y)) if everywhere or above < 0 else np.flatnonzero(Y[:, above])
        y = Y[rows, node]
        if len(rows) == 0 or y.all() or not y.any():
            out[:, node] = len(rows) > 0 and bool(y.all())
        else:
            out[:, node] = learn(X[rows], y)(X_test)
        if above >= 0:
            out[:, node] &= out[:, above]
    return out


def _score(data: LabelledRows, fit: Callable[..., Any], train: Any, test: Any) -> dict[str, Any]:
    begin, processor = time.perf_counter(), time.process_time()
    answers, found = fit(data.X[train], data.Y[train], data.X[test])
    seconds = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - processor}
    truth = data.Y[test]
    wrong = answers != truth
    above_right = np.where(data.parents >= 0, ~wrong[:, data.parents], True)
    order = np.argsort(data.depths, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    parents = np.where(data.parents[order] >= 0, place[data.parents[order]], -1)
    hierarchical = {}
    for scaling in _SCALINGS:
        factors = np.empty(len(order))
        factors[order] = label_scales(parents, scaling)
        hierarchical[scaling] = float(((wrong & above_right) @ factors).mean())
    precision, recall, f1 = _rates(answers, truth)
    levels = "; ".join(
        "{:.1f} / {:.1f} / {:.1f}".format(*_rates(answers[:, data.depths == level], truth[:, data.depths == level]))
        for level in range(int(data.depths.max()) + 1)
    )
    return {
        "zero_one": 100 * float(wrong.any(axis=1).mean()),
        "difference": float(wrong.sum(axis=1).mean()),
        **hierarchical,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "levels": levels,
        **seconds,
        "gap": None if found is None else found.relative_gap,
        "passes": None if found is None else found.passes,
    }


def _rates(answers: Booleans, truth: Booleans) -> tuple[float, float, float]:
    """Precision, recall and F1 over all decisions, in percent."""
    right = float((answers & truth).sum())
    precision, recall = right / max(answers.sum(), 1), right / max(truth.sum(), 1)
    return 100 * precision, 100 * recall, 100 * 2 * precision * recall / max(precision + recall, 1e-12)


# -- Mails and genes --------------------------------------------------------------------------------------------------

_GENES_NOTE = (
    "H-M3 and recursive regularization (RR-LR) have the tree; C and variances are chosen on held-out training rows, as "
    "are the temperature and offset by which max-marginals become probabilities. Zero-one: rows with some wrong "
    "label; both answer the labels that they find. AU(PRC): area under the precision-recall curve of all pairs of row "
    "and label, by the steps of C-HMCNN; published: C-HMCNN (Giunchiglia, Lukasiewicz 2020). Columns are "
    "standardized, and for H-M3 rows divided by their length."
)


def _genes(options: Namespace) -> Result:
    """Both kinds of models on mails and genes."""
    result = Result.of(
        options,
        title="Max-margin Markov trees: mails and functions of genes",
        columns={
            "problem": "set",
            "library": "model",
            "zero_one": "zero-one %",
            "difference": "symmetric difference",
            "micro_f1": "micro-F1 % of the answers",
            "area": "AU(PRC), steps",
            "log_loss": "log loss",
            "C": "C",
            "seconds": "seconds",
            "processor_seconds": "processor s",
            "gap": "relative gap",
        },
        figure=Bar("area", "pooled AU(PRC), steps", "{:.3f}"),
        notes=[_GENES_NOTE],
    )
    result.suite += "_genes"
    costs = [0.3, 1.0, 3.0, 10.0]
    models: dict[str, Callable[[LabelJob], Any]] = {
        "taxolearn, H-M3": lambda job: MaxMarginTreeClassifier(
            job.hierarchy, C=costs, calibrate=True, n_threads=options.threads
        ),
        "taxolearn, RR-LR": lambda job: RecursiveRegularizationClassifier(
            job.hierarchy, tol=1e-4, n_threads=options.threads
        ),
    }
    for name in options.sets:
        job = CLUS_JOBS[name]()
        job = job.first_rows(200) if options.quick else job
        result.add_note(f"{name}: {job.description}.")
        for library, make in models.items():
            row = {"problem": name, "library": library} | _gene_scores(job, make(job), has_margin="H-M3" in library)
            print(f"  {name}, {library}: area {row['area']:.3f}, {row['seconds']:.1f} s", flush=True)
            result.rows.append(row)
        for library, area in PUBLISHED[name].items():
            result.rows.append({"problem": name, "library": f"{library}, published", "area": area})
    return result


def _gene_scores(job: LabelJob, model: Any, has_margin: bool) -> dict[str, Any]:
    features = make_pipeline(usual_features(job), Normalizer()) if has_margin else usual_features(job)
    begin, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y: no row has the label")
        model.fit(features.fit_transform(job.X), job.label_sets())
    seconds = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - processor}
    X = features.transform(job.X_test)
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    known = [k for k, label in enumerate(job.classes) if label in place]
    columns = [place[job.classes[k]] for k in known]
    proba, answers = np.zeros(job.Y_test.shape), np.zeros(job.Y_test.shape, dtype=bool)
    proba[:, known] = model.predict_proba(X)[:, columns]
    answers[:, known] = model.decision_function(X)[:, columns] > 0
    scores = label_scores(job, proba, None)
    wrong = answers != (job.Y_test.toarray() > 0)
    C = model.C_
    return {
        "zero_one": 100 * float(wrong.any(axis=1).mean()),
        "difference": float(wrong.sum(axis=1).mean()),
        "micro_f1": 100 * metrics.precision_recall_f(job.Y_test, sparse.csr_array(answers), average="micro").f,
        "area": metrics.precision_recall_area(job.Y_test, proba, curve="steps", labels="all"),
        "log_loss": scores["log_loss"],
        "C": ", ".join(f"{value:.2g}" for value in (C.values() if isinstance(C, dict) else [C])),
        "gap": model.result_.relative_gap,
    } | seconds


# -- Cost -------------------------------------------------------------------------------------------------------------

_COST_NOTE = (
    "Made-up texts of 20,000 words by a power law, with one path of a tree of three levels each. The first row is "
    "varied in one size at a time. Seconds per pass are those of the whole fit, certificate included, divided by its "
    "passes; where they are far above processor seconds, the machine did other work as well. Exponents compare the "
    "largest with the smallest size."
)


def _cost(options: Namespace) -> Result:
    """Seconds of a pass by rows, nodes and words of a row; and a large fit."""
    base = {"rows": 1000, "nodes": 60, "words": 30}
    varied = {"rows": (2000, 4000), "nodes": (120, 240), "words": (60, 120)}
    if options.quick:
        base, varied = {"rows": 300, "nodes": 20, "words": 30}, {"rows": (600,), "nodes": (40,), "words": (60,)}
    result = Result.of(
        options,
        title="Max-margin Markov trees: cost",
        columns={
            "rows": "rows",
            "nodes": "nodes",
            "words": "words a row",
            "per_pass": "ms per pass",
            "processor_per_pass": "processor ms per pass",
            "passes": "passes",
            "seconds": "seconds",
            "processor_seconds": "processor s",
            "gap": "relative gap",
        },
        figure=Bar("processor_per_pass", "processor ms per pass", "{:.0f}"),
        settings={"tol": 2e-2},
        notes=[_COST_NOTE],
    )
    result.suite += "_cost"
    sizes = [base, *(base | {name: size} for name, values in varied.items() for size in values)]
    sizes += [{"rows": 20_000, "nodes": 500, "words": 30}] if options.largest else []
    for size in sizes:
        row = _fit_made_up(**size, threads=options.threads)
        label = f"{size['rows']} x {size['nodes']} x {size['words']}"
        print(f"  {label}: {row['per_pass']:.1f} ms per pass, {row['seconds']:.1f} s", flush=True)
        result.rows.append({"problem": "made-up texts", "library": f"taxolearn, {label}"} | size | row)
    first = result.rows[0]
    exponents = []
    for name, values in varied.items():
        (last,) = (row for row in result.rows if all(row[key] == (base | {name: values[-1]})[key] for key in base))
        ratio = last["processor_per_pass"] / first["processor_per_pass"]
        exponents.append(f"{np.log(ratio) / np.log(values[-1] / base[name]):.2f} in {name}")
    result.add_note(f"Exponents of the processor seconds of a pass: {', '.join(exponents)}.")
    return result


def _fit_made_up(rows: int, nodes: int, words: int, threads: int) -> dict[str, float]:
    inner = max(2, nodes // 12)
    leaves = nodes - inner
    X, y = made_up_text(rows, leaves, words, 20_000, 0)
    taxonomy = Taxonomy(made_up_tree([inner, leaves]))
    labels = taxonomy.classes[y]
    model = MaxMarginTreeClassifier(taxonomy, tol=2e-2, n_threads=threads)
    begin, processor = time.perf_counter(), time.process_time()
    model.fit(X, [[label] for label in labels.tolist()])
    seconds, used = time.perf_counter() - begin, time.process_time() - processor
    passes = model.result_.passes
    return {
        "per_pass": 1000 * seconds / passes,
        "processor_per_pass": 1000 * used / passes,
        "passes": passes,
        "seconds": seconds,
        "processor_seconds": used,
        "gap": model.result_.relative_gap,
    }
