"""The command line: ``taxolearn train``, ``predict``, ``evaluate``, ``report``, ``prune``, ``inspect`` and ``demo``.

Commands are imported when they are called, so that ``--version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

__all__ = ["main"]

INTERRUPTED = 130
BROKEN_PIPE = 141

_CODES = (
    "exit codes: 0 done, 2 wrong usage, 3 a data file is malformed, 4 a model file cannot be used, "
    "5 a file cannot be read or written, 130 interrupted"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process if left out.

    Returns
    -------
    code : int
        0 on success, 2 on wrong usage, 3 for malformed data, 4 for a model file that cannot be used, 5 if a file cannot
        be read or written, 130 if interrupted from the keyboard.
    """
    try:
        arguments = vars(_parser().parse_args(argv))
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else 0
    run: Callable[..., None] = arguments.pop("run")
    arguments.pop("command")
    try:
        run(**arguments)
    except KeyboardInterrupt:
        print("taxolearn: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has had enough
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  the interpreter flushes it once more
        return BROKEN_PIPE
    except Exception as error:
        from taxolearn.cli.errors import CommandError

        if not isinstance(error, CommandError):
            raise
        print(f"taxolearn: {error}", file=sys.stderr)
        return error.code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="taxolearn", description="Classify into large, structured sets of classes.", epilog=_CODES)
    parser.add_argument("--version", action=_Version, default=argparse.SUPPRESS, help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    _add_train(commands)
    _add_predict(commands)
    _add_evaluate(commands)
    _add_report(commands)
    _add_prune(commands)
    _add_inspect(commands)
    _add_demo(commands)
    return parser


def _add_train(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="learn from a data file and write a model",
        description="Learn from a table (CSV, TSV, JSON lines, Parquet) or a matrix (svmlight, LSHTC, ARFF, npz), and "
        "write a model file. All hyperparameters are learned by cross-validation.",
        epilog="example: taxolearn train goods.csv --text title --text body --label category -o goods.taxo",
    )
    train.set_defaults(run=_train)
    train.add_argument("data", help="the file; - for the standard input")
    train.add_argument("-o", "--output", required=True, metavar="MODEL", help="the model file to write")
    table = train.add_argument_group("columns of a table")
    table.add_argument(
        "--text", action="append", default=[], metavar="COLUMN", help="a column of texts; may be repeated"
    )
    table.add_argument("--numeric", action="append", default=[], metavar="COLUMN", help="a column of numbers; likewise")
    table.add_argument(
        "--label", action="append", default=[], metavar="COLUMN", help="the class; repeated, the levels of a path"
    )
    tree = train.add_argument_group("tree of classes")
    tree.add_argument("--taxonomy", metavar="FILE", help="the tree; without one, labels like A/B/C make it")
    tree.add_argument(
        "--taxonomy-format", choices=("paths", "edges", "adjacency", "newick", "json"), help="of that file (guessed)"
    )
    tree.add_argument("--separator", default="/", metavar="S", help="between the levels of a path (%(default)s)")
    tree.add_argument("--flat", action="store_true", help="no tree, whatever the labels look like")
    model = train.add_argument_group("model")
    model.add_argument(
        "--kernel",
        default="linear",
        choices=("linear", "rbf", "matern", "rational_quadratic", "cosine", "polynomial"),
        help="how rows are compared; linear is right for texts (default: %(default)s)",
    )
    model.add_argument(
        "--words",
        type=_lengths,
        default=(1, 2),
        metavar="A-B",
        help="lengths of the sequences of words that are counted; none for no words (default: 1-2)",
    )
    model.add_argument(
        "--characters",
        type=_span,
        default="auto",
        metavar="A-B",
        help="the same of characters within words (default: 3-5 if texts are short, else none)",
    )
    model.add_argument(
        "--max-features", type=_positive, metavar="N", help="most frequent sequences to keep of each kind"
    )
    model.add_argument(
        "--variance", type=_above_zero, metavar="V", help="do not learn: take this variance of the kernel"
    )
    model.add_argument(
        "--tol",
        type=_above_zero,
        default=1e-5,
        help="how exactly to fit: the certified relative gap to reach (default: %(default)s)",
    )
    model.add_argument(
        "--samples",
        type=_positive,
        metavar="N",
        help="rows to learn hyperparameters on (default: all, or as many as take minutes)",
    )
    model.add_argument(
        "--folds", type=_folds, metavar="Q", help="of cross-validation (default: 5, or 3 where it would take long)"
    )
    model.add_argument(
        "--evaluations",
        type=_positive,
        metavar="N",
        help="of the cross-validated log loss, at most (default: 100, or 10 where each takes long)",
    )
    model.add_argument("--time-limit", type=_above_zero, metavar="S", help="seconds for learning hyperparameters")
    model.add_argument("--checkpoint", metavar="FILE", help="where learning keeps its state, to go on if it is killed")
    model.add_argument(
        "--dtype", default="float32", choices=("float32", "float64"), help="of the weights (%(default)s)"
    )
    model.add_argument("--seed", type=_natural, default=0, metavar="S", help="of folds and samples (%(default)s)")
    _add_common(train)
    train.add_argument("--json", action="store_true", help="print the figures as one JSON object and nothing else")


def _add_predict(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="classify the rows of a file",
        description="Classify the rows of a file, as a stream: memory does not grow with it. Without -o the answers go "
        "to the standard output.",
    )
    predict.set_defaults(run=_predict)
    predict.add_argument("model", help="a model file")
    predict.add_argument("data", help="the file; - for the standard input")
    predict.add_argument("-o", "--output", metavar="FILE", help="where to write; .csv, .tsv or .jsonl, also with .gz")
    predict.add_argument("--output-format", choices=("csv", "tsv", "jsonl"), help="if the name does not tell (csv)")
    predict.add_argument("--top", type=_positive, default=1, metavar="K", help="the K most probable classes")
    predict.add_argument("--nodes", action="store_true", help="also the path to the answer with its probabilities")
    predict.add_argument(
        "--loss",
        default="zero-one",
        choices=("zero-one", "taxo", "parent"),
        help="answer with the class of least expected loss (%(default)s)",
    )
    predict.add_argument(
        "--threshold", type=_fraction, metavar="P", help="answer with the deepest node that is at least so probable"
    )
    predict.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN", help="a column to pass through; may be repeated"
    )
    predict.add_argument("--chunk", type=_positive, default=10_000, metavar="N", help="rows at a time (%(default)s)")
    _add_common(predict)
    predict.add_argument("--json", action="store_true", help="with -o: print the figures as one JSON object")


