"""A long fit among people: Ctrl-C stops it, it stays on its threads, and it shows its progress where it should."""

import os
import pty
import re
import select
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from taxolearn import _core

# Fits that would take minutes: an accuracy that is never reached, or a kernel matrix of many rows to be stored.
PROBLEMS = {
    "coefficients": "X, way, tol = rows(20000, 5000, 40), Solver(space='coefficients', precision='double'), 1e-30",
    "weights": "X, way, tol = rows(20000, 5000, 40), Solver(space='weights', precision='double'), 1e-30",
    "newton": "X, way, tol = rows(20000, 5000, 40), Solver('newton', precision='double'), 1e-30",
    "stored": "X, way = rows(6000, 20000, 800), Solver(space='coefficients', precision='double')",
    "filling": "X, kernel = generator.standard_normal((20000, 300)), RBF(20.0)",
    "gram": "X, kernel, way, tol = generator.standard_normal((8000, 5)), RBF(), Solver(precision='double'), 1e-30",
    "tiled": "X, kernel, way = generator.standard_normal((30000, 20)), RBF(5.0), Solver(products='tiled')",
    "low_rank": "X, kernel, way = generator.standard_normal((50000, 50)), RBF(10.0), Solver(rank=4000)",
    "exact": "X, kernel, way = generator.standard_normal((3000, 5)), RBF(), 'exact'",
}
INTERRUPT = """
    import os, signal, sys, threading, time
    import numpy as np
    import scipy.sparse as sp
    from taxolearn import KernelLogisticClassifier, Solver
    from taxolearn.kernels import RBF, Linear

    generator = np.random.default_rng(0)

    def rows(n, d, per_row):
        indices = np.sort(generator.integers(0, d, (n, per_row)), axis=1).ravel()
        values = generator.standard_normal(n * per_row)
        return sp.csr_array((values, indices, np.arange(n + 1) * per_row), shape=(n, d))

    kernel, way, tol = Linear(), "auto", 1e-6
    {problem}
    settings = dict(tol=tol, solver=way, tuning=None, max_iter=10**6, n_threads={threads})
    y = np.arange(X.shape[0]) % 50
    sent = []

    def send():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0, send)
    timer.start()
    begin = time.perf_counter()
    try:
        KernelLogisticClassifier(kernel, **settings).fit(X, y)
        print("ended after", time.perf_counter() - begin)
    except KeyboardInterrupt:
        print("interrupted", (time.process_time() - sent[0]) / {threads})
    model = KernelLogisticClassifier(tuning=None).fit(np.eye(4), [0, 1, 2, 3])
    print("second", model.predict(np.eye(4)).tolist())
"""


@pytest.mark.parametrize(
    ("problem", "threads"), [*((name, 1) for name in PROBLEMS), ("coefficients", 2), ("gram", 2), ("tiled", 2)]
)
def test_ctrl_c_stops_a_fit_within_a_second_of_work(run_python, problem, threads):
    done = run_python(INTERRUPT.format(problem=PROBLEMS[problem], threads=threads))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("interrupted"), done.stdout
    assert float(first.split()[1]) < 1
    assert second == "second [0, 1, 2, 3]"


def test_one_thread_uses_one_processor(run_python):
    done = run_python("""
        import time
        import numpy as np
        from taxolearn import KernelLogisticClassifier

        X = np.random.default_rng(0).standard_normal((4000, 200))
        y = np.arange(4000) % 20
        model = KernelLogisticClassifier(n_threads=1, tol=1e-9, tuning=None)
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(3):
            model.fit(X, y).predict_proba(X)
        print((time.process_time() - cpu) / (time.perf_counter() - wall))
    """)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.25


class CallbackError(Exception):
    pass


def fit_by_core(X, progress, **settings):
    return _core.fit(
        X=X,
        likelihood=_core.Softmax(X[:, :4].argmax(axis=1).astype(np.int32), 4),
        prior=_core.Prior(kernels=[_core.LinearKernel(1.0)], intercept_variance=1.0),
        settings=_core.FitSettings(**settings),
        progress=progress,
    )


@pytest.mark.parametrize("state", ["coefficients", "weights"])
@pytest.mark.parametrize("method", ["lbfgs", "ncg", "newton"])
@pytest.mark.parametrize("iteration", [1, 3])
def test_exception_of_the_progress_callback_comes_through(state, method, iteration):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((300, 20))
    seen = []

    def progress(*values):
        seen.append(values)
        if values[0] == iteration:
            raise CallbackError("as asked")

    with pytest.raises(CallbackError, match="as asked"):
        fit_by_core(
            X,
            progress,
            method=_core.Method[method],
            space=_core.Space["auto" if method == "newton" else state],
            tol=1e-12,
            max_iter=3,  # so that the second case raises after the last iteration
        )
    assert [values[0] for values in seen] == list(range(1, iteration + 1))


@pytest.mark.parametrize("method", ["lbfgs", "ncg", "newton"])
def test_progress_tells_every_iteration(method):
    X = np.random.default_rng(0).standard_normal((300, 20))
    seen = []
    outcome = fit_by_core(X, lambda *values: seen.append(values), method=_core.Method[method])
    iterations, products, objectives, gaps, seconds = map(np.array, zip(*seen, strict=True))
    np.testing.assert_array_equal(iterations, np.arange(1, outcome.iterations + 1))
    assert (np.diff(products) > 0).all()
    assert products[-1] <= outcome.products
    assert (np.diff(objectives) <= 0).all()
    assert objectives[-1] == pytest.approx(outcome.objective, rel=1e-9)
    assert gaps[-1] == pytest.approx(outcome.relative_gap, rel=1e-2)
    assert (np.diff(seconds) >= 0).all()


SHORT_FIT = """
    import sys
    import numpy as np
    from taxolearn import KernelLogisticClassifier

    X = np.random.default_rng(0).standard_normal((300, 20))
    y = X[:, :4].argmax(axis=1)
    print(KernelLogisticClassifier(verbose=int(sys.argv[1]), tuning=None).fit(X, y).n_iter_)
"""


@pytest.mark.parametrize("verbose", [0, 1])
def test_no_progress_away_from_a_terminal(run_python, verbose):
    done = run_python(SHORT_FIT, verbose)
    assert done.returncode == 0
    assert done.stderr == ""


def test_verbose_2_prints_a_line_per_iteration(run_python):
    done = run_python(SHORT_FIT, 2)
    lines = done.stderr.splitlines()
    assert len(lines) == int(done.stdout) > 2
    pattern = r"iteration +(\d+)  products +\d+  objective \d+\.\d+  relative gap \d\.\d\de[-+]\d\d  \d+\.\d\d s"
    numbers = [int(re.fullmatch(pattern, line)[1]) for line in lines]
    assert numbers == list(range(1, len(lines) + 1))


def on_a_terminal(program, *arguments):
    """What the program's standard error shows on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            ready, _, _ = select.select([ours], [], [], 1.0)
            if not ready:
                continue
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            shown += part
        assert process.wait(timeout=60) == 0, shown.decode(errors="replace")
    finally:
        process.kill()
        os.close(ours)
    return shown.decode(errors="replace")


def test_bar_on_a_terminal():
    shown = on_a_terminal(SHORT_FIT, 1)
    assert "fitting" in shown
    assert "iteration" in shown
    assert "relative gap" in shown


def test_short_fit_shows_no_bar_unasked():
    assert on_a_terminal(SHORT_FIT, 0) == ""
