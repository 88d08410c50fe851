"""Command line: ``python -m bench <suite>`` from the root of the repository; ``--help`` lists the suites."""

import argparse
import sys
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from bench import (
    commands,
    compare,
    couplings,
    criterion,
    fits,
    hierarchies,
    images,
    kernel_fits,
    large_kernels,
    learned_coupling,
    learned_kernels,
    learned_texts,
    packings,
    partial,
    peer_fits,
    peer_models,
    products,
    ranks,
    scale,
    searches,
)
from bench.cases import Cases
from bench.environments import setup
from bench.model_libraries import CLASSIFIERS
from bench.peer_problems import PROBLEMS
from bench.peer_solvers import PEERS
from bench.problems import dump_csr, news20
from bench.report import Result, write
from bench.taxonomies import TREES


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _whole_numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _names(text: str) -> list[str]:
    return text.split(",")


def _parser() -> argparse.ArgumentParser:
    shows_defaults = argparse.ArgumentDefaultsHelpFormatter
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--output", type=Path, default=Path("bench/results"), help="directory for the results")
    common.add_argument("--threads", type=int, default=2, help="threads that every library may use")
    common.add_argument("--quick", action="store_true", help="a small part of the data, to see that it works")
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of taxolearn.")
    suites = parser.add_subparsers(dest="suite", required=True)

    fit = suites.add_parser("fit", parents=[common], formatter_class=shows_defaults, help="fits against scikit-learn")
    fit.add_argument("--variances", type=_numbers, default=[5.0, 50.0], help="prior variances of the weights")
    fit.add_argument("--gap", type=float, default=1e-6, help="relative duality gap that every answer must have")
    fit.add_argument("--repeats", type=int, default=5)
    fit.add_argument("--limit", type=float, default=20.0, help="give a library up when one fit takes longer (s)")

    product = suites.add_parser("product", parents=[common], formatter_class=shows_defaults, help="X (X'S), sparse X")
    product.add_argument("--columns", type=_whole_numbers, default=[20, 160, 1000], help="numbers of classes")
    product.add_argument("--repeats", type=int, default=5)
    product.add_argument("--cpp-json", type=Path, help="file of taxolearn_bench --csr --json, for Eigen's figures")

    coupling = suites.add_parser(
        "coupling", parents=[common], formatter_class=shows_defaults, help="cost of a product, flat and with the tree"
    )
    coupling.add_argument("--repeats", type=int, default=11)

    hierarchy = suites.add_parser(
        "hierarchy", parents=[common], formatter_class=shows_defaults, help="scores of flat and hierarchical models"
    )
    hierarchy.add_argument("--data", type=_names, default=list(TREES), help="which data sets")
    hierarchy.add_argument("--gap", type=float, default=1e-6)

    aloi = suites.add_parser("aloi", parents=[common], formatter_class=shows_defaults, help="fits of ALOI")
    aloi.add_argument("--variances", type=_numbers, default=[100.0])
    aloi.add_argument("--scaling", choices=("constant", "standard"), default="constant")
    aloi.add_argument("--gap", type=float, default=1e-3)
    aloi.add_argument("--max-iter", type=int, default=2000)

    kernels = suites.add_parser(
        "kernels", parents=[common], formatter_class=shows_defaults, help="RBF models against those of other libraries"
    )
    kernels.add_argument("--data", type=_names, default=list(kernel_fits.VALUES), help="which data sets")
    kernels.add_argument("--repeats", type=int, default=1)
    kernels.add_argument("--rank", type=int, default=1000, help="rank of the approximations")
    kernels.add_argument("--limit", type=float, default=300.0, help="give a model up when it takes longer (s)")
    kernels.add_argument("--choose", action="store_true", help="choose values on held-out rows first, for minutes")

    rank = suites.add_parser(
        "rank", parents=[common], formatter_class=shows_defaults, help="error of low rank, against Nystroem"
    )
    rank.add_argument("--data", type=_names, default=list(kernel_fits.VALUES), help="which data sets")
    rank.add_argument("--ranks", type=_whole_numbers, default=[50, 100, 200, 500, 1000, 2000])
    rank.add_argument("--limit", type=float, default=120.0, help="give a model up when it takes longer (s)")

    large = suites.add_parser(
        "large", parents=[common], formatter_class=shows_defaults, help="a kernel matrix too large to store"
    )
    large.add_argument("--rows", type=int, default=58000)
    large.add_argument("--ranks", type=_whole_numbers, default=[500, 1000])
    large.add_argument("--gap", type=float, default=1e-3)
    large.add_argument("--memory-limit", default="4 GB", help="for kernel matrices")
    large.add_argument("--limit", type=float, default=600.0, help="give a model up when it takes longer (s)")

    packing = suites.add_parser(
        "packing", parents=[common], formatter_class=shows_defaults, help="products with symmetric matrices"
    )
    packing.add_argument("--repeats", type=int, default=11)

    _add_learning(suites, common)
    _add_peers(suites, common)
    scale.add_arguments(suites, common)
    compare.add_arguments(suites, common)

    dump = suites.add_parser("dump", help="write the matrix of news20 for taxolearn_bench --csr")
    dump.add_argument("file", type=Path)
    dump.add_argument("--quick", action="store_true")
    return parser


