"""The command line end to end, each command in a process of its own, beside the same in Python.

Tables are written from the raw texts of 20 newsgroups and the job titles of O*NET. A million short rows are predicted
as a stream, next to the memory that a tenth of them takes, and by a pipeline of scikit-learn with the same vectorizers
and the same weights. A model file of a gigabyte is loaded.
"""

import csv
import gzip
import json
import os
import random
import subprocess
import sys
import tarfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import taxolearn
from bench.harness.figures import Bar
from bench.harness.options import add_resumable, known_cases, names
from bench.harness.report import Result
from bench.problems.data import data_directory

HELP = "the command line, end to end"
_TRAIN = {
    "news20": ["--text", "text", "--label", "group", "--separator", "."],
    "onet": ["--text", "title", *(part for k in range(1, 6) for part in ("--label", f"level_{k}"))],
}
_SOFTMAX = ["--model", "softmax", "--hold-out", "0"]  # one linear model, which can be pruned
_PREFIXES = (2, 4, 6, 7, None)  # of an occupation's code: the levels of the tree
_CHUNK = 10_000
_BIG = (262_144, 1_000)  # features and classes of a model of a gigabyte
_COLUMNS = {
    "problem": "data",
    "library": "what",
    "seconds": "s",
    "peak": "peak MB",
    "rows_per_second": "rows / s",
    "accuracy": "accuracy %",
    "log_loss": "log loss",
    "taxo_loss": "taxo-loss",
    "megabytes": "file MB",
    "remark": "remark",
    "status": "status",
}
_NOTES = [
    (
        "Every command and every comparison has a process of its own; seconds include its start, peak is its largest "
        "resident memory. Python: TableFeatures and KernelLogisticClassifier with the settings of the command."
    ),
    (
        "Streams: titles of the test rows, drawn with replacement. scikit-learn reads by pandas in the same chunks, "
        "has the same TfidfVectorizers, weights and intercepts in a LogisticRegression, and writes answers by pandas."
    ),
]


def add_arguments(parser: ArgumentParser) -> None:
    add_resumable(parser)
    parser.add_argument("--parts", type=names, default=["news20", "onet", "stream", "load"])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the stream")
    parser.add_argument("--folder", type=Path, default=Path("build/commands"), help="for tables and models")


