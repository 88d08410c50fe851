"""Files of version 1: what their parameters are called now."""

from typing import Any

from taxolearn.couplings.coupling import Independent, Tree
from taxolearn.couplings.factors import LearnedCoupling
from taxolearn.fitting.fit import Solver
from taxolearn.kernels.inner_product import Linear
from taxolearn.targets import PartialLabels
from taxolearn.tuning.cross_validation import CrossValidation

__all__ = ["upgrade_fit", "upgrade_hyperparameters", "upgrade_name", "upgrade_parameters"]

_SAME = ("taxonomy", "class_weight", "tol", "max_iter", "warm_start", "n_threads", "random_state", "verbose")
_TUNING = {
    "cv": "folds",
    "cv_partitions": "repeats",
    "cv_samples": "subset",
    "learn_sigma2": "learn_intercept_variance",
    "max_evaluations": "max_evaluations",
    "time_limit": "time_limit",
    "checkpoint": "checkpoint",
}
_LABELS = {"inner_labels": "inner", "em_tol": "tol", "em_rounds": "max_rounds"}
_SOLVER = {
    "method": "method",
    "state": "space",
    "precision": "precision",
    "algorithm": "products",
    "rank": "rank",
    "rank_tolerance": "rank_tolerance",
    "memory_limit": "memory_limit",
}
_COUPLINGS = {"auto": "auto", "tree": "tree", "identity": "independent"}


def upgrade_parameters(old: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the constructor."""
    is_fixed = old.get("hyperparameters") == "fixed"
    new = {name: old[name] for name in _SAME if name in old}
    new["kernel"] = old.get("kernel")
    if new["kernel"] is None:
        new["kernel"] = Linear() if is_fixed else "linear"
    new["coupling"] = _coupling(old)
    new["intercept_variance"] = old.get("sigma2", 1.0)
    new["tuning"] = None if is_fixed else CrossValidation(**_renamed(old, _TUNING))
    new["labels"] = PartialLabels(**_renamed(old, _LABELS))
    new["solver"] = Solver(**_renamed(old, _SOLVER))
    return new


def upgrade_hyperparameters(old: dict[str, Any]) -> dict[str, Any]:
    """Fields of ``Hyperparameters``."""
    names = {"kernel": "kernel", "kernels": "kernels", "variances": "variances", "coupling": "loadings"}
    return _renamed(old, names | {"sigma2": "intercept_variance"})


def upgrade_fit(old: dict[str, Any]) -> dict[str, Any]:
    """Fields of ``FitResult``."""
    return {"space" if name == "state" else name: value for name, value in old.items()}


def upgrade_name(name: str) -> str:
    """The name of a hyperparameter that was learned."""
    return "intercept_variance" if name == "sigma2" else name


def _renamed(old: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {new: old[name] for name, new in names.items() if name in old}


def _coupling(old: dict[str, Any]) -> Any:
    coupling, tying, variances = old.get("coupling", "auto"), old.get("tying", "level"), old.get("variances")
    is_learned = isinstance(coupling, LearnedCoupling)
    name = coupling.base if is_learned else coupling
    base: Any = None if name == "none" else _COUPLINGS[name]
    if base is not None and not (isinstance(tying, str) and tying == "level" and variances is None):
        is_tree = base == "tree" or (base == "auto" and old.get("taxonomy") is not None)
        base = Tree(tying, variances=variances) if is_tree else Independent(tying, variances=variances)
    if not is_learned:
        return base
    return LearnedCoupling(coupling.rank, B=coupling.B, base=base, penalty=coupling.penalty)
