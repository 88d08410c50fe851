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
from taxolearn.report.sections import sections_of_one, sections_of_sets
from taxolearn.report.set_findings import SetFindings

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
{links}
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
{model}{sections}</main>
<footer><p>Written by taxolearn {version} on <time>{date}</time>.</p></footer>
<script type="application/json" id="data">{data}</script>
<script>
"use strict";
(() => {{
{script}
}})();
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


_SCRIPTS = ("basics", "classes", "confusions", "plots")  # of any page


def render(findings: Findings | SetFindings, *, written_on: date | None = None) -> str:
    """Render the page as HTML.

    Parameters
    ----------
    findings : Findings or SetFindings
    written_on : date, optional
        The date in the footer (default: ``current_date()``).
    """
    page = sections_of_sets(findings) if isinstance(findings, SetFindings) else sections_of_one(findings)
    here = files("taxolearn.report")
    data = json.dumps(findings.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    model = _model(findings.model)
    links = {"model": "Model"} if model else {}
    return _PAGE.format(
        title=html.escape(findings.title),
        style=here.joinpath("page.css").read_text(encoding="utf-8"),
        links="\n".join(f'<a href="#{key}">{html.escape(name)}</a>' for key, name in (links | page.links).items()),
        summary="\n".join(_tile(name, value, findings.notes.get(name, [])) for name, value in findings.summary),
        estimate="\n".join(
            f"<p><b>{html.escape(question)}</b> {html.escape(answer)}</p>" for question, answer in findings.estimate
        ),
        warnings="".join(
            f'<p class="warning" role="alert">{html.escape(each[:1].upper() + each[1:])}.</p>\n'
            for each in findings.warnings
        ),
        model=model,
        sections=page.html,
        version=version("taxolearn"),
        date=(current_date() if written_on is None else written_on).isoformat(),
        script="\n".join(here.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in (*_SCRIPTS, page.script)),
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
