"""``taxolearn demo``: three classifiers, and the pool of them, name the modules of docstrings.

Numerical packages are imported while the first stage is announced, not before.
"""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from taxolearn.cli.main import Command, fraction, json_option, option, seed_option, threads_option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from taxolearn.datasets import TextCollection
    from taxolearn.estimators.base import TaxonomyClassifier
    from taxolearn.taxonomy.tree import Taxonomy

__all__ = ["COMMAND", "DEMO_NEXT", "DemoFigures", "DemoOptions", "ModelFigures", "run"]

# Chosen by the log loss on a quarter of the training documents set aside, mean of three such splits. Flat: tried from
# 200 to 3200; little changes from 800 on (0.584, 0.581, 0.584), 200 has 0.611. Tree: the kernel's variance from
# 200 to 1600 by those of levels 1 and 3, 0.3 to 3 and 0.1 to 1, where level 2 has 1; the best is 0.551, with all
# levels at 1 it is 0.552, and 0.564 at 200. Products grow with the variance, for either model.
FLAT_VARIANCE = 1600.0
TREE_VARIANCE = 800.0
LEVEL_VARIANCES = (0.5, 1.0, 0.5)
INTERCEPT_VARIANCE = 1.0
TOL = 1e-4  # on two of these splits 1e-6 changed the log losses by 0.00002 and no other figure
CONFIDENCE = 0.9
LEAST_SHOWN = 0.05  # probability
DEMO_NEXT = """\
from sklearn.feature_extraction.text import TfidfVectorizer
from taxolearn import PoolClassifier, Taxonomy

X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
taxonomy = Taxonomy.from_labels(labels)  # paths such as "scipy/linalg"
clf = PoolClassifier(taxonomy=taxonomy)  # learns and weighs its experts
clf.fit(X, labels)"""


@dataclass(frozen=True)
class ModelFigures:
    """What the demo measured about one model, on the held-out documents unless the name says otherwise."""

    weight: float | None  # in the pool; None for the pool itself
    variance: float | None  # of the kernel, where there is one
    variances: dict[str, float] | None  # by level; None without a coupling
    fit_seconds: float  # of the pool with the weights, for which every expert is fitted several times
    relative_gap: float | None  # certified; None for fits without a solver
    products: int | None
    accuracy: float
    top5_accuracy: float
    parent_accuracy: float
    taxo_loss: float  # of the most probable class
    taxo_loss_decided: float  # of the answer of least expected taxo-loss
    log_loss: float


@dataclass(frozen=True)
class DemoFigures:
    """What the demo measured; the fields of ``taxolearn demo --json``."""

    data: str
    documents: int
    training_documents: int
    test_documents: int
    features: int
    classes: int
    inner_nodes: int
    height: int
    seed: int
    intercept_variance: float
    total_seconds: float
    flat: ModelFigures
    tree: ModelFigures
    naive_bayes: ModelFigures
    pool: ModelFigures


@dataclass(frozen=True)
class DemoOptions:
    """Arguments of the command."""

    test_fraction: float = option(
        "--test-fraction",
        type=fraction,
        default=0.25,
        metavar="F",
        help="part of each class to hold out (default: %(default)s)",
    )
    seed: int = seed_option("seed of the split")
    threads: int | None = threads_option()
    json: bool = json_option()


def run(options: DemoOptions) -> None:
    """Train, test and print: the figures as JSON, or a table and some examples."""
    start = time.perf_counter()
    with _stages(quiet=options.json) as stage:
        stage("Reading docstrings")
        from sklearn.feature_extraction.text import TfidfVectorizer

        import taxolearn

        collection = taxolearn.datasets.load_docstrings()
        labels = collection.labels
        taxonomy = taxolearn.Taxonomy.from_labels(labels)
        training, test = _split(labels, options.test_fraction, options.seed)

        stage("Counting words")
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
        X = vectorizer.fit_transform([collection.texts[i] for i in training])
        X_test = vectorizer.transform([collection.texts[i] for i in test])

        experts = _experts(taxonomy, options.threads)
        pool = taxolearn.PoolClassifier(list(experts.items()), taxonomy=taxonomy, n_threads=options.threads)
        models: dict[str, Any] = {**experts, "pool": pool}
        seconds = {}
        for name, model in models.items():
            stage(f"Fitting {len(training)} documents, {X.shape[1]} features: {name.replace('_', ' ')}")
            began = time.perf_counter()
            model.fit(X, labels[training])
            seconds[name] = round(time.perf_counter() - began, 3)

        stage(f"Predicting {len(test)} documents")
        measured = {
            name: _measure(
                model,
                taxonomy,
                X_test,
                labels[test],
                seconds=seconds[name],
                weight=None if model is pool else pool.weights_.get(name, 0.0),
            )
            for name, model in models.items()
        }
    figures = DemoFigures(
        data=collection.description,
        documents=len(collection),
        training_documents=len(training),
        test_documents=len(test),
        features=int(X.shape[1]),
        classes=taxonomy.n_classes,
        inner_nodes=taxonomy.n_inner,
        height=taxonomy.height,
        seed=options.seed,
        intercept_variance=INTERCEPT_VARIANCE,
        total_seconds=round(time.perf_counter() - start, 3),
        **measured,
    )
    if options.json:
        print(json.dumps(asdict(figures), indent=2))
        return
    page = _Page()
    _print_figures(page, figures)
    _print_examples(page, collection, taxonomy, test, pool, X_test, options.seed)
    _print_next(page)


