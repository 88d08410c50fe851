import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_ProgressCallback: TypeAlias = Callable[[int, int, float, float, float], None]

simd_level: str

def available_threads() -> int: ...

class Kernel:
    @property
    def parameters(self) -> int: ...
    def matrix(self, X: Any, Y: Any = None, n_threads: int = 1, single: bool = False) -> Any: ...
    def diag(self, X: Any) -> _Floats: ...
    def gradient(self, X: Any, Q: _Floats, n_threads: int = 1) -> _Floats: ...

def LinearKernel(variance: float) -> Kernel: ...
def StationaryKernel(form: str, length_scales: _Floats, variance: float, alpha: float = 1.0) -> Kernel: ...
def PolynomialKernel(degree: int, scale: float, offset: float, variance: float) -> Kernel: ...
def CosineKernel(variance: float) -> Kernel: ...
def PrecomputedKernel(variance: float) -> Kernel: ...
def SubsequenceKernel(length: int, decay: float, normalized: bool, variance: float) -> Kernel: ...
def SpectrumKernel(lengths: Sequence[int], normalized: bool, variance: float) -> Kernel: ...
def WeightedDegreeKernel(lengths: Sequence[int], normalized: bool, variance: float) -> Kernel: ...
def SumKernel(kernels: Sequence[Kernel]) -> Kernel: ...
def ProductKernel(kernels: Sequence[Kernel]) -> Kernel: ...
def BlockKernel(parts: Sequence[Kernel]) -> Kernel: ...

class Link(enum.Enum):
    softmax = 0
    logistic = 1
    none = 2
    one_of = 3

class Output(enum.Enum):
    predictor = 0
    probability = 1
    log_probability = 2

class Method(enum.Enum):
    auto = 0
    lbfgs = 1
    ncg = 2
    newton = 3
    exact = 4

class Space(enum.Enum):
    auto = 0
    coefficients = 1
    weights = 2

class Precision(enum.Enum):
    auto = 0
    single = 1
    double = 2

class Status(enum.Enum):
    converged = 0
    max_iter = 1
    stalled = 2

class KernelAlgorithm(enum.Enum):
    auto = 0
    gram = 1
    tiled = 2
    low_rank = 3

class Strategy(enum.Enum):
    auto = 0
    stacked = 1
    shuffled = 2

