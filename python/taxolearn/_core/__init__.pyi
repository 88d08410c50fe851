from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

simd_level: str

def available_threads() -> int: ...

class _Linear:
    def __init__(self, X: Any, variance: float, algorithm: str = "auto", n_threads: int = 1) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def parameters(self) -> int: ...
    def apply(self, S: npt.NDArray[Any], shift: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]: ...
    def apply_cross(self, X_new: Any, S: npt.NDArray[Any]) -> npt.NDArray[Any]: ...
    def diag(self) -> npt.NDArray[np.float64]: ...
    def bilinear_grad(self, E: npt.NDArray[Any], F: npt.NDArray[Any]) -> npt.NDArray[np.float64]: ...
    def select(self, rows: Sequence[int]) -> None: ...

class LinearSingle(_Linear): ...
class LinearDouble(_Linear): ...

class Kernel:
    @property
    def parameters(self) -> int: ...
    def matrix(self, X: Any, Y: Any = None, n_threads: int = 1) -> npt.NDArray[np.float64]: ...
    def diag(self, X: Any) -> npt.NDArray[np.float64]: ...
    def gradient(self, X: Any, Q: npt.NDArray[np.float64], n_threads: int = 1) -> npt.NDArray[np.float64]: ...

def LinearKernel(variance: float) -> Kernel: ...
def StationaryKernel(
    form: str, length_scales: npt.NDArray[np.float64], variance: float, alpha: float = 1.0
) -> Kernel: ...
def PolynomialKernel(degree: int, scale: float, offset: float, variance: float) -> Kernel: ...
def CosineKernel(variance: float) -> Kernel: ...
def PrecomputedKernel(variance: float) -> Kernel: ...
def SumKernel(kernels: Sequence[Kernel]) -> Kernel: ...
def ProductKernel(kernels: Sequence[Kernel]) -> Kernel: ...

class _KernelMatrices:
    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: Any,
        algorithm: str = "auto",
        rank: int = 0,
        rank_tolerance: float = 1e-3,
        memory_limit: float = 4e9,
        n_threads: int = 1,
    ) -> None: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def bytes(self) -> float: ...
    @property
    def rows(self) -> int: ...
    def apply(
        self, S: npt.NDArray[Any], kernel: int = 0, shift: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]: ...
    def apply_cross(self, X_new: Any, S: npt.NDArray[Any], kernel: int = 0) -> npt.NDArray[Any]: ...
    def diag(self, kernel: int = 0) -> npt.NDArray[np.float64]: ...
    def bilinear_grad(self, E: npt.NDArray[Any], F: npt.NDArray[Any], kernel: int = 0) -> npt.NDArray[np.float64]: ...
    def select(self, rows: Sequence[int]) -> None: ...

class KernelMatricesSingle(_KernelMatrices): ...
class KernelMatricesDouble(_KernelMatrices): ...

class CrossValidation:
    def __init__(
        self,
        *,
        X: Any,
        targets: npt.NDArray[Any],
        n_classes: int,
        sample_weight: npt.NDArray[np.float64] | None = None,
        fold_of: npt.NDArray[np.int32] | list[int],
        n_folds: int,
        n_threads: int = 1,
    ) -> None: ...
    def evaluate(
        self,
        *,
        kernels: list[Kernel],
        kernel_of: list[int] = ...,
        coupling: Coupling,
        sigma2: float,
        tol: float = 1e-4,
        adjoint_tol: float = 1e-4,
        max_iter: int = 1000,
        gradient: bool = True,
        kernel_gradient: bool = True,
        method: str = "lbfgs",
        strategy: str = "auto",
        precision: str = "auto",
        state: str = "auto",
        algorithm: str = "auto",
        memory_limit: float = 4e9,
        rank: int = 0,
        rank_tolerance: float = 1e-3,
        progress: Callable[[int, int, float, float, float], None] | None = None,
    ) -> dict[str, Any]: ...
    def accept(self) -> None: ...
    def state(self) -> dict[str, npt.NDArray[np.float32]] | None: ...
    def set_state(self, state: Mapping[str, npt.NDArray[Any]] | None) -> None: ...

