"""Data to start with: collections of labelled texts, and readers of the file formats that others use."""

from __future__ import annotations

from taxolearn.datasets.arff import ArffData, read_arff
from taxolearn.datasets.collection import TextCollection
from taxolearn.datasets.docstrings import load_docstrings
from taxolearn.datasets.hierarchy import HierarchyData, make_hierarchy
from taxolearn.datasets.labelled import LabelledData
from taxolearn.datasets.npz import NpzData, read_npz
from taxolearn.datasets.svmlight import LshtcData, SvmlightData, read_lshtc, read_svmlight
from taxolearn.datasets.table import read_table, read_text_pairs
from taxolearn.datasets.vw import VwData, read_vw

__all__ = [
    "ArffData",
    "HierarchyData",
    "LabelledData",
    "LshtcData",
    "NpzData",
    "SvmlightData",
    "TextCollection",
    "VwData",
    "load_docstrings",
    "make_hierarchy",
    "read_arff",
    "read_lshtc",
    "read_npz",
    "read_svmlight",
    "read_table",
    "read_text_pairs",
    "read_vw",
]
