"""The cross-validation criterion and its gradient in dense matrices, to hold the library against.

The predictors of all rows and classes have the covariance K (n C x n C, classes one after the other): the sum over
independent functions f of (r_f r_f^T) (x) M_f, plus sigma2 I (x) 1 1^T. For a fold with held-out rows I and training
rows J, alpha = s (y - pi(K_JJ alpha)) by Newton steps, u_I = K_IJ alpha, and (Seeger 2008, 5.2)
dPsi_I = alpha^T (dK) f with f_I = s (pi_I - y_I) and f_J = -(1 + W K_JJ)^-1 W K_JI f_I.
"""

import numpy as np
from kernel_formulas import matrix
from scipy.special import log_softmax, softmax
from trees import paths

from taxolearn import Independent
from taxolearn import kernels as k

ACCURACY = 1e-12


def covariance(functions, sigma2, X, known=None):
    """K, from pairs (r, kernel) of the independent functions: their classes, weighted, and their kernel.

    Matrices of kernels are kept in the dictionary ``known``.
    """
    n, C = len(X), len(functions[0][0])
    known = {} if known is None else known
    K = sigma2 * np.kron(np.eye(C), np.ones((n, n)))
    for r, kernel in functions:
        if kernel not in known:
            known[kernel] = X * kernel.variance if isinstance(kernel, k.Precomputed) else matrix(kernel, X, X)
        K += np.kron(np.outer(r, r), known[kernel])
    return K


def functions_of(table, classes, taxonomy=None, coupling="auto"):
    """Functions of a model from its readable hyperparameters; classes are in the order of the taxonomy."""
    is_tree = taxonomy is not None and not (coupling == "independent" or isinstance(coupling, Independent))
    names = list(classes) if not is_tree else list(taxonomy.names[1:])
    columns = np.eye(len(classes)) if not is_tree else paths(taxonomy)[:, 1:]
    group_of = dict.fromkeys(names)
    if taxonomy is not None:
        groups, labels = taxonomy.groups(getattr(coupling, "tying", "level"))
        group_of = {name: labels[groups[taxonomy.names.tolist().index(name)]] for name in names}
    functions = []
    for name, column in zip(names, columns.T, strict=True):
        variance = table.variances.get(group_of[name], 1.0)
        kernel = table.kernel or table.kernels.get(name, table.kernels.get(group_of[name]))
        functions.append((np.sqrt(variance) * column, kernel))
    return functions


class Oracle:
    """Psi for any covariance; y holds class indices, fold_of the fold of each row or -1."""

    def __init__(self, y, n_classes, fold_of, weights=None):
        self.n, self.C = len(y), n_classes
        self.target = np.eye(n_classes)[y]
        self.s = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
        self.fold_of = np.asarray(fold_of)

    def value(self, K):
        return sum(self._fold(K, fold)[0] for fold in range(self.fold_of.max() + 1))

    def gradient(self, covariance_at, theta, step=1e-5):
        """Psi and its derivatives; those of the covariance are central differences."""
        K = covariance_at(theta)
        folds = [self._fold(K, fold) for fold in range(self.fold_of.max() + 1)]
        gradient = []
        for direction in np.eye(len(theta)):
            dK = (covariance_at(theta + step * direction) - covariance_at(theta - step * direction)) / (2 * step)
            gradient.append(sum(alpha @ dK @ f for _, alpha, f in folds))
        return sum(value for value, _, _ in folds), np.array(gradient)

    def _fold(self, K, fold):
        """Held-out loss, and the columns of E and F, for all rows."""
        out, inside = self._rows(self.fold_of == fold), self._rows(self.fold_of != fold)
        target, s = self.target.T.ravel(), np.tile(self.s, self.C)
        K_J = K[np.ix_(inside, inside)]
        coefficients, W = self._fit(K_J, target[inside], s[inside])
        u = K[np.ix_(out, inside)] @ coefficients
        value = -s[out] @ (target[out] * self._by_class(log_softmax, u))
        f_I = s[out] * (self._by_class(softmax, u) - target[out])
        alpha, f = np.zeros(len(K)), np.zeros(len(K))
        alpha[inside], f[out] = coefficients, f_I
        right = W @ (K[np.ix_(inside, out)] @ f_I)
        f[inside] = -np.linalg.solve(np.eye(len(K_J)) + W @ K_J, right)
        return value, alpha, f

    def _rows(self, mask):
        return np.flatnonzero(np.tile(mask, self.C))

    def _by_class(self, function, u):
        return function(u.reshape(self.C, -1), axis=0).ravel()

    def _fit(self, K, target, s):
        """Coefficients of the minimum, and the Hessian of the loss there."""
        alpha = np.zeros(len(K))
        for _ in range(200):
            u = K @ alpha
            p = self._by_class(softmax, u)
            W = self._hessian(p, s)
            residual = alpha - s * (target - p)
            if np.abs(residual).max() <= ACCURACY:
                return alpha, W
            move = np.linalg.solve(np.eye(len(K)) + W @ K, residual)
            step, best = 1.0, self._phi(K, alpha, target, s)
            while step > 1e-6 and self._phi(K, alpha - step * move, target, s) > best + 1e-13 * abs(best):
                step /= 2
            alpha = alpha - step * move
        raise AssertionError(f"no minimum: residual {np.abs(residual).max()}")

    def _phi(self, K, alpha, target, s):
        u = K @ alpha
        return -s @ (target * self._by_class(log_softmax, u)) + alpha @ u / 2

    def _hessian(self, p, s):
        p, n = p.reshape(self.C, -1), len(p) // self.C
        W = np.zeros((self.C, n, self.C, n))
        i = np.arange(n)
        for a in range(self.C):
            for b in range(self.C):
                W[a, i, b, i] = s[:n] * ((a == b) * p[a] - p[a] * p[b])
        return W.reshape(self.C * n, self.C * n)
