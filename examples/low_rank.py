"""Many rows by a kernel of low rank.

Four thousand points on a board of noisy squares. Their kernel matrix would take 32 MB in single precision, at half
its size; the approximation takes a fraction. One learns how to choose a rank, or a tolerance that finds it, and how
to see what the approximation costs: its log loss beside that of the exact model, which a small `memory_limit` has
computed by tiles.
"""

from time import perf_counter

import numpy as np

from taxolearn import KernelLogisticClassifier, Solver, metrics
from taxolearn.kernels import RBF

rng = np.random.default_rng(0)
X, X_test = rng.uniform(0, 6, size=(4000, 2)), rng.uniform(0, 6, size=(2000, 2))


def colours(points):
    """Three, in turns along rows and columns of squares; a tenth of the points has any of them."""
    right = np.floor(points).sum(axis=1).astype(int) % 3
    return np.where(rng.random(len(points)) < 0.1, rng.integers(0, 3, len(points)), right)


y, y_test = colours(X), colours(X_test)
kernel = RBF(length_scale=0.7, variance=10.0)

for solver in (Solver(rank=30), Solver(rank=150), Solver(rank_tolerance=0.01), Solver(memory_limit="8 MB")):
    started = perf_counter()
    model = KernelLogisticClassifier(kernel, tuning=None, tol=1e-4, solver=solver).fit(X, y)
    seconds = perf_counter() - started
    loss = metrics.log_loss(y_test, model.predict_proba(X_test), classes=model.classes_)
    rank = model.result_.ranks[0] if model.result_.ranks else "full"
    print(
        f"{model.result_.algorithm:8s} rank {rank!s:>4s}  {model.result_.kernel_bytes / 1e6:5.1f} MB  "
        f"log loss {loss:.4f}  {seconds:.2f} s"
    )
