"""Data sets of models with an RBF kernel, and the values of the kernel's parameters."""

from dataclasses import dataclass, replace

from bench.problems.data import Clusters, Data, held_out_fifth, satimage, usps
from taxolearn.kernels import RBF


@dataclass(frozen=True)
class Values:
    """Parameters that the models share, w = 1 / length_scale^2, and those that only some of them have.

    ``penalty`` is the C of the SVM and ``calibration`` its method,
    ``dirichlet`` the variance of the Gaussian process on Dirichlet parameters.
    """

    w: float
    variance: float
    intercept_variance: float
    penalty: float = 1.0
    calibration: str = "sigmoid"
    dirichlet: float = 1.0

    @property
    def kernel(self) -> RBF:
        return RBF(self.w**-0.5, self.variance)


# w, v and intercept variance of satimage, and intercept variance of USPS, are given; the suite ``kernels`` chose the
# rest on held-out rows.
VALUES = {
    "satimage": Values(
        w=0.2, variance=100.0, intercept_variance=16.0, penalty=3.0, calibration="sigmoid", dirichlet=1.0
    ),
    "USPS": Values(
        w=0.022, variance=300.0, intercept_variance=16.0, penalty=3.0, calibration="temperature", dirichlet=1.0
    ),
}
PUBLISHED = (
    "Published, with kernel parameters that were learned (Seeger 2008): satimage (6.2, ten partitions) mc-tied "
    "8.35 ± 0.20, mc-sep 7.95 ± 0.15, best SVM 7.65 % test error; USPS (6.3, five runs) 4.77 ± 0.18 %."
)


def load(name: str, quick: bool, part: str | int = "all") -> Data:
    """A data set by its name; "clusters:58000" is made up.

    ``part`` is "all", a number of training rows, or "held out": a random fifth of the training rows is the test set.
    """
    kind, _, size = name.partition(":")
    if kind == "clusters":
        return made_up().draw(int(size), 5000)
    data = {"satimage": satimage, "USPS": usps}[kind](quick)
    if part == "held out":
        held_out, rest = held_out_fifth(len(data.y))
        return replace(data, X=data.X[rest], y=data.y[rest], X_test=data.X[held_out], y_test=data.y[held_out])
    return data.first_rows(part) if isinstance(part, int) else data


def made_up() -> Clusters:
    """The mixture of the large problem."""
    return Clusters.made_up(n_classes=10, per_class=8, d=20, spread=1.0)
