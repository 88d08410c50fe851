"""WordNet: which hypernym a noun has, from its gloss."""

import gzip

import numpy as np

from bench.problems.data import data_directory
from bench.problems.jobs import Job, held_out_share
from taxolearn import Taxonomy

_TEST_SHARE = 0.2


def wordnet(least_rows: int = 2) -> Job:
    """Glosses and first hypernyms of nouns; classes are hypernyms of so many nouns, in the tree of first hypernyms.

    A class may lie on an inner node, above other classes. Every class has a training row.
    """
    with gzip.open(data_directory() / "wordnet" / "wn30_noun.tsv.gz", "rt", encoding="utf-8") as file:
        header = next(file).rstrip("\n").split("\t")
        rows = [dict(zip(header, line.rstrip("\n").split("\t"), strict=True)) for line in file]
    parent = {row["synset"]: row["hypernyms"].split()[0] for row in rows if row["hypernyms"]}
    gloss = {row["synset"]: row["gloss"] for row in rows}
    names, counts = np.unique(list(parent.values()), return_counts=True)
    classes = set(names[counts >= least_rows].tolist())
    chosen = [synset for synset in gloss if parent.get(synset) in classes]
    y = np.array([parent[synset] for synset in chosen])
    test, train = held_out_share(y, _TEST_SHARE)
    edges = {(parent[node], node) for label in classes for node in _path(label, parent) if node in parent}
    X, X_test = ([gloss[chosen[row]] for row in part] for part in (train, test))
    return Job("wordnet", X, y[train], X_test, y[test], Taxonomy.from_edges(sorted(edges)))


def _path(node: str, parent: dict[str, str]) -> list[str]:
    """The node and those above it."""
    path = [node]
    while path[-1] in parent:
        path.append(parent[path[-1]])
    return path
