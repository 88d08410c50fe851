"""Suites ``satimage`` and ``usps``: RBF kernels learned by cross-validation, as in Seeger (2008, 6.2 and 6.3)."""

import statistics
import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.multiclass import OneVsRestClassifier

from bench.cases import Cases
from bench.figures import ErrorReject, Spread
from bench.learning import learning_facts, partition
from bench.problems import Floats, satimage, usps
from bench.report import Result
from taxolearn import KernelLogisticClassifier, metrics
from taxolearn.kernels import RBF, PerClass

# Test error in percent and its deviation over the partitions.
PUBLISHED = {"mc-sep": (7.95, 0.15), "mc-semi": (8.10, 0.13), "mc-tied": (8.35, 0.20), "1rest": (8.00, 0.10)}
PUBLISHED_USPS = (4.77, 0.18)
SATIMAGE_START, SATIMAGE_SIGMA2 = RBF(length_scale=0.017**-0.5, variance=10.0), 16.0
USPS_START, USPS_SIGMA2 = RBF(length_scale=0.0166**-0.5, variance=10.0), 4.0
REJECTED = np.linspace(0.0, 0.5, 201)  # where error-reject curves are kept

_SATIMAGE = (
    "Features / 10, start w = 0.017 and v = 10, sigma2 = 16, 5 folds; each partition is one of all training rows, the "
    "same for all methods; ± is the standard deviation over the partitions. mc-sep: own kernels; mc-semi: own "
    "variances; mc-tied: one kernel; 1rest: OneVsRestClassifier around the same estimator with two classes, "
    "which says the class of the largest positive probability. Its log loss is that of these probabilities divided by "
    "their sum. Learning times and evaluations are means over the partitions; of 1rest, over the sums of its six "
    "classifiers. The best SVM of Hsu and Lin (2002) has 7.65 %."
)
_USPS = (
    "Own kernels per class, start w = 0.0166 and v = 10, sigma2 = 4; 5 folds of 2,000 random training rows, "
    "other ones in each run; final fit on all. Published: {:.2f} ± {:.2f} % (five runs). w = 1 / length_scale^2."
)


def _curve(truth: npt.NDArray[Any], answer: npt.NDArray[Any], confidence: Floats) -> dict[str, Any]:
    curve = metrics.error_reject_curve(truth, answer, confidence)
    steps = np.searchsorted(curve.rejected, REJECTED + 1e-12, side="right") - 1  # an error holds until the next point
    return {"area": curve.area, "curve": [round(value, 7) for value in curve.error[steps].tolist()]}


