"""What the report says about the model itself, in words."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from taxolearn import (
    CentroidClassifier,
    KernelLogisticClassifier,
    NaiveBayesClassifier,
    PoolClassifier,
    Taxonomy,
    TopDownClassifier,
)
from taxolearn.estimators import PoolRow
from taxolearn.kernels import RBF, Linear
from taxolearn.report import collect_findings, render
from taxolearn.report.description import cross_validated_log_loss, describe, explained_by
from taxolearn.report.findings import Rows

NAMES = np.array(["a/x", "a/y", "b/z"])
TREE = Taxonomy.from_labels(NAMES)
RATES = np.random.default_rng(6).dirichlet(np.full(20, 0.3), 3) * 8
PLAIN = KernelLogisticClassifier(tuning=None)


def draw(count, seed):
    generator = np.random.default_rng(seed)
    numbers = np.arange(count) % 3
    X = generator.poisson(RATES[numbers]).astype(float)
    # Features that go together, of which naive Bayes knows nothing.
    together = 2 + 2 * np.sin(np.arange(12) + numbers[:, None])
    X[:, :12] = generator.poisson(together) * generator.integers(0, 2, (count, 1))
    return sp.csr_matrix(X), NAMES[numbers]


@pytest.fixture(scope="module")
def pool():
    logistic = KernelLogisticClassifier(taxonomy=TREE, tuning=None)
    experts = [
        ("naive Bayes", NaiveBayesClassifier(taxonomy=TREE)),
        ("softmax", logistic),
        ("independent", KernelLogisticClassifier(taxonomy=TREE, tuning=None, loss="independent")),
    ]
    return PoolClassifier(experts, taxonomy=TREE).fit(*draw(150, 0))


def report_of(model, count=90, seed=1, **options):
    X, y = draw(count, seed)
    rows = Rows(y, model.predict_log_proba(X), [""] * count, [str(k) for k in range(count)], None)
    return collect_findings(model, [rows], "Title", **options)


def test_experts_of_a_pool(pool):
    found = describe(pool)
    assert [each.weight for each in found.experts] == sorted((row.weight for row in pool.table_), reverse=True)
    by_name = {row.name: row for row in pool.table_}
    for each in found.experts:
        row = by_name[each.name]
        assert (each.log_loss, each.accuracy, each.weight) == (row.log_loss, row.accuracy, row.weight)
    kinds = {each.name: each.kind for each in found.experts if each.weight > 0}
    expected = {
        "naive Bayes": "naive Bayes: it counts how often features occur in each class",
        "softmax": "logistic regression, all classes at once along the tree",
        "independent": "logistic regression, each class against the rest along the tree",
    }
    assert kinds == {name: expected[name] for name in pool.experts_}
    assert f"a pool of {len(pool.weights_)} experts" in found.sentences[0]


def test_experts_on_the_page(pool):
    """Figures of every expert, and a bar for its weight, relative to the heaviest."""
    page = render(report_of(pool))
    heaviest = max(row.weight for row in pool.table_)
    for row in pool.table_:
        shown = re.search(rf'<tr><th scope="row">{row.name}</th>.*?</tr>', page).group()
        assert f'<td class="number">{row.log_loss:.3f}</td><td class="number">{row.accuracy:.1%}</td>' in shown
        assert f'<i style="width:{100 * row.weight / heaviest:.1f}%"></i>' in shown
        assert f"<span>{row.weight:.2f}</span>" in shown if row.weight else "<span>not used</span>" in shown


def test_names_of_experts_are_escaped():
    model = PoolClassifier([("<i>soft", PLAIN)]).fit(*draw(60, 0))
    page = render(report_of(model))
    assert '<th scope="row">&lt;i&gt;soft</th>' in page
    assert "<i>soft" not in re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)


def test_one_expert_is_no_mixture():
    model = PoolClassifier([("only", PLAIN)]).fit(*draw(60, 0))
    (sentence,) = describe(model).sentences
    assert "of which one expert was kept, only: logistic regression, all classes at once." in sentence


def test_experts_that_are_not_used_are_named():
    model = PoolClassifier([("good", PLAIN)]).fit(*draw(150, 0))
    model.table_.insert(0, PoolRow("poor", 1.5, 0.3, 0.0, 0.1))
    found = describe(model)
    assert found.sentences[0].endswith("Not used, since it helps little or there was no time for it: poor.")
    assert [(each.name, each.weight) for each in found.experts] == [("good", 1.0), ("poor", 0.0)]
    assert not any(each.name.startswith("poor") for each in found.settings)


def test_noise_is_said_to_be_answered_by_frequencies():
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = PoolClassifier().fit(X, NAMES[np.arange(90) % 3])
    assert list(model.weights_) == ["class frequencies"]
    found = describe(model)
    assert found.sentences[0].startswith("The model gives the same answer for every row")
    kind = next(each.kind for each in found.experts if each.name == "class frequencies")
    assert kind.startswith("the same for every row")
    assert explained_by(model)[0] is False


def test_one_row_per_class_has_equal_weights_and_no_scores():
    model = PoolClassifier().fit(np.eye(3), NAMES)
    found = describe(model)
    assert found.sentences[0].endswith("so nothing could be held out, and all weights are equal.")
    assert {each.log_loss for each in found.experts} == {each.accuracy for each in found.experts} == {None}
    assert cross_validated_log_loss(model) is None


def test_reasons_are_those_of_the_expert_that_is_named(pool):
    can, sentence = explained_by(pool)
    X, y = draw(5, 2)
    name = re.search(r"the expert (.*?), the linear one", sentence).group(1)
    assert can
    expected = pool.experts_[name].explain(X, y)
    assert [[step.contributions for step in row] for row in pool.explain(X, y)] == [
        [step.contributions for step in row] for row in expected
    ]
    assert sentence in render(report_of(pool))


def test_reasons_of_other_models():
    X, y = draw(60, 0)
    assert explained_by(TopDownClassifier(TREE, tuning=None).fit(X, y)) == (True, "")
    assert explained_by(NaiveBayesClassifier().fit(X, y)) == (True, "")
    assert explained_by(CentroidClassifier().fit(X, y)) == (True, "")
    assert explained_by(PLAIN.fit(X, y)) == (True, "")
    bent = KernelLogisticClassifier(RBF(1.0), tuning=None)
    assert explained_by(bent.fit(X, y)) == (False, "")
    can, sentence = explained_by(PoolClassifier([bent]).fit(X, y))  # which is of no use
    assert not can
    assert sentence.startswith("The answer is the same for all rows")
    bent = KernelLogisticClassifier(RBF(4.0), tuning=None)
    can, sentence = explained_by(PoolClassifier([bent]).fit(X, y))
    assert can
    assert sentence.startswith("A feature counts by how much the answer would change")


def test_settings_in_words(pool):
    X, y = draw(150, 0)
    found = {each.name: each for each in describe(pool).settings}
    bayes = pool.experts_["naive Bayes"]
    assert found["naive Bayes: smoothing"].value == f"{bayes.smoothing_:.3g}"
    found = describe(CentroidClassifier(0.125).fit(X, y))
    assert found.sentences == ["The model is a nearest centre: it compares the row with the mean of each class."]
    assert [(each.name, each.value) for each in found.settings] == [("temperature", "0.125")]
    assert "the smaller, the more a small difference" in found.settings[0].meaning
    model = TopDownClassifier(TREE, variance=(2.0, 30.0), temperature=(1.5, 0.5), tuning=None).fit(X, y)
    found = {each.name: each for each in describe(model).settings}
    assert found["first level of the tree: variance"].value == "2"
    assert found["level 2 of the tree: variance"].value == "30"
    assert "evened out" in found["first level of the tree: temperature"].meaning
    assert "sharpened" in found["level 2 of the tree: temperature"].meaning
    model = KernelLogisticClassifier(RBF(2.0) * Linear(3.0), taxonomy=TREE, tuning=None).fit(X, y)
    found = {each.name: each for each in describe(model).settings}
    assert found["length scale of the kernel RBF"].value == "2"
    assert found["variance of the kernel Linear"].value == "3"
    assert "left as they are" in found["temperature"].meaning
    model = KernelLogisticClassifier(RBF(tuple(range(1, 21))), tuning=None).fit(X, y)
    assert describe(model).settings[0].value == "1 to 20"
    assert '<table id="setting-table">' in render(report_of(model))


def test_measured_and_cross_validated_log_loss_stand_side_by_side(pool):
    found = report_of(pool, training_rows=150)
    assert ("cross-validation in training", f"{pool.cv_log_loss_:.3f}") in found.notes["log loss"]
    ((_, answer),) = [each for each in found.estimate if each[0] == "Is it what training promised?"]
    assert f"measured on these rows is {dict(found.summary)['log loss']}." in answer
    assert f"Training found {pool.cv_log_loss_:.3f} by cross-validation" in answer
    learned = KernelLogisticClassifier().fit(*draw(150, 0))
    best = learned.cv_result_.values[learned.cv_result_.best]
    assert cross_validated_log_loss(learned) == best
    assert cross_validated_log_loss(PLAIN.fit(*draw(60, 0))) is None
    assert len(report_of(PLAIN).estimate) == 2


@pytest.mark.parametrize(
    ("promised", "training_rows", "end"),
    [
        (1.0, 100, "The two differ by no more than chance."),
        (0.87, 100, "The two differ by no more than chance."),
        (0.87, 10**6, "The measured one is higher by more than chance: these rows seem to be harder."),
        (0.6, 100, "The measured one is higher by more than chance: these rows seem to be harder."),
        (1.4, 100, "otherwise these rows may be easier, or were trained on."),
        (0.6, None, "which makes the figure somewhat too good."),
    ],
)
def test_chance_is_that_of_both_figures(promised, training_rows, end):
    """100 losses of 0.5 and 1.5: 1.0 with a 95 % interval of 0.1 to either side, or 0.14 for the difference of two."""

    class Model:
        classes_ = np.array(["a", "b"])
        taxonomy_ = None
        cv_log_loss_ = promised

    losses = np.tile([0.5, 1.5], 50)
    log_proba = np.column_stack([-losses, np.log1p(-np.exp(-losses))])
    rows = Rows(np.array(["a"] * 100), log_proba, [""] * 100, [""] * 100, None)
    found = collect_findings(Model(), [rows], "Title", training_rows=training_rows)
    assert dict(found.summary)["log loss"] == "1.000"
    assert found.estimate[2][1].endswith(end)
