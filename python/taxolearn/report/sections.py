# ruff: noqa: E501
"""The sections of the page below its summary, about one label per row or several."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from taxolearn.report.findings import Findings
from taxolearn.report.set_findings import SetFindings

__all__ = ["Sections", "sections_of_one", "sections_of_sets"]


@dataclass(frozen=True)
class Sections:
    """The HTML of sections, their names by their ids, and the script that only they need."""

    html: str
    links: dict[str, str]
    script: str


_CLASSES = """<section id="classes" aria-labelledby="classes-title">
<h2 id="classes-title">{title}</h2>
<p>{meaning} The names of the columns are buttons that sort. Arrow keys move and open, Enter opens.</p>
<p><span id="forms"><label><input type="radio" name="form" value="tree" checked> as a tree</label>
<label><input type="radio" name="form" value="list"> as one list</label></span>
<label>Find a {one} <input id="find-class" type="search" autocomplete="off"></label>
<button id="open-all" type="button">Open all</button> <button id="close-all" type="button">Close all</button>
<span id="found-classes" role="status"></span></p>
<table id="class-table"{kind} role="treegrid" aria-label="{title}"><thead><tr>{heads}</tr></thead><tbody id="nodes"></tbody></table>
</section>
"""

_CONFUSIONS = """<section id="confusions" aria-labelledby="confusions-title">
<h2 id="confusions-title">Confusions</h2>
<p>{meaning} Click a cell to see its {many} in the table.</p>
<div class="two">
<div>
<p><label id="map-label">{many_title} below <select id="map-top"></select></label> <span id="map-note"></span></p>
<div id="map"></div>
</div>
<div>
<p><span id="kinds"><label><input type="radio" name="kind" value="all" checked> all</label>
<label><input type="radio" name="kind" value="siblings"> between siblings</label>
<label><input type="radio" name="kind" value="across"> across branches</label></span></p>
<p><label>Find a {one} <input id="find-pair" type="search" autocomplete="off"></label>
<span id="found-pairs" role="status"></span> <button id="all-pairs" type="button" hidden>Show all</button></p>
<div class="scroll" tabindex="0" role="group" aria-label="Confused {many}"><table id="pair-table" data-what="{what}"><thead><tr>{heads}</tr></thead><tbody id="pairs"></tbody></table></div>
</div>
</div>
</section>
"""

_RELIABILITY = """<section id="reliability" aria-labelledby="reliability-title">
<h2 id="reliability-title">Are the probabilities right?</h2>
<p>{meaning}</p>
<div id="reliability-plot" data-x="{x}" data-y="{y}" data-what="{what}"></div>
</section>
"""

_REJECT = """<section id="reject" aria-labelledby="reject-title">
<h2 id="reject-title">What if the least sure rows are set aside?</h2>
<p><label>Set aside <input id="share" type="range" min="0" max="90" value="0" step="1"></label></p>
<p id="reject-numbers" role="status"></p>
<div id="reject-plot"></div>
</section>
"""

_VARIANCES = """<section id="variances" aria-labelledby="variances-title">
<h2 id="variances-title">Learned variances</h2>
<p>How much the functions of the nodes may differ from those of their parents, on a logarithmic scale.</p>
<div id="variances-plot"></div>
</section>
"""

_ROWS = """<section id="mistakes" aria-labelledby="mistakes-title">
<h2 id="mistakes-title">Worst mistakes</h2>
<p>{mistakes}
{mistakes_note}</p>
<ol id="mistake-list"></ol>
<button id="more-mistakes" type="button">More</button>
</section>
<section id="documents" aria-labelledby="documents-title">
<h2 id="documents-title">Documents</h2>
<p>{note}</p>
<p><label>Find <input id="find-document" type="search" autocomplete="off"></label>
<label><input id="wrong-only" type="checkbox"> wrong answers only</label> <span id="found-documents" role="status"></span></p>
<table id="document-table"><thead><tr>{heads}</tr></thead><tbody id="document-rows"></tbody></table>
<p><button id="more-documents" type="button">More</button></p>
</section>
"""

_LEVELS = """<section id="levels" aria-labelledby="levels-title">
<h2 id="levels-title">Levels of the tree</h2>
<p>All labels of the same depth together, the first level at the top of the tree. Macro F1 is the mean over the labels that rows have.</p>
<table id="level-table"><thead><tr><th scope="col" class="number">level</th><th scope="col" class="number">labels</th><th scope="col" class="number">in rows</th>
<th scope="col" class="number">recall</th><th scope="col" class="number">precision</th><th scope="col" class="number">micro F1</th><th scope="col" class="number">macro F1</th></tr></thead>
<tbody>
{rows}
</tbody></table>
</section>
"""

_CHOICES = """<section id="thresholds" aria-labelledby="thresholds-title">
<h2 id="thresholds-title">How probable must a label be?</h2>
<p>The scores above are of labels that are more probable than not. Here is what other ways to choose them would give on these rows.</p>
<table id="way-table"><thead><tr><th scope="col">answered</th><th scope="col" class="number">labels per row</th><th scope="col" class="number">micro F1</th>
<th scope="col" class="number">macro F1</th><th scope="col" class="number">F1 per row</th><th scope="col" class="number">Hamming loss</th><th scope="col" class="number">all right</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<p><label>Answer labels above <input id="threshold" type="range" min="1" max="99" value="50" step="1"></label></p>
<p id="threshold-numbers" role="status"></p>
<p id="threshold-key"></p>
<div id="threshold-plot"></div>
</section>
"""

_SIZES = """<section id="sizes" aria-labelledby="sizes-title">
<h2 id="sizes-title">How many labels do rows have?</h2>
<p>Numbers of rows by what they <span class="key truth">have</span> and what they <span class="key answer">are answered</span>{of_tree}.</p>
<div id="size-plot"></div>
</section>
"""


def sections_of_one(findings: Findings) -> Sections:
    """The sections of a page about one label per row."""
    parts = [
        _CLASSES.format(
            title="Classes",
            one="class",
            kind="",
            meaning="Recall is the share of the rows of a class, or of all classes below a node, that the model put there; precision is the share of\n"
            "the rows it put there that belong there.",
            heads=_heads({"name": "class", "support": "rows", "recall": "recall", "precision": "precision"}, "support"),
        ),
        _CONFUSIONS.format(
            meaning="Which classes are taken for each other: rows are the truth, columns the answer; the stronger the colour, the more frequent.",
            one="class",
            many="classes",
            many_title="Classes",
            what="wrong answers",
            heads=_heads({"count": "rows", "truth": "truth", "answer": "answer"}, "count"),
        ),
        '<div class="two">\n',
        _REJECT,
        _RELIABILITY.format(
            meaning="Rows grouped by the probability of the answer. On the line, as many answers were right as promised.",
            x="probability of the answer",
            y="right",
            what="rows",
        ),
        "</div>\n",
        _VARIANCES,
        _rows(
            findings,
            "Wrong answers the model was most sure of, with the features that spoke for the answer and for the truth where their paths part.",
            ("likely", "probability"),
        ),
    ]
    links = {
        "classes": "Classes",
        "confusions": "Confusions",
        "reject": "Rejecting",
        "reliability": "Reliability",
        "variances": "Variances",
        "mistakes": "Mistakes",
        "documents": "Documents",
    }
    return Sections("".join(parts), links, "one_label")


def sections_of_sets(findings: SetFindings) -> Sections:
    """The sections of a page about several labels per row."""
    of_tree = ", without those that others imply" if findings.is_tree else ""
    levels = ""
    if findings.levels:
        keys = ("level", "labels", "support", "recall", "precision", "micro_f1", "macro_f1")
        levels = _LEVELS.format(rows=_table_rows([[row[key] for key in keys] for row in findings.levels]))
    keys = ("way", "labels_per_row", "micro_f1", "macro_f1", "row_f1", "hamming_loss", "subset_accuracy")
    ways = [[f"{row[key]:.2f}" if key == "labels_per_row" else row[key] for key in keys] for row in findings.ways]
    parts = [
        _CLASSES.format(
            title="Labels",
            one="label",
            kind=' class="many"',
            meaning="Recall is the share of the rows with a label that were answered it; precision is the share of the rows that were answered it\n"
            "that have it; F1 is their harmonic mean. AU(PRC) is the mean precision if rows are sorted by the probability of the label, whatever the threshold.",
            heads=_heads(
                {
                    "name": "label",
                    "support": "rows",
                    "recall": "recall",
                    "precision": "precision",
                    "f1": "F1",
                    "area": "AU(PRC)",
                },
                "support",
            ),
        ),
        levels,
        _CHOICES.format(rows=_table_rows(ways)),
        '<div class="two">\n',
        _SIZES.format(of_tree=of_tree),
        _RELIABILITY.format(
            meaning="All labels of all rows, grouped by their probabilities. On the line, as many were right as promised.",
            x="probability of a label",
            y="rows that have it",
            what="labels of rows",
        ),
        "</div>\n",
        _CONFUSIONS.format(
            meaning="Which labels stand in the place of others that were missed: rows are the missed labels, columns those that were answered in the same\n"
            "row and are wrong, on the diagonal what was right; the stronger the colour, the more frequent. What was missed with nothing in its place is elsewhere.",
            one="label",
            many="labels",
            many_title="Labels",
            what="pairs",
            heads=_heads({"count": "rows", "truth": "missed", "answer": "answered instead"}, "count"),
        ),
        _VARIANCES,
        _rows(
            findings,
            "Rows with wrong answers whose labels the model held for least probable, with the probabilities of their labels and of the answers, and the features\n"
            "that counted most for the surest wrong label and for the least sure missed one.",
            ("wrong", "wrong"),
        ),
    ]
    links = {"classes": "Labels"} | ({"levels": "Levels"} if findings.levels else {})
    links |= {
        "thresholds": "Thresholds",
        "sizes": "Numbers",
        "reliability": "Reliability",
        "confusions": "Confusions",
        "variances": "Variances",
        "mistakes": "Mistakes",
        "documents": "Documents",
    }
    return Sections("".join(parts), links, "several_labels")


def _rows(findings: Findings | SetFindings, mistakes: str, last: tuple[str, str]) -> str:
    """The sections about single rows."""
    columns = {"id": findings.id_name, "text": "document", "truth": "truth", "answer": "answer"} | dict([last])
    return _ROWS.format(
        mistakes=mistakes,
        mistakes_note=html.escape(findings.mistakes_note),
        note=html.escape(findings.documents_note),
        heads=_heads(columns),
    )


def _table_rows(rows: list[list[Any]]) -> str:
    """Rows of a table; texts as they are, shares as percentages."""
    return "\n".join(f"<tr>{''.join(_cell(value, k == 0) for k, value in enumerate(row))}</tr>" for row in rows)


def _cell(value: Any, is_first: bool) -> str:
    text = "–" if value is None else f"{value:.1%}" if isinstance(value, float) else str(value)
    if is_first:
        kind = ' class="number"' if isinstance(value, int) else ""
        return f'<th scope="row"{kind}>{html.escape(text)}</th>'
    return f'<td class="number">{html.escape(f"{value:,}" if isinstance(value, int) else text)}</td>'


# Columns of numbers: they stand on the right, and the largest are sorted first.
_NUMBERS = ("support", "recall", "precision", "f1", "area", "count", "likely", "wrong")


def _heads(columns: dict[str, str], sorted_by: str = "") -> str:
    """The names of columns, by the keys by which the script sorts them."""
    heads = []
    for key, name in columns.items():
        order = "descending" if key == sorted_by else "none"
        kind = ' class="number"' if key in _NUMBERS else ""
        button = f'<button type="button">{html.escape(name)}</button>'
        heads.append(f'<th scope="col" data-key="{key}" aria-sort="{order}"{kind}>{button}</th>')
    return "".join(heads)
