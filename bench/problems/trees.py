"""Data sets whose classes form a tree, as the papers have them or as their owners publish them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from bench.problems.data import Data, data_directory, news20
from taxolearn import Taxonomy
from taxolearn.datasets import read_lshtc, read_svmlight, read_table, read_text_pairs


@dataclass(frozen=True)
class TreeData(Data):
    """Inputs and labels for training and test, and the tree of the labels."""

    taxonomy: Taxonomy

    @property
    def description(self) -> str:
        return (
            f"{self.name}: {self.X.shape[0]} / {self.X_test.shape[0]} rows, {self.X.shape[1]} features, "
            f"{self.taxonomy.n_classes} classes, {self.taxonomy.n_nodes - 1} nodes, height {self.taxonomy.height}"
        )


def _news20() -> TreeData:
    data = news20()
    names = np.array((data_directory() / "news20" / "rennie_newsgrouplabels.txt").read_text().split()[1::2])
    labels, labels_test = (names[y - data.y.min()] for y in (data.y, data.y_test))
    taxonomy = Taxonomy.from_labels(names, separator=".")
    return TreeData("news20", data.X, labels, data.X_test, labels_test, taxonomy)


def _clef() -> TreeData:
    folder = data_directory() / "clef"
    train = read_svmlight(folder / "hiercost_train_reconstructed.txt.gz", n_features=80, zero_based=False)
    test = read_svmlight(folder / "hiercost_test.txt.gz", n_features=80, zero_based=False)
    taxonomy = Taxonomy.from_file(folder / "hiercost_cat_hier.txt", format="edges")
    return TreeData("CLEF", train.X.toarray(), train.y, test.X.toarray(), test.y, taxonomy)


def _words_and_characters(texts: list[str], texts_test: list[str]) -> tuple[Any, Any]:
    """Tf-idf of words and pairs of words, and of three to five characters within words, side by side."""
    vectorizers = (
        TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", min_df=2),
        TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(3, 5), min_df=3),
    )
    blocks = [(vectorizer.fit_transform(texts), vectorizer.transform(texts_test)) for vectorizer in vectorizers]
    X, X_test = (sparse.csr_matrix(sparse.hstack(parts)) / np.sqrt(2) for parts in zip(*blocks, strict=True))
    return X, X_test


def _words(texts: list[str], texts_test: list[str]) -> tuple[Any, Any]:
    """Tf-idf of words."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    return sparse.csr_matrix(vectorizer.fit_transform(texts)), sparse.csr_matrix(vectorizer.transform(texts_test))


Features = Callable[[list[str], list[str]], tuple[Any, Any]]


def _clinc150(features: Features = _words_and_characters) -> TreeData:
    folder = data_directory() / "clinc150"
    (texts, y), (texts_test, y_test) = (
        read_text_pairs(folder / "data_full.json.gz", part) for part in ("train", "test")
    )
    taxonomy = Taxonomy.from_file(folder / "domains.json")
    X, X_test = features(texts, texts_test)
    return TreeData("clinc150", X, np.asarray(y), X_test, np.asarray(y_test), taxonomy)


def _lshtc() -> TreeData:
    folder = data_directory() / "lshtc_dryrun"
    train = read_lshtc(folder / "validation.txt.gz")
    test = read_lshtc(folder / "test.txt.gz")
    n_features = max(train.X.shape[1], test.X.shape[1])
    train, test = (read_lshtc(folder / f"{part}.txt.gz", n_features=n_features) for part in ("validation", "test"))
    weighting = TfidfTransformer(sublinear_tf=True).fit(train.X)
    seen = np.unique(train.X.indices)  # a word that no training text has cannot change a prediction
    X, X_test = (sparse.csr_matrix(weighting.transform(part.X)[:, seen]) for part in (train, test))
    taxonomy = Taxonomy.from_file(folder / "cat_hier.txt", format="paths")
    return TreeData("LSHTC dry run", X, train.y, X_test, test.y, taxonomy)


def _onet(features: Features = _words_and_characters) -> TreeData:
    table = read_table(data_directory() / "onet" / "Task_Statements.txt.gz")
    codes, texts = np.array(table["O*NET-SOC Code"]), table["Task"]
    taxonomy = Taxonomy.from_paths(
        tuple(dict.fromkeys((code[:2], code[:4], code[:6], code[:7], code))) for code in np.unique(codes).tolist()
    )
    order = np.random.default_rng(0).permutation(len(codes))
    test, train = order[: len(order) // 4], order[len(order) // 4 :]
    X, X_test = features([texts[i] for i in train], [texts[i] for i in test])
    return TreeData("onet tasks", X, codes[train], X_test, codes[test], taxonomy)


TREES: dict[str, Callable[[], TreeData]] = {
    "news20": _news20,
    "clef": _clef,
    "clinc150": _clinc150,
    "lshtc": _lshtc,
    "onet": _onet,
}
# The same with words alone where the inputs are texts: an order of magnitude fewer entries per row.
OF_WORDS: dict[str, Callable[[], TreeData]] = TREES | {
    "clinc150": partial(_clinc150, _words),
    "onet": partial(_onet, _words),
}


def occupations(n_nodes: int) -> TreeData:
    """O*NET task texts, words only, with a tree of height 3: families of occupations until there are enough nodes."""
    data = OF_WORDS["onet"]()
    y, y_test = (np.array([code[:6] for code in labels]) for labels in (data.y, data.y_test))
    families: list[str] = []
    leaves: list[str] = []
    for family in sorted({code[:2] for code in y.tolist()}):
        if len({code[:4] for code in leaves}) + len(leaves) + len(families) >= n_nodes:
            break
        families.append(family)
        leaves += sorted({code for code in y.tolist() if code[:2] == family})
    taxonomy = Taxonomy.from_paths((code[:2], code[:4], code) for code in leaves)
    train, test = (np.flatnonzero(np.isin(labels, leaves)) for labels in (y, y_test))
    return TreeData("onet families", data.X[train], y[train], data.X_test[test], y_test[test], taxonomy)
