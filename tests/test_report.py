"""The report: numbers against an obvious count, and a page that holds them."""

import json
import math
import re
from datetime import date
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer

import taxolearn
from taxolearn import KernelLogisticClassifier, Taxonomy, metrics
from taxolearn.kernels import RBF, Linear
from taxolearn.report import collect_findings, render
from taxolearn.report import findings as findings_module
from taxolearn.report.description import Description
from taxolearn.report.findings import UNKNOWN, Rows
from taxolearn.report.scores import RunningScores, mean_interval, share_interval

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

    return Rows(labels, model.predict_log_proba(X), texts, [f"id-{k}" for k in range(len(texts))], explain)


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
    assert findings.rows == 120


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
    assert findings.estimate[2][1].startswith(
        "3 rows have classes that the model does not know, such as 'zzz'. They count as errors"
    )
    assert findings.nodes["support"][0] == 17
    assert findings.rows == 20
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
    findings = collect_findings(model, [Rows(labels, log_proba, ["a", "b"], ["1", "2"], None)], "Title")
    scores = RunningScores(model)
    scores.add(labels, log_proba)
    assert scores.summary()["log_loss"] == 1000.0
    assert dict(findings.summary)["log loss"] == "1000.000"


# -- How sure, and compared with what ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (1, 1), (0, 40), (40, 40), (7, 11), (834, 1000)])
def test_interval_of_a_share_is_that_of_scipy(hits, count):
    expected = binomtest(hits, count).proportion_ci(0.95, method="wilson")
    assert share_interval(hits, count) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert 0 <= share_interval(hits, count)[0] <= hits / count <= share_interval(hits, count)[1] <= 1


def test_interval_of_a_mean():
    values = np.random.default_rng(0).exponential(size=50)
    expected = norm.interval(0.95, values.mean(), values.std(ddof=1) / math.sqrt(50))
    assert mean_interval(values) == pytest.approx(expected, rel=1e-6)
    assert mean_interval(np.array([0.0, 0.0, 9.0]))[0] == 0  # losses are not negative
    assert mean_interval(np.array([1.0])) is None
    assert mean_interval(np.array([1.0, np.inf])) is None


def test_baselines_are_those_of_a_model_without_inputs(vectorizer):
    """Compared with scikit-learn's; rows of unknown classes count as errors in the accuracy alone."""
    model = model_of(vectorizer)
    texts, labels = make(61, 3)
    log_proba = model.predict_log_proba(vectorizer.transform(texts))
    dummy = DummyClassifier(strategy="prior").fit(texts, labels)
    scores = RunningScores(model)
    scores.add(labels, log_proba)
    found = scores.summary()
    expected = metrics.log_loss(labels, dummy.predict_proba(texts), classes=dummy.classes_)
    assert found["baseline_log_loss"] == pytest.approx(expected)
    assert found["baseline_accuracy"] == pytest.approx(dummy.score(texts, labels))
    assert found["baseline_class"] == dummy.predict(texts)[0]
    scores.add(np.array(["zzz"] * 9), log_proba[:9])
    more = scores.summary()
    assert more["baseline_log_loss"] == pytest.approx(expected)
    assert more["baseline_accuracy"] == pytest.approx(dummy.score(texts, labels) * 61 / 70)
    assert more["accuracy_interval"] == share_interval(round(more["accuracy"] * 70), 70)
    assert more["log_loss_interval"] == found["log_loss_interval"]


def test_no_known_rows_have_no_baseline(vectorizer):
    model = model_of(vectorizer)
    scores = RunningScores(model)
    scores.add(np.array(["zzz"]), np.log(np.full((1, 5), 0.2)))
    found = scores.summary()
    assert [found[name] for name in ("baseline_accuracy", "baseline_log_loss", "log_loss_interval")] == [None] * 3