def _add_evaluate(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate", help="score a model on labelled rows", description="Score a model on the labelled rows of a file."
    )
    evaluate.set_defaults(run=_evaluate)
    evaluate.add_argument("model", help="a model file")
    evaluate.add_argument("data", help="the file; - for the standard input")
    evaluate.add_argument("--chunk", type=_positive, default=10_000, metavar="N", help="rows at a time (%(default)s)")
    _add_common(evaluate)
    evaluate.add_argument("--json", action="store_true", help="print the figures as one JSON object and nothing else")


def _add_report(commands: Any) -> None:
    report = commands.add_parser(
        "report",
        help="write a page that shows how good a model is",
        description="Write one HTML file, for any browser and without a network: the tree with scores, confusions, "
        "what happens if the least sure rows are set aside, reliability, and the worst mistakes with their reasons.",
    )
    report.set_defaults(run=_report)
    report.add_argument("model", help="a model file")
    report.add_argument("data", help="labelled rows; - for the standard input")
    report.add_argument("-o", "--output", required=True, metavar="HTML", help="the page to write")
    report.add_argument("--title", help="headline of the page")
    report.add_argument("--chunk", type=_positive, default=10_000, metavar="N", help="rows at a time (%(default)s)")
    _add_common(report)
    report.add_argument("--json", action="store_true", help="print the figures as one JSON object and nothing else")


def _add_prune(commands: Any) -> None:
    prune = commands.add_parser(
        "prune",
        help="make a linear model smaller, and say what that costs",
        description="Leave out the smallest weights of a linear model: as many as possible while the log loss on "
        "labelled rows, best those that were not trained on, hardly rises.",
    )
    prune.set_defaults(run=_prune)
    prune.add_argument("model", help="a model file")
    prune.add_argument("data", help="labelled rows; - for the standard input")
    prune.add_argument("-o", "--output", required=True, metavar="MODEL", help="the smaller model file to write")
    prune.add_argument(
        "--rise", type=_above_zero, default=1e-3, metavar="R", help="of the log loss, relative, to allow (%(default)s)"
    )
    prune.add_argument("--share", type=_fraction, metavar="S", help="leave out this share of the weights, at any cost")
    _add_common(prune)
    prune.add_argument("--json", action="store_true", help="print the figures as one JSON object and nothing else")


