"""RBF kernels learned by cross-validation on satimage, as in Seeger (2008, 6.2)."""

import statistics
import time
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.multiclass import OneVsRestClassifier

from bench.harness.figures import ErrorReject
from bench.harness.learning import REJECTED, learning_facts, partition, scores_on_test, tuning
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.problems.data import Floats, satimage
from taxolearn import KernelLogisticClassifier
from taxolearn.kernels import RBF, PerClass

HELP = "kernels learned on satimage, ten partitions"
# Test error in percent and its deviation over the partitions.
PUBLISHED = {"mc-sep": (7.95, 0.15), "mc-semi": (8.10, 0.13), "mc-tied": (8.35, 0.20), "1rest": (8.00, 0.10)}
START, INTERCEPT_VARIANCE = RBF(length_scale=0.017**-0.5, variance=10.0), 16.0

_NOTE = (
    "Features / 10, start w = 0.017 and v = 10, intercept variance 16, 5 folds; "
    "each partition is one of all training rows, the "
    "same for all methods; ± is the standard deviation over the partitions. mc-sep: own kernels; mc-semi: own "
    "variances; mc-tied: one kernel; 1rest: OneVsRestClassifier around the same estimator with two classes, "
    "which says the class of the largest positive probability. Its log loss is that of these probabilities divided by "
    "their sum. Learning times and evaluations are means over the partitions; of 1rest, over the sums of its six "
    "classifiers. The best SVM of Hsu and Lin (2002) has 7.65 %."
)


def measure(method: str, seed: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """Learn on one partition, in this process."""
    data = satimage(quick)
    kernels: dict[str, Any] = {
        "mc-sep": PerClass(START),
        "mc-semi": PerClass(START, share="correlation"),
        "mc-tied": START,
        "1rest": START,
    }
    model = KernelLogisticClassifier(
        kernels[method],
        intercept_variance=INTERCEPT_VARIANCE,
        tuning=tuning(quick, folds=partition(data.y, seed)),
        random_state=seed,
        n_threads=n_threads,
    )
    begin = time.perf_counter()
    if method == "1rest":
        fitted = OneVsRestClassifier(model).fit(data.X, data.y)
        seconds = time.perf_counter() - begin
        proba: Floats = np.column_stack([each.predict_proba(data.X_test)[:, 1] for each in fitted.estimators_])
        classes = fitted.classes_
        facts = _sums([learning_facts(each) for each in fitted.estimators_], classes)
        log_proba: Floats = np.log(proba / proba.sum(axis=1, keepdims=True))
    else:
        model.fit(data.X, data.y)
        seconds = time.perf_counter() - begin
        log_proba, classes = model.predict_log_proba(data.X_test), model.classes_
        proba = np.exp(log_proba)
        facts = learning_facts(model)
    return facts | {"seconds": seconds, **scores_on_test(data.y_test, classes, proba, log_proba)}


def _sums(each: list[dict[str, Any]], classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Sum up the facts of the classifiers of one against the rest."""
    added = ("parameters", "evaluations", "failures", "learning_seconds", "learning_products", "final_seconds")
    states = {name: sorted({facts[name] for facts in each}) for name in ("learning_status", "status")}
    learned = {
        f"kernels[{label}].{name.removeprefix('kernel.')}": value
        for label, facts in zip(classes.tolist(), each, strict=True)
        for name, value in facts["learned"].items()
    }
    return (
        {name: sum(facts[name] for facts in each) for name in (*added, "products")}
        | {name: ", ".join(found) for name, found in states.items()}
        | {"learned": learned, "gap": max(facts["gap"] for facts in each)}
    )


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--methods", type=names, default=list(PUBLISHED))


def run(options: Namespace) -> list[Result]:
    """Run all methods on every partition, one partition after another."""
    result = Result.of(
        options,
        title="satimage: kernels learned by cross-validation",
        columns={
            "library": "method",
            "parameters": "parameters",
            "error": "test error %",
            "error_deviation": "±",
            "published": "published %",
            "log_loss": "test log loss",
            "area": "area below error-reject curve",
            "learning_seconds": "learning s",
            "evaluations": "evaluations",
            "failures": "failures",
            "final_seconds": "final fit s",
            "partitions": "partitions",
            "statuses": "status of learning",
        },
        figure=ErrorReject(),
        settings={"data": satimage(options.quick).description},
        notes=[_NOTE],
    )
    runs: dict[str, list[dict[str, Any]]] = {method: [] for method in options.methods}
    cases = known_cases(options)
    for seed in range(options.partitions):
        for method in options.methods:
            arguments = {"method": method, "seed": seed, "quick": options.quick}
            answer = cases.run(f"{method}, partition {seed}", measure, arguments, options.threads)
            if "error" in answer:
                runs[method].append(answer)
    result.rows = [_means(method, answers) for method, answers in runs.items() if answers]
    return [result]


def _means(method: str, answers: list[dict[str, Any]]) -> dict[str, Any]:
    averaged = ("parameters", "error", "log_loss", "area", "learning_seconds", "evaluations", "failures")
    states = [answer["learning_status"] for answer in answers]
    return {
        "problem": "satimage",
        "library": f"taxolearn, {method}",
        **{name: statistics.fmean(answer[name] for answer in answers) for name in (*averaged, "final_seconds")},
        "error_deviation": statistics.stdev(answer["error"] for answer in answers) if len(answers) > 1 else None,
        "published": "{:.2f} ± {:.2f}".format(*PUBLISHED[method]),
        "partitions": len(answers),
        "statuses": ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)),
        "errors": [answer["error"] for answer in answers],
        "learning_seconds_of_all": [answer["learning_seconds"] for answer in answers],
        "learned": [answer["learned"] for answer in answers],
        "rejected": REJECTED.tolist(),
        "curve": np.mean([answer["curve"] for answer in answers], axis=0).tolist(),
    }
