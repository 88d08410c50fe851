"""Proteins to enzyme classes, from FASTA to a report.

Made-up proteins of six enzyme classes in a tree: each has a motif, whose letters stand apart by gaps and change now and
then. One learns how to read sequences, how a kernel of gapped subsequences and a sum of it with one of substrings work
in a model over the tree, that the decay of gaps is learned, and how to get probabilities at every level and a report.
"""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from taxolearn import CrossValidation, KernelLogisticClassifier, Taxonomy, metrics, report
from taxolearn.datasets import read_fasta
from taxolearn.kernels import Spectrum, Subsequence

LETTERS = list("ACDEFGHIKLMNPQRSTVWY")
MOTIFS = {"1.1": "GHCWKD", "1.2": "GHCYNE", "2.1": "RPWFSM", "2.3": "RPWLTQ", "2.7": "RPWVKA", "3.4": "MNHQEY"}

random = np.random.default_rng(0)


def fasta(count: int) -> io.BytesIO:
    """Random letters around a motif, in which gaps come, and some letters change."""
    lines = []
    for k, number in enumerate(random.choice(list(MOTIFS), count)):
        around = ["".join(random.choice(LETTERS, random.integers(10, 40))) for _ in range(2)]
        kept = [letter if random.uniform() < 0.9 else random.choice(LETTERS) for letter in MOTIFS[number]]
        motif = "".join(letter + "".join(random.choice(LETTERS, random.integers(3))) for letter in kept)
        lines.append(f">protein{k} EC {number}\n{around[0]}{motif}{around[1]}\n")
    return io.BytesIO("".join(lines).encode())


train, test = read_fasta(fasta(250)), read_fasta(fasta(250))
y, truth = ([text.removeprefix("EC ") for text in each.descriptions] for each in (train, test))
tree = Taxonomy.from_labels(sorted(MOTIFS), separator=".")
for kernel in (Spectrum(3), Subsequence(4, 0.2), Subsequence(4, 0.2) + Spectrum(3)):
    model = KernelLogisticClassifier(kernel, taxonomy=tree, tuning=CrossValidation(3), tol=1e-4)
    model.fit(train.sequences, y)
    loss = metrics.log_loss(truth, model.predict_proba(test.sequences), classes=model.classes_)
    print(f"log loss {loss:.3f}, accuracy {model.score(test.sequences, truth):.3f} with {kernel}")
print(f"learned decay {model.hyperparameters_.kernel.parts[0].decay:.2f}")

nodes = model.predict_node_proba(test.sequences)
for name, row in zip(test.names[:3], nodes[:3], strict=True):
    likely = [(tree.names[node], row[node]) for node in np.argsort(-row, kind="stable") if 0.05 < row[node] < 1]
    print(f"{name}: " + ", ".join(f"{number} {p:.2f}" for number, p in likely))

rows = report.Rows(np.array(truth), model.predict_log_proba(test.sequences), test.sequences, test.names, None)
page = report.render(report.collect_findings(model, [rows], "Enzyme classes", id_name="protein"))
with TemporaryDirectory() as folder:  # anywhere else, to keep it
    written = Path(folder, "report.html").write_text(page, encoding="utf-8")
print(f"a report of {written // 1000} kB on {len(truth)} proteins")
