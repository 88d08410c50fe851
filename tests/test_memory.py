"""Memory of a fit beyond its inputs, in multiples of one n x C matrix of doubles, against what the method needs.

The sizes make everything but these matrices small. What a fit holds at its peak:

coefficients  alpha and u, and per slot a vector and its image in the precision of the products
weights       u and one image; slots of (d + 1) C doubles
newton        coefficients; gradient, image, state and step, two diagonals, the right side and scratch of the linear
              system, and four matrices of conjugate gradients: twelve in all
products      panels of a few columns, and the inputs by rows and by columns
"""

import pytest

from taxolearn._core import _cpu, simd_level

ROWS, FEATURES, CLASSES, PER_ROW = 50_000, 100, 100, 4
HISTORY = {"coefficients": 2, "weights": 20}  # pairs that L-BFGS keeps
# Columns of a product's panel in double precision, which stay in the registers: fewer where these are half as wide.
PANEL = 24 if (_cpu.level() if simd_level == "native" else simd_level) in ("v2", "v3") else 64
NEWTON = 12  # matrices beyond alpha, u and the slots
LEAST, MOST = 0.9, 1.08  # measured by expected
MEASURE = """
    import re, sys
    import numpy as np
    import scipy.sparse as sp
    from taxolearn import KernelLogisticClassifier, Solver
    from taxolearn.kernels import Linear

    rows, features, classes, per_row, method, state, precision, iterations = sys.argv[1:]
    n, d, per_row = int(rows), int(features), int(per_row)

    def status(name):
        with open("/proc/self/status") as file:
            return 1024 * int(re.search(name + r":\\s+(\\d+) kB", file.read())[1])

    generator = np.random.default_rng(0)
    indices = np.sort(generator.integers(0, d, (n, per_row)), axis=1).ravel().astype(np.int32)
    values = generator.standard_normal(n * per_row)
    X = sp.csr_array((values, indices, np.arange(n + 1, dtype=np.int32) * per_row), shape=(n, d))
    y = np.arange(n) % int(classes)
    KernelLogisticClassifier(n_threads=1, tuning=None).fit(np.eye(5), np.arange(5))
    solver = Solver(method, space=state, precision=precision)
    model = KernelLogisticClassifier(
        Linear(), tuning=None, solver=solver, max_iter=int(iterations), tol=1e-30, n_threads=1
    )
    before = status("VmRSS")
    model.fit(X, y)
    print(status("VmHWM") - before, model.result_.iterations)
"""


def expected(method, state, precision):
    """Bytes, in matrices of n x C doubles."""
    number = 0.5 if precision == "single" else 1.0
    slots = {"lbfgs": 2 * HISTORY[state] + 1, "ncg": 3, "newton": 2}[method]
    panel = PANEL / CLASSES * number  # columns of n rows
    copies = 2 * PER_ROW * (4 + 8 * number) / (8 * CLASSES)
    weights = (FEATURES + 1) / ROWS
    if state == "weights":
        return 1 + number + (slots + 3) * weights + panel + copies
    return 2 + 2 * slots * number + (NEWTON if method == "newton" else 0) + 2 * weights + panel + copies


@pytest.mark.parametrize(
    ("method", "state", "precision", "iterations"),
    [
        ("lbfgs", "coefficients", "single", 8),  # enough iterations to touch every slot
        ("lbfgs", "coefficients", "double", 8),
        ("ncg", "coefficients", "single", 4),
        ("ncg", "coefficients", "double", 4),
        ("lbfgs", "weights", "single", 5),  # slots are small here
        ("lbfgs", "weights", "double", 5),
        ("newton", "coefficients", "double", 1),
    ],
)
def test_peak_memory(run_python, method, state, precision, iterations):
    done = run_python(MEASURE, ROWS, FEATURES, CLASSES, PER_ROW, method, state, precision, iterations)
    assert done.returncode == 0, done.stderr
    peak, reached = map(int, done.stdout.split())
    assert reached == iterations
    unit = 8 * ROWS * CLASSES
    found, wanted = peak / unit, expected(method, state, precision)
    assert LEAST <= found / wanted <= MOST, f"{found:.2f} matrices of {unit >> 20} MB, expected {wanted:.2f}"
