"""How a fit is computed: the estimator's argument ``solver``."""

import os
import re
from numbers import Real
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from taxolearn import _core
from taxolearn.validation import check_choice, check_number

__all__ = ["Solver", "as_solver"]

_METHODS = tuple(_core.Method.__members__)
_SPACES = tuple(_core.Space.__members__)
_PRECISIONS = tuple(_core.Precision.__members__)
_PRODUCTS = tuple(_core.KernelAlgorithm.__members__)
_DUAL = ("newton", "exact")  # methods that work on coefficients only
_UNITS = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SHARE = 0.5  # of the machine's memory, where nothing is said
_UNKNOWN = 4e9  # bytes, where the machine says nothing
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class Solver(BaseEstimator):
    """How a fit is computed: ``solver=Solver("ncg", precision="double")``. All ways lead to the same model.

    Only ``products="low_rank"``, or a rank, makes it an approximation.

    Parameters
    ----------
    method : {"auto", "lbfgs", "ncg", "newton", "exact"}, default="auto"
        Limited-memory BFGS; nonlinear conjugate gradients, which needs the least memory; Newton steps by linear
        conjugate gradients, slower, as a cross-check; or Newton steps by Cholesky factors, for flat models, in time
        O(n_classes n_samples^3). "auto" is "lbfgs" where its vectors fit into ``memory_limit``, else "ncg", and "exact"
        where these do not converge on a small flat problem. ``result_.reason`` says what was chosen and why.
    space : {"auto", "coefficients", "weights"}, default="auto"
        Work on dual coefficients (one per row and class) or on primal weights (one per feature and class, or node);
        "auto" takes the smaller. Both give the same model. Weights exist for the linear kernel only.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the products with the inputs. "auto" uses single precision for large problems and changes to double
        when the certificate asks for it. The certificate is always in double precision.
    products : {"auto", "gram", "tiled", "low_rank"}, default="auto"
        How to multiply with kernel matrices. "gram" stores them; "tiled" computes their entries anew for each product
        and needs next to no memory; "low_rank" approximates them by an incomplete Cholesky factorization. "auto" is
        "gram" where it fits into ``memory_limit``, else "tiled", and "low_rank" if a rank or its tolerance is given.
        For the linear kernel it uses the features themselves.
    rank : int, default=None
        Largest rank of the approximation by "low_rank".
    rank_tolerance : float, default=None
        Share of the trace of the kernel matrix at which to stop raising the rank; None means 0 where a rank is given,
        else 0.001.
    memory_limit : float or str, default=None
        Bytes, or a text like "8 GB", that kernel matrices may take; None means half of the machine's memory.
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        space: str = "auto",
        precision: str = "auto",
        products: str = "auto",
        rank: int | None = None,
        rank_tolerance: float | None = None,
        memory_limit: float | str | None = None,
    ) -> None:
        self.method = method
        self.space = space
        self.precision = precision
        self.products = products
        self.rank = rank
        self.rank_tolerance = rank_tolerance
        self.memory_limit = memory_limit

    def check(self) -> None:
        """Raises an error for what cannot be."""
        check_choice("method", self.method, _METHODS)
        check_choice("space", self.space, _SPACES)
        check_choice("precision", self.precision, _PRECISIONS)
        check_choice("products", self.products, _PRODUCTS)
        if self.space == "weights" and self.method in _DUAL:
            raise ValueError(
                f'Solver(method={self.method!r}) works on coefficients; choose space="coefficients" or "auto", got '
                '"weights"'
            )
        if self.rank is not None:
            check_number("rank", self.rank, least=1, integer=True)
        if self.rank_tolerance is not None:
            tolerance = check_number("rank_tolerance", self.rank_tolerance, least=0)
            if tolerance >= 1:
                raise ValueError(f"rank_tolerance is a share of the trace: it must be below 1, got {tolerance}")
        if self.products in ("gram", "tiled") and not (self.rank is None and self.rank_tolerance is None):
            raise ValueError(f'rank and rank_tolerance belong to products="low_rank", got products={self.products!r}')

    def kernel_settings(self) -> _core.KernelSettings:
        """How products with kernel matrices are done, in the core's form."""
        return _core.KernelSettings(
            algorithm=_core.KernelAlgorithm[self.products],
            memory_limit=check_memory_limit(self.memory_limit),
            rank=self.rank,
            rank_tolerance=self.rank_tolerance,
        )

    def fit_settings(self, tol: float, max_iter: int, *, keep_point: bool = False) -> _core.FitSettings:
        """How a fit is done, in the core's form."""
        return _core.FitSettings(
            method=_core.Method[self.method],
            space=_core.Space[self.space],
            precision=_core.Precision[self.precision],
            tol=tol,
            max_iter=max_iter,
            memory_limit=check_memory_limit(self.memory_limit),
            keep_point=keep_point,
        )


def as_solver(solver: Any) -> Solver:
    """The checked value that an estimator's argument means: a solver, or the name of a method."""
    if isinstance(solver, str) and solver in _METHODS:
        return Solver(solver)
    if not isinstance(solver, Solver):
        choices = ", ".join(map(repr, _METHODS))
        raise ValueError(f"solver is {solver!r}, expected one of {choices}, or a Solver")
    solver.check()
    return solver


def check_memory_limit(limit: object) -> float:
    """Bytes from a number of them or a text like "8 GB"; None means half of the memory this process may use."""
    if limit is None:
        return _SHARE * _available()
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kKmMgGtT]?[bB])\s*", limit)
        if found is None:
            raise ValueError(f'memory_limit is {limit!r}, expected a number of bytes or a text like "8 GB"')
        return float(found[1]) * _UNITS[found[2].upper()]
    if isinstance(limit, bool) or not isinstance(limit, Real):
        raise TypeError(f'memory_limit must be a number of bytes or a text like "8 GB", got {type(limit).__name__}')
    bytes_ = float(limit)
    if not 0 <= bytes_ < float("inf"):
        raise ValueError(f"memory_limit must be finite and at least 0, got {limit!r}")
    return bytes_


def _available() -> float:
    """The machine's memory, or what a container grants of it. It does not depend on what else is running."""
    try:
        physical = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN
    return min(physical, *map(_limit, _GROUP_LIMITS))


def _limit(path: str) -> float:
    try:
        return float(Path(path).read_text())
    except (OSError, ValueError):  # no such group, or "max"
        return float("inf")
