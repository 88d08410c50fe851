"""Readers of the file formats that others use."""

from taxolearn.readers.arff import ArffData, read_arff
from taxolearn.readers.fasta import FastaData, read_fasta
from taxolearn.readers.labelled import LabelledData
from taxolearn.readers.mulan import MulanData, read_mulan
from taxolearn.readers.npz import NpzData, read_npz
from taxolearn.readers.svmlight import LshtcData, SvmlightData, read_lshtc, read_svmlight
from taxolearn.readers.tables import read_table
from taxolearn.readers.text_pairs import read_text_pairs
from taxolearn.readers.vw import VwData, read_vw

__all__ = [
    "ArffData",
    "FastaData",
    "LabelledData",
    "LshtcData",
    "MulanData",
    "NpzData",
    "SvmlightData",
    "VwData",
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
