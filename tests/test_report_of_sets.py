"""The report on several labels per row: numbers against obvious counts and metrics, and a page that holds them."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from browser import Browser, find_chromium
from scipy.special import expit, logit
from sklearn.metrics import average_precision_score, f1_score, hamming_loss
from test_report import Tags
from test_report_page import CONTRASTS, CUT_OFF

from taxolearn import RecursiveRegularizationClassifier, Taxonomy, metrics
from taxolearn.report import collect_set_findings, render
from taxolearn.report import set_findings as set_findings_module
from taxolearn.report.scores import ratio_interval
from taxolearn.report.set_findings import SetRows
from taxolearn.report.set_scores import RunningSetScores, ScoreHistograms, above_labels, lowest

TREE = Taxonomy.from_labels(["food/apple", "food/pear", "tool/saw", "tool/hammer", "gift"])
LEAVES = sorted(TREE.classes.tolist())


def make(count, seed):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 6))
    has = X[:, :5] * 2 + generator.logistic(size=(count, 5)) > 1.5
    return X, [[LEAVES[k] for k in np.flatnonzero(row)] for row in has]


@pytest.fixture(scope="module", params=[True, False], ids=["tree", "flat"])
def model(request):
    return RecursiveRegularizationClassifier(TREE if request.param else None).fit(*make(200, 0))


@pytest.fixture(scope="module")
def over_tree():
    return RecursiveRegularizationClassifier(TREE).fit(*make(200, 0))


def rows_of(model, X, y, first=0):
    ids = [f"id-{first + k}" for k in range(len(X))]
    texts = [f"text {name} </script> <b>" for name in ids]
    return SetRows(y, model.predict_proba(X), texts, ids, lambda rows, nodes: model.explain(X[rows], nodes))


def indicator(sets, names):
    """Which rows have a label among these, or one below it."""
    return np.array(
        [[any(each == name or each.startswith(f"{name}/") for each in row) for name in names] for row in sets]
    )


def test_numbers(model):
    X, y = make(150, 1)
    parts = [rows_of(model, X[:60], y[:60]), rows_of(model, X[60:], y[60:], 60)]
    found = collect_set_findings(model, parts, "Title")
    answers, proba = model.predict(X), model.predict_proba(X)
    names = found.nodes["names"]
    for node, name in list(enumerate(names))[1:]:
        # Of a node above labels its own probability counts, even where none of those is more probable than not.
        truth, given = indicator(y, [name])[:, 0], proba[:, model.classes_.tolist().index(name)] > 0.5
        assert found.nodes["support"][node] == truth.sum()
        assert found.nodes["answered"][node] == given.sum()
        assert found.nodes["recall"][node] == pytest.approx((truth & given).sum() / truth.sum(), rel=1e-3)
        assert found.nodes["f1"][node] == pytest.approx(f1_score(truth, given), rel=1e-3)
        cells = np.ceil(16 * logit(proba[:, model.classes_.tolist().index(name)]))  # those within one count as equal
        assert found.nodes["area"][node] == pytest.approx(average_precision_score(truth, cells), rel=1e-3)
    assert found.nodes["support"][0] == sum(map(bool, y))
    truth, given = indicator(y, LEAVES), indicator(answers, LEAVES)
    summary = dict(found.summary)
    assert summary["micro F1"] == f"{f1_score(truth, given, average='micro'):.1%}"
    assert summary["macro F1"] == f"{f1_score(truth, given, average='macro'):.1%}"
    assert summary["labels wrong (Hamming loss)"] == f"{hamming_loss(truth, given):.2%}"
    assert summary["rows with all labels right"] == f"{(truth == given).all(axis=1).mean():.1%}"
    assert summary["labels per row"] == f"{truth.sum(axis=1).mean():.2f}"
    assert [sum(found.sizes[kind]) for kind in ("truth", "answer")] == [150, 150]
    assert found.sizes["truth"] == np.bincount(truth.sum(axis=1), minlength=len(found.sizes["truth"])).tolist()
    wrong = (truth != given).any(axis=1)
    assert len(found.documents) == 150
    for (name, _, true, answered, count), row in zip(found.documents, range(150), strict=True):
        assert name == f"id-{row}"
        assert sorted(names[node] for node in true) == y[row]
        assert tuple(sorted(names[node] for node in answered)) == answers[row]
        assert count == (truth[row] != given[row]).sum()
    assert [each["loss"] for each in found.mistakes] == sorted((each["loss"] for each in found.mistakes), reverse=True)
    assert len(found.mistakes) == min(100, wrong.sum())
    for each in found.mistakes:
        row = int(each["id"].removeprefix("id-"))
        expected = {(name, name in y[row], name in answers[row]) for name in {*y[row], *answers[row]}}
        assert {(names[node], is_true, is_answered) for node, _, is_true, is_answered in each["labels"]} == expected
        for reason in each["reasons"]:
            is_missed = reason["node"] in y[row] and reason["node"] not in answers[row]
            assert reason["is_true"] is is_missed


def test_pairs(model):
    X, y = make(150, 1)
    found = collect_set_findings(model, [rows_of(model, X, y)], "Title")
    names = ["nothing", *found.nodes["names"][1:]]
    expected = {}
    for true, answered in zip(y, map(set, model.predict(X)), strict=True):
        missed, extra = sorted({*true} - answered), sorted(answered - {*true})
        pairs = [(label, label) for label in answered & {*true}]
        if missed or extra:
            pairs += [(a, b) for a in missed or ["nothing"] for b in extra or ["nothing"]]
        for pair in pairs:
            expected[pair] = expected.get(pair, 0) + 1
    assert {(names[a], names[b]): count for a, b, count in found.pairs} == expected


def test_ways_are_those_of_decide(over_tree):
    X, y = make(150, 1)
    found = collect_set_findings(over_tree, [rows_of(over_tree, X, y)], "Title")
    truth = indicator(y, LEAVES)
    for row, options in zip(
        found.ways, ({}, {"loss": "f1"}, {"loss": "hierarchical"}, {"thresholds": "s-cut"}), strict=True
    ):
        answers = indicator(over_tree.decide(X, **options), LEAVES)
        assert row["micro_f1"] == pytest.approx(f1_score(truth, answers, average="micro"))
        assert row["labels_per_row"] == pytest.approx(answers.sum(axis=1).mean())
        both, all_of = (truth & answers).sum(axis=1), truth.sum(axis=1) + answers.sum(axis=1)
        assert row["row_f1"] == pytest.approx(np.where(all_of > 0, 2 * both / np.maximum(all_of, 1), 1).mean())


def test_levels(over_tree):
    X, y = make(150, 1)
    found = collect_set_findings(over_tree, [rows_of(over_tree, X, y)], "Title")
    proba = over_tree.predict_proba(X)
    levels = [["food", "gift", "tool"], ["food/apple", "food/pear", "tool/hammer", "tool/saw"]]
    for row, names in zip(found.levels, levels, strict=True):
        truth, given = indicator(y, names), proba[:, np.searchsorted(over_tree.classes_, names)] > 0.5
        assert row["labels"] == len(names)
        assert row["micro_f1"] == pytest.approx(f1_score(truth, given, average="micro"))
        assert row["macro_f1"] == pytest.approx(f1_score(truth, given, average="macro"))


def test_scores_are_those_of_the_metrics(model):
    """In parts, by lists and by indicators."""
    X, y = make(150, 1)
    proba, columns = model.predict_proba(X), model.label_form_.columns
    truth = indicator(y, LEAVES)
    for labels in (y, truth.astype(int), sp.csc_matrix(truth.astype(float))):
        scores = RunningSetScores(model)
        for part in (slice(0, 40), slice(40, 150)):
            scores.add(labels[part], proba[part])
        found = scores.summary()
        for k in (1, 3, 5):
            assert found[f"precision_at_{k}"] == pytest.approx(metrics.precision_at_k(truth, proba[:, columns], k=k))
        for k in (3, 5):
            assert found[f"ndcg_at_{k}"] == pytest.approx(metrics.ndcg_at_k(truth, proba[:, columns], k=k))
        p = proba[:, columns]
        loss = -np.log(np.where(truth, p, 1 - p)).sum(axis=1).mean()
        assert found["log_loss"] == pytest.approx(loss)
        assert found["log_loss_per_label"] == pytest.approx(loss / 5)
        curve = metrics.reliability_of_answers(p.ravel(), truth.ravel(), n_bins=20)
        np.testing.assert_allclose(scores.reliability()[1], curve.frequency)
        assert found["calibration_error"] == pytest.approx(curve.calibration_error)


def test_curves_of_histograms():
    """Where no two rows of a label share a cell, areas are exact; thresholds are as if counted one by one."""
    generator = np.random.default_rng(0)
    ranks = np.stack([generator.permutation(60) for _ in range(3)], axis=1)
    p = expit((ranks - 30) / 10 + 1e-3)
    truth = generator.uniform(size=(60, 3)) < p
    truth[:, 2] = False
    histograms = ScoreHistograms(3)
    histograms.add(truth[:25], p[:25])
    histograms.add(truth[25:], p[25:])
    areas = histograms.areas()
    assert np.isnan(areas[2])
    for label in (0, 1):
        assert areas[label] == pytest.approx(average_precision_score(truth[:, label], p[:, label]))
    found = histograms.by_threshold(np.arange(3))
    for k, threshold in enumerate(found["threshold"]):
        chosen = p > threshold
        assert found["micro_f1"][k] == pytest.approx(f1_score(truth.ravel(), chosen.ravel(), zero_division=0))
        assert found["labels_per_row"][k] == pytest.approx(chosen.sum(axis=1).mean())
        expected = f1_score(truth[:, :2], chosen[:, :2], average="macro", zero_division=0)
        assert found["macro_f1"][k] == pytest.approx(expected)


def test_probabilities_of_zero_half_and_one():
    """One half is not more probable than not, and certainty has a cell."""
    histograms = ScoreHistograms(1)
    histograms.add(np.array([[True], [False], [True], [False]]), np.array([[0.5], [0.0], [1.0], [0.5]]))
    found = histograms.by_threshold(np.arange(1))
    half = found["threshold"].index(0.5)
    assert found["labels_per_row"][half] == 0.25
    assert found["labels_per_row"][half - 1] == 0.75
    assert histograms.areas()[0] == pytest.approx((1 + 2 / 3) / 2)


def test_interval_of_a_ratio_is_that_of_the_bootstrap():
    generator = np.random.default_rng(0)
    wholes = generator.integers(0, 6, 2000)
    parts = generator.binomial(wholes, 0.7)
    low, high = ratio_interval(parts, wholes)
    draws = generator.integers(0, 2000, (4000, 2000))
    ratios = parts[draws].sum(axis=1) / wholes[draws].sum(axis=1)
    assert (low + high) / 2 == pytest.approx(parts.sum() / wholes.sum())
    assert (high - low) / 2 == pytest.approx(1.96 * ratios.std(), rel=0.05)
    assert ratio_interval(parts[:1], wholes[:1]) is None
    assert ratio_interval(np.zeros(3, int), np.zeros(3, int)) is None


def test_lowest_labels():
    classes = np.array(sorted(TREE.names[1:].tolist()))
    place = {name: k for k, name in enumerate(classes.tolist())}
    sets = np.zeros((2, len(classes)), dtype=bool)
    sets[0, [place["food"], place["food/pear"], place["gift"]]] = True
    sets[1, place["tool"]] = True
    above = above_labels(TREE, classes)
    found = lowest(sets, np.arange(len(classes)), above)
    assert [classes[row].tolist() for row in found] == [["food/pear", "gift"], ["tool"]]
    found = lowest(sets, np.array([place["food"], place["gift"]]), above)
    assert [classes[row].tolist() for row in found] == [["food", "gift"], []]


def test_unknown_labels_and_rows_without_any(over_tree):
    X, _ = make(3, 1)
    y = [["food/plum", "gift"], [], ["gift"]]
    found = collect_set_findings(over_tree, [rows_of(over_tree, X, y)], "Title")
    assert dict(found.summary)["unknown labels"] == "1"
    assert "1 label is unknown to the model, such as 'food/plum'" in found.estimate[2][1]
    assert found.documents[0][4] >= 1
    assert sum(found.sizes["truth"][:3]) == 3
    none = collect_set_findings(over_tree, [rows_of(over_tree, X, [[], [], []])], "Title")
    assert dict(none.summary)["macro F1"] == "–"
    Tags(render(none))
    with pytest.raises(ValueError, match="no rows"):
        collect_set_findings(over_tree, [], "Title")


def test_all_wrong_rows_are_kept_where_others_are_not(over_tree, monkeypatch):
    X, y = make(120, 1)
    wrong = [k for k, answer in enumerate(over_tree.predict(X)) if set(answer) != set(y[k])]
    monkeypatch.setattr(set_findings_module, "DOCUMENTS", 20)
    parts = [rows_of(over_tree, X[:50], y[:50]), rows_of(over_tree, X[50:], y[50:], 50)]
    found = collect_set_findings(over_tree, parts, "Title")
    kept = [int(document[0].removeprefix("id-")) for document in found.documents]
    assert kept == [k for k in range(120) if k < 20 or k in wrong[:20]]
    assert found.documents_note.startswith("The first 20 of 120 rows")


def test_page_holds_everything_and_nothing_of_others(model):
    X, y = make(60, 1)
    found = collect_set_findings(model, [rows_of(model, X, y)], "A <title>", id_name="my <id>")
    page = render(found)
    tags = Tags(page)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(data) == json.loads(json.dumps(found.to_json()))
    assert not re.search(r'(src|href)="(?!#)', page)
    ids = {attributes["id"] for _, attributes in tags.found if "id" in attributes}
    assert {attributes["href"][1:] for tag, attributes in tags.found if tag == "a"} <= ids
    assert ("levels" in ids) is found.is_tree
    assert '<button type="button">my &lt;id&gt;</button>' in page
    assert "each label against the rest" in page
    assert "of the parent" not in page or found.is_tree


# -- In a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(over_tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "r.html"
    found = collect_set_findings(over_tree, [rows_of(over_tree, *make(300, 1))], "A report")
    path.write_text(render(found), encoding="utf-8")
    return path


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium (Debian: chromium)")
def test_the_page_works(page):
    with Browser() as browser:
        browser.open(page)
        assert browser.run("document.getElementById('nodes').children.length") == 3
        browser.run("document.getElementById('open-all').click()")
        assert browser.run("document.getElementById('nodes').children.length") == 7
        text = "document.getElementById('threshold-numbers').textContent"
        before = browser.run(text)
        assert before.startswith("Labels above 50.0%: ")
        browser.run(
            "{const s = document.getElementById('threshold'); s.value = 20; s.dispatchEvent(new Event('input'))}"
        )
        assert browser.run(text) != before
        find = "{{const f = document.getElementById('find-{0}'); f.value = '{1}'; f.dispatchEvent(new Event('input'))}}"
        browser.run(find.format("document", "text id-299"))
        assert browser.run("document.getElementById('document-rows').children.length") == 1
        browser.run(find.format("class", "saw"))
        assert browser.run("document.querySelector('.hit .label').textContent") == "tool/saw"
        assert browser.run("document.querySelectorAll('#mistake-list li').length") == 10
        assert browser.run("document.querySelectorAll('#pairs tr').length") > 3
        for column in range(6):
            browser.run(f"document.querySelectorAll('#class-table thead button')[{column}].click()")
        for width in (360, 800, 1200):
            browser.look(width=width)
            browser.open(page)
            browser.run("document.getElementById('open-all').click()")
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.run(CUT_OFF) == []
        for dark in (False, True):
            browser.look(dark=dark)
            browser.open(page)
            found = browser.run(CONTRASTS)
            assert {"SPAN.missed", "SPAN.truth", "SPAN.answer"} <= set(found)
            assert {kind: contrast for kind, contrast in found.items() if contrast < 4.5} == {}
        assert browser.complaints == []
