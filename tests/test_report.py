"""The report: numbers against an obvious count, and a page that holds them."""

import json
import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from taxolearn import KernelLogisticClassifier, Taxonomy, metrics
from taxolearn.kernels import RBF, Linear
from taxolearn.report import collect_findings, render
from taxolearn.report.findings import UNKNOWN, Rows
from taxolearn.report.scores import RunningScores

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
    return KernelLogisticClassifier(**{"kernel": Linear(), "tuning": None} | options).fit(
        vectorizer.transform(texts), labels
    )


def rows_of(model, vectorizer, texts, labels):
    X = vectorizer.transform(texts)
    names = vectorizer.get_feature_names_out()
    explain = None
    if hasattr(model, "coef_"):

        def explain(rows, nodes):
            return model.explain(X[rows], nodes, feature_names=names)

    return Rows(labels, model.predict_log_proba(X), texts, explain)


@pytest.mark.parametrize("is_tree", [False, True])
def test_numbers(is_tree, vectorizer):
    tree = Taxonomy.from_labels(list(WORDS))
    model = model_of(vectorizer, taxonomy=tree if is_tree else None)
    texts, labels = make(120, 1)
    parts = [(texts[:50], labels[:50]), (texts[50:], labels[50:])]
    findings = collect_findings(model, (rows_of(model, vectorizer, *part) for part in parts), "Title")
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
    findings = collect_findings(model, [rows_of(model, vectorizer, texts, labels)], "Title")
    summary = dict(findings.summary)
    answers = model.predict(vectorizer.transform(texts))
    assert summary["rows"] == "20"
    assert summary["accuracy"] == f"{np.mean(answers == labels):.1%}"
    assert summary[UNKNOWN] == "3"
    assert findings.nodes["support"][0] == 17
    with pytest.raises(ValueError, match="no rows of known classes"):
        collect_findings(model, [rows_of(model, vectorizer, texts[:3], labels[:3])], "Title")


def test_models_without_weights_have_no_reasons(vectorizer):
    model = model_of(vectorizer, kernel=RBF(1.0))
    findings = collect_findings(model, [rows_of(model, vectorizer, *make(40, 1))], "Title")
    assert all(each["reasons"] == [] for each in findings.mistakes)


def test_page_holds_everything_and_nothing_of_others(vectorizer):
    model = model_of(vectorizer, taxonomy=Taxonomy.from_labels(list(WORDS)))
    findings = collect_findings(model, [rows_of(model, vectorizer, *make(40, 1))], "A <title> & more")
    page = render(findings)
    assert "<title>A &lt;title&gt; &amp; more</title>" in page
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(data) == json.loads(json.dumps(findings.to_json()))
    assert "</script> <b>" not in data
    # Self-contained: nothing is fetched.
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("is_tree", [False, True])
def test_scores_are_those_of_the_metrics(is_tree, vectorizer):
    """Rows in parts, by the one definition of every score; those of unknown classes have no log loss."""
    tree = Taxonomy.from_labels(list(WORDS)) if is_tree else None
    model = model_of(vectorizer, taxonomy=tree)
    texts, labels = make(300, 1)
    log_proba = model.predict_log_proba(vectorizer.transform(texts))
    findings = collect_findings(model, [rows_of(model, vectorizer, texts, labels)], "Title")
    scores = RunningScores(model)
    for part in (slice(0, 100), slice(100, 300)):
        scores.add(labels[part], log_proba[part])
    found, summary = scores.summary(), dict(findings.summary)
    curve = metrics.reliability_curve(labels, np.exp(log_proba), classes=model.classes_)
    assert curve.calibration_error > 0.005
    assert found["calibration_error"] == pytest.approx(curve.calibration_error)
    assert summary["calibration error"] == f"{curve.calibration_error:.1%}"
    np.testing.assert_allclose(findings.reliability["confidence"], curve.confidence, rtol=1e-3)
    np.testing.assert_allclose(findings.reliability["frequency"], curve.frequency, rtol=1e-3)
    assert findings.reliability["rows"] == curve.weight.tolist()
    expected = metrics.log_loss(labels, log_proba=log_proba, classes=model.classes_)
    assert found["log_loss"] == pytest.approx(expected)
    assert summary["log loss"] == f"{expected:.3f}"
    scores.add(np.array(["zzz", "aaa"]), log_proba[:2])
    more = scores.summary()
    assert more["rows_of_unknown_classes"] == 2
    assert more["log_loss"] == pytest.approx(expected)
    assert more["calibration_error"] == pytest.approx(curve.calibration_error)
    assert more["accuracy"] == pytest.approx(found["accuracy"] * 300 / 302)
    assert more["taxo_loss"] == found["taxo_loss"]


def test_log_loss_is_not_clipped(vectorizer):
    """The report says what ``evaluate`` says, also of probabilities below the smallest number."""
    model = model_of(vectorizer)
    log_proba = np.full((2, 5), -2000.0)
    log_proba[:, 0] = 0.0
    labels = model.classes_[[0, 1]]
    findings = collect_findings(model, [Rows(labels, log_proba, ["a", "b"], None)], "Title")
    scores = RunningScores(model)
    scores.add(labels, log_proba)
    assert scores.summary()["log_loss"] == 1000.0
    assert dict(findings.summary)["log loss"] == "1000.000"
