"""A kernel of your own: a Python function, or a matrix.

One learns two ways that need no C++. A function of two arrays is a kernel, here the intersection of histograms; the
library adds a variance, which is learned. Where inputs are no vectors at all, the matrix of their kernel values is
enough: words are compared by the pairs of letters that they share, and sorted into English and Latin.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from taxolearn import CrossValidation, KernelLogisticClassifier
from taxolearn.kernels import Function, Precomputed


def intersection(X, Y):
    return np.minimum(X[:, None, :], Y[None, :, :]).sum(axis=2)


X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, train_size=300, test_size=500, stratify=y, random_state=0)
model = KernelLogisticClassifier(Function(intersection), tuning=CrossValidation(3)).fit(X, y)
print(f"intersection of histograms: accuracy {model.score(X_test, y_test):.3f}")
print(f"learned variance {model.hyperparameters_.kernel.variance:.2f}")

ENGLISH = "the which with through thought should whether enough light night house water brother mother winter"
LATIN = "aqua terra homo mulier dominus bellum tempus corpus annus templum populus mater frater regina virtus"
words = [*ENGLISH.split(), *LATIN.split()]
languages = ["English"] * len(ENGLISH.split()) + ["Latin"] * len(LATIN.split())
new = ["weather", "father", "servus", "oppidum"]

counts = CountVectorizer(analyzer="char_wb", ngram_range=(2, 2))
train = counts.fit_transform(words).toarray().astype(float)
K = train @ train.T
K_new = counts.transform(new).toarray() @ train.T  # rows: new words; columns: those of the training data
reader = KernelLogisticClassifier(Precomputed(0.5), tuning=None).fit(K, languages)
for word, answer in zip(new, reader.predict(K_new), strict=True):
    print(f"{word}: {answer}")
