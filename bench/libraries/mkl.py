"""MKL, through sparse_dot_mkl."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.libraries import scipy
from bench.libraries.contracts import Solver, SolverEntry, Task


def sparse_product() -> Callable[[Any, Any], Any]:
    """Import the products of sparse matrices by MKL, whose library may be in this environment."""
    for path in Path(sys.prefix, "lib").glob("libmkl_rt.so*"):
        os.environ.setdefault("MKL_RT", str(path))
    product: Callable[[Any, Any], Any] = importlib.import_module("sparse_dot_mkl").dot_product_mkl
    return product


def solver(task: Task) -> Solver:
    """SciPy's L-BFGS-B with products by MKL."""
    return scipy.solver(task, sparse_product())


SOLVERS = {"scipy L-BFGS-B, MKL": SolverEntry(solver, dense=False)}
