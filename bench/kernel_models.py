"""Models with the same RBF kernel, each behind the same two functions: ours, and those that a user would else pick.

All get the same length scale and, where they have one, the same variance v of the functions and sigma2 of the
intercepts. With features phi(x) of Nystroem, phi(x)' phi(x') = exp(-gamma |x - x'|^2) nearly, so a logistic regression
on them with ``C=v`` has the objective of our low rank but for its intercepts, which have no prior. The Gaussian
process classifier of scikit-learn has no intercepts: a constant kernel of variance sigma2 takes their place.
"""

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.memory import isolated, reset_peak, resident
from bench.problems import Clusters, Data, Floats, satimage, usps
from taxolearn import KernelLogisticClassifier
from taxolearn.kernels import RBF, PerClass

LEAST_PROBABILITY = 1e-15  # in the log loss of those who return probabilities, not their logarithms


@dataclass(frozen=True)
class Values:
    """Parameters that the models share, w = 1 / length_scale^2, and those that single ones have of their own.

    ``penalty`` is the C of the SVM and ``calibration`` its method,
    ``dirichlet`` the variance of the Gaussian process on Dirichlet parameters.
    """

    w: float
    variance: float
    sigma2: float
    penalty: float = 1.0
    calibration: str = "sigmoid"
    dirichlet: float = 1.0

    @property
    def kernel(self) -> RBF:
        return RBF(self.w**-0.5, self.variance)


@dataclass
class Fitted:
    """A fitted model: logarithms of its probabilities, the labels of their columns, and what the fit says of itself."""

    log_proba: Callable[[Any], Floats]
    classes: Any
    facts: dict[str, Any]


# Fits data with values to a gap; options are those of the model. What is imported in it is not timed.
Fit = Callable[[], Fitted]


def _ours(data: Data, values: Values, n_threads: int, own: bool = False, gap: float = 1e-4, **options: Any) -> Fit:
    kernel = PerClass(values.kernel) if own else values.kernel

    def fit() -> Fitted:
        model = KernelLogisticClassifier(
            kernel, sigma2=values.sigma2, tol=gap, n_threads=n_threads, **options, hyperparameters="fixed"
        )
        result = model.fit(data.X, data.y).result_
        facts = {
            "products": result.products,
            "gap": result.relative_gap,
            "kernel_megabytes": result.kernel_bytes / 1e6,
            "algorithm": result.algorithm,
            "reason": result.reason,
            "precision": result.precision,
            "timings": result.timings,
            "status": result.status,
        }
        return Fitted(model.predict_log_proba, model.classes_, facts)

    return fit


def _log(proba: Floats) -> Floats:
    logarithms: Floats = np.log(np.maximum(proba, LEAST_PROBABILITY))
    return logarithms


def _sklearn(model: Any, data: Data, n_iter: Callable[[Any], Any] | None = None) -> Fit:
    def fit() -> Fitted:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(data.X, data.y)
        facts: dict[str, Any] = {"status": caught[0].category.__name__ if caught else "converged"}
        if n_iter is not None:
            facts["iterations"] = int(np.max(n_iter(model)))
        return Fitted(lambda X: _log(model.predict_proba(X)), model.classes_, facts)

    return fit


def _nystroem(data: Data, values: Values, n_threads: int, rank: int) -> Fit:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=values.w / 2, n_components=min(rank, len(data.y)), random_state=0)
    model = make_pipeline(features, LogisticRegression(C=values.variance, max_iter=2000))
    return _sklearn(model, data, lambda fitted: fitted[-1].n_iter_)


def _svc(data: Data, values: Values, n_threads: int) -> Fit:
    import joblib
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    svc = SVC(C=values.penalty, gamma=values.w / 2, cache_size=1000)
    fit = _sklearn(CalibratedClassifierCV(svc, ensemble=False, method=values.calibration, n_jobs=n_threads), data)

    def in_threads() -> Fitted:  # of one process, so that its memory is that of the fit
        with joblib.parallel_config("threading"):
            return fit()

    return in_threads


def _gaussian_process(data: Data, values: Values, n_threads: int) -> Fit:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF as SklearnRBF  # noqa: N811
    from sklearn.gaussian_process.kernels import ConstantKernel

    kernel = ConstantKernel(values.variance) * SklearnRBF(values.w**-0.5) + ConstantKernel(values.sigma2)
    return _sklearn(GaussianProcessClassifier(kernel, optimizer=None, multi_class="one_vs_rest"), data)