def run(options: Namespace) -> list[Result]:
    """Run the parts: "news20", "onet", "stream" (needs onet's model) and "load"."""
    parts, folder, rows = options.parts, options.folder.resolve(), options.rows
    folder.mkdir(parents=True, exist_ok=True)
    shared = {"folder": str(folder), "quick": options.quick}
    cases = known_cases(options)
    found: list[dict[str, Any]] = []

    def case(problem: str, title: str, function: Callable[..., dict[str, Any]], **arguments: Any) -> None:
        answer = cases.run(f"{problem}, {title}", function, shared | arguments, options.threads)
        found.append({"problem": problem, "library": title} | answer)

    for name in ("news20", "onet"):
        if name in parts:
            for which in ("train", "evaluate", "report", "predict", "prune"):
                case(name, f"taxolearn {which}", command, name=name, which=which)
        if name in parts and name == "news20":
            case(name, "the same in Python", in_python, name=name)
    if "stream" in parts:
        for count in (rows // 10, rows):
            case("stream", f"taxolearn predict, {count:,} rows", stream, rows=count)
            case("stream", f"scikit-learn, {count:,} rows", stream_sklearn, rows=count)
    if "load" in parts:
        case("load", "taxolearn, a file of a gigabyte", load_big)
    result = Result.of(
        options,
        title="The command line, end to end",
        columns=_COLUMNS,
        figure=Bar("rows_per_second", "rows per second", "{:,.0f}"),
        settings={"parts": ",".join(parts)},
        notes=_NOTES,
        rows=found,
    )
    return [result]


# -- Data -------------------------------------------------------------------------------------------------------------


def write_tables(name: str, folder: Path, quick: bool) -> None:
    """Write ``<name>-train.csv`` and ``<name>-test.csv``, unless they are there."""
    if (folder / f"{name}-test.csv").exists():
        return
    header, parts = _news20() if name == "news20" else _onet()
    for part, rows in parts.items():
        path = folder / f"{name}-{part}.csv"
        _write(path.with_suffix(".part"), header, rows[:1000] if quick else rows)
        path.with_suffix(".part").replace(path)


def _write(path: Path, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _news20() -> tuple[list[str], dict[str, list[Any]]]:
    parts: dict[str, list[Any]] = {"train": [], "test": []}
    with tarfile.open(data_directory() / "news20" / "20news-bydate.tar.gz") as archive:
        for member in archive:
            names = member.name.split("/")
            if member.isfile() and names[-1].isdigit():
                file = archive.extractfile(member)
                assert file is not None
                text = file.read().decode("latin-1").replace("\0", " ")
                parts[names[-3].rpartition("-")[2]].append((names[-2], names[-1], text))
    random.Random(0).shuffle(parts["train"])
    return ["group", "id", "text"], parts


def _onet() -> tuple[list[str], dict[str, list[Any]]]:
    with gzip.open(data_directory() / "onet" / "Alternate_Titles.txt.gz", "rt", encoding="utf-8") as file:
        reader = csv.reader(file, delimiter="\t")
        next(reader)
        rows = [(row[1], *(row[0][:end] for end in _PREFIXES)) for row in reader]
    random.Random(0).shuffle(rows)
    fifth = len(rows) // 5
    return ["title", *(f"level_{k}" for k in range(1, 6))], {"train": rows[fifth:], "test": rows[:fifth]}


def _stream_table(folder: Path, rows: int) -> Path:
    path = folder / f"stream-{rows}.csv"
    if not path.exists():
        write_tables("onet", folder, quick=False)
        titles = pd.read_csv(folder / "onet-test.csv", dtype=str, keep_default_na=False)["title"].tolist()
        drawn = random.Random(1).choices(titles, k=rows)
        _write(path.with_suffix(".part"), ["id", "title"], ((str(k), title) for k, title in enumerate(drawn)))
        path.with_suffix(".part").replace(path)
    return path


# -- Cases, each in a process of its own ------------------------------------------------------------------------------


def command(folder: str, quick: bool, n_threads: int, name: str, which: str) -> dict[str, Any]:
    """Run one command on one data set."""
    base = Path(folder)
    write_tables(name, base, quick)
    model, test = str(base / f"{name}.taxo"), str(base / f"{name}-test.csv")
    arguments = {
        "train": ["train", str(base / f"{name}-train.csv"), *_TRAIN[name], *_SOFTMAX, "-o", model, "--json"],
        "evaluate": ["evaluate", model, test, "--json"],
        "report": ["report", model, test, "-o", str(base / f"{name}.html")],
        "predict": ["predict", model, test, "-o", str(base / f"{name}-answers.csv")],
        "prune": ["prune", model, test, "-o", str(base / f"{name}-small.taxo"), "--json"],
    }[which]
    out, facts = _measured(*arguments, "--threads", str(n_threads))
    if which == "train":
        said = json.loads(out)
        remark = f"{said['features']} features, {said['learned']} learned, {said['evaluations']} evaluations"
        facts |= {"megabytes": said["size_bytes"] / 1e6, "remark": remark}
    elif which == "evaluate":
        said = json.loads(out)
        facts |= {"accuracy": 100 * said["accuracy"], "log_loss": said["log_loss"], "taxo_loss": said["taxo_loss"]}
    elif which == "report":
        facts["megabytes"] = (base / f"{name}.html").stat().st_size / 1e6
    elif which == "prune":
        said = json.loads(out)
        facts |= {
            "megabytes": said["size_bytes"] / 1e6,
            "remark": f"{100 * said['share']:.4g} % of the weights left out",
        }
        facts |= {"accuracy": 100 * said["after"]["accuracy"], "log_loss": said["after"]["log_loss"]}
    else:
        with (base / f"{name}-answers.csv").open(encoding="utf-8") as file:
            facts["rows_per_second"] = (sum(1 for _ in file) - 1) / facts["seconds"]
    return facts


def in_python(folder: str, quick: bool, n_threads: int, name: str) -> dict[str, Any]:
    """Train and test with the classes that the commands use."""
    base = Path(folder)
    write_tables(name, base, quick)
    begin = time.perf_counter()
    train, test = (
        pd.read_csv(base / f"{name}-{part}.csv", dtype=str, keep_default_na=False) for part in ("train", "test")
    )
    features = taxolearn.features.TableFeatures("text")
    tree = taxolearn.Taxonomy.from_labels(train["group"], separator=".")
    model = taxolearn.KernelLogisticClassifier("linear", taxonomy=tree, tol=1e-5, n_threads=n_threads)
    model.fit(features.fit_transform(train), train["group"])
    log_proba = model.predict_log_proba(features.transform(test))
    seconds = time.perf_counter() - begin
    y = test["group"].to_numpy(dtype=str)
    answers = model.classes_[log_proba.argmax(axis=1)]
    place = np.searchsorted(model.classes_, y)
    return {
        "seconds": seconds,
        "accuracy": 100 * float(np.mean(answers == y)),
        "log_loss": -float(np.mean(log_proba[np.arange(len(y)), place])),
        "taxo_loss": taxolearn.metrics.taxo_loss(y, answers, taxonomy=tree),
        "remark": "train and evaluate",
    }


def stream(folder: str, quick: bool, n_threads: int, rows: int) -> dict[str, Any]:
    """Predict rows with the model of job titles."""
    base = Path(folder)
    path = _stream_table(base, rows)
    arguments = ["predict", str(base / "onet.taxo"), str(path), "--keep", "id", "-o", str(base / "stream-ours.csv")]
    _, facts = _measured(*arguments, "--threads", str(n_threads))
    return facts | {"rows_per_second": rows / facts["seconds"]}


def stream_sklearn(folder: str, quick: bool, n_threads: int, rows: int) -> dict[str, Any]:
    """Do the same with scikit-learn and pandas."""
    path = _stream_table(Path(folder), rows)
    program = f"from bench.suites.commands import predict_sklearn; predict_sklearn({folder!r}, {str(path)!r})"
    _, facts = _measured("-c", program, module=None)
    ours = Path(folder) / "stream-ours.csv"
    if ours.exists():
        one, other = (pd.read_csv(Path(folder) / f"stream-{name}.csv", dtype=str) for name in ("ours", "sklearn"))
        if len(one) == len(other):
            facts["remark"] = f"{100 * float(np.mean(one['label'] == other['label'])):.4g} % of the answers are ours"
    return facts | {"rows_per_second": rows / facts["seconds"]}


def predict_sklearn(folder: str, path: str) -> None:
    """What a user of scikit-learn would write."""
    trained = taxolearn.load(Path(folder) / "onet.taxo")
    vectorizers = list(trained[0].vectorizers_.values())
    model = LogisticRegression()
    model.classes_ = trained[-1].classes_
    model.coef_ = np.ascontiguousarray(trained[-1].coef_)
    model.intercept_ = trained[-1].intercept_.astype(np.float32)
    with (Path(folder) / "stream-sklearn.csv").open("w", newline="", encoding="utf-8") as file:
        for k, chunk in enumerate(pd.read_csv(path, dtype=str, keep_default_na=False, chunksize=_CHUNK)):
            X = sparse.hstack([vectorizer.transform(chunk["title"]) for vectorizer in vectorizers], format="csr")
            proba = model.predict_proba(X)
            best = proba.argmax(axis=1)
            answers = pd.DataFrame(
                {"id": chunk["id"], "label": model.classes_[best], "probability": proba[np.arange(len(best)), best]}
            )
            answers.to_csv(file, index=False, header=k == 0, float_format="%.6g")


def load_big(folder: str, quick: bool, n_threads: int) -> dict[str, Any]:
    """Load a model of a gigabyte and predict a row with it."""
    path = Path(folder) / "big.taxo"
    d, C = (1000, 100) if quick else _BIG
    generator = np.random.default_rng(0)
    if not path.exists():
        model = taxolearn.KernelLogisticClassifier(tuning=None)
        model.fit(generator.normal(size=(C, 3)), np.arange(C))
        model.coef_, model.n_features_in_ = generator.standard_normal((d, C), dtype=np.float32).T, d
        taxolearn.save(model, path)
    row = sparse.random(1, d, 0.001, "csr", random_state=0)
    times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for _ in range(5):
        for check in times:
            begin = time.perf_counter()
            model = taxolearn.load(path, check=check)
            loaded = time.perf_counter()
            model.predict(row)
            times[check].append((loaded - begin, time.perf_counter() - loaded))
    (checked, first), (unchecked, _) = (np.median(of, axis=0).tolist() for of in times.values())
    return {
        "seconds": checked,
        "megabytes": path.stat().st_size / 1e6,
        "remark": f"{unchecked:.3f} s with check=False; first prediction {1000 * first:.1f} ms later; file in cache",
    }


def _measured(*arguments: str, module: str | None = "taxolearn.cli") -> tuple[str, dict[str, Any]]:
    """Run a Python program; return its output, seconds and peak memory."""
    begin = time.perf_counter()
    start = [sys.executable, *(("-m", module) if module else ()), *arguments]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{arguments[0]} ended with exit code {process.returncode}")
    return out, {"seconds": time.perf_counter() - begin, "peak": usage.ru_maxrss / 1024}
