"""The pictures of the pages, from the library itself: python docs/pictures.py [name ...] writes docs/pictures/*.svg.

Seeds are fixed, grounds transparent, and tones such that pages in light and in dark colours can show the same file.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer

from taxolearn import CrossValidation, KernelLogisticClassifier, Solver, Taxonomy, Tree, datasets, plotting
from taxolearn.couplings import ClassFactors
from taxolearn.kernels import RBF, Linear
from taxolearn.model_selection import CrossValidationObjective

mpl.use("svg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).resolve().parent / "pictures"

# Of Okabe and Ito (2008), as far as they can be read on white and on black.
BLUE, RED, GREEN, ORANGE = "#2f8fd0", "#d9661f", "#1aa37a", "#d99000"
QUIET = "#858c96"
FAINT = "#858c9655"
# Clear at zero, so that the page shows through.
SIGNS = LinearSegmentedColormap.from_list("signs", [RED, "#d9661f00", "#2f8fd000", BLUE])

plt.rcParams.update(
    {
        "svg.hashsalt": "taxolearn",  # the same file from the same code
        "svg.fonttype": "path",
        "savefig.transparent": True,
        "savefig.bbox": "tight",
        "savefig.pad_inches": 0.08,
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), QUIET),
        **dict.fromkeys(("legend.labelcolor", "axes.titlecolor"), QUIET),
    }
)


def prior() -> Any:
    """Functions of nodes, drawn from the prior, and the functions of classes that they add up to."""
    tree = Taxonomy.from_labels(["animal/cat", "animal/dog", "plant"])
    places = {"animal": (0.21, 0.62), "plant": (0.5, 0.62), "animal/cat": (0.09, 0.17), "animal/dog": (0.33, 0.17)}
    colours = {"animal": ORANGE, "plant": GREEN, "animal/cat": BLUE, "animal/dog": RED}
    scales = {"animal": 1.0, "plant": 1.2, "animal/cat": 0.6, "animal/dog": 0.6}
    rng = np.random.default_rng(5)
    x = np.linspace(0, 6, 121)
    root_of_covariance = np.linalg.cholesky(RBF(1.0)(x[:, None]) + 1e-8 * np.eye(len(x)))
    functions = {name: scale * root_of_covariance @ rng.standard_normal(len(x)) for name, scale in scales.items()}

    figure = plt.figure(figsize=(8.4, 4.5))
    board = figure.add_axes((0, 0, 1, 1))
    board.set_axis_off()
    board.set(xlim=(0, 1), ylim=(0, 1))
    width, height = 0.17, 0.2
    for name, (middle, level) in places.items():
        above = places.get(tree.parent(name))
        top = (0.355, 0.95) if above is None else (above[0], above[1] - height / 2 - 0.08)
        board.plot([top[0], middle], [top[1], level + height / 2 + 0.01], color=QUIET, linewidth=1.2)
        axes = small_axes(figure, (middle, level), (width, height))
        axes.plot(x, functions[name], color=colours[name], linewidth=2)
        board.text(middle, level - height / 2 - 0.015, f"g of {name.split('/')[-1]}", ha="center", va="top")
    board.text(0.355, 0.97, "functions of the nodes:\nindependent", ha="center", va="bottom")

    board.text(0.835, 0.97, "functions of the classes:\nsums along the path", ha="center", va="bottom")
    for level, name in zip((0.78, 0.47, 0.16), ("animal/cat", "animal/dog", "plant"), strict=True):
        path = [node for node in tree.path(name) if node in functions]
        axes = small_axes(figure, (0.835, level), (0.26, height))
        if len(path) > 1:
            axes.plot(x, functions[path[0]], color=colours[path[0]], linewidth=1.3, linestyle="--")
        axes.plot(x, sum(functions[node] for node in path), color=colours[name], linewidth=2)
        parts = [f"g of {node.split('/')[-1]}" for node in path]
        text = f"f of {name.split('/')[-1]} = {' + '.join(parts)}"
        board.text(0.835, level - height / 2 - 0.015, text, ha="center", va="top")
    board.axvline(0.645, color=FAINT, linewidth=1)
    return figure


def small_axes(figure: Any, centre: tuple[float, float], size: tuple[float, float]) -> Any:
    """Axes with a line at zero and nothing else, all of the same scale."""
    axes = figure.add_axes((centre[0] - size[0] / 2, centre[1] - size[1] / 2, *size))
    axes.set(ylim=(-2.4, 2.4))
    axes.set_axis_off()
    axes.axhline(0, color=FAINT, linewidth=1)
    return axes


def fit() -> Any:
    """Objective and certified gap of a fit that is stopped after every iteration."""
    texts, labels = datasets.load_docstrings(packages=["numpy"], return_X_y=True)
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    products, objectives, gaps = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for iterations in range(100):
            model = KernelLogisticClassifier(
                Linear(10.0),
                tuning=None,
                solver=Solver("lbfgs", space="coefficients"),
                max_iter=iterations,
                tol=1e-10,
            ).fit(X, labels)
            products.append(model.result_.products)
            objectives.append(model.result_.objective)
            gaps.append(model.result_.gap)
            if model.result_.status == "converged":
                break
    above = np.array(objectives) - objectives[-1] + gaps[-1]  # at least the distance from the minimum
    figure, axes = plt.subplots(figsize=(7.6, 3.9))
    axes.semilogy(products, objectives, color=QUIET, linewidth=2)
    axes.semilogy(products, gaps, color=BLUE, linewidth=2)
    axes.semilogy(products[:-1], above[:-1], color=RED, linewidth=2, linestyle="--")
    for tolerance in (1e-3, 1e-6):
        reached = next(k for k, gap in enumerate(gaps) if gap <= tolerance * objectives[k])
        axes.plot(products[reached], gaps[reached], "o", color=BLUE)
        note(axes, f"relative gap {tolerance:.0e}", (products[reached], gaps[reached]), (8, 5), color=BLUE)
    axes.set(xlabel="products with the kernel matrix", xlim=(0, products[-1] + 14))
    middle = len(products) // 2
    note(axes, "objective", (products[-1], objectives[-1]), (6, 0))
    note(axes, "certified gap", (products[-1], gaps[-1]), (6, 0), color=BLUE)
    note(
        axes,
        "what the objective\nis above its minimum",
        (products[middle], above[middle]),
        (-8, -12),
        "right",
        color=RED,
    )
    return figure


def note(axes: Any, text: str, at: Any, away: tuple[float, float], side: str = "left", **options: Any) -> None:
    """A text some points away from a place."""
    axes.annotate(text, at, away, textcoords="offset points", ha=side, va="center", **options)


def product() -> Any:
    """u = K A G + ...: one product serves all classes, and the tree acts on the other side."""
    data = datasets.make_hierarchy(60, branching=(3, 2), n_features=5, spread=1.2, noise=1.4, random_state=2)
    order = np.argsort(data.y, kind="stable")
    X, y, tree = data.X[order], np.asarray(data.y)[order], data.taxonomy
    kernel, intercept_variance = RBF(4.5, variance=2.0), 1.0
    model = KernelLogisticClassifier(
        kernel,
        taxonomy=tree,
        coupling=Tree(variances=[1.0, 0.5]),
        intercept_variance=intercept_variance,
        tuning=None,
        tol=1e-12,
    ).fit(X, y)
    truth = model.classes_[None, :] == y[:, None]
    coefficients = truth - model.predict_proba(X)  # at the minimum they are the residuals
    paths = [set(tree.path(name)) - {tree.names[0]} for name in model.classes_]
    weight = {name: 1.0 if tree.parent(name) == tree.names[0] else 0.5 for name in tree.names[1:]}
    coupling = np.array([[sum(weight[node] for node in a & b) for b in paths] for a in paths])
    M = kernel(X)
    u = M @ coefficients @ coupling + intercept_variance * coefficients.sum(axis=0)
    difference = (u - u.mean(axis=1, keepdims=True)) - (lambda f: f - f.mean(axis=1, keepdims=True))(
        model.decision_function(X)
    )
    assert np.abs(difference).max() < 1e-3, np.abs(difference).max()

    n, C = truth.shape
    figure, axes = plt.subplots(
        1, 4, figsize=(8.8, 3.6), width_ratios=[1.5, 0.42, 0.42, 0.42], gridspec_kw={"wspace": 0.55}
    )
    shown = (
        (axes[0], M, f"M\nkernel of the rows\n{n} x {n}"),
        (axes[1], coefficients, f"alpha\ncoefficients\n{n} x {C}"),
        (axes[2], coupling, f"G\ntree\n{C} x {C}"),
        (axes[3], u, f"u\npredictors\n{n} x {C}"),
    )
    for ax, matrix, name in shown:
        largest = np.abs(matrix).max()
        ax.imshow(matrix, cmap=SIGNS, vmin=-largest, vmax=largest, interpolation="none", aspect="auto")
        ax.set(xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set(visible=True, color=QUIET)
        ax.set_xlabel(name)
        ax.patch.set_alpha(0)
    axes[0].set_aspect("equal")
    axes[2].set_aspect("equal")
    for ax in axes[[1, 3]]:
        ax.set_box_aspect(1 / 0.28)
    figure.canvas.draw()  # only then are places known
    boxes = [ax.get_position() for ax in axes]
    for sign, left, right in zip("××=", boxes, boxes[1:], strict=False):
        figure.text((left.x1 + right.x0) / 2, 0.5, sign, ha="center", va="center", fontsize=20)
    return figure


def criterion() -> Any:
    """The criterion over one parameter with the steps of a search, and over two with the path of another."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, size=(400, 2))  # a board of nine squares in three colours, a tenth of the points wrong
    y = np.where(rng.random(400) < 0.1, rng.integers(0, 3, 400), np.floor(X).sum(axis=1).astype(int) % 3)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.7), gridspec_kw={"wspace": 0.28})

    kernel = RBF(5.0, variance=20.0, fixed="variance")
    tuning = CrossValidation(learn_intercept_variance=False)
    model = KernelLogisticClassifier(kernel, tuning=tuning)
    objective = CrossValidationObjective(model, X, y)
    scales = np.geomspace(0.07, 8, 41)
    losses = [mean_loss(objective, scale) for scale in scales]
    left.plot(scales, losses, color=QUIET, linewidth=1.6)
    found = model.fit(X, y).cv_result_
    for k, evaluation in enumerate(found.evaluations):
        at, slope = evaluation.theta[0], evaluation.gradient[0] / found.n_held_out
        loss = evaluation.value / found.n_held_out
        reach = 0.35 / np.hypot(1, slope / 0.5)
        around = np.array([-reach, reach])
        left.plot(np.exp(at + around), loss + slope * around, color=BLUE, linewidth=1.6)
        left.plot(np.exp(at), loss, "o", color=BLUE, markersize=5)
        if k < 3:
            note(left, str(k + 1), (np.exp(at), loss), (0, 13), "center", color=BLUE)
    left.set(xscale="log", xlabel="length scale", ylabel="cross-validated log loss")
    left.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], labels=["0.1", "0.2", "0.5", "1", "2", "5"])
    left.minorticks_off()

    both = RBF(4.0, variance=1.0)
    model = KernelLogisticClassifier(both, tuning=tuning)
    objective = CrossValidationObjective(model, X, y)
    search = model.fit(X, y).cv_result_
    path = np.exp(search.thetas)
    widths, heights = np.geomspace(0.07, 6, 25), np.geomspace(0.5, 40, 25)
    grid = [[mean_loss(objective, w, h) for w in widths] for h in heights]
    lines = right.contour(
        widths,
        heights,
        np.array(grid),
        levels=np.geomspace(min(map(min, grid)) * 1.01, 1.1, 12),
        colors=QUIET,
        linewidths=0.9,
    )
    right.clabel(lines, lines.levels[::3], fmt="%.2f", fontsize=8)
    right.plot(path[:, 0], path[:, 1], "-", color=BLUE, linewidth=1.6)
    right.plot(path[:, 0], path[:, 1], "o", color=BLUE, markersize=4)
    right.plot(*path[search.best], "*", color=RED, markersize=13)
    note(right, "start", path[0], (0, 11), "center", color=BLUE)
    right.set(xscale="log", yscale="log", xlabel="length scale", ylabel="variance")
    right.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], labels=["0.1", "0.2", "0.5", "1", "2", "5"])
    right.minorticks_off()
    return figure