def test_four_rows_by_hand(vectorizer):
    """Three of four right; classes 0, 0, 1, 2, so the frequencies lose (2 ln 2 + ln 4 + ln 4) / 4."""
    model = model_of(vectorizer)
    log_proba = np.log(np.full((4, 5), 0.05))
    log_proba[np.arange(4), [0, 0, 1, 1]] = np.log(0.8)
    labels = model.classes_[[0, 0, 1, 2]]
    rows = Rows(labels, log_proba, ["a"] * 4, list("1234"), None)
    findings = collect_findings(model, [rows], "Title")
    assert findings.notes["accuracy"] == [("95% interval", "30.1% to 95.4%"), ("most frequent class", "50.0%")]
    losses = -np.log([0.8, 0.8, 0.8, 0.05])
    low, high = losses.mean() - 1.96 * losses.std(ddof=1) / 2, losses.mean() + 1.96 * losses.std(ddof=1) / 2
    assert low < 0
    assert findings.notes["log loss"] == [("95% interval", f"0.000 to {high:.3f}"), ("class frequencies", "1.040")]
    page = render(findings)
    assert "<dt>log loss</dt><dd>0.916</dd>" in page
    assert '<dd class="note">class frequencies: 1.040</dd>' in page
    assert '<dd class="note">most frequent class: 50.0%</dd>' in page
    (sure, first), (good, second) = findings.estimate
    assert f"<b>{sure}</b> {first}</p>" in page
    assert f"<b>{good}</b> {second}</p>" in page
    assert "from 4 rows" in first
    assert "between 30.1% and 95.4%" in first
    assert f"between 0.000 and {high:.3f}" in first
    assert f"answering {labels[0]}, the most frequent class, would be right for 50.0%" in second
    assert "log loss of 1.040." in second


def test_a_model_worse_than_frequencies_is_said_to_be(vectorizer):
    model = model_of(vectorizer)
    log_proba = np.log(np.full((4, 5), 0.05))
    log_proba[:, 4] = np.log(0.8)
    rows = Rows(model.classes_[[0, 0, 1, 2]], log_proba, ["a"] * 4, list("1234"), None)
    second = collect_findings(model, [rows], "Title").estimate[1][1]
    assert "log loss of 1.040, which is better than the model's 2.996" in second


def test_lines_hold_the_summary_and_its_notes(vectorizer):
    model = model_of(vectorizer)
    findings = collect_findings(model, [rows_of(model, vectorizer, *make(40, 1))], "Title", [("more", "1")])
    lines = findings.lines()
    assert [line for line in lines if line in findings.summary] == findings.summary
    assert len(lines) == len(findings.summary) + 4
    place = lines.index(("accuracy", dict(findings.summary)["accuracy"]))
    assert lines[place + 1] == ("accuracy, 95% interval", findings.notes["accuracy"][0][1])


# -- The page ---------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Reads a page, and checks that every element that is opened is closed in its place."""

    EMPTY = frozenset({"meta", "input", "wbr", "br"})

    def __init__(self, page):
        super().__init__()
        self.found, self._open, self.texts = [], [], {}
        self.feed(page)
        self.close()
        assert self._open == []
        ids = [attributes["id"] for _, attributes in self.found if "id" in attributes]
        assert len(ids) == len(set(ids))

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        for tag in self._open:
            self.texts[tag] = self.texts.get(tag, "") + data

    def inside(self, name):
        """Tags and attributes from the element with this id up to the next element with one."""
        at = next(k for k, (_, attributes) in enumerate(self.found) if attributes.get("id") == name)
        rest = self.found[at + 1 :]
        return rest[: next((k for k, (_, attributes) in enumerate(rest) if "id" in attributes), len(rest))]


@pytest.fixture(scope="module")
def findings(vectorizer):
    model = model_of(vectorizer, taxonomy=Taxonomy.from_labels(list(WORDS)))
    return collect_findings(model, [rows_of(model, vectorizer, *make(40, 1))], "Title", id_name="my <id>")


