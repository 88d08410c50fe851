"""What is known of the labels: one per row, a set, or probabilities."""

from taxolearn.targets.labels import PartialLabels

__all__ = ["PartialLabels"]
