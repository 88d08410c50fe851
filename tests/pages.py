"""Pages of the documentation, and the Python on them."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def read_page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def run_page(name):
    """Run the Python of a page in one namespace, and return the number of its blocks."""
    blocks = re.findall(r"```python\n(.*?)```", read_page(name), flags=re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    return len(blocks)
