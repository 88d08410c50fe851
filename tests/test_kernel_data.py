"""Real data with an RBF kernel: the figures of Seeger 2008, section 6, at fixed hyperparameters."""

import numpy as np
import pytest

from taxolearn import KernelLogisticClassifier
from taxolearn.kernels import RBF, PerClass


def load(paths, label):
    out = []
    for path in paths:
        table = np.loadtxt(path)
        out += [np.delete(table, label, axis=1), table[:, label].astype(int)]
    return out


@pytest.fixture(scope="module")
def satimage(data_file):
    X, y, X_test, y_test = load([data_file(f"satimage/sat.{part}.gz") for part in ("trn", "tst")], -1)
    return X / 10, y, X_test / 10, y_test


def error(model, X, y):
    return 100 * np.mean(model.predict(X) != y)


def test_satimage_shared_and_own_kernels(satimage):
    X, y, X_test, y_test = satimage
    kernel = RBF(length_scale=0.2**-0.5, variance=100.0)
    options = {"intercept_variance": 16.0, "tol": 1e-4}
    tied = KernelLogisticClassifier(kernel, **options, tuning=None).fit(X, y)
    assert tied.result_.status == "converged"
    assert tied.result_.relative_gap <= 1e-4
    assert tied.result_.products <= 90
    assert error(tied, X_test, y_test) == pytest.approx(7.95, abs=0.1)
    own = KernelLogisticClassifier(PerClass(kernel), **options, tuning=None).fit(X, y)
    assert len(own.expansions_) == 6
    assert own.result_.products <= 90
    assert error(own, X_test, y_test) == pytest.approx(7.95, abs=0.1)
    # Two answers within a gap of 1e-4 of the same minimum.
    assert abs(own.result_.objective - tied.result_.objective) <= 1e-4 * tied.result_.objective
    assert np.abs(own.predict_proba(X_test) - tied.predict_proba(X_test)).max() < 0.02


def test_usps(data_file):
    X, y, X_test, y_test = load([data_file(f"usps/zip.{part}.gz") for part in ("train", "test")], 0)
    model = KernelLogisticClassifier(
        RBF(length_scale=0.0165**-0.5, variance=10000.0), intercept_variance=16.0, tol=1e-3, tuning=None
    )
    model.fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.kernel_bytes < 0.53 * 4 * len(X) ** 2  # half a square in single precision, and the diagonal
    assert error(model, X_test, y_test) <= 5.0
