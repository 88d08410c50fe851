# ruff: noqa: E501
"""The page itself: one file of HTML that holds its style, its script and its data."""

from __future__ import annotations

import html
import json
import os
from datetime import date, datetime, timezone
from importlib.metadata import version
from importlib.resources import files

from taxolearn.report.description import Description, Expert, Setting
from taxolearn.report.findings import Findings

__all__ = ["current_date", "render"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<h1>{title}</h1>
<nav aria-label="Sections">
{model_link}<a href="#classes">Classes</a> <a href="#confusions">Confusions</a> <a href="#reject">Rejecting</a>
<a href="#reliability">Reliability</a> <a href="#variances">Variances</a> <a href="#mistakes">Mistakes</a>
<a href="#documents">Documents</a>
</nav>
<button id="theme" type="button">Dark or light</button>
</header>
<main>
{warnings}<section aria-label="Summary">
<dl id="summary">
{summary}
</dl>
{estimate}
</section>
{model}<section id="classes" aria-labelledby="classes-title">
<h2 id="classes-title">Classes</h2>
<p>Recall is the share of the rows of a class, or of all classes below a node, that the model put there; precision is the share of
the rows it put there that belong there. The names of the columns are buttons that sort. Arrow keys move and open, Enter opens.</p>
<p><span id="forms"><label><input type="radio" name="form" value="tree" checked> as a tree</label>
<label><input type="radio" name="form" value="list"> as one list</label></span>
<label>Find a class <input id="find-class" type="search" autocomplete="off"></label>
<button id="open-all" type="button">Open all</button> <button id="close-all" type="button">Close all</button>
<span id="found-classes" role="status"></span></p>
<table id="class-table" role="treegrid" aria-label="Classes"><thead><tr>{class_heads}</tr></thead><tbody id="nodes"></tbody></table>
</section>
<section id="confusions" aria-labelledby="confusions-title">
<h2 id="confusions-title">Confusions</h2>
<p>Which classes are taken for each other: rows are the truth, columns the answer; the stronger the colour, the more frequent. Click
a cell to see its classes in the table.</p>
<div class="two">
<div>
<p><label id="map-label">Classes below <select id="map-top"></select></label> <span id="map-note"></span></p>
<div id="map"></div>
</div>
<div>
<p><span id="kinds"><label><input type="radio" name="kind" value="all" checked> all</label>
<label><input type="radio" name="kind" value="siblings"> between siblings</label>
<label><input type="radio" name="kind" value="across"> across branches</label></span></p>
<p><label>Find a class <input id="find-pair" type="search" autocomplete="off"></label>
<span id="found-pairs" role="status"></span> <button id="all-pairs" type="button" hidden>Show all</button></p>
<div class="scroll" tabindex="0" role="group" aria-label="Confused classes"><table id="pair-table"><thead><tr>{pair_heads}</tr></thead><tbody id="pairs"></tbody></table></div>
</div>
</div>
</section>
<div class="two">
<section id="reject" aria-labelledby="reject-title">
<h2 id="reject-title">What if the least sure rows are set aside?</h2>
<p><label>Set aside <input id="share" type="range" min="0" max="90" value="0" step="1"></label></p>
<p id="reject-numbers" role="status"></p>
<div id="reject-plot"></div>
</section>
<section id="reliability" aria-labelledby="reliability-title">
<h2 id="reliability-title">Are the probabilities right?</h2>
<p>Rows grouped by the probability of the answer. On the line, as many answers were right as promised.</p>
<div id="reliability-plot"></div>
</section>
</div>
<section id="variances" aria-labelledby="variances-title">
<h2 id="variances-title">Learned variances</h2>
<p>How much the functions of the nodes may differ from those of their parents, on a logarithmic scale.</p>
<div id="variances-plot"></div>
</section>
<section id="mistakes" aria-labelledby="mistakes-title">
<h2 id="mistakes-title">Worst mistakes</h2>
<p>Wrong answers the model was most sure of, with the features that spoke for the answer and for the truth where their paths part.
{mistakes_note}</p>
<ol id="mistake-list"></ol>
<button id="more-mistakes" type="button">More</button>
</section>
<section id="documents" aria-labelledby="documents-title">
<h2 id="documents-title">Documents</h2>
<p>{documents_note}</p>
<p><label>Find <input id="find-document" type="search" autocomplete="off"></label>
<label><input id="wrong-only" type="checkbox"> wrong answers only</label> <span id="found-documents" role="status"></span></p>
<table id="document-table"><thead><tr>{document_heads}</tr></thead><tbody id="document-rows"></tbody></table>
<p><button id="more-documents" type="button">More</button></p>
</section>
</main>
<footer><p>Written by taxolearn {version} on <time>{date}</time>.</p></footer>
<script type="application/json" id="data">{data}</script>
<script>
{script}
</script>
</body>
</html>
"""

_MODEL = """<section id="model" aria-labelledby="model-title">
<h2 id="model-title">Model</h2>
{content}
</section>
"""

_EXPERTS = """<table id="expert-table"><thead><tr><th scope="col">expert</th><th scope="col">what it is</th>
<th scope="col" class="number">log loss</th><th scope="col" class="number">accuracy</th><th scope="col" class="number">weight</th></tr></thead>
<tbody>
{rows}
</tbody></table>
"""

_SETTINGS = """<details><summary>Settings that training has chosen</summary>
<table id="setting-table"><thead><tr><th scope="col">setting</th><th scope="col" class="number">value</th><th scope="col">what it means</th></tr></thead>
<tbody>
{rows}
</tbody></table>
</details>
"""


def render(findings: Findings, *, written_on: date | None = None) -> str:
    """Render the page as HTML.

    Parameters
    ----------
    findings : Findings
    written_on : date, optional
        The date in the footer (default: ``current_date()``).
    """
    here = files("taxolearn.report")
    data = json.dumps(findings.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _PAGE.format(
        title=html.escape(findings.title),
        style=here.joinpath("page.css").read_text(encoding="utf-8"),
        summary="\n".join(_tile(name, value, findings.notes.get(name, [])) for name, value in findings.summary),
        estimate="\n".join(
            f"<p><b>{html.escape(question)}</b> {html.escape(answer)}</p>" for question, answer in findings.estimate
        ),
        warnings="".join(
            f'<p class="warning" role="alert">{html.escape(each[:1].upper() + each[1:])}.</p>\n'
            for each in findings.warnings
        ),
        model=_model(findings.model),
        model_link='<a href="#model">Model</a> ' if _model(findings.model) else "",
        mistakes_note=html.escape(findings.mistakes_note),
        class_heads=_heads(
            {"name": "class", "support": "rows", "recall": "recall", "precision": "precision"}, "support"
        ),
        pair_heads=_heads({"count": "rows", "truth": "truth", "answer": "answer"}, "count"),
        document_heads=_heads(
            {"id": findings.id_name, "text": "document", "truth": "truth", "answer": "answer", "likely": "probability"}
        ),
        documents_note=html.escape(findings.documents_note),
        version=version("taxolearn"),
        date=(current_date() if written_on is None else written_on).isoformat(),
        script=here.joinpath("page.js").read_text(encoding="utf-8"),
        data=data.replace("<", "\\u003c"),  # nothing in the data ends the script
    )


def current_date() -> date:
    """Today in UTC, or the date that the environment variable SOURCE_DATE_EPOCH sets for reproducible files."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not given:
        return datetime.now(timezone.utc).date()
    try:
        return datetime.fromtimestamp(int(given), timezone.utc).date()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"SOURCE_DATE_EPOCH must be a number of seconds since 1970, got {given!r}") from None