class Likelihood:
    @property
    def rows(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def link(self) -> Link: ...

def Softmax(targets: npt.NDArray[Any], n_outputs: int, sample_weight: _Floats | None = None) -> Likelihood: ...
def IndependentLogistic(
    targets: npt.NDArray[Any], n_outputs: int, sample_weight: _Floats | None = None
) -> Likelihood: ...
def IndependentLogisticOfSets(
    labels: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    n_outputs: int,
    sample_weight: _Floats | None = None,
) -> Likelihood: ...

class KernelSettings:
    def __init__(
        self,
        *,
        algorithm: KernelAlgorithm = ...,
        memory_limit: float = 4e9,
        rank: int | None = None,
        rank_tolerance: float | None = None,
    ) -> None: ...
    @property
    def algorithm(self) -> KernelAlgorithm: ...
    @property
    def memory_limit(self) -> float: ...
    @property
    def rank(self) -> int: ...
    @property
    def rank_tolerance(self) -> float: ...

class FitSettings:
    def __init__(
        self,
        *,
        method: Method = ...,
        space: Space = ...,
        precision: Precision = ...,
        tol: float = 1e-6,
        max_iter: int = 1000,
        memory_limit: float = 4e9,
        exact_fallback: bool = True,
        keep_point: bool = False,
    ) -> None: ...
    def __copy__(self) -> FitSettings: ...
    method: Method
    space: Space
    precision: Precision
    tol: float
    max_iter: int
    memory_limit: float
    exact_fallback: bool
    keep_point: bool

class CriterionSettings:
    def __init__(
        self,
        *,
        tol: float = 1e-4,
        adjoint_tol: float = 1e-4,
        max_iter: int = 1000,
        kernel_gradient: bool = True,
        method: Method = ...,
        strategy: Strategy = ...,
        precision: Precision = ...,
        memory_limit: float = 4e9,
    ) -> None: ...
    def __copy__(self) -> CriterionSettings: ...
    tol: float
    adjoint_tol: float
    max_iter: int
    gradient: bool
    keep_predictors: bool
    kernel_gradient: bool
    temperature: float
    learn_temperature: bool
    method: Method
    strategy: Strategy
    precision: Precision
    memory_limit: float

class Prior:
    def __init__(
        self,
        *,
        kernels: Sequence[Kernel],
        kernel_of: Sequence[int] = ...,
        coupling: Coupling | None = None,
        intercept_variance: float,
    ) -> None: ...
    @property
    def kernels(self) -> list[Kernel]: ...
    @property
    def kernel_of(self) -> list[int]: ...
    @property
    def coupling(self) -> Coupling | None: ...
    @property
    def intercept_variance(self) -> float: ...

class Timings:
    @property
    def setup(self) -> float: ...
    @property
    def products(self) -> float: ...
    @property
    def likelihood(self) -> float: ...
    @property
    def vectors(self) -> float: ...
    @property
    def certificate(self) -> float: ...
    @property
    def total(self) -> float: ...

class FitPlan:
    @property
    def method(self) -> Method: ...
    @property
    def space(self) -> Space: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def reason(self) -> str: ...

class FitResult:
    @property
    def status(self) -> Status: ...
    @property
    def iterations(self) -> int: ...
    @property
    def products(self) -> int: ...
    @property
    def objective(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def relative_gap(self) -> float: ...
    @property
    def method(self) -> Method: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def space(self) -> Space: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def kernel_bytes(self) -> float: ...
    @property
    def ranks(self) -> list[int]: ...
    @property
    def timings(self) -> Timings: ...
    @property
    def intercepts(self) -> _Floats: ...
    def take_weights(self) -> _Floats: ...
    def take_expansions(self) -> list[tuple[list[int], _Floats, _Floats]]: ...
    def take_point(self) -> _Floats: ...

class FitStart:
    def __init__(
        self, *, weights: _Floats | None = None, predictors: _Floats | None = None, point: _Floats | None = None
    ) -> None: ...

def uses_features(prior: Prior, settings: KernelSettings) -> bool: ...
def plan(
    *, X: Any, likelihood: Likelihood, prior: Prior, settings: FitSettings, kernels: KernelSettings = ...
) -> FitPlan: ...
def fit(
    *,
    X: Any,
    likelihood: Likelihood,
    prior: Prior,
    settings: FitSettings,
    kernels: KernelSettings = ...,
    start: FitStart = ...,
    n_threads: int = 1,
    progress: _ProgressCallback | None = None,
) -> FitResult: ...
def predict_linear(
    *,
    X: Any,
    weights: npt.NDArray[np.float32] | _Floats,
    intercepts: _Floats,
    link: Link,
    temperature: float = 1.0,
    output: Output,
    n_threads: int = 1,
) -> _Floats: ...

class Term:
    def __init__(
        self, *, kernel: Kernel, basis: Any, coefficients: _Floats, weights: _Floats | None = None
    ) -> None: ...

def predict_kernels(
    *,
    X: Any,
    terms: Sequence[Term],
    kernel_of: Sequence[int] = ...,
    coupling: Coupling | None = None,
    intercepts: _Floats,
    link: Link,
    temperature: float = 1.0,
    output: Output,
    n_threads: int = 1,
) -> _Floats: ...

class Criterion:
    @property
    def value(self) -> float: ...
    @property
    def plain_value(self) -> float: ...
    @property
    def temperature(self) -> float: ...
    @property
    def temperature_gradient(self) -> float: ...
    @property
    def kernel_gradient(self) -> list[_Floats]: ...
    @property
    def function_gradient(self) -> _Floats: ...
    @property
    def intercept_variance_gradient(self) -> float: ...
    def take_predictors(self) -> _Floats: ...
    @property
    def converged(self) -> bool: ...
    @property
    def gap(self) -> float: ...
    @property
    def adjoint_gap(self) -> float: ...
    @property
    def products(self) -> int: ...
    @property
    def iterations(self) -> int: ...
    @property
    def strategy(self) -> Strategy: ...
    @property
    def fit_seconds(self) -> float: ...
    @property
    def adjoint_seconds(self) -> float: ...
    @property
    def gradient_seconds(self) -> float: ...
    @property
    def total_seconds(self) -> float: ...
    @property
    def counters(self) -> FitResult: ...

class WarmStart:
    def __init__(self, fits: npt.NDArray[Any], adjoints: npt.NDArray[Any]) -> None: ...
    @property
    def fits(self) -> npt.NDArray[np.float32]: ...
    @property
    def adjoints(self) -> npt.NDArray[np.float32]: ...

class CrossValidation:
    def __init__(
        self,
        *,
        X: Any,
        likelihood: Likelihood,
        fold_of: npt.NDArray[np.int32] | list[int],
        n_folds: int,
        held_out: Likelihood | None = None,
        n_threads: int = 1,
    ) -> None: ...
    def evaluate(
        self,
        prior: Prior,
        settings: CriterionSettings,
        kernels: KernelSettings = ...,
        progress: _ProgressCallback | None = None,
    ) -> Criterion: ...
    def accept(self) -> None: ...
    warm_start: WarmStart

class Taxonomy:
    def __init__(self, parents: npt.NDArray[np.int64]) -> None: ...
    @property
    def nodes(self) -> int: ...
    @property
    def inner(self) -> int: ...
    def node_probabilities(
        self, proba: _Floats, columns: npt.NDArray[np.int64] | None = None, n_threads: int = 1
    ) -> _Floats: ...
    def decide(
        self,
        proba: _Floats,
        loss: str,
        columns: npt.NDArray[np.int64] | None = None,
        costs: _Floats | None = None,
        n_threads: int = 1,
    ) -> tuple[npt.NDArray[np.int64], _Floats]: ...
    def decide_confident(
        self,
        proba: _Floats,
        confidence: float,
        columns: npt.NDArray[np.int64] | None = None,
        n_threads: int = 1,
    ) -> tuple[npt.NDArray[np.int64], _Floats]: ...

class Coupling:
    @property
    def classes(self) -> int: ...
    @property
    def factors(self) -> int: ...
    @property
    def parameters(self) -> int: ...
    def apply(self, S: npt.NDArray[Any], n_threads: int = 1) -> npt.NDArray[Any]: ...
    def to_factors(self, S: _Floats) -> _Floats: ...
    def from_factors(self, A: _Floats) -> _Floats: ...
    def diag(self) -> _Floats: ...
    def bilinear_grad(self, E: _Floats, H: _Floats) -> _Floats: ...

class IndependentCoupling(Coupling):
    def __init__(self, variances: _Floats, groups: npt.NDArray[np.int64] | None = None) -> None: ...

class TreeCoupling(Coupling):
    def __init__(
        self,
        taxonomy: Taxonomy,
        variances: _Floats,
        groups: npt.NDArray[np.int64] | None = None,
    ) -> None: ...

class GraphCoupling(Coupling):
    def __init__(
        self,
        first: npt.NDArray[np.int64],
        second: npt.NDArray[np.int64],
        weights: _Floats,
        ridges: _Floats,
        classes: npt.NDArray[np.int64],
        variance: float = 1.0,
    ) -> None: ...
    @property
    def is_stored(self) -> bool: ...
    @property
    def entries(self) -> int: ...

class FactorCoupling(Coupling):
    def __init__(self, base: Coupling | None, loadings: _Floats) -> None: ...

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

_Columns: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], _Floats]

