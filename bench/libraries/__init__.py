"""The libraries that take part, a module each; these tables say in what.

A solver minimizes the flat linear objective, a classifier knows trees or many classes, and a model of ``RBF_MODELS``
has an RBF kernel; bench/libraries/contracts.py describes all three.
"""

from functools import partial
from itertools import product

import numpy as np

from bench.libraries import (
    gpytorch,
    hiclass,
    intelex,
    jaxopt,
    liblinear,
    mkl,
    napkinxc,
    ours,
    pecos,
    scikit_learn,
    scipy,
    torch,
)
from bench.libraries.contracts import Classifier, MakeRBF, SolverEntry

OURS = "taxolearn"
_MOST_WEIGHTS = 10_000  # for a solver that stores and factors the matrix of second derivatives

SOLVERS = {
    OURS: SolverEntry(ours.solver),
    "scikit-learn lbfgs": SolverEntry(partial(scikit_learn.solver, method="lbfgs")),
    "scikit-learn newton-cg": SolverEntry(partial(scikit_learn.solver, method="newton-cg")),
    "scikit-learn newton-cholesky": SolverEntry(
        partial(scikit_learn.solver, method="newton-cholesky"), sparse=False, most_weights=_MOST_WEIGHTS
    ),
    "scikit-learn saga": SolverEntry(partial(scikit_learn.solver, method="saga")),
    "scikit-learn saga float32": SolverEntry(partial(scikit_learn.solver, method="saga", dtype=np.float32)),
    "scikit-learn-intelex lbfgs": SolverEntry(intelex.solver, sparse=False),
    "torch LBFGS": SolverEntry(partial(torch.solver, dtype="float64")),
    "torch LBFGS float32": SolverEntry(partial(torch.solver, dtype="float32")),
    "jaxopt LBFGS": SolverEntry(jaxopt.solver),
    "scipy L-BFGS-B": SolverEntry(scipy.solver),
    "scipy L-BFGS-B, MKL": SolverEntry(mkl.solver, dense=False),
}

_VALUES = (4.0, 20.0, 100.0, 500.0, 2500.0, 12500.0)
_PENALTIES = tuple({"C": value} for value in _VALUES)
_LOWER = tuple({"C": value / 5} for value in _VALUES)  # where a penalty is shared by fewer rows

CLASSIFIERS = {
    "taxolearn, tree": Classifier(
        partial(ours.classifier, tree=True),
        tuple({"variance": value, "ratio": ratio} for value, ratio in product(_VALUES, (1 / 3, 1.0))),
    ),
    "taxolearn, flat": Classifier(
        partial(ours.classifier, tree=False), tuple({"variance": value} for value in _VALUES)
    ),
    "hiclass, per parent": Classifier(hiclass.classifier, _PENALTIES),
    "napkinXC PLT": Classifier(partial(napkinxc.classifier, kind="PLT"), _LOWER),
    "napkinXC HSM": Classifier(partial(napkinxc.classifier, kind="HSM"), _LOWER),
    "PECOS XLinear": Classifier(pecos.classifier, _LOWER, pecos=True),
    "liblinear, one-vs-rest": Classifier(liblinear.classifier, _PENALTIES),
}

RBF_MODELS: dict[str, MakeRBF] = {
    "taxolearn": ours.rbf_model,
    "Nystroem": scikit_learn.nystroem,
    "SVC": scikit_learn.svc,
    "GaussianProcessClassifier": scikit_learn.gaussian_process,
    "gpytorch": gpytorch.rbf_model,
}
