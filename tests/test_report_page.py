"""The report in a browser."""

import json
import re

import numpy as np
import pytest
from browser import Browser, find_chromium

from taxolearn import KernelLogisticClassifier, Taxonomy
from taxolearn.kernels import Linear
from taxolearn.report import collect_findings, render
from taxolearn.report.findings import Rows

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium (Debian: chromium)")


def write_page(path, n_classes, is_tree=True):
    """A page about random rows; classes are ten to a parent, and parents ten to a grandparent."""
    generator = np.random.default_rng(0)
    labels = np.array([f"g{k // 100}/p{k // 10}/c{k:04d}" for k in range(n_classes)])
    tree = Taxonomy.from_labels(labels) if is_tree else None
    y = labels[np.arange(3 * n_classes) % n_classes]
    X = generator.normal(size=(len(y), 5)) + np.arange(len(y))[:, None] % n_classes % 7
    model = KernelLogisticClassifier(Linear(), taxonomy=tree, tuning=None, tol=0.1).fit(X, y)
    texts = [f"document {k} about {label}" for k, label in enumerate(y)]
    rows = Rows(y, model.predict_log_proba(X), texts, lambda rows, nodes: model.explain(X[rows], nodes))
    path.write_text(render(collect_findings(model, [rows], "A report")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("report") / "r.html", 200)


@pytest.fixture(scope="module")
def one_browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(page, one_browser):
    one_browser.open(page)
    yield one_browser
    assert one_browser.complaints == []


VISIBLE = "[...document.querySelectorAll('[role=treeitem]')].filter(item => item.offsetParent !== null).length"


def test_tree_opens_and_closes(browser):
    assert browser.run("document.title") == "A report"
    assert browser.run(VISIBLE) == 2
    browser.run("document.querySelector('[role=treeitem] .row').click()")
    assert browser.run(VISIBLE) == 12
    browser.run("document.querySelector('[role=treeitem] .row').click()")
    assert browser.run(VISIBLE) == 2
    browser.run("document.getElementById('open-all').click()")
    assert browser.run(VISIBLE) == 2 + 20 + 200
    browser.run("document.getElementById('close-all').click()")
    assert browser.run(VISIBLE) == 2


def test_tree_by_keyboard(browser):
    focused = "document.activeElement.getAttribute('aria-label').split(',')[0]"
    browser.run("document.querySelector('[role=treeitem]').focus()")
    first = browser.run(focused)
    browser.press("ArrowRight")
    assert browser.run(VISIBLE) == 12
    browser.press("ArrowRight")
    assert browser.run(focused).startswith(f"{first}/")
    browser.press("ArrowLeft")
    assert browser.run(focused) == first
    browser.press("ArrowLeft")
    assert browser.run(VISIBLE) == 2
    browser.press("ArrowDown")
    assert browser.run(focused) != first
    browser.press("Home")
    assert browser.run(focused) == first
    browser.press("Enter")
    assert browser.run(VISIBLE) == 12


def test_slider_moves_the_numbers(browser):
    text = "document.getElementById('reject-numbers').textContent"
    spot = "document.querySelector('#reject-plot circle').getAttribute('cx')"
    before = browser.run(text), browser.run(spot)
    browser.run("{const s = document.getElementById('share'); s.value = 50; s.dispatchEvent(new Event('input'))}")
    after = browser.run(text), browser.run(spot)
    assert before[0].startswith("Of 600 rows 0 are set aside")
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_search(browser):
    find = "{{const f = document.getElementById('find-{0}'); f.value = '{1}'; f.dispatchEvent(new Event('input'))}}"
    browser.run(find.format("class", "c0150"))
    assert browser.run("document.getElementById('found-classes').textContent") == "1 found"
    assert browser.run("document.querySelector('.hit').getAttribute('aria-label')").startswith("g1/p15/c0150")
    browser.run(find.format("document", "document 599"))
    assert browser.run("document.getElementById('document-rows').children.length") == 1


def pairs_of(page):
    """Wrong answers on the page: truth, answer, rows."""
    data = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL).group(1)
    found = json.loads(data)
    names = found["nodes"]["names"]
    return [(names[truth], names[answer], count) for truth, answer, count in found["pairs"] if truth != answer]


SHOWN = "[...document.querySelectorAll('#pairs tr')].map(row => [...row.cells].map(cell => cell.textContent))"


def test_confusions(browser, page):
    wrong = pairs_of(page)
    found = "document.getElementById('found-pairs').textContent"
    assert browser.run(found) == f"{sum(count for *_, count in wrong)} wrong answers"
    siblings = [pair for pair in wrong if pair[0].rpartition("/")[0] == pair[1].rpartition("/")[0]]
    browser.run("document.querySelector('input[value=siblings]').click()")
    assert 0 < len(siblings) < len(wrong)
    assert browser.run(SHOWN) == [[str(count), truth, answer] for truth, answer, count in siblings][:300]
    browser.run("document.querySelector('input[value=across]').click()")
    assert (
        browser.run(found) == f"{sum(count for *_, count in wrong) - sum(pair[2] for pair in siblings)} wrong answers"
    )
    browser.run("document.querySelector('input[value=all]').click()")
    browser.run(
        "{const f = document.getElementById('find-pair'); f.value = 'c0007'; f.dispatchEvent(new Event('input'))}"
    )
    expected = [[str(count), truth, answer] for truth, answer, count in wrong if "c0007" in truth + answer]
    assert browser.run(SHOWN) == expected


def test_map_of_confusions(browser, page):
    """Opened at the branches; a cell leads to its classes."""
    wrong = pairs_of(page)
    cells = "document.querySelectorAll('#map .cell')"
    assert browser.run(f"{cells}.length") == 4
    across = [pair for pair in wrong if (pair[0][:2], pair[1][:2]) == ("g0", "g1")]
    total = sum(count for *_, count in across)
    title = browser.run(f"{cells}[1].textContent")
    assert title.startswith(f"g0 answered as g1: {total} of 300 rows")
    browser.run(f"{cells}[1].dispatchEvent(new Event('click'))")
    assert browser.run(SHOWN) == [[str(count), truth, answer] for truth, answer, count in across][:300]
    browser.run("document.getElementById('all-pairs').click()")
    assert browser.run("document.getElementById('found-pairs').textContent").endswith("wrong answers")
    browser.run(
        "{const s = document.getElementById('map-top'); s.selectedIndex = 1; s.dispatchEvent(new Event('change'))}"
    )
    assert browser.run(f"{cells}.length") == 10 * 11  # with a column for answers elsewhere


def test_mistakes(browser):
    assert browser.run("document.getElementById('mistake-list').children.length") == 10
    browser.run("document.getElementById('more-mistakes').click()")
    assert browser.run("document.getElementById('mistake-list').children.length") == 20


def test_light_and_dark(browser, page):
    back = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(back)
    browser.look(dark=True)
    dark = browser.run(back)
    assert light != dark
    browser.run("document.getElementById('theme').click()")
    assert browser.run(back) == light
    browser.open(page)
    assert browser.run(back) == dark
    browser.look(dark=False)
    assert browser.run(back) == light


def test_nothing_sticks_out(browser):
    browser.run("document.getElementById('open-all').click()")
    for width in (360, 800, 1200):
        browser.look(width=width)
        assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("is_tree", [True, False])
def test_thousand_classes(is_tree, browser, tmp_path):
    browser.open(write_page(tmp_path / "r.html", 1000, is_tree))
    browser.run("document.getElementById('open-all').click()")
    assert browser.run(VISIBLE) == (1110 if is_tree else 1000)
