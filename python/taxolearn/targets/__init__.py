"""What is known of the labels, and weights of rows."""

from taxolearn.targets.label_sets import (
    LabelForm,
    LabelSets,
    closed_sets,
    is_label_sets,
    nodes_above,
    read_label_sets,
    set_targets,
)
from taxolearn.targets.one_label import (
    FOR_SEVERAL,
    AllowedSets,
    PartialLabels,
    Targets,
    as_labels,
    check_labels,
    class_weights,
    label_targets,
    read_targets,
    row_weights,
)

__all__ = [
    "FOR_SEVERAL",
    "AllowedSets",
    "LabelForm",
    "LabelSets",
    "PartialLabels",
    "Targets",
    "as_labels",
    "check_labels",
    "class_weights",
    "closed_sets",
    "is_label_sets",
    "label_targets",
    "nodes_above",
    "read_label_sets",
    "read_targets",
    "row_weights",
    "set_targets",
]
