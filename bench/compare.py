"""Suite ``compare``: is a revision slower than another one? The same cases with both, in turns.

A case counts as slower when it takes more than 15 % and more than 0.05 s longer, and does so again with twice the
repeats. Then the exit code is 1.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.compare_cases import CASES, Inputs, made_up
from bench.figures import Bar
from bench.problems import satimage
from bench.report import Result, write
from bench.revisions import FOLDER, Revision, install
from bench.taxonomies import OF_WORDS
from bench.workers import FailedError, Worker

SHARE, SECONDS = 0.15, 0.05  # by which one must exceed the other, both
FAILURES = ("slower", "fails")
_COLUMNS = {
    "case": "case",
    "base": "base s",
    "head": "head s",
    "ratio": "ratio",
    "verdict": "verdict",
    "repeats": "repeats",
    "base_answer": "answer of base",
    "head_answer": "answer of head",
    "remark": "remark",
}
_NOTE = (
    "Medians of rounds in which both take turns, each in a process of its own that has prepared the case and run it "
    f'once. "slower" and "faster": by more than {100 * SHARE:g} % and more than {SECONDS:g} s; what is slower was so '
    "again with twice the repeats. Answers (objectives, criteria, sums) show whether the same was computed."
)


def add_arguments(suites: Any, common: argparse.ArgumentParser) -> None:
    """The suite's part of the command line."""
    parser = suites.add_parser(
        "compare",
        parents=[common],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        help="whether a revision is slower than another",
    )
    parser.add_argument("base", help="git revision to compare with")
    parser.add_argument("head", nargs="?", help="git revision; without one, the working tree")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CASES), help="which cases")
    parser.add_argument("--repeats", type=int, default=5)


def verdict(base: float, head: float) -> str:
    """Whether head is "slower" or "faster" than base beyond the thresholds, or the "same"."""
    if head > (1 + SHARE) * base and head - base > SECONDS:
        return "slower"
    if base > (1 + SHARE) * head and base - head > SECONDS:
        return "faster"
    return "same"


class Asked(Protocol):
    """Something that runs its case once when it is asked."""

    def ask(self) -> dict[str, Any]:
        """Seconds and answer."""


class RevisionError(Exception):
    """A case failed; says why, and with which revision."""

    def __init__(self, reason: str, revision: Revision) -> None:
        super().__init__(reason)
        self.revision = revision


class Contestant:
    """A case with one revision, in a process of its own; it has run once when the context begins."""

    def __init__(self, revision: Revision, case: str, folder: Path, n_threads: int) -> None:
        self._revision = revision
        arguments = {"case": case, "folder": str(folder), "n_threads": n_threads}
        self._worker = Worker("bench.compare_cases:Prepared", arguments, n_threads, revision.python)

    def __enter__(self) -> "Contestant":
        try:
            self._ask("ready")
        except BaseException:
            self._worker.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.stop()

    def ask(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("run")
        return found

    def _ask(self, method: str) -> Any:
        try:
            return self._worker.ask(method)
        except FailedError as error:
            raise RevisionError(str(error), self._revision) from None


def take_turns(base: Asked, head: Asked, repeats: int) -> dict[str, Any]:
    """Medians, their ratio and the verdict; who begins changes from round to round."""
    workers = {"base": base, "head": head}
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    for turn in range(repeats):
        for name in list(workers)[:: 1 if turn % 2 == 0 else -1]:
            answers[name].append(workers[name].ask())
    seconds = {name: [answer["seconds"] for answer in of] for name, of in answers.items()}
    medians = {name: statistics.median(of) for name, of in seconds.items()}
    return medians | {
        "ratio": medians["head"] / medians["base"],
        "verdict": verdict(**medians),
        "repeats": repeats,
        "seconds": seconds,
        **{f"{name}_answer": of[-1]["answer"] for name, of in answers.items()},
    }


def believed(base: Asked, head: Asked, repeats: int) -> dict[str, Any]:
    """The outcome of turns; where head is slower, of twice as many more."""
    outcome = take_turns(base, head, repeats)
    return take_turns(base, head, 2 * repeats) if outcome["verdict"] == "slower" else outcome


def _run_case(case: str, base: Revision, head: Revision, folder: Path, repeats: int, n_threads: int) -> dict[str, Any]:
    try:
        with Contestant(base, case, folder, n_threads) as one, Contestant(head, case, folder, n_threads) as other:
            return believed(one, other, repeats)
    except RevisionError as error:
        return {"verdict": "fails" if error.revision == head else "not in base", "remark": str(error)}


def _inputs(data: str, quick: bool) -> Inputs:
    """The data set, a part of it where this is only a trial; labels and nodes are strings."""
    if data == "text":
        return made_up(quick)
    if data == "satimage":
        table = satimage(quick)
        return Inputs(table.X, table.y.astype(str), table.X_test, [])
    tree = OF_WORDS[data]()
    tree = tree.first_rows(500) if quick else tree
    edges = [(str(above), str(below)) for above, below in tree.taxonomy.to_edges()]
    return Inputs(tree.X, np.asarray(tree.y).astype(str), tree.X_test, edges)


def _write_inputs(data: str, folder: Path, quick: bool) -> bool:
    """Write the data set for the workers, if it is there."""
    try:
        _inputs(data, quick).write(folder / f"{data}.npz")
    except FileNotFoundError as error:
        print(f"  {data} is absent: {error}", flush=True)
        return False
    return True


def run(options: argparse.Namespace) -> Result:
    """Install both revisions and compare them case by case."""
    base, head = install(options.base), install(options.head)
    result = Result(
        suite="compare",
        title=f"Speed of {head.name} against {base.name}",
        columns=_COLUMNS,
        figure=Bar("ratio", "time of head, relative to base", "{:.2f}"),
        settings={"threads": options.threads, "repeats": options.repeats, "quick": options.quick},
        notes=[_NOTE],
    )
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        needed = dict.fromkeys(CASES[case].data for case in options.only)
        absent = [data for data in needed if not _write_inputs(data, folder, options.quick)]
        for case in options.only:
            title, data = CASES[case].title, CASES[case].data
            if data in absent:
                result.notes.append(f"Left out: {title}; the data set {data} is absent.")
                continue
            outcome = _run_case(case, base, head, folder, options.repeats, options.threads)
            result.rows.append({"problem": "all cases", "library": "taxolearn", "case": title} | outcome)
            print(f"  {title}: {outcome['verdict']}, ratio {outcome.get('ratio')}", flush=True)
    return result


def exit_code(rows: Sequence[dict[str, Any]]) -> int:
    """1 where anything is slower, or fails with head only."""
    return int(any(row["verdict"] in FAILURES for row in rows))


def main(options: argparse.Namespace) -> int:
    """Run the suite, write its results and return the exit code."""
    result = run(options)
    write(result, options.output)
    return exit_code(result.rows)
