"""A page that shows how good a model is on labelled rows: one file, to be opened in any browser."""

from taxolearn.report.findings import Findings, collect_findings
from taxolearn.report.page import render

__all__ = ["Findings", "collect_findings", "render"]