class Hinge(enum.Enum):
    hinge = 0
    squared_hinge = 1

class RecursiveMethod(enum.Enum):
    joint = 0
    alternating = 1

class RecursiveSettings:
    def __init__(
        self, *, method: RecursiveMethod = ..., tol: float = 1e-3, max_iter: int = 1000, seed: int = 0
    ) -> None: ...
    @property
    def method(self) -> RecursiveMethod: ...
    @property
    def tol(self) -> float: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def seed(self) -> int: ...

class RecursiveResult:
    @property
    def status(self) -> Status: ...
    @property
    def iterations(self) -> int: ...
    @property
    def passes(self) -> float: ...
    @property
    def objective(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def relative_gap(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    def take_weights(self) -> _Columns: ...
    def take_duals(self) -> _Columns: ...

def fit_recursive(
    *,
    X: Any,
    label_offsets: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
    n_classes: int,
    parents: Sequence[int] | None = None,
    graph: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], _Floats, npt.NDArray[np.int32]] | None = None,
    variances: Sequence[float] = [],
    loss: Hinge = ...,
    C: float = 1.0,
    bias: float = 1.0,
    sample_weight: _Floats | None = None,
    positive_weights: Sequence[float] = [],
    negative_weights: Sequence[float] = [],
    settings: RecursiveSettings = ...,
    start: _Columns | None = None,
    n_threads: int = 1,
    progress: _ProgressCallback | None = None,
) -> RecursiveResult: ...

class NodeWeights:
    def __init__(self, *, weights: Any, intercepts: _Floats, parents: Sequence[int] | None = None) -> None: ...
    def scores(self, X: Any, n_threads: int = 1) -> _Floats: ...
    def top(self, X: Any, k: int, n_threads: int = 1) -> tuple[npt.NDArray[np.int32], _Floats]: ...

class EmbeddingMethod(enum.Enum):
    rembrandt = 0
    plst = 1
    random = 2
    pca = 3

