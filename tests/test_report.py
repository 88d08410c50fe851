"""The report: numbers against an obvious count, and a page that holds them."""

import json
import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from taxolearn import KernelLogisticClassifier, Taxonomy
from taxolearn.kernels import RBF
from taxolearn.report import gather, render
from taxolearn.report.findings import Rows

WORDS = {
    "fruit/apple": "apple orchard cider red green",
    "fruit/pear": "pear orchard perry yellow green",
    "tool/hammer": "hammer nail wood iron",
    "tool/saw": "saw blade wood iron",
    "water": "sea river wave </script> <b>",
}


def make(count, seed):
    generator = np.random.default_rng(seed)
    labels = np.array(list(WORDS))[generator.integers(len(WORDS), size=count)]
    texts = [" ".join(generator.choice([*WORDS[label].split(), "green", "iron"], 3)) for label in labels]
    return texts, labels


@pytest.fixture(scope="module")
def vectorizer():
    return TfidfVectorizer().fit(make(150, 0)[0])


def model_of(vectorizer, **options):
    texts, labels = make(150, 0)
    return KernelLogisticClassifier(hyperparameters="fixed", **options).fit(vectorizer.transform(texts), labels)


def rows_of(model, vectorizer, texts, labels):
    X = vectorizer.transform(texts)
    names = vectorizer.get_feature_names_out()
    explain = None
    if hasattr(model, "coef_"):

        def explain(rows, nodes):
            return model.explain(X[rows], nodes, feature_names=names)

    return Rows(labels, model.predict_proba(X), texts, explain)


@pytest.mark.parametrize("is_tree", [False, True])
def test_numbers(is_tree, vectorizer):
    tree = Taxonomy.from_labels(list(WORDS))
    model = model_of(vectorizer, taxonomy=tree if is_tree else None)
    texts, labels = make(120, 1)
    parts = [(texts[:50], labels[:50]), (texts[50:], labels[50:])]
    findings = gather(model, (rows_of(model, vectorizer, *part) for part in parts), "Title")
    answers = model.predict(vectorizer.transform(texts))
    names = findings.nodes["names"]
    for node, name in enumerate(names):
        below = [label for label in WORDS if node == 0 or label == name or (is_tree and label.startswith(f"{name}/"))]
        truth, given = np.isin(labels, below), np.isin(answers, below)
        assert findings.nodes["support"][node] == truth.sum()
        assert findings.nodes["answered"][node] == given.sum()
        assert findings.nodes["recall"][node] == pytest.approx((truth & given).sum() / truth.sum(), rel=1e-3)
        assert findings.nodes["precision"][node] == pytest.approx((truth & given).sum() / given.sum(), rel=1e-3)
    wrong = labels != answers
    assert sum(count for _, _, count in findings.pairs) == 120
    assert [count for _, _, count in findings.pairs] == sorted((pair[2] for pair in findings.pairs), reverse=True)
    assert len({(truth, answer) for truth, answer, _ in findings.pairs}) == len(findings.pairs)
    for truth, answer, count in findings.pairs:
        assert count == ((labels == names[truth]) & (answers == names[answer])).sum()
    assert findings.curve["rejected"][0] == 0
    assert findings.curve["error"][0] == pytest.approx(wrong.mean(), rel=1e-3)
    assert sum(findings.reliability["rows"]) == 120
    assert dict(findings.summary)["accuracy"] == f"{1 - wrong.mean():.1%}"
    assert len(findings.mistakes) == min(wrong.sum(), 100)
    confidences = [each["confidence"] for each in findings.mistakes]
    assert confidences == sorted(confidences, reverse=True)
    for each in findings.mistakes:
        assert each["truth"] != each["answer"]
        answer, truth = each["reasons"]
        assert answer["node"] != truth["node"]
        assert all(word in each["text"].lower() for word, _ in answer["words"])
    assert findings.is_tree is is_tree
    assert len(findings.documents) == 120


def test_unknown_classes_are_left_out(vectorizer):
    model = model_of(vectorizer)
    texts, labels = make(20, 1)
    labels = np.where(np.arange(20) < 3, "zzz", labels)
    findings = gather(model, [rows_of(model, vectorizer, texts, labels)], "Title")
    summary = dict(findings.summary)
    answers = model.predict(vectorizer.transform(texts))
    assert summary["rows"] == "20"
    assert summary["accuracy"] == f"{np.mean(answers == labels):.1%}"
    assert summary["rows of unknown classes: errors in accuracies, else left out"] == "3"
    assert findings.nodes["support"][0] == 17
    with pytest.raises(ValueError, match="no rows of known classes"):
        gather(model, [rows_of(model, vectorizer, texts[:3], labels[:3])], "Title")


def test_models_without_weights_have_no_reasons(vectorizer):
    model = model_of(vectorizer, kernel=RBF(1.0))
    findings = gather(model, [rows_of(model, vectorizer, *make(40, 1))], "Title")
    assert all(each["reasons"] == [] for each in findings.mistakes)


def test_page_holds_everything_and_nothing_of_others(vectorizer):
    model = model_of(vectorizer, taxonomy=Taxonomy.from_labels(list(WORDS)))
    findings = gather(model, [rows_of(model, vectorizer, *make(40, 1))], "A <title> & more")
    page = render(findings)
    assert "<title>A &lt;title&gt; &amp; more</title>" in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(data) == json.loads(json.dumps(findings.to_json()))
    assert "</script> <b>" not in data
    # Self-contained: nothing is fetched.
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
