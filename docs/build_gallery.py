"""The gallery of the site, from the scripts in examples: what one learns, what is printed, and the code.

mkdocs calls ``on_files`` (hooks in .mkdocs.yml). The rest knows nothing of mkdocs. Examples are run where taxolearn is
installed; what they print is kept below build until they or the sources of the library change.
"""

import ast
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PRINTED = ROOT / "build" / "printed"
PAGE = "gallery/index.md"

_OPENING = """# Gallery

Short programs on data that every installation has. Each runs as it stands (`python examples/NAME.py`) and takes
seconds; tests check that each shows what it says here."""


def examples(folder: Path = EXAMPLES) -> list[Path]:
    return sorted(folder.glob("*.py"))


@cache
def sources_hash() -> bytes:
    """Of everything that an answer may depend on in this repository."""
    found = hashlib.sha256()
    for path in sorted([*(ROOT / "python").rglob("*.py"), *(ROOT / "cpp").rglob("*.?pp")]):
        found.update(path.read_bytes())
    return found.digest()


def printed_by(path: Path, kept: Path = PRINTED) -> str | None:
    """What the example prints, run now or earlier; None where taxolearn is not installed."""
    known = kept / f"{path.stem}-{hashlib.sha256(path.read_bytes() + sources_hash()).hexdigest()[:16]}.txt"
    if known.is_file():
        return known.read_text(encoding="utf-8")
    if importlib.util.find_spec("taxolearn") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, path],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        )
    if done.returncode != 0:
        raise RuntimeError(f"{path.name} failed:\n{done.stderr}")
    kept.mkdir(parents=True, exist_ok=True)
    known.write_text(done.stdout, encoding="utf-8")
    return done.stdout


def section(path: Path, printed: str | None) -> str:
    """One example: the docstring as text, what it prints, the code below the docstring folded."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, text = (ast.get_docstring(tree) or path.stem).partition("\n\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    parts = [f"## {title.rstrip('.')}", text]
    if printed is not None:
        parts.append(f"```text\n{printed.rstrip()}\n```")
    block = _indented(f"```python\n{code}\n```")
    parts.append(f'??? example "examples/{path.name}"\n\n{block}')
    return "\n\n".join(parts)


def page(folder: Path = EXAMPLES, *, run: bool = True) -> str:
    """The whole page."""
    sections = [section(path, printed_by(path) if run else None) for path in examples(folder)]
    return "\n\n".join([_OPENING, *sections]) + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def on_config(config: Any) -> Any:
    config.watch.append(str(EXAMPLES))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the page to the files of the site."""
    from mkdocs.structure.files import File

    run = os.environ.get("TAXOLEARN_GALLERY") != "code"  # for a quick look at other pages
    files.append(File.generated(config, PAGE, content=page(run=run)))
    return files