def measure_satimage(method: str, seed: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """Learn on one partition, in this process."""
    data = satimage(quick)
    kernels: dict[str, Any] = {
        "mc-sep": PerClass(SATIMAGE_START),
        "mc-semi": PerClass(SATIMAGE_START, share="correlation"),
        "mc-tied": SATIMAGE_START,
        "1rest": SATIMAGE_START,
    }
    model = KernelLogisticClassifier(
        kernels[method],
        sigma2=SATIMAGE_SIGMA2,
        hyperparameters="cv",
        cv=partition(data.y, seed),
        learn_sigma2=False,
        max_evaluations=6 if quick else 100,
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
    answer = classes[proba.argmax(axis=1)]
    return facts | {
        "seconds": seconds,
        "error": 100 * metrics.zero_one_loss(data.y_test, answer),
        "log_loss": metrics.log_loss(data.y_test, log_proba=log_proba, classes=classes),
        **_curve(data.y_test, answer, proba.max(axis=1)),
    }


def _sums(each: list[dict[str, Any]], classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Of the classifiers of one against rest."""
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


def run_satimage(*, methods: list[str], partitions: int, n_threads: int, quick: bool, cases: Cases) -> Result:
    """All methods on every partition, one partition after another."""
    result = Result(
        suite="satimage",
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
        settings={"threads": n_threads, "quick": quick, "data": satimage(quick).description},
        notes=[_SATIMAGE],
    )
    runs: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    for seed in range(partitions):
        for method in methods:
            arguments = {"method": method, "seed": seed, "quick": quick}
            title = f"{method}, partition {seed}"
            answer = cases.run(title, "bench.learned_kernels:measure_satimage", arguments, n_threads)
            if "error" in answer:
                runs[method].append(answer)
    result.rows = [
        _means("satimage", method, answers, PUBLISHED[method]) for method, answers in runs.items() if answers
    ]
    return result


def _means(problem: str, method: str, answers: list[dict[str, Any]], published: tuple[float, float]) -> dict[str, Any]:
    averaged = ("parameters", "error", "log_loss", "area", "learning_seconds", "evaluations", "failures")
    states = [answer["learning_status"] for answer in answers]
    return {
        "problem": problem,
        "library": f"taxolearn, {method}",
        **{name: statistics.fmean(answer[name] for answer in answers) for name in (*averaged, "final_seconds")},
        "error_deviation": statistics.stdev(answer["error"] for answer in answers) if len(answers) > 1 else None,
        "published": f"{published[0]:.2f} ± {published[1]:.2f}",
        "partitions": len(answers),
        "statuses": ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)),
        "errors": [answer["error"] for answer in answers],
        "learning_seconds_of_all": [answer["learning_seconds"] for answer in answers],
        "learned": [answer["learned"] for answer in answers],
        "rejected": REJECTED.tolist(),
        "curve": np.mean([answer["curve"] for answer in answers], axis=0).tolist(),
    }


def measure_usps(seed: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """Learn on random rows, fit to all, in this process."""
    data = usps(quick)
    model = KernelLogisticClassifier(
        PerClass(USPS_START),
        sigma2=USPS_SIGMA2,
        hyperparameters="cv",
        cv=5,
        cv_samples=300 if quick else 2000,
        learn_sigma2=False,
        max_evaluations=6 if quick else 100,
        random_state=seed,
        n_threads=n_threads,
    )
    begin = time.perf_counter()
    model.fit(data.X, data.y)
    seconds = time.perf_counter() - begin
    log_proba = model.predict_log_proba(data.X_test)
    answer = model.classes_[log_proba.argmax(axis=1)]
    return learning_facts(model) | {
        "seconds": seconds,
        "classes": model.classes_.tolist(),
        "error": 100 * metrics.zero_one_loss(data.y_test, answer),
        "log_loss": metrics.log_loss(data.y_test, log_proba=log_proba, classes=model.classes_),
        **_curve(data.y_test, answer, np.exp(log_proba.max(axis=1))),
    }


def run_usps(*, runs: int, n_threads: int, quick: bool, cases: Cases) -> Result:
    """A run per seed, and how far apart they come out."""
    result = Result(
        suite="usps",
        title="USPS: own kernels learned on 2,000 rows",
        columns={
            "library": "run",
            "error": "test error %",
            "error_deviation": "±",
            "log_loss": "test log loss",
            "cv_loss": "CV log loss",
            "learning_seconds": "learning s",
            "evaluations": "evaluations",
            "failures": "failures",
            "learning_status": "status of learning",
            "final_seconds": "final fit s",
            "products": "its products",
            "gap": "certified gap",
            "status": "status",
        },
        figure=Spread(("length_scale", "variance")),
        settings={"threads": n_threads, "quick": quick, "data": usps(quick).description},
        notes=[_USPS.format(*PUBLISHED_USPS)],
    )
    for seed in range(runs):
        arguments = {"seed": seed, "quick": quick}
        answer = cases.run(f"run {seed}", "bench.learned_kernels:measure_usps", arguments, n_threads)
        if "error" in answer:
            result.rows.append({"problem": "USPS", "library": f"taxolearn, seed {seed}", **answer})
    if result.rows:
        result.notes += _spread(result.rows)
        result.rows.append(_mean_of_runs(result.rows))
    return result


def _mean_of_runs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    averaged = ("error", "log_loss", "cv_loss", "learning_seconds", "evaluations", "failures", "final_seconds")
    return {
        "problem": "USPS",
        "library": f"mean of {len(rows)}",
        **{name: statistics.fmean(row[name] for row in rows) for name in averaged},
        "error_deviation": statistics.stdev(row["error"] for row in rows) if len(rows) > 1 else None,
    }


def _spread(rows: list[dict[str, Any]]) -> list[str]:
    """Least and largest value of every learned parameter over the runs."""
    lines = []
    for kind in ("length_scale", "variance"):
        by_class = {label: [row["learned"][f"kernels[{label}].{kind}"] for row in rows] for label in rows[0]["classes"]}
        parts = [f"{label}: {min(found):.3g} to {max(found):.3g}" for label, found in by_class.items()]
        factors = [max(found) / min(found) for found in by_class.values()]
        everything = [value for found in by_class.values() for value in found]
        overall = max(everything) / min(everything)
        lines.append(
            f"{kind} by class: {'; '.join(parts)}. Over runs a class's differ by a factor of "
            f"{statistics.median(factors):.2g} (median), over classes and runs by {overall:.2g}."
        )
    return lines
