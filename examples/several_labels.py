"""Several labels per row, in a tree.

Mails of an imaginary office, each about any number of topics, which form a tree. One learns how to give label sets to a
model, what its probabilities of labels are, and that answers depend on what they are for: the fewest wrong labels, the
best F1 of each mail, or thresholds of their own for rare labels.
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from taxolearn import RecursiveRegularizationClassifier, Taxonomy, metrics

TOPICS = {  # how frequent a topic is, and the words that tell it
    "work/budget": (0.30, "costs invoice quarter spending forecast approve"),
    "work/hiring": (0.15, "interview candidate offer position salary start"),
    "work/contracts": (0.20, "agreement clause sign supplier terms renew"),
    "travel/flights": (0.15, "flight airport delay boarding seat ticket"),
    "travel/hotels": (0.06, "room hotel breakfast reservation night lobby"),
    "private": (0.10, "birthday kids weekend dinner garden football"),
}
SMALL_TALK = ["please", "thanks", "the", "and", "of", "my", "on", "meeting", "monday", "could", "about", "regards"]
AVERAGES = ("micro", "macro", "examples")

random = np.random.default_rng(0)


def mails(count: int) -> tuple[list[str], list[list[str]]]:
    """Texts with their topics; some words of each topic are missing, and some come from others."""
    texts, sets = [], []
    for _ in range(count):
        topics = [topic for topic, (share, _) in TOPICS.items() if random.uniform() < share]
        told = [topic if random.uniform() < 0.8 else random.choice(list(TOPICS)) for topic in topics]
        words = [word for topic in told for word in random.choice(TOPICS[topic][1].split(), 2)]
        texts.append(" ".join(random.permutation([*words, *random.choice(SMALL_TALK, 6)])))
        sets.append(topics)  # may be empty
    return texts, sets


texts, y = mails(600)
new_texts, truth = mails(1000)
features = TfidfVectorizer().fit(texts)
model = RecursiveRegularizationClassifier(Taxonomy.from_labels(TOPICS)).fit(features.transform(texts), y)

X = features.transform(["the invoice of the supplier, and a delay of my flight", "dinner on monday?"])
for answer, p in zip(model.predict(X), model.predict_proba(X), strict=True):
    sure = ", ".join(f"{label} {p[k]:.2f}" for k, label in enumerate(model.classes_) if p[k] > 0.2)
    print(f"answer {answer}, probabilities {sure}")

X = features.transform(new_texts)
for name, options in (("hamming", {}), ("f1", {"loss": "f1"}), ("s-cut", {"thresholds": "s-cut"})):
    answers = model.decide(X, **options)
    micro, macro, each = (metrics.precision_recall_f(truth, answers, average=kind).f for kind in AVERAGES)
    size = sum(map(len, answers)) / len(answers)
    print(f"{name}: labels per mail {size:.2f}, micro F1 {micro:.3f}, macro F1 {macro:.3f}, per mail {each:.3f}")
