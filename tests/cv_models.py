"""Models whose hyperparameters are learned: kernels, ways to share them, and a small problem to try them on."""

import numpy as np

from taxolearn import Independent, Taxonomy, Tree
from taxolearn.kernels import RBF, Linear, Matern, PerClass, PerGroup, PerNode

LABELS = ["a/x", "a/y", "b/x", "b/y/1", "b/y/2", "c"]
TAXONOMY = Taxonomy.from_labels(LABELS)
SEEN = [label for label in LABELS if label != "b/y/2"]  # the problem has no row of the other
FEATURES = 3

KERNELS = {
    "linear": Linear(0.5),
    "rbf": RBF(2.0, 3.0),
    "rbf per feature": RBF([1.0, 2.0, 3.0], 2.0),
    "matern": Matern(2.0, 1.5, 4.0),
    "sum": RBF(1.5, 2.0) + Linear(0.3),
}
TREE = {"taxonomy": TAXONOMY}
INDEPENDENT = {"taxonomy": TAXONOMY, "coupling": "independent"}

# From one kernel to a model: what becomes of the kernel, and the other arguments.
SHARINGS = {
    "flat": (lambda kernel: kernel, {}),
    "flat, taxonomy": (lambda kernel: kernel, INDEPENDENT),
    "flat, one group": (lambda kernel: kernel, INDEPENDENT | {"coupling": Independent("shared")}),
    "tree, shared": (lambda kernel: kernel, TREE | {"coupling": Tree("shared")}),
    "tree, level": (lambda kernel: kernel, TREE | {"coupling": Tree(variances=[2.0, 1.0, 0.5])}),
    "tree, subtree": (lambda kernel: kernel, TREE | {"coupling": Tree("subtree")}),
    "tree, node": (lambda kernel: kernel, TREE | {"coupling": Tree("node")}),
    "tree, no level 2": (lambda kernel: kernel, TREE | {"coupling": Tree(variances=[2.0, 0.0, 0.5])}),
    "PerClass": (PerClass, {}),
    "PerClass, correlation": (lambda kernel: PerClass(kernel, share="correlation"), {}),
    "mapping": (lambda kernel: {label: (1.0 + k) * kernel for k, label in enumerate(SEEN)}, {}),
    "list": (lambda kernel: [kernel, kernel, *[Linear(0.2 + 0.1 * k) for k in range(len(SEEN) - 2)]], {}),
    "PerNode": (PerNode, TREE),
    "PerGroup": (PerGroup, TREE | {"coupling": Tree(variances=[2.0, 1.0, 0.5])}),
    "PerGroup, flat": (PerGroup, INDEPENDENT | {"coupling": Independent(variances=[2.0, 1.0, 0.5])}),
    "PerGroup, correlation": (
        lambda kernel: PerGroup(kernel, share="correlation"),
        TREE | {"coupling": Tree("subtree")},
    ),
}

MAIN = ["flat", "tree, shared", "tree, level", "tree, subtree", "tree, node", "PerClass", "PerNode", "PerGroup"]
COMBINATIONS = [
    (kernel, sharing) for sharing in SHARINGS for kernel in KERNELS if sharing in MAIN or kernel in ("rbf", "sum")
]


def problem(n=30, seed=0):
    """Points around centres, at least two of each seen class."""
    rng = np.random.default_rng(seed)
    centres = {label: rng.standard_normal(FEATURES) for label in LABELS}
    y = np.concatenate([SEEN, SEEN, rng.choice(SEEN, size=n - 2 * len(SEEN))])
    return np.array([centres[label] for label in y]) + 0.8 * rng.standard_normal((n, FEATURES)), y


def classes_of(options):
    """In the order of the core."""
    return np.array(SEEN) if "taxonomy" not in options else TAXONOMY.classes


def shift(theta, seed=0, size=0.3):
    """A point nearby."""
    return theta + size * np.random.default_rng(seed).standard_normal(len(theta))
