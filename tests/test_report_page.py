"""The report in a browser."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from browser import Browser, find_chromium

from taxolearn import KernelLogisticClassifier, PoolClassifier, Taxonomy
from taxolearn.kernels import Linear
from taxolearn.report import collect_findings, render
from taxolearn.report.findings import Rows

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium (Debian: chromium)")


def write_page(path, n_classes, is_tree=True, name="c"):
    """A page about random rows; classes are ten to a parent, and parents ten to a grandparent."""
    generator = np.random.default_rng(0)
    labels = np.array([f"g{k // 100}/p{k // 10}/{name}{k:04d}" for k in range(n_classes)])
    tree = Taxonomy.from_labels(labels) if is_tree else None
    y = labels[np.arange(3 * n_classes) % n_classes]
    X = generator.normal(size=(len(y), 5)) + np.arange(len(y))[:, None] % n_classes % 7
    model = KernelLogisticClassifier(Linear(), taxonomy=tree, tuning=None, tol=0.1).fit(X, y)
    texts = [f"document {k} about {label}" for k, label in enumerate(y)]
    ids = [str(k) for k in range(len(y))]
    rows = Rows(y, model.predict_log_proba(X), texts, ids, lambda rows, nodes: model.explain(X[rows], nodes))
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


VISIBLE = "document.getElementById('nodes').children.length"


def test_tree_opens_and_closes(browser):
    assert browser.run("document.title") == "A report"
    assert browser.run(VISIBLE) == 2
    browser.run("document.querySelector('#nodes td').click()")
    assert browser.run(VISIBLE) == 12
    browser.run("document.querySelector('#nodes td').click()")
    assert browser.run(VISIBLE) == 2
    browser.run("document.getElementById('open-all').click()")
    assert browser.run(VISIBLE) == 2 + 20 + 200
    browser.run("document.getElementById('close-all').click()")
    assert browser.run(VISIBLE) == 2


def test_tree_by_keyboard(browser):
    focused = "document.activeElement.querySelector('.label').lastChild.textContent"
    browser.run("document.querySelector('#nodes tr').focus()")
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
    browser.press("ArrowDown")
    browser.run("document.getElementById('close-all').click()")
    browser.run("document.getElementById('open-all').click()")
    assert browser.run("document.querySelectorAll('#nodes [tabindex=\"0\"]').length") == 1


def test_slider_moves_the_numbers(browser):
    text = "document.getElementById('reject-numbers').textContent"
    spot = "document.querySelector('#reject-plot circle').getAttribute('cx')"
    before = browser.run(text), browser.run(spot)
    browser.run("{const s = document.getElementById('share'); s.value = 50; s.dispatchEvent(new Event('input'))}")
    after = browser.run(text), browser.run(spot)
    assert before[0].startswith("Of 600 rows none is set aside, and ")
    assert after[0].startswith("Of 600 rows 300 are set aside (50.0%), those whose answer has a probability below ")
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_search(browser):
    find = "{{const f = document.getElementById('find-{0}'); f.value = '{1}'; f.dispatchEvent(new Event('input'))}}"
    browser.run(find.format("class", "c0150"))
    assert browser.run("document.getElementById('found-classes').textContent") == "1 found"
    assert browser.run("document.querySelector('.hit .label').textContent") == "g1/p15/c0150"
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
    shown = browser.run("[...document.querySelectorAll('#map text')].map(text => text.textContent)")
    assert shown[10] == "elsewhere"
    assert all(
        re.fullmatch(r"p\d+|c\d{4}", name) for name in shown[:10] + shown[11:]
    )  # without the names of those above


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


def column_of(table, column):
    return (
        f"[...document.querySelectorAll('#{table} tbody tr')].map(row => row.cells[{column}].innerText.trim())"
        ".map(text => /^[0-9.,]+%?$/.test(text) ? Number(text.replace(/[,%]/g, '')) : text)"
    )


def click_head(browser, table, column):
    browser.run(f"document.querySelectorAll('#{table} thead button')[{column}].click()")
    return browser.run(f"[...document.querySelectorAll('#{table} thead th')].map(head => head.ariaSort)")


@pytest.mark.parametrize("column", [0, 1, 2, 3])
def test_classes_are_sorted_by_any_column(column, browser):
    """Columns of numbers begin with the largest; a second click turns the order around."""
    browser.run("document.querySelector('input[value=list]').click()")
    before = browser.run(column_of("class-table", column))
    assert len(before) == 200
    is_number = column > 0
    if column == 1:  # sorted by it from the beginning, the largest first
        assert before == sorted(before, reverse=True)
    else:
        orders = click_head(browser, "class-table", column)
        assert orders[column] == ("descending" if is_number else "ascending")
        assert orders.count("none") == 3
        after = browser.run(column_of("class-table", column))
        numbers = [value for value in after if value != "–"]
        assert numbers == sorted((value for value in before if value != "–"), reverse=is_number)
        assert after[: len(numbers)] == numbers  # what has no value comes last
    orders = click_head(browser, "class-table", column)
    assert orders[column] == ("ascending" if is_number else "descending")
    after = browser.run(column_of("class-table", column))
    numbers = [value for value in after if value != "–"]
    assert numbers == sorted((value for value in before if value != "–"), reverse=not is_number)
    assert after[: len(numbers)] == numbers


def test_sorting_a_tree_keeps_children_below_their_parents(browser):
    browser.run("document.getElementById('open-all').click()")
    click_head(browser, "class-table", 2)
    names = browser.run(column_of("class-table", 0))
    recalls = browser.run(column_of("class-table", 2))
    levels = browser.run("[...document.querySelectorAll('#nodes tr')].map(row => Number(row.ariaLevel))")
    names = [name.removeprefix("▾").strip() for name in names]
    assert levels == [name.count("/") + 1 for name in names]
    siblings, above = {}, []
    for name, recall, level in zip(names, recalls, levels, strict=True):
        above = [*above[: level - 1], name]
        assert name.rpartition("/")[0] == (above[-2] if level > 1 else "")
        siblings.setdefault(name.rpartition("/")[0], []).append(recall)
    assert len(siblings) == 1 + 2 + 20
    for values in siblings.values():
        assert values == sorted(values, reverse=True)


def test_sorting_by_keyboard(browser):
    browser.run("document.querySelectorAll('#class-table thead button')[0].focus()")
    assert browser.run("document.activeElement.textContent") == "class"
    browser.press("Enter")
    assert browser.run("document.activeElement.parentElement.ariaSort") == "ascending"
    assert browser.run("document.querySelectorAll('#nodes [tabindex=\"0\"]').length") == 1


def test_wrong_rows_only(browser, page):
    wrong = sum(count for *_, count in pairs_of(page))
    assert 20 < wrong < 600
    browser.run("document.getElementById('wrong-only').click()")
    found = "document.getElementById('found-documents').textContent"
    assert browser.run(found) == f"{wrong} of 600, 20 shown"
    for _ in range(wrong // 20):
        browser.run("document.getElementById('more-documents').click()")
    assert browser.run(found) == f"{wrong} of 600"
    assert browser.run("document.getElementById('more-documents').hidden")
    truth, answer = (browser.run(column_of("document-table", column)) for column in (2, 3))
    assert len(truth) == wrong
    assert all(a != b for a, b in zip(truth, answer, strict=True))
    browser.run("document.getElementById('wrong-only').click()")
    assert browser.run(found) == "600 of 600, 20 shown"


def test_documents_are_found_and_sorted_by_id(browser):
    click_head(browser, "document-table", 0)
    click_head(browser, "document-table", 0)
    assert browser.run(column_of("document-table", 0)) == list(range(599, 579, -1))  # by number, not by letter
    browser.run(
        "{const f = document.getElementById('find-document'); f.value = '599'; f.dispatchEvent(new Event('input'))}"
    )
    assert browser.run(column_of("document-table", 0)) == [599]
    assert browser.run("document.querySelector('#mistake-list .id').textContent").startswith("row ")


def test_bars_line_up(browser):
    """Bars of a column begin and end at the same place, however long the number beside them is."""
    browser.run("document.querySelector('input[value=list]').click()")
    for column in (2, 3):
        assert len({len(str(value)) for value in browser.run(column_of("class-table", column))}) > 1
        edges = browser.run(
            f"[...document.querySelectorAll('#nodes tr')].map(row => row.cells[{column}].querySelector('.bar')"
            ".getBoundingClientRect()).map(box => `${box.left} ${box.right}`)"
        )
        assert len(edges) == 200
        assert len(set(edges)) == 1


CUT_OFF = """[...document.querySelectorAll('th, td, dt, dd, svg text')].filter(cell => {
  const box = cell.getBoundingClientRect();
  const around = cell.closest('svg, .scroll, section').getBoundingClientRect();
  const room = cell.closest('section').getBoundingClientRect();
  const sticksOut = box.right > Math.min(around.right, room.right) + 1 || box.left < around.left - 1;
  const overflows = cell instanceof HTMLElement && cell.scrollWidth > cell.clientWidth + 1;
  return box.width > 0 && (sticksOut || overflows);
}).map(cell => cell.textContent)"""


@pytest.mark.parametrize("width", [360, 420, 720, 1000, 1280])
def test_no_column_is_cut_off(width, browser, page):
    browser.look(width=width)
    browser.open(page)
    browser.run("document.getElementById('open-all').click()")
    assert browser.run(CUT_OFF) == []
    browser.look()


@pytest.mark.parametrize("width", [360, 800, 1200])
def test_wide_names_of_the_map_are_not_cut_off(width, browser, tmp_path):
    """Where names are long and letters wide, the map shows as many classes as there is room for."""
    browser.look(width=width)
    browser.open(write_page(tmp_path / "r.html", 30, is_tree=False, name="類WW類WWW"))
    assert browser.run(CUT_OFF) == []
    cells = browser.run("[...document.querySelectorAll('#map .right')].map(cell => cell.getBoundingClientRect().width)")
    assert len(cells) == 30 if width > 360 else 2 <= len(cells) < 30
    assert min(cells) > 8
    assert browser.run("document.getElementById('map-note').textContent") == (
        "" if len(cells) == 30 else f"The {len(cells)} of 30 with most rows."
    )
    browser.look()


CONTRASTS = """(() => {
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[0-9.]+/g).map(Number); return [r, g, b, a]; };
  const light = (rgb) => rgb.slice(0, 3).map(value => value / 255)
    .map(value => value <= 0.04045 ? value / 12.92 : Math.pow((value + 0.055) / 1.055, 2.4))
    .reduce((sum, value, k) => sum + value * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    throw new Error('nothing behind');
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = {};
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.textContent.trim() === '') continue;
    if (element.tagName !== 'OPTION' && !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(element.closest('svg') ? style.fill : style.color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const kind = element.tagName + '.' + (element.getAttribute('class') ?? '');
    found[kind] = Math.min(found[kind] ?? 99, contrast);
  }
  return found;
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_all_words_can_be_read(dark, browser):
    """The contrast of all texts, those of plots included, is at least what the guidelines for accessibility ask for."""
    browser.look(dark=dark)
    browser.run("document.getElementById('find-class').value = 'c0150'")
    browser.run("document.getElementById('find-class').dispatchEvent(new Event('input'))")
    found = browser.run(CONTRASTS)
    browser.look()
    assert {"text.", "P.", "TD.", "TD.answer", "TD.truth", "A.", "BUTTON.", "OPTION.", "DT."} <= set(found)
    assert {kind: contrast for kind, contrast in found.items() if contrast < 4.5} == {}


# -- Pools ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool_page(tmp_path_factory):
    """A page about a pool, with a warning; hardly any answer is wrong."""
    generator = np.random.default_rng(0)
    y = np.array(["a/one", "a/two", "b/three"])[np.arange(300) % 3]
    X = np.abs(2 * np.eye(5)[np.arange(300) % 3] + generator.normal(size=(300, 5)))
    X[:, 3] = generator.poisson(1 + 3 * (np.arange(300) % 3 == 1))
    model = PoolClassifier(taxonomy=Taxonomy.from_labels(y)).fit(X, y)
    assert len(model.weights_) > 1
    names = [str(k) for k in range(300)]
    log_proba = model.predict_log_proba(X)
    log_proba[np.arange(300), np.arange(300) % 3] += 3 * (np.arange(300) > 3)
    log_proba -= np.log(np.exp(log_proba).sum(axis=1, keepdims=True))
    rows = Rows(y, log_proba, [""] * 300, names, lambda rows, nodes: model.explain(X[rows], nodes))
    findings = collect_findings(model, [rows], "A pool")
    path = tmp_path_factory.mktemp("pool") / "r.html"
    path.write_text(render(replace(findings, warnings=["take care"])), encoding="utf-8")
    return path


OPEN = "document.querySelector('#model details').open = true"


@pytest.mark.parametrize("width", [360, 420, 720, 1000, 1280])
def test_no_column_of_experts_is_cut_off(width, browser, pool_page):
    browser.look(width=width)
    browser.open(pool_page)
    browser.run(OPEN)
    assert browser.run(CUT_OFF) == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    heights = browser.run(
        "[...document.querySelectorAll('#expert-table tbody tr')].map(row => row.getBoundingClientRect().height)"
    )
    assert max(heights) < 120  # words are not broken into letters
    browser.look()


def test_bars_show_weights(browser, pool_page):
    browser.open(pool_page)
    bars = browser.run(
        "[...document.querySelectorAll('#expert-table .bar')].map(bar => [bar, bar.firstChild].map(each => "
        "each.getBoundingClientRect())).map(([bar, fill]) => [bar.left, bar.width, fill.width / bar.width])"
    )
    weights = browser.run("JSON.parse(document.getElementById('data').textContent).model.experts.map(e => e.weight)")
    assert len({(left, width) for left, width, _ in bars}) == 1
    assert bars[0][1] > 50
    assert [share for *_, share in bars] == pytest.approx([weight / max(weights) for weight in weights], abs=0.01)


@pytest.mark.parametrize("dark", [False, True])
def test_words_about_a_pool_can_be_read(dark, browser, pool_page):
    browser.look(dark=dark)
    browser.open(pool_page)
    browser.run(OPEN)
    found = browser.run(CONTRASTS)
    browser.look()
    assert {"P.warning", "SUMMARY.", "TH."} <= set(found)
    assert {kind: contrast for kind, contrast in found.items() if contrast < 4.5} == {}


def test_words_in_plots_do_not_overlap(browser, page, pool_page):
    """Also where errors are so rare that the axis has decimals."""
    for path in (page, pool_page):
        browser.open(path)
        overlaps = browser.run("""['reject-plot', 'reliability-plot'].flatMap(id => {
          const texts = [...document.querySelectorAll(`#${id} text`)];
          const boxes = texts.map(text => text.getBoundingClientRect());
          return texts.flatMap((text, k) => texts.slice(0, k).filter((_, j) => boxes[j].left < boxes[k].right &&
            boxes[k].left < boxes[j].right && boxes[j].top < boxes[k].bottom && boxes[k].top < boxes[j].bottom)
            .map(other => text.textContent + other.textContent));
        })""")
        assert overlaps == []
    ticks = browser.run("[...document.querySelectorAll('#reject-plot text')].map(text => text.textContent)")
    assert any("." in tick for tick in ticks)
