"""Pages of the site from the results of benchmarks: one for each table in bench/results, and an overview.

mkdocs calls ``on_config`` and ``on_files`` (hooks in .mkdocs.yml). The rest knows nothing of mkdocs.
"""

import re
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent.parent / "bench"
FOLDER = "benchmarks"  # of the pages, in the site
NAV = "Benchmarks"


def suites(bench: Path = BENCH) -> list[str]:
    """Names of the results, in the order in which bench/README.md has them; others behind."""
    known = list(descriptions(bench))
    found = sorted(path.stem for path in (bench / "results").glob("*.md"))
    return sorted(found, key=lambda name: (known.index(name) if name in known else len(known), name))


def descriptions(bench: Path = BENCH) -> dict[str, str]:
    """What each suite measures, from the table in bench/README.md."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", (bench / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(rows)


def suite_page(name: str, bench: Path = BENCH) -> str:
    """The result as a page: title, what was measured, figure, table, and the machine folded away at the end."""
    text = (bench / "results" / f"{name}.md").read_text(encoding="utf-8")
    title, machine, rest = text.split("\n\n", 2)
    parts = ["---\nhide: [toc]\n---", title]  # room for the table
    if name in descriptions(bench):
        parts.append(descriptions(bench)[name])
    if (bench / "results" / f"{name}.svg").is_file():
        parts.append(f"![{title.removeprefix('# ')}]({name}.svg){{ .figure }}")
    parts.append(f'<div class="results" markdown>\n\n{rest.strip()}\n\n</div>')
    parts.append(f'??? info "Machine, settings and versions"\n\n    {machine}')
    return "\n\n".join(parts) + "\n"


def overview_page(bench: Path = BENCH) -> str:
    """All suites in one table, below what bench/README.md says about all of them."""
    opening = (bench / "README.md").read_text(encoding="utf-8").split("\n\n")[1]
    rows = []
    for name in suites(bench):
        title = (bench / "results" / f"{name}.md").read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ")
        rows.append(f"| [{name}]({name}.md) | {title.replace('|', chr(92) + '|')} | {measured_on(name, bench)} |")
    return "\n\n".join(
        [
            "# Benchmarks",
            opening,
            "Made from `bench/results` when the site is built. A dash is what was not measured.",
            "| result | title | measured on |\n| --- | --- | --- |\n" + "\n".join(rows),
        ]
    )


def measured_on(name: str, bench: Path = BENCH) -> str:
    """Processor, cores and threads, from the line below the title."""
    machine = (bench / "results" / f"{name}.md").read_text(encoding="utf-8").split("\n\n", 2)[1]
    processor, rest = machine.split(";", 1)
    threads = re.search(r"threads \d+", rest)
    return processor.split(", compiled")[0] + (f", {threads.group()}" if threads else "")


def pages(bench: Path = BENCH) -> dict[str, str]:
    """All pages by their place in the site."""
    return {f"{FOLDER}/index.md": overview_page(bench)} | {
        f"{FOLDER}/{name}.md": suite_page(name, bench) for name in suites(bench)
    }


def figures(bench: Path = BENCH) -> dict[str, Path]:
    """The figures that belong to the pages, by their place in the site."""
    paths = ((name, bench / "results" / f"{name}.svg") for name in suites(bench))
    return {f"{FOLDER}/{name}.svg": path for name, path in paths if path.is_file()}


def on_config(config: Any) -> Any:
    """Put the pages below the entry of the overview."""
    entry = {NAV: f"{FOLDER}/index.md"}
    if entry in config.nav:
        below: list[Any] = [entry[NAV], *({name: f"{FOLDER}/{name}.md"} for name in suites())]
        config.nav[config.nav.index(entry)] = {NAV: below}
    config.watch.append(str(BENCH / "results"))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages and figures to the files of the site."""
    from mkdocs.structure.files import File

    for place, content in pages().items():
        files.append(File.generated(config, place, content=content))
    for place, path in figures().items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files