@pytest.mark.parametrize(
    ("table", "keys", "first"),
    [
        ("class-table", ["name", "support", "recall", "precision"], "support"),
        ("pair-table", ["count", "truth", "answer"], "count"),
        ("document-table", ["id", "text", "truth", "answer", "likely"], None),
    ],
)
def test_columns_are_sorted_by_buttons(table, keys, first, findings):
    inside = Tags(render(findings)).inside(table)
    heads = [attributes for tag, attributes in inside if tag == "th"]
    assert [head["data-key"] for head in heads] == keys
    assert [head["aria-sort"] for head in heads] == ["descending" if key == first else "none" for key in keys]
    assert all(head["scope"] == "col" for head in heads)
    assert [tag for tag, _ in inside if tag in ("th", "button")] == ["th", "button"] * len(keys)


def test_every_link_and_label_of_the_page_leads_somewhere(findings):
    tags = Tags(render(findings))
    ids = {attributes["id"] for _, attributes in tags.found if "id" in attributes}
    targets = [attributes["href"] for tag, attributes in tags.found if tag == "a"]
    assert len(targets) == 8
    assert all(target[1:] in ids for target in targets)
    named = [attributes["aria-labelledby"] for _, attributes in tags.found if "aria-labelledby" in attributes]
    assert set(named) < ids


def test_footer_has_date_and_version(findings, monkeypatch):
    def footer(**options):
        return Tags(render(findings, **options)).texts["footer"]

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86399")
    assert footer() == f"Written by taxolearn {taxolearn.__version__} on 1970-01-01."
    assert "on 2026-02-03." in footer(written_on=date(2026, 2, 3))
    assert render(findings) == render(findings)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH must be a number of seconds since 1970, got 'yesterday'"):
        render(findings)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert re.search(r"on 20\d\d-\d\d-\d\d\.$", footer())


def test_ids_name_the_rows(findings):
    names = findings.nodes["names"]
    texts, labels = make(40, 1)
    assert [document[:2] for document in findings.documents] == [[f"id-{k}", text] for k, text in enumerate(texts)]
    assert [names[document[2]] for document in findings.documents] == labels.tolist()
    assert findings.mistakes
    for each in findings.mistakes:
        assert texts[int(each["id"].removeprefix("id-"))] == each["text"]
    page = render(findings)
    assert '<button type="button">my &lt;id&gt;</button>' in page


def test_all_wrong_rows_are_kept_where_others_are_not(vectorizer, monkeypatch):
    model = model_of(vectorizer)
    texts, labels = make(120, 1)
    rows = rows_of(model, vectorizer, texts, labels)
    answers = model.predict(vectorizer.transform(texts))
    wrong = np.flatnonzero(labels != answers)
    assert 10 < len(wrong) < 60

    def kept(limit):
        monkeypatch.setattr(findings_module, "DOCUMENTS", limit)
        parts = [
            Rows(labels[part], rows.log_proba[part], rows.texts[part], rows.ids[part], None)
            for part in (slice(0, 50), slice(50, 120))
        ]
        found = collect_findings(model, parts, "Title")
        return [int(document[0].removeprefix("id-")) for document in found.documents], found.documents_note

    assert kept(120) == (list(range(120)), "")
    assert kept(60) == (
        [k for k in range(120) if k < 60 or k in wrong],
        "The first 60 of 120 rows, and all wrong ones.",
    )
    assert kept(10) == (
        [k for k in range(120) if k < 10 or k in wrong[:10]],
        f"The first 10 of 120 rows, and the first 10 of {len(wrong)} wrong ones.",
    )
    assert "all wrong ones" not in render(collect_findings(model, [rows], "Title"))


def test_any_classifier_with_classes_and_a_tree_is_enough():
    """Nothing else is asked of a model: neither learned variances nor weights."""
    model = SimpleNamespace(classes_=np.array(["a", "b"]), taxonomy_=None)
    log_proba = np.log([[0.9, 0.1], [0.6, 0.4]])
    findings = collect_findings(model, [Rows(np.array(["a", "b"]), log_proba, ["x", "y"], ["1", "2"], None)], "Title")
    assert dict(findings.summary)["accuracy"] == "50.0%"
    assert (findings.variances, findings.model) == ([], Description())
    assert 'id="model"' not in render(findings)
    assert [each["id"] for each in findings.mistakes] == ["2"]
    Tags(render(findings))