class Softmax:
    def __init__(
        self, targets: npt.NDArray[Any], n_classes: int, weights: npt.NDArray[np.float64] | None = None
    ) -> None: ...
    def residual(self, u: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]: ...
    def line(self, u: npt.NDArray[np.float64], du: npt.NDArray[np.float64]) -> tuple[float, float, float]: ...
    def curve(self, u: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def root(self, state: npt.NDArray[np.float64], x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def root_transposed(
        self, state: npt.NDArray[np.float64], x: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]: ...
    def root_diagonal(self, state: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...

class Taxonomy:
    def __init__(self, parents: npt.NDArray[np.int64]) -> None: ...
    @property
    def nodes(self) -> int: ...
    @property
    def inner(self) -> int: ...
    def node_probabilities(
        self, proba: npt.NDArray[np.float64], columns: npt.NDArray[np.int64] | None = None, n_threads: int = 1
    ) -> npt.NDArray[np.float64]: ...
    def decide(
        self,
        proba: npt.NDArray[np.float64],
        loss: str,
        columns: npt.NDArray[np.int64] | None = None,
        costs: npt.NDArray[np.float64] | None = None,
        n_threads: int = 1,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    def decide_confident(
        self,
        proba: npt.NDArray[np.float64],
        confidence: float,
        columns: npt.NDArray[np.int64] | None = None,
        n_threads: int = 1,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...

class Coupling:
    @property
    def classes(self) -> int: ...
    @property
    def factors(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    def apply(self, S: npt.NDArray[Any], n_threads: int = 1) -> npt.NDArray[Any]: ...
    def to_factors(self, S: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def from_factors(self, A: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
    def diag(self) -> npt.NDArray[np.float64]: ...
    def bilinear_grad(self, E: npt.NDArray[np.float64], H: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...

class IndependentCoupling(Coupling):
    def __init__(self, variances: npt.NDArray[np.float64], groups: npt.NDArray[np.int64] | None = None) -> None: ...

class TreeCoupling(Coupling):
    def __init__(
        self,
        taxonomy: Taxonomy,
        variances: npt.NDArray[np.float64],
        groups: npt.NDArray[np.int64] | None = None,
    ) -> None: ...

class FactorCoupling(Coupling):
    def __init__(self, base: Coupling | None, loadings: npt.NDArray[np.float64]) -> None: ...

def fit_linear(
    *,
    X: Any,
    targets: npt.NDArray[Any],
    n_classes: int,
    sample_weight: npt.NDArray[np.float64] | None = None,
    coupling: Coupling | None = None,
    variance: float,
    sigma2: float,
    method: str = "lbfgs",
    state: str = "auto",
    precision: str = "auto",
    tol: float = 1e-6,
    max_iter: int = 1000,
    history: int = 0,
    start_weights: npt.NDArray[np.float64] | None = None,
    start_point: npt.NDArray[np.float64] | None = None,
    keep_point: bool = False,
    n_threads: int = 1,
    progress: Callable[[int, int, float, float, float], None] | None = None,
) -> dict[str, Any]: ...
def predict_linear(
    *,
    X: Any,
    weights: npt.NDArray[np.float32] | npt.NDArray[np.float64],
    intercepts: npt.NDArray[np.float64],
    output: str = "predictor",
    n_threads: int = 1,
) -> npt.NDArray[np.float64]: ...
def fit_kernels(
    *,
    kernels: Sequence[Kernel],
    kernel_of: Sequence[int] = (),
    X: Any,
    targets: npt.NDArray[Any],
    n_classes: int,
    sample_weight: npt.NDArray[np.float64] | None = None,
    coupling: Coupling | None = None,
    sigma2: float,
    method: str = "lbfgs",
    state: str = "auto",
    precision: str = "auto",
    tol: float = 1e-6,
    max_iter: int = 1000,
    history: int = 0,
    algorithm: str = "auto",
    memory_limit: float = 4e9,
    rank: int = 0,
    rank_tolerance: float = 1e-3,
    start_predictors: npt.NDArray[np.float64] | None = None,
    start_point: npt.NDArray[np.float64] | None = None,
    keep_point: bool = False,
    n_threads: int = 1,
    progress: Callable[[int, int, float, float, float], None] | None = None,
) -> dict[str, Any]: ...
def predict_kernels(
    *,
    kernels: Sequence[Kernel],
    bases: Sequence[Any],
    coefficients: Sequence[npt.NDArray[np.float64]],
    kernel_of: Sequence[int] = (),
    coupling: Coupling | None = None,
    X: Any,
    intercepts: npt.NDArray[np.float64],
    n_classes: int,
    output: str = "predictor",
    n_threads: int = 1,
) -> npt.NDArray[np.float64]: ...

class Vocabulary:
    def __init__(self, terms: Sequence[bytes]) -> None: ...
    def __len__(self) -> int: ...
    def count(
        self, texts: Sequence[bytes], unit: str, shortest: int, longest: int, n_threads: int
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], npt.NDArray[np.int64]]: ...

class SparseTextParser:
    def __init__(
        self,
        *,
        form: str,
        several_labels: bool = False,
        query_ids: bool = True,
        named_features: bool = False,
        vocabulary: Sequence[bytes] | None = None,
    ) -> None: ...
    def feed(self, text: bytes) -> None: ...
    def finish(self) -> dict[str, Any]: ...
    def vocabulary(self) -> list[bytes]: ...
