"""Functions of genes, and mails, with labels on all nodes of a tree or a graph: the CLUS sets, beside published areas.

One more rival is one more entry in a table ``GENE_MODELS`` of a module in bench/libraries. The table has every case
that is known; ``--only`` and ``--models`` choose which are run.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from bench.harness.cases import Cases
from bench.harness.figures import Bar
from bench.harness.label_runs import MEASURING, SHOWN, do_label_jobs, run_label_cases
from bench.harness.label_scores import COLUMNS, label_scores
from bench.harness.options import add_folder
from bench.harness.report import Result
from bench.harness.whole_jobs import add_choices, result_of_jobs
from bench.libraries import GENE_MODELS
from bench.libraries.contracts import LabelAnswer, LabelModel
from bench.problems.jobs import QUICK_ROWS
from bench.problems.label_jobs import CLUS_JOBS, LabelJob
from taxolearn import metrics

HELP = "functions of genes in trees and graphs: areas under the precision-recall curve beside published ones"

# Pooled AU(PRC) of C-HMCNN (Giunchiglia, Lukasiewicz 2020) and of one tree of Clus-HMC (Vens and others 2008).
PUBLISHED: dict[str, dict[str, float]] = {
    "Enron_corr": {"C-HMCNN": 0.756},
    "church_FUN": {"Clus-HMC": 0.1705},
    "cellcycle_FUN": {"C-HMCNN": 0.255},
    "eisen_FUN": {"C-HMCNN": 0.306},
    "gasch1_FUN": {"C-HMCNN": 0.286},
    "seq_FUN": {"C-HMCNN": 0.292},
    "cellcycle_GO": {"C-HMCNN": 0.413},
    "eisen_GO": {"C-HMCNN": 0.455},
    "gasch1_GO": {"C-HMCNN": 0.436},
    "seq_GO": {"C-HMCNN": 0.446},
}
_HIGHEST = ("GO0003674", "GO0005575", "GO0008150")  # of the Gene Ontology, which C-HMCNN does not count
_COLUMNS = {
    "problem": "job",
    "library": "model",
    "area_steps": "AU(PRC), steps",
    "area_interpolated": "AU(PRC), interpolated",
    **{key: COLUMNS[key] for key in ("micro_f1", "macro_f1", "log_loss", "calibration")},
    "child_above_parent": "child above parent",
    **SHOWN,
}
_NOTE = (
    "AU(PRC) is the area under the precision-recall curve of all pairs of row and label together. Steps: the measure "
    "of C-HMCNN, over all labels but the three highest of the Gene Ontology. Interpolated: that of Clus, over the "
    "labels of the test rows. Published figures are those of their authors, C-HMCNN's with steps, and "
    "Clus's interpolated. Rows for training and validation are both for training, as there; missing values are means "
    "of the training rows. Child above parent: by how much a label is more probable than one above it, at most. Log "
    "loss is that of all labels of a row together; F1 is that of labels above a probability of 1/2."
)
_INTERPOLATED = ("Clus-HMC",)


def score(job: LabelJob, answer: LabelAnswer, entry: LabelModel) -> dict[str, Any]:
    """The areas by both definitions, and other scores."""
    counted = np.array([k for k, name in enumerate(job.classes) if name not in _HIGHEST])
    areas = {
        "area_steps": metrics.precision_recall_area(
            job.Y_test[:, counted], answer.proba[:, counted], curve="steps", labels="all"
        ),
        "area_interpolated": metrics.precision_recall_area(job.Y_test, answer.proba),
    }
    return areas | label_scores(job, answer.proba, None, is_probability=entry.is_probability)


def measure(job: str, model: str, quick: bool, n_threads: int, turn: int = 0) -> dict[str, Any]:
    """Do a whole job in this process, then score it; answers of different turns differ in the time that they took."""
    data = CLUS_JOBS[job]()
    return do_label_jobs([data.first_rows(QUICK_ROWS) if quick else data], GENE_MODELS[model], n_threads, score)


def add_arguments(parser: ArgumentParser) -> None:
    add_choices(parser, CLUS_JOBS, GENE_MODELS, limit=600.0)
    add_folder(parser)


def run(options: Namespace) -> list[Result]:
    """Run the chosen models on the chosen sets; show all that are known, and what was published."""
    cases = Cases(options.output / f"{options.suite}.cases.jsonl")
    run_label_cases(options, cases, measure, GENE_MODELS)
    result = result_of_jobs(
        options,
        cases,
        measure,
        CLUS_JOBS,
        GENE_MODELS,
        title="Functions of genes in trees and graphs",
        notes=[MEASURING, _NOTE],
        columns=_COLUMNS,
    )
    result.figure = Bar("area", "pooled AU(PRC): of Clus interpolated, of others steps", "{:.3f}")
    for row in result.rows:
        row["area"] = row.get("area_steps")
    shown = {row["problem"] for row in result.rows}
    rows = [*result.rows, *(row for job in CLUS_JOBS if job in shown for row in _published(job))]
    order = list(CLUS_JOBS)
    result.rows = sorted(rows, key=lambda row: order.index(row["problem"]))
    return [result]


def _published(job: str) -> list[dict[str, Any]]:
    """A row for each published figure, under the definition of its authors."""
    return [
        {"problem": job, "library": f"{name}, published", "area": area}
        | {"area_interpolated" if name in _INTERPOLATED else "area_steps": area}
        for name, area in PUBLISHED[job].items()
    ]
