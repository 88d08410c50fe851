"""gpytorch: an exact Gaussian process on Dirichlet parameters."""

import importlib
from typing import Any

import numpy as np

from bench.libraries.contracts import FitRBF, FittedRBF, logarithms
from bench.problems.data import Data, Floats
from bench.problems.rbf import Values


def rbf_model(data: Data, values: Values, n_threads: int) -> FitRBF:
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
        return logarithms(torch.softmax(draws, dim=1).mean(dim=0).T.double().numpy())

    def fit() -> FittedRBF:
        targets = torch.as_tensor(labels)
        likelihood = gpytorch.likelihoods.DirichletClassificationLikelihood(targets, dtype=torch.float32)
        model = Model(torch.as_tensor(data.X, dtype=torch.float32), likelihood).eval()
        posterior(model, data.X[:1])  # factors and weights are made, and kept, at the first prediction
        return FittedRBF(lambda X: log_proba(model, X), classes, {"status": "exact"})

    return fit


RBF_MODELS = {"gpytorch": rbf_model}
