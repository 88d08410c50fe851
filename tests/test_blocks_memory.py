"""Memory of a fit to a wide sparse and a dense block beyond these, against what the method needs.

No block is made dense, put together with another, or copied more than its operator does: in single precision the dense
one not at all, the sparse one by rows and by columns. The rest are some vectors of predictors and of weights.
"""

import pytest

ROWS, FEATURES, PER_ROW, WIDTH, CLASSES = 100_000, 50_000, 30, 384, 4
MEASURE = """
    import re, sys, warnings
    import numpy as np
    import scipy.sparse as sp
    from taxolearn import Blocks, KernelLogisticClassifier, Solver
    from taxolearn.kernels import Linear

    *sizes, space = sys.argv[1:]
    n, d, per_row, width, classes = map(int, sizes)

    def status(name):
        with open("/proc/self/status") as file:
            return 1024 * int(re.search(name + r":\\s+(\\d+) kB", file.read())[1])

    generator = np.random.default_rng(0)
    indices = np.sort(generator.integers(0, d, (n, per_row), dtype=np.int32), axis=1).ravel()
    values = np.ones(n * per_row, dtype=np.float32)
    words = sp.csr_array((values, indices, np.arange(n + 1, dtype=np.int32) * per_row), shape=(n, d))
    X = Blocks({"words": words, "embedding": generator.standard_normal((n, width), dtype=np.float32)})
    y = np.arange(n) % classes
    warnings.simplefilter("ignore")  # of iterations
    KernelLogisticClassifier(n_threads=1, tuning=None).fit(np.eye(5), np.arange(5))
    kernel = {"words": Linear(0.1), "embedding": Linear(0.01)}
    solver = Solver("ncg", space=space, precision="single")
    model = KernelLogisticClassifier(kernel, tuning=None, solver=solver, max_iter=2, tol=1e-30, n_threads=1)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    model.fit(X, y)
    print(status("VmHWM") - before, model.result_.iterations, model.result_.algorithm)
"""


@pytest.mark.slow
@pytest.mark.parametrize("space", ["coefficients", "weights"])
def test_peak_memory(run_python, space):
    done = run_python(MEASURE, ROWS, FEATURES, PER_ROW, WIDTH, CLASSES, space)
    assert done.returncode == 0, done.stderr
    peak, iterations, algorithm = done.stdout.split()
    assert (iterations, algorithm) == ("2", "blocks")
    dense, sparse, values = 4 * ROWS * WIDTH, 8 * ROWS * PER_ROW, 8 * ROWS * CLASSES
    most = 2 * sparse + 10 * values + 10 * 8 * (FEATURES + WIDTH) * CLASSES
    assert most < dense, "a copy of the dense block must not go unnoticed"
    assert int(peak) < most, f"{int(peak) / 1e6:.0f} MB; the dense block has {dense / 1e6:.0f}"
