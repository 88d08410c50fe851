"""Texts into classes, with probabilities.

Docstrings of NumPy are sorted into their modules. One learns how a pipeline of scikit-learn holds the model, that
labels are plain strings, and what comes back: a class, a probability for every class, and a proof of how well the
model was fitted.
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from taxolearn import CrossValidation, KernelLogisticClassifier, datasets, metrics

texts, labels = datasets.load_docstrings(packages=["numpy"], return_X_y=True)
train, test, y_train, y_test = train_test_split(texts, labels, stratify=labels, random_state=0)

model = KernelLogisticClassifier(
    tuning=CrossValidation(3)
)  # the linear kernel; its variance and that of the intercepts are learned
pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), model).fit(train, y_train)

proba = pipeline.predict_proba(test)
most_frequent = max(np.mean(y_test == label) for label in model.classes_)
print(f"{len(train)} training texts, {len(model.classes_)} classes")
print(f"accuracy {metrics.accuracy(y_test, pipeline.predict(test)):.3f}")
print(f"share of the most frequent class {most_frequent:.3f}")
print(f"log loss {metrics.log_loss(y_test, proba, classes=model.classes_):.3f}")
print(f"certified relative gap {model.result_.relative_gap:.1e}")

question = ["Draw samples from a binomial distribution"]
answer = pipeline.predict_proba(question)[0]
for k in np.argsort(-answer)[:3]:
    print(f"  {model.classes_[k]:24s} {answer[k]:.3f}")
