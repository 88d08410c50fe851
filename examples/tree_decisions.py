"""A tree of classes, and answers at the right level.

Eighteen classes in a tree, about four training rows each. One learns how to give the tree to the model, that it
helps where examples are few, and how to ask for other answers than the most probable class: that of least expected
path length in the tree, or an inner node where no class is sure enough.
"""

from sklearn.model_selection import train_test_split

from taxolearn import CrossValidation, KernelLogisticClassifier, datasets, metrics

data = datasets.make_hierarchy(2000, branching=(3, 3, 2), n_features=30, noise=2.0, random_state=0)
X, X_test, y, y_test = train_test_split(data.X, data.y, train_size=80, stratify=data.y, random_state=0)

for name, coupling in (("flat", "independent"), ("tree", "tree")):
    model = KernelLogisticClassifier(taxonomy=data.taxonomy, coupling=coupling, tuning=CrossValidation(3)).fit(X, y)
    log_loss = metrics.log_loss(y_test, model.predict_proba(X_test), classes=model.classes_)
    taxo_loss = metrics.taxo_loss(y_test, model.decide(X_test, "taxo"), taxonomy=data.taxonomy)
    print(f"{name}: log loss {log_loss:.3f}, taxo-loss {taxo_loss:.3f}")

print("variances by level:", {level: round(v, 1) for level, v in model.hyperparameters_.variances.items()})

# An answer that is an inner node is right if the class lies below it.
for confidence in (0.5, 0.7, 0.9):
    answers = model.decide(X_test, confidence=confidence)
    right = [truth in data.taxonomy.leaves(answer) for truth, answer in zip(y_test, answers, strict=True)]
    inner = [len(data.taxonomy.leaves(answer)) > 1 for answer in answers]
    print(f"confidence {confidence}: right {sum(right) / len(right):.3f}, inner nodes {sum(inner) / len(inner):.3f}")