def _add_inspect(commands: Any) -> None:
    inspect = commands.add_parser(
        "inspect", help="say what is in a model file", description="Say what is in a model file."
    )
    inspect.set_defaults(run=_inspect)
    inspect.add_argument("model", help="a model file")
    inspect.add_argument("--json", action="store_true", help="print it as one JSON object and nothing else")


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="train and test on the docstrings of numpy, scipy and scikit-learn",
        description="Train two classifiers on most docstrings of numpy, scipy and scikit-learn, one that knows the "
        "tree of modules and one that does not, and let them name the module of the others. "
        "Needs no data and no network.",
    )
    demo.set_defaults(run=_demo)
    demo.add_argument(
        "--test-fraction",
        type=_fraction,
        default=0.25,
        metavar="F",
        help="held-out part of each class (%(default)s)",
    )
    demo.add_argument("--seed", type=_natural, default=0, metavar="S", help="seed of the split (%(default)s)")
    demo.add_argument("--threads", type=_positive, metavar="N", help="number of threads (default: one per core)")
    demo.add_argument("--json", action="store_true", help="print the figures as one JSON object and nothing else")


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("csv", "tsv", "jsonl", "parquet", "svmlight", "lshtc", "arff", "npz"),
        help="of the data, if the name does not tell",
    )
    parser.add_argument("--encoding", default="utf-8", metavar="NAME", help="of a table (%(default)s)")
    parser.add_argument(
        "--delimiter",
        type=_delimiter,
        metavar="C",
        help="character between fields, or the word tab (default: found from the header)",
    )
    parser.add_argument(
        "--quote",
        type=_quote,
        default='"',
        metavar="C",
        help='character around fields that hold delimiters, or the word none (default: ")',
    )
    parser.add_argument("--threads", type=_positive, metavar="N", help="number of threads (default: one per core)")


def _train(**options: Any) -> None:
    from taxolearn.cli import train

    train.run(train.TrainOptions(**_with_data(options)))


def _predict(**options: Any) -> None:
    from taxolearn.cli import predict

    predict.run(predict.PredictOptions(**_with_data(options)))


def _evaluate(**options: Any) -> None:
    from taxolearn.cli import evaluate

    evaluate.run(evaluate.EvaluateOptions(**_with_data(options)))


def _report(**options: Any) -> None:
    from taxolearn.cli import report

    report.run(report.ReportOptions(**_with_data(options)))


def _prune(**options: Any) -> None:
    from taxolearn.cli import prune

    prune.run(prune.PruneOptions(**_with_data(options)))


def _inspect(**options: Any) -> None:
    from taxolearn.cli import inspect

    inspect.run(inspect.InspectOptions(**options))


def _with_data(options: dict[str, Any]) -> dict[str, Any]:
    """What belongs to the data file in one value."""
    from taxolearn.cli.inputs import DataFile

    about = {name: options.pop(name) for name in ("format", "encoding", "delimiter", "quote")}
    return options | {"data": DataFile(options["data"], **about)}


def _demo(**options: Any) -> None:
    from taxolearn.cli import demo

    demo.run(as_json=options.pop("json"), **options)


class _Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"taxolearn: {message}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Like argparse's own, but looks the version up only when asked."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"taxolearn {version('taxolearn')}")
        parser.exit()


def _delimiter(text: str) -> str:
    return _character("\t" if text in ("tab", "\\t") else text)


def _quote(text: str) -> str | None:
    return None if text == "none" else _character(text)


def _character(text: str) -> str:
    if len(text) != 1 or text in "\r\n\0":
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return text


def _span(text: str) -> tuple[int, int] | str | None:
    """As ``_lengths``, or "auto"."""
    return text if text == "auto" else _lengths(text)


def _lengths(text: str) -> tuple[int, int] | None:
    """Two lengths like 3-5, one like 2, or "none"."""
    if text == "none":
        return None
    first, _, last = text.partition("-")
    try:
        low, high = int(first), int(last or first)
    except ValueError:
        low = high = 0
    if not 1 <= low <= high:
        raise argparse.ArgumentTypeError(f"must be like 1-2, or none, got {text}")
    return low, high


def _number(kind: Callable[[str], Any], text: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"must be {expected}, got {text}") from None


def _above_zero(text: str) -> float:
    value: float = _number(float, text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def _fraction(text: str) -> float:
    value: float = _number(float, text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text}")
    return value


def _natural(text: str) -> int:
    value: int = _number(int, text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {text}")
    return value


def _folds(text: str) -> int:
    value: int = _number(int, text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"must be at least 2, got {text}")
    return value


def _positive(text: str) -> int:
    value: int = _number(int, text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value