def mean_loss(objective: CrossValidationObjective, *parameters: float) -> float:
    return objective.value(np.log(parameters), tol=1e-3) / objective.n_held_out


def answer() -> Any:
    """The tree of modules with the probabilities of one question, and where a sure answer stops."""
    texts, labels = datasets.load_docstrings(packages=["numpy", "scipy"], return_X_y=True)
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    model = KernelLogisticClassifier(Linear(100.0), taxonomy=Taxonomy.from_labels(labels), tuning=None, tol=1e-4)
    model.fit(vectorizer.fit_transform(texts), labels)
    question = "Find the eigenvalues of a sparse matrix"
    X = vectorizer.transform([question])
    tree, proba = model.taxonomy_, dict(zip(model.taxonomy_.names, model.predict_node_proba(X)[0], strict=True))
    sure = model.decide(X, confidence=0.9)[0]
    best = model.predict(X)[0]

    rows: list[tuple[int, Any, Any]] = []  # depth, node, parent

    def visit(node: Any, parent: Any, depth: int) -> None:
        rows.append((depth, node, parent))
        children = sorted(tree.children(node), key=proba.get, reverse=True)
        for child in children[: 3 if proba[node] > 0.5 else 0]:
            visit(child, node, depth + 1)

    visit(tree.names[0], None, 0)
    figure, axes = plt.subplots(figsize=(8.4, 0.36 * len(rows) + 0.7))
    axes.set_axis_off()
    place = {node: (depth, -k) for k, (depth, node, _) in enumerate(rows)}
    for _, node, parent in rows[1:]:
        (x0, y0), (x1, y1) = place[parent], place[node]
        axes.plot([x0 + 0.12, x0 + 0.12, x1], [y0 - 0.35, y1, y1], color=FAINT, linewidth=1.2)
    start, length = 5.9, 2.7
    for node, (x, y) in place.items():
        colour = BLUE if node == sure else QUIET
        weight = "bold" if node in (sure, best) else "normal"
        axes.text(x + 0.06, y, str(node), va="center", color=colour, weight=weight)
        axes.barh(y, length * proba[node], 0.5, start, color=colour if node == sure else "#858c9699")
        axes.text(start + length * proba[node] + 0.08, y, f"{proba[node]:.2f}", va="center", color=colour)
    axes.plot([start + 0.9 * length] * 2, [0.6, -len(rows) + 0.4], color=RED, linewidth=1, linestyle=":")
    axes.text(start + 0.9 * length, 0.7, "0.9", color=RED, ha="center", va="bottom")
    axes.text(0, 1.0, f"“{question}”", va="bottom", style="italic")
    axes.set(xlim=(-0.05, 9.2), ylim=(-len(rows) + 0.3, 1.6))
    return figure


def similar() -> Any:
    """The newsgroups that a learned coupling found to go together, from the results of the benchmark."""
    results = json.loads((FOLDER.parents[1] / "bench" / "results" / "learned_coupling.json").read_text("utf-8"))
    (row,) = (
        row for row in results["rows"] if (row["problem"], row["library"]) == ("news20", "taxolearn, learned, rank 5")
    )
    factors = ClassFactors(np.array(row["loadings"]), np.array(row["classes"]))
    return plotting.class_similarity(factors).figure


PICTURES = {
    "prior": prior,
    "fit": fit,
    "product": product,
    "criterion": criterion,
    "answer": answer,
    "similar": similar,
}


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names or PICTURES:
        figure = PICTURES[name]()
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
