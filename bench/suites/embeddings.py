"""Short and long texts with a small sentence model: tf-idf, embeddings as people use them today, blocks of both, pools.

Texts are embedded once, in an environment of their own with the packages of bench/libraries/embeddings.txt, and kept in
``--folder`` with the seconds that it took. One more model is one more entry in a table ``EMBEDDING_MODELS`` of a module
in bench/libraries. The table has every case that is known; ``--only`` and ``--models`` choose which are run.
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bench.harness.cases import Cases
from bench.harness.embed import embed, embedded_job, known_embedding
from bench.harness.environments import environment
from bench.harness.isolated import isolated
from bench.harness.job_scores import NOTE
from bench.harness.report import Result
from bench.harness.whole_jobs import MEASURING, SHOWN, add_choices, do_job, result_of_jobs, run_cases
from bench.libraries import EMBEDDING_MODELS

HELP = "a sentence model beside words: blocks and pools against embedding + LogisticRegressionCV"
_JOBS = ("clinc150", "onet-tasks", "onet-titles", "goemotions", "reuters", "news20")
_COLUMNS = {
    **{key: SHOWN[key] for key in ("problem", "library", "log_loss", "accuracy", "macro_f1", "calibration")},
    "seconds_shown": "seconds in all",
    "embedding_seconds": "of these embedding",
    **{key: SHOWN[key] for key in ("processor_shown", "rounds", "megabytes", "setting", "status")},
}
_EMBEDDING = (
    "Embeddings are those of all-MiniLM-L6-v2 (384 numbers of length 1; it reads the first 256 pieces of words of a "
    "text). All texts of a job, for training and test, are embedded once; seconds in all are those of that and of the "
    "rest. Limits of time do not count embedding. {}."
)


def measure(job: str, model: str, quick: bool, n_threads: int, folder: str, turn: int = 0) -> dict[str, Any]:
    """Do a whole job in this process, then score it; its seconds and those of embedding are added."""
    answer = do_job(embedded_job(job, folder, quick), EMBEDDING_MODELS[model], n_threads)
    if EMBEDDING_MODELS[model].embeds:
        spent = known_embedding(job, folder) or {}
        answer["embedding_seconds"] = spent["embedding_seconds"]
        answer["seconds"] += spent["embedding_seconds"]
        answer["processor_seconds"] += spent["embedding_processor_seconds"]
    return answer


def add_arguments(parser: ArgumentParser) -> None:
    add_choices(parser, _JOBS, EMBEDDING_MODELS, limit=300.0)
    parser.add_argument(
        "--folder", type=Path, default=Path("build/embeddings"), help="of the environment, and of the embeddings"
    )
    parser.add_argument(
        "--python",
        type=Path,
        help="interpreter that embeds, with the packages of bench/libraries/embeddings.txt and taxolearn (default: "
        "that of an environment that is made in the folder)",
    )


def run(options: Namespace) -> list[Result]:
    """Embed the texts of the chosen jobs, run the chosen models on them, and show all cases that are known."""
    cases = Cases(options.output / f"{options.suite}.cases.jsonl")
    folder = options.folder.resolve() / ("quick" if options.quick else "texts")
    folder.mkdir(parents=True, exist_ok=True)
    for job in options.only:
        if known_embedding(job, str(folder)) is None:
            python = options.python or environment(options.folder, "embeddings")
            arguments = {"job": job, "folder": str(folder), "quick": options.quick, "n_threads": options.threads}
            spent = isolated(embed, arguments, options.threads, python=python)
            print(f"  embedding of {job}: {spent}", flush=True)
            if "status" in spent:
                raise RuntimeError(f"the texts of {job} cannot be embedded: {spent['status']}")

    def work(arguments: dict[str, Any]) -> dict[str, Any]:
        return isolated(measure, arguments | {"folder": str(folder)}, options.threads, options.limit, sys.executable)

    run_cases(options, cases, measure, work)
    found = {job: spent for job in _JOBS if (spent := known_embedding(job, str(folder)))}
    rates = (f"{job} {spent['texts'] / spent['embedding_seconds']:.0f}" for job, spent in found.items())
    notes = [MEASURING, _EMBEDDING.format(f"Texts a second: {', '.join(rates)}"), NOTE]
    title = "A sentence model beside words: log loss and time"
    result = result_of_jobs(
        options, cases, measure, _JOBS, EMBEDDING_MODELS, title=title, notes=notes, columns=_COLUMNS
    )
    for spent in found.values():
        result.machine["versions"] |= spent["versions"]
    return [result]
