# ruff: noqa: E501
"""The page itself: one file of HTML that holds its style, its script and its data."""

from __future__ import annotations

import html
import json
from importlib.resources import files

from taxolearn.report.findings import Findings

__all__ = ["render"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<h1>{title}</h1>
<nav aria-label="Sections">
<a href="#tree">Classes</a> <a href="#confusions">Confusions</a> <a href="#reject">Rejecting</a>
<a href="#reliability">Reliability</a> <a href="#variances">Variances</a> <a href="#mistakes">Mistakes</a>
<a href="#documents">Documents</a>
</nav>
<button id="theme" type="button">Dark or light</button>
</header>
<main>
<section aria-label="Summary"><dl id="summary"></dl></section>
<section id="tree" aria-labelledby="tree-title">
<h2 id="tree-title">Classes</h2>
<p>Recall is the share of the rows of a class, or of all classes below a node, that the model put there; precision is the share of
the rows it put there that belong there. Arrow keys move and open, Enter opens.</p>
<p><label>Find a class <input id="find-class" type="search" autocomplete="off"></label>
<button id="open-all" type="button">Open all</button> <button id="close-all" type="button">Close all</button>
<span id="found-classes" role="status"></span></p>
<div class="row head" aria-hidden="true"><span>class</span><span>rows</span><span>recall</span><span>precision</span></div>
<ul id="nodes" role="tree" aria-label="Classes"></ul>
</section>
<section id="confusions" aria-labelledby="confusions-title">
<h2 id="confusions-title">Confusions</h2>
<p>Which classes are taken for each other: rows are the truth, columns the answer, the darker the more frequent. Click a cell to
see its classes below.</p>
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
<div class="scroll"><table><thead><tr><th>rows</th><th>truth</th><th>answer</th></tr></thead><tbody id="pairs"></tbody></table></div>
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
<p>Wrong answers the model was most sure of, with the features that spoke for the answer and for the truth where their paths part.</p>
<ol id="mistake-list"></ol>
<button id="more-mistakes" type="button">More</button>
</section>
<section id="documents" aria-labelledby="documents-title">
<h2 id="documents-title">Documents</h2>
<p><label>Find <input id="find-document" type="search" autocomplete="off"></label> <span id="found-documents" role="status"></span></p>
<div class="scroll"><table id="document-table"><thead><tr><th>document</th><th>truth</th><th>answer</th><th>probability</th></tr></thead>
<tbody id="document-rows"></tbody></table></div>
</section>
</main>
<script type="application/json" id="data">{data}</script>
<script>
{script}
</script>
</body>
</html>
"""


def render(findings: Findings) -> str:
    """Render the page as HTML."""
    here = files("taxolearn.report")
    data = json.dumps(findings.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _PAGE.format(
        title=html.escape(findings.title),
        style=here.joinpath("page.css").read_text(encoding="utf-8"),
        script=here.joinpath("page.js").read_text(encoding="utf-8"),
        data=data.replace("<", "\\u003c"),  # nothing in the data ends the script
    )
