"""Objectives that take no time, for tests of the search around them."""

import time

import numpy as np

from taxolearn.tuning.search import Evaluation


def quadratic(theta):
    """Curvatures from 0.1 up; the minimum 0.5 is at ones."""
    curvatures = 0.1 * 5.0 ** np.arange(len(theta))
    return 0.5 + curvatures @ (theta - 1) ** 2 / 2, curvatures * (theta - 1)


def rosenbrock(theta):
    """A curved valley; the minimum 0.3 is at ones."""
    x, y = theta
    return 0.3 + (1 - x) ** 2 / 10 + 10 * (y - x**2) ** 2, np.array(
        [-(1 - x) / 5 - 40 * x * (y - x**2), 20 * (y - x**2)]
    )


class Toy:
    """An objective with an inner state: what an evaluation gives depends a little on the last accepted one.

    Parameters
    ----------
    function : callable
        Mean value and gradient at theta.
    start : list of float
    bounds : list of pairs, default=None
        None stands for (-11, 11) each.
    fails : callable, default=None
        Whether the evaluation of this theta, number and tolerance misses its tolerance.
    disturb : callable, default=None
        Called with the number of each evaluation before it is made, and its progress callback.
    seconds : float, default=0
        To sleep in each evaluation.
    """

    n_held_out = 20.0

    def __init__(self, function, start, bounds=None, fails=None, disturb=None, seconds=0.0):
        self.function = function
        self.theta = np.array(start, dtype=float)
        self.bounds = np.array([[-11.0, 11.0]] * len(start) if bounds is None else bounds, dtype=float).reshape(-1, 2)
        self.names = tuple(f"kernels[{k}].variance" for k in range(len(start)))
        self.fails = fails or (lambda theta, number, tol: False)
        self.disturb = disturb or (lambda number, progress: None)
        self.seconds = seconds
        self.calls = []  # theta, tolerance
        self.accepted = []  # numbers of calls
        self.inner = None

    def evaluate(self, theta, tol, progress=None):
        number = len(self.calls)
        self.disturb(number, progress)
        self.calls.append((theta.copy(), tol))
        time.sleep(self.seconds)
        inner = 0.0 if self.inner is None else float(self.inner["fits"].sum())
        value, gradient = self.function(theta)
        value += 1e-3 * tol * np.sin(1e3 * inner)
        failed = self.fails(theta, number, tol)
        self._reached = {"fits": np.sin(np.arange(3) + theta.sum() + inner).astype(np.float32)}
        gap = 1.0 if failed else tol / 2
        return Evaluation(
            theta, value * self.n_held_out, gradient * self.n_held_out, not failed, gap, 10 + number, 0.25
        )

    def accept(self):
        self.accepted.append(len(self.calls) - 1)
        self.inner = self._reached

    def state(self):
        return self.inner

    def set_state(self, state):
        assert all(array.dtype == np.float32 for array in state.values())
        self.inner = state