def _dirichlet(data: Data, values: Values, n_threads: int) -> Fit:
    """An exact Gaussian process on the logarithms of Dirichlet parameters (Milios et al. 2018), single precision.

    Its fit is a Cholesky factor per class; probabilities are means over 256 draws from the marginal posteriors.
    """
    torch, gpytorch = (importlib.import_module(name) for name in ("torch", "gpytorch"))
    torch.set_num_threads(n_threads)
    classes, labels = np.unique(data.y, return_inverse=True)
    shape = torch.Size((len(classes),))

    class Model(gpytorch.models.ExactGP):  # type: ignore[name-defined]
        def __init__(self, X: Any, likelihood: Any) -> None:
            super().__init__(X, likelihood.transformed_targets, likelihood)
            self.mean = gpytorch.means.ConstantMean(batch_shape=shape)
            kernel = gpytorch.kernels.RBFKernel(batch_shape=shape)
            self.kernel = gpytorch.kernels.ScaleKernel(kernel, batch_shape=shape)
            kernel.lengthscale, self.kernel.outputscale = values.w**-0.5, values.dirichlet
            self.mean.initialize(constant=likelihood.transformed_targets.mean(dim=-1))

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))

    def posterior(model: Any, X: Any) -> Any:
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(10**6), gpytorch.settings.fast_pred_var(False):
            answer = model(torch.as_tensor(X, dtype=torch.float32))
            return answer.mean, answer.variance

    def log_proba(model: Any, X: Any) -> Floats:
        torch.manual_seed(0)
        mean, variance = posterior(model, X)
        draws = mean + variance.clamp_min(0).sqrt() * torch.randn((256, *mean.shape))
        return _log(torch.softmax(draws, dim=1).mean(dim=0).T.double().numpy())

    def fit() -> Fitted:
        targets = torch.as_tensor(labels)
        likelihood = gpytorch.likelihoods.DirichletClassificationLikelihood(targets, dtype=torch.float32)
        model = Model(torch.as_tensor(data.X, dtype=torch.float32), likelihood).eval()
        posterior(model, data.X[:1])  # factors and weights are made, and kept, at the first prediction
        return Fitted(lambda X: log_proba(model, X), classes, {"status": "exact"})

    return fit


MODELS: dict[str, Callable[..., Fit]] = {
    "taxolearn": _ours,
    "Nystroem": _nystroem,
    "SVC": _svc,
    "GaussianProcessClassifier": _gaussian_process,
    "gpytorch": _dirichlet,
}


def load(name: str, quick: bool, part: str | int = "all") -> Data:
    """A data set by its name; "clusters:58000" is made up.

    ``part`` is "all", a number of training rows, or "held out": a random fifth of the training rows is the test set.
    """
    kind, _, size = name.partition(":")
    if kind == "clusters":
        return made_up().draw(int(size), 5000)
    data = {"satimage": satimage, "USPS": usps}[kind](quick)
    if part == "held out":
        held_out, rest = np.split(np.random.default_rng(0).permutation(len(data.y)), [len(data.y) // 5])
        return Data(data.name, data.X[rest], data.y[rest], data.X[held_out], data.y[held_out])
    return data.first_rows(part) if isinstance(part, int) else data


def made_up() -> Clusters:
    """The mixture of the large problem."""
    return Clusters.made_up(n_classes=10, per_class=8, d=20, spread=1.0)


def measure(
    data: str, quick: bool, part: str | int, model: str, values: dict[str, Any], n_threads: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Fit and predict in this process: scores, seconds, memory."""
    problem = load(data, quick, part)
    fit = MODELS[model](problem, Values(**values), n_threads, **options)
    before = reset_peak()
    start = time.perf_counter()
    fitted = fit()
    fitted_at = time.perf_counter()
    log_proba = fitted.log_proba(problem.X_test)
    end = time.perf_counter()
    peak = resident("VmHWM")
    columns = np.searchsorted(fitted.classes, problem.y_test)
    return fitted.facts | {
        "error": 100 * float(np.mean(fitted.classes[log_proba.argmax(axis=1)] != problem.y_test)),
        "log_loss": -float(np.mean(log_proba[np.arange(len(columns)), columns])),
        "seconds": fitted_at - start,
        "predict_seconds": end - fitted_at,
        "all_seconds": end - start,
        "megabytes": None if before is None or peak is None else (peak - before) / 1e6,
    }


def run_alone(
    data: str,
    model: str,
    values: Values,
    n_threads: int,
    options: dict[str, Any] | None = None,
    *,
    quick: bool = False,
    part: str | int = "all",
    limit: float | None = None,
) -> dict[str, Any]:
    """``measure`` in a process of its own."""
    arguments = {"data": data, "quick": quick, "part": part, "model": model, "values": asdict(values)}
    return isolated(
        "bench.kernel_models:measure", arguments | {"n_threads": n_threads, "options": options or {}}, n_threads, limit
    )
