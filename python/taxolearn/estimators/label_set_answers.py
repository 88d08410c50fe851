"""What classifiers of any number of labels per row share: sets of labels, written in the form that ``y`` had."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from taxolearn.set_decisions import LabelTree
from taxolearn.targets import LabelForm, closed_sets, nodes_above, read_label_sets
from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["LabelSetAnswers"]

Floats = npt.NDArray[np.float64]


class LabelSetAnswers:
    """A part of a classifier that sets ``classes_``, ``taxonomy_`` and ``label_form_`` in ``fit``."""

    classes_: npt.NDArray[Any]
    taxonomy_: Taxonomy | None
    label_form_: LabelForm | None

    @property
    def _tree(self) -> LabelTree | None:
        return None if self.taxonomy_ is None else LabelTree(self.taxonomy_, self.classes_)

    def _above(self) -> Any:
        return None if self.taxonomy_ is None else nodes_above(self.taxonomy_, self.classes_)

    def _sets(self, blocks: Iterable[Any]) -> sp.csr_array:
        """The indicator of chosen labels, closed upwards."""
        return closed_sets(sp.vstack([sp.csr_array(block) for block in blocks], format="csr"), self._above())

    def _write(self, blocks: Iterable[Any]) -> Any:
        assert self.label_form_ is not None
        return self.label_form_.write(self._sets(blocks), self.classes_, self._above())

    def _score_sets(self, blocks: Iterable[Any], y: Any, sample_weight: Any) -> float:
        """The share of rows whose labels are all right."""
        assert self.label_form_ is not None
        sets, _, _ = read_label_sets(y, self.taxonomy_, self.classes_, columns=self.label_form_.columns)
        truth = self.label_form_.restricted(sets.matrix(), self._above())
        answers = self.label_form_.restricted(self._sets(blocks), self._above())
        if truth.shape[0] != answers.shape[0]:
            raise ValueError(f"y has {truth.shape[0]} rows, but X has {answers.shape[0]}")
        wrong = np.diff(sp.csr_array(truth.astype(bool) != answers.astype(bool)).indptr)
        return float(np.average(wrong == 0, weights=sample_weight))

    def _with_root(self, proba: Floats) -> Floats:
        """Probabilities of all nodes of the taxonomy, from those of the labels: the root has 1."""
        assert self.taxonomy_ is not None
        out = np.ones((len(proba), self.taxonomy_.n_nodes))
        out[:, self.taxonomy_.index(self.classes_.tolist())] = proba
        return out
