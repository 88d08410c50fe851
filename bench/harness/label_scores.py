"""Scores of the probabilities that different libraries give for the labels of test rows, any number of labels a row."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit

from bench.problems.label_jobs import LabelJob
from taxolearn import metrics

Floats = npt.NDArray[np.float64]

BEST = (1, 3, 5)
COLUMNS = {
    **{f"precision_{k}": f"P@{k} %" for k in BEST},
    "micro_f1": "micro-F1 %",
    "macro_f1": "macro-F1 %",
    "micro_f1_cut": "micro-F1 %, S-cut",
    "macro_f1_cut": "macro-F1 %, S-cut",
    "log_loss": "log loss",
    "calibration": "calibration error %",
}
NOTE = (
    "P@k: share of right ones among the k most probable labels. F1 is that of labels above a probability of 1/2, and "
    "with S-cut that of labels above thresholds of their own, which have the largest F1 on held-out rows; macro-F1 is "
    "over the labels of the test rows. Log loss: that of all labels of a row together, in nats. Where a model gives "
    "some probability of exactly 0 or 1, all its probabilities are mixed with 1/2, whose share is 1 / (n + 2) for n "
    "training rows (column zeros: the share of such entries). Calibration error: the mean distance between "
    "probability and frequency, of all pairs of row and label in bins as wide as 1 in logarithms of odds, as a share "
    "of the frequency of all. Scores of support vector machines are no probabilities, and have neither."
)
_FARTHEST = 10  # logarithm of odds


class Reliability(NamedTuple):
    """Mean probability, frequency and number of pairs of row and label in each bin that is not empty."""

    probability: Floats
    frequency: Floats
    count: Floats

    @property
    def error(self) -> float:
        """Mean distance between probability and frequency, as a share of the frequency of all pairs."""
        distance = np.abs(self.probability - self.frequency) @ self.count
        return float(distance / (self.frequency @ self.count))


def finite_logarithms(proba: Any, n_rows: int) -> tuple[Floats, Floats, float]:
    """Finite logarithms of probabilities (m x L) and of what they lack to 1, and the share of zeros and ones."""
    found = np.asarray(proba, dtype=np.float64)
    certain = float(np.mean((found <= 0) | (found >= 1)))
    if certain > 0:
        share = 1.0 / (n_rows + 2)
        found = (1 - share) * np.clip(found, 0.0, 1.0) + share / 2
    return np.log(found), np.log1p(-found), certain


def mean_label_loss(proba: Any, Y: Any, n_rows: int) -> float:
    """Log loss of all labels of a row together."""
    positive, negative, _ = finite_logarithms(proba, n_rows)
    has = Y.toarray() > 0
    return -float(np.where(has, positive, negative).sum(axis=1).mean())


def f1_scores(Y: Any, answers: Any) -> tuple[float, float]:
    """Micro- and macro-F1 in percent, over the labels that some row of ``Y`` has for the latter."""
    given = sparse.csr_array(answers)
    micro = metrics.precision_recall_f(Y, given, average="micro").f
    macro = metrics.precision_recall_f(Y, given, average="macro", labels="true").f
    return 100 * float(micro), 100 * float(macro)


def reliability(Y: Any, proba: Floats) -> Reliability:
    """Frequency against probability of all pairs of row and label, in bins as wide as 1 in logarithms of odds."""
    p, has = proba.ravel(), Y.toarray().ravel() > 0
    edges = expit(np.arange(-_FARTHEST, _FARTHEST + 1))
    places = np.searchsorted(edges, p)
    counts, sums, hits = (
        np.bincount(places, weights, minlength=len(edges) + 1) for weights in (np.ones(len(p)), p, has.astype(float))
    )
    kept = counts > 0
    return Reliability(sums[kept] / counts[kept], hits[kept] / counts[kept], counts[kept])


def label_scores(job: LabelJob, proba: Floats, thresholds: Any, *, is_probability: bool = True) -> dict[str, float]:
    """All scores by their keys in ``COLUMNS``, for the columns of ``job.classes``."""
    Y = job.Y_test
    scores = {f"precision_{k}": 100 * metrics.precision_at_k(Y, proba, k=k) for k in BEST if k <= Y.shape[1]}
    scores["micro_f1"], scores["macro_f1"] = f1_scores(Y, proba > 0.5)
    if thresholds is not None:
        scores["micro_f1_cut"], scores["macro_f1_cut"] = f1_scores(Y, proba > thresholds)
    if is_probability:
        positive, negative, scores["zeros"] = finite_logarithms(proba, job.Y.shape[0])
        has = Y.toarray() > 0
        scores["log_loss"] = -float(np.where(has, positive, negative).sum(axis=1).mean())
        scores["calibration"] = 100 * reliability(Y, proba).error
    return scores