def _add_learning(suites: Any, common: argparse.ArgumentParser) -> None:
    """Suites of learned hyperparameters, whose cases are kept one by one."""
    resumable = argparse.ArgumentParser(add_help=False, parents=[common])
    resumable.add_argument("--fresh", action="store_true", help="forget the cases that are done, and start anew")
    shared: dict[str, Any] = {
        "parents": [resumable],
        "formatter_class": argparse.ArgumentDefaultsHelpFormatter,
    }
    satimage = suites.add_parser("satimage", **shared, help="kernels learned on satimage, ten partitions")
    satimage.add_argument("--partitions", type=int, default=10)
    satimage.add_argument("--methods", type=_names, default=list(learned_kernels.PUBLISHED))

    usps = suites.add_parser("usps", **shared, help="own kernels learned on 2,000 rows of USPS")
    usps.add_argument("--runs", type=int, default=5)

    together = suites.add_parser("learned_coupling", **shared, help="which classes go together: given and learned")
    together.add_argument("--only", type=_names, default=list(learned_coupling.DATA), help="which data sets")
    together.add_argument(
        "--models", type=lambda text: text.split(";"), default=list(learned_coupling.MODELS), help="separated by ;"
    )
    together.add_argument("--limit", type=float, default=1800.0, help="seconds that a model may learn")

    texts = suites.add_parser("texts", **shared, help="variances learned for flat and hierarchical models")
    texts.add_argument("--only", type=_names, default=list(TREES), help="which data sets")
    texts.add_argument("--models", type=_names, default=list(learned_texts.MODELS))
    texts.add_argument("--characters", action="store_true", help="texts also by characters, as in the suite hierarchy")
    texts.add_argument("--limit", type=float, default=7200.0, help="give a model up when it takes longer (s)")

    cost = suites.add_parser("criterion", **shared, help="cost of the cross-validated criterion and its gradient")
    cost.add_argument("--parts", type=_names, default=["cost", "strategy", "accuracy", "jaxopt"])
    cost.add_argument("--tol", type=float, default=1e-4, help="relative gap of the fits in the first two parts")
    cost.add_argument("--repeats", type=int, default=3)
    cost.add_argument("--limit", type=float, default=3600.0, help="give a case up when it takes longer (s)")

    search = suites.add_parser("search", **shared, help="learning against grid search and Optuna")
    search.add_argument("--only", type=_names, default=["news20", "clinc150"], help="which data sets")
    search.add_argument("--limit", type=float, default=600.0, help="seconds of searches without an end")

    parents = suites.add_parser("partial", **shared, help="labels of which only the parents are known")
    parents.add_argument("--only", type=_names, default=list(partial.DATA), help="which data sets")
    parents.add_argument("--shares", type=_numbers, default=list(partial.SHARES), help="of labels to replace")

    command = suites.add_parser("commands", **shared, help="the command line, end to end")
    command.add_argument("--parts", type=_names, default=["news20", "onet", "stream", "load"])
    command.add_argument("--rows", type=int, default=1_000_000, help="of the stream")
    command.add_argument("--folder", type=Path, default=Path("build/commands"), help="for tables and models")


def _add_peers(suites: Any, common: argparse.ArgumentParser) -> None:
    """The suite whose competitors have environments of their own."""
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument("--folder", type=Path, default=Path("build/peers"), help="of the environments of the libraries")
    shows_defaults = argparse.ArgumentDefaultsHelpFormatter
    suites.add_parser(
        "setup", parents=[place], formatter_class=shows_defaults, help="make the environments that peers needs"
    )
    peers = suites.add_parser(
        "peers", parents=[common, place], formatter_class=shows_defaults, help="many libraries, fits and models"
    )
    peers.add_argument("--parts", type=_names, default=["fits", "models"])
    peers.add_argument("--only", type=_names, default=list(PROBLEMS), help="which data sets")
    peers.add_argument("--libraries", type=_names, default=[*PEERS, *CLASSIFIERS], help="in either part")
    peers.add_argument("--gap", type=float, default=1e-6, help="relative duality gap that every answer must have")
    peers.add_argument("--repeats", type=int, default=5)
    peers.add_argument("--enough", type=float, default=60.0, help="no more repeats of a library after so many seconds")
    peers.add_argument("--patience", type=float, default=30.0, help="give a fit up after so many times ours")
    peers.add_argument("--least-limit", type=float, default=5.0, help="but not before (s)")
    peers.add_argument("--most-limit", type=float, default=600.0, help="and not later than (s)")
    peers.add_argument("--model-limit", type=float, default=1800.0, help="give a model up, tuning included (s)")
    peers.add_argument("--fresh", action="store_true", help="forget the cases that are done, and start anew")


