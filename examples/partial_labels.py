"""What can be learned from labels that are only partly known?

Of most rows only the group is known, not the class. One learns how to say so (the name of an inner node, a set of
labels, None), what it gains over dropping these rows, and how a class that nobody has seen yet gets its parent's share.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from taxolearn import KernelLogisticClassifier, Taxonomy, datasets, metrics

data = datasets.make_hierarchy(3000, branching=(4, 4), n_features=30, noise=2.0, random_state=0)
tree = data.taxonomy
X, X_test, y, y_test = train_test_split(data.X, data.y, train_size=600, stratify=data.y, random_state=0)
coarse = np.random.default_rng(0).random(len(y)) < 0.6
partly = y.astype(object)
partly[coarse] = [tree.parent(label) for label in y[coarse]]  # such as "2": one of the classes below
certain = np.flatnonzero(~coarse)
partly[certain[0]] = {y[certain[0]], "0/0"}  # one of these two
partly[certain[1]] = None  # any class, which changes nothing


def fit(rows, labels):
    model = KernelLogisticClassifier("linear", taxonomy=tree).fit(rows, labels)
    loss = metrics.log_loss(y_test, model.predict_proba(X_test), classes=model.classes_)
    print(f"{len(labels)} rows, accuracy {model.score(X_test, y_test):.3f}, log loss {loss:.3f}")
    return model


print("parents kept:    ", end="")
result = fit(X, partly).em_result_
print(f"  {result.uncertain} uncertain rows, {result.rounds} rounds, {result.status}")
print("parents dropped: ", end="")
fit(X[~coarse], y[~coarse])
print("all labels:      ", end="")
model = fit(X, y)

larger = model.with_taxonomy(Taxonomy.from_edges([*tree.to_edges(), ("2", "2/new")]))
share = larger.predict_proba(X_test)[:, larger.classes_.tolist().index("2/new")]
inside = np.char.startswith(y_test, "2/")
print(f"a class without examples: {share[inside].mean():.3f} in its group, {share[~inside].mean():.3f} elsewhere")
