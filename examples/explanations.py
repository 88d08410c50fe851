"""Why a linear model answers as it does.

A question is led down the tree of the modules of NumPy and SciPy. One learns what `explain` returns: for every node
on the path to the answer, its probability among its siblings, and the words that speak for it (above zero) or
against it (below).
"""

from sklearn.feature_extraction.text import TfidfVectorizer

from taxolearn import KernelLogisticClassifier, Taxonomy, datasets
from taxolearn.kernels import Linear

texts, labels = datasets.load_docstrings(packages=["numpy", "scipy"], return_X_y=True)
vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english", max_features=5000)
X = vectorizer.fit_transform(texts)
model = KernelLogisticClassifier(Linear(100.0), taxonomy=Taxonomy.from_labels(labels), tuning=None, tol=1e-4).fit(
    X, labels
)

question = ["Eigenvalues of a sparse symmetric matrix by the Lanczos method"]
path = model.explain(vectorizer.transform(question), top=4, feature_names=vectorizer.get_feature_names_out())[0]
for node in path:
    print(f"{node.node}: {node.probability:.3f}")
    for word, part in node.contributions:
        print(f"    {part:+.2f} {word}")
    print(f"    {node.rest:+.2f} all the rest")