def _tile(name: str, value: str, notes: list[tuple[str, str]]) -> str:
    """An entry of the summary."""
    below = "".join(f'<dd class="note">{html.escape(what)}: {html.escape(note)}</dd>' for what, note in notes)
    return f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>{below}</div>"


def _model(model: Description) -> str:
    """The section about the model, nothing if nothing is known."""
    content = "\n".join(f"<p>{html.escape(sentence)}</p>" for sentence in model.sentences)
    if model.experts:
        heaviest = max(each.weight for each in model.experts) or 1.0
        content += _EXPERTS.format(rows="\n".join(_expert_row(each, heaviest) for each in model.experts))
    if model.settings:
        content += _SETTINGS.format(rows="\n".join(_setting_row(each) for each in model.settings))
    return _MODEL.format(content=content) if content else ""


def _expert_row(expert: Expert, heaviest: float) -> str:
    """A row of the table of experts; bars are relative to the heaviest expert."""
    loss = "–" if expert.log_loss is None else f"{expert.log_loss:.3f}"
    accuracy = "–" if expert.accuracy is None else f"{expert.accuracy:.1%}"
    weight = "not used" if expert.weight == 0 else f"{expert.weight:.2f}"
    bar = f'<span class="bar"><i style="width:{100 * expert.weight / heaviest:.1f}%"></i></span>'
    return (
        f'<tr><th scope="row">{html.escape(expert.name)}</th><td>{html.escape(expert.kind)}</td>'
        f'<td class="number">{loss}</td><td class="number">{accuracy}</td>'
        f'<td class="number"><div class="measure">{bar}<span>{weight}</span></div></td></tr>'
    )


def _setting_row(setting: Setting) -> str:
    name, value, meaning = (html.escape(text) for text in (setting.name, setting.value, setting.meaning))
    return f'<tr><th scope="row">{name}</th><td class="number">{value}</td><td>{meaning}</td></tr>'


# Columns of numbers: they stand on the right, and the largest are sorted first.
_NUMBERS = ("support", "recall", "precision", "count", "likely")


def _heads(columns: dict[str, str], sorted_by: str = "") -> str:
    """The names of columns, by the keys by which the script sorts them."""
    heads = []
    for key, name in columns.items():
        order = "descending" if key == sorted_by else "none"
        kind = ' class="number"' if key in _NUMBERS else ""
        button = f'<button type="button">{html.escape(name)}</button>'
        heads.append(f'<th scope="col" data-key="{key}" aria-sort="{order}"{kind}>{button}</th>')
    return "".join(heads)
