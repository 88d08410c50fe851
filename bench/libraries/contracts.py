"""What a library can take part in: the flat linear objective, classification into a tree, RBF models, and whole jobs.

A solver of the flat linear objective (bench/harness/certify.py) may minimize it in any form. Most do so over
W ((d + 1) x C) from 0,

    Phi(W) = sum_i (logsumexp(u_i) - u_i[y_i]) + 1/2 |W|^2,   u = Z W,   Z = [sqrt(v) X, sqrt(sigma2) 1],

in which the prior is the unit matrix, with ten pairs of vectors in the memory of L-BFGS. Z and, where it is sparse, Z'
are stored by rows.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bench.harness.certify import certify
from bench.harness.job_scores import log_probabilities, mean_loss
from bench.harness.label_scores import f1_scores, mean_label_loss
from bench.problems.data import Data, Floats
from bench.problems.features import usual_features
from bench.problems.jobs import Job, held_out_tenth
from bench.problems.label_jobs import LabelJob, held_out_label_rows
from bench.problems.trees import TreeData
from taxolearn.set_decisions import best_thresholds

Labels = npt.NDArray[np.int64]
Model = tuple[Floats, Floats]  # coef (C x d) and intercept (C)

PAIRS = 10  # in the memory of L-BFGS
MOST_ITERATIONS = 5000
VALUES = (4.0, 20.0, 100.0, 500.0, 2500.0, 12500.0)  # of prior variances of classifiers, to choose from
PENALTIES = tuple({"C": value} for value in VALUES)
LOWER_PENALTIES = tuple({"C": value / 5} for value in VALUES)  # where a penalty is shared by fewer rows
WIDE_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)  # where fits are so fast that users try many
LEAST_PROBABILITY = 1e-15  # in the log loss of those who return probabilities, not their logarithms
_GRADIENTS = tuple(float(f"{10 ** (-k / 2):.2g}") for k in range(-2, 15))  # tolerances of the gradient of Phi


@dataclass(frozen=True)
class Solver:
    """``fit(tol)`` is timed; its answer has ``n_iter_``, and ``model(answer)`` reads the weights off it.

    What a tolerance means differs between libraries: the benchmark looks for the first one that reaches the gap.
    """

    fit: Callable[[float], Any]
    model: Callable[[Any], Model]
    tolerances: tuple[float, ...]


@dataclass(frozen=True)
class Weights:
    """W and the number of iterations."""

    W: Any
    n_iter_: int


@dataclass(frozen=True)
class Task:
    """Data, prior variances, and the relative gap to reach."""

    data: Data
    v: float
    intercept_variance: float
    gap: float
    n_threads: int

    def augmented(self) -> Any:
        """The inputs and one more feature, the constant sqrt(sigma2 / v), whose weight is the intercept."""
        constant = np.full((self.data.X.shape[0], 1), np.sqrt(self.intercept_variance / self.v))
        stack = (lambda parts: sparse.hstack(parts, format="csr")) if sparse.issparse(self.data.X) else np.hstack
        return stack([self.data.X, constant])

    def scaled(self) -> Any:
        """Z (n x (d + 1))."""
        return np.sqrt(self.v) * self.augmented()

    def labels(self) -> Labels:
        """Class numbers (n)."""
        return np.searchsorted(np.unique(self.data.y), self.data.y)

    def solver(self, fit: Callable[[float], Weights]) -> Solver:
        """A solver that minimizes Phi to a tolerance of its gradient."""

        def model(answer: Weights) -> Model:
            W = np.asarray(answer.W, dtype=np.float64)
            return np.sqrt(self.v) * W[:-1].T, np.sqrt(self.intercept_variance) * W[-1]

        return Solver(fit, model, _GRADIENTS)

    def certificate(self, model: Model) -> dict[str, float]:
        """Objective, certified gap and test error in percent."""
        coef, intercept = model
        certificate = certify(self.data.X, self.labels(), coef, intercept, self.v, self.intercept_variance)
        predicted = np.unique(self.data.y)[np.asarray(self.data.X_test @ coef.T + intercept).argmax(axis=1)]
        return {
            "objective": certificate.objective,
            "relative_gap": certificate.relative_gap,
            "error": 100 * float(np.mean(predicted != self.data.y_test)),
        }


@dataclass(frozen=True)
class SolverEntry:
    """How a solver is made, and which problems it takes."""

    make: Callable[[Task], Solver]
    sparse: bool = True
    dense: bool = True
    most_weights: int | None = None

    def takes(self, is_sparse: bool, n_weights: int) -> bool:
        """Whether the inputs have a form, and a size, that it can work with."""
        allowed = self.sparse if is_sparse else self.dense
        return allowed and (self.most_weights is None or n_weights <= self.most_weights)


Predict = Callable[[Any], Floats]  # probabilities, one column per class; they need not sum to one


@dataclass(frozen=True)
class Rows:
    """Inputs (n x d) and class numbers (n) to train on; ``classes`` are the names of all."""

    data: TreeData | Job
    classes: npt.NDArray[Any]
    X: Any
    y: Labels
    n_threads: int

    def spread(self, columns: npt.NDArray[Any], proba: Floats) -> Floats:
        """Probabilities of some classes among all."""
        full = np.zeros((proba.shape[0], len(self.classes)))
        full[:, columns.astype(np.int64)] = proba
        return full


@dataclass(frozen=True)
class Classifier:
    """How to fit rows, the settings to choose from, and whether it runs in the environment of PECOS."""

    fit: Callable[..., Predict]
    grid: tuple[dict[str, float], ...]
    pecos: bool = False


PredictTop = Callable[[Any, int], Labels]  # numbers of the k most probable classes, the first one first; -1 for none


@dataclass(frozen=True)
class TopModel:
    """How to fit rows of very many classes, the settings to choose from, and the environment, as in ``LabelModel``."""

    fit: Callable[..., PredictTop]
    grid: tuple[dict[str, float], ...] = ({},)
    environment: str | None = None


@dataclass
class FittedRBF:
    """A fitted model: logarithms of its probabilities, the labels of their columns, and what the fit says of itself."""

    log_proba: Callable[[Any], Floats]
    classes: Any
    facts: dict[str, Any]


# Made of data, values, a number of threads, and options of the model. What making it imports is not timed.
FitRBF = Callable[[], FittedRBF]
MakeRBF = Callable[..., FitRBF]


def logarithms(proba: Floats) -> Floats:
    """Logarithms of probabilities, which are raised to the least one that counts."""
    logs: Floats = np.log(np.maximum(proba, LEAST_PROBABILITY))
    return logs


@dataclass(frozen=True)
class Answer:
    """What a model, or a part of it, says about test rows: logarithms of probabilities of classes, and other facts."""

    classes: Any
    log_proba: Floats | None
    facts: dict[str, Any] = field(default_factory=dict)
    part: str = ""


@dataclass(frozen=True)
class FittedJob:
    """``answers`` are those for test inputs as the job has them; ``setting`` is what was chosen, in words."""

    answers: Callable[[Any], list[Answer]]
    setting: str = ""


FitJob = Callable[[], FittedJob]  # features, tuning and fit, which are timed together


@dataclass(frozen=True)
class JobModel:
    """How a whole job is done: made of a job and a number of threads; what making it imports is not timed.

    ``tuning`` says in words what is tuned and how, ``embeds`` whether it reads embeddings of texts.
    """

    make: Callable[[Job, int], FitJob]
    tuning: str
    takes: Callable[[Job], bool] = lambda _: True
    pecos: bool = False
    embeds: bool = False


def one_answer(job: Job, features: Any, proba: Callable[[Any], Floats], classes: Any, setting: str) -> FittedJob:
    """A fitted model without parts, whose probabilities need neither sum to one nor be above zero."""

    def answers(X: Any) -> list[Answer]:
        logs, zeros = log_probabilities(proba(X if features is None else features.transform(X)), len(job.y))
        return [Answer(classes, logs, {"zeros": zeros})]

    return FittedJob(answers, setting)


def chosen_by_a_tenth(
    fit: Callable[..., Predict],
    penalties: tuple[float, ...],
    modules: tuple[str, ...],
    features_of: Callable[[Job], Any] = usual_features,
) -> Callable[[Job, int], FitJob]:
    """Make a model whose penalty C is the one of least log loss on a tenth of the rows, and is then fitted to all."""

    def make(job: Job, n_threads: int) -> FitJob:
        for module in modules:
            importlib.import_module(module)

        def run() -> FittedJob:
            features = features_of(job)
            X = sparse.csr_matrix(features.fit_transform(job.X))
            classes, y = np.unique(job.y, return_inverse=True)
            rows = Rows(job, classes, X, y, n_threads)
            held_out, rest = held_out_tenth(y)

            def loss(C: float) -> float:
                proba = fit(replace(rows, X=X[rest], y=y[rest]), C=C)(X[held_out])
                return mean_loss(log_probabilities(proba, len(rest))[0], y[held_out])

            C = min(penalties, key=loss)
            predict = fit(rows, C=C)
            return one_answer(job, features, lambda X: predict(sparse.csr_matrix(X)), classes, f"C {C:g}")

        return run

    return make


# -- Several labels per row -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelAnswer:
    """What a model says about rows: a number between 0 and 1 for each label (m x L), and what it knows of itself.

    ``thresholds`` of the labels were chosen on held-out rows.
    """

    proba: Floats
    thresholds: Floats | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FittedLabels:
    """``answer`` is what the model says of inputs as the job has them; ``setting`` is what was chosen, in words."""

    answer: Callable[[Any], LabelAnswer]
    setting: str = ""


FitLabels = Callable[[], FittedLabels]  # features, tuning and fit, which are timed together


@dataclass(frozen=True)
class LabelModel:
    """How a whole job of several labels is done: made of a job and a number of threads.

    ``tuning`` says in words what is tuned and how; ``environment`` is the one that it runs in, by the name of its file
    of requirements, or this one; ``is_probability`` whether its numbers are probabilities.
    """

    make: Callable[[LabelJob, int], FitLabels]
    tuning: str
    takes: Callable[[LabelJob], bool] = lambda _: True
    environment: str | None = None
    is_probability: bool = True


@dataclass(frozen=True)
class LabelRows:
    """Inputs (n x d, sparse) and the indicator of labels (n x L) to train on; every label has a row."""

    X: Any
    Y: Any
    n_threads: int


PredictLabels = Callable[[Any], Floats]  # a number between 0 and 1 for each label


def fit_labels_with_rows(fit: Callable[..., PredictLabels], rows: LabelRows, **setting: float) -> PredictLabels:
    """Fit the labels that some row has; others get 0."""
    width = rows.Y.shape[1]
    columns = np.flatnonzero(np.asarray(rows.Y.sum(axis=0)).ravel() > 0)
    predict = fit(replace(rows, Y=sparse.csr_matrix(rows.Y[:, columns])), **setting)

    def spread(X: Any) -> Floats:
        full = np.zeros((X.shape[0], width))
        full[:, columns] = predict(X)
        return full

    return spread


def labels_chosen_by_a_tenth(
    fit: Callable[..., PredictLabels],
    grid: tuple[dict[str, float], ...],
    modules: tuple[str, ...],
    *,
    is_probability: bool = True,
) -> Callable[[LabelJob, int], FitLabels]:
    """Make a model whose setting has the least log loss on a tenth of the rows, and is then fitted to all.

    Where its numbers are no probabilities, the setting has the largest micro-F1. Thresholds are those of the largest F1
    of each label on that tenth.
    """

    def make(job: LabelJob, n_threads: int) -> FitLabels:
        for module in modules:
            importlib.import_module(module)

        def run() -> FittedLabels:
            features = usual_features(job)
            X = sparse.csr_matrix(features.fit_transform(job.X))
            rows = LabelRows(X, job.Y, n_threads)
            held_out, rest = held_out_label_rows(X.shape[0])
            truth = job.Y[held_out]
            best: tuple[float, dict[str, float], Floats] | None = None
            for setting in grid:
                proba = fit_labels_with_rows(fit, LabelRows(X[rest], job.Y[rest], n_threads), **setting)(X[held_out])
                cost = mean_label_loss(proba, truth, len(rest)) if is_probability else -f1_scores(truth, proba > 0.5)[0]
                if best is None or cost < best[0]:
                    best = (cost, setting, best_thresholds(proba, truth))
            assert best is not None
            predict = fit_labels_with_rows(fit, rows, **best[1])
            return FittedLabels(
                lambda X: LabelAnswer(predict(sparse.csr_matrix(features.transform(X))), best[2]),
                ", ".join(f"{name} {value:g}" for name, value in best[1].items()),
            )

        return run

    return make


# -- Gopal and Yang's table -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperRows:
    """Rows of a job to train on: inputs (n x d) and the indicator of labels (n x L), with the job's hierarchy."""

    job: LabelJob
    X: Any
    Y: Any
    n_threads: int

    @property
    def label_of_each(self) -> npt.NDArray[Any]:
        """The one label that each row has."""
        return np.array(self.job.classes)[self.Y.indices]


@dataclass(frozen=True)
class PaperModel:
    """``fit(rows, C)`` makes what scores labels; those with the largest score, or above a threshold, are the answer.

    ``learn`` finds C on all training rows; without it, C is chosen by cross-validation. ``has_decided`` says that the
    scores are the answer: it has the labels above 0.
    """

    fit: Callable[[PaperRows, Any], Callable[[Any], Floats]]
    takes: Callable[[LabelJob], bool] = lambda _: True
    learn: Callable[[PaperRows], Any] | None = None
    has_decided: bool = False
