"""What one evaluation of the cross-validated criterion with its gradient costs.

In multiples of one fit of all rows, with few and with many parameters; with folds stacked or shuffled, by operator; and
against automatic differentiation (bench/libraries/jaxopt.py).
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np

from bench.harness.figures import Bar
from bench.harness.learning import partition
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.harness.timing import interleave
from bench.libraries.jaxopt import PRODUCTS, ImplicitCriterion, Tolerances, is_installed
from bench.problems.data import Floats, news20, satimage
from bench.problems.trees import TREES, occupations
from taxolearn import CrossValidation, KernelLogisticClassifier, Solver, Tree
from taxolearn.kernels import RBF, Linear, PerClass
from taxolearn.model_selection import CrossValidationObjective

HELP = "cost of the cross-validated criterion and its gradient"
AGREEMENT = 1e-3  # of value and gradient, relative, between ours and automatic differentiation
STEP = 0.2  # from which neighbouring parameters an evaluation starts warm, on log scale
_JAX_VARIANCE, _JAX_INTERCEPT_VARIANCE = 50.0, 0.01
_OUR_TOLERANCES = (1e-2, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 1e-8)
_FIT_TOLERANCES = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
_SYSTEM_TOLERANCES = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)

_COLUMNS = {
    "problem": "problem",
    "library": "what",
    "case": "case",
    "parameters": "parameters",
    "seconds": "s (median)",
    "least": "min",
    "most": "max",
    "fits": "cold fits",
    "ratio": "ratio to ours",
    "products": "products",
    "tol": "tolerance",
    "gap": "gap",
    "plain_error": "error of value, uncorrected",
    "value_error": "error of value",
    "gradient_error": "error of gradient",
    "strategy": "strategy",
}
_NOTE = (
    'Evaluations are of 5 folds, value and gradient together. "Cold fits" are multiples of one fit of all rows with '
    "the same tolerance. Cold starts are from nothing, warm ones from parameters that differ by a factor of "
    f"{np.exp(STEP):.2f} each, up or down. Products of an evaluation are of one fold's size, all folds together. "
    "Errors are relative to an evaluation with a tolerance of 1e-8."
)
_JAX_NOTE = (
    f"Against jaxopt: flat linear model of news20, v = {_JAX_VARIANCE:g}, "
    f"intercept variance {_JAX_INTERCEPT_VARIANCE:g}, the same folds, "
    f"the derivative by log v. Each side has the loosest tolerances of a list for which value and gradient are within "
    f"{AGREEMENT:g} of the reference; compilation is not timed. jaxopt: L-BFGS with implicit differentiation by "
    "conjugate gradients in single precision, without words that no row has; products by BCOO matrices or by SciPy's "
    "through a callback."
)


@dataclass(frozen=True)
class Problem:
    """Inputs, labels and the arguments that estimator and criterion share."""

    name: str
    X: Any
    y: Any
    kernel: Any
    taxonomy: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def model(self, n_threads: int) -> KernelLogisticClassifier:
        """The estimator, with the folds that all share."""
        return KernelLogisticClassifier(
            self.kernel,
            taxonomy=self.taxonomy,
            tuning=CrossValidation(partition(self.y, 0), learn_intercept_variance=False),
            random_state=0,
            n_threads=n_threads,
            **self.options,
        )

    def objective(self, n_threads: int, strategy: str = "auto") -> CrossValidationObjective:
        return CrossValidationObjective(self.model(n_threads), self.X, self.y, strategy=strategy)

    def fit(self, tol: float, n_threads: int) -> Any:
        return self.model(n_threads).set_params(tuning=None, tol=tol).fit(self.X, self.y)

    def plain_criterion(self, tol: float, n_threads: int) -> float:
        """The criterion by fits of the folds to a tolerance, not corrected for what they lack."""
        fold_of, total = partition(self.y, 0), 0.0
        for fold in range(int(fold_of.max()) + 1):
            model = self.model(n_threads).set_params(tuning=None, tol=tol)
            model.fit(self.X[fold_of != fold], self.y[fold_of != fold])
            held_out = np.flatnonzero(fold_of == fold)
            columns = np.searchsorted(model.classes_, self.y[held_out])
            total -= float(model.predict_log_proba(self.X[held_out])[np.arange(len(held_out)), columns].sum())
        return total


def _families(tying: str, quick: bool) -> Problem:
    data = occupations(300)
    data = data.first_rows(1000) if quick else data
    options = {"coupling": Tree(tying), "intercept_variance": 0.01}
    return Problem(
        f"onet families, tree of {data.taxonomy.n_nodes - 1} nodes",
        data.X,
        data.y,
        Linear(20.0),
        data.taxonomy,
        options,
    )


def _news20(quick: bool) -> Problem:
    data = news20(quick)
    return Problem(
        data.name, data.X, data.y, Linear(_JAX_VARIANCE), options={"intercept_variance": _JAX_INTERCEPT_VARIANCE}
    )


def _clef(quick: bool) -> Problem:
    data = TREES["clef"]()
    data = data.first_rows(1000) if quick else data
    return Problem("CLEF, flat", data.X, data.y, Linear(0.1), options={"intercept_variance": 1.0})


def _satimage(kernel: Any, quick: bool, **solver: Any) -> Problem:
    data = satimage(quick)
    options = {"intercept_variance": 16.0, "solver": Solver(**solver)}
    return Problem("satimage", data.X, data.y, kernel, options=options)


_RBF = RBF(0.2**-0.5, 100.0)
COSTS: dict[str, Callable[[bool], list[Problem]]] = {
    "families": lambda quick: [_families(tying, quick) for tying in ("level", "node")],
    "news20": lambda quick: [_news20(quick)],
    "satimage": lambda quick: [_satimage(_RBF, quick), _satimage(PerClass(_RBF), quick)],
}
OPERATORS: dict[str, Callable[[bool], Problem]] = {
    "linear, sparse (news20)": _news20,
    "linear, dense (CLEF)": _clef,
    "linear, tree (onet families)": lambda quick: _families("level", quick),
    "stored, shared (satimage)": lambda quick: _satimage(_RBF, quick, products="gram"),
    "stored, own (satimage)": lambda quick: _satimage(PerClass(_RBF), quick, products="gram"),
    "low rank 500 (satimage)": lambda quick: _satimage(_RBF, quick, rank=100 if quick else 500),
    "tiled (satimage)": lambda quick: _satimage(_RBF, quick, products="tiled"),
}
ACCURACIES: dict[str, Callable[[], Problem]] = {  # small, for the reference's sake
    "linear, tree (onet families)": lambda: _families("level", True),
    "own RBF (satimage)": lambda: _satimage(PerClass(_RBF), True),
}
ACCURACY_TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)


def _neighbour(theta: Floats) -> Floats:
    near: Floats = theta + np.random.default_rng(0).choice([-STEP, STEP], len(theta))
    return near


def _row(evaluation: Any, **more: Any) -> dict[str, Any]:
    if not evaluation.converged:
        raise RuntimeError(f"the evaluation did not converge: gap {evaluation.gap:.1e}")
    facts = {"products": evaluation.products, "gap": evaluation.gap, "value": evaluation.value}
    return facts | {"parameters": len(evaluation.theta)} | more


def measure_cost(problem: str, tol: float, repeats: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """One cold fit of all rows, and evaluations of the criterion from nothing and from near by; in this process."""
    rows: list[dict[str, Any]] = []
    variants = COSTS[problem](quick)
    objectives = [variant.objective(n_threads) for variant in variants]
    work: dict[str, Callable[[], Any]] = {}
    for k, (variant, objective) in enumerate(zip(variants, objectives, strict=True)):
        work[f"fit {k}"] = lambda variant=variant: variant.fit(tol, n_threads)  # type: ignore[misc]
        work[f"cold {k}"] = lambda objective=objective: objective.evaluate(objective.theta, tol)  # type: ignore[misc]
    times, answers = interleave(work, repeats)
    for objective in objectives:
        objective.evaluate(_neighbour(objective.theta), tol)
        objective.accept()
    warm = {f"warm {k}": (lambda one=one: one.evaluate(one.theta, tol)) for k, one in enumerate(objectives)}
    more_times, more_answers = interleave(warm, repeats)
    times, answers = times | more_times, answers | more_answers
    for k, variant in enumerate(variants):
        fit = answers[f"fit {k}"].result_
        one_fit = times[f"fit {k}"]
        facts = {"problem": variant.name, "library": "taxolearn, one fit", "fits": 1.0, "tol": tol}
        rows.append(facts | one_fit.as_dict() | {"products": fit.products, "gap": fit.relative_gap})
        reference = objectives[k].evaluate(objectives[k].theta, 1e-8)
        for case in ("cold", "warm"):
            took, evaluation = times[f"{case} {k}"], answers[f"{case} {k}"]
            rows.append(
                _row(
                    evaluation,
                    problem=variant.name,
                    library="taxolearn, evaluation",
                    case=f"{len(evaluation.theta)} parameters, {case}",
                    fits=took.median / one_fit.median,
                    tol=tol,
                    **took.as_dict(),
                    **_errors(evaluation.value, evaluation.gradient, reference.value, reference.gradient),
                )
            )
    return {"rows": rows, "status": "done"}


def _errors(value: float, gradient: Any, reference: float, reference_gradient: Any) -> dict[str, float]:
    distance = np.linalg.norm(np.asarray(gradient) - np.asarray(reference_gradient))
    return {
        "value_error": abs(value - reference) / abs(reference),
        "gradient_error": float(distance / np.linalg.norm(reference_gradient)),
    }


def measure_strategies(operator: str, tol: float, repeats: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """Cold evaluations with folds stacked and shuffled, in this process."""
    problem = OPERATORS[operator](quick)
    strategies = ("stacked", "shuffled")
    objectives = {name: problem.objective(n_threads, strategy=name) for name in (*strategies, "auto")}
    work = {name: (lambda one=one: one.evaluate(one.theta, tol)) for name, one in objectives.items()}
    times, answers = interleave(work, repeats)
    reference = objectives["stacked"].evaluate(objectives["stacked"].theta, 1e-8)
    rows = [
        _row(
            answers[name],
            problem=operator,
            library=f"taxolearn, {name}",
            strategy=name,
            tol=tol,
            ratio=times[name].median / min(times[other].median for other in strategies),
            **times[name].as_dict(),
            **_errors(answers[name].value, answers[name].gradient, reference.value, reference.gradient),
        )
        for name in objectives
    ]
    return {"rows": rows, "status": "done"}


def measure_accuracy(problem: str, n_threads: int) -> dict[str, Any]:
    """Errors of the criterion, plain and corrected, and of its gradient when fits stop early; in this process."""
    variant = ACCURACIES[problem]()
    variant = replace(variant, options=variant.options | {"solver": Solver(precision="double")})
    objective = variant.objective(n_threads)
    reference = objective.evaluate(objective.theta, 1e-12)
    rows = []
    for tol in ACCURACY_TOLERANCES:
        plain = variant.plain_criterion(tol, n_threads)
        evaluation = objective.evaluate(objective.theta, tol)
        errors = _errors(evaluation.value, evaluation.gradient, reference.value, reference.gradient)
        facts = {"problem": variant.name, "library": "taxolearn, accuracy", "tol": tol}
        rows.append(_row(evaluation, plain_error=abs(plain / reference.value - 1), **facts, **errors))
    return {"rows": rows, "status": "done"}


def measure_ours(repeats: int, quick: bool, n_threads: int) -> dict[str, Any]:
    """The reference for automatic differentiation, and our evaluations with the loosest tolerance that agrees."""
    problem = _news20(quick)
    objective = problem.objective(n_threads)
    theta = objective.theta
    reference: Any = objective.evaluate(theta, 1e-9)
    near = _neighbour(theta)

    def is_good(evaluation: Any) -> bool:
        errors = _errors(evaluation.value, evaluation.gradient, reference.value, reference.gradient)
        return evaluation.converged and max(errors.values()) <= AGREEMENT

    def loosest() -> float:
        """Find the loosest tolerance that agrees together with all tighter ones, so that it is not by chance."""
        good = list(takewhile(lambda tol: is_good(objective.evaluate(theta, tol)), reversed(_OUR_TOLERANCES)))
        if not good:
            raise RuntimeError(f"even a tolerance of {_OUR_TOLERANCES[-1]:g} does not agree with the reference")
        return good[-1]

    tol = loosest()
    cold_times, cold = interleave({"cold": lambda: objective.evaluate(theta, tol)}, repeats)
    objective.evaluate(near, tol)
    objective.accept()
    warm_tol = loosest()
    warm_times, warm = interleave({"warm": lambda: objective.evaluate(theta, warm_tol)}, repeats)
    rows = [
        _row(
            evaluation,
            problem="against jaxopt (news20, flat)",
            library="taxolearn",
            case=case,
            tol=f"{used:g}",
            **took.as_dict(),
            **_errors(evaluation.value, evaluation.gradient, reference.value, reference.gradient),
        )
        for case, evaluation, took, used in (
            ("cold", cold["cold"], cold_times["cold"], tol),
            ("warm", warm["warm"], warm_times["warm"], warm_tol),
        )
    ]
    return {"rows": rows, "reference": [reference.value, float(reference.gradient[0])], "status": "done"}


def measure_implicit(
    product: str, tolerances: list[float] | None, reference: list[float], repeats: int, quick: bool, n_threads: int
) -> dict[str, Any]:
    """Automatic differentiation with given tolerances, or with the loosest ones that agree; in this process."""
    problem = _news20(quick)
    labels = np.unique(problem.y, return_inverse=True)[1]
    criterion = ImplicitCriterion(
        problem.X, labels, partition(problem.y, 0), _JAX_INTERCEPT_VARIANCE, product, max_iter=1000
    )
    theta = float(np.log(_JAX_VARIANCE))

    def errors(given: Tolerances) -> dict[str, float]:
        outcome = criterion.evaluate(theta, given)
        found = _errors(outcome.value, [outcome.gradient], reference[0], [reference[1]])
        print(f"{product}, {given}: {found}, {outcome.seconds:.1f} s", flush=True)
        return found

    chosen = _loosest(errors) if tolerances is None else _tightened(errors, Tolerances(*tolerances))
    rows = []
    starts = None
    for case in ("cold", "warm"):
        if case == "warm":
            starts = criterion.evaluate(theta + float(_neighbour(np.zeros(1))[0]), chosen).starts
        times, answers = interleave({case: lambda: criterion.evaluate(theta, chosen, starts)}, repeats)  # noqa: B023
        outcome = answers[case]
        rows.append(
            {
                "problem": "against jaxopt (news20, flat)",
                "library": f"jaxopt, {product} products",
                "case": case,
                "parameters": 1,
                "products": None,
                "iterations": outcome.iterations,
                "value": outcome.value,
                "tol": f"{chosen.fit:g}, {chosen.system:g}",
                **times[case].as_dict(),
                **_errors(outcome.value, [outcome.gradient], reference[0], [reference[1]]),
            }
        )
    return {"rows": rows, "tolerances": [chosen.fit, chosen.system], "status": "done"}


Errors = Callable[[Tolerances], dict[str, float]]


def _loosest(errors: Errors) -> Tolerances:
    """Find the loosest fits with accurate systems, then the loosest systems for these fits.

    If rounding keeps all of them from agreeing, take the tightest.
    """
    tight = _SYSTEM_TOLERANCES[-1]
    fit = next(
        (fit for fit in _FIT_TOLERANCES if max(errors(Tolerances(fit, tight)).values()) <= AGREEMENT),
        _FIT_TOLERANCES[-1],
    )
    return _tightened(errors, Tolerances(fit, _SYSTEM_TOLERANCES[0]))


def _tightened(errors: Errors, given: Tolerances) -> Tolerances:
    """Tighten the systems until they are accurate enough."""
    for system in _SYSTEM_TOLERANCES:
        if system <= given.system and errors(Tolerances(given.fit, system))["gradient_error"] <= AGREEMENT:
            return Tolerances(given.fit, system)
    return Tolerances(given.fit, _SYSTEM_TOLERANCES[-1])


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser, repeats=3)
    parser.add_argument("--parts", type=names, default=["cost", "strategy", "accuracy", "jaxopt"])
    parser.add_argument("--tol", type=float, default=1e-4, help="relative gap of the fits in the first two parts")
    parser.add_argument("--limit", type=float, default=3600.0, help="give a case up when it takes longer (s)")


def run(options: Namespace) -> list[Result]:
    """Run the parts that are asked for."""
    result = Result.of(
        options,
        title="Cost of the cross-validated criterion with its gradient",
        columns=_COLUMNS,
        figure=Bar("seconds", "seconds (median)", "{:.2f}"),
        notes=[_NOTE],
    )
    common = {"repeats": options.repeats, "quick": options.quick}
    gap = {"tol": options.tol}
    cases = known_cases(options)

    def add(title: str, function: Callable[..., dict[str, Any]], arguments: dict[str, Any]) -> dict[str, Any]:
        answer = cases.run(title, function, arguments, options.threads, options.limit)
        failed = [{"problem": title, "library": title, "case": answer["status"]}]
        result.rows += answer.get("rows", failed)
        return answer

    if "cost" in options.parts:
        for problem in COSTS:
            add(f"cost, {problem}", measure_cost, {"problem": problem} | gap | common)
    if "strategy" in options.parts:
        for operator in OPERATORS:
            add(f"strategy, {operator}", measure_strategies, {"operator": operator} | gap | common)
    if "accuracy" in options.parts:
        for problem in ACCURACIES:
            add(f"accuracy, {problem}", measure_accuracy, {"problem": problem})
    if "jaxopt" in options.parts:
        _against_jaxopt(result, add, common)
    return [result]


def _against_jaxopt(result: Result, add: Callable[..., dict[str, Any]], common: dict[str, Any]) -> None:
    result.notes.append(_JAX_NOTE)
    ours = add("taxolearn against jaxopt", measure_ours, common)
    if not is_installed():
        result.notes.append("jax and jaxopt are not installed: they were left out.")
        return
    if "reference" not in ours:
        return
    # The tolerances are found with the faster products; the others do the same arithmetic.
    tolerances = None
    for product in reversed(PRODUCTS):
        arguments = {"product": product, "tolerances": tolerances, "reference": ours["reference"]} | common
        answer = add(f"jaxopt, {product}", measure_implicit, arguments)
        tolerances = answer.get("tolerances", tolerances)
    of_case = {row["case"]: row["seconds"] for row in ours["rows"]}
    for row in result.rows:
        if str(row["library"]).startswith("jaxopt") and row.get("seconds") is not None:
            row["ratio"] = row["seconds"] / of_case[row["case"]]
