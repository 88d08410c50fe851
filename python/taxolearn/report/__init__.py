"""A page that shows how good a model is on labelled rows: one file, to be opened in any browser."""

from taxolearn.report.findings import Findings, Rows, collect_findings
from taxolearn.report.page import render
from taxolearn.report.set_findings import SetFindings, collect_set_findings

__all__ = ["Findings", "Rows", "SetFindings", "collect_findings", "collect_set_findings", "render"]
