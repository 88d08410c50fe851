"""Classes as points: which are alike, and a small model of many classes.

Docstrings of numpy and scipy, sorted by module. One learns how to embed classes in few dimensions that the
words predict, how to ask which classes are alike, how well that agrees with a tree the embedding has not seen, and how
small a classifier by the embedding is.
"""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from taxolearn import LabelEmbedding, LabelEmbeddingClassifier, Taxonomy
from taxolearn.datasets import load_docstrings
from taxolearn.metrics import sibling_fraction

every, labels = load_docstrings(packages=["numpy", "scipy"], return_X_y=True)
tree = Taxonomy.from_labels(labels)
texts, test_texts, y, y_test = train_test_split(every, labels, test_size=0.3, stratify=labels, random_state=0)
words = TfidfVectorizer(sublinear_tf=True, min_df=2)
X, X_test = words.fit_transform(texts), words.transform(test_texts)

for method in ("rembrandt", "random"):
    embedding = LabelEmbedding(20, method).fit(X, y)
    share = sibling_fraction(embedding.class_points(), embedding.classes_, taxonomy=tree)
    print(f"{method}: nearest class is a sibling {share:.2f}")

embedding = LabelEmbedding(20).fit(X, y)
near = ", ".join(f"{other} {cosine:.2f}" for other, cosine in embedding.nearest_classes("numpy/linalg", k=3))
print(f"like numpy/linalg: {near}")

model = LabelEmbeddingClassifier(LabelEmbedding(20)).fit(X, y)
small = model.embedding_.coef_.size + model.decoder_.coef_.size
print(f"accuracy {model.score(X_test, y_test):.3f} with {small} weights instead of {len(model.classes_) * X.shape[1]}")
