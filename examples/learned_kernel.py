"""Length scale and variance of an RBF kernel, learned, and a run that goes on after a break.

Digits of 8 x 8 pixels. One learns how kernel parameters are found by gradient descent on the cross-validated log
likelihood, what they gain over values set by hand, and how a checkpoint lets a run that ended early go on from
there: the result is the same, bit for bit, as that of a run that never stopped.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from taxolearn import CrossValidation, KernelLogisticClassifier, metrics
from taxolearn.kernels import RBF

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, train_size=500, stratify=y, random_state=0)


def log_loss(model):
    return metrics.log_loss(y_test, model.predict_proba(X_test), classes=model.classes_)


start = RBF(length_scale=4.0, variance=1.0)
given = KernelLogisticClassifier(start, tuning=None).fit(X, y)
print(f"given:   {start}, log loss {log_loss(given):.3f}")

learned = KernelLogisticClassifier(start).fit(X, y)
found = learned.hyperparameters_.kernel
print(
    f"learned: length_scale {found.length_scale:.3f}, variance {found.variance:.3g}, log loss {log_loss(learned):.3f}"
)
print(f"{learned.cv_result_.status} after {len(learned.cv_result_.evaluations)} evaluations")

with tempfile.TemporaryDirectory() as folder:
    checkpoint = Path(folder) / "run.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # three evaluations are not enough, and it says so
        KernelLogisticClassifier(start, tuning=CrossValidation(checkpoint=checkpoint, max_evaluations=3)).fit(X, y)
    resumed = KernelLogisticClassifier(start, tuning=CrossValidation(checkpoint=checkpoint)).fit(X, y)
same = np.array_equal(resumed.cv_result_.theta, learned.cv_result_.theta)
print(f"resumed after 3 evaluations: the same parameters {same}")
