"""Are the probabilities right, and what if unsure answers go to a person?

Classes that overlap. One learns how to check calibration (of the answers given with 80 % probability, do 80 %
hold?), and what error remains if the least sure tenth, or quarter, of the answers is set aside.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from taxolearn import KernelLogisticClassifier, datasets, metrics

data = datasets.make_hierarchy(4000, branching=(8,), n_features=10, noise=1.2, random_state=1)
X, X_test, y, y_test = train_test_split(data.X, data.y, train_size=500, stratify=data.y, random_state=0)
model = KernelLogisticClassifier().fit(X, y)
proba = model.predict_proba(X_test)

error = metrics.expected_calibration_error(y_test, proba, classes=model.classes_)
print(f"calibration error {error:.3f}")
confidence, right = proba.max(axis=1), model.predict(X_test) == y_test
for low in (0.2, 0.4, 0.6, 0.8):
    inside = (confidence >= low) & (confidence < low + 0.2)
    print(f"  sure to {confidence[inside].mean():.2f}: right {right[inside].mean():.2f} of {inside.sum()}")

order = np.argsort(-confidence)
for share in (0.0, 0.1, 0.25, 0.5):
    kept = order[: round(len(order) * (1 - share))]
    print(f"reject {share:.2f}: error {1 - right[kept].mean():.3f}, if surer than {confidence[kept].min():.2f}")

curve = metrics.error_reject_curve(y_test, model.predict(X_test), confidence)
print(f"area below the error-reject curve {curve.area:.3f}")
