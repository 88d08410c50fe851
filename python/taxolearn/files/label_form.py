"""How sets of labels were written, as JSON and arrays, and back."""

from typing import Any

import numpy as np

from taxolearn.files.container import ContentError, Packer, Unpacker, expect
from taxolearn.targets import LabelForm

__all__ = ["pack_label_form", "unpack_label_form"]


def pack_label_form(form: LabelForm, packer: Packer) -> dict[str, Any]:
    """The form of a classifier of any number of labels per row."""
    return {
        "kind": form.kind,
        "columns": packer.array("label_columns", form.columns.astype(np.int64)),
        "is_closed": form.is_closed,
        "library": form.library,
    }


def unpack_label_form(entry: Any, unpacker: Unpacker, n_classes: int) -> LabelForm:
    """The form, with columns among so many classes."""
    columns = unpacker.array(entry["columns"], None, kinds="i").astype(np.int64)
    if len(np.unique(columns)) != len(columns) or not ((columns >= 0) & (columns < n_classes)).all():
        raise ContentError("it has labels that are no classes")
    return LabelForm(
        expect(entry["kind"], str), columns, expect(entry["is_closed"], bool), expect(entry["library"], str)
    )