def _experts(taxonomy: Taxonomy, threads: int | None) -> dict[str, TaxonomyClassifier]:
    """The classifiers that are compared and pooled."""
    import taxolearn

    def softmax(variance: float, coupling: Any) -> taxolearn.KernelLogisticClassifier:
        return taxolearn.KernelLogisticClassifier(
            taxolearn.kernels.Linear(variance=variance),
            taxonomy=taxonomy,
            intercept_variance=INTERCEPT_VARIANCE,
            tuning=None,
            tol=TOL,
            n_threads=threads,
            coupling=coupling,
        )

    return {
        "naive_bayes": taxolearn.NaiveBayesClassifier(taxonomy=taxonomy, n_threads=threads),
        "flat": softmax(FLAT_VARIANCE, "independent"),
        "tree": softmax(TREE_VARIANCE, taxolearn.Tree(variances=LEVEL_VARIANCES[: taxonomy.height])),
    }


@contextmanager
def _stages(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that announces a stage: a spinner on a terminal, nothing anywhere else."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda message: None
        return
    with console.status("", spinner="dots" if _speaks_unicode(console) else "line") as status:
        yield lambda message: status.update(f"{message} ...")


def _split(labels: NDArray[np.str_], test_fraction: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Hold out the same part of every class; each keeps at least one document on either side."""
    import numpy as np

    generator = np.random.default_rng(seed)
    held_out = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        size = min(max(round(test_fraction * len(members)), 1), len(members) - 1)
        held_out[members[:size]] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _measure(
    model: Any, taxonomy: Taxonomy, X: Any, truth: NDArray[np.str_], *, seconds: float, weight: float | None
) -> ModelFigures:
    from taxolearn import metrics
    from taxolearn.report.scores import TOP

    classes, result = model.classes_, getattr(model, "result_", None)
    k = min(TOP, len(classes))
    answers, proba = model.predict(X), model.predict_proba(X)
    return ModelFigures(
        weight=weight,
        variance=None if result is None else model.kernel.variance,
        variances=None if result is None else model.hyperparameters_.variances or None,
        fit_seconds=seconds,
        relative_gap=None if result is None else result.relative_gap,
        products=None if result is None else result.products,
        accuracy=metrics.accuracy(truth, answers),
        top5_accuracy=k * metrics.precision_at_k(truth, proba, classes=classes, k=k),
        parent_accuracy=metrics.parent_accuracy(truth, answers, taxonomy=taxonomy),
        taxo_loss=metrics.taxo_loss(truth, answers, taxonomy=taxonomy),
        taxo_loss_decided=metrics.taxo_loss(truth, model.decide(X, "taxo"), taxonomy=taxonomy),
        log_loss=metrics.log_loss(truth, log_proba=model.predict_log_proba(X), classes=classes),
    )


# -- Printing ---------------------------------------------------------------------------------------------------------


def _speaks_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


class _Page:
    """Standard output: with colours and all characters on a terminal that has them, else in plain ASCII."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console()
        self.plain = not (self.console.is_terminal and _speaks_unicode(self.console))

    def line(self, text: str = "", style: str = "", *, shorten: bool = False) -> None:
        """Print text, wrapped between words or else cut where the page ends."""
        from rich.text import Text

        text = text.encode("ascii", "replace").decode() if self.plain else text
        if shorten and len(text) > self.console.width:
            text = text[: max(self.console.width - 3, 0)] + "..."
        self.console.print(Text(text, style=style))


def _print_figures(page: _Page, figures: DemoFigures) -> None:
    from rich import box
    from rich.table import Table

    page.line("Which module is this docstring from?", "bold")
    page.line(figures.data)
    page.line(
        f"Trained on {figures.training_documents:,} documents with {figures.features:,} features, tested on the other "
        f"{figures.test_documents:,}; {figures.total_seconds:.1f} s in all. Flat "
        "and tree are logistic regression: the one takes the classes as unrelated, in the other those with common "
        "parents go together. The pool mixes all three, with weights from documents that they were not fitted to."
    )
    lines = box.Box(str(box.SIMPLE).replace("─", "-"), ascii=True) if page.plain else box.SIMPLE
    table = Table(box=lines)
    table.add_column("", no_wrap=True)
    models = {name: getattr(figures, name) for name in ("naive_bayes", "flat", "tree", "pool")}
    for column in models:
        style = "bold" if column == "pool" else ""
        table.add_column(column.replace("_b", " B"), no_wrap=True, justify="right", style=style)
    for name, field, form in (
        ("accuracy", "accuracy", "{:.1%}"),
        ("accuracy of the first five", "top5_accuracy", "{:.1%}"),
        ("accuracy of the parent", "parent_accuracy", "{:.1%}"),
        ("taxo-loss, most probable class", "taxo_loss", "{:.3f}"),
        ('taxo-loss, decide(X, "taxo")', "taxo_loss_decided", "{:.3f}"),
        ("log loss", "log_loss", "{:.3f}"),
        ("weight in the pool", "weight", "{:.2f}"),
        ("fit time", "fit_seconds", "{:.2f} s"),
        ("certified relative gap", "relative_gap", "{:.1e}"),
    ):
        values = [getattr(model, field) for model in models.values()]
        table.add_row(name, *("-" if value is None else form.format(value) for value in values))
    page.console.print(table)


def _print_examples(
    page: _Page,
    collection: TextCollection,
    taxonomy: Taxonomy,
    test: NDArray[np.intp],
    model: TaxonomyClassifier,
    X_test: Any,
    seed: int,
) -> None:
    """Print one held-out document of each kind, drawn at random: sure of the class, of a node above it, wrong."""
    import numpy as np

    stops = model.decide(X_test, confidence=CONFIDENCE)
    right = model.predict(X_test) == collection.labels[test]
    nodes = taxonomy.index(stops)
    at_class = nodes >= taxonomy.n_inner
    order = np.random.default_rng(seed).permutation(len(test))
    page.line("What the pool makes of some held-out docstrings", "bold")
    page.line(
        "true: the path to the true class. "
        f"stop: the answer of decide(X, confidence={CONFIDENCE:g}), the deepest node at least so probable. "
        f"Nodes below {LEAST_SHOWN:.0%} are left out."
    )
    page.line()
    for kind, members in (
        ("Sure of the class", at_class & right),
        ("Sure of a node above the class", ~at_class & (nodes > 0)),
        ("Wrong", ~right),
    ):
        for k in order[members[order]][:1]:
            document = int(test[k])
            node_proba = model.predict_node_proba(X_test[[k]])[0]
            page.line(f"{kind}: {collection.names[document]}", "bold")
            page.line(f'  "{collection.texts[document].partition(chr(10))[0]}"', "italic", shorten=True)
            _print_tree(page, taxonomy, node_proba, str(collection.labels[document]), str(stops[k]))
            page.line()


def _print_tree(page: _Page, taxonomy: Taxonomy, node_proba: NDArray[np.float64], label: str, stop: str) -> None:
    """Draw the nodes that matter, with the path to the true class and the node to stop at."""
    from rich.text import Text

    notes = dict.fromkeys(taxonomy.path(label), "true")
    notes[stop] = "true, stop" if stop in notes else "stop"
    drawing = taxonomy.to_text(values=node_proba, least=LEAST_SHOWN, notes=notes, ascii_only=page.plain)
    text = Text(textwrap.indent(drawing, "  "))
    text.highlight_regex(r"(?m)^.* %  true.*$", "green")
    text.highlight_regex(r"(?m)stop$", "bold yellow")
    page.console.print(text, soft_wrap=True)


def _print_next(page: _Page) -> None:
    page.line("Next, with texts and labels of your own:", "bold")
    for line in DEMO_NEXT.splitlines():
        highlight = page.console.is_terminal
        page.console.print(f"    {line}", markup=False, highlight=highlight, soft_wrap=True)


COMMAND = Command(
    DemoOptions,
    run,
    "Train classifiers on most docstrings of numpy, scipy and scikit-learn, with and without the tree of modules, and "
    "a pool of them, and let them name the modules of the others. This needs no data and no network.",
)