def _run_peers(options: argparse.Namespace) -> list[Result]:
    environments = setup(options.folder)
    common: dict[str, Any] = {
        "machine": environments.machine(),
        "cases": Cases(options.output / f"{options.suite}.cases.jsonl", fresh=options.fresh),
        "n_threads": options.threads,
        "quick": options.quick,
    }
    results = []
    if "fits" in options.parts:
        limits = peer_fits.Limits(
            options.patience, options.least_limit, options.most_limit, options.repeats, options.enough
        )
        results.append(
            peer_fits.run(
                problems=options.only,
                libraries=options.libraries,
                gap=options.gap,
                limits=limits,
                python=environments.most,
                **common,
            )
        )
    if "models" in options.parts:
        data = [name for name in peer_models.DATA if name in options.only]
        models = [name for name in CLASSIFIERS if name in options.libraries]
        results.append(
            peer_models.run(data=data, models=models, limit=options.model_limit, environments=environments, **common)
        )
    return results


_LEARNING = ("satimage", "usps", "texts", "learned_coupling", "criterion", "search", "partial", "commands")


def _run_learning(options: argparse.Namespace) -> Result | None:
    if options.suite not in _LEARNING:
        return None
    common: dict[str, Any] = {
        "n_threads": options.threads,
        "quick": options.quick,
        "cases": Cases(options.output / f"{options.suite}.cases.jsonl", fresh=options.fresh),
    }
    if options.suite == "satimage":
        return learned_kernels.run_satimage(methods=options.methods, partitions=options.partitions, **common)
    if options.suite == "usps":
        return learned_kernels.run_usps(runs=options.runs, **common)
    if options.suite == "texts":
        return learned_texts.run(
            data=options.only, models=options.models, characters=options.characters, limit=options.limit, **common
        )
    if options.suite == "learned_coupling":
        return learned_coupling.run(data=options.only, models=options.models, limit=options.limit, **common)
    if options.suite == "criterion":
        return criterion.run(
            parts=options.parts, tol=options.tol, repeats=options.repeats, limit=options.limit, **common
        )
    if options.suite == "partial":
        return partial.run(data=options.only, shares=options.shares, **common)
    if options.suite == "commands":
        return commands.run(parts=options.parts, rows=options.rows, folder=options.folder.resolve(), **common)
    problems = [problem for problem, (data, _) in searches.PROBLEMS.items() if data in options.only]
    return searches.run(problems=problems, limit=options.limit, **common)


def _run(options: argparse.Namespace) -> Result:
    learning = _run_learning(options)
    if learning is not None:
        return learning
    if options.suite == "scale":
        return scale.run(options)
    if options.suite == "fit":
        return fits.run(
            variances=options.variances,
            gap=options.gap,
            repeats=options.repeats,
            n_threads=options.threads,
            limit=options.limit,
            quick=options.quick,
        )
    if options.suite == "product":
        return products.run(
            columns=options.columns,
            repeats=options.repeats,
            n_threads=options.threads,
            cpp_json=options.cpp_json,
            quick=options.quick,
        )
    if options.suite == "coupling":
        return couplings.run(repeats=options.repeats, n_threads=options.threads, quick=options.quick)
    if options.suite == "hierarchy":
        return hierarchies.run(data=options.data, gap=options.gap, n_threads=options.threads, quick=options.quick)
    if options.suite == "kernels":
        return kernel_fits.run(
            data=options.data,
            repeats=options.repeats,
            rank=options.rank,
            limit=options.limit,
            n_threads=options.threads,
            choose=options.choose,
            quick=options.quick,
        )
    if options.suite == "rank":
        return ranks.run(
            data=options.data,
            ranks=options.ranks,
            limit=options.limit,
            n_threads=options.threads,
            quick=options.quick,
        )
    if options.suite == "large":
        return large_kernels.run(
            rows=options.rows,
            ranks=options.ranks,
            gap=options.gap,
            memory_limit=options.memory_limit,
            limit=options.limit,
            n_threads=options.threads,
            quick=options.quick,
        )
    if options.suite == "packing":
        return packings.run(repeats=options.repeats, n_threads=options.threads, quick=options.quick)
    return images.run(
        variances=options.variances,
        scaling=options.scaling,
        gap=options.gap,
        max_iter=options.max_iter,
        n_threads=options.threads,
        quick=options.quick,
    )


def main() -> None:
    """Run one suite and write its results."""
    options = _parser().parse_args()
    if options.suite == "dump":
        dump_csr(news20(options.quick).X, options.file)
        return
    if options.suite == "setup":
        setup(options.folder)
        return
    if options.suite == "compare":
        sys.exit(compare.main(options))
    with threadpool_limits(options.threads):
        results = _run_peers(options) if options.suite == "peers" else [_run(options)]
    for result in results:
        write(result, options.output)


if __name__ == "__main__":
    main()