class EmbeddingSettings:
    def __init__(
        self,
        *,
        method: EmbeddingMethod = ...,
        n_components: int = 50,
        oversampling: int = 20,
        rounds: int = 1,
        ridge: float = 0.0,
        tol: float = 1e-4,
        max_iter: int = 1000,
        seed: int = 0,
    ) -> None: ...

class EmbeddingResult:
    @property
    def converged(self) -> bool: ...
    @property
    def iterations(self) -> int: ...
    @property
    def ridge(self) -> float: ...
    @property
    def objective(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def values(self) -> _Floats: ...
    @property
    def intercepts(self) -> _Floats: ...
    @property
    def mean(self) -> _Floats: ...
    @property
    def residuals(self) -> _Floats: ...
    @property
    def path_ridges(self) -> _Floats: ...
    @property
    def path_errors(self) -> _Floats: ...
    def take_components(self) -> _Floats: ...
    def take_weights(self) -> _Floats: ...
    def take_moments(self) -> _Floats: ...

def fit_embedding(
    *,
    X: Any,
    label_offsets: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
    n_classes: int,
    sample_weight: _Floats | None = None,
    center: bool = True,
    settings: EmbeddingSettings = ...,
    single_precision: bool = False,
    n_threads: int = 1,
    progress: _ProgressCallback | None = None,
) -> EmbeddingResult: ...

class MarginLoss(enum.Enum):
    zero_one = 0
    hamming = 1
    hierarchical = 2

_Labelings: TypeAlias = tuple[npt.NDArray[np.int64], _Floats, _Floats, npt.NDArray[np.int8]]

class MarginResult:
    @property
    def status(self) -> Status: ...
    @property
    def iterations(self) -> int: ...
    @property
    def passes(self) -> float: ...
    @property
    def objective(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def intercepts(self) -> _Floats: ...
    def take_weights(self) -> _Floats: ...
    def take_multipliers(self) -> _Floats: ...
    def duals(self) -> _Labelings: ...

def fit_margin(
    *,
    X: Any,
    parents: Sequence[int],
    label_offsets: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
    loss: MarginLoss = ...,
    scales: Sequence[float] = [],
    C: float = 1.0,
    bias: float = 1.0,
    kernel: Kernel | None = None,
    sample_weight: _Floats | None = None,
    memory_limit: float = 4e9,
    tol: float = 1e-2,
    max_iter: int = 10000,
    seed: int = 0,
    start: _Labelings | None = None,
    n_threads: int = 1,
    progress: _ProgressCallback | None = None,
) -> MarginResult: ...
def max_marginals(gradients: _Floats, parents: Sequence[int], n_threads: int = 1) -> _Floats: ...

# -- Hierarchical Bayes ------------------------------------------------------------------------------------------------

class WeightMoments:
    def take_squares(self) -> _Floats: ...
    def take_spreads(self) -> _Floats: ...
    def take_variances(self) -> _Floats: ...
    @property
    def intercept_variances(self) -> _Floats: ...

def weight_moments(
    *,
    X: Any,
    sample_weight: _Floats | None = None,
    weights: _Floats,
    intercepts: _Floats,
    link: Link,
    taxonomy: Taxonomy,
    groups: Sequence[int],
    variances: _Floats,
    intercept_variance: float,
    with_variances: bool = False,
    n_threads: int = 1,
    progress: Any = None,
) -> WeightMoments: ...
def observed_information(
    *,
    X: Any,
    sample_weight: _Floats | None = None,
    weights: _Floats,
    intercepts: _Floats,
    link: Link,
    n_threads: int = 1,
) -> _Floats: ...

class VariationalResult:
    @property
    def converged(self) -> bool: ...
    @property
    def bounds(self) -> _Floats: ...
    @property
    def intercepts(self) -> _Floats: ...
    @property
    def intercept_variances(self) -> _Floats: ...
    def take_weights(self) -> _Floats: ...
    def take_variances(self) -> _Floats: ...
    def take_rates(self) -> _Floats: ...

def fit_variational(
    *,
    X: _Floats,
    sample_weight: _Floats | None = None,
    label_offsets: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int32],
    link: Link,
    taxonomy: Taxonomy,
    groups: Sequence[int],
    shapes: Sequence[float],
    rates: _Floats,
    variances: _Floats,
    intercept_variance: float,
    max_rounds: int = 1000,
    tol: float = 1e-5,
    n_threads: int = 1,
    progress: _ProgressCallback | None = None,
) -> VariationalResult: ...
