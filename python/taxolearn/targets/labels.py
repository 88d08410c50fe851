"""What labels mean that do not tell one class: the estimator's argument ``labels``."""

from typing import Any

from sklearn.base import BaseEstimator

from taxolearn.validation import check_choice, check_number

__all__ = ["PartialLabels", "as_labels"]

_INNER = ("below", "own")


class PartialLabels(BaseEstimator):
    """How to read inner nodes as labels, and how rows that allow several classes are fitted.

    Such rows are fitted by expectation maximization: each round weighs the allowed classes by their probabilities and
    continues the fit with these weights.

    Parameters
    ----------
    inner : {"below", "own"}, default="below"
        What the name of an inner node means as a label: "below" that the class is one of those below the node, nobody
        knows which; "own" a class of its own, for which a leaf is added below the node (``Taxonomy.with_classes``).
    tol : float, default=1e-4
        Relative change of the marginal likelihood at which rounds stop.
    max_rounds : int, default=100
        Largest number of rounds.
    """

    def __init__(self, inner: str = "below", *, tol: float = 1e-4, max_rounds: int = 100) -> None:
        self.inner = inner
        self.tol = tol
        self.max_rounds = max_rounds

    def check(self) -> None:
        """Raises an error for what cannot be."""
        check_choice("inner", self.inner, _INNER)
        check_number("PartialLabels: tol", self.tol, least=0)
        check_number("max_rounds", self.max_rounds, least=1, integer=True)


def as_labels(labels: Any) -> PartialLabels:
    """The checked value that an estimator's argument means."""
    if isinstance(labels, str) and labels in _INNER:
        return PartialLabels(labels)
    if not isinstance(labels, PartialLabels):
        choices = ", ".join(map(repr, _INNER))
        raise ValueError(f"labels is {labels!r}, expected one of {choices}, or a PartialLabels")
    labels.check()
    return labels
