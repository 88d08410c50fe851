"""Is a revision slower than another one? The same cases with both, in turns.

In each round both run the case, one right after the other, and who begins changes; the ratio of a round is free of what
slows the machine down for longer. A case counts as slower when the median of these ratios is above 1.05 and the noise
of the rounds cannot explain it, and when that is so again with twice the rounds. Then the exit code is 1.
"""

import math
import statistics
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.harness.figures import Bar
from bench.harness.options import add_common, names
from bench.harness.report import Result
from bench.harness.revisions import FOLDER, Revision, install
from bench.harness.workers import FailedError, Worker
from bench.problems.data import satimage
from bench.problems.revision_cases import CASES, Inputs, Prepared, made_up
from bench.problems.trees import OF_WORDS

HELP = "whether a revision is slower than another"
RATIO = 1.05  # beyond which one is slower than the other
CONFIDENCE = 0.95
CLOCKS = {"wall": "seconds", "processor": "processor_seconds"}
FAILURES = ("slower", "fails")
_COLUMNS = {
    "case": "case",
    "base": "base s",
    "head": "head s",
    "ratio": "ratio",
    "interval": "interval",
    "processor_ratio": "ratio of processor time",
    "verdict": "verdict",
    "repeats": "repeats",
    "base_answer": "answer of base",
    "head_answer": "answer of head",
    "remark": "remark",
}
_NOTE = (
    "base s, head s: medians of rounds in which both take turns, each in a process of its own that has prepared the "
    "case and run it once. ratio: the median of the ratios of the rounds; interval: where that median lies, by the "
    f"clock that was chosen, with a confidence of {100 * CONFIDENCE:g} %, whatever the distribution of the noise. "
    f"slower: the ratio is above {RATIO:g} and the interval above 1, twice, the second time with twice the rounds. "
    "Processor time is that of all threads, and the better clock on a busy machine. Answers (objectives, criteria, "
    "sums) show whether the same was computed."
)


def add_arguments(parser: ArgumentParser) -> None:
    add_common(parser)
    parser.add_argument("base", help="git revision to compare with")
    parser.add_argument("head", nargs="?", help="git revision; without one, the working tree")
    parser.add_argument("--only", type=names, default=list(CASES), help="which cases")
    parser.add_argument("--repeats", type=int, default=7, help="rounds; six or more give the full confidence")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="of the verdict; processor on a busy machine")


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The two values between which the median of their distribution lies, with probability ``CONFIDENCE`` or more.

    The median is below the least of n values with probability 2^-n, and below the k-th by the binomial law. Fewer than
    six values give less confidence: then these are the least and the largest.
    """
    n, skipped = len(values), 0
    outside = 2 * 0.5**n
    while outside + 2 * math.comb(n, skipped + 1) * 0.5**n <= 1 - CONFIDENCE:
        skipped += 1
        outside += 2 * math.comb(n, skipped) * 0.5**n
    ordered = sorted(values)
    return ordered[skipped], ordered[n - 1 - skipped]


def verdict(ratios: Sequence[float]) -> str:
    """Whether head is "slower" or "faster" than base beyond the threshold and the noise, or the "same"."""
    ratio = statistics.median(ratios)
    low, high = interval(ratios)
    if ratio > RATIO and low > 1:
        return "slower"
    if ratio < 1 / RATIO and high < 1:
        return "faster"
    return "same"


class Asked(Protocol):
    """An object that runs its case once when asked."""

    def ask(self) -> dict[str, Any]:
        """Seconds, processor seconds and answer."""


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
        self._worker = Worker(Prepared, arguments, n_threads, revision.python)

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


def take_turns(base: Asked, head: Asked, repeats: int, clock: str = "wall") -> dict[str, Any]:
    """Medians, ratios and the verdict by a clock; who begins changes from round to round."""
    workers = {"base": base, "head": head}
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    for turn in range(repeats):
        for name in list(workers)[:: 1 if turn % 2 == 0 else -1]:
            answers[name].append(workers[name].ask())

    def ratios(key: str) -> list[float]:
        return [other[key] / one[key] for one, other in zip(answers["base"], answers["head"], strict=True)]

    seconds = {name: [answer["seconds"] for answer in of] for name, of in answers.items()}
    return {name: statistics.median(of) for name, of in seconds.items()} | {
        "ratio": statistics.median(ratios("seconds")),
        "interval": "{:.3f} to {:.3f}".format(*interval(ratios(CLOCKS[clock]))),
        "processor_ratio": statistics.median(ratios("processor_seconds")),
        "verdict": verdict(ratios(CLOCKS[clock])),
        "repeats": repeats,
        "seconds": seconds,
        **{f"{name}_answer": of[-1]["answer"] for name, of in answers.items()},
    }


def believed(base: Asked, head: Asked, repeats: int, clock: str = "wall") -> dict[str, Any]:
    """Return the outcome of the turns or, where head is slower, that of twice as many more."""
    outcome = take_turns(base, head, repeats, clock)
    return take_turns(base, head, 2 * repeats, clock) if outcome["verdict"] == "slower" else outcome


def _run_case(
    case: str, base: Revision, head: Revision, folder: Path, repeats: int, n_threads: int, clock: str = "wall"
) -> dict[str, Any]:
    try:
        with Contestant(base, case, folder, n_threads) as one, Contestant(head, case, folder, n_threads) as other:
            return believed(one, other, repeats, clock)
    except RevisionError as error:
        return {"verdict": "fails" if error.revision == head else "not in base", "remark": str(error)}


def _inputs(data: str, quick: bool) -> Inputs:
    """Load the data set, or a part of it for a mere trial; labels and nodes are strings."""
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


def run(options: Namespace) -> list[Result]:
    """Install both revisions and compare them case by case."""
    base, head = install(options.base), install(options.head)
    result = Result.of(
        options,
        title=f"Speed of {head.name} against {base.name}",
        columns=_COLUMNS,
        figure=Bar("ratio", "time of head, relative to base", "{:.2f}"),
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
            outcome = _run_case(case, base, head, folder, options.repeats, options.threads, options.clock)
            result.rows.append({"problem": "all cases", "library": "taxolearn", "case": title} | outcome)
            print(f"  {title}: {outcome['verdict']}, ratio {outcome.get('ratio')}", flush=True)
    result.exit_code = exit_code(result.rows)
    return [result]


def exit_code(rows: Sequence[dict[str, Any]]) -> int:
    """1 where anything is slower, or fails with head only."""
    return int(any(row["verdict"] in FAILURES for row in rows))
