"""Data to start with: collections of labelled texts, and readers of the file formats that others use."""

from __future__ import annotations

from taxolearn.datasets.collection import TextCollection
from taxolearn.datasets.docstrings import load_docstrings
from taxolearn.datasets.hierarchy import HierarchyData, make_hierarchy
from taxolearn.readers import (
    ArffData,
    FastaData,
    LabelledData,
    LshtcData,
    MulanData,
    NpzData,
    SvmlightData,
    VwData,
    read_arff,
    read_fasta,
    read_lshtc,
    read_mulan,
    read_npz,
    read_svmlight,
    read_table,
    read_text_pairs,
    read_vw,
)

__all__ = [
    "ArffData",
    "FastaData",
    "HierarchyData",
    "LabelledData",
    "LshtcData",
    "MulanData",
    "NpzData",
    "SvmlightData",
    "TextCollection",
    "VwData",
    "load_docstrings",
    "make_hierarchy",
    "read_arff",
    "read_fasta",
    "read_lshtc",
    "read_mulan",
    "read_npz",
    "read_svmlight",
    "read_table",
    "read_text_pairs",
    "read_vw",
]
